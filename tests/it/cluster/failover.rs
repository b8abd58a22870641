//! A failover to a standby that lags: events that were acknowledged are gone, and the driver of their run finds that out
//! before anything follows.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use loopctl::journal::{Journal, StoreError};

use crate::cluster::stored::{self, wait};
use crate::test_server;

/// Starts a primary and a standby, and does what it is asked for: `lag` stops the standby when it has all, `fail` kills
/// the primary and promotes the standby. `$1` is the folder of the programs.
const SCRIPT: &str = r#"
set -eu
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'set +e; for data in primary standby; do "$1/pg_ctl" -D "$folder/$data" -m immediate stop; done; rm -rf "$folder"' EXIT
cd "$folder"
mkdir p s
exec 3>&1 >log 2>&1
"$1/initdb" -D primary -U loopctl -A trust --no-sync -E UTF8 --locale=C
printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$folder/p'" >>primary/postgresql.conf
"$1/pg_ctl" -D primary -w -l primary.log start
"$1/pg_basebackup" -D standby -h "$folder/p" -U loopctl -R -X stream -c fast --no-sync
echo "unix_socket_directories = '$folder/s'" >>standby/postgresql.conf
"$1/pg_ctl" -D standby -w -l standby.log start
echo "$folder" >&3
ask() { "$1/psql" -XAt -h "$folder/$2" -U loopctl -d postgres -c "$3"; }
read -r line
sent=$(ask "$1" p 'SELECT pg_current_wal_flush_lsn()')
until [ "$(ask "$1" s "SELECT pg_last_wal_replay_lsn() >= '$sent'")" = t ]; do sleep 0.05; done
"$1/pg_ctl" -D standby -w -m fast stop
echo lags >&3
read -r line
"$1/pg_ctl" -D primary -w -m immediate stop
"$1/pg_ctl" -D standby -w -l standby.log start
"$1/pg_ctl" -D standby -w promote
echo promoted >&3
read -r line || true
"#;

/// A primary and its standby.
struct ServerPair {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl ServerPair {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn tell(&mut self, expected: &str) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        assert_eq!(self.line(), expected);
    }
}

impl Drop for ServerPair {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

fn append(journal: &dyn Journal, fence: u64, seq: u64) -> Result<(), StoreError> {
    wait(stored::append(journal, "r", fence, seq, format!("event {seq}")))
}

#[test]
fn a_standby_that_lagged_is_found_by_the_next_event_and_the_run_goes_on_from_what_is_there() {
    let test = "a_standby_that_lagged_is_found_by_the_next_event";
    if test_server::server(test).is_none() {
        return;
    }
    let mut command = test_server::as_server_user("sh");
    command.args(["-c", SCRIPT, "sh", &test_server::programs().unwrap()]);
    let mut child = command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut servers = ServerPair { child, output };
    let folder = servers.line();
    assert!(!folder.is_empty(), "the servers do not start");
    let url = format!("postgres://loopctl@/postgres?host={folder}/p,{folder}/s");
    let journal = stored::open(&url);
    let lease = stored::create(&*journal, "r");
    append(&*journal, lease.fence, 1).unwrap();
    servers.tell("lags");
    for seq in [2, 3] {
        append(&*journal, lease.fence, seq).unwrap();
    }
    servers.tell("promoted");
    assert_eq!(append(&*journal, lease.fence, 4).unwrap_err(), StoreError::WentBack("r".to_owned()));
    assert_eq!(wait(journal.confirm("r", lease.fence)).unwrap_err(), StoreError::Fenced("r".to_owned()));
    assert_eq!(wait(journal.read("r")).unwrap(), ["event 0", "event 1"], "nothing is behind the gap");
    // The database says that the run is this driver's, which does not know it: it lets go of it.
    let again = loop {
        match wait(journal.lease("r")) {
            Ok(lease) => break lease,
            Err(StoreError::Driven(_)) => crate::common::wait_poll_interval(),
            Err(fault) => panic!("{fault}"),
        }
    };
    assert_eq!((again.fence, again.events), (lease.fence + 1, 2));
    append(&*journal, again.fence, 2).unwrap();
}
