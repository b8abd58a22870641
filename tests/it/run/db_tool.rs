//! The `db` tool: what a statement may do, and that values are values.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::{Place, observed, think, with};

const INIT: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n NUMERIC);\n\
                    INSERT INTO t (name, n) VALUES ('one', 1), ('two', 2), ('three', 3);\n";

fn query(name: &str, sql: &str, more: Value) -> Value {
    let action =
        json!({ "action_name": name, "kind": "db", "description": "Asks.", "datasource": "shop", "query": sql });
    with(action, more)
}

fn place(actions: &[Value]) -> Place {
    let place = Place::new();
    place.file("init.sql", INIT);
    place.file("other.db", "");
    place.actions(actions, &json!({ "datasources": { "shop": { "url": "sqlite:shop.db", "init": "init.sql" } } }));
    place
}

fn plain(name: &str) -> Value {
    think(name, json!({}))
}

fn count(place: &Place) -> i64 {
    let database = Connection::open(place.path().join("shop.db")).expect("it was made");
    database.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).expect("a row")
}

#[test]
fn a_database_that_is_read_refuses_what_writes_and_takes_it_when_it_may() {
    let plain_writes = [
        "DELETE FROM t",
        "INSERT INTO t (name) VALUES ('x')",
        "UPDATE t SET name = 'x'",
        "DROP TABLE t",
        "CREATE TABLE u (a)",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "INSERT INTO t (name) VALUES ('x') RETURNING id",
        "REPLACE INTO t (id) VALUES (1)",
    ];
    for sql in plain_writes {
        let message = self::place(&[query("q", sql, json!({}))]).refused();
        assert!(message.contains("L113"), "{sql}: {message}");
    }
    // What can't be seen in the text is refused by the database.
    let writes = ["PRAGMA user_version = 7", "VACUUM", "REINDEX", "PRAGMA journal_mode = DELETE"];
    let name = |at: usize| format!("q{at}");
    let mut actions: Vec<Value> = writes.iter().enumerate().map(|(at, sql)| query(&name(at), sql, json!({}))).collect();
    actions.push(query("read", "SELECT * FROM t ORDER BY id", json!({})));
    let place = place(&actions);
    let mut calls: Vec<Value> = vec![plain("read")];
    calls.extend((0..writes.len()).map(|at| plain(&name(at))));
    calls.push(plain("read"));
    let trace = place.calls(&calls);
    for (sql, entry) in writes.iter().zip(&trace[1..]) {
        let harmless = sql.starts_with("PRAGMA journal_mode") || sql.starts_with("REINDEX");
        let observation = observed(entry);
        assert!(
            harmless || observation.contains("read only") || observation.contains("not allowed"),
            "{sql}: {entry:#}"
        );
    }
    assert_eq!(trace[0]["observation"], trace[writes.len() + 1]["observation"]);
    assert_eq!(trace[0]["observation"]["row_count"], 3);
    assert_eq!(count(&place), 3);
    // With the guard off, the same statement writes.
    let place = self::place(&[query("write", plain_writes[0], json!({ "read_only": false }))]);
    let trace = place.calls(&[plain("write")]);
    assert_eq!((&trace[0]["observation"], count(&place)), (&json!({ "changes": 3 }), 0));
}

#[test]
fn a_statement_stays_in_its_file_and_alone() {
    let cases = [
        ("ATTACH DATABASE 'other.db' AS o", "not allowed"),
        ("ATTACH 'file:other.db?mode=rwc' AS o", "not allowed"),
        ("DETACH DATABASE main", "not allowed"),
        ("SELECT load_extension('x')", "error in the query"),
        ("SELECT 1; DELETE FROM t", "more than one statement"),
        ("SELECT 1; SELECT 2", "more than one statement"),
        ("DELETE FROM t WHERE id = 1; DELETE FROM t", "more than one statement"),
        ("SELECT readfile('/etc/passwd')", "error in the query"),
        ("SELECT writefile('x', 'y')", "error in the query"),
        ("VACUUM INTO 'copy.db'", "not allowed"),
    ];
    let name = |at: usize| format!("q{at}");
    let actions: Vec<Value> =
        cases.iter().enumerate().map(|(at, (sql, _))| query(&name(at), sql, json!({ "read_only": false }))).collect();
    let place = place(&actions);
    let found = place.refused();
    assert!(found.matches("error[L180]").count() >= cases.len() - 1, "{found}");
    // A database that another program is writing to is not read by `check`: now the driver alone refuses.
    let writer = Connection::open(place.path().join("shop.db")).expect("it opens");
    writer.execute_batch(&format!("PRAGMA journal_mode = WAL; {INIT}")).expect("it is written");
    let calls: Vec<Value> = (0..cases.len()).map(|at| plain(&name(at))).collect();
    let trace = place.calls(&calls);
    drop(writer);
    for ((sql, word), entry) in cases.iter().zip(&trace) {
        assert_eq!(entry["success"], false, "{sql}: {entry:#}");
        assert!(observed(entry).contains(word), "{sql}: {entry:#}");
    }
    assert_eq!(count(&place), 3);
    let files: Vec<_> = place.files().into_iter().map(|(path, _)| path).collect();
    assert!(!files.iter().any(|path| path.ends_with("copy.db") || path.ends_with("x")), "{files:?}");
    assert_eq!(std::fs::read(place.path().join("other.db")).expect("it is there"), b"");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_database_is_not_opened() {
    let place = place(&[query("q", "SELECT 1", json!({}))]);
    let pipe = place.path().join("shop.db");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let trace = place.calls(&[plain("q")]);
    let detail = trace[0]["error"]["detail"].to_string();
    assert!(detail.contains("is no regular file"), "{:#}", trace[0]);
}

const INJECTIONS: [&str; 8] = [
    "one' OR '1'='1",
    "one'; DELETE FROM t; --",
    "' UNION SELECT id, name, n FROM t --",
    "\" OR 1=1 --",
    "one\\' OR 1=1",
    "$1 :name ?1 @name",
    "{{name}} @name orgconfig:key",
    "%",
];

#[test]
fn what_is_bound_is_data() {
    let by_place = query("place", "SELECT id FROM t WHERE name = $1", json!({ "params": ["{{name}}"] }));
    let by_name = query("name", "SELECT id FROM t WHERE name = :name", json!({}));
    let echo = query("echo", "SELECT $1 AS said", json!({ "params": ["@name"] }));
    let place = place(&[by_place, by_name, echo]);
    let mut calls = Vec::new();
    for text in INJECTIONS {
        calls.extend(["place", "name", "echo"].map(|tool| think(tool, json!({ "name": text }))));
    }
    calls.push(think("name", json!({ "name": "one" })));
    let trace = place.calls(&calls);
    for (text, entries) in INJECTIONS.iter().zip(trace.chunks(3)) {
        assert_eq!(entries[0]["observation"]["row_count"], 0, "{text}");
        assert_eq!(entries[1]["observation"]["row_count"], 0, "{text}");
        assert_eq!(entries[2]["observation"]["rows"][0]["said"], *text);
    }
    assert_eq!(trace[INJECTIONS.len() * 3]["observation"]["rows"], json!([{ "id": 1 }]));
    assert_eq!(count(&place), 3);
    // Written into the statement, the first one finds every row.
    let database = Connection::open(place.path().join("shop.db")).expect("it was made");
    let sql = format!("SELECT count(*) FROM t WHERE name = '{}'", INJECTIONS[0]);
    let found: i64 = database.query_row(&sql, [], |row| row.get(0)).expect("a row");
    assert_eq!(found, 3);
}

#[test]
fn a_number_in_a_query_takes_a_value_that_a_bare_mark_takes_too() {
    let sql = "SELECT id FROM t WHERE id > ? AND (? IS NULL OR name LIKE '%' || ?2 || '%')";
    let place = place(&[query("both", sql, json!({ "params": ["@least", "@part"] }))]);
    let trace = place.calls(&[
        think("both", json!({ "least": 0, "part": "one" })),
        think("both", json!({ "least": 1, "part": null })),
    ]);
    assert_eq!(trace[0]["observation"]["rows"], json!([{ "id": 1 }]));
    assert_eq!(trace[1]["observation"]["rows"], json!([{ "id": 2 }, { "id": 3 }]));
}

#[test]
fn a_number_comes_back_as_it_was_given_or_is_refused() {
    let echo = query("echo", "SELECT $1 AS n", json!({ "params": ["@n"] }));
    let place = place(&[echo]);
    let kept = ["9007199254740993", "-9223372036854775808", "0.1", "7", "1.5", "-0.25"];
    let refused = ["12345678901234567890123", "9223372036854775808", "0.12345678901234567890123", "1E400"];
    let call = |digits: &str| json!(format!(r#"{{"thought":"t","action":"echo","action_input":{{"n":{digits}}}}}"#));
    let calls: Vec<Value> = kept.iter().chain(&refused).map(|digits| call(digits)).collect();
    let trace = place.calls(&calls);
    for (digits, entry) in kept.iter().zip(&trace) {
        assert_eq!(entry["observation"]["rows"][0]["n"].to_string(), *digits);
    }
    for (digits, entry) in refused.iter().zip(&trace[kept.len()..]) {
        assert_eq!(entry["success"], false, "{digits}: {entry:#}");
        assert!(observed(entry).contains("can't be kept"), "{digits}: {entry:#}");
    }
}

#[test]
fn a_datasource_that_is_not_there_or_no_database_is_said_to_be_so() {
    let place = Place::new();
    place.file("noise.db", "this is no database, but a text that is long enough to be looked at as if it were one");
    let project = json!({ "datasources": {
        "gone": { "url": "sqlite:gone.db" },
        "noise": { "url": "sqlite:noise.db" },
        "wrong": { "url": "sqlite:wrong.db", "init": "missing.sql" } } });
    let names = ["gone", "noise", "wrong"];
    let actions: Vec<Value> =
        names.iter().map(|name| query(name, "SELECT * FROM t", json!({ "datasource": name }))).collect();
    place.actions(&actions, &project);
    let trace = place.calls(&names.map(plain));
    for (name, entry) in names.iter().zip(&trace) {
        assert_eq!(entry["success"], false, "{name}: {entry:#}");
        assert!(observed(entry).contains("database: "), "{name}: {entry:#}");
        assert!(!entry.to_string().contains("geheimes"), "{entry:#}");
    }
    assert!(!place.path().join("gone.db").exists());
    let other = json!({ "datasources": { "other": { "url": "postgres://user:geheimes@db.example.com/x" } } });
    place.actions(&[query("q", "SELECT 1", json!({ "datasource": "other" }))], &other);
    assert!(place.refused().contains("L079"));
    // A name that no project has.
    place.actions(&[query("q", "SELECT 1", json!({ "datasource": "shpo" }))], &project);
    place.json("script.json", &json!({ "replies": [plain("q"), crate::common::complete(json!("x"))] }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "json", "--store", "memory"]);
    let output = format!("{}{}", ran.stdout, ran.stderr);
    assert!(output.contains("shpo") && [0, 2].contains(&ran.code), "{ran:#?}");
}

#[test]
fn a_database_is_made_from_its_script_once() {
    let add = query("add", "INSERT INTO t (name) VALUES (:name)", json!({ "read_only": false }));
    let place = place(&[add]);
    for at in 1..=3 {
        let trace = place.calls(&[think("add", json!({ "name": "x" }))]);
        assert_eq!(trace[0]["observation"], json!({ "changes": 1, "last_insert_rowid": 3 + at }));
    }
    assert_eq!(count(&place), 6);
}

#[test]
fn many_at_once_make_one_database() {
    let place = place(&[query("add", "INSERT INTO t (name) VALUES ('x')", json!({ "read_only": false }))]);
    place.json("script.json", &json!({ "replies": [plain("add"), crate::common::complete(json!("x"))] }));
    let args = ["run", "loop.json", "--script", "script.json", "--store", "memory"];
    let children: Vec<_> = (0..8).map(|_| place.start(&args, &[])).collect();
    for child in children {
        let ran = crate::common::ran(&child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    assert_eq!(count(&place), 11);
    let scraps = place.files().into_iter().filter(|(path, _)| path.to_string_lossy().ends_with(".new")).count();
    assert_eq!(scraps, 0);
}

#[test]
fn a_query_without_end_is_stopped_at_its_deadline_and_a_large_result_is_cut() {
    let counting = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)";
    let place = place(&[
        query("endless", &format!("{counting} SELECT count(*) FROM c"), json!({ "timeout_ms": 100 })),
        query("many", &format!("{counting} SELECT n FROM c LIMIT 5000"), json!({})),
    ]);
    let trace = place.calls(&[plain("endless"), plain("many")]);
    assert!(observed(&trace[0]).contains("timed out"), "{:#}", trace[0]);
    let many = observed(&trace[1]);
    assert!(many.len() < 15_000 && many.contains("\"n\":1}"), "{many:.300}");
}

#[test]
fn a_script_of_many_statements_takes_a_time_that_grows_with_their_number() {
    let place = Place::new();
    let mut script = "CREATE TABLE t (a INTEGER, b TEXT);\n".to_owned();
    for row in 0..100_000 {
        script.push_str(&format!("INSERT INTO t VALUES ({row}, 'a row of the table with the number {row}');\n"));
    }
    place.file("many.sql", &script);
    place.json("loopctl.json", &json!({ "datasources": { "d": { "url": "sqlite:d.db", "init": "many.sql" } } }));
    let count = json!({ "action_name": "count", "kind": "db", "description": "Counts.", "datasource": "d",
        "query": "SELECT count(*) AS n FROM t", "parameters": { "type": "object" } });
    place.json("actions/all.json", &json!([count]));
    let step = json!({ "type": "count", "id": "count", "properties": {} });
    place.json(
        "w.json",
        &json!({ "name": "w", "definition": { "actions": [step], "output": { "rows": "@count.rows" } } }),
    );
    // A call has thirty seconds; with a copy of the rest of the script for each statement it takes longer.
    let ran = place.call(&["run", "w.json", "--output", "json", "--store", "memory"]);
    assert_eq!(ran.json()["result"]["answer"]["rows"], json!([{ "n": 100_000 }]), "{ran:#?}");
    // What is wrong is still named.
    place.file("many.sql", "CREATE TABLE t (a INTEGER);\nINSERT INTO none VALUES (1);\n");
    std::fs::remove_file(place.path().join("d.db")).expect("it is there");
    let ran = place.call(&["run", "w.json", "--store", "memory"]);
    assert!(ran.code == 2 && ran.stderr.contains("no such table: none"), "{ran:#?}");
    assert!(!ran.stderr.contains('\0') && !ran.stderr.contains("\\0"), "{ran:#?}");
}
