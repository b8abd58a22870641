//! Hyphen: the configuration on its page runs unchanged, and ends as the termination table of that page says.

use serde_json::{Value, json};

use crate::common::{Place, complete, think, web, with};

/// The loop of its page, changed by `properties`, with its two actions in files beside it.
fn page(properties: Value, replies: &[Value]) -> Place {
    let place = Place::new();
    let tool = |name: &str| json!({ "type": "action", "name": name });
    let own = json!({
        "mode": "react", "objective": "Settle it.", "tools": [tool("tool_a"), tool("tool_b")],
        "model": "gpt-4", "max_iterations": 10, "timeout_ms": 300_000, "temperature": 0.7,
        "on_stuck": { "iterations": 3, "action": "escalate" },
        "include_reasoning_trace": true, "result_key": "agentResult"
    });
    place.json("loop.json", &json!({ "type": "loop", "properties": with(own, properties) }));
    let action = |name: &str| {
        let parameters = json!({ "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } } });
        web(name, &format!("https://tools.example.com/{name}"), parameters)
    };
    place.json("actions/all.json", &json!([action("tool_a"), action("tool_b")]));
    place.json(
        "script.json",
        &json!({ "replies": replies, "tools": { "tool_a": [{ "a": 1 }], "tool_b": [{ "b": 2 }] } }),
    );
    place
}

fn call(name: &str, n: u64) -> Value {
    think(name, json!({ "n": n }))
}

#[test]
fn hyphen_runs_the_configuration_of_its_page_as_it_stands() {
    let place = page(json!({}), &[call("tool_a", 1), call("tool_b", 2), complete(json!("settled"))]);
    let checked = place.call(&["check", "loop.json"]);
    assert_eq!(checked.code, 0, "{checked:#?}");
    let (ran, result) = place.run(&["--store", "memory"]);
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("settled")), "{ran:#?}");
    assert_eq!((&result["result_key"], &result["result"]["confidence"]), (&json!("agentResult"), &json!(1.0)));
    assert_eq!(
        (&result["trace"][0]["observation"], &result["trace"][1]["action"]),
        (&json!({ "a": 1 }), &json!("tool_b"))
    );
}

#[test]
fn hyphen_ends_by_the_termination_table_of_its_page() {
    let same = || vec![call("tool_a", 1); 4];
    let fail = json!({ "on_stuck": { "iterations": 3, "action": "fail" } });
    let slow = json!({ "delay_ms": 600_000, "text": "too late" });
    let ask = think("__pause_for_human__", json!({ "question": "Which?" }));
    let rows = [
        (json!({}), vec![complete(json!("settled"))], "completed", "complete"),
        (json!({ "max_iterations": 2 }), vec![call("tool_a", 1), call("tool_b", 2)], "failed", "max_iterations"),
        (json!({ "timeout_ms": 200 }), vec![slow], "failed", "timeout"),
        (json!({}), vec![ask], "paused", "human"),
        (fail, same(), "failed", "stuck"),
        (json!({}), same(), "paused", "stuck"),
    ];
    for (properties, replies, status, termination) in rows {
        let (ran, result) = page(properties, &replies).run(&[]);
        assert_eq!((&result["status"], &result["termination"]), (&json!(status), &json!(termination)), "{result:#}");
        let code = if status == "completed" { 0 } else { 1 + 2 * i32::from(status == "paused") };
        assert_eq!(ran.code, code, "{ran:#?}");
    }
}

#[test]
fn hyphen_injects_a_prior_runs_context_by_the_field_of_its_request() {
    let place = page(json!({}), &[call("tool_a", 1), complete(json!("settled"))]);
    assert_eq!(place.run(&["--run-id", "agent-1"]).0.code, 0);
    place.json("request.json", &json!({ "objective": "Tell her.", "tools": [], "previous_run_id": "agent-1" }));
    let ran = place.call(&["run", "request.json", "--script", "script.json", "--output", "json"]);
    assert_eq!(ran.json()["previous_run_id"], "agent-1", "{ran:#?}");
    let env = [("OPENAI_API_KEY", "k")];
    let shown = place.call_with(&["prompt", "request.json", "--model", "m", "--output", "human"], &env);
    assert!(shown.stdout.contains("- run = \"agent-1\"\n") && shown.stdout.contains("- answer = \"settled\"\n"));
}
