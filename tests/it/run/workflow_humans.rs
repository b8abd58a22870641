//! Humans in workflows: approvals, forms, questions of the runs of steps, and calls of unknown outcome.

use serde_json::{Value, json};

use crate::common::{complete, think};
use crate::run::workflows::{definition, foreach, place, resume, run, script, steps};

fn approval(more: Value) -> Value {
    let properties = crate::common::with(
        json!({ "comment": "Pay {{one.id}}?", "request_payload": { "amount": "@one.amount" } }),
        more,
    );
    json!({ "type": "PbotApproval", "properties": properties })
}

fn asked(result: &Value) -> Vec<String> {
    let steps = result["pause"]["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().map(|step| step["at"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn several_approvals_wait_at_once_and_each_is_decided_alone() {
    let place = place();
    let actions = json!([approval(json!({ "on_rejected": "go_on" })),
        { "type": "a", "filter": { "condition": { "equal": ["@__approved", true] } }, "properties": { "id": "@one.id" } }]);
    let settings =
        json!({ "max_concurrency": 3, "collect_results": true, "result_key": "all", "collect": "@__approved" });
    definition(&place, json!({ "output": "@all", "actions": [foreach("@input.items", settings, actions)] }));
    let items = json!({ "items": [{ "id": "A", "amount": 1 }, { "id": "B", "amount": 2 }] });
    let (ran, result) = run(&place, items);
    assert_eq!((ran.code, asked(&result)), (3, vec!["each.0.0".to_owned(), "each.1.0".to_owned()]), "{ran:#?}");
    let first = &result["pause"]["steps"][0];
    assert_eq!((&first["question"], &first["action_input"]), (&json!("Pay A?"), &json!({ "amount": 1 })));
    // Which one is not said: nothing is decided.
    let (ran, said) = resume(&place, &["--approve"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(said["stderr"].as_str().unwrap().contains("each.0.0, each.1.0"), "{said}");
    let (ran, _) = resume(&place, &["--approve", "--at", "each.7.0"]);
    assert_eq!(ran.code, 2);
    // A hash of something else is refused.
    let (ran, _) = resume(&place, &["--approve", "--at", "each.0.0", "--if", "0123456789abcdef"]);
    assert_eq!(ran.code, 2);
    let hash = first["hash"].as_str().unwrap();
    let (ran, result) = resume(&place, &["--approve", "--if", hash, "--comment", "seen"]);
    assert_eq!((ran.code, asked(&result)), (3, vec!["each.1.0".to_owned()]), "{ran:#?}");
    assert_eq!(result["decisions"][0]["step"], "each.0.0");
    let (ran, result) = resume(&place, &["--deny", "--reason", "too much"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let outputs: Vec<&Value> =
        result["result"]["answer"].as_array().unwrap().iter().map(|item| &item["output"]).collect();
    assert_eq!(outputs, [&json!(true), &json!(false)]);
}

#[test]
fn a_no_stops_where_no_later_step_asks_what_was_decided() {
    let place = place();
    let approval = json!({ "type": "PbotApproval", "properties": { "comment": "Pay?" } });
    steps(&place, json!([approval, { "type": "a", "properties": {} }]));
    assert_eq!(run(&place, json!({})).0.code, 3);
    let (ran, result) = resume(&place, &["--deny", "--reason", "not now"]);
    assert_eq!(
        (ran.code, &result["termination"], &result["error"]["code"]),
        (1, &json!("rejected"), &json!("rejected"))
    );
    assert!(result["error"]["message"].as_str().unwrap().contains("not now"), "{result}");
    // Where a later step asks, it goes on by itself.
    let place = self::place();
    let approval = json!({ "type": "PbotApproval", "properties": { "comment": "Pay?" }, "outputKey": "decision" });
    let reads = json!({ "equal": ["@__approved", true] });
    steps(&place, json!([approval, { "type": "a", "filter": { "condition": reads }, "properties": {} }]));
    assert_eq!(run(&place, json!({})).0.code, 3);
    let (ran, result) = resume(&place, &["--deny"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["result"]["answer"]["decision"]["approved"], false);
}

fn form(ttl_seconds: f64) -> Value {
    json!({ "id": "ask", "type": "PbotForm",
        "properties": { "expected_keys": ["amount", "why"], "ttl_seconds": ttl_seconds } })
}

#[test]
fn a_form_takes_exactly_its_keys() {
    let place = place();
    steps(&place, json!([form(3600.0), { "type": "a", "properties": { "amount": "@amount" } }]));
    let (ran, result) = run(&place, json!({}));
    assert_eq!((ran.code, &result["pause"]["steps"][0]["expected_keys"]), (3, &json!(["amount", "why"])), "{ran:#?}");
    for wrong in ["12", "{}", r#"{"amount": 1}"#, r#"{"amount": 1, "why": "x", "more": 2}"#] {
        let (ran, said) = resume(&place, &["--answer", wrong]);
        assert_eq!(ran.code, 2, "{wrong}: {ran:#?}");
        assert!(said["stderr"].as_str().unwrap().contains("form"), "{wrong}: {said}");
    }
    let (ran, result) = resume(&place, &["--answer", r#"{"amount": 12, "why": null}"#]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["result"]["answer"]["amount"], 12);
}

#[test]
fn a_form_ends_when_its_time_is_over() {
    let place = place();
    steps(&place, json!([form(3600.0), { "type": "a", "properties": {} }]));
    assert_eq!(run(&place, json!({})).0.code, 3);
    std::fs::write(place.path().join("clock"), "7200000").unwrap();
    let resume = |more: &[&str]| {
        let args = ["resume", "r", "--script", "script.json", "--output", "json"];
        place.call_with(&[&args[..], more].concat(), &[("LOOPCTL_CLOCK", "clock")])
    };
    let late = resume(&["--answer", r#"{"amount": 12, "why": "x"}"#]);
    assert_eq!(late.code, 2, "{late:#?}");
    let over = resume(&[]);
    assert_eq!((over.code, &over.json()["termination"]), (1, &json!("form_expired")), "{over:#?}");
}

#[test]
fn the_question_of_a_steps_run_is_the_workflows_and_its_answer_goes_there() {
    let place = place();
    place.json(
        "script.json",
        &json!({ "replies": [], "tools": {}, "loops": { "judge": [
        think("__pause_for_human__", json!({ "question": "Which one?", "options": ["x", "y"] })),
        complete(json!("taken")),
    ] } }),
    );
    let react = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "tools": [],
        "objective": "Judge {{one}}.", "result_key": "finding" } });
    let settings = json!({ "max_concurrency": 2, "collect_results": true, "result_key": "all" });
    steps(&place, json!([foreach("@input.items", settings, json!([react]))]));
    let (ran, result) = run(&place, json!({ "items": ["A", "B"] }));
    assert_eq!((ran.code, asked(&result)), (3, vec!["each.0.judge".to_owned(), "each.1.judge".to_owned()]), "{ran:#?}");
    assert_eq!(result["pause"]["steps"][1]["run_id"], "r.each.1.judge");
    let (ran, result) = resume(&place, &["--answer", "x", "--at", "each.1.judge"]);
    assert_eq!((ran.code, asked(&result)), (3, vec!["each.0.judge".to_owned()]), "{ran:#?}");
    let trace = place.call(&["trace", "r.each.1.judge", "--format", "json"]).json();
    assert_eq!((&trace["status"], &trace["decisions"][0]["decision"]), (&json!("completed"), &json!("answer")));
    let (ran, result) = resume(&place, &["--answer", "y"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["result"]["answer"]["all"][0]["output"]["answer"], "taken");
}

#[test]
fn an_action_that_requires_approval_asks_also_as_a_step() {
    let place = place();
    place.json("actions/pay.json", &json!([{ "action_name": "pay", "kind": "http", "description": "Pays.",
        "http_method": "POST", "url": "https://tools.example.com/pay", "requires_approval": { "greaterThan": ["@input.amount", 100] },
        "parameters": { "type": "object", "properties": { "amount": { "type": "number" } } } }]));
    script(&place, json!({ "pay": [{ "paid": true }] }));
    steps(
        &place,
        json!([foreach(
            "@input.items",
            json!({ "max_concurrency": 2, "collect_results": true, "result_key": "all" }),
            json!([{ "type": "pay", "properties": { "amount": "@one" } }])
        )]),
    );
    let (ran, result) = run(&place, json!({ "items": [5, 500] }));
    assert_eq!((ran.code, asked(&result)), (3, vec!["each.1.0".to_owned()]), "{ran:#?}");
    let (ran, _) = resume(&place, &["--edit", r#"{"amount": "much"}"#]);
    assert_eq!(ran.code, 2, "an edited input must match the schema: {ran:#?}");
    let (ran, result) = resume(&place, &["--deny"]);
    assert_eq!((ran.code, &result["error"]["step"]), (1, &json!("each.1.0")), "{ran:#?}");
}

#[test]
fn an_item_that_waits_keeps_its_place_unless_the_loop_goes_on() {
    for (on_pause, waiting) in [("wait", 1), ("go_on", 3)] {
        let place = place();
        let settings = json!({ "max_concurrency": 1, "on_pause": on_pause, "summary_key": "counts" });
        steps(&place, json!([foreach("@input.items", settings, json!([approval(json!({}))]))]));
        let items: Vec<Value> = (0..3).map(|id| json!({ "id": id, "amount": 1 })).collect();
        let (ran, result) = run(&place, json!({ "items": items }));
        assert_eq!((ran.code, asked(&result).len()), (3, waiting), "{on_pause}: {ran:#?}");
    }
}
