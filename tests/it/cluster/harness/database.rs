//! The databases of plays: a schema of the server that all tests share, or servers of a play's own, which can fail.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::proxy::Proxy;
use crate::test_server;

/// A store, as the test looks at it: beside all workers and proxies.
#[derive(Debug, Clone)]
pub struct Store {
    /// Its address for loopctl.
    pub url: String,
    /// Its address for `psql`.
    database: String,
    schema: String,
}

impl Store {
    /// A new store in the server that all tests share; none without PostgreSQL.
    pub fn shared(test: &str) -> Option<Self> {
        let server = test_server::server(test)?;
        let url = format!("{}&lease_ms={}", server.store(), super::LEASE.as_millis());
        Some(Self::at(&url, &server.folder))
    }

    /// The address of the store behind a proxy.
    pub fn behind(&self, proxy: &Proxy) -> String {
        let (_, parameters) = self.url.split_once('?').unwrap();
        format!("postgres://loopctl@{}/postgres?{parameters}", proxy.address)
    }

    fn at(url: &str, hosts: &str) -> Self {
        let (_, schema) = url.split_once("schema=").unwrap();
        let schema = schema.split('&').next().unwrap().to_owned();
        let database = format!(
            "postgresql:///postgres?user=loopctl&host={hosts}&target_session_attrs=read-write&connect_timeout=2"
        );
        Self { url: url.to_owned(), database, schema }
    }

    /// The rows of a statement, a line each; none when the database is not there. `@` is the schema.
    pub fn ask(&self, sql: &str) -> Option<String> {
        let psql = format!("{}/psql", test_server::programs().unwrap());
        let mut command = Command::new(psql);
        command.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-d", &self.database, "-c", &sql.replace('@', &self.schema)]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The same of a database that is there.
    pub fn tell(&self, sql: &str) -> String {
        self.ask(sql).unwrap_or_else(|| panic!("the database refuses: {sql}"))
    }
}

/// A server of a play's own, and a standby if one is asked for. Commands and their answers are lines; `$1` is the folder
/// of the programs, `$2` says which standby: `none`, `synchronous` or `lagging`, and `$3` is the library that moves the
/// server's clock, or nothing.
const SCRIPT: &str = r#"
set -eu
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'set +e; for data in primary standby; do [ -e "$folder/$data" ] && "$1/pg_ctl" -D "$folder/$data" -m immediate stop; done; rm -rf "$folder"' EXIT
cd "$folder"
mkdir p s
exec 3>&1 >log 2>&1
"$1/initdb" -D primary -U loopctl -A trust --no-sync -E UTF8 --locale=C
printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$folder/p'" "max_connections = 200" >>primary/postgresql.conf
ask() { "$1/psql" -XAt -h "$folder/$2" -U loopctl -d postgres -c "$3"; }
library=$3
echo +0 >clock
start() {
  if [ -n "$library" ]; then
    LD_PRELOAD=$library FAKETIME_TIMESTAMP_FILE=$folder/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 \
      "$1/pg_ctl" -D "$2" -w -l "$2.log" start
  else
    "$1/pg_ctl" -D "$2" -w -l "$2.log" start
  fi
}
start "$1" primary
if [ "$2" != none ]; then
  "$1/pg_basebackup" -D standby -h "$folder/p" -U loopctl -R -X stream -c fast --no-sync
  echo "unix_socket_directories = '$folder/s'" >>standby/postgresql.conf
  start "$1" standby
fi
if [ "$2" = synchronous ]; then
  ask "$1" p "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'"
  ask "$1" p 'SELECT pg_reload_conf()'
  until [ "$(ask "$1" p "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'")" = 1 ]; do sleep 0.05; done
fi
echo "$folder" >&3
while read -r line; do
  case $line in
    stop) "$1/pg_ctl" -D primary -w -m immediate stop ;;
    start) start "$1" primary ;;
    clock*) echo "${line#clock }" >clock.new && mv clock.new clock ;;
    lag) "$1/pg_ctl" -D standby -w -m fast stop ;;
    promote)
      "$1/pg_ctl" -D primary -w -m immediate stop
      [ "$2" = synchronous ] || start "$1" standby
      "$1/pg_ctl" -D standby -w promote ;;
  esac
  echo "$line" >&3
done
"#;

/// Which standby a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standby {
    None,
    Synchronous,
    Lagging,
}

/// A server of a play's own.
pub struct FailingServer {
    child: Child,
    output: BufReader<ChildStdout>,
    pub store: Store,
}

impl FailingServer {
    /// None without PostgreSQL.
    pub fn start(test: &str, standby: Standby) -> Option<Self> {
        Self::start_with(test, standby, "")
    }

    /// A server whose clock can be moved; none without PostgreSQL or the library libfaketime.
    pub fn with_clock(test: &str) -> Option<Self> {
        let Some(library) = faketime() else {
            // Not captured, as `eprintln!` is: the run says what it skipped.
            #[allow(clippy::explicit_write, reason = "the line is to be seen when the test passes, too")]
            writeln!(std::io::stderr(), "skipped: {test}: there is no libfaketime on this machine").unwrap();
            return None;
        };
        Self::start_with(test, Standby::None, &library)
    }

    fn start_with(test: &str, standby: Standby, library: &str) -> Option<Self> {
        test_server::server(test)?;
        let mut command = test_server::as_server_user("sh");
        let standby = match standby {
            Standby::None => "none",
            Standby::Synchronous => "synchronous",
            Standby::Lagging => "lagging",
        };
        command.args(["-c", SCRIPT, "sh", &test_server::programs().unwrap(), standby, library]);
        let mut child = command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let folder = line(&mut output);
        assert!(!folder.is_empty(), "the server does not start");
        let hosts = format!("{folder}/p,{folder}/s");
        let lease = super::LEASE.as_millis();
        let url = format!("postgres://loopctl@/postgres?host={hosts}&schema=loops&lease_ms={lease}");
        Some(Self { child, output, store: Store::at(&url, &hosts) })
    }

    /// Does what a word says: `stop` (at once, as after a crash), `start`, `lag` (the standby receives no more),
    /// `promote` (the primary is gone, and the standby takes its place), `clock SECONDS` (its clock is so much ahead).
    pub fn does(&mut self, word: &str) {
        self.child.stdin.as_mut().unwrap().write_all(format!("{word}\n").as_bytes()).unwrap();
        assert_eq!(line(&mut self.output), word);
    }
}

/// The library of Debian's package `libfaketime`, by which a process sees another time.
fn faketime() -> Option<String> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut libraries = folders.map(|folder| folder.join("faketime/libfaketime.so.1"));
    libraries.find(|library| library.exists()).map(|library| library.display().to_string())
}

fn line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

impl Drop for FailingServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}
