//! The `db` tool on a PostgreSQL server of the tests' own: values and types, what a statement may do, limits, and what
//! becomes of a call whose connection, server or process is lost.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::common::{Place, complete, observed, think, with};
use crate::test_server;

pub fn query(name: &str, sql: &str, more: Value) -> Value {
    let action =
        json!({ "action_name": name, "kind": "db", "description": "Asks.", "datasource": "shop", "query": sql });
    with(action, more)
}

/// A place with these actions on a database of its own, made by `setup`; none without a server.
pub fn place(test: &str, setup: &str, actions: &[Value]) -> Option<Place> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = test_server::server(test)?;
    let schema = format!("tool_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
    let url = server.url(&format!("options=-c%20search_path%3D{schema}"));
    let place = Place::new();
    let setup = if setup.is_empty() { "NULL" } else { setup };
    let setup = format!("CREATE SCHEMA {schema}; SET search_path = {schema}; {setup}");
    let setup = query("setup", &format!("DO $setup$ BEGIN {setup}; END $setup$"), json!({ "read_only": false }));
    place.actions(&[setup], &json!({ "datasources": { "shop": { "url": url } } }));
    let made = place.calls(&[think("setup", json!({}))]);
    assert_eq!(made[0]["observation"], json!({ "changes": 0 }), "{made:#?}");
    place.actions(actions, &json!({ "datasources": { "shop": { "url": url } } }));
    Some(place)
}

/// The same with the address in a file: what is refused before a server is asked, `check` can't report then.
pub fn hidden_place(test: &str, setup: &str, actions: &[Value]) -> Option<Place> {
    let place = place(test, setup, actions)?;
    let project: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    place.file("address", project["datasources"]["shop"]["url"].as_str().unwrap());
    place.json("loopctl.json", &json!({ "datasources": { "shop": { "url": "file:address" } } }));
    Some(place)
}

fn ask(test: &str, setup: &str, action: Value, input: Value) -> Option<Value> {
    let name = action["action_name"].as_str().unwrap().to_owned();
    let place = place(test, setup, &[action])?;
    Some(place.calls(&[think(&name, input)])[0].clone())
}

#[test]
fn every_type_becomes_json_without_loss() {
    let sql = "SELECT 32767::int2 AS i2, 9223372036854775807 AS i8, 123456789012345678901234567890.10::numeric AS n, \
        -0.00001200::numeric AS small, 10000::numeric AS tens, 0.1::float8 AS d, 0.1::float4 AS r, true AS b, 'é'::text AS t, \
        'x '::char(3) AS c, '2026-01-31'::date AS da, '13:30:00.5'::time AS ti, '13:30+02'::timetz AS tz, \
        '2026-01-31 13:30:00.000001'::timestamp AS ts, '2026-01-31 13:30:00+02'::timestamptz AS tsz, \
        '1 year 2 months -3 days 04:05:06.7'::interval AS iv, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u, \
        '{\"a\": 1.10}'::jsonb AS jb, '[12345678901234567890.5]'::json AS j, ARRAY[[1,2],[3,NULL]] AS a, '{}'::text[] AS e, \
        '\\x0102ff'::bytea AS by, B'0101100110' AS bi, 'calm'::mood AS m, 5::percent AS p, NULL::int AS nul, \
        '10.1.0.0/16'::inet AS net, 4000000000::oid AS o, 1 AS i2";
    let setup = "CREATE TYPE mood AS ENUM ('calm', 'cross'); CREATE DOMAIN percent AS int CHECK (VALUE < 101)";
    let Some(entry) = ask("types", setup, query("q", sql, json!({})), json!({})) else { return };
    let expected = r#"{"i2":32767,"i8":9223372036854775807,"n":123456789012345678901234567890.10,"small":-0.00001200,"tens":10000,"d":0.1,"r":0.1,"b":true,"t":"é","c":"x  ","da":"2026-01-31","ti":"13:30:00.5","tz":"13:30:00+02:00","ts":"2026-01-31T13:30:00.000001","tsz":"2026-01-31T11:30:00Z","iv":"P1Y2M-3DT4H5M6.7S","u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","jb":{"a":1.10},"j":[12345678901234567890.5],"a":[[1,2],[3,null]],"e":[],"by":"AQL/","bi":"0101100110","m":"calm","p":5,"nul":null,"net":"10.1.0.0/16","o":4000000000,"i2_2":1}"#;
    assert_eq!(entry["observation"]["rows"][0].to_string(), expected, "{entry:#}");
}

#[test]
fn what_json_does_not_have_is_refused_by_name() {
    let cases = [
        ("'NaN'::float8", "`v` is NaN"),
        ("'NaN'::numeric", "`v` is NaN"),
        ("'-Infinity'::float4", "`v` is -inf"),
        ("'infinity'::timestamptz", "`v` is infinity"),
        ("'0044-03-15 BC'::date", "a year that RFC 3339"),
        ("5::money", "the type `money` has no form"),
        ("int4range(1, 5)", "the type `int4range` has no form"),
        ("ROW(1, 2)", "the type `record` has no form"),
        ("'{\"a\": 1, \"a\": 2}'::json", "the key \"a\" twice"),
        ("'[2:3]={1,2}'::int[]", "does not begin at 1"),
    ];
    let name = |at: usize| format!("q{at}");
    let actions: Vec<Value> = cases
        .iter()
        .enumerate()
        .map(|(at, (sql, _))| query(&name(at), &format!("SELECT {sql} AS v"), json!({})))
        .collect();
    let Some(place) = place("refused types", "", &actions) else { return };
    let calls: Vec<Value> = (0..cases.len()).map(|at| think(&name(at), json!({}))).collect();
    for ((sql, message), entry) in cases.iter().zip(place.calls(&calls)) {
        assert!(observed(&entry).contains(message), "{sql}: {entry:#}");
    }
}

#[test]
fn arguments_are_values_whatever_they_contain() {
    let sql = "SELECT :v::text AS v, $q$ :v $q$ AS quoted, E'it\\'s :v' AS escaped, 1::int AS cast -- :v";
    let parameters = json!({ "type": "object", "properties": { "v": { "type": "string" } }, "required": ["v"] });
    let read = query("q", sql, json!({ "parameters": parameters }));
    let count = query("count", "SELECT count(*) AS n FROM t", json!({}));
    let setup = "CREATE TABLE t (v text); INSERT INTO t VALUES (''one'')".replace("''", "'");
    let Some(place) = place("injection", &setup, &[read, count]) else { return };
    let mut values: Vec<String> =
        ["'; DROP TABLE t; --", "$1", ":v", "\\'; DELETE FROM t", "1) OR 1=1", "$q$; DROP TABLE t; $q$"]
            .map(str::to_owned)
            .to_vec();
    values.push("é".repeat(10_000));
    let mut calls: Vec<Value> = values.iter().map(|value| think("q", json!({ "v": value }))).collect();
    calls.push(think("count", json!({})));
    let trace = place.calls(&calls);
    for (value, entry) in values.iter().zip(&trace) {
        let row = &entry["observation"]["rows"][0];
        assert_eq!(*row, json!({ "v": value, "quoted": " :v ", "escaped": "it's :v", "cast": 1 }), "{entry:#}");
    }
    assert_eq!(trace[values.len()]["observation"]["rows"][0]["n"], 1);
}

#[test]
fn arguments_take_the_declared_type_exactly_or_are_refused() {
    let parameters = json!({ "type": "object", "properties": { "v": {} }, "required": ["v"] });
    let action = |name: &str, of: &str| {
        query(name, &format!("SELECT (:v::{of})::text AS v"), json!({ "parameters": parameters }))
    };
    let actions = [
        action("i", "int4"),
        action("n", "numeric"),
        action("tz", "timestamptz"),
        action("a", "text[]"),
        action("j", "jsonb"),
        action("m", "mood"),
        action("b", "bytea"),
        action("d", "float8"),
    ];
    let Some(place) = place("arguments", "CREATE TYPE mood AS ENUM ('calm', 'cross')", &actions) else { return };
    let cases = [
        ("i", "7", Ok("7")),
        ("i", "7.5", Err("takes a whole number")),
        ("i", "3000000000", Err("value too large")),
        ("n", "12345678901234567890.123456789", Ok("12345678901234567890.123456789")),
        ("tz", "\"2026-01-31T10:00:00+02:00\"", Ok("2026-01-31 08:00:00+00")),
        ("tz", "\"2026-01-31T10:00:00\"", Err("a moment with a zone")),
        ("a", r#"["a,\"b", null, "{}"]"#, Ok(r#"{"a,\"b",NULL,"{}"}"#)),
        ("j", r#"{"x": 1.10}"#, Ok(r#"{"x": 1.10}"#)),
        ("m", "\"calm\"", Ok("calm")),
        ("m", "\"glad\"", Err("value not valid")),
        ("b", "\"AQL/\"", Ok("\\x0102ff")),
        ("d", "0.12345678901234567890", Err("8 bytes hold exactly")),
        ("d", "null", Ok("null")),
    ];
    let input = |value: &str| json!({ "v": serde_json::from_str::<Value>(value).unwrap() });
    let calls: Vec<Value> = cases.iter().map(|(name, value, _)| think(name, input(value))).collect();
    for ((name, value, expected), entry) in cases.iter().zip(place.calls(&calls)) {
        let shown = entry["observation"]["rows"][0]["v"].as_str().unwrap_or("null").to_owned();
        match expected {
            Ok(text) => assert_eq!(shown, *text, "{name} {value}: {entry:#}"),
            Err(message) => assert!(observed(&entry).contains(message), "{name} {value}: {entry:#}"),
        }
    }
}

#[test]
fn a_database_that_is_read_refuses_every_way_to_write() {
    let setup = "CREATE TABLE t (n int); INSERT INTO t VALUES (1); \
        CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO t VALUES (2); RETURN 1; END $f$; \
        CREATE PROCEDURE calls() LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO t VALUES (2); END $f$; \
        CREATE FUNCTION switches() RETURNS int LANGUAGE plpgsql AS $f$ BEGIN \
            PERFORM set_config('transaction_read_only', 'off', false); INSERT INTO t VALUES (2); RETURN 1; END $f$";
    let cases = [
        ("SELECT writes()", "read only"),
        ("SELECT switches()", "error in the query"),
        ("CALL calls()", "read only"),
        (
            "DO $d$ BEGIN PERFORM set_config('transaction_read_only', 'off', true); INSERT INTO t VALUES (2); END $d$",
            "error in the query",
        ),
        ("SET TRANSACTION READ WRITE", "error in the query"),
        ("WITH x AS (SELECT 1) SELECT nextval('s')", "database:"),
        ("COPY t TO '/tmp/loopctl-copy'", "not allowed"),
        ("COPY t FROM STDIN", "not allowed"),
        ("COMMIT", "not allowed"),
        ("/* x */ ROLLBACK", "not allowed"),
        // Comments of PostgreSQL nest, and those of a line end at a carriage return.
        ("/* /* */ */ COPY t TO '/tmp/loopctl-copy'", "not allowed"),
        ("-- x\rCOPY t TO '/tmp/loopctl-copy'", "not allowed"),
        ("SELECT 1; DELETE FROM t", "more than one statement"),
        ("EXPLAIN ANALYZE DELETE FROM t", "read only"),
        ("TRUNCATE t", "read only"),
    ];
    let name = |at: usize| format!("q{at}");
    let mut actions: Vec<Value> =
        cases.iter().enumerate().map(|(at, (sql, _))| query(&name(at), sql, json!({}))).collect();
    actions.push(query("count", "SELECT count(*) AS n FROM t", json!({})));
    actions.push(query("write", "INSERT INTO t VALUES (3) RETURNING n", json!({ "read_only": false })));
    actions.push(query("update", "UPDATE t SET n = n + 1", json!({ "read_only": false })));
    let Some(place) = hidden_place("read only", setup, &actions) else { return };
    let mut calls: Vec<Value> = (0..cases.len()).map(|at| think(&name(at), json!({}))).collect();
    calls.extend(["count", "write", "update", "count"].map(|name| think(name, json!({}))));
    let trace = place.calls(&calls);
    for ((sql, message), entry) in cases.iter().zip(&trace) {
        assert!(observed(entry).contains(message), "{sql}: {entry:#}");
    }
    let rest: Vec<&Value> = trace[cases.len()..].iter().map(|entry| &entry["observation"]).collect();
    assert_eq!(*rest[0], json!({ "rows": [{ "n": 1 }], "row_count": 1 }));
    assert_eq!(*rest[1], json!({ "rows": [{ "n": 3 }], "row_count": 1 }));
    assert_eq!(*rest[2], json!({ "changes": 2 }));
    assert_eq!(rest[3]["rows"][0]["n"], 2);
}

#[test]
fn a_result_ends_at_its_limits_and_the_server_stops() {
    let actions = [
        query("many", "SELECT i FROM generate_series(1, 10000000) i", json!({})),
        query("long", "SELECT repeat('x', 1000000) AS x FROM generate_series(1, 1000)", json!({})),
        query("huge", "SELECT repeat('x', 100000000) AS x", json!({})),
        query("written", "SELECT i FROM generate_series(1, 20000) i", json!({ "read_only": false })),
        query("sleep", "SELECT pg_sleep(1000)", json!({ "timeout_ms": 200 })),
        query(
            "left",
            "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(1000)%' AND state = 'active'",
            json!({}),
        ),
    ];
    let Some(place) = place("limits", "", &actions) else { return };
    let calls: Vec<Value> =
        ["many", "long", "huge", "written", "sleep"].iter().map(|name| think(name, json!({}))).collect();
    let trace = place.calls(&calls);
    let many = &trace[0]["observation"];
    assert_eq!((many["row_count"].as_u64(), many["truncated"].as_bool()), (Some(1000), Some(true)));
    // About 10 MiB, of which the trace keeps a part.
    let long = observed(&trace[1]);
    assert!(
        trace[1]["success"] == true && long.len() < 11_000_000,
        "{} {}",
        long.len(),
        long.chars().take(300).collect::<String>()
    );
    assert!(observed(&trace[2]).contains("too large"), "{}", observed(&trace[2]).len());
    assert_eq!(trace[3]["observation"]["truncated"], true);
    assert!(observed(&trace[4]).contains("timed out"), "{:#}", trace[4]);
    // The server stopped, by its own limit or because it was asked to.
    let is_stopped = (0..200).any(|_| place.calls(&[think("left", json!({}))])[0]["observation"]["rows"][0]["n"] == 0);
    assert!(is_stopped, "the statement still runs");
}

#[test]
fn what_a_call_sets_does_not_reach_the_next_one() {
    let write = json!({ "read_only": false });
    let actions = [
        query("set", "SELECT set_config('application_name', 'changed', false), pg_advisory_lock(77)", write.clone()),
        query("temp", "CREATE TEMP TABLE left_over (n int)", write),
        query(
            "seen",
            "SELECT current_setting('application_name') AS name, to_regclass('left_over') IS NULL AS gone, \
                       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77) AS locks",
            json!({}),
        ),
        query(
            "end",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'loopctl' AND pid <> pg_backend_pid()",
            json!({ "datasource": "other" }),
        ),
    ];
    let Some(place) = place("reset", "", &actions) else { return };
    let mut project: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    let url = project["datasources"]["shop"]["url"].as_str().unwrap().to_owned();
    project["datasources"]["other"] = json!({ "url": format!("{url}&application_name=other") });
    project["datasources"]["shop"]["url"] = json!(format!("{url}&application_name=mine{}", std::process::id()));
    let actions = actions.map(|mut action| {
        if action["action_name"] == "end" {
            let mine = format!("application_name = 'mine{}'", std::process::id());
            action["query"] = json!(action["query"].as_str().unwrap().replace("application_name = 'loopctl'", &mine));
        }
        action
    });
    place.actions(&actions, &project);
    let calls = ["set", "seen", "temp", "seen", "end", "seen"].map(|name| think(name, json!({})));
    let trace = place.calls(&calls);
    let seen = json!([{ "name": format!("mine{}", std::process::id()), "gone": true, "locks": 0 }]);
    for at in [1, 3, 5] {
        assert_eq!(trace[at]["observation"]["rows"], seen, "{at}: {trace:#?}");
    }
    assert_eq!(trace[4]["observation"]["row_count"], 1, "the idle connection was ended: {:#}", trace[4]);
}

#[test]
fn a_process_that_is_killed_in_a_write_leaves_an_uncertain_call() {
    let slow = query("slow", "INSERT INTO t SELECT 1 FROM pg_sleep(600)", json!({ "read_only": false }));
    let actions = [slow, query("count", "SELECT count(*) AS n FROM t", json!({}))];
    let busy = query(
        "busy",
        "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t SELECT 1 FROM pg\\_sleep%' AND state = 'active' AND pid <> pg_backend_pid()",
        json!({}),
    );
    let Some(place) = place("uncertain", "CREATE TABLE t (n int)", &actions) else { return };
    let project: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    let watcher = Place::new();
    watcher.actions(&[busy], &project);
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
fn a_server_that_hangs_or_talks_nonsense_fails_the_call_in_time() {
    let talks: [fn(std::net::TcpStream); 3] = [
        |mut stream| drop(stream.read(&mut [0; 64])),
        |mut stream| {
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        },
        |mut stream| {
            let _ = stream.read(&mut [0; 64]);
            // Notices without an end.
            let notice = [&b"N\0\0\xff\xff"[..], &[b'x'; 0xffff - 4]].concat();
            while stream.write_all(&notice).is_ok() {}
        },
    ];
    for (at, talk) in talks.into_iter().enumerate() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("postgres://ada@{}/d", listener.local_addr().unwrap());
        std::thread::spawn(move || listener.incoming().flatten().for_each(talk));
        let place = Place::new();
        place.actions(&[query("q", "SELECT 1", json!({}))], &json!({ "datasources": { "shop": { "url": url } } }));
        let entry = place.calls(&[think("q", json!({}))])[0].clone();
        assert!(observed(&entry).contains("can't be opened"), "{at}: {entry:#}");
    }
    // One that never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://ada@{}/d", listener.local_addr().unwrap());
    let place = Place::new();
    let action = query("q", "SELECT 1", json!({ "timeout_ms": 100 }));
    place.actions(&[action], &json!({ "datasources": { "shop": { "url": url } } }));
    assert!(observed(&place.calls(&[think("q", json!({}))])[0]).contains("timed out"));
}

#[test]
fn an_address_may_be_held_elsewhere_and_its_password_is_shown_nowhere() {
    let Some(server) = test_server::server("secrets") else { return };
    let url = server.url("").replace("loopctl@", "loopctl:hunter22secret@");
    let place = Place::new();
    let action = query("q", "SELECT 'hunter22secret' AS told", json!({}));
    place.file("url.txt", &url);
    for source in ["env:SHOP_URL", "file:url.txt", "orgconfig:shop"] {
        let project = json!({ "datasources": { "shop": { "url": source } }, "orgconfig": { "shop": "env:SHOP_URL" } });
        place.actions(std::slice::from_ref(&action), &project);
        let trace = place.calls_with(&[think("q", json!({}))], &[], &[("SHOP_URL", &url)]);
        let observation = &trace[0]["observation"];
        assert_eq!(observation["row_count"], 1, "{source}: {observation:#}");
        assert!(!observation.to_string().contains("hunter22"), "{source}: {observation:#}");
    }
    let project = json!({ "datasources": { "shop": { "url": server.url(""), "password": "env:SHOP_PASSWORD" } } });
    place.actions(std::slice::from_ref(&action), &project);
    let trace = place.calls_with(&[think("q", json!({}))], &[], &[("SHOP_PASSWORD", "hunter22secret")]);
    assert!(!trace[0]["observation"].to_string().contains("hunter22"), "{:#}", trace[0]);
    let missing = place.call(&["run", "loop.json", "--script", "script.json"]);
    assert!(missing.code != 0 && missing.stderr.contains("SHOP_PASSWORD"), "{missing:#?}");
    for (datasource, words) in [
        (json!({ "url": "postgres://ada:hunter22secret@h/d" }), "holds a password"),
        (json!({ "url": "postgres://ada@h/d", "password": "hunter22secret" }), "must say where its secret is"),
        (json!({ "url": "postgres://ada@h/d", "init": "a.sql" }), "makes an SQLite file"),
    ] {
        place.actions(std::slice::from_ref(&action), &json!({ "datasources": { "shop": datasource } }));
        let message = place.refused();
        assert!(message.contains(words) && !message.contains("hunter22"), "{message}");
    }
}

#[test]
fn what_a_server_says_of_an_address_that_is_held_elsewhere_shows_no_part_of_it() {
    let Some(server) = test_server::server("held") else { return };
    let place = Place::new();
    let action = query("q", "SELECT 1 AS n", json!({}));
    let project = |url: &str| json!({ "datasources": { "shop": { "url": url } } });
    let url = server.url("");
    let database = url.rsplit('/').next().unwrap().split('?').next().unwrap();
    let other = |from: &str, to: &str| url.replacen(from, to, 1);
    for (url, hidden) in [
        (other(&format!("/{database}"), "/salaries_of_2026"), "salaries_of_2026"),
        (other("loopctl@", "nobody_knows_her@"), "nobody_knows_her"),
    ] {
        place.actions(std::slice::from_ref(&action), &project("env:SHOP_URL"));
        place.script(&[think("q", json!({})), complete(json!("done"))]);
        let args = ["run", "loop.json", "--script", "script.json", "--run-id", hidden.split('_').next().unwrap()];
        let ran = place.call_with(&args, &[("SHOP_URL", &url)]);
        let trace = place.call(&["trace", args[5], "--format", "json"]).stdout;
        assert!(trace.contains("login refused"), "{trace}");
        let (shown, all) = (trace.contains(hidden), format!("{}{}", ran.stdout, ran.stderr));
        assert!(!shown && !all.contains(hidden), "{trace} {all}");
    }
}

#[test]
fn a_host_that_the_project_does_not_allow_is_not_dialled() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://ada@{}/d", listener.local_addr().unwrap());
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
fn a_step_whose_result_was_cut_fails_and_writes_nothing() {
    let actions = [
        query("up", "SELECT i FROM generate_series(1, 1200) i", json!({})),
        query("more", "SELECT i FROM generate_series(1, 1200) i", json!({ "max_rows": 1200 })),
        query("long", "SELECT repeat('x', 1000000) AS x FROM generate_series(1, 100)", json!({})),
        query("close", "UPDATE t SET sum = 0 RETURNING id", json!({ "read_only": false })),
        query("open", "SELECT count(*) AS n FROM t WHERE sum > 0", json!({})),
    ];
    let setup = "CREATE TABLE t AS SELECT i AS id, i AS sum FROM generate_series(1, 1001) i";
    let Some(place) = place("a step whose result was cut", setup, &actions) else { return };
    place.json("actions/all.json", &json!(actions));
    place.json("script.json", &json!({ "replies": [] }));
    let run = |kind: &str, output: &str| {
        let steps = json!([{ "type": kind, "outputKey": "a", "properties": {} }]);
        place.json("loop.json", &json!({ "name": "w", "definition": { "actions": steps, "output": output } }));
        place.run(&["--store", "memory"]).1
    };
    for (kind, words) in
        [("up", "more than 1000 rows"), ("long", "larger than 10 MiB"), ("close", "more than 1000 rows")]
    {
        let result = run(kind, "@a.row_count");
        assert!(result["error"]["message"].as_str().is_some_and(|why| why.contains(words)), "{kind}: {result:#}");
    }
    assert_eq!(run("open", "@a.rows.0.n")["result"]["answer"], 1001);
    assert_eq!(run("more", "@a.row_count")["result"]["answer"], 1200);
}

/// A chain of domains, each made of the one before it.
const CHAIN: &str = "EXECUTE 'CREATE DOMAIN d0 AS int'; \
    FOR i IN 1..600 LOOP EXECUTE format('CREATE DOMAIN d%s AS d%s', i, i - 1); END LOOP; \
    CREATE TYPE mood AS ENUM ('calm', 'cross'); CREATE DOMAIN happy AS mood; CREATE DOMAIN many AS int[]; \
    CREATE TYPE pair AS (a d600, b int)";

#[test]
fn a_chain_of_types_is_followed_to_a_bounded_depth() {
    let typed = |name: &str, sql: &str| query(name, sql, json!({}));
    let parameters = json!({ "type": "object", "properties": { "v": {} }, "required": ["v"] });
    let actions = [
        typed("array", "SELECT ARRAY[1]::d600[] AS a"),
        typed("deep", "SELECT ARRAY[ROW(1, 2)]::pair[] AS a, '{}'::d33[] AS b"),
        // The server describes the column of a domain by its base.
        typed("plain", "SELECT 1::d600 AS a"),
        typed("row", "SELECT ROW(1, 2)::pair AS a"),
        query("argument", "SELECT (:v::d600)::int AS a", json!({ "parameters": parameters })),
        typed(
            "near",
            "SELECT 1::d31 AS a, ARRAY[1]::d20[] AS b, 'calm'::happy AS c, '{1}'::many AS d, ARRAY['cross'::happy] AS e",
        ),
        typed("nearer", "SELECT 1::d10 AS a"),
    ];
    let Some(place) = place("chain of types", CHAIN, &actions) else { return };
    let names = ["array", "deep", "row", "near", "nearer", "deep", "near"];
    let mut calls: Vec<Value> = names.iter().map(|name| think(name, json!({}))).collect();
    calls.push(think("argument", json!({ "v": 1 })));
    calls.push(think("plain", json!({})));
    let trace = place.calls(&calls);
    for at in [0, 7] {
        assert!(observed(&trace[at]).contains("a chain of more than 32 domains and arrays"), "{:#}", trace[at]);
    }
    for at in [1, 5] {
        assert!(observed(&trace[at]).contains("the type `pair` has no form"), "{:#}", trace[at]);
    }
    assert!(observed(&trace[2]).contains("the type `pair` has no form"), "{:#}", trace[2]);
    for at in [3, 6] {
        let row = json!({ "a": 1, "b": [1], "c": "calm", "d": [1], "e": ["cross"] });
        assert_eq!(trace[at]["observation"]["rows"][0], row, "{:#}", trace[at]);
    }
    for at in [4, 8] {
        assert_eq!(trace[at]["observation"]["rows"][0]["a"], 1);
    }
    let checked = place.call(&["check", "loop.json", "--connect", "--format", "json"]);
    assert_eq!(checked.stdout.matches("a chain of more than 32").count(), 2, "{checked:#?}");
}

/// The letter of a message with its length and its body.
fn message(letter: u8, body: &[u8]) -> Vec<u8> {
    [&[letter], &u32::try_from(body.len() + 4).unwrap().to_be_bytes()[..], body].concat()
}

fn description(columns: &[(&str, u32)]) -> Vec<u8> {
    let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
    for (name, of) in columns {
        body.extend([name.as_bytes(), &[0; 7], &of.to_be_bytes()[..], &[0; 8]].concat());
    }
    message(b'T', &body)
}

/// A server that describes these columns for each query, and of which each type is a domain of the next one, without an
/// end. Returns its address, and how often it was asked for a type.
fn endless_server(columns: Vec<(String, u32)>, next: fn(u32) -> u32) -> (String, std::sync::Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://ada@{}/d", listener.local_addr().unwrap());
    let asked = std::sync::Arc::new(AtomicU32::new(0));
    let count = std::sync::Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = serve(&mut stream, &columns, next, &count);
        }
    });
    (url, asked)
}

fn serve(
    stream: &mut std::net::TcpStream,
    columns: &[(String, u32)],
    next: fn(u32) -> u32,
    asked: &AtomicU32,
) -> std::io::Result<()> {
    let mut read = |length: usize| -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).map(|()| bytes)
    };
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let begin = read(4)?;
    read(usize::try_from(number(&begin)).unwrap() - 4)?;
    let ready = message(b'Z', b"I");
    let mut answer = [message(b'R', &[0; 4]), ready.clone()].concat();
    let (mut is_type, mut wanted) = (false, Vec::new());
    loop {
        stream.write_all(&answer)?;
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let mut body = vec![0; usize::try_from(number(&head[1..])).unwrap() - 4];
        stream.read_exact(&mut body)?;
        answer = match head[0] {
            b'Q' => {
                let texts = String::from_utf8_lossy(&body).into_owned();
                let done = message(b'C', b"SET\0");
                [done.repeat(texts.split(';').count()), ready.clone()].concat()
            }
            b'P' => {
                is_type = String::from_utf8_lossy(&body).contains("pg_type");
                message(b'1', b"")
            }
            b'D' if is_type => {
                let parameters = message(b't', &[0, 1, 0, 0, 4, 4]);
                [parameters, description(&[("a", 26), ("b", 25), ("c", 25), ("d", 26), ("e", 26)])].concat()
            }
            b'D' => {
                let columns: Vec<(&str, u32)> = columns.iter().map(|(name, of)| (name.as_str(), *of)).collect();
                [message(b't', &[0, 0]), description(&columns)].concat()
            }
            b'B' => {
                // The array of numbers is the last value, before the formats of the result.
                wanted =
                    body[..body.len().saturating_sub(4)].chunks(1).rev().take(4).rev().flatten().copied().collect();
                message(b'2', b"")
            }
            b'E' if is_type => {
                asked.fetch_add(1, Ordering::SeqCst);
                let of = number(&wanted);
                let mut row = 5_u16.to_be_bytes().to_vec();
                for value in [&of.to_be_bytes()[..], b"own", b"d", &next(of).to_be_bytes(), &[0; 4]] {
                    row.extend([&u32::try_from(value.len()).unwrap().to_be_bytes()[..], value].concat());
                }
                [message(b'D', &row), message(b'C', b"SELECT 1\0")].concat()
            }
            b'E' => message(b'C', b"SELECT 0\0"),
            b'C' => message(b'3', b""),
            b'S' => ready.clone(),
            _ => return Ok(()),
        };
    }
}

#[test]
fn a_server_that_describes_types_and_columns_without_an_end_fails_the_call() {
    let domain = vec![("a".to_owned(), 70_000)];
    let many: Vec<(String, u32)> = (0..50_000).map(|_| ("a".to_owned(), 25)).collect();
    let own: fn(u32) -> u32 = |of| of;
    let other: fn(u32) -> u32 = |of| of + 1;
    for (columns, next, words, most) in [
        (domain.clone(), own, "a chain of more than 32", 1),
        (domain, other, "a chain of more than 32", 32),
        (many, own, "describes 50000 columns", 0),
    ] {
        let (url, asked) = endless_server(columns, next);
        let place = Place::new();
        place.actions(&[query("q", "SELECT 1 AS a", json!({}))], &json!({ "datasources": { "shop": { "url": url } } }));
        let entry = place.calls(&[think("q", json!({}))])[0].clone();
        assert!(entry.to_string().contains(words), "{entry:#}");
        assert!(asked.load(Ordering::SeqCst) <= most, "it was asked for a type {asked:?} times");
        let checked = place.call(&["check", "loop.json", "--connect", "--format", "json"]);
        assert!(checked.stdout.contains(words), "{checked:#?}");
    }
}

#[test]
fn what_a_result_takes_as_json_is_counted_before_it_is_made() {
    let series = "FROM generate_series(1, 400)";
    let actions = [
        query("number", &format!("SELECT 1e131000::numeric AS v {series}"), json!({})),
        query("array", &format!("SELECT ARRAY[1e131000::numeric, 2] AS v {series}"), json!({})),
        query("bits", &format!("SELECT repeat('1', 4000000)::varbit AS v {series}"), json!({})),
        query("signs", &format!("SELECT repeat(E'\\x01', 1000000) AS v {series}"), json!({})),
        query("bytes", &format!("SELECT decode(repeat('00', 4000000), 'hex') AS v {series}"), json!({})),
        query("written", &format!("SELECT 1e131000::numeric AS v {series}"), json!({ "read_only": false })),
        query(
            "exact",
            "SELECT repeat('9', 900)::numeric AS a, (repeat('7', 38) || '.5')::numeric AS b, -0.00::numeric(9, 2) AS c",
            json!({}),
        ),
    ];
    let Some(place) = place("size", "", &actions) else { return };
    for name in ["number", "array", "bits", "signs", "bytes", "written"] {
        assert_bounded(&place, name);
    }
    let exact = place.calls(&[think("exact", json!({}))])[0]["observation"]["rows"][0].clone();
    let expected = format!("{{\"a\":{},\"b\":{}.5,\"c\":0.00}}", "9".repeat(900), "7".repeat(38));
    assert_eq!(exact.to_string(), expected);
}

/// That the result of an action has at most about 10 MiB, of which the trace shows the beginning.
pub fn assert_bounded(place: &Place, name: &str) {
    let entry = place.calls(&[think(name, json!({}))])[0].clone();
    let shown = observed(&entry);
    let size = shown.rsplit_once(" characters of JSON are not shown").and_then(|(cut, _)| cut.rsplit(' ').next());
    let size: usize = size.and_then(|size| size.parse().ok()).unwrap_or_else(|| panic!("{name}: {}", entry["error"]));
    assert!(entry["success"] == true && (1_000_000..10_600_000).contains(&size), "{name}: {size} bytes");
}

#[test]
fn what_a_block_leaves_on_its_connection_is_gone_for_the_next_call() {
    let block = |name: &str, does: &str| {
        query(name, &format!("DO $$ BEGIN EXECUTE '{does}'; END $$"), json!({ "read_only": false }))
    };
    let actions = [
        block("prepare", "PREPARE left1 AS SELECT 1"),
        block("prepare_quoted", "PREPARE \"Left \"\"1\" AS SELECT 1"),
        block("listen", "LISTEN left2"),
        block("set", "SET work_mem = ''1MB''"),
        query("cursor", "DECLARE left3 CURSOR WITH HOLD FOR SELECT 1", json!({ "read_only": false })),
        query("lock", "SELECT pg_advisory_lock_shared(78)", json!({ "read_only": false })),
        query(
            "seen",
            "SELECT (SELECT count(*) FROM pg_prepared_statements WHERE from_sql) + (SELECT count(*) FROM pg_listening_channels()) \
             + (SELECT count(*) FROM pg_cursors WHERE name = 'left3') \
             + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 78) AS n, current_setting('work_mem') AS mem, \
             pg_backend_pid() AS pid",
            json!({}),
        ),
    ];
    let Some(place) = place("left over", "", &actions) else { return };
    let names = [
        "seen",
        "prepare",
        "seen",
        "prepare_quoted",
        "seen",
        "listen",
        "seen",
        "set",
        "seen",
        "cursor",
        "seen",
        "lock",
        "seen",
    ];
    let trace = place.calls(&names.map(|name| think(name, json!({}))));
    let first = trace[0]["observation"]["rows"][0].clone();
    assert_eq!(first["n"], 0);
    for (name, entry) in names.iter().zip(&trace) {
        assert_eq!(entry["success"], true, "{name}: {entry:#}");
        if *name == "seen" {
            assert_eq!(entry["observation"]["rows"][0], first, "it is the same connection, and has nothing left");
        }
    }
}

/// A workflow whose items each call this action, `nap`.
pub fn naps(place: &Place, nap: &Value, items: usize) -> Value {
    place.json("actions/all.json", &json!([nap]));
    place.json(
        "w.json",
        &json!({
            "name": "w",
            "input": { "type": "object", "properties": { "l": { "type": "array" } }, "required": [] },
            "definition": {
                "actions": [{
                    "id": "each",
                    "type": "loop",
                    "properties": {
                        "mode": "foreach",
                        "items_path": "@input.l",
                        "item_variable_name": "x",
                        "actions_to_execute": [{ "type": "nap", "properties": {} }],
                        "max_concurrency": 30,
                        "failure_strategy": "continue_on_error",
                        "summary_key": "s",
                    },
                }],
                "output": "@s",
            },
        }),
    );
    place.json("in.json", &json!({ "l": (0..items).collect::<Vec<_>>() }));
    let ran = place.call(&["run", "w.json", "--input-file", "in.json", "--output", "json"]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:#?}"))
}

#[test]
fn the_time_of_a_query_begins_when_there_is_a_connection_for_it() {
    let nap = query("nap", "SELECT pg_sleep(0.4)", json!({ "timeout_ms": 1200 }));
    let late = query("late", "SELECT pg_sleep(600)", json!({ "timeout_ms": 200 }));
    let Some(place) = place("waiting", "", &[nap.clone(), late]) else { return };
    let entry = place.calls(&[think("late", json!({}))])[0].clone();
    assert!(observed(&entry).contains("timed out"), "{entry:#}");
    let ended = naps(&place, &nap, 30);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert!(!ended.to_string().contains("timed out"), "{ended:#}");
    // As many at once as the datasource says.
    let mut project: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    project["datasources"]["shop"]["connections"] = json!(1);
    place.json("loopctl.json", &project);
    let ended = naps(&place, &nap, 4);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert!(!ended.to_string().contains("timed out"), "{ended:#}");
    project["datasources"]["shop"]["connections"] = json!(0);
    place.json("loopctl.json", &project);
    assert!(
        place.call(&["check", "w.json"]).stderr.contains("`connections` must be from 1 to 1000"),
        "{:#?}",
        place.call(&["check", "w.json"])
    );
}
