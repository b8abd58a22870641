//! The time and the budget of an item bound the loops in it, by what the item has left.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think};
use crate::run::workflows::{answer, definition, foreach, place, resume, run, steps};

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

/// A place whose model uses 1,100 tokens with each reply.
fn costly() -> Place {
    let place = place();
    let reply = json!({ "text": complete(json!("fine")).to_string(), "usage": { "input": 900, "output": 200 } });
    place.json("script.json", &json!({ "replies": [reply], "tools": { "b": [{ "n": 2 }], "c": [{ "n": 3 }] } }));
    place
}

#[test]
fn an_item_whose_budget_is_spent_begins_no_further_step_of_any_kind() {
    let settings = json!({ "item_budget": { "tokens": 1_000 }, "failure_strategy": "continue_on_error", "max_concurrency": 2,
        "collect_results": true, "result_key": "all" });
    let asks = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay?" } });
    let waits = json!({ "id": "later", "type": "wait", "properties": { "for": "1h" } });
    let inner = json!({ "id": "inner", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "two", "actions_to_execute": [{ "type": "b" }] } });
    for (id, mut step) in
        [("pay", json!({ "id": "pay", "type": "b" })), ("ok", asks), ("later", waits), ("inner", inner)]
    {
        let place = costly();
        // A step that its filter leaves out needs no budget.
        step["filter"] = json!({ "condition": { "equal": ["@one", 1] } });
        steps(&place, json!([foreach("@input.items", settings.clone(), json!([judge("judge"), step]))]));
        let (ran, result) = run(&place, json!({ "items": [1, 2] }));
        assert_eq!(ran.code, 0, "{id}: {ran:#?}");
        let all = &answer(&result)["all"];
        let error = &all[0]["error"];
        let at = format!("each.0.{id}");
        assert_eq!((&error["code"], &error["step"]), (&json!("budget"), &json!(at)), "{result:#}");
        assert_eq!(all[1]["status"], "completed", "{result:#}");
    }
}

#[test]
fn a_workflow_whose_budget_is_spent_begins_no_further_step_until_it_is_raised() {
    let place = costly();
    let budget = json!({ "tokens": 1_000 });
    let judge = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "objective": "Judge.",
        "tools": [{ "type": "action", "name": "a" }] } });
    let pay = json!({ "id": "pay", "type": "b" });
    let status_of = |result: &Value, at: &str| {
        let found = result["steps"].as_array().unwrap().iter().find(|step| step["at"] == at).cloned();
        found.map(|step| step["status"].clone())
    };
    definition(&place, json!({ "budget": budget, "actions": [judge, pay] }));
    let (ran, result) = run(&place, json!({}));
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
    assert_eq!(
        (status_of(&result, "judge"), status_of(&result, "pay")),
        (Some(json!("completed")), None),
        "{result:#}"
    );
    let (ran, result) = resume(&place, &["--budget-tokens", "100000"]);
    assert_eq!((ran.code, status_of(&result, "pay")), (0, Some(json!("completed"))), "{ran:#?}");

    // What handles the end is a step that asks no model; nothing that the last step used takes its outcome from it.
    let handled = json!({ "budget": budget, "actions": [judge, pay], "on_failure": [{ "id": "note", "type": "c" }] });
    for (more, code, note) in
        [(handled, 1, Some(json!("completed"))), (json!({ "budget": budget, "actions": [judge] }), 0, None)]
    {
        let place = costly();
        definition(&place, more);
        let (ran, result) = place.run(&["--run-id", "again"]);
        assert_eq!((ran.code, status_of(&result, "on_failure.note")), (code, note), "{ran:#?}");
    }
}
