//! A PostgreSQL server of the tests' own: it is started once for a process, in a temporary folder and on a socket there,
//! and it ends with the process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where distributions install the server, beside the search path.
const FOLDERS: [&str; 3] = ["/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt/postgresql"];

/// Starts the server, prints its folder, and stops it when nothing can come from the test any more.
const SCRIPT: &str = r#"
set -eu
folder=$(mktemp -d)
trap 'kill -INT $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$folder"' EXIT
"$1/initdb" -D "$folder/data" -U loopctl -A trust --no-sync -E UTF8 --locale=C >"$folder/log" 2>&1
"$1/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c max_connections=400 >>"$folder/log" 2>&1 &
server=$!
until "$1/pg_isready" -q -h "$folder" -U loopctl -d postgres; do kill -0 $server; sleep 0.05; done
echo "$folder"
read -r line || true
"#;

/// A server that runs.
pub struct PostgresServer {
    /// The folder of its socket and its data.
    pub folder: String,
    _child: Child,
}

/// The server of this process; none on a machine without PostgreSQL. `test` is named then.
pub fn server(test: &str) -> Option<&'static PostgresServer> {
    static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
    let server = SERVER.get_or_init(start).as_ref();
    if server.is_none() {
        // Not captured, as `eprintln!` is: the run says what it skipped.
        #[allow(clippy::explicit_write, reason = "the line is to be seen when the test passes, too")]
        writeln!(std::io::stderr(), "skipped: {test}: there is no PostgreSQL server on this machine").unwrap();
    }
    server
}

impl PostgresServer {
    /// The address of a store of its own.
    pub fn store(&self) -> String {
        static STORES: AtomicU32 = AtomicU32::new(0);
        let number = STORES.fetch_add(1, Ordering::SeqCst);
        self.url(&format!("schema=t{}_{number}", std::process::id()))
    }

    /// Runs statements as the server's superuser; returns the rows, a line each.
    #[allow(dead_code, reason = "not all tests that share the server use it")]
    pub fn psql(&self, sql: &str) -> String {
        let psql = format!("{}/psql", programs().expect("the server's programs"));
        let mut command = Command::new(psql);
        command.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            &self.folder,
            "-U",
            "loopctl",
            "-d",
            "postgres",
        ]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql starts");
        child.stdin.take().unwrap().write_all(sql.as_bytes()).expect("psql reads");
        let output = child.wait_with_output().expect("psql ends");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The address of the server with these parameters.
    pub fn url(&self, parameters: &str) -> String {
        format!("postgres://loopctl@{}/postgres?{parameters}", self.folder.replace('/', "%2F"))
    }
}

fn start() -> Option<PostgresServer> {
    let programs = programs()?;
    let mut command = as_server_user("sh");
    command.args(["-c", SCRIPT, "sh", &programs]).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut folder = String::new();
    BufReader::new(child.stdout.as_mut()?).read_line(&mut folder).ok()?;
    let folder = folder.trim().to_owned();
    (!folder.is_empty()).then_some(PostgresServer { folder, _child: child })
}

/// A program as a user that may run the server: it refuses to run as root.
pub fn as_server_user(program: &str) -> Command {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.starts_with(b"0\n"));
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", program]);
    command
}

/// The folder with the server's programs.
pub fn programs() -> Option<String> {
    let mut folders: Vec<String> = FOLDERS.iter().map(|folder| format!("{folder}/bin")).collect();
    for entry in std::fs::read_dir(FOLDERS[0]).into_iter().flatten().flatten() {
        folders.push(entry.path().join("bin").display().to_string());
    }
    folders.sort();
    folders.into_iter().rev().find(|folder| Path::new(folder).join("initdb").exists())
}
