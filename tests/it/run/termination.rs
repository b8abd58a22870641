//! Every row of the termination table: status, termination, exit code.

use serde_json::{Value, json};

use crate::common::{Place, complete, look, think};

fn row(result: &Value) -> (&str, &str) {
    (result["status"].as_str().unwrap_or_default(), result["termination"].as_str().unwrap_or_default())
}

#[test]
fn complete_ends_with_the_answer_and_exit_code_0() {
    let place = Place::new();
    place.looped(&json!({ "result_key": "found" })).script(&[
        look("a"),
        think("__complete__", json!({ "answer": { "cause": "x" }, "confidence": 0.9, "summary": "short" })),
    ]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (0, ("completed", "complete")), "{ran:#?}");
    assert_eq!(result["result"], json!({ "answer": { "cause": "x" }, "confidence": 0.9, "summary": "short" }));
    assert_eq!(result["result_key"], "found");
    assert_eq!(result["iterations"], 2);
    assert_eq!(result["metadata"]["rounds"], 2);
    assert_eq!(result["metadata"]["tool_calls_made"], 1);
    assert!(result.get("error").is_none() && result.get("pause").is_none());
    let entry = &result["trace"][0];
    assert_eq!(entry["iteration"], 1);
    assert_eq!(entry["action"], "look");
    assert_eq!(entry["action_input"], json!({ "at": "a" }));
    assert_eq!(entry["observation"], json!({ "seen": 1 }));
    assert_eq!(entry["success"], true);
    assert_eq!(ran.stdout.lines().count(), 1, "one line on stdout");
}

#[test]
fn the_trace_is_left_out_when_the_document_says_so() {
    let place = Place::new();
    place.looped(&json!({ "include_reasoning_trace": false })).script(&[complete(json!("ok"))]);
    let (_, result) = place.run(&[]);
    assert!(result.get("trace").is_none());
}

#[test]
fn spent_iterations_fail_with_what_was_found() {
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 2 })).script(&[look("a"), look("b"), complete(json!("too late"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "max_iterations")));
    assert_eq!(result["error"]["code"], "max_iterations");
    assert_eq!(result["error"]["retryable"], false);
    assert_eq!(result["trace"].as_array().map(Vec::len), Some(2));
    assert!(result.get("result").is_none());
}

#[test]
fn a_forced_answer_completes_and_names_the_limit() {
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 1, "on_limit": "answer" })).script(&[look("a"), complete(json!("so far"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (0, ("completed", "forced_answer")));
    assert_eq!(result["limit"], "max_iterations");
    assert_eq!(result["result"]["answer"], "so far");
}

#[test]
fn a_last_call_that_does_not_answer_fails_by_the_limit() {
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 1, "on_limit": "answer" })).script(&[look("a"), look("b")]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "max_iterations")));
}

#[test]
fn active_time_ends_a_run_while_the_model_thinks() {
    let place = Place::new();
    place.looped(&json!({ "timeout_ms": 200 })).script(&[json!({ "delay_ms": 60_000, "text": "too late" })]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "timeout")));
    assert_eq!(result["error"]["retryable"], true);
}

#[test]
fn a_full_window_ends_a_run() {
    let place = Place::new();
    place.looped(&json!({ "history": { "context_tokens": 400 } })).script(&[look("a"), complete(json!("no"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "context")), "{ran:#?}");
}

#[test]
fn a_spent_budget_ends_a_run_before_the_next_call() {
    let place = Place::new();
    place.looped(&json!({ "budget": { "tokens": 10 } })).script(&[look("a"), complete(json!("no"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "budget")));
    assert_eq!(result["iterations"], 1);
}

#[test]
fn a_stuck_agent_fails_and_the_pattern_is_reported() {
    let place = Place::new();
    place.looped(&json!({})).script(&[look("a"), look("a"), look("a"), complete(json!("no"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "stuck")));
    assert_eq!(result["stuck"]["pattern"], "same_action");
    assert_eq!(result["iterations"], 3);
}

#[test]
fn a_model_that_refuses_is_an_error_that_says_so() {
    // A key lies outside of the run; what is asked for does not.
    for (status, retryable) in [(401, true), (402, true), (403, true), (404, false)] {
        let place = Place::new();
        place.looped(&json!({})).script(&[json!({ "http": status })]);
        let (ran, result) = place.run(&[]);
        assert_eq!((ran.code, row(&result)), (1, ("failed", "model_error")));
        assert_eq!(result["error"]["code"], "model_refused");
        assert_eq!(result["error"]["retryable"], retryable, "{status}");
    }
}

#[test]
fn a_model_that_stays_away_is_retried_and_then_a_retryable_error() {
    let place = Place::new();
    place.looped(&json!({})).script(&[json!({ "http": 503 }), json!({ "http": 503 })]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "model_error")));
    assert_eq!(result["error"]["code"], "model_unreachable");
    assert_eq!(result["error"]["retryable"], true);
    assert_eq!(result["metadata"]["model_retries"], 1);
}

#[test]
fn a_retried_call_goes_on_as_if_nothing_was() {
    let place = Place::new();
    place
        .looped(&json!({}))
        .script(&[json!({ "http": 429, "headers": { "retry-after": "0" } }), complete(json!("ok"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (0, ("completed", "complete")));
    assert_eq!(result["metadata"]["model_retries"], 1);
    assert_eq!(result["iterations"], 1);
}

#[test]
fn three_unreadable_replies_in_a_row_end_a_run() {
    let place = Place::new();
    place.looped(&json!({})).script(&[json!("what?"), json!("hm"), json!("no idea"), complete(json!("no"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "invalid_replies")));
    assert_eq!(result["metadata"]["invalid_replies"], 3);
    assert_eq!(result["error"]["retryable"], false);
}

#[test]
fn a_readable_reply_in_between_starts_the_count_anew() {
    let place = Place::new();
    place.looped(&json!({})).script(&[
        json!("what?"),
        json!("hm"),
        look("a"),
        json!("again"),
        json!("and again"),
        complete(json!("ok")),
    ]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (0, ("completed", "complete")));
    assert_eq!(result["metadata"]["invalid_replies"], 4);
}

#[test]
fn a_question_to_a_human_pauses_with_exit_code_3() {
    let place = Place::new();
    place.looped(&json!({})).script(&[think(
        "__pause_for_human__",
        json!({ "question": "Refund?", "context": "It is dear.", "options": ["yes", "no"] }),
    )]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (3, ("paused", "human")));
    assert_eq!(result["pause"]["kind"], "human");
    assert_eq!(result["pause"]["question"], "Refund?");
    assert_eq!(result["pause"]["options"], json!(["yes", "no"]));
}

#[test]
fn a_stuck_agent_pauses_when_it_is_to_be_escalated() {
    let place = Place::new();
    place.looped(&json!({ "on_stuck": { "action": "escalate", "iterations": 2 } })).script(&[look("a"), look("a")]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (3, ("paused", "stuck")));
    assert_eq!(result["pause"]["stuck"]["pattern"], "same_action");
}

#[test]
fn a_tool_that_wants_approval_pauses_and_is_not_called() {
    let place = Place::new();
    place
        .looped(&json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] }))
        .script(&[think("act", json!({ "what": "x" }))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (3, ("paused", "approval")));
    assert_eq!(result["pause"]["call"]["action"], "act");
    assert_eq!(result["pause"]["call"]["action_input"], json!({ "what": "x" }));
    assert_eq!(result["metadata"]["tool_calls_made"], 0);
}

#[test]
fn an_invalid_document_is_no_run_and_exit_code_2() {
    let place = Place::new();
    place.looped(&json!({ "max_iterations": "10" })).script(&[complete(json!("ok"))]);
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "json"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("max_iterations"), "{}", ran.stderr);
    assert!(!place.path().join(".loopctl").exists(), "no store is made for a document that can't run");
}

#[test]
fn a_cancelled_run_can_not_be_resumed() {
    let place = Place::new();
    place.looped(&json!({})).script(&[think("__pause_for_human__", json!({ "question": "Well?" }))]);
    let (_, result) = place.run(&[]);
    let id = result["run_id"].as_str().expect("an id");
    let cancelled = place.call(&["cancel", id]);
    assert_eq!(cancelled.code, 0, "{cancelled:#?}");
    let resumed = place.call(&["resume", id, "--answer", "late", "--script", "script.json", "--output", "json"]);
    assert_eq!(resumed.code, 2, "{resumed:#?}");
    assert!(resumed.stderr.contains("ended"), "{}", resumed.stderr);
    let shown = place.call(&["resume", id, "--script", "script.json", "--output", "json"]);
    assert_eq!(shown.code, 130);
    assert_eq!(row(&shown.json()), ("cancelled", "cancelled"));
}

#[test]
fn a_script_that_runs_out_says_at_which_call() {
    let place = Place::new();
    place.looped(&json!({})).script(&[look("a")]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, row(&result)), (1, ("failed", "model_error")));
    assert_eq!(result["error"]["code"], "script_exhausted");
    assert!(result["error"]["message"].as_str().is_some_and(|message| message.contains('2')), "{result}");
}
