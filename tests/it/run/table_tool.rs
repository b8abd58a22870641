//! The `custom-table` tool: an agent reads and writes rows of tables that its action names.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::{Place, observed, think, with};

const INIT: &str = "CREATE TABLE notes (id INTEGER PRIMARY KEY, ref TEXT, \"select\" TEXT, amount NUMERIC CHECK (amount < 1000));\n\
                    CREATE TABLE secrets (key TEXT);\n\
                    INSERT INTO notes (ref, amount) VALUES ('A', 1), ('B', 2), (NULL, 3);\n";

fn place(more: Value) -> Place {
    let action = json!({ "action_name": "rows", "kind": "custom-table", "description": "Rows.", "tables": ["notes"] });
    let place = Place::new();
    place.file("init.sql", INIT);
    place.actions(
        &[with(action, more)],
        &json!({ "datasources": { "tables": { "url": "sqlite:tables.db", "init": "init.sql" } } }),
    );
    place
}

fn writing() -> Place {
    place(json!({ "read_only": false }))
}

fn rows(operation: &str, more: Value) -> Value {
    think("rows", with(json!({ "table": "notes", "operation": operation }), more))
}

fn stored(place: &Place, sql: &str) -> Vec<String> {
    let database = Connection::open(place.path().join("tables.db")).expect("it was made");
    let mut statement = database.prepare(sql).expect("it is SQL");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("texts")
}

#[test]
fn an_agent_reads_writes_updates_and_upserts_rows() {
    let place = writing();
    let trace = place.calls(&[
        rows("read", json!({ "keys": ["REF"], "values": ["A"] })),
        rows("write", json!({ "fields": { "ref": "C", "select": "x'; DROP TABLE notes; --", "amount": 4.5 } })),
        rows("update", json!({ "keys": ["ref"], "values": ["B"], "fields": { "amount": 20, "ref": "b" } })),
        rows("upsert", json!({ "keys": ["ref"], "values": ["D"], "fields": { "amount": 5 } })),
        rows("upsert", json!({ "keys": ["ref"], "values": ["D"], "fields": { "amount": 6 } })),
        rows("upsert", json!({ "keys": ["ref"], "values": ["D"] })),
        rows("update", json!({ "keys": ["ref"], "values": [null], "fields": { "select": "none" } })),
        rows("read", json!({ "fields": { "select": "none" } })),
        rows("read", json!({ "keys": ["ref"], "values": ["nobody"] })),
    ]);
    let read = |id: i64, reference: Value, select: Value, amount: i64| {
        let row = json!({ "id": id, "ref": reference, "select": select, "amount": amount });
        json!({ "rows": [row], "row_count": 1 })
    };
    let expected = [
        read(1, json!("A"), Value::Null, 1),
        json!({ "changes": 1, "last_insert_rowid": 4 }),
        json!({ "changes": 1 }),
        json!({ "changes": 1 }),
        json!({ "changes": 1 }),
        json!({ "changes": 0 }),
        json!({ "changes": 1 }),
        read(3, Value::Null, json!("none"), 3),
        json!({ "rows": [], "row_count": 0 }),
    ];
    for (entry, expected) in trace.iter().zip(&expected) {
        assert_eq!(&entry["observation"], expected, "{entry:#}");
    }
    let all = stored(&place, "SELECT ifnull(ref, '-') || ' ' || amount FROM notes ORDER BY id");
    assert_eq!(all, ["A 1", "b 20", "- 3", "C 4.5", "D 6"]);
    assert_eq!(stored(&place, "SELECT \"select\" FROM notes WHERE ref = 'C'"), ["x'; DROP TABLE notes; --"]);
}

#[test]
fn wrong_input_is_refused_with_what_is_wrong_and_nothing_is_written() {
    let place = place(json!({ "read_only": false, "tables": ["notes", "notse", "gone"] }));
    let calls = [
        (think("rows", json!({ "table": "secrets", "operation": "read" })), "table"),
        (think("rows", json!({ "table": "gone", "operation": "read" })), "no table `gone`"),
        (
            think("rows", json!({ "table": "notse", "operation": "read" })),
            "no table `notse`; the nearest one is `notes`",
        ),
        (rows("drop", json!({})), "operation"),
        (rows("read", json!({ "keys": ["reff"], "values": [1] })), "no column `reff`; the nearest one is `ref`"),
        (rows("read", json!({ "keys": ["1=1 OR ref"], "values": [1] })), "no column `1=1 OR ref`"),
        (rows("read", json!({ "keys": ["ref"] })), "1 columns, and `values` has 0"),
        (rows("read", json!({ "keys": ["ref", "REF"], "values": [1, 2] })), "`ref` is named twice"),
        (rows("write", json!({})), "`write` needs `fields`"),
        (rows("write", json!({ "keys": ["ref"], "values": [1], "fields": { "ref": 2 } })), "in `keys` and in `fields`"),
        (rows("write", json!({ "fields": { "amount": 5000 } })), "check constraint failed"),
        (rows("update", json!({ "fields": { "ref": "x" } })), "which rows it changes"),
        (rows("upsert", json!({ "fields": { "ref": "x" } })), "which row it changes"),
        (
            rows("upsert", json!({ "keys": ["ref"], "values": ["Z"], "fields": { "amount": 5000 } })),
            "check constraint failed",
        ),
    ];
    // What a probe of the database finds is a warning here: `check` can't read one that is being written to.
    let writer = Connection::open(place.path().join("tables.db")).expect("it opens");
    writer.execute_batch(&format!("PRAGMA journal_mode = WAL; {INIT}")).expect("it is written");
    let trace = place.calls(&calls.iter().map(|(call, _)| call.clone()).collect::<Vec<_>>());
    drop(writer);
    for ((call, word), entry) in calls.iter().zip(&trace) {
        assert_eq!(entry["success"], false, "{call}: {entry:#}");
        assert!(observed(entry).contains(word), "{call}: {entry:#}");
        assert!(!observed(entry).contains("secrets") || *word == "table", "{entry:#}");
    }
    assert_eq!(stored(&place, "SELECT ifnull(ref, '-') FROM notes ORDER BY id"), ["A", "B", "-"]);
}

#[test]
fn a_value_is_in_a_column_what_it_was_and_a_text_that_is_no_number_finds_none() {
    let place = writing();
    let init = "CREATE TABLE notes (id INTEGER PRIMARY KEY, ref TEXT, amount NUMERIC, rate REAL, due DATE, raw);\n\
                INSERT INTO notes (id, ref, amount) VALUES (7, '7', 1);\n";
    place.file("init.sql", init);
    let update = |column: &str, key: Value| {
        rows("update", json!({ "keys": [column], "values": [key], "fields": { "amount": 2 } }))
    };
    let write = |column: &str, value: Value| rows("write", json!({ "fields": { column: value } }));
    let long: Value = serde_json::from_str("9007199254740993").expect("a number");
    let refused = [
        update("id", json!("007")),
        update("id", json!(" 7 ")),
        update("id", json!("+7")),
        write("amount", json!(".5")),
        write("amount", json!("n/a")),
        write("amount", json!("1234567890123456.78")),
        write("amount", json!("00123456789012345678")),
        write("rate", json!("12345678901234567890.12")),
        write("rate", long.clone()),
    ];
    let taken = [
        update("id", json!("7")),
        update("id", json!("7.0")),
        update("ref", json!(7.0)),
        write("amount", json!("12.50")),
        write("amount", long),
        write("due", json!("2026-12-31")),
        write("raw", json!("007")),
        rows("upsert", json!({ "keys": ["ref"], "values": [70e-1], "fields": { "amount": 3 } })),
    ];
    let trace = place.calls(&refused.iter().chain(&taken).cloned().collect::<Vec<_>>());
    for entry in &trace[..refused.len()] {
        assert!(observed(entry).contains("can't be kept") && entry["success"] == false, "{entry:#}");
    }
    for entry in &trace[refused.len()..refused.len() + taken.len()] {
        assert_eq!(entry["observation"]["changes"], 1, "{entry:#}");
    }
    let all = stored(&place, "SELECT concat_ws(' ', ref, amount, rate, due, raw) FROM notes ORDER BY id");
    assert_eq!(all, ["7 3", "12.5", "9007199254740993", "2026-12-31", "007"]);
}

#[test]
fn an_action_writes_only_when_it_says_so() {
    let place = place(json!({}));
    let calls = [
        rows("write", json!({ "fields": { "ref": "x" } })),
        rows("upsert", json!({ "keys": ["ref"], "values": ["x"] })),
        rows("read", json!({})),
    ];
    let trace = place.calls(&calls);
    assert!(observed(&trace[0]).contains("operation") && trace[0]["success"] == false, "{:#}", trace[0]);
    assert!(observed(&trace[1]).contains("operation") && trace[1]["success"] == false, "{:#}", trace[1]);
    assert_eq!(trace[2]["observation"]["row_count"], 3);
    // A schema of the author's that takes every operation opens nothing.
    let place = self::place(json!({ "parameters": { "type": "object" } }));
    let trace = place.calls(&calls);
    assert!(observed(&trace[0]).contains("this tool only reads"), "{:#}", trace[0]);
    let other = place.calls(&[think("rows", json!({ "table": "secrets", "operation": "read" }))]);
    assert!(observed(&other[0]).contains("this tool has no table `secrets`"), "{:#}", other[0]);
    assert_eq!(stored(&place, "SELECT count(*) || '' FROM notes"), ["3"]);
}

#[test]
fn a_result_is_bounded() {
    let place = place(json!({ "read_only": false, "tables": ["notes", "ones"] }));
    let many = "INSERT INTO notes (ref) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) \
                SELECT 'n' || i FROM n; CREATE VIEW ones AS SELECT 1 AS a FROM notes;";
    place.file("init.sql", format!("{INIT}{many}"));
    let read = think("rows", json!({ "table": "ones", "operation": "read" }));
    let observation = &place.calls(&[read])[0]["observation"];
    assert_eq!((&observation["row_count"], &observation["truncated"]), (&json!(1000), &json!(true)), "{observation}");
    let updated =
        place.calls(&[rows("update", json!({ "keys": ["amount"], "values": [null], "fields": { "amount": 1 } }))]);
    assert_eq!(updated[0]["observation"], json!({ "changes": 1500 }));
}

#[test]
fn what_can_not_be_used_is_refused_before_a_run() {
    for (more, code, word) in [
        (json!({ "tables": [] }), "L011", "the action names none"),
        (json!({ "tables": ["note"] }), "L181", "the nearest one is `notes`"),
        (json!({ "table": "notes" }), "L010", "`table` is not known"),
        (json!({ "tables": ["notes"], "read_only": false, "on_uncertain": "retry" }), "L112", ""),
    ] {
        let place = place(more.clone());
        let ran = place.call(&["check", "loop.json"]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(code) && said.contains(word), "{more}: {said}");
    }
    let place = place(json!({}));
    place.json("loopctl.json", &json!({}));
    assert!(place.refused().contains("no datasource `tables`"));
}

#[test]
fn a_column_of_numbers_takes_no_text_that_is_none_and_other_columns_keep_theirs() {
    let place = writing();
    let sql = "CREATE TABLE notes (id INTEGER PRIMARY KEY, n NUMERIC(10, 2), i BIGINT, d DECIMAL, r DOUBLE PRECISION, \
               due DATE, done BOOLEAN, span INTERVAL, t TEXT, \"DECIMAL_x\" \"DECIMAL_TEXT\", open);\n";
    place.file("init.sql", sql);
    let write = |column: &str, value: &Value| rows("write", json!({ "fields": { column: value } }));
    let none = [json!("1.250,50"), json!("1,5"), json!("5 %"), json!("abc"), json!(""), json!([1]), json!({ "a": 1 })];
    let columns = ["n", "i", "d", "r"];
    let calls: Vec<Value> = columns.iter().flat_map(|column| none.iter().map(|value| write(column, value))).collect();
    let taken = [
        ("n", json!("12.50")),
        ("i", json!(null)),
        ("i", json!(true)),
        ("due", json!("2026-12-01")),
        ("done", json!("no")),
        ("span", json!("3 days")),
        ("t", json!([1])),
        ("open", json!("5 %")),
        ("DECIMAL_x", json!("12.50")),
    ];
    let calls = calls.into_iter().chain(taken.iter().map(|(column, value)| write(column, value))).collect::<Vec<_>>();
    let trace = place.calls(&calls);
    let refused = none.len() * columns.len();
    for entry in &trace[..refused] {
        let text = entry["error"]["detail"].as_str().unwrap_or_else(|| panic!("it was written: {entry:#}"));
        assert!(text.contains("the column has numbers, and the "), "{text}");
    }
    for entry in &trace[refused..refused + taken.len()] {
        assert_eq!(entry["observation"]["changes"], 1, "{entry:#}");
    }
    assert_eq!(stored(&place, "SELECT CAST(count(*) AS TEXT) FROM notes"), [taken.len().to_string()]);
    assert_eq!(stored(&place, "SELECT \"DECIMAL_x\" FROM notes WHERE \"DECIMAL_x\" IS NOT NULL"), ["12.50"]);
    // What no column of numbers keeps is no fault where it is looked for.
    let trace = place.calls(&[rows("read", json!({ "keys": ["i"], "values": ["abc"] }))]);
    assert_eq!(trace[0]["observation"]["row_count"], 0, "{:#}", trace[0]);
}
