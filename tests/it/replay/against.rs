//! A run played against an edited document: each verdict, and what is refused.

use serde_json::{Value, json};

use crate::common::{Place, complete, document, look, think};
use crate::replay::{done, edited, golden, ran, run};

/// What `replay` prints for each of these edits of the document.
fn shown(place: &Place, edits: &[(&str, Value)]) -> String {
    let mut text = String::new();
    for (name, document) in edits {
        place.json("edited.json", document);
        let replayed = place.call(&["replay", "r", "--document", "edited.json"]);
        assert_eq!(replayed.code, 0, "{name}: {replayed:#?}");
        text.push_str(&format!("## {name}\n{}\n", replayed.stdout));
    }
    text
}

fn without_act() -> Value {
    let mut document = document(&json!({ "tools": [{ "type": "action", "name": "look" }] }));
    document["actions"].as_array_mut().unwrap().pop();
    document
}

fn with_act(change: impl Fn(&mut Value)) -> Value {
    let mut document = document(&json!({}));
    change(&mut document["actions"][1]);
    document
}

#[test]
fn each_edit_has_its_verdict_with_the_place_where_it_first_counts() {
    let place = ran(json!({}));
    let edits = [
        ("the same document", document(&json!({}))),
        ("another objective", document(&json!({ "objective": "Find out what is broken." }))),
        ("a tool is gone", without_act()),
        (
            "a schema is narrower",
            with_act(|act| act["parameters"]["properties"]["what"] = json!({ "type": "string", "maxLength": 0 })),
        ),
        ("a call needs an approval", with_act(|act| act["requires_approval"] = json!(true))),
        ("fewer iterations", document(&json!({ "max_iterations": 3 }))),
        ("fewer iterations, with a last answer", document(&json!({ "max_iterations": 3, "on_limit": "answer" }))),
        ("a smaller budget", document(&json!({ "budget": { "tokens": 1200 } }))),
        (
            "fewer calls of a tool",
            document(&json!({ "tools": [
            { "type": "action", "name": "look", "max_calls": 2 }, { "type": "action", "name": "act" }] })),
        ),
        ("an answer that does not fit", document(&json!({ "answer_schema": { "type": "integer" } }))),
        ("fewer characters of an observation", document(&json!({ "max_observation_chars": 5 }))),
    ];
    golden("verdicts.txt", &shown(&place, &edits));
}

#[test]
fn a_run_that_was_stopped_goes_on_under_a_document_that_lets_it() {
    let place = Place::new();
    place.looped(&json!({ "on_stuck": { "iterations": 2 } })).script(&[look("a"), look("a"), done()]);
    assert_eq!(run(&place, "r", &[]).code, 1);
    let edits = [
        ("more repetitions", document(&json!({ "on_stuck": { "iterations": 3 } }))),
        ("a human is asked", document(&json!({ "on_stuck": { "iterations": 2, "action": "escalate" } }))),
        ("a hint", document(&json!({ "on_stuck": { "iterations": 2, "action": "retry_with_hint" } }))),
    ];
    golden("goes-on.txt", &shown(&place, &edits));
}

#[test]
fn a_pattern_that_counts_earlier_ends_the_run_there() {
    let place = Place::new();
    place.looped(&json!({ "on_stuck": { "iterations": 4 } })).script(&[look("a"), look("a"), look("a"), done()]);
    assert_eq!(run(&place, "r", &[]).code, 0);
    edited(&place, json!({ "on_stuck": { "iterations": 2 } }));
    let verdict = place.call(&["replay", "r", "--document", "edited.json", "--output", "json"]).json();
    assert_eq!(
        (&verdict["verdict"], &verdict["iteration"], &verdict["stuck"], &verdict["termination"]),
        (&json!("ends_earlier"), &json!(2), &json!("same_action"), &json!("stuck")),
        "{verdict:#}"
    );
}

#[test]
fn an_approval_that_was_given_passes_when_none_is_asked_for_and_a_denial_does_not() {
    let with = |approval: bool| with_act(|act| act["requires_approval"] = json!(approval));
    for (decision, expected) in [("--approve", "same"), ("--deny", "goes_on")] {
        let place = Place::new();
        place.json("loop.json", &with(true));
        place.script(&[think("act", json!({ "what": "x" })), done()]);
        assert_eq!(run(&place, "r", &[]).code, 3);
        let ended = place.call(&["resume", "r", decision, "--script", "script.json"]);
        assert_eq!(ended.code, 0, "{ended:#?}");
        place.json("edited.json", &with(true));
        let same = place.call(&["replay", "r", "--document", "edited.json", "--output", "json"]).json();
        assert_eq!(same["verdict"], "same", "{same:#}");
        place.json("edited.json", &with(false));
        let verdict = place.call(&["replay", "r", "--document", "edited.json", "--output", "json"]).json();
        assert_eq!(verdict["verdict"], expected, "{decision}: {verdict:#}");
    }
}

#[test]
fn all_runs_of_a_loop_are_counted_and_an_exit_code_says_whether_one_is_stopped() {
    let place = Place::new();
    place.looped(&json!({ "on_stuck": { "iterations": 4 } }));
    for (id, replies) in [
        ("fine", vec![look("a"), done()]),
        ("slow", vec![look("a"), look("a"), look("a"), done()]),
        ("lost", vec![look("a"), look("a"), look("a"), look("a")]),
    ] {
        place.script(&replies);
        run(&place, id, &[]);
    }
    edited(&place, json!({ "on_stuck": { "iterations": 3 } }));
    let all = ["replay", "--all", "--document", "edited.json"];
    let table = place.call(&all);
    golden("all-against.txt", &table.stdout);
    for (on, code) in [("ends-earlier", 1), ("refused-now", 0), ("refused-now,different", 1), ("not-replayed", 0)] {
        let ran = place.call(&[all.as_slice(), &["--fail-on", on]].concat());
        assert_eq!(ran.code, code, "{on}: {ran:#?}");
    }
    let json = place.call(&[all.as_slice(), &["--output", "json"]].concat()).json();
    assert_eq!(
        json["counts"],
        json!([
            { "verdict": "same", "runs": 1, "completed": 1, "failed": 0 },
            { "verdict": "ends_earlier", "runs": 2, "completed": 1, "failed": 1 },
        ]),
        "{json:#}"
    );
}

#[test]
fn what_models_and_documents_say_controls_no_terminal() {
    let place = Place::new();
    place.looped(&json!({})).script(&[look("\u{1b}[2Jx"), complete(json!("\u{1b}]0;x\u{7}"))]);
    run(&place, "r", &[]);
    let mut narrow = document(&json!({}));
    narrow["actions"][0]["parameters"]["properties"]["at"] = json!({ "type": "string", "enum": ["\u{1b}[31m"] });
    place.json("edited.json", &narrow);
    for output in ["human", "json"] {
        let shown = place.call(&["replay", "r", "--document", "edited.json", "--output", output]);
        assert_eq!(shown.code, 0, "{shown:#?}");
        assert!(shown.stdout.contains("refused") && !shown.stdout.contains('\u{1b}'), "{shown:#?}");
    }
}

/// A workflow of two calls, with this condition before the second one.
fn workflow(condition: Value, input: Value) -> Value {
    json!({ "name": "w", "definition": { "actions": [
        { "type": "look", "properties": {} },
        { "type": "act", "properties": input, "filter": { "condition": condition } },
    ] } })
}

#[test]
fn a_workflow_is_played_step_by_step() {
    let place = Place::new();
    let more = |than: i64| json!({ "greaterThan": ["@look.seen", than] });
    let action = |name: &str| {
        json!({ "action_name": name, "kind": "http", "description": "Does.", "http_method": "POST",
            "url": format!("https://tools.example.com/{name}"), "parameters": { "type": "object" } })
    };
    place.json("actions/all.json", &json!([action("look"), action("act")]));
    let before = workflow(more(0), json!({ "what": "@look.seen" }));
    place.json("loop.json", &before);
    place.script(&[done()]);
    let ran = run(&place, "r", &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let edits = [
        ("the same document", before),
        ("a condition that does not hold", workflow(more(1), json!({ "what": "@look.seen" }))),
        ("another input", workflow(more(0), json!({ "what": "{{look.seen}}!" }))),
    ];
    golden("workflow.txt", &shown(&place, &edits));
    place.json("other/loop.json", &document(&json!({})));
    let refused = place.call(&["replay", "r", "--document", "other/loop.json"]);
    assert!(refused.code == 2 && refused.stderr.contains("the document is a loop"), "{refused:#?}");
}
