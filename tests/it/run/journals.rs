//! R6: stores of older versions are read, shown and resumed. `tests/journals/VERSION.sql` is such a store
//! as text: runs of every kind of event, finished, paused, and cut off.
//!
//! The store of a version is written once, before it is released, and never changed after:
//! `cargo test --test it run::journals -- --ignored` writes the file of the present version if there is none.
#![cfg(all(unix, debug_assertions))]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Value, json};

use crate::common::{Place, complete, document, look, think};

/// The kinds of events of version 0.1.0.
const KINDS: [&str; 10] = [
    "started",
    "model_replied",
    "model_failed",
    "tool_returned",
    "deadline_passed",
    "human",
    "resumed",
    "interrupted",
    "cancelled",
    "new_document",
];

/// The runs of each store, with their status.
const RUNS: [(&str, &str); 9] = [
    ("finished", "completed"),
    ("paused", "paused"),
    ("cut-off", "running"),
    ("cancelled", "cancelled"),
    ("out-of-time", "failed"),
    ("no-model", "failed"),
    ("interrupted", "cancelled"),
    ("decided", "completed"),
    ("new-document", "completed"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals")
}

fn ask() -> Value {
    think("__pause_for_human__", json!({ "question": "Go on?" }))
}

fn act() -> Value {
    think("act", json!({ "what": "x" }))
}

/// Makes the runs, each by a document and a script of its own.
struct Maker {
    place: Place,
}

impl Maker {
    fn script(&self, name: &str, properties: &Value, replies: &[Value]) {
        self.place.json(&format!("{name}.json"), &document(properties));
        let tools = json!({ "look": [{ "seen": 12345678901234567890123_u128 }], "act": [{ "done": true }] });
        self.place.json(&format!("{name}.script.json"), &json!({ "replies": replies, "tools": tools }));
    }

    fn call(&self, args: &[&str], fail: &str) -> Option<i32> {
        let mut command = self.place.command(args);
        command.env("LOOPCTL_FAIL", fail).output().expect("it starts").status.code()
    }

    fn run(&self, name: &str, fail: &str) -> Option<i32> {
        let (file, script) = (format!("{name}.json"), format!("{name}.script.json"));
        self.call(&["run", &file, "--run-id", name, "--script", &script], fail)
    }

    fn resume(&self, name: &str, how: &[&str], fail: &str) -> Option<i32> {
        let script = format!("{name}.script.json");
        self.call(&[&["resume", name, "--script", &script], how].concat(), fail)
    }

    fn all(&self) {
        self.script("finished", &json!({}), &[look("a"), complete(json!({ "all": 1.50 }))]);
        assert_eq!(self.run("finished", ""), Some(0));
        self.script("paused", &json!({}), &[look("a"), ask(), complete(json!("done"))]);
        assert_eq!(self.run("paused", ""), Some(3));
        self.script("cut-off", &json!({}), &[look("a"), look("b"), complete(json!("done"))]);
        assert_eq!(self.run("cut-off", "journal:3:after-sync"), None);
        self.script("cancelled", &json!({}), &[ask()]);
        assert_eq!((self.run("cancelled", ""), self.call(&["cancel", "cancelled"], "")), (Some(3), Some(0)));
        let slow = json!({ "delay_ms": 600_000, "text": look("a") });
        self.script("out-of-time", &json!({ "timeout_ms": 20 }), std::slice::from_ref(&slow));
        assert_eq!(self.run("out-of-time", ""), Some(1));
        self.script("no-model", &json!({}), &[look("a")]);
        assert_eq!(self.run("no-model", ""), Some(1));
        self.interrupted(slow);
        self.decided();
        self.script("new-document", &json!({}), &[ask(), complete(json!("done"))]);
        assert_eq!(self.run("new-document", ""), Some(3));
        self.place.json("new-document.json", &document(&json!({ "max_iterations": 9 })));
        assert_eq!(self.resume("new-document", &["--answer", "yes", "--new-document"], ""), Some(0));
    }

    fn interrupted(&self, slow: Value) {
        use nix::sys::signal::{Signal, kill};
        self.script("interrupted", &json!({}), &[look("b"), slow]);
        let args = ["run", "interrupted.json", "--run-id", "interrupted", "--script", "interrupted.script.json"];
        let mut child = self.place.start(&args, &[]);
        let rest = crate::run::signals::wait_for_line(&mut child, "seen");
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
        while child.try_wait().expect("it is there").is_none() {
            let _ = kill(pid, Signal::SIGINT);
            crate::common::wait_poll_interval();
        }
        rest.join().expect("it ends");
        self.script("interrupted", &json!({}), &[look("b"), complete(json!("done"))]);
    }

    fn decided(&self) {
        let tools = json!([{ "type": "action", "name": "look" },
            { "type": "action", "name": "act", "requires_approval": true }]);
        let properties = json!({ "tools": tools, "on_stuck": { "iterations": 9 } });
        self.script("decided", &properties, &[act(), act(), act(), ask(), complete(json!("done"))]);
        assert_eq!(self.run("decided", ""), Some(3));
        assert_eq!(self.resume("decided", &["--deny", "--reason", "no"], ""), Some(3));
        assert_eq!(self.resume("decided", &["--edit", r#"{"what":"y"}"#], "journal:0:after-sync"), None);
        assert_eq!(self.resume("decided", &[], ""), Some(3));
        assert_eq!(self.resume("decided", &["--happened", "1"], ""), Some(3));
        assert_eq!(self.resume("decided", &["--approve"], "journal:0:after-sync"), None);
        assert_eq!(self.resume("decided", &[], ""), Some(3));
        assert_eq!(self.resume("decided", &["--retry"], ""), Some(3));
        assert_eq!(self.resume("decided", &["--answer", "yes"], ""), Some(0));
    }
}

/// A store as text: its tables with their rows. What belongs to living drivers is left out.
fn dumped(store: &Connection) -> String {
    let number = |sql: &str| store.query_row(sql, (), |row| row.get::<_, i64>(0)).expect("a number");
    let mut text = format!(
        "-- A store of loopctl {}. Written by tests/it/run/journals.rs.\nPRAGMA application_id = {};\nPRAGMA user_version = {};\n",
        env!("CARGO_PKG_VERSION"),
        number("PRAGMA application_id"),
        number("PRAGMA user_version")
    );
    let mut query =
        store.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").expect("a query");
    for sql in query.query_map((), |row| row.get::<_, String>(0)).expect("it reads") {
        let _ = writeln!(text, "{};", sql.expect("a text"));
    }
    let mut names =
        store.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'drivers'").expect("a query");
    for name in names.query_map((), |row| row.get::<_, String>(0)).expect("it reads") {
        let name = name.expect("a name");
        let mut query = store.prepare(&format!("SELECT * FROM {name}")).expect("a query");
        let columns = query.column_count();
        let mut rows = query.query(()).expect("it reads");
        while let Some(row) = rows.next().expect("a row") {
            let value = |at| match row.get_ref(at).expect("a value") {
                ValueRef::Null => "NULL".to_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Text(text) => format!("'{}'", String::from_utf8_lossy(text).replace('\'', "''")),
                other => panic!("{other:?} in {name}"),
            };
            let values: Vec<String> = (0..columns).map(value).collect();
            let _ = writeln!(text, "INSERT INTO {name} VALUES ({});", values.join(", "));
        }
    }
    text
}

#[test]
#[ignore = "writes the store of a version that is about to be released"]
fn the_store_of_this_version_is_written() {
    let file = folder().join(format!("{}.sql", env!("CARGO_PKG_VERSION")));
    if file.exists() {
        return;
    }
    let maker = Maker { place: Place::new() };
    maker.all();
    let store = Connection::open(maker.place.path().join(".loopctl/runs.db")).expect("a store");
    std::fs::create_dir_all(folder()).expect("a folder");
    std::fs::write(file, dumped(&store)).expect("it is written");
}

/// A place with the store of that file, and the documents that its runs began with or went on with.
fn restored(sql: &str) -> (Place, BTreeSet<String>) {
    let place = Place::new();
    place.file(".loopctl/none", "");
    let store = Connection::open(place.path().join(".loopctl/runs.db")).expect("a store");
    store.execute_batch(&format!("BEGIN; {sql} COMMIT;")).expect("SQL");
    let mut query = store.prepare("SELECT event FROM events ORDER BY run, seq").expect("a query");
    let mut kinds = BTreeSet::new();
    for event in query.query_map((), |row| row.get::<_, String>(0)).expect("it reads") {
        let event: Value = serde_json::from_str(&event.expect("a text")).expect("JSON");
        let what = &event["what"];
        kinds.insert(what.as_str().map_or_else(
            || what.as_object().expect("an event").keys().next().cloned().expect("a kind"),
            str::to_owned,
        ));
        let documents = [&what["started"]["documents"], &what["new_document"]];
        for document in documents.into_iter().filter_map(Value::as_array).flatten() {
            let name = Path::new(document["file"].as_str().expect("a name")).file_name().expect("a name");
            let text =
                store.query_row("SELECT text FROM texts WHERE digest = ?1", [document["text"].as_str()], |row| {
                    row.get::<_, String>(0)
                });
            place.file(name.to_str().expect("a name"), text.expect("a text"));
        }
    }
    (place, kinds)
}

#[test]
fn stores_of_every_version_are_read_shown_and_resumed() {
    let mut files = 0;
    for entry in std::fs::read_dir(folder()).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let sql = std::fs::read_to_string(&path).expect("it reads");
        let (place, kinds) = restored(&sql);
        assert!(KINDS.iter().all(|kind| kinds.contains(*kind)), "{}: {kinds:?}", path.display());
        let listed = place.call(&["runs", "--output", "json"]);
        for (run, status) in RUNS {
            assert!(listed.stdout.contains(run), "{}: {listed:#?}", path.display());
            for format in ["text", "json", "html"] {
                let shown = place.call(&["trace", run, "--format", format]);
                assert_eq!(shown.code, 0, "{run}: {shown:#?}");
            }
            let shown = place.call(&["trace", run, "--format", "json"]).json();
            assert_eq!(shown["status"], status, "{run}");
        }
        place.json(
            "script.json",
            &json!({ "replies": [look("a"), look("b"), complete(json!("done"))],
            "tools": { "look": [1], "act": [1] } }),
        );
        for (run, how) in [("paused", &["--answer", "yes"][..]), ("cut-off", &[]), ("interrupted", &[])] {
            let resumed = place.call(&[&["resume", run, "--script", "script.json", "--output", "json"], how].concat());
            assert_eq!((resumed.code, &resumed.json()["result"]["answer"]), (0, &json!("done")), "{run}: {resumed:#?}");
        }
        for run in ["finished", "cancelled", "out-of-time", "decided"] {
            let refused = place.call(&["resume", run, "--script", "script.json", "--answer", "yes"]);
            assert_eq!(refused.code, 2, "{run}: {refused:#?}");
        }
        files += 1;
    }
    assert!(files >= 1, "no store was read");
}
