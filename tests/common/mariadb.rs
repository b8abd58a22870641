//! A MariaDB server of the tests' own: it is started once for a process, in a temporary folder and on a socket there, and it
//! ends with the process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The password of the user `ada`.
pub const PASSWORD: &str = "hunter22-word";

/// Where distributions install the server, and the tables that it begins with.
const PROGRAMS: [&str; 3] = ["/usr/sbin/mariadbd", "/usr/libexec/mariadbd", "/usr/bin/mariadbd"];
const TABLES: [&str; 2] = ["/usr/share/mysql", "/usr/share/mariadb"];

/// Starts the server, prints its folder, and stops it when nothing can come from the test any more. `$1` is the program,
/// `$2` the tables, `$3` the password, `$4` the port of a server with a certificate: it is made by an authority for
/// `localhost`.
const SCRIPT: &str = r#"
set -eu
folder=$(mktemp -d)
server=
trap 'kill -KILL $server || true; wait $server || true; rm -rf "$folder"' EXIT
cd "$folder"
exec 3>&1 >log 2>&1
mkdir data
network=--skip-networking
if [ -n "$4" ]; then
  key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
  for name in ca other; do openssl req -x509 $key -keyout $name.key -out $name.pem -subj "/CN=$name" -days 2; done
  openssl req $key -keyout server.key -out server.csr -subj /CN=localhost
  echo "subjectAltName=DNS:localhost" >names
  openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names
  network="--bind-address=127.0.0.1 --port=$4 --skip-name-resolve --ssl-cert=$folder/server.pem --ssl-key=$folder/server.key"
fi
options="--no-defaults --datadir=$folder/data --tmpdir=$folder --secure-file-priv= --innodb-buffer-pool-size=16M \
  --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0"
{
  printf '%s\n' "CREATE DATABASE mysql;" "USE mysql;"
  cat "$2"
  printf '%s\n' "FLUSH PRIVILEGES;" "CREATE DATABASE shop;" "CREATE USER ada@'%' IDENTIFIED BY '$3';" "GRANT ALL ON *.* TO ada@'%';" \
    "USE shop;" "CREATE TABLE kept (n int);" \
    "CREATE DEFINER=ada@'%' FUNCTION writes() RETURNS int DETERMINISTIC BEGIN INSERT INTO kept VALUES (1); RETURN 1; END;" \
    "CREATE DEFINER=ada@'%' PROCEDURE once() BEGIN SELECT 1 AS a; END;" \
    "CREATE DEFINER=ada@'%' PROCEDURE twice() BEGIN SELECT 1 AS a; SELECT 2 AS b; END;" \
    "CREATE DEFINER=ada@'%' PROCEDURE ends(IN name varchar(64)) BEGIN DECLARE found int; SELECT max(id) INTO found FROM information_schema.processlist WHERE db = name AND info LIKE 'INSERT INTO t SELECT sleep(600), 2%'; IF found IS NOT NULL THEN KILL found; END IF; SELECT found IS NOT NULL AS ended; END;" \
    "CREATE DEFINER=ada@'%' PROCEDURE leaves() BEGIN COMMIT; INSERT INTO kept VALUES (2); END;"
} >tables.sql
"$1" $options --bootstrap <tables.sql
"$1" $options --socket="$folder/socket" --pid-file="$folder/pid" $network &
server=$!
until grep -q 'ready for connections' log; do kill -0 $server; sleep 0.05; done
echo "$folder" >&3
read -r line || true
"#;

/// A server that runs.
pub struct MariadbServer {
    /// The folder of its socket, its data and its certificates.
    pub folder: String,
    _child: Child,
}

/// The server of this process; none on a machine without MariaDB. `test` is named then.
pub fn server(test: &str) -> Option<&'static MariadbServer> {
    static SERVER: OnceLock<Option<MariadbServer>> = OnceLock::new();
    let server = SERVER.get_or_init(|| start("")).as_ref();
    if server.is_none() {
        skipped(test);
    }
    server
}

/// A server with a certificate at a port; none on a machine without MariaDB or openssl.
pub fn server_with_tls(test: &str, port: u16) -> Option<MariadbServer> {
    let server = start(&port.to_string());
    if server.is_none() {
        skipped(test);
    }
    server
}

fn skipped(test: &str) {
    // Not captured, as `eprintln!` is: the run says what it skipped.
    #[allow(clippy::explicit_write, reason = "the line is to be seen when the test passes, too")]
    writeln!(std::io::stderr(), "skipped: {test}: there is no MariaDB server on this machine").unwrap();
}

impl MariadbServer {
    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("mysql://ada@{}%2Fsocket/{database}", self.folder.replace('/', "%2F"))
    }
}

fn start(port: &str) -> Option<MariadbServer> {
    let program = PROGRAMS.into_iter().find(|program| Path::new(program).exists())?;
    let mut tables = TABLES.into_iter().map(|folder| format!("{folder}/mysql_system_tables.sql"));
    let tables = tables.find(|file| Path::new(file).exists())?;
    let mut command = as_server_user();
    command.args(["-c", SCRIPT, "sh", program, &tables, PASSWORD, port]);
    let mut child = command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut folder = String::new();
    BufReader::new(child.stdout.as_mut()?).read_line(&mut folder).ok()?;
    let folder = folder.trim().to_owned();
    (!folder.is_empty()).then_some(MariadbServer { folder, _child: child })
}

/// A shell as a user that may run the server: it refuses to run as root.
fn as_server_user() -> Command {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.starts_with(b"0\n"));
    if !is_root {
        return Command::new("sh");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh"]);
    command
}
