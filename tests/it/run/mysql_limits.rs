//! Calls of the `db` tool on a MariaDB server: writes, limits, what is left behind, lost connections and TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::mysql_tool::place;
use super::postgres_tool::query;
use crate::common::mariadb::{self, PASSWORD};
use crate::common::{Place, complete, observed, think};

#[test]
fn a_write_to_mysql_says_what_it_changed() {
    let write = json!({ "read_only": false });
    let actions = [
        query("insert", "INSERT INTO t (name) VALUES ('a'), ('b')", write.clone()),
        query("same", "UPDATE t SET name = 'a' WHERE name = 'a'", write.clone()),
        query("returning", "INSERT INTO t (name) VALUES ('c') RETURNING id", write.clone()),
        query("twice", "INSERT INTO t (id, name) VALUES (1, 'x')", write.clone()),
        query("long", "INSERT INTO t (name) VALUES ('much too long')", write.clone()),
        query("none", "INSERT INTO t (name) VALUES (NULL)", write.clone()),
        query("zero", "SELECT 1 / 0 AS v", json!({})),
        query("once", "CALL shop.once()", write.clone()),
        query("many", "CALL shop.twice()", write),
        query("count", "SELECT count(*) AS n FROM t", json!({})),
    ];
    let setup = ["CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(5) NOT NULL)"];
    let Some(place) = place("writes", &setup, &actions) else { return };
    let names = ["insert", "same", "returning", "twice", "long", "none", "zero", "once", "many", "count"];
    let trace = place.calls(&names.map(|name| think(name, json!({}))));
    let seen: Vec<&Value> = trace.iter().map(|entry| &entry["observation"]).collect();
    assert_eq!(*seen[0], json!({ "changes": 2, "last_insert_id": 1 }));
    assert_eq!(*seen[1], json!({ "changes": 1 }), "what had the value already is found, too");
    assert_eq!(*seen[2], json!({ "rows": [{ "id": 3 }], "row_count": 1 }));
    for (at, words) in
        [(3, "unique constraint"), (4, "value too large"), (5, "not-null constraint"), (8, "more than one result")]
    {
        assert!(observed(&trace[at]).contains(words), "{:#}", trace[at]);
    }
    assert_eq!(seen[6]["rows"], json!([{ "v": null }]));
    assert_eq!(seen[7]["rows"], json!([{ "a": 1 }]));
    assert_eq!(seen[9]["rows"], json!([{ "n": 3 }]), "what was refused left nothing");
}

#[test]
fn a_result_of_mysql_ends_at_its_limits_and_the_server_stops() {
    let actions = [
        query("many", "SELECT seq FROM seq_1_to_10000000", json!({})),
        query("own", "SELECT seq FROM seq_1_to_10000000 LIMIT 5000000", json!({})),
        query("long", "SELECT repeat('x', 1000000) AS x FROM seq_1_to_1000", json!({})),
        query("huge", "SELECT repeat('x', 16000000) AS x", json!({})),
        query("written", "SELECT seq FROM seq_1_to_20000", json!({ "read_only": false })),
        query("sleep", "SELECT sleep(1000)", json!({ "timeout_ms": 200 })),
        query(
            "left",
            "SELECT count(*) AS n FROM information_schema.processlist WHERE info LIKE 'SELECT sleep(1000)%' AND db = DATABASE()",
            json!({}),
        ),
    ];
    let Some(place) = place("limits", &[], &actions) else { return };
    let names = ["many", "own", "long", "huge", "written", "sleep"];
    let trace = place.calls(&names.map(|name| think(name, json!({}))));
    for at in [0, 1, 4] {
        let seen = &trace[at]["observation"];
        assert_eq!((seen["row_count"].as_u64(), seen["truncated"].as_bool()), (Some(1000), Some(true)), "{at}");
    }
    let long = observed(&trace[2]);
    assert!(trace[2]["success"] == true && long.len() < 11_000_000, "{}", long.chars().take(300).collect::<String>());
    let huge = observed(&trace[3]);
    assert!(huge.contains("too large"), "{}", huge.chars().take(300).collect::<String>());
    assert!(observed(&trace[5]).contains("timed out"), "{:#}", trace[5]);
    let is_stopped = (0..200).any(|_| place.calls(&[think("left", json!({}))])[0]["observation"]["rows"][0]["n"] == 0);
    assert!(is_stopped, "the statement still runs");
}

#[test]
fn what_a_call_to_mysql_sets_does_not_reach_the_next_one() {
    let write = json!({ "read_only": false });
    let actions = [
        query("lock", "SELECT GET_LOCK('loopctl-left', 0) AS got", json!({})),
        query("temp", "CREATE TEMPORARY TABLE left_over (n int)", write),
        query("seen", "SELECT IS_FREE_LOCK('loopctl-left') AS free, CONNECTION_ID() AS id", json!({})),
        query("gone", "SELECT n FROM left_over", json!({})),
    ];
    let Some(place) = place("reset", &[], &actions) else { return };
    let trace = place.calls(&["lock", "seen", "temp", "gone", "seen"].map(|name| think(name, json!({}))));
    assert_eq!(trace[0]["observation"]["rows"][0]["got"], 1);
    assert_eq!(trace[1]["observation"]["rows"][0]["free"], 1, "{:#}", trace[1]);
    assert!(observed(&trace[3]).contains("error in the query"), "{:#}", trace[3]);
    let id = |at: usize| &trace[at]["observation"]["rows"][0]["id"];
    assert_eq!(id(1), id(4), "the connection was kept");
}

#[test]
fn a_process_that_is_killed_in_a_write_to_mysql_leaves_an_uncertain_call() {
    let slow = query("slow", "INSERT INTO t SELECT sleep(600)", json!({ "read_only": false, "timeout_ms": 600_000 }));
    let kill = query(
        "busy",
        "SELECT count(*) AS n FROM information_schema.processlist WHERE info LIKE 'INSERT INTO t SELECT sleep%' AND db = DATABASE()",
        json!({}),
    );
    let Some(place) = place("uncertain", &["CREATE TABLE t (n int)"], &[slow]) else { return };
    let project: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    let watcher = Place::new();
    watcher.file("password", PASSWORD);
    watcher.actions(&[kill], &project);
    place.json("script.json", &json!({ "replies": [think("slow", json!({})), complete(json!("done"))] }));
    let mut child =
        place.start(&["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json"], &[]);
    let is_busy = || watcher.calls(&[think("busy", json!({}))])[0]["observation"]["rows"][0]["n"] != 0;
    assert!((0..500).any(|_| is_busy()), "the statement never ran");
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = place.call(&["resume", "r", "--script", "script.json", "--output", "json"]);
    assert_eq!((resumed.code, resumed.json()["termination"].as_str()), (3, Some("uncertain")), "{resumed:#?}");
}

#[test]
fn a_write_whose_connection_mysql_ends_is_not_known_to_be_done() {
    let ended =
        query("ended", "INSERT INTO t SELECT sleep(600), 2", json!({ "read_only": false, "timeout_ms": 60_000 }));
    let Some(place) = place("lost", &["CREATE TABLE t (n int, m int)"], &[ended]) else { return };
    let project: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    let watcher = Place::new();
    watcher.file("password", PASSWORD);
    let write = json!({ "read_only": false });
    watcher.actions(&[query("kill", "CALL shop.ends(DATABASE())", write)], &project);
    place.json("script.json", &json!({ "replies": [think("ended", json!({})), complete(json!("done"))] }));
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--store", "memory"];
    let child = place.start(&args, &[]);
    let kill = || watcher.calls(&[think("kill", json!({}))])[0]["observation"]["rows"][0]["ended"] == 1;
    assert!((0..500).any(|_| kill()), "the statement never ran");
    let output = child.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(observed(&result["trace"][0]).contains("not known whether the statement was done"), "{result:#}");
}

#[test]
fn a_mysql_server_that_talks_nonsense_fails_the_call_in_time() {
    let talks: [fn(std::net::TcpStream); 3] = [
        |mut stream| drop(stream.write_all(b"")),
        |mut stream| {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ = stream.read(&mut [0; 64]);
        },
        |mut stream| while stream.write_all(&[0xff; 0xffff]).is_ok() {},
    ];
    for (at, talk) in talks.into_iter().enumerate() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("mysql://ada@{}/d?connect_timeout=1", listener.local_addr().unwrap());
        std::thread::spawn(move || listener.incoming().flatten().for_each(talk));
        let place = Place::new();
        place.actions(&[query("q", "SELECT 1", json!({}))], &json!({ "datasources": { "shop": { "url": url } } }));
        let entry = place.calls(&[think("q", json!({}))])[0].clone();
        assert!(observed(&entry).contains("can't be opened"), "{at}: {entry:#}");
    }
}

#[test]
fn a_mysql_host_that_the_project_does_not_allow_is_not_dialled() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("mysql://ada@{}/d", listener.local_addr().unwrap());
    let action = query("q", "SELECT 1", json!({}));
    let allow = json!({ "hosts": ["api.example.com"] });
    place.actions(std::slice::from_ref(&action), &json!({ "datasources": { "shop": { "url": url } }, "allow": allow }));
    assert!(place.refused().contains("allow.hosts"));
    let project = json!({ "datasources": { "shop": { "url": "env:SHOP_URL" } }, "allow": allow });
    place.actions(std::slice::from_ref(&action), &project);
    let trace = place.calls_with(&[think("q", json!({}))], &[], &[("SHOP_URL", &url)]);
    assert!(observed(&trace[0]).contains("address not allowed"), "{:#}", trace[0]);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody connected");
}

#[test]
fn only_the_mysql_server_whose_certificate_names_it_is_used_and_no_text_has_the_password() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Some(server) = mariadb::server_with_tls("TLS to MariaDB", port) else { return };
    let sql = format!("SHOW STATUS WHERE variable_name = 'Ssl_version' OR '{PASSWORD}' = ''");
    let actions = [query("q", &sql, json!({})), query("told", &format!("SELECT '{PASSWORD}' AS told"), json!({}))];
    let ask = |host: &str, authority: &str, name: &str| {
        let place = Place::new();
        let tls = format!("sslmode=verify-full&sslrootcert={}/{authority}.pem", server.folder);
        let url = format!("mysql://ada:{PASSWORD}@{host}:{port}/shop?{tls}");
        place.actions(
            &actions,
            &json!({ "datasources": { "shop": { "url": "orgconfig:shop" } }, "orgconfig": { "shop": "env:SHOP_URL" } }),
        );
        place.calls_with(&[think(name, json!({}))], &[], &[("SHOP_URL", &url)])[0].clone()
    };
    let right = ask("localhost", "ca", "q");
    assert!(observed(&right).contains("TLSv1."), "{right:#}");
    assert!(!observed(&ask("localhost", "ca", "told")).contains(PASSWORD));
    for (host, authority) in [("localhost", "other"), ("127.0.0.1", "ca"), ("localhost", "none")] {
        let entry = ask(host, authority, "q");
        let shown = observed(&entry);
        assert!(shown.contains("can't be opened") || shown.contains("not configured"), "{host} {authority}: {entry:#}");
    }
}
