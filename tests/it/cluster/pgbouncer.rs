//! PgBouncer in transaction mode between workers and PostgreSQL: each transaction may get another connection of the
//! database. Without the program `pgbouncer` on this machine, these tests are skipped.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::cluster::harness::database::Store;
use crate::cluster::harness::{Cluster, Play};
use crate::common::complete;
use crate::serve::client;
use crate::test_server;

/// Where packages put it: outside the search path of most users.
const PROGRAMS: [&str; 3] = ["/usr/sbin/pgbouncer", "/usr/local/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"];

/// A pooler in front of the server that all tests share; it ends with the test.
struct Pooler {
    child: Child,
    folder: tempfile::TempDir,
}

impl Pooler {
    /// None without its program. All clients together get at most so many connections of the database.
    fn start(test: &str, connections: usize) -> Option<Self> {
        let server = test_server::server(test)?;
        let Some(program) = PROGRAMS.into_iter().find(|program| Path::new(program).exists()) else {
            // Not captured, as `eprintln!` is: the run says what it skipped.
            #[allow(clippy::explicit_write, reason = "the line is to be seen when the test passes, too")]
            writeln!(std::io::stderr(), "skipped: {test}: there is no pgbouncer on this machine").unwrap();
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        // The pooler is another user than root, and writes its socket there.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let (path, database) = (folder.path().display(), &server.folder);
        std::fs::write(folder.path().join("users"), "\"loopctl\" \"\"\n").unwrap();
        std::fs::write(
            folder.path().join("ini"),
            format!(
                "[databases]\n* = host={database}\n[pgbouncer]\npool_mode = transaction\nlisten_addr =\n\
                 unix_socket_dir = {path}\nauth_type = trust\nauth_file = {path}/users\nmax_client_conn = 200\n\
                 default_pool_size = {connections}\n"
            ),
        )
        .unwrap();
        let mut command = test_server::as_server_user(program);
        command.arg(folder.path().join("ini")).current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        while !folder.path().join(".s.PGSQL.6432").exists() {
            crate::common::wait_poll_interval();
        }
        Some(Self { child, folder })
    }

    /// The address of a store behind it.
    fn address(&self, store: &Store, more: &str) -> String {
        let (_, parameters) = store.url.split_once('?').unwrap();
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://loopctl@{folder}:6432/postgres?{parameters}{more}")
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn workers_behind_a_pooler_share_few_connections_and_lose_nothing() {
    let test = "workers_behind_a_pooler_share_few_connections";
    let Some(pooler) = Pooler::start(test, 3) else { return };
    let store = Store::shared(test).unwrap();
    let play = Play { workers: 3, slots: 16, runs: 24, calls: 8, model_ms: 60, tool_ms: 20, has_once: true };
    let mut cluster = Cluster::start(play, store.clone(), &pooler.address(&store, "&prepare=off"), 7);
    cluster.load();
    assert!(cluster.goes_on(40));
    let worker = cluster.pick(play.workers);
    cluster.replace(worker);
    cluster.judge(test).sound(1);
}

/// Whether the pooler is of a version that keeps prepared statements.
fn keeps_statements() -> bool {
    let program = PROGRAMS.into_iter().find(|program| Path::new(program).exists()).unwrap();
    let said = std::process::Command::new(program).arg("--version").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let version = said.split_whitespace().nth(1).unwrap().to_owned();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap());
    (numbers.next(), numbers.next()) >= (Some(1), Some(21))
}

#[test]
fn a_pooler_that_keeps_no_prepared_statements_is_refused_before_anything_is_written() {
    let test = "a_pooler_that_keeps_no_prepared_statements_is_refused";
    let Some(pooler) = Pooler::start(test, 3) else { return };
    let store = Store::shared(test).unwrap();
    let place = client::place(json!({}), &[complete(json!("ok"))]);
    let run = |more: &str| place.call(&["run", "loop.json", "--store", &pooler.address(&store, more)]);
    let ran = run("");
    if keeps_statements() {
        assert_eq!(ran.code, 0, "{ran:#?}");
        return;
    }
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("keeps no prepared statements. Add `prepare=off` to the address"), "{ran:#?}");
    let listed = place.call(&["runs", "--store", &pooler.address(&store, "&prepare=off"), "--output", "json"]);
    assert!(!listed.stdout.contains("run_id"), "{listed:#?}");
    assert_eq!(run("&prepare=off").code, 0);
}

#[test]
fn a_pooler_that_keeps_no_prepared_statements_is_named_with_what_to_do() {
    let test = "a_pooler_that_keeps_no_prepared_statements_is_named";
    let Some(pooler) = Pooler::start(test, 3) else { return };
    let store = Store::shared(test).unwrap();
    let place = client::place(json!({}), &[complete(json!("ok"))]);
    // Several at once, so that they get each other's connections.
    let address = pooler.address(&store, "");
    let ran: Vec<_> = std::thread::scope(|scope| {
        let run = || place.call(&["run", "loop.json", "--store", &address]);
        let runs: Vec<_> = (0..6).map(|_| scope.spawn(run)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let refused = ran.iter().filter(|ran| ran.stderr.contains("Add `prepare=off` to the address of the store")).count();
    let works = ran.iter().filter(|ran| ran.code == 0).count();
    // Later versions keep them, and nobody is refused.
    assert!(refused + works == ran.len(), "{ran:#?}");
}
