//! Workflows through the binary: the order of steps, values, conditions, loops of mode `foreach`, and their failures.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, Ran, complete};
use crate::run::signals::{signal, wait_for_line};

/// A place with the actions `a`, `b` and `c`, which a script answers for.
pub fn place() -> Place {
    let place = Place::new();
    let action = |name: &str| {
        json!({ "action_name": name, "kind": "http", "description": "Does.", "http_method": "POST",
            "url": format!("https://tools.example.com/{name}"), "parameters": { "type": "object" } })
    };
    place.json("actions/all.json", &json!([action("a"), action("b"), action("c")]));
    script(&place, json!({ "a": [{ "n": 1 }], "b": [{ "n": 2 }], "c": [{ "n": 3 }] }));
    place
}

pub fn script(place: &Place, tools: Value) {
    place.json("script.json", &json!({ "replies": [complete(json!("fine"))], "tools": tools }));
}

pub fn steps(place: &Place, actions: Value) {
    definition(place, json!({ "actions": actions }));
}

pub fn definition(place: &Place, definition: Value) {
    place.json("loop.json", &json!({ "name": "w", "definition": definition }));
}

pub fn run(place: &Place, input: Value) -> (Ran, Value) {
    place.json("input.json", &input);
    place.run(&["--run-id", "r", "--input-file", "input.json"])
}

pub fn resume(place: &Place, how: &[&str]) -> (Ran, Value) {
    let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
    args.extend(how);
    let ran = place.call(&args);
    let value = serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|_| json!({ "stderr": ran.stderr }));
    (ran, value)
}

pub fn foreach(items: &str, settings: Value, actions: Value) -> Value {
    let properties = crate::common::with(
        json!({ "mode": "foreach", "items_path": items, "item_variable_name": "one", "actions_to_execute": actions }),
        settings,
    );
    json!({ "id": "each", "type": "loop", "properties": properties })
}

pub fn answer(result: &Value) -> &Value {
    &result["result"]["answer"]
}

#[test]
fn steps_run_in_order_and_their_outputs_have_their_names_and_types() {
    let place = place();
    steps(&place, named_steps());
    let (ran, result) = run(&place, json!({ "n": 7, "items": [{ "id": "x" }, {}] }));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(*answer(&result), json!({ "a": { "n": 1 }, "second": { "n": 2 }, "c": { "n": 3 } }));
    let steps = result["steps"].as_array().unwrap();
    let brief = |step: &Value| format!("{} {} {}", step["at"], step["type"], step["status"]).replace('"', "");
    assert_eq!(steps.iter().map(brief).collect::<Vec<_>>(), ["0 a completed", "1 b completed", "2 c completed"]);
}

fn named_steps() -> Value {
    json!([
        { "type": "a", "properties": { "all": "@input", "text": "{{input.n}} of @x", "list": ["@input.n"] } },
        { "type": "b", "properties": { "before": "@a", "step": "@__step" }, "outputKey": "second" },
        { "type": "c", "properties": { "length": "@input.items.length", "first": "@input.items.0.id" } },
    ])
}

#[test]
fn a_step_without_properties_calls_its_action_with_nothing() {
    let place = place();
    steps(&place, json!([{ "type": "a" }, { "type": "b", "properties": { "before": "@a.n" } }]));
    let (ran, result) = run(&place, json!({}));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(*answer(&result), json!({ "a": { "n": 1 }, "b": { "n": 2 } }));
}

#[test]
fn the_start_of_a_step_shows_the_input_that_its_texts_give() {
    let place = place();
    steps(&place, named_steps());
    place.json("input.json", &json!({ "n": 7, "items": [{ "id": "x" }, {}] }));
    let args = ["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--input-file", "input.json"];
    let lines = place.call(&args);
    let events: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let started = |at: &str| events.iter().find(|event| event["event"] == "step_started" && event["at"] == at).unwrap();
    assert_eq!(started("0")["action_input"]["text"], "7 of @x");
    assert_eq!(started("0")["action_input"]["list"], json!([7]));
    assert_eq!(started("1")["action_input"], json!({ "before": { "n": 1 }, "step": 1 }));
    assert_eq!(started("2")["action_input"], json!({ "length": 2, "first": "x" }));
}

#[test]
fn a_filter_leaves_a_step_out_or_lets_another_one_take_its_place() {
    let place = place();
    let large = json!({ "condition": { "greaterThan": ["@input.n", 100] } });
    steps(
        &place,
        json!([
            { "type": "a", "filter": large, "properties": {} },
            { "type": "b", "filter": large, "properties": {},
              "onFalse": { "type": "c", "filter": { "condition": { "equal": ["@a", null] } }, "properties": {} } },
        ]),
    );
    let (ran, result) = run(&place, json!({ "n": 5 }));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(*answer(&result), json!({ "c": { "n": 3 } }));
    assert_eq!(result["steps"][0]["status"], "skipped");
    assert_eq!(result["steps"][1]["at"], "1f");
    // A text that is a JSON number counts as one, and another text does not decide anything.
    let place = self::place();
    steps(&place, json!([{ "type": "a", "filter": large, "properties": {} }]));
    let (_, result) = run(&place, json!({ "n": "500" }));
    assert_eq!(*answer(&result), json!({ "a": { "n": 1 } }));
    let place = self::place();
    steps(&place, json!([{ "type": "a", "filter": large, "properties": {} }]));
    let (ran, result) = run(&place, json!({ "n": "n/a" }));
    assert_eq!((ran.code, &result["error"]["step"]), (1, &json!("0")));
    assert_eq!(result["termination"], "step_failed");
    assert!(result["error"]["message"].as_str().unwrap().contains("compares two numbers or two times"), "{result}");
}

#[test]
fn a_workflow_whose_condition_does_not_hold_runs_nothing_and_ends_well() {
    let place = place();
    let condition = json!({ "greaterThan": [{ "length": "@input.items" }, 0] });
    definition(&place, json!({ "condition": condition, "actions": [{ "type": "a", "properties": {} }] }));
    for input in [json!({ "items": [] }), json!({})] {
        place.json("input.json", &input);
        let (ran, result) = place.run(&["--input-file", "input.json"]);
        assert_eq!((ran.code, &result["termination"]), (0, &json!("condition_not_met")), "{ran:#?}");
        assert_eq!((&result["status"], result.get("steps")), (&json!("completed"), None));
    }
}

#[test]
fn a_value_that_is_missing_fails_its_step_before_the_call_and_names_the_step_that_writes_it() {
    let place = place();
    steps(
        &place,
        json!([
            { "type": "a", "filter": { "condition": { "equal": ["@input.run_a", true] } }, "properties": {} },
            { "type": "b", "properties": { "x": "@a.n" } },
        ]),
    );
    let (ran, result) = run(&place, json!({}));
    assert_eq!((ran.code, &result["error"]["code"]), (1, &json!("step_failed")));
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("`a` was not given") && message.contains("the step `0` writes it"), "{message}");
    assert_eq!(result["steps"][1]["error"]["code"], "missing_value");
    // The texts of a loop that is a step are made before its run starts.
    for (texts, lacks) in [
        (json!({ "objective": "Look at {{a.n}}." }), "`a` was not given; the step `0` writes it, and has not run"),
        (
            json!({ "objective": "Look.", "system_prompt": "{{objective}} {{#if input.k}}{{input.k.l}}{{/if}}" }),
            "has no `l`",
        ),
    ] {
        let place = self::place();
        let react = crate::common::with(json!({ "mode": "react", "result_key": "found", "tools": [] }), texts);
        let filter = json!({ "condition": { "equal": ["@input.run_a", true] } });
        let steps_of =
            json!([{ "type": "a", "filter": filter, "properties": {} }, { "type": "loop", "properties": react }]);
        steps(&place, steps_of);
        let (ran, result) = run(&place, json!({ "k": { "m": 1 } }));
        assert_eq!((ran.code, &result["steps"][1]["error"]["code"]), (1, &json!("missing_value")), "{ran:#?}");
        assert!(result["error"]["message"].as_str().unwrap().contains(lacks), "{result}");
        assert_eq!(place.call(&["trace", "r.1"]).code, 2, "no run was started");
    }
    // In the output it is null.
    let place = self::place();
    definition(
        &place,
        json!({ "output": { "a": "@a.n", "b": "@b.n" }, "actions": [
        { "type": "a", "filter": { "condition": { "hasKey": "input.x" } }, "properties": {} },
        { "type": "b", "properties": {} }] }),
    );
    let (_, result) = run(&place, json!({}));
    assert_eq!(*answer(&result), json!({ "a": null, "b": 2 }));
}

#[test]
fn items_have_results_in_their_order_and_no_item_sees_the_keys_of_another() {
    let look = json!([
        { "type": "a", "filter": { "condition": { "equal": ["@one.kind", "x"] } }, "properties": {}, "outputKey": "own" },
        { "type": "b", "properties": { "own": "@one.id", "seen": "@__index", "of": "@__count" },
          "filter": { "condition": { "not": { "equal": ["@one.id", 2] } } } },
    ]);
    let input = json!({ "items": [{ "id": 0, "kind": "x" }, { "id": 1 }, { "id": 2 }, { "id": 3, "kind": "x" }] });
    let mut results = Vec::new();
    for concurrency in [1, 7] {
        let place = place();
        let settings = json!({ "max_concurrency": concurrency, "collect_results": true, "result_key": "all",
            "collect": "@own.n", "summary_key": "counts" });
        definition(&place, json!({ "actions": [foreach("@input.items", settings, look.clone())] }));
        let (ran, result) = run(&place, input.clone());
        assert_eq!(ran.code, 0, "{ran:#?}");
        results.push(answer(&result).clone());
    }
    assert_eq!(results[0], results[1]);
    let item = |index: u32, output: Value| json!({ "index": index, "status": "completed", "output": output });
    let skipped = json!({ "index": 2, "status": "skipped" });
    assert_eq!(results[0]["all"], json!([item(0, json!(1)), item(1, json!(null)), skipped, item(3, json!(1))]));
    assert_eq!(results[0]["counts"]["skipped"], 1);
    // The keys of the last item in order that wrote them; the item itself is no key.
    assert_eq!(results[0]["own"], json!({ "n": 1 }));
    assert!(results[0].get("one").is_none() && results[0].get("item").is_none());
}

#[test]
fn a_failing_item_stops_the_loop_or_is_noted_and_successes_are_kept() {
    let tools = json!({ "a": [{ "n": 1 }, { "error": "it is down" }, { "n": 3 }] });
    let actions = json!([{ "id": "call", "type": "a", "properties": { "id": "@one" } }]);
    let settings = |more: Value| {
        crate::common::with(json!({ "collect_results": true, "result_key": "all", "summary_key": "counts" }), more)
    };
    let place = self::place();
    script(&place, tools.clone());
    steps(&place, json!([foreach("@input.items", settings(json!({})), actions.clone())]));
    let (ran, result) = run(&place, json!({ "items": ["x", "y", "z"] }));
    assert_eq!((ran.code, &result["error"]["step"]), (1, &json!("each.1.call")));
    assert!(result["error"]["message"].as_str().unwrap().contains("item 1 failed"), "{result}");
    assert_eq!(
        result["steps"][0]["items"],
        json!({ "total": 3, "completed": 1, "failed": 1, "skipped": 0,
        "cancelled": 1, "failed_indexes": [1] })
    );
    let place = self::place();
    script(&place, tools);
    let going_on = settings(json!({ "failure_strategy": "continue_on_error" }));
    steps(&place, json!([foreach("@input.items", going_on, actions.clone())]));
    let (ran, result) = run(&place, json!({ "items": ["x", "y", "z"] }));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let all = answer(&result)["all"].as_array().unwrap();
    assert_eq!(
        (&all[0]["output"], &all[1]["status"], &all[2]["output"]),
        (&json!({ "n": 1 }), &json!("failed"), &json!({ "n": 3 }))
    );
    assert_eq!(all[1]["error"]["step"], "each.1.call");
    let place = self::place();
    script(&place, json!({ "a": [{ "error": "down" }] }));
    let few = settings(json!({ "failure_strategy": "continue_on_error", "max_failures": 1 }));
    steps(&place, json!([foreach("@input.items", few, actions)]));
    let (ran, result) = run(&place, json!({ "items": ["x", "y", "z", "w"] }));
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert_eq!(result["steps"][0]["error"]["code"], "too_many_failures");
    assert_eq!(result["steps"][0]["items"]["cancelled"], 2);
}

#[test]
fn what_is_no_list_or_too_long_fails_before_the_first_item() {
    let actions = json!([{ "type": "a", "properties": {} }]);
    for (input, settings, code) in [
        (json!({ "items": "x" }), json!({}), "not_a_list"),
        (json!({}), json!({}), "missing_value"),
        (json!({ "items": [1, 2, 3] }), json!({ "max_items": 2 }), "too_many_items"),
    ] {
        let place = place();
        steps(&place, json!([foreach("@input.items", settings, actions.clone())]));
        let (ran, result) = run(&place, input);
        assert_eq!((ran.code, &result["steps"][0]["error"]["code"]), (1, &json!(code)), "{ran:#?}");
    }
    let place = place();
    let settings = json!({ "collect_results": true, "result_key": "all" });
    steps(&place, json!([foreach("@input.items", settings, actions)]));
    let (_, result) = run(&place, json!({ "items": [] }));
    assert_eq!(*answer(&result), json!({ "all": [] }));
}

#[test]
fn max_items_counts_the_items_of_the_loops_inside_and_stops_the_loop() {
    let inner = json!({ "id": "inner", "type": "loop", "properties": { "mode": "foreach", "items_path": "@one.list",
        "item_variable_name": "two", "failure_strategy": "continue_on_error", "summary_key": "inner_counts",
        "actions_to_execute": [{ "type": "a", "properties": {} }] } });
    let input = json!({ "items": [{ "list": [1, 2] }, { "list": [3, 4, 5] }, { "list": [] }] });
    for (most, code) in [(8, 0), (7, 1)] {
        let place = place();
        let settings = json!({ "max_items": most, "failure_strategy": "continue_on_error", "summary_key": "counts" });
        steps(&place, json!([foreach("@input.items", settings, json!([inner]))]));
        let (ran, result) = run(&place, input.clone());
        assert_eq!(ran.code, code, "{ran:#?}");
        if code == 1 {
            assert_eq!(result["steps"][0]["error"]["code"], "too_many_items");
            assert_eq!(result["error"]["step"], "each.1.inner");
            assert_eq!(result["steps"][0]["items"]["cancelled"], 1);
        }
    }
}

#[test]
fn a_react_step_is_a_run_of_its_own_with_the_names_that_its_texts_use() {
    let place = place();
    let react = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "tools": [],
        "objective": "Judge {{one.id}} of {{input.who}}.", "result_key": "finding" } });
    let settings = json!({ "collect_results": true, "result_key": "all", "max_concurrency": 2 });
    steps(&place, json!([foreach("@input.items", settings, json!([react]))]));
    let (ran, result) = run(&place, json!({ "items": [{ "id": "A" }, { "id": "B" }], "who": "us", "more": "unused" }));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let output = json!({ "answer": "fine", "confidence": 1 });
    assert_eq!(answer(&result)["all"][1]["output"]["answer"], output["answer"]);
    let trace = place.call(&["trace", "r.each.1.judge", "--format", "text"]);
    assert!(trace.stdout.contains("Judge B of us."), "{trace:#?}");
    let runs = place.call(&["runs", "--output", "json"]).json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "the runs of steps are listed under it: {runs}");
}

#[test]
fn a_loop_document_of_mode_foreach_answers_with_what_it_gathers() {
    let place = place();
    let mut document =
        foreach("@input.items", json!({ "collect_results": true }), json!([{ "type": "a", "properties": {} }]));
    document["name"] = json!("batch");
    document.as_object_mut().unwrap().remove("id");
    place.json("loop.json", &document);
    let (ran, result) = run(&place, json!({ "items": [1] }));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(*answer(&result), json!([{ "index": 0, "status": "completed", "output": { "n": 1 } }]));
    document["properties"]["collect_results"] = json!(false);
    place.json("loop.json", &document);
    let (_, result) = place.run(&["--input-file", "input.json"]);
    assert_eq!(answer(&result)["total"], 1);
}

#[test]
fn a_matcher_writes_its_three_lists() {
    let place = place();
    steps(
        &place,
        json!([{ "type": "matcher", "properties": { "left": "@input.invoices", "right": "@input.payments",
            "matchOn": ["id"], "tolerance": 0.02, "outputMatched": "paid", "outputUnmatchedLeft": "open" } },
            foreach("@open", json!({ "collect_results": true, "result_key": "all" }),
                json!([{ "type": "a", "properties": { "id": "@one.id" } }]))]),
    );
    let (ran, result) = run(
        &place,
        json!({ "invoices": [{ "id": "1", "amount": 10 }, { "id": "2", "amount": 20 }],
        "payments": [{ "id": "1", "amount": 10.01 }] }),
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(answer(&result)["paid"][0]["b"]["amount"], json!(10.01));
    assert_eq!(
        (answer(&result)["open"].as_array().unwrap().len(), answer(&result)["all"].as_array().unwrap().len()),
        (1, 1)
    );
    assert_eq!(answer(&result)["unmatchedRight"], json!([]));
}

#[test]
fn a_budget_lets_steps_that_ask_models_run_one_after_the_other_and_ends_the_run_when_it_is_spent() {
    let place = place();
    let react = json!({ "id": "judge", "type": "loop",
        "properties": { "mode": "react", "tools": [], "objective": "Judge {{one}}.", "on_limit": "fail" } });
    let settings = json!({ "max_concurrency": 5, "failure_strategy": "continue_on_error", "summary_key": "counts" });
    definition(
        &place,
        json!({ "budget": { "tokens": 600 }, "actions": [foreach("@input.items", settings, json!([react]))] }),
    );
    let (ran, result) = run(&place, json!({ "items": [1, 2, 3, 4, 5] }));
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
    let started = place.call(&["runs", "--all", "--output", "json"]);
    let started = if started.code == 0 { started.json().as_array().map_or(0, Vec::len) } else { 0 };
    assert!(started <= 3, "the budget is enough for one or two of five: {started}");
}

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
