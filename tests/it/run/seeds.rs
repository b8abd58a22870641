//! Features of the systems that loopctl takes the place of, each by the numbers of its own.

use serde_json::{Value, json};

use crate::common::{Place, complete, look, think};

/// Places to look at, each another one.
fn looks(count: usize) -> Vec<Value> {
    (0..count).map(|at| look(&at.to_string())).collect()
}

fn ended(properties: Value, replies: &[Value]) -> (i32, Value) {
    let place = Place::new();
    let (ran, result) = place.looped(&properties).script(replies).run(&["--store", "memory"]);
    (ran.code, result)
}

#[test]
fn deep_research_makes_at_most_a_hundred_model_calls_within_150_minutes() {
    let limits = json!({ "max_iterations": 100, "timeout_ms": 9_000_000 });
    let (code, result) = ended(limits.clone(), &looks(101));
    assert_eq!((code, &result["termination"], &result["iterations"]), (1, &json!("max_iterations"), &json!(100)));
    let mut replies = looks(99);
    replies.push(complete(json!("found")));
    let (code, result) = ended(limits, &replies);
    assert_eq!((code, &result["result"]["answer"], &result["iterations"]), (0, &json!("found"), &json!(100)));
}

#[test]
fn cms_orchestrator_takes_at_most_15_steps() {
    let (code, result) = ended(json!({ "max_iterations": 15, "max_tokens": 4096 }), &looks(16));
    assert_eq!((code, &result["termination"], &result["iterations"]), (1, &json!("max_iterations"), &json!(15)));
}

#[test]
fn executionkit_refuses_unknown_keys_before_the_call() {
    let unknown = think("look", json!({ "at": "a", "more": 1 }));
    let (code, result) = ended(json!({ "max_iterations": 8 }), &[unknown, complete(json!("done"))]);
    assert_eq!((code, &result["trace"][0]["success"]), (0, &json!(false)), "{result:#}");
    assert_eq!(result["metadata"]["tool_calls_made"], 0, "{result:#}");
}

#[test]
fn executionkit_ends_after_8_rounds_with_its_error_and_metadata() {
    let (code, result) = ended(json!({ "max_iterations": 8, "temperature": 0.3 }), &looks(9));
    assert_eq!((code, &result["error"]["code"]), (1, &json!("max_iterations")), "{result:#}");
    assert_eq!((&result["iterations"], &result["metadata"]["tool_calls_made"]), (&json!(8), &json!(8)), "{result:#}");
}

#[test]
fn loomflow_is_interrupted_after_50_turns_with_a_reason() {
    let (code, result) = ended(json!({ "max_iterations": 50 }), &looks(51));
    assert_eq!((code, &result["termination"], &result["iterations"]), (1, &json!("max_iterations"), &json!(50)));
    assert!(result["error"]["message"].as_str().is_some_and(|why| why.contains("50")), "{result:#}");
}
