//! Steps that run a loop or a workflow by its name: what they are given and give, what their runs ask and cost, and what is
//! wrong with them.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete, think, web, with};

/// A project with a loop `decide`, a workflow `pay` that asks, and a workflow of these steps.
fn place(definition: &Value) -> Place {
    let place = Place::new();
    let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
        "url": "https://tools.example.com/post", "parameters": { "type": "object" } });
    place.json("actions/all.json", &json!([post]));
    let verdict = json!({ "type": "object", "properties": { "verdict": { "type": "string" } } });
    place.json(
        "loops/decide.json",
        &json!({ "type": "loop", "name": "decide", "description": "Decides.",
            "input": { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] },
            "properties": { "mode": "react", "objective": "Decide {{input.id}}.", "tools": [],
                "answer_schema": verdict } }),
    );
    place.json(
        "workflows/pay.json",
        &json!({ "name": "pay", "description": "Pays.",
            "input": { "type": "object", "properties": { "amount": { "type": "number" } }, "required": ["amount"] },
            "definition": {
                "actions": [
                    { "id": "ok", "type": "PbotApproval",
                        "filter": { "condition": { "greaterThan": ["@input.amount", 100] } },
                        "properties": { "comment": "Pay {{input.amount}}?" } },
                    { "id": "post", "type": "post", "properties": { "amount": "@input.amount" } }
                ],
                "output": { "paid": "@input.amount" }
            } }),
    );
    place.json("loop.json", &json!({ "name": "claims", "definition": definition }));
    let decide = [complete(json!({ "verdict": "fair" }))];
    place.json(
        "script.json",
        &json!({ "replies": [], "loops": { "decide": decide }, "tools": { "post": [{ "done": true }] } }),
    );
    place.json("input.json", &json!({ "rows": [{ "id": 7 }, { "id": 8 }], "amount": 30 }));
    place
}

fn run(place: &Place) -> (Ran, Value) {
    place.run(&["--run-id", "r", "--input-file", "input.json"])
}

fn resume(place: &Place, how: &[&str]) -> Value {
    let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
    args.extend(how);
    let ran = place.call(&args);
    serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|_| json!({ "stderr": ran.stderr }))
}

fn trace(place: &Place, run: &str) -> Value {
    place.call(&["trace", run, "--format", "json"]).json()
}

fn pay(amount: impl Into<Value>) -> Value {
    json!({ "id": "p", "type": "workflow", "name": "pay", "properties": { "amount": amount.into() } })
}

#[test]
fn a_step_runs_a_loop_or_a_workflow_by_its_name_and_writes_what_it_answers() {
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "collect_results": true, "collect": "@decide.answer.verdict", "result_key": "all",
        "actions_to_execute": [{ "id": "d", "type": "loop", "name": "decide", "properties": { "id": "@row.id" } }] } });
    let place = place(&json!({ "actions": [each, pay("@input.amount")],
        "output": { "first": "@all.0.output", "paid": "@pay.paid" } }));
    assert_eq!(place.call(&["check"]).code, 0);
    let (ran, result) = run(&place);
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!({ "first": "fair", "paid": 30 })), "{ran:#?}");
    // Each is a run of its own, with its own documents, linked from the run above.
    let steps = &trace(&place, "r")["steps"];
    assert_eq!((&steps[1]["at"], &steps[1]["type"], &steps[1]["run_id"]), (&json!("p"), &json!("pay"), &json!("r.p")));
    assert_eq!(trace(&place, "r.p")["steps"][1]["at"], "post");
    assert!(place.call(&["trace", "r.each.1.d"]).stdout.contains("Decide 8."));
    let text = place.call(&["trace", "r"]).stdout;
    assert!(text.contains("p: pay") && text.contains("run r.p"), "{text}");
    let page = place.call(&["trace", "r", "--format", "html"]).stdout;
    assert!(page.contains("r.p"), "the page has a link to the run");
}

#[test]
fn the_key_is_that_of_the_step_else_the_result_key_of_the_loop_else_the_name() {
    let place = place(&json!({ "actions": [
        { "type": "loop", "name": "keyed" },
        { "type": "loop", "name": "keyed", "outputKey": "own" },
        { "type": "loop", "name": "list" }
    ], "output": { "keyed": "@verdict.answer", "own": "@own.answer", "list": "@list.0.status" } }));
    let react = json!({ "mode": "react", "objective": "Say.", "tools": [], "result_key": "verdict" });
    place.json(
        "loops/keyed.json",
        &json!({ "type": "loop", "name": "keyed", "description": "Says.", "properties": react }),
    );
    let foreach = json!({ "mode": "foreach", "items_path": "doc:rows", "item_variable_name": "row", "collect_results": true,
        "actions_to_execute": [{ "type": "post", "properties": { "id": "@row.id" } }] });
    place.json(
        "loops/list.json",
        &json!({ "type": "loop", "name": "list", "description": "Goes.", "properties": foreach }),
    );
    place.json("loopctl.json", &json!({ "documents": { "rows": "rows.json" } }));
    place.json("rows.json", &json!([{ "id": 1 }]));
    place.json(
        "script.json",
        &json!({ "replies": [], "loops": { "keyed": [complete(json!("yes"))] }, "tools": { "post": [{}] } }),
    );
    let (ran, result) = run(&place);
    assert_eq!(
        (ran.code, &result["result"]["answer"]),
        (0, &json!({ "keyed": "yes", "own": "yes", "list": "completed" })),
        "{ran:#?}"
    );
}

#[test]
fn what_the_run_of_a_step_asks_is_asked_of_the_run_above_with_both_addresses() {
    let place = place(&json!({ "actions": [pay(500)], "output": "@pay.paid" }));
    let (ran, result) = run(&place);
    let step = &result["pause"]["steps"][0];
    assert_eq!((ran.code, &step["at"], &step["question"]), (3, &json!("p/ok"), &json!("Pay 500?")), "{ran:#?}");
    let view = place.call(&["trace", "r", "--at", "p", "--format", "json"]).json();
    let asked = &view["questions"][0];
    assert_eq!((&asked["at"], &asked["hash"], &view["waiting"]), (&json!("p/ok"), &step["hash"], &json!(1)), "{view}");
    assert!(step["hash"].is_string(), "{step}");
    let refused = resume(&place, &["--at", "p/ok", "--deny"]);
    assert_eq!((&refused["status"], &refused["error"]["step"]), (&json!("failed"), &json!("p")), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("the workflow `pay` ended: rejected"), "{refused}");
}

#[test]
fn a_workflow_that_failed_continues_when_its_step_runs_again() {
    let place = place(&json!({ "actions": [pay(500)], "output": "@pay.paid" }));
    let tools = |answer: Value| json!({ "replies": [], "tools": { "post": [answer] } });
    place.json("script.json", &tools(json!({ "error": "http 503" })));
    run(&place);
    let failed = resume(&place, &["--at", "p/ok", "--approve"]);
    assert_eq!((&failed["status"], &failed["error"]["step"]), (&json!("failed"), &json!("p")), "{failed}");
    place.json("script.json", &tools(json!({ "done": true })));
    // Nobody is asked again: its approval is done.
    let again = resume(&place, &["--retry-failed"]);
    assert_eq!((&again["status"], &again["result"]["answer"]), (&json!("completed"), &json!(500)), "{again}");
    assert_eq!(trace(&place, "r")["steps"][0]["run_id"], "r.p");
}

#[test]
fn a_workflow_that_a_limit_ended_continues_as_the_same_run() {
    let place =
        place(&json!({ "actions": [{ "id": "c", "type": "workflow", "name": "careful" }], "output": "@careful" }));
    let decide = |id: &str| json!({ "id": id, "type": "loop", "name": "decide", "properties": { "id": 1 } });
    let careful = |definition: Value| {
        let actions = json!([{ "id": "post", "type": "post" }, decide("one"), decide("two")]);
        let mut definition = definition;
        (definition["actions"], definition["output"]) = (actions, json!("@decide.answer.verdict"));
        place.json(
            "workflows/careful.json",
            &json!({ "name": "careful", "description": "Decides twice.", "definition": definition }),
        );
    };
    let counts = |run: &str| {
        let trace = trace(&place, run);
        let ended = trace["steps"].as_array().unwrap().iter().filter(|step| step["at"] == "post").count();
        (ended, trace["status"].clone())
    };
    // Its own budget: it is given again.
    careful(json!({ "budget": { "tokens": 10 } }));
    let (ran, result) = run(&place);
    assert_eq!((ran.code, &result["termination"], &result["error"]["step"]), (1, &json!("step_failed"), &json!("c")));
    let again = resume(&place, &["--retry-failed"]);
    assert_eq!((&again["status"], &again["result"]["answer"]), (&json!("completed"), &json!("fair")), "{again}");
    assert_eq!(counts("r.c"), (1, json!("completed")));
    assert_eq!(trace(&place, "r")["steps"][0]["run_id"], "r.c");
    assert_ne!(place.call(&["trace", "r.c.retry-1"]).code, 0, "no other run was started");

    // The budget of the run above: that one ends by it, and continues when it is raised.
    careful(json!({}));
    let claims = json!({ "budget": { "tokens": 10 }, "actions": [{ "id": "c", "type": "workflow", "name": "careful" }],
        "output": "@careful" });
    place.json("loop.json", &json!({ "name": "claims", "definition": claims }));
    let (ran, result) = place.run(&["--run-id", "b", "--input-file", "input.json"]);
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
    let raised = ["resume", "b", "--budget-tokens", "100000", "--script", "script.json", "--output", "json"];
    let raised = place.call(&raised).json();
    assert_eq!((&raised["status"], &raised["result"]["answer"]), (&json!("completed"), &json!("fair")), "{raised}");
    assert_eq!(counts("b.c"), (1, json!("completed")));
}

#[test]
fn a_workflow_that_was_cancelled_does_not_begin_again_with_its_step() {
    let place = place(&json!({ "actions": [pay(500)], "output": "@pay.paid" }));
    run(&place);
    assert_eq!(place.call(&["cancel", "r.p"]).code, 0);
    let failed = resume(&place, &["--at", "p/ok", "--approve"]);
    let again = resume(&place, &["--retry-failed"]);
    for result in [failed, again] {
        let message = result["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("the workflow `pay` ended: cancelled"), "{result}");
    }
    assert_ne!(place.call(&["trace", "r.p.retry-1"]).code, 0, "no other run was started");
}

#[test]
fn the_cancellation_and_the_budget_of_the_run_above_reach_the_run_of_a_step() {
    let place = place(&json!({ "budget": { "tokens": 10 }, "actions": [
        { "id": "d", "type": "loop", "name": "decide", "properties": { "id": 1 } },
        { "id": "e", "type": "loop", "name": "decide", "properties": { "id": 2 } }
    ] }));
    let (ran, result) = run(&place);
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
    assert!(result["usage"]["input_tokens"].as_u64().unwrap() > 10, "what the run of a step used is counted: {result}");

    place.json("loop.json", &json!({ "name": "claims", "definition": { "actions": [pay(500)] } }));
    place.run(&["--run-id", "c", "--input-file", "input.json"]);
    assert_eq!(place.call(&["cancel", "c"]).code, 0);
    assert_eq!(trace(&place, "c.p")["status"], "cancelled");
}

#[test]
fn check_names_outputs_that_no_path_reads_and_takes_any_input_where_none_is_listed() {
    let place = place(&json!({ "actions": [
        { "id": "a", "type": "workflow", "name": "now" },
        { "id": "b", "type": "workflow", "name": "pay v2" },
        { "id": "c", "type": "workflow", "name": "pay v2", "outputKey": "pay_v2", "properties": { "amount": 3 } }
    ] }));
    for (file, name) in [("now", "now"), ("pay-v2", "pay v2")] {
        let post = json!({ "type": "post", "properties": { "amount": "@input.amount" } });
        let document = json!({ "name": name, "description": "Pays.", "input": { "type": "object" },
            "definition": { "actions": [post], "output": 1 } });
        place.json(&format!("workflows/{file}.json"), &document);
    }
    let checked = place.call(&["check"]);
    let checked = checked.stdout + &checked.stderr;
    assert!(checked.contains("`@now` is the moment: a result of that name could never be read"), "{checked}");
    assert_eq!(checked.matches("give the step an `outputKey` of letters").count(), 1, "{checked}");
    assert!(!checked.contains("never uses `amount`"), "{checked}");
}

#[test]
fn an_input_that_does_not_fit_fails_the_step_before_its_run_starts() {
    let place = place(&json!({ "actions": [pay("@input.amount")] }));
    place.json("input.json", &json!({ "amount": "many" }));
    let (_, result) = run(&place);
    let error = &result["error"];
    assert_eq!((&error["code"], &error["step"]), (&json!("step_failed"), &json!("p")), "{result}");
    assert!(error["message"].as_str().unwrap().contains("does not fit the workflow `pay`"), "{error}");
    assert_ne!(place.call(&["trace", "r.p"]).code, 0, "no run was started");
}

#[test]
fn an_action_with_the_name_of_the_type_keeps_its_meaning() {
    let place =
        place(&json!({ "actions": [{ "type": "workflow", "properties": { "amount": 3 } }], "output": "@workflow" }));
    let action = json!({ "action_name": "workflow", "kind": "http", "description": "Posts.", "http_method": "POST",
        "url": "https://tools.example.com/flow", "parameters": { "type": "object" } });
    place.json("actions/flow.json", &action);
    place.json("script.json", &json!({ "replies": [], "tools": { "workflow": [{ "posted": true }] } }));
    let (ran, result) = run(&place);
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!({ "posted": true })), "{ran:#?}");
}

#[test]
fn a_scenario_plays_the_run_of_a_step_and_its_calls() {
    let place = place(&json!({ "actions": [
        { "id": "d", "type": "loop", "name": "decide", "properties": { "id": 1 } }, pay(500)
    ], "output": "@pay.paid" }));
    place.json(
        "loop.test.json",
        &json!({ "document": "loop.json", "scenarios": [{
            "name": "a human says yes",
            "input": { "rows": [], "amount": 1 },
            "loops": { "decide": [think("__log_progress__", json!({ "message": "x" })), complete(json!({ "verdict": "fair" }))] },
            "tools": { "post": [{ "done": true }] },
            "decisions": [{ "approve": true, "at": "p/ok" }],
            "expect": { "status": "completed", "answer": 500, "once": ["post"],
                "calls": [{ "action": "decide", "at": "d" }, { "action": "pay", "at": "p" }, { "action": "post", "at": "post" }],
                "steps": { "p": { "status": "completed" } } }
        }] }),
    );
    let played = place.call(&["test", "loop.test.json", "--crash"]);
    assert_eq!(played.code, 0, "{played:#?}");
}

/// The example of a section of the page about the language.
fn documented(heading: &str) -> Value {
    let page = std::fs::read_to_string("docs/language.md").unwrap();
    let section = page.split_once(&format!("\n### {heading}\n")).unwrap().1;
    let block = section.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
    serde_json::from_str(block).unwrap()
}

#[test]
fn the_example_of_the_page_runs() {
    let place = place(&json!({ "actions": [] }));
    place.json("loop.json", &documented("Loops and workflows as steps"));
    let mut decide: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loops/decide.json")).unwrap()).unwrap();
    decide["name"] = "decide_row".into();
    place.json("loops/decide.json", &decide);
    let replies = json!({ "decide_row": [complete(json!({ "verdict": "fair" }))] });
    place.json("script.json", &json!({ "replies": [], "loops": replies, "tools": { "post": [{}] } }));
    place.json("input.json", &json!({ "id": 7, "amount": 30 }));
    let checked = place.call(&["check"]);
    assert!(checked.code == 0 && checked.stderr.starts_with("no errors or warnings"), "{checked:#?}");
    let (ran, result) = run(&place);
    let answer = json!({ "verdict": "fair", "paid": 30, "other_run": "r.2" });
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &answer), "{ran:#?}");
}

#[test]
fn a_workflow_that_runs_another_one_needs_no_model_where_neither_asks_one() {
    for wait in [json!({}), json!({ "wait": false })] {
        let step = json!({ "type": "workflow", "name": "pay", "properties": { "amount": 7 } });
        let place = place(&json!({ "actions": [with(step, wait)] }));
        // A tool that is on this machine, in place of the script's.
        let post = json!({ "action_name": "post", "kind": "command", "description": "Posts.", "program": "true",
            "parameters": { "type": "object", "properties": { "amount": {} } } });
        place.json("actions/all.json", &json!([post]));
        place.json("loopctl.json", &json!({ "allow": { "commands": ["true"] } }));
        std::fs::remove_file(place.path().join("loops/decide.json")).expect("it is there");
        let checked = place.call(&["check", "loop.json"]);
        assert_eq!(checked.code, 0, "{checked:#?}");
        let ran = place.call(&["run", "loop.json", "--input-file", "input.json", "--output", "json"]);
        assert_eq!((ran.code, ran.json()["status"].clone()), (0, json!("completed")), "{ran:#?}");
    }
}

#[test]
fn what_the_server_answered_to_a_step_below_is_in_the_trace_of_the_caller() {
    let server = Server::with(|_, _| Answer::json(&json!({ "why": "the account is closed" })).status(422));
    let place = Place::new();
    let action = web("book", &server.url(), json!({ "http_method": "POST", "parameters": { "type": "object" } }));
    place.json("actions/all.json", &json!([action]));
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let inner =
        json!({ "name": "inner", "definition": { "actions": [{ "id": "book", "type": "book", "properties": {} }] } });
    let calls = |name: &str, called: &str| json!({ "name": name, "definition": { "actions": [{ "id": "below", "type": "workflow", "name": called, "properties": {} }] } });
    place.json("workflows/inner.json", &inner);
    place.json("workflows/middle.json", &calls("middle", "inner"));
    place.json("loop.json", &calls("outer", "middle"));
    let ran = place.call(&["run", "loop.json", "--run-id", "r", "--output", "json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let traced = place.call(&["trace", "r", "--format", "json"]).json();
    assert_eq!(traced["steps"][0]["error"]["answer"], r#"{"why":"the account is closed"}"#, "{traced:#}");
    let text = place.call(&["trace", "r"]).stdout;
    assert!(text.contains("the account is closed"), "{text}");
}

#[test]
fn failed_items_of_a_run_below_run_again_when_the_run_above_is_retried() {
    let failed = std::sync::atomic::AtomicBool::new(false);
    let server = Server::reading(move |_, request| {
        let fails = request.json()["id"] == 8 && !failed.swap(true, std::sync::atomic::Ordering::SeqCst);
        Answer::json("{\"done\": true}").status(if fails { 400 } else { 200 })
    });
    let place = place(&json!({ "actions": [
        { "type": "workflow", "name": "mid", "properties": { "rows": "@input.rows" } },
        { "type": "post", "properties": { "id": 1 }, "outputKey": "after" } ],
        "output": { "counts": "@mid.counts", "after": "@after.done" } }));
    let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
        "url": format!("{}/post", server.url()), "body": { "id": "@id" },
        "parameters": { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] } });
    place.json("actions/all.json", &json!([post]));
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let rows = json!({ "type": "array", "items": { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] } });
    let input = json!({ "type": "object", "properties": { "rows": rows }, "required": ["rows"] });
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "failure_strategy": "continue_on_error", "summary_key": "counts",
        "actions_to_execute": [{ "type": "post", "properties": { "id": "@row.id" } }] } });
    let batch = json!({ "name": "batch", "description": "Posts all.", "input": input,
        "definition": { "actions": [each], "output": { "counts": "@counts" } } });
    let below = json!({ "type": "workflow", "name": "batch", "properties": { "rows": "@input.rows" } });
    let mid = json!({ "name": "mid", "description": "Posts all.", "input": input,
        "definition": { "actions": [below], "output": { "counts": "@batch.counts" } } });
    place.json("workflows/batch.json", &batch);
    place.json("workflows/mid.json", &mid);
    let ran = place.call(&["run", "loop.json", "--run-id", "r", "--input-file", "input.json", "--output", "json"]);
    let counts = |result: &Value| result["result"]["answer"]["counts"]["completed"].clone();
    assert_eq!((ran.code, counts(&ran.json())), (0, json!(1)), "{ran:#?}");
    let retried = place.call(&["retry", "r", "--output", "json"]);
    assert_eq!((retried.code, counts(&retried.json())), (0, json!(2)), "{retried:#?}");
    assert_eq!(retried.json()["result"]["answer"]["after"], true, "{retried:#?}");
    let sent: Vec<Value> = server.requests().iter().map(|request| request.json()["id"].clone()).collect();
    assert_eq!(sent.iter().filter(|id| **id == json!(8)).count(), 2, "only what failed was sent again: {sent:?}");
    assert_eq!(sent.len(), 4, "{sent:?}");
    let steps = trace(&place, "r")["steps"].as_array().unwrap().len();
    assert_eq!(steps, 2, "a step that ran again has one record");
    let done = place.call(&["retry", "r"]);
    assert!(done.code == 2 && done.stderr.contains("nothing to retry"), "{done:#?}");
}
