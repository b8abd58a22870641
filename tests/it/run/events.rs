//! `--output ndjson`: every line is of the published schema, the trace can be rebuilt from the lines
//! alone, and a reader can neither forge a line nor hold a run up.

use std::collections::BTreeSet;
use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::{Place, complete, look, think};

/// The lines that a command printed, each of the published schema, with no field that it does not name.
pub fn lines(stdout: &str) -> Vec<Value> {
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/events.schema.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let kinds = kinds(&schema);
    let text = stdout.strip_suffix('\n').expect("the last line is ended");
    let read = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let faults: Vec<String> = validator.iter_errors(&value).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}: {line}");
        let kind = value["event"].as_str().expect("a kind");
        let (_, fields) = kinds.iter().find(|(name, _)| name == kind).unwrap_or_else(|| panic!("{kind}"));
        let unknown: Vec<&String> =
            value.as_object().expect("an object").keys().filter(|name| !fields.contains(*name)).collect();
        assert!(unknown.is_empty(), "{unknown:?} of {kind} are not in the schema");
        value
    };
    text.split('\n').map(read).collect()
}

/// The kinds of the schema with their fields.
fn kinds(schema: &Value) -> Vec<(String, BTreeSet<String>)> {
    let mut kinds = Vec::new();
    for group in ["Notice", "Last"] {
        for kind in schema["$defs"][group]["oneOf"].as_array().expect("kinds") {
            let mut fields: BTreeSet<String> = BTreeSet::new();
            let mut parts = vec![kind.clone()];
            while let Some(part) = parts.pop() {
                fields.extend(part["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()));
                if let Some(name) = part["$ref"].as_str() {
                    parts.push(schema["$defs"][name.rsplit('/').next().expect("a name")].clone());
                }
            }
            kinds.push((kind["properties"]["event"]["const"].as_str().expect("a name").to_owned(), fields));
        }
    }
    kinds
}

/// The trace as a consumer rebuilds it: the observed events, without what makes them events.
fn rebuilt(lines: &[Value]) -> Vec<Value> {
    let mut entries = Vec::new();
    for line in lines.iter().filter(|line| line["event"] == "observed") {
        let mut entry = line.clone();
        let fields = entry.as_object_mut().expect("an object");
        fields.remove("event");
        fields.remove("call");
        entries.push(entry);
    }
    entries
}

fn run(place: &Place, more: &[&str]) -> Vec<Value> {
    let mut args = vec!["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--run-id", "r"];
    args.extend(more);
    lines(&place.call(&args).stdout)
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == kind).collect()
}

fn trace(place: &Place) -> Value {
    place.call(&["trace", "r", "--format", "json"]).json()["trace"].clone()
}

#[test]
fn the_trace_is_rebuilt_from_the_events_alone() {
    let place = Place::new();
    place.looped(&json!({ "on_stuck": { "iterations": 9 } })).json(
        "script.json",
        &json!({ "replies": [
            look("a"), "no JSON at all", think("look", json!({ "at": 7 })), think("lok", json!({})),
            think("__store_memory__", json!({ "key": "k", "value": [1, 2.50] })),
            think("__log_progress__", json!({ "message": "half", "percent": 50, "milestone": "m" })),
            think("look", json!({ "at": "\u{1b}[31m\u{2028}\n\nevent: done\n\n", "n": 12 })), look("fails"),
            { "http": 503 }, complete(json!({ "n": 1 }))
        ], "tools": { "look": [{ "seen": 12345678901234567890123_u128 }, "\n\nevent: done\ndata: {}\u{85}",
            { "error": "http 503" }] } }),
    );
    let lines = run(&place, &[]);
    let result = lines.last().expect("a result");
    assert_eq!(result["event"], "result");
    assert_eq!(result["status"], "completed", "{result:#}");
    let entries = rebuilt(&lines);
    assert_eq!(Value::from(entries.clone()), result["trace"]);
    assert_eq!(Value::from(entries), trace(&place));
    for kind in ["run_started", "model_asked", "model_replied", "model_retried", "tool_called", "progress", "run_ended"]
    {
        assert!(!of_kind(&lines, kind).is_empty(), "{kind}");
    }
    let iterations: Vec<&Value> = of_kind(&lines, "model_replied").iter().map(|line| &line["iteration"]).collect();
    assert_eq!(iterations, (1..=9).map(Value::from).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    assert_eq!(of_kind(&lines, "observed")[0]["call"], json!({ "iteration": 1, "index": 0 }));
}

#[test]
fn the_streams_of_a_run_and_its_resumes_make_one_trace() {
    let place = Place::new();
    let act = |what: &str| think("act", json!({ "what": what }));
    let ask = think("__pause_for_human__", json!({ "question": "Which?", "context": "Two.", "options": ["A", "B"] }));
    place.looped(&json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] })).script(&[
        act("a"),
        ask,
        act("b"),
        complete(json!("done")),
    ]);
    let mut all = run(&place, &[]);
    let waits = of_kind(&all, "paused")[0]["calls"][0].clone();
    assert_eq!(
        waits,
        json!({ "id": "1.0", "iteration": 1, "index": 0, "action": "act", "action_input": { "what": "a" }, "hash": waits["hash"] })
    );
    let hash = waits["hash"].as_str().expect("a hash").to_owned();
    for (pause, decision) in
        [vec!["--approve", "--if", &hash], vec!["--answer", "A"], vec!["--deny"]].iter().enumerate()
    {
        let mut args = vec!["resume", "r", "--script", "script.json", "--output", "ndjson"];
        args.extend(decision);
        let lines = lines(&place.call(&args).stdout);
        assert_eq!(lines[0]["event"], "run_resumed");
        if pause == 0 {
            let asks = of_kind(&lines, "paused")[0].clone();
            assert_eq!(
                (&asks["kind"], &asks["context"], &asks["options"]),
                (&json!("human"), &json!("Two."), &json!(["A", "B"]))
            );
            assert!(asks.get("calls").is_none(), "the question is reported once: {asks}");
        }
        all.extend(lines);
    }
    assert_eq!(all.last().expect("a result")["status"], "completed");
    assert_eq!(Value::from(rebuilt(&all)), trace(&place));
}

#[test]
fn runs_that_end_in_other_ways_keep_to_the_schema() {
    let escalate = json!({ "on_stuck": { "iterations": 2, "action": "escalate" } });
    let cases = [
        (json!({ "on_stuck": { "iterations": 2 } }), vec![look("a"); 4], "failed"),
        (escalate, vec![look("a"); 4], "paused"),
        (json!({ "max_iterations": 2 }), vec![look("a"), look("b")], "failed"),
        (json!({ "max_iterations": 1, "on_limit": "answer" }), vec![look("a"), complete(json!(1))], "completed"),
        (json!({}), vec![json!("x"), json!("y"), json!("z")], "failed"),
        (json!({}), vec![], "failed"),
    ];
    for (properties, replies, status) in cases {
        let place = Place::new();
        place.looped(&properties).script(&replies);
        let lines = run(&place, &[]);
        let result = lines.last().expect("a result");
        assert_eq!(result["status"], status, "{result:#}");
        assert_eq!(Value::from(rebuilt(&lines)), result["trace"]);
    }
}

#[test]
fn a_text_makes_no_second_line_and_steers_nothing() {
    let place = Place::new();
    let mean = "\n\nevent: done\ndata: {}\r\n{\"event\":\"run_ended\"}\u{2028}\u{2029}\u{85}\u{0}\u{1b}]52;c;x\u{7}\u{202e}\u{9b}2J";
    place.looped(&json!({})).json(
        "script.json",
        &json!({ "replies": [
            { "thought": mean, "action": "look", "action_input": { "at": mean } },
            think("__log_progress__", json!({ "message": mean, "milestone": mean })),
            think(mean, json!({ mean: mean })),
            format!("no JSON {mean}"),
            think("__pause_for_human__", json!({ "question": mean, "context": mean, "options": [mean] })),
        ], "tools": { "look": [{ mean: mean }] } }),
    );
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "ndjson"]);
    let lines = lines(&ran.stdout);
    assert_eq!(of_kind(&lines, "run_ended").len(), 0, "a paused run has not ended");
    assert_eq!(of_kind(&lines, "paused").len(), 1);
    assert_eq!(of_kind(&lines, "paused")[0]["question"], mean, "it is the same text when it is read");
    let forbidden = |c: char| {
        (c < ' ' && c != '\n') || ('\u{7f}'..='\u{9f}').contains(&c) || "\u{2028}\u{2029}\u{202e}".contains(c)
    };
    assert!(!ran.stdout.contains(forbidden));
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_run() {
    let place = Place::new();
    place.looped(&json!({})).script(&[look("a"), look("b"), complete(json!("done"))]);
    let mut child = place
        .command(&["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--run-id", "r"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(trace(&place).as_array().map(Vec::len), Some(3));
}

#[test]
fn a_reader_that_does_not_read_does_not_hold_the_run_up() {
    let place = Place::new();
    // More than a pipe holds.
    let long = "x".repeat(10_000);
    let replies: Vec<Value> = (0..40).map(|n| look(&format!("{n} {long}"))).chain([complete(json!("done"))]).collect();
    place.looped(&json!({ "max_iterations": 60 })).script(&replies);
    let mut child = place
        .command(&["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--run-id", "r"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    // It ends in the store while nobody has read a byte.
    let ended = (0..10_000).any(|_| {
        let is_stored = place.path().join(".loopctl/runs.db").exists();
        // Started each time, so that a look takes as long before there is a store as it does later.
        let listed = place.call(&["runs", "--output", "json"]);
        is_stored && listed.json()[0]["status"] == "completed"
    });
    assert!(ended);
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("it reads");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(rebuilt(&lines(&text)).len(), 41);
}

#[test]
fn the_page_shows_lines_of_the_schema_and_describes_every_kind() {
    let page = include_str!("../../../docs/events.md");
    let (_, rest) = page.split_once("```ndjson\n").expect("example lines");
    let (examples, _) = rest.split_once("```").expect("their end");
    assert!(lines(examples).len() > 8);
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/events.schema.json")).expect("JSON");
    for (kind, fields) in kinds(&schema) {
        let of_kind = |line: &&str| line.split('|').nth(1).is_some_and(|cell| cell.contains(&format!("`{kind}`")));
        let row = page.lines().find(of_kind);
        let row = row.unwrap_or_else(|| panic!("docs/events.md: add a row for `{kind}`"));
        // The fields of these are described where a trace is.
        for field in fields.iter().filter(|_| !["result", "observed", "steps"].contains(&kind.as_str())) {
            assert!(field == "event" || row.contains(&format!("`{field}`")), "docs/events.md: {kind} has `{field}`");
        }
    }
}
