//! executionkit: what is checked before a call, cut after it, counted, and reported when it fails.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, document, look, observed, think, web, with};

fn ended(properties: Value, replies: &[Value], tools: Value) -> (i32, Value) {
    let place = Place::new();
    place.looped(&with(json!({ "max_iterations": 8, "temperature": 0.3 }), properties));
    place.json("script.json", &json!({ "replies": replies, "tools": tools }));
    let (ran, result) = place.run(&["--store", "memory"]);
    (ran.code, result)
}

/// A loop of its with this one action, which is really called and gets so much time.
fn calling(action: &Value, project: &Value, tool_timeout_ms: u64, replies: &[Value]) -> Value {
    let place = Place::new();
    let properties = json!({ "mode": "react", "objective": "Find out.", "max_iterations": 8, "tool_timeout_ms": tool_timeout_ms,
        "tools": [{ "type": "action", "name": action["action_name"] }] });
    place.json("loop.json", &json!({ "type": "loop", "name": "kit", "actions": [action], "properties": properties }));
    place.json("loopctl.json", project);
    place.json("script.json", &json!({ "replies": replies }));
    let (ran, result) = place.run(&["--store", "memory"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    result
}

/// The result of a loop whose model is at the server: 10 and 5 tokens a reply, 0.0003 dollars.
fn priced(server: &Server, properties: Value) -> (i32, Value) {
    let place = Place::new();
    let mut document = document(&with(json!({ "max_iterations": 8, "temperature": 0.3 }), properties));
    for action in document["actions"].as_array_mut().expect("actions") {
        let (name, parameters) = (action["action_name"].clone(), action["parameters"].clone());
        *action = json!({ "action_name": name, "kind": "command", "program": "echo", "args": ["seen"],
            "description": "Looks.", "parameters": parameters });
    }
    place.json("loop.json", &document);
    let model = json!({ "provider": "openai", "base_url": server.url(), "price": { "input": 10.0, "output": 40.0 } });
    place.json("loopctl.json", &json!({ "models": { "m": model }, "allow": { "commands": ["echo"] } }));
    let ran = place.call(&["run", "loop.json", "--model", "m", "--output", "json", "--store", "memory"]);
    (ran.code, ran.json())
}

fn cost(result: &Value) -> f64 {
    result["usage"]["cost_usd"].as_f64().unwrap_or_else(|| panic!("a cost: {result:#}"))
}

#[test]
fn executionkit_checks_the_schema_before_the_call() {
    let wrong = think("look", json!({ "at": "a", "n": "seven" }));
    let missing = think("look", json!({ "n": 7 }));
    let right = think("look", json!({ "at": "a", "n": 7 }));
    let (code, result) =
        ended(json!({}), &[wrong, missing, right, complete(json!("done"))], json!({ "look": [{ "seen": 1 }] }));
    let successes: Vec<&Value> = (0..3).map(|at| &result["trace"][at]["success"]).collect();
    assert_eq!((code, successes), (0, vec![&json!(false), &json!(false), &json!(true)]), "{result:#}");
    assert!(observed(&result["trace"][0]).contains("/n"), "{result:#}");
    assert!(observed(&result["trace"][1]).contains("at"), "{result:#}");
    assert_eq!(result["metadata"]["tool_calls_made"], 1, "{result:#}");
}

#[test]
fn executionkit_cuts_an_observation_after_12000_characters() {
    let (code, result) = ended(
        json!({}),
        &[look("a"), look("b"), complete(json!("done"))],
        json!({ "look": ["x".repeat(12_000), "y".repeat(12_345)] }),
    );
    assert_eq!((code, &result["metadata"]["truncated_observations"]), (0, &json!(1)), "{result:#}");
    assert_eq!(observed(&result["trace"][0]), "x".repeat(12_000), "as long as it may be");
    let cut = observed(&result["trace"][1]);
    assert!(cut.starts_with(&"y".repeat(12_000)) && !cut.contains(&"y".repeat(12_001)) && cut.contains("345"), "{cut}");
}

#[test]
fn executionkit_ends_a_tool_that_takes_too_long_and_goes_on() {
    let action = json!({ "action_name": "wait", "kind": "command", "description": "Waits.", "program": "sleep",
        "args": ["600"], "parameters": { "type": "object" } });
    let allow = json!({ "allow": { "commands": ["sleep"] } });
    let result = calling(&action, &allow, 200, &[think("wait", json!({})), complete(json!("done"))]);
    assert_eq!(result["trace"][0]["success"], false, "{result:#}");
    assert!(observed(&result["trace"][0]).contains("timed out"), "{result:#}");
    assert_eq!(result["result"]["answer"], "done");
}

#[test]
fn executionkit_counts_rounds_calls_and_what_was_cut_or_left_out() {
    let cut = json!({ "text": "{\"thought\": \"I lo", "finish": "length" });
    let replies = [look("a"), cut, look("b"), complete(json!("done"))];
    let history = json!({ "history": { "max_messages": 4, "keep_last": 2 } });
    let (code, result) = ended(history, &replies, json!({ "look": ["x".repeat(12_001), "seen"] }));
    let metadata = &result["metadata"];
    let counts =
        ["rounds", "tool_calls_made", "truncated_responses", "truncated_observations"].map(|name| &metadata[name]);
    assert_eq!((code, counts), (0, [&json!(4), &json!(2), &json!(1), &json!(1)]), "{result:#}");
    assert!(metadata["messages_trimmed"].as_u64() > Some(0), "{metadata:#}");
    let (_, result) = ended(json!({}), &[look("a"), complete(json!("done"))], json!({ "look": ["seen"] }));
    let none = ["truncated_responses", "truncated_observations", "messages_trimmed"];
    assert!(none.iter().all(|name| result["metadata"][*name] == 0), "{result:#}");
}

#[test]
fn executionkit_shows_the_model_the_class_of_a_failure_and_no_more() {
    let server = Server::with(|_, _| Answer::json("{\"trace\": \"at pool.rs:7, user admin\"}").status(503));
    let action = web("look", &format!("{}/look", server.url()), json!({ "parameters": { "type": "object" } }));
    let allow = json!({ "allow": { "private_addresses": true } });
    let result = calling(&action, &allow, 60_000, &[think("look", json!({})), complete(json!("done"))]);
    assert_eq!(result["trace"][0]["success"], false, "{result:#}");
    let observation = observed(&result["trace"][0]);
    assert!(observation.contains("http 503") && !observation.contains("pool.rs"), "{observation}");
    assert_eq!(result["result"]["answer"], "done", "a failed call ends no run");
}

#[test]
fn executionkit_fails_after_its_rounds_with_cost_and_metadata() {
    let server = Server::with(|number, _| Answer::openai(&look(&number.to_string()).to_string()));
    let (code, result) = priced(&server, json!({}));
    assert_eq!((code, &result["error"]["code"]), (1, &json!("max_iterations")), "{result:#}");
    assert!((cost(&result) - 0.0024).abs() < 1e-9, "{result:#}");
    assert_eq!((&result["metadata"]["rounds"], &result["metadata"]["tool_calls_made"]), (&json!(8), &json!(8)));
    let asked = server.requests()[0].json();
    assert_eq!((&asked["temperature"], &asked["max_tokens"]), (&json!(0.3), &json!(4096)), "{asked:#}");
}

#[test]
fn executionkit_ends_when_its_max_cost_is_spent() {
    let server = Server::with(|number, _| Answer::openai(&look(&number.to_string()).to_string()));
    let (code, result) = priced(&server, json!({ "budget": { "cost_usd": 0.0005 } }));
    assert_eq!((code, &result["error"]["code"], &result["termination"]), (1, &json!("budget"), &json!("budget")));
    assert!((cost(&result) - 0.0006).abs() < 1e-9, "{result:#}");
    assert_eq!((server.requests().len(), &result["metadata"]["rounds"]), (2, &json!(2)), "{result:#}");
}
