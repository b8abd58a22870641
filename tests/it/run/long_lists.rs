//! Long lists in the input of a workflow: they stay text, and nobody can tell by what a run does.

use serde_json::{Value, json};

use super::workflows::{answer, definition, foreach, place, resume, run, script};
use crate::common::{Place, Ran};

/// More than 64 KiB as JSON, with what a text may hold.
fn long() -> Value {
    (0..400)
        .map(|number| json!({ "id": number, "rate": 1.50, "note": format!("\n\"{}\" é", "x".repeat(300)) }))
        .collect()
}

fn input() -> Value {
    json!({ "first": 1, "items": long(), "last": [2] })
}

/// The store's texts, and its events.
fn stored(place: &Place) -> (Vec<String>, Vec<String>) {
    let store = rusqlite::Connection::open(place.path().join(".loopctl/runs.db")).unwrap();
    let all = |query: &str| {
        let mut query = store.prepare(query).unwrap();
        query.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    (all("SELECT text FROM texts"), all("SELECT event FROM events ORDER BY run, seq"))
}

/// A run that does not start.
fn refused(place: &Place, input: &Value) -> Ran {
    place.json("input.json", input);
    place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "r", "--input-file", "input.json"])
}

#[test]
fn a_long_list_has_the_values_that_a_short_one_has() {
    let place = place();
    let shown = json!({ "all": "@input", "list": "@input.items", "text": "{{input.last}}", "count": "@input.items.length",
        "third": "@input.items.3.rate" });
    let ask = json!({ "id": "ask", "type": "PbotApproval", "filter": { "condition": { "equal": ["@one.id", 7] } },
        "properties": { "comment": "{{one.note}}", "request_payload": shown } });
    let call = json!({ "id": "call", "type": "a", "properties": { "id": "@one.id", "rate": "@one.rate" } });
    let settings = json!({ "collect": "@one.id", "collect_results": true, "result_key": "ids" });
    let output =
        json!({ "ids": "@ids", "count": "@input.items.length", "last": "@input.items.399.id", "all": "@input" });
    definition(&place, json!({ "actions": [foreach("@input.items", settings, json!([ask, call]))], "output": output }));
    let (ran, paused) = run(&place, input());
    assert_eq!(ran.code, 3, "{ran:#?}");
    let asked = &paused["pause"]["steps"][0];
    assert_eq!(asked["question"], long()[7]["note"], "{asked}");
    let shown = &asked["action_input"];
    assert_eq!(shown["all"].to_string(), input().to_string());
    assert_eq!((&shown["list"], &shown["count"], &shown["text"]), (&long(), &json!(400), &json!("[2]")));
    assert_eq!(shown["third"].to_string(), "1.5");
    // Another process reads the list back.
    let (ran, result) = resume(&place, &["--approve"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let answer = answer(&result);
    assert_eq!(answer["all"].to_string(), input().to_string());
    assert_eq!((&answer["count"], &answer["last"]), (&json!(400), &json!(399)));
    assert_eq!((&answer["ids"][0]["output"], &answer["ids"][399]["output"]), (&json!(0), &json!(399)));

    let (texts, events) = stored(&place);
    assert!(events[0].len() < 8_000, "the list is not in the event: {} bytes", events[0].len());
    let pieces: Vec<&String> = texts.iter().filter(|text| text.contains("\"rate\"")).collect();
    assert!(pieces.len() > 1 && pieces.iter().all(|piece| piece.len() < 80_000), "it is in bounded pieces");
}

#[test]
fn the_same_start_with_a_long_list_is_the_same_run_and_another_list_is_not() {
    let place = place();
    definition(&place, json!({ "actions": [{ "type": "a", "properties": {} }] }));
    assert_eq!(run(&place, input()).0.code, 0);
    assert_eq!(run(&place, input()).0.code, 0, "the run that ended is returned");
    // The order of keys does not matter, nor how a number is written.
    let mut other = json!({ "last": [2.0], "items": long(), "first": 1 });
    assert_eq!(run(&place, other.clone()).0.code, 0);
    other["items"][399]["id"] = json!(0);
    let ran = refused(&place, &other);
    assert!(ran.code == 2 && ran.stderr.contains("another"), "{ran:#?}");
    let again = place.call(&["rerun", "r", "--run-id", "again", "--script", "script.json", "--output", "json"]);
    assert_eq!(again.code, 0, "{again:#?}");
    let (texts, _) = stored(&place);
    let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
    assert_eq!(texts.len(), distinct.len(), "the rerun shares the pieces");
}

#[test]
fn a_long_list_is_judged_by_the_schema_of_the_input() {
    let place = place();
    script(&place, json!({ "a": [{ "ok": 1 }] }));
    let schema = json!({ "type": "object", "properties": { "items": { "type": "array", "items": {
        "type": "object", "properties": { "id": { "type": "integer", "maximum": 399 } } } } } });
    place.json(
        "loop.json",
        &json!({ "name": "w", "input": schema, "definition": { "actions": [{ "type": "a", "properties": {} }] } }),
    );
    assert_eq!(run(&place, input()).0.code, 0);
    let mut wrong = input();
    wrong["items"][300]["id"] = json!(400);
    let ran = refused(&place, &wrong);
    assert!(ran.code == 2 && ran.stderr.contains("`items[300].id` must be at most 399"), "{ran:#?}");
}
