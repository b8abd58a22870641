//! The time and the budget of an item bound the loops in it, by what the item has left.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{complete, think};
use crate::run::workflows::{answer, foreach, place, run, steps};

fn judge(id: &str) -> Value {
    json!({ "id": id, "type": "loop", "properties": { "mode": "react", "objective": "Judge {{one}}.",
        "tools": [{ "type": "action", "name": "a" }] } })
}

#[test]
fn a_loop_in_an_item_may_spend_what_the_item_has_left() {
    let place = place();
    let reply = think("a", json!({}));
    place.json("script.json", &json!({ "replies": [reply, complete(json!("fine"))], "tools": { "a": [{ "n": 1 }] } }));
    let each = |settings: Value| {
        let settings = crate::common::with(settings, json!({ "collect_results": true, "result_key": "all" }));
        // The second one is in a loop of its own: the budget is that of the item around it.
        let inner = json!({ "id": "inner", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
            "item_variable_name": "two", "actions_to_execute": [judge("second")] } });
        json!([foreach(
            "@input.items",
            crate::common::with(settings, json!({ "failure_strategy": "continue_on_error" })),
            json!([judge("first"), inner])
        )])
    };
    steps(&place, each(json!({})));
    assert_eq!(run(&place, json!({ "items": [1] })).0.code, 0);
    let usage = |run_id: &str| {
        let usage = &place.call(&["trace", run_id, "--format", "json"]).json()["usage"];
        usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap()
    };
    let (first, second) = (usage("r.each.0.first"), usage("r.each.0.inner.0.second"));
    assert!(first > 100 && second > 100, "{first} {second}");

    let most = first + second / 4;
    steps(&place, each(json!({ "item_budget": { "tokens": most } })));
    place.json("input.json", &json!({ "items": [1] }));
    let (ran, result) = place.run(&["--run-id", "bound", "--input-file", "input.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let item = &answer(&result)["all"][0];
    assert_eq!(item["error"]["step"], "each.0.inner.0.second", "{result:#}");
    let below = place.call(&["trace", "bound.each.0.inner.0.second", "--format", "json"]).json();
    assert_eq!(below["termination"], "budget", "{below:#}");
}

#[test]
fn a_loop_in_an_item_ends_when_the_time_of_the_item_is_over() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |_, _| Answer::openai(&complete(json!("late")).to_string()).behind(&held));
    let place = place();
    place.json("loopctl.json", &json!({ "model": "m" }));
    let settings = json!({ "item_timeout_ms": 1_500, "failure_strategy": "continue_on_error", "collect_results": true,
        "result_key": "all" });
    steps(&place, json!([foreach("@input.items", settings, json!([judge("judge")]))]));
    let url = server.url();
    let args = ["run", "loop.json", "--run-id", "r", "--output", "json", "--input", "items=[1]"];
    let ran = place.call_with(&args, &[("OPENAI_BASE_URL", &url), ("OPENAI_API_KEY", "k")]);
    gate.open();
    assert_eq!(ran.code, 0, "{ran:#?}");
    let result = ran.json();
    let item = &answer(&result)["all"][0];
    assert_eq!((&item["status"], &item["error"]["code"]), (&json!("failed"), &json!("run_failed")), "{result:#}");
    let message = item["error"]["message"].as_str().unwrap();
    assert!(message.contains("ended: timeout"), "{message}");
}
