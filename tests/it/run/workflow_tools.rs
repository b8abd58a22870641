//! Workflows that are tools of a loop: what they take, answer, ask and cost, and the runs that nobody waits for.

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, observed, think, with};

/// A loop `loop.json` whose tool is the workflow `refund` of these steps. The script answers for the action `pay`.
pub fn place(definition: Value, tool: Value) -> Place {
    let place = Place::new();
    let pay = json!({ "action_name": "pay", "kind": "http", "description": "Pays.", "http_method": "POST",
        "url": "https://tools.example.com/pay", "parameters": { "type": "object" } });
    place.json("actions/all.json", &json!([pay]));
    workflow(&place, definition);
    let tool = with(json!({ "type": "workflow", "name": "refund" }), tool);
    let properties = json!({ "mode": "react", "objective": "Settle {{input.order}}.", "tools": [tool] });
    place.json("loop.json", &json!({ "type": "loop", "name": "boss", "properties": properties }));
    place.json("input.json", &json!({ "order": "A-1" }));
    place
}

fn workflow(place: &Place, definition: Value) {
    place.json(
        "workflows/refund.json",
        &json!({ "id": "wfl-7", "name": "refund", "description": "Pays back.", "definition": definition }),
    );
}

pub fn script(place: &Place, boss: &[Value]) {
    let tools = json!({ "pay": [{ "paid": 5 }] });
    let found = json!({ "judge": [complete(json!("fair"))] });
    place.json("script.json", &json!({ "replies": boss, "loops": found, "tools": tools }));
}

pub fn pays(input: Value) -> Value {
    json!({ "id": "pay", "type": "pay", "properties": input })
}

fn approves(id: &str) -> Value {
    json!({ "id": id, "type": "PbotApproval", "properties": { "comment": "Pay {{input.order_id}}?" } })
}

pub fn run(place: &Place) -> (Ran, Value) {
    place.run(&["--run-id", "r", "--input-file", "input.json"])
}

fn resume(place: &Place, how: &[&str]) -> (Ran, Value) {
    let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
    args.extend(how);
    let ran = place.call(&args);
    let value = serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|_| json!({ "stderr": ran.stderr }));
    (ran, value)
}

fn trace(place: &Place, run: &str) -> Value {
    place.call(&["trace", run, "--format", "json"]).json()
}

fn asked_at(result: &Value) -> Vec<&str> {
    let steps = result["pause"]["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().map(|step| step["at"].as_str().unwrap()).collect()
}

#[test]
fn the_output_of_the_workflow_is_the_observation_and_its_run_is_a_sub_run() {
    for tool in [json!({}), json!({ "name": null, "id": "wfl-7" })] {
        let place = place(
            json!({ "actions": [pays(json!({ "order": "@input.order_id" }))], "output": { "paid": "@pay.paid" } }),
            tool,
        );
        script(&place, &[think("refund", json!({ "order_id": "A-1" })), complete(json!("done"))]);
        let (ran, result) = run(&place);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(result["trace"][0]["action"], "refund");
        assert_eq!(result["trace"][0]["observation"], json!({ "paid": 5 }));
        assert_eq!(result["trace"][0]["run_id"], "r.1.0");
        let below = trace(&place, "r.1.0");
        assert_eq!((&below["status"], &below["steps"][0]["at"]), (&json!("completed"), &json!("pay")));
        let text = place.call(&["trace", "r"]).stdout;
        assert!(text.contains("r.1.0"), "{text}");
        let page = place.call(&["trace", "r", "--format", "html"]).stdout;
        assert!(page.contains("r.1.0"), "{page}");
    }
}

#[test]
fn without_an_input_schema_a_workflow_takes_the_names_that_it_uses() {
    let steps = json!([
        pays(json!({ "order": "@input.order_id", "note": "{{#if input.note}}{{input.note}}{{/if}}" })),
        with(
            pays(json!({ "to": "@input.account" })),
            json!({ "id": "again",
            "filter": { "condition": { "hasKey": "input.account" } } })
        ),
    ]);
    let place = place(json!({ "actions": steps }), json!({}));
    // The order is needed by a step that always runs; `account` and `note` are not, and `nope` is not taken.
    for (input, refused) in [
        (json!({}), Some("order_id")),
        (json!({ "order_id": "A-1", "nope": 1 }), Some("nope")),
        (json!({ "order_id": "A-1", "account": "x", "note": "n" }), None),
        (json!({ "order_id": "A-1" }), None),
    ] {
        script(&place, &[think("refund", input.clone()), complete(json!("done"))]);
        let ran = place.run(&["--input-file", "input.json"]).1;
        match refused {
            Some(name) => assert!(observed(&ran["trace"][0]).contains(name), "{input}: {ran:#}"),
            None => assert_eq!(ran["trace"][0]["success"], true, "{input}: {ran:#}"),
        }
    }
}

#[test]
fn a_workflow_that_fails_is_an_observation_and_one_that_does_not_apply_says_so() {
    let place = place(json!({ "actions": [pays(json!({ "order": "@input.order_id.no" }))] }), json!({}));
    script(&place, &[think("refund", json!({ "order_id": "A-1" })), complete(json!("without"))]);
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(observed(&result["trace"][0]), "Error: the workflow `refund` ended: step_failed");
    let condition = json!({ "condition": { "greaterThan": ["@input.amount", 10] }, "actions": [pays(json!({}))] });
    let place = self::place(condition, json!({}));
    script(&place, &[think("refund", json!({ "amount": 1 })), complete(json!("none"))]);
    let (_, result) = run(&place);
    assert_eq!(result["trace"][0]["observation"], json!({ "status": "condition_not_met" }));
}

#[test]
fn several_questions_of_the_workflow_are_passed_up_with_their_addresses_and_decided_one_by_one() {
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "one", "max_concurrency": 3, "collect_results": true, "result_key": "all",
        "collect": "@__approved",
        "actions_to_execute": [{ "id": "ask", "type": "PbotApproval",
            "properties": { "comment": "Pay {{one}}?", "on_rejected": "go_on" } }] } });
    let form = json!({ "id": "form", "type": "PbotForm", "properties": { "expected_keys": ["reason"] } });
    let place = place(json!({ "actions": [each, form], "output": { "all": "@all", "why": "@reason" } }), json!({}));
    script(&place, &[think("refund", json!({ "items": ["a", "b"] })), complete(json!("done"))]);
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(asked_at(&result), ["each.0.ask", "each.1.ask"], "{result:#}");
    let asked = &result["pause"]["steps"][0];
    assert_eq!((&asked["question"], &asked["run_id"]), (&json!("Pay a?"), &json!("r.1.0")));
    let shown = place.call(&["trace", "r"]).stdout;
    assert!(shown.contains("The step each.0.ask needs an approval"), "{shown}");

    assert!(resume(&place, &["--approve"]).0.stderr.contains("each.0.ask, each.1.ask"));
    assert!(resume(&place, &["--approve", "--at", "each.7.ask"]).0.stderr.contains("no step waits"));
    assert_eq!(resume(&place, &["--answer", "x", "--at", "each.0.ask"]).0.code, 2, "it is an approval");
    let direct = place.call(&["resume", "r.1.0", "--approve", "--at", "each.0.ask", "--script", "script.json"]);
    assert!(direct.stderr.contains("called by run r"), "{}", direct.stderr);
    let hash = asked["hash"].as_str().unwrap();
    let (_, result) = resume(&place, &["--approve", "--if", hash]);
    assert_eq!(asked_at(&result), ["each.1.ask"], "{result:#}");
    let (_, result) = resume(&place, &["--deny", "--at", "each.1.ask"]);
    assert_eq!((asked_at(&result), &result["pause"]["steps"][0]["expected_keys"]), (vec!["form"], &json!(["reason"])));
    let (ran, result) = resume(&place, &["--at", "form", "--answer", r#"{"reason": "late"}"#]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let gave = &result["trace"][0]["observation"];
    assert_eq!(gave["why"], "late");
    assert_eq!(gave["all"].as_array().unwrap().iter().map(|item| &item["output"]).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn the_question_of_a_workflow_below_a_workflow_has_the_address_of_both() {
    let judge = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "objective": "Settle it.",
        "tools": [{ "type": "workflow", "name": "refund" }], "result_key": "found" } });
    let place = place(json!({ "actions": [approves("first"), approves("second")] }), json!({}));
    place.json(
        "loop.json",
        &json!({ "name": "outer", "definition": { "actions": [judge], "output": "@found.answer" } }),
    );
    place.json(
        "script.json",
        &json!({ "replies": [], "loops": { "judge": [think("refund", json!({ "order_id": "A" })), complete(json!("ok"))] } }),
    );
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(asked_at(&result), ["judge/first"]);
    assert_eq!(result["pause"]["steps"][0]["run_id"], "r.judge.1.0");
    let (_, result) = resume(&place, &["--approve", "--at", "judge/first"]);
    assert_eq!(asked_at(&result), ["judge/second"]);
    let (ran, result) = resume(&place, &["--approve"]);
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("ok")), "{ran:#?}");
}

#[test]
fn cancelling_the_run_ends_the_workflow_that_it_called() {
    let place = place(json!({ "actions": [approves("ask")] }), json!({}));
    script(&place, &[think("refund", json!({ "order_id": "A-1" }))]);
    assert_eq!(run(&place).0.code, 3);
    assert_eq!(place.call(&["cancel", "r"]).code, 0);
    assert_eq!(trace(&place, "r.1.0")["status"], "cancelled");
}

#[test]
fn a_call_that_does_not_wait_gives_the_run_which_is_one_of_its_own() {
    let definition = json!({ "actions": [pays(json!({ "order": "@input.order_id" }))] });
    let place = place(definition, json!({ "wait": false }));
    script(&place, &[think("refund", json!({ "order_id": "A-1" })), complete(json!("started"))]);
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], json!({ "run_id": "r.1.0", "status": "running" }));
    assert!(ran.stderr.contains("run r.1.0 completed"), "{}", ran.stderr);
    let own = trace(&place, "r.1.0");
    assert_eq!((&own["status"], &own["steps"][0]["status"]), (&json!("completed"), &json!("completed")), "{own:#}");
    assert_eq!(own["started_by"], "r");
    let runs = place.call(&["runs", "--output", "json"]).json();
    assert_eq!(runs.as_array().unwrap().len(), 2, "it is listed like any other: {runs:#}");

    // It waits for a human by itself, and is resumed by itself.
    let place = self::place(json!({ "actions": [approves("ask"), pays(json!({}))] }), json!({ "wait": false }));
    script(&place, &[think("refund", json!({ "order_id": "A-1" })), complete(json!("started"))]);
    let (ran, _) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stderr.contains("run r.1.0 waits for a human"), "{}", ran.stderr);
    let ran = place.call(&["resume", "r.1.0", "--approve", "--script", "script.json", "--output", "json"]);
    assert_eq!((ran.code, &ran.json()["status"]), (0, &json!("completed")), "{ran:#?}");
}

#[test]
fn a_workflow_that_a_loop_calls_spends_of_the_budget_of_that_loop() {
    let judge = json!({ "id": "judge", "type": "loop",
        "properties": { "mode": "react", "objective": "Judge.", "tools": [], "result_key": "found" } });
    let place = place(json!({ "actions": [judge], "output": "@found.answer" }), json!({}));
    script(&place, &[think("refund", json!({})), complete(json!("done"))]);
    let (ran, result) = run(&place);
    assert_eq!((ran.code, &result["trace"][0]["observation"]), (0, &json!("fair")), "{ran:#?}");
    let tokens = |result: &Value| result["usage"]["input_tokens"].as_u64().unwrap();
    let (below, step) = (trace(&place, "r.1.0"), trace(&place, "r.1.0.judge"));
    assert_eq!(tokens(&below), tokens(&step));
    assert!(tokens(&result) > tokens(&below) && tokens(&below) > 0);
}

#[test]
fn the_old_way_to_call_a_workflow_calls_the_tool_that_it_is() {
    let place = place(json!({ "actions": [pays(json!({ "order": "@input.order_id" }))] }), json!({}));
    let old = |named: Value| with(named, json!({ "input": { "order_id": "A-1" } }));
    let named = [
        json!({ "workflow_name": "refund" }),
        json!({ "workflow_name": "other" }),
        json!({ "workflow_id": "wfl-7" }),
        json!({ "workflow_id": "wfl-8" }),
        json!({ "workflow_id": "wfl-7", "workflow_name": "other" }),
    ];
    let replies = named.map(|named| think("__run_workflow__", old(named)));
    script(&place, &[&replies[..], &[complete(json!("done"))]].concat());
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!((&result["trace"][0]["action"], &result["trace"][0]["run_id"]), (&json!("refund"), &json!("r.1.0")));
    assert_eq!((&result["trace"][2]["action"], &result["trace"][2]["run_id"]), (&json!("refund"), &json!("r.3.0")));
    for refused in [1, 3, 4] {
        assert!(observed(&result["trace"][refused]).contains("call one by its name: refund"), "{result:#}");
    }
}
