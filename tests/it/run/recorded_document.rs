//! The recorded document of a run is the one that it was started with: its text is found by the SHA-256, apart from what
//! callers send.

use loopctl::engine::digest::{Digest, Sha256};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, document, think};

const STORE: &str = ".loopctl/runs.db";

/// A run `r` that waits for the approval of a call, with a long text in its input; and its document as it is stored.
fn paused() -> (Place, String) {
    let place = Place::new();
    let properties = json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] });
    let mut written = document(&properties);
    written["input"] = json!({ "type": "object", "additionalProperties": true });
    place.json("loop.json", &written);
    place.script(&[think("act", json!({ "what": "pay 5" })), complete(json!("done"))]);
    place.json("input.json", &json!({ "text": "x".repeat(100_000) }));
    let (ran, _) = place.run(&["--run-id", "r", "--input-file", "input.json"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let text = std::fs::read_to_string(place.path().join("loop.json")).expect("the document");
    (place, text)
}

fn store(place: &Place) -> Connection {
    Connection::open(place.path().join(STORE)).expect("a store")
}

fn approve(place: &Place) -> Ran {
    place.call(&["resume", "r", "--script", "script.json", "--output", "json", "--approve", "--recorded-document"])
}

/// The start of the run, as it is stored.
fn first(store: &Connection) -> Value {
    let event: String = store.query_row("SELECT event FROM events WHERE seq = 0", [], |row| row.get(0)).expect("one");
    serde_json::from_str(&event).expect("JSON")
}

/// Writes the start of the run, with its sum.
fn put_first(store: &Connection, event: &str) {
    let bytes = b"r\0".iter().copied().chain(0_i64.to_le_bytes()).chain(event.bytes());
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let update = "UPDATE events SET event = ?1, sum = ?2 WHERE seq = 0";
    store.execute(update, (event, sum.cast_signed())).expect("it is written");
}

/// The document as another one: the call is another.
fn other(text: &str) -> String {
    let other = text.replace("Find out what is wrong.", "Find out what is other.");
    assert_ne!(text, other);
    other
}

#[test]
fn the_recorded_document_goes_on_and_equal_texts_are_stored_once() {
    let (place, text) = paused();
    let started = first(&store(&place));
    let named = started["what"]["started"]["documents"][0]["text"].as_str().expect("a name").to_owned();
    assert_eq!(named, format!("document:{}", Sha256::of(&text)));
    assert!(started["what"]["started"]["system"].as_str().is_some_and(|name| name.starts_with("text:")), "{started}");
    let count = |text: &str| -> i64 {
        store(&place)
            .query_row("SELECT count(*) FROM texts WHERE text = ?1", [text], |row| row.get(0))
            .expect("a count")
    };
    assert_eq!(place.run(&["--run-id", "s"]).0.code, 3);
    assert_eq!(count(&text), 1);
    place.file("loop.json", other(&text));
    let ran = approve(&place);
    assert_eq!((ran.code, ran.json()["result"]["answer"].clone()), (0, json!("done")), "{ran:#?}");
}

#[test]
fn a_document_that_was_exchanged_in_the_store_is_not_executed() {
    for (how, words) in
        [("text", "is missing"), ("name", "not those that the run was started with"), ("kind", "other kind")]
    {
        let (place, text) = paused();
        let connection = store(&place);
        let mut start = first(&connection);
        let changed = other(&text);
        let sha256 = Sha256::of(&changed).to_string();
        match how {
            "text" => {
                let update = "UPDATE texts SET text = ?1, digest = ?2 WHERE text = ?3";
                assert_eq!(connection.execute(update, (&changed, &sha256, &text)).expect("it is written"), 1);
            }
            _ => {
                let insert = "INSERT INTO texts (digest, text) VALUES (?1, ?2)";
                connection.execute(insert, (&sha256, &changed)).expect("it is written");
                connection.execute("INSERT INTO run_texts SELECT 1, max(id) FROM texts", []).expect("it is written");
                let kind = if how == "name" { "document" } else { "text" };
                start["what"]["started"]["documents"][0]["text"] = json!(format!("{kind}:{sha256}"));
                put_first(&connection, &start.to_string());
            }
        }
        drop(connection);
        let ran = approve(&place);
        assert!(ran.code != 0 && ran.stderr.contains(words), "{how} {ran:#?}");
        let events: i64 =
            store(&place).query_row("SELECT count(*) FROM events", [], |row| row.get(0)).expect("a count");
        assert_eq!(events, 2, "{how}");
    }
}

/// Makes the store one of the version before, which named texts by a digest that does not protect against forgery.
fn older(connection: &Connection) {
    let texts: Vec<(i64, String)> = connection
        .prepare("SELECT id, text FROM texts")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .expect("texts");
    let mut event = first(connection).to_string();
    for (id, text) in texts {
        let digest = Digest::of(&text).to_string();
        connection.execute("UPDATE texts SET digest = ?1 WHERE id = ?2", (&digest, id)).expect("it is written");
        for kind in ["document", "text"] {
            event = event.replace(&format!("{kind}:{}", Sha256::of(&text)), &digest);
        }
    }
    let mut event: Value = serde_json::from_str(&event).expect("JSON");
    event["what"]["started"].as_object_mut().expect("an object").remove("documents_sha256").expect("it is there");
    put_first(connection, &event.to_string());
    let later = "DROP INDEX runs_by_line; ALTER TABLE runs DROP COLUMN line; ALTER TABLE runs DROP COLUMN line_limit; \
         ALTER TABLE runs DROP COLUMN line_rule; ALTER TABLE runs DROP COLUMN place; DROP INDEX runs_by_awaited; ALTER TABLE runs DROP COLUMN awaits; ALTER TABLE runs DROP COLUMN tokens; ALTER TABLE runs DROP COLUMN cost_usd; ALTER TABLE runs DROP COLUMN error; \
         ALTER TABLE runs DROP COLUMN question; ALTER TABLE runs DROP COLUMN search_text; ALTER TABLE drivers DROP COLUMN address; ALTER TABLE runs DROP COLUMN title; \
         DROP INDEX runs_by_start_key; ALTER TABLE runs DROP COLUMN start_key; DROP TABLE scheduled_runs; DROP TABLE schedules; DROP INDEX runs_by_waiting; \
         ALTER TABLE runs DROP COLUMN waits_since_ms; ALTER TABLE runs DROP COLUMN cancel_by; ALTER TABLE drivers DROP COLUMN process;";
    connection.execute_batch(later).expect("what later versions added is removed");
    connection.pragma_update(None, "user_version", 8).expect("it is written");
}

#[test]
fn a_store_of_the_version_before_goes_on_and_its_texts_are_taken_over() {
    let (place, text) = paused();
    older(&store(&place));
    place.file("loop.json", other(&text));
    let ran = approve(&place);
    assert_eq!((ran.code, ran.json()["result"]["answer"].clone()), (0, json!("done")), "{ran:#?}");
    place.file("loop.json", &text);
    let (again, _) = place.run(&["--run-id", "s"]);
    assert_eq!(again.code, 3, "{again:#?}");
    let connection = store(&place);
    let digests: Vec<String> = connection
        .prepare("SELECT digest FROM texts WHERE text = ?1")
        .and_then(|mut query| query.query_map([&text], |row| row.get(0))?.collect())
        .expect("digests");
    assert_eq!(digests, [Sha256::of(&text).to_string()], "the next run has the same text");
}

#[test]
fn a_text_of_an_older_store_that_was_exchanged_is_reported() {
    let (place, text) = paused();
    let connection = store(&place);
    older(&connection);
    connection.execute("UPDATE texts SET text = ?1 WHERE text = ?2", [&other(&text), &text]).expect("it is written");
    drop(connection);
    let ran = approve(&place);
    assert!(ran.code != 0 && ran.stderr.contains("not what was written"), "{ran:#?}");
}
