//! Workflows that go on: failed steps again, raised limits, edited documents, and signals.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::Place;
use crate::common::server::{Answer, Gate, Server};
use crate::run::signals::{signal, wait_for_line};
use crate::run::workflows::{answer, definition, foreach, place, resume, run, script, steps};

#[test]
fn what_failed_runs_again_on_request_and_what_completed_does_not() {
    let place = place();
    // The answers go on from call to call: the third and the fifth fail.
    let down = json!({ "error": "it is down" });
    script(&place, json!({ "a": [{ "n": 0 }, { "n": 1 }, down, { "n": 3 }, { "n": 4 }], "b": [down, { "n": 2 }] }));
    let settings = json!({ "collect_results": true, "result_key": "all", "failure_strategy": "continue_on_error", "max_failures": 0 });
    let actions = json!([{ "id": "call", "type": "a", "properties": { "id": "@one" } }]);
    steps(&place, json!([foreach("@input.items", settings, actions), { "type": "b", "properties": {} }]));
    let (ran, result) = run(&place, json!({ "items": [10, 11, 12, 13, 14] }));
    assert_eq!((ran.code, &result["steps"][0]["error"]["code"]), (1, &json!("too_many_failures")), "{ran:#?}");
    // Item 2 runs again, then those that never began; then the step after the loop fails.
    let (ran, result) = resume(&place, &["--retry-failed"]);
    assert_eq!((ran.code, &result["error"]["step"]), (1, &json!("1")), "{ran:#?}");
    assert_eq!(result["steps"][0]["items"]["completed"], 5);
    let (ran, result) = resume(&place, &["--retry-failed"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let outputs: Vec<&Value> =
        result["result"]["answer"]["all"].as_array().unwrap().iter().map(|item| &item["output"]["n"]).collect();
    assert_eq!(outputs, [&json!(0), &json!(1), &json!(3), &json!(4), &json!(4)]);
    assert_eq!(result["continuations"].as_array().map(Vec::len), Some(2));
    let (ran, said) = resume(&place, &["--retry-failed"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(said["stderr"].as_str().unwrap().contains("nothing to retry"), "{said}");
}

#[test]
fn a_workflow_whose_budget_is_spent_goes_on_when_it_is_raised() {
    let place = place();
    let react = json!({ "id": "judge", "type": "loop",
        "properties": { "mode": "react", "tools": [], "objective": "Judge {{one}}." } });
    let settings = json!({ "max_concurrency": 3, "collect_results": true, "result_key": "all" });
    definition(
        &place,
        json!({ "budget": { "tokens": 300 }, "actions": [foreach("@input.items", settings, json!([react]))] }),
    );
    let (ran, result) = run(&place, json!({ "items": [1, 2, 3] }));
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
    let (ran, _) = resume(&place, &["--retry-failed"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let (ran, result) = resume(&place, &["--budget-tokens", "100000"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["result"]["answer"]["all"].as_array().map(Vec::len), Some(3));
}

#[test]
fn another_step_at_the_address_of_one_that_has_an_outcome_is_refused_and_a_new_step_behind_it_is_not() {
    let approval = json!({ "type": "PbotApproval", "properties": { "comment": "Go on?" } });
    let first =
        |kind: &str| json!([{ "type": kind, "properties": {} }, approval.clone(), { "type": "b", "properties": {} }]);
    let place = place();
    steps(&place, first("a"));
    assert_eq!(run(&place, json!({})).0.code, 3);
    steps(&place, first("c"));
    let (ran, said) = resume(&place, &["--new-document"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(said["stderr"].as_str().unwrap().contains("the step `0` was `a`, and is `c`"), "{said}");
    let mut longer = first("a");
    longer.as_array_mut().unwrap().push(json!({ "type": "c", "properties": {} }));
    steps(&place, longer);
    let (ran, result) = resume(&place, &["--new-document"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let hash = result["pause"]["steps"][0]["hash"].as_str().unwrap().to_owned();
    let (ran, result) = resume(&place, &["--approve", "--if", &hash]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(answer(&result)["c"], json!({ "n": 3 }));
}

#[test]
fn a_signal_lets_calls_end_and_no_further_step_begins() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |_, _| Answer::json(&json!({ "did": 1 })).behind(&held));
    let place = with_slow(&server);
    steps(&place, json!([{ "type": "slow", "properties": {} }, { "type": "a", "properties": {} }]));
    let args = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
    let mut child = place.start(&args, &[]);
    server.wait_for(1);
    signal(&child, Signal::SIGTERM);
    let rest = wait_for_line(&mut child, "after this step");
    gate.open();
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&result["steps"][0]["status"], result["steps"].as_array().map(Vec::len)),
        (&json!("completed"), Some(1))
    );
    let (ran, result) = resume(&place, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(answer(&result)["a"], json!({ "n": 1 }));
    assert_eq!(server.requests().len(), 1);
}

/// A place with the action `slow`, which a server answers.
fn with_slow(server: &Server) -> Place {
    let place = place();
    place.json(
        "actions/slow.json",
        &json!([{ "action_name": "slow", "kind": "http", "description": "Is slow.",
        "http_method": "POST", "url": format!("{}/slow", server.url()), "parameters": { "type": "object" } }]),
    );
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    place
}

#[test]
fn a_step_of_which_a_human_says_that_its_call_failed_fails_and_runs_again_on_request_only() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |_, _| Answer::json(&json!({ "did": 1 })).behind(&held));
    let place = with_slow(&server);
    steps(&place, json!([{ "type": "slow", "properties": {} }, { "type": "a", "properties": {} }]));
    let args = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
    let mut child = place.start(&args, &[]);
    server.wait_for(1);
    child.kill().unwrap();
    child.wait().unwrap();
    gate.open();
    let (ran, paused) = resume(&place, &[]);
    assert_eq!((ran.code, &paused["termination"]), (3, &json!("uncertain")), "{ran:#?}");
    let (ran, failed) = resume(&place, &["--at", "0", "--fail", "the bank refused it"]);
    assert_eq!((ran.code, &failed["steps"][0]["error"]["code"]), (1, &json!("call_failed")), "{ran:#?}");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("a human says that the call failed: the bank refused it"), "{failed}");
    assert_eq!((&failed["decisions"][0]["decision"], server.requests().len()), (&json!("fail"), 1), "{failed}");
    let (ran, again) = resume(&place, &["--retry-failed"]);
    assert_eq!((ran.code, &answer(&again)["slow"]), (0, &json!({ "did": 1 })), "{ran:#?}");
    assert_eq!(server.requests().len(), 2);
}
