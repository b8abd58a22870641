//! Steps that run when a workflow or an item has failed: with what is known, once for each failure, and the failure stays.

use serde_json::{Value, json};

use crate::common::{Place, Ran};

/// A workflow; the script answers for the actions `pay`, `undo` and `tell`.
fn place(definition: Value, tools: Value) -> Place {
    let place = Place::new();
    let action = |name: &str| {
        json!({ "action_name": name, "kind": "http", "description": "Does it.", "http_method": "POST",
        "url": format!("https://tools.example.com/{name}"), "parameters": { "type": "object" } })
    };
    place.json("actions/all.json", &json!([action("pay"), action("undo"), action("tell")]));
    place.json("loop.json", &json!({ "name": "claims", "definition": definition }));
    answers(&place, tools);
    place
}

fn answers(place: &Place, tools: Value) {
    place.json("script.json", &json!({ "replies": [], "tools": tools }));
}

fn run(place: &Place, input: Value) -> (Ran, Value) {
    place.json("input.json", &input);
    place.run(&["--run-id", "r", "--input-file", "input.json"])
}

fn resume(place: &Place, how: &[&str]) -> Value {
    let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
    args.extend(how);
    let ran = place.call(&args);
    serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|_| json!({ "stderr": ran.stderr }))
}

fn at(place: &Place, address: &str) -> Value {
    place.call(&["trace", "r", "--at", address, "--format", "json"]).json()["steps"][0].clone()
}

fn steps(result: &Value) -> Vec<String> {
    let all = result["steps"].as_array().into_iter().flatten();
    all.map(|step| format!("{} {}", step["at"].as_str().unwrap(), step["status"].as_str().unwrap())).collect()
}

fn step(kind: &str, properties: Value) -> Value {
    json!({ "id": kind, "type": kind, "outputKey": kind, "properties": properties })
}

const FAILS: &str = "http 500";

#[test]
fn the_steps_run_with_what_was_written_and_why_and_the_failure_stays() {
    let undo = json!({ "id": "undo", "type": "undo", "filter": { "condition": { "hasKey": "@pay.id" } },
        "properties": { "id": "@pay.id", "why": "@__error", "text": "{{__error.step}} failed" } });
    let mut never = step("undo", json!({}));
    never["id"] = "never".into();
    let place = place(
        json!({ "actions": [step("pay", json!({})), step("tell", json!({})), never], "on_failure": [undo] }),
        json!({ "pay": [{ "id": 7 }], "tell": [{ "error": FAILS }], "undo": [{ "undone": true }] }),
    );
    let (done, result) = run(&place, json!({}));
    let error = &result["error"];
    assert_eq!((done.code, &error["step"], &error["code"]), (1, &json!("tell"), &json!("step_failed")), "{done:#?}");
    assert_eq!(steps(&result), ["pay completed", "tell failed", "on_failure.undo completed"]);
    let input = &at(&place, "on_failure.undo")["input"];
    assert_eq!((&input["id"], &input["text"]), (&json!(7), &json!("tell failed")));
    let why = &input["why"];
    assert_eq!(
        (&why["step"], &why["code"], &why["retryable"]),
        (&json!("tell"), &json!("call_failed"), &json!(true)),
        "{why}"
    );
    let text = place.call(&["trace", "r"]).stdout;
    assert!(text.contains("on_failure.undo"), "{text}");
}

#[test]
fn a_failure_of_theirs_is_noted_and_hides_nothing() {
    let place = place(
        json!({ "actions": [step("pay", json!({}))], "on_failure": [step("undo", json!({})), step("tell", json!({}))] }),
        json!({ "pay": [{ "error": "http 400" }], "undo": [{ "error": FAILS }], "tell": [{}] }),
    );
    let (done, result) = run(&place, json!({}));
    assert_eq!((done.code, &result["error"]["step"]), (1, &json!("pay")), "{done:#?}");
    assert_eq!(steps(&result), ["pay failed", "on_failure.undo failed"]);
    assert!(result["error"]["message"].as_str().unwrap().contains("http 400"), "{result}");
}

#[test]
fn nothing_of_it_runs_without_a_failure_nor_after_a_cancellation() {
    let definition = json!({ "actions": [
        { "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay?", "on_rejected": "stop" } }, step("pay", json!({}))
    ], "on_failure": [step("undo", json!({}))] });
    let place = place(definition, json!({ "pay": [{}], "undo": [{}] }));
    run(&place, json!({}));
    assert_eq!(steps(&resume(&place, &["--approve"])), ["ok completed", "pay completed"]);
    place.run(&["--run-id", "c", "--input-file", "input.json"]);
    assert_eq!(place.call(&["cancel", "c"]).code, 0);
    let cancelled = place.call(&["trace", "c", "--format", "json"]).json();
    assert_eq!((&cancelled["status"], steps(&cancelled).len()), (&json!("cancelled"), 1), "{cancelled}");
    // A no is a failure.
    place.run(&["--run-id", "d", "--input-file", "input.json"]);
    let denied = place.call(&["resume", "d", "--deny", "--script", "script.json", "--output", "json"]).json();
    assert_eq!(
        (&denied["termination"], steps(&denied)),
        (&json!("rejected"), vec!["ok failed".to_owned(), "on_failure.undo completed".to_owned()])
    );
}

#[test]
fn a_run_whose_failure_was_handled_is_retried_when_that_is_said_and_each_failure_is_handled_once() {
    let place = place(
        json!({ "actions": [step("pay", json!({}))], "on_failure": [step("undo", json!({ "why": "@__error.message" }))] }),
        json!({ "pay": [{ "error": "http 400" }], "undo": [{ "undone": 1 }] }),
    );
    run(&place, json!({}));
    answers(&place, json!({ "pay": [{ "error": "http 402" }], "undo": [{ "undone": 2 }] }));
    for how in [&["resume", "r", "--retry-failed"][..], &["retry", "r"]] {
        let refused = place.call(&[how, &["--script", "script.json"]].concat());
        assert!(refused.code == 2 && refused.stderr.contains("the steps of `on_failure` have run"), "{refused:#?}");
    }
    let explained = place.call(&["explain", "r"]);
    assert!((explained.stdout + &explained.stderr).contains("--retry-failed --after-on-failure"));
    let again = resume(&place, &["--retry-failed", "--after-on-failure"]);
    assert_eq!(steps(&again), ["on_failure.undo completed", "pay failed"], "{again}");
    let second = at(&place, "on_failure.undo");
    assert_eq!(second["output"], json!({ "undone": 2 }), "{second}");
    answers(&place, json!({ "pay": [{ "paid": true }], "undo": [{ "error": "never" }] }));
    let last = resume(&place, &["--retry-failed", "--after-on-failure"]);
    assert_eq!(last["status"], "completed", "{last}");
}

#[test]
fn a_step_that_runs_again_reads_what_it_read_before_and_nothing_that_handled_its_failure() {
    // `undo` writes the key of `pay`, and what handles the failure approves what the run was denied.
    let approval = |comment: &str| json!({ "id": comment, "type": "PbotApproval", "properties": { "comment": comment, "on_rejected": "go_on" } });
    let only_if = |mut step: Value, approved: bool| {
        step["filter"] = json!({ "condition": { "equal": ["@__approved", approved] } });
        step
    };
    let mut undo = step("undo", json!({}));
    undo["outputKey"] = "pay".into();
    let denied = only_if(step("tell", json!({ "text": "{{pay.id}}" })), false);
    let mut never = only_if(step("pay", json!({})), true);
    (never["id"], never["outputKey"]) = ("never".into(), "never".into());
    let place = place(
        json!({ "actions": [step("pay", json!({})), approval("more"), denied, never],
            "on_failure": [approval("back"), only_if(undo, true)] }),
        json!({ "pay": [{ "id": "first" }], "tell": [{ "error": FAILS }] }),
    );
    run(&place, json!({}));
    resume(&place, &["--deny", "--reason", "no"]);
    answers(&place, json!({ "undo": [{ "id": "undone" }] }));
    let failed = resume(&place, &["--approve"]);
    assert_eq!(failed["status"], "failed", "{failed}");
    answers(&place, json!({ "tell": [{}] }));
    let again = resume(&place, &["--retry-failed", "--after-on-failure"]);
    assert_eq!(again["status"], "completed", "{again}");
    assert_eq!(at(&place, "tell")["input"], json!({ "text": "first" }));
    assert!(steps(&again).contains(&"never skipped".to_owned()), "{again}");
    // So does the step of an item.
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "failure_strategy": "continue_on_error",
        "actions_to_execute": [step("pay", json!({})), step("tell", json!({ "text": "{{pay.id}}" }))],
        "on_failure": [{ "id": "undo", "type": "undo", "outputKey": "pay", "properties": {} }] } });
    place.json("loop.json", &json!({ "name": "claims", "definition": { "actions": [each] } }));
    answers(&place, json!({ "pay": [{ "id": "first" }], "tell": [{ "error": FAILS }], "undo": [{ "id": "undone" }] }));
    place.json("input.json", &json!({ "rows": [1] }));
    place.run(&["--run-id", "s", "--input-file", "input.json"]);
    answers(&place, json!({ "tell": [{}] }));
    let retried = place.call(&["retry", "s", "--after-on-failure", "--script", "script.json"]);
    assert_eq!(retried.code, 0, "{retried:#?}");
    let told = place.call(&["trace", "s", "--at", "each.0.tell", "--format", "json"]).json();
    assert_eq!(told["steps"][0]["input"], json!({ "text": "first" }), "{told:#}");
}

#[test]
fn what_a_loop_leaves_behind_is_not_what_handled_the_failure_of_its_item() {
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "failure_strategy": "continue_on_error", "actions_to_execute": [step("tell", json!({}))],
        "on_failure": [{ "id": "undo", "type": "undo", "outputKey": "pay", "properties": {} }] } });
    let mut last = step("pay", json!({ "of": "{{pay.id}}" }));
    (last["id"], last["outputKey"]) = ("last".into(), "last".into());
    let place = place(
        json!({ "actions": [step("pay", json!({})), each, last] }),
        json!({ "pay": [{ "id": "first" }], "tell": [{ "error": FAILS }], "undo": [{ "id": "undone" }] }),
    );
    let (done, _) = run(&place, json!({ "rows": [1] }));
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(at(&place, "last")["input"], json!({ "of": "first" }));
}

/// The commands that are shown of a run whose failure was handled below its steps take it up as they are.
fn shows_the_word(place: &Place, run: &str, done: &Ran) {
    let shown = [done.stderr.clone(), place.call(&["explain", run]).stdout, place.call(&["trace", run]).stderr];
    for shown in shown.iter().filter(|shown| shown.contains("retry")) {
        assert!(shown.contains("--after-on-failure"), "{shown}");
    }
    assert!(shown.iter().any(|shown| shown.contains("--after-on-failure")), "{shown:#?}");
}

#[test]
fn what_handled_the_failure_of_an_item_or_of_a_step_is_not_done_again_in_silence() {
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "failure_strategy": "continue_on_error", "actions_to_execute": [step("pay", json!({}))],
        "on_failure": [step("undo", json!({}))] } });
    let tools = json!({ "pay": [{ "error": FAILS }], "undo": [{}], "tell": [{}] });
    let place = place(json!({ "actions": [each] }), tools);
    let (done, _) = run(&place, json!({ "rows": [1] }));
    assert_eq!(done.code, 0, "{done:#?}");
    answers(&place, json!({ "pay": [{ "ok": true }] }));
    shows_the_word(&place, "r", &done);
    let refused = place.call(&["retry", "r", "--script", "script.json"]);
    assert!(refused.code == 2 && refused.stderr.contains("--after-on-failure"), "{refused:#?}");
    let again = resume(&place, &["--retry-failed", "--after-on-failure"]);
    assert_eq!(again["status"], "completed", "{again}");
    // The same in a workflow that is a step.
    let below = json!({ "actions": [step("pay", json!({}))], "on_failure": [step("undo", json!({}))] });
    place.json("workflows/below.json", &json!({ "name": "below", "definition": below }));
    let calls = json!({ "actions": [{ "id": "call", "type": "workflow", "name": "below", "properties": {} }] });
    place.json("loop.json", &json!({ "name": "claims", "definition": calls }));
    answers(&place, json!({ "pay": [{ "error": FAILS }], "undo": [{}] }));
    let (done, _) = place.run(&["--run-id", "s", "--input-file", "input.json"]);
    shows_the_word(&place, "s", &done);
    answers(&place, json!({ "pay": [{ "ok": true }] }));
    let retry = |run: &str, how: &[&str]| place.call(&[&["retry", run, "--script", "script.json"], how].concat());
    let refused = retry("s", &[]);
    assert!(refused.code == 2 && refused.stderr.contains("the steps of `on_failure` have run"), "{refused:#?}");
    assert!(refused.stderr.contains("--after-on-failure"), "{refused:#?}");
    let again = retry("s", &["--after-on-failure"]);
    assert_eq!(again.code, 0, "{again:#?}");
}

#[test]
fn a_retry_that_a_run_below_refuses_does_nothing_and_starts_no_steps_for_a_failure() {
    let below =
        json!({ "actions": [step("pay", json!({ "of": "@input.row" }))], "on_failure": [step("undo", json!({}))] });
    let call = json!({ "id": "call", "type": "workflow", "name": "below", "properties": { "row": "@input.row" } });
    let of_row = json!({ "id": "call", "type": "workflow", "name": "below", "properties": { "row": "@row" } });
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "failure_strategy": "continue_on_error", "actions_to_execute": [of_row] } });
    for (actions, status) in [(json!([call]), "failed"), (json!([each]), "completed")] {
        let place =
            place(json!({ "actions": actions }), json!({ "pay": [{ "error": FAILS }], "undo": [{}], "tell": [{}] }));
        place.json("workflows/below.json", &json!({ "name": "below", "definition": below }));
        let (_, ended) = run(&place, json!({ "row": 1, "rows": [1, 2, 3] }));
        assert_eq!(ended["status"], status, "{ended}");
        // The caller gets steps for a failure.
        let definition = json!({ "actions": actions, "on_failure": [step("tell", json!({}))] });
        place.json("loop.json", &json!({ "name": "claims", "definition": definition }));
        answers(&place, json!({ "pay": [{ "ok": true }], "undo": [{}], "tell": [{}] }));
        let before = place.call(&["trace", "r", "--format", "json"]).stdout;
        let args = ["retry", "r", "--new-document", "--script", "script.json"];
        let refused = place.call(&args);
        assert!(refused.code == 2 && refused.stderr.contains("--after-on-failure"), "{refused:#?}");
        assert_eq!(place.call(&["trace", "r", "--format", "json"]).stdout, before);
        let again = place.call(&[&args[..], &["--after-on-failure", "--output", "json"]].concat());
        assert_eq!((again.code, &again.json()["status"]), (0, &json!("completed")), "{again:#?}");
        assert!(!again.stdout.contains("on_failure.tell"), "{again:#?}");
    }
}

#[test]
fn a_decision_about_a_step_for_one_failure_is_none_about_the_same_step_for_the_next() {
    let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Undo?" } });
    let place = place(
        json!({ "actions": [step("pay", json!({}))], "on_failure": [ask, step("undo", json!({}))] }),
        json!({ "pay": [{ "error": FAILS }], "undo": [{}] }),
    );
    let hash = |paused: &Value| paused["pause"]["steps"][0]["hash"].as_str().unwrap().to_owned();
    let (_, first) = run(&place, json!({}));
    assert_eq!(resume(&place, &["--approve", "--if", &hash(&first)])["status"], "failed");
    let second = resume(&place, &["--retry-failed", "--after-on-failure"]);
    assert_ne!(hash(&first), hash(&second), "{second}");
    let stale = resume(&place, &["--approve", "--if", &hash(&first)]);
    assert!(stale["stderr"].as_str().is_some_and(|said| !said.is_empty()), "{stale}");
    assert_eq!(resume(&place, &["--approve", "--if", &hash(&second)])["status"], "failed");
}

#[test]
fn a_choice_that_is_called_like_them_keeps_its_case_when_the_run_is_retried() {
    let choose = |id: &str, steps: Value| json!({ "id": id, "type": "choose", "cases": [{ "when": { "hasKey": "@input" }, "steps": steps }] });
    let route = choose("on_failure_route", json!([step("pay", json!({})), step("tell", json!({}))]));
    let place = place(
        json!({ "actions": [route], "on_failure": [choose("back", json!([step("undo", json!({}))]))] }),
        json!({ "pay": [{ "error": FAILS }], "undo": [{ "undone": 1 }] }),
    );
    let (_, failed) = run(&place, json!({}));
    assert_eq!(
        steps(&failed),
        [
            "on_failure_route completed",
            "on_failure_route.0.pay failed",
            "on_failure.back completed",
            "on_failure.back.0.undo completed"
        ],
        "{failed}"
    );
    answers(&place, json!({ "pay": [{ "ok": 1 }], "tell": [{ "told": 1 }] }));
    let done = place.call(&["retry", "r", "--after-on-failure", "--script", "script.json"]);
    assert_eq!(done.code, 0, "{done:#?}");
    for step in ["on_failure_route.0.pay", "on_failure_route.0.tell"] {
        assert_eq!(at(&place, step)["status"], "completed");
        // The choice was made before: its steps are shown all the same.
        assert!(done.stderr.contains(step), "{done:#?}");
    }
}

#[test]
fn an_item_that_fails_is_handled_with_its_own_keys_before_it_counts_as_failed() {
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "max_concurrency": 2, "failure_strategy": "continue_on_error", "summary_key": "sums",
        "collect_results": true, "result_key": "all",
        "actions_to_execute": [
            step("pay", json!({ "id": "@row.id" })),
            { "id": "check", "type": "choose", "cases": [{ "when": { "greaterThan": ["@row.amount", 10] }, "steps": [step("tell", json!({}))] }] }
        ],
        "on_failure": [step("undo", json!({ "id": "@row.id", "paid": "@pay.ok?", "why": "@__error.step" }))] } });
    let place = place(
        json!({ "actions": [each] }),
        json!({ "pay": [{ "ok": true }], "tell": [{ "error": FAILS }], "undo": [{ "undone": true }] }),
    );
    let (done, result) = run(
        &place,
        json!({ "rows": [{ "id": 1, "amount": 5 }, { "id": 2, "amount": 50 }, { "id": 3, "amount": "x" }] }),
    );
    assert_eq!((done.code, &result["result"]["answer"]["sums"]["failed_indexes"]), (0, &json!([1, 2])), "{done:#?}");
    let input = &at(&place, "each.1.on_failure.undo")["input"];
    assert_eq!(*input, json!({ "id": 2, "paid": true, "why": "each.1.check.0.tell" }));
    assert_eq!(at(&place, "each.2.on_failure.undo")["input"]["why"], "each.2.check");
    assert_eq!(at(&place, "each.0.on_failure.undo")["status"], "skipped");
    assert_eq!(result["result"]["answer"]["all"][1]["error"]["code"], "call_failed");
}

#[test]
fn a_loop_that_stops_waits_for_what_handles_its_failure_and_begins_no_other_item() {
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "actions_to_execute": [step("pay", json!({}))],
        "on_failure": [{ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Undo {{row}}?" } }, step("undo", json!({}))] } });
    let place = place(
        json!({ "actions": [each], "on_failure": [step("tell", json!({ "why": "@__error.step" }))] }),
        json!({ "pay": [{ "error": FAILS }], "undo": [{ "undone": true }], "tell": [{}] }),
    );
    let (paused, result) = run(&place, json!({ "rows": [1, 2, 3] }));
    assert_eq!((paused.code, &result["pause"]["steps"][0]["at"]), (3, &json!("each.0.on_failure.ok")), "{paused:#?}");
    let ended = resume(&place, &["--approve"]);
    assert_eq!((&ended["status"], &ended["error"]["step"]), (&json!("failed"), &json!("each.0.pay")), "{ended}");
    assert_eq!(steps(&ended), ["each failed", "on_failure.tell completed"]);
    assert_eq!(at(&place, "each.0.on_failure.undo")["status"], "completed");
    assert_eq!(at(&place, "on_failure.tell")["input"]["why"], "each.0.pay");
}

#[test]
fn a_limit_of_the_run_is_a_failure_and_a_scenario_plays_what_follows() {
    let place = place(
        json!({ "timeout_ms": 1000, "actions": [step("pay", json!({})), step("tell", json!({}))],
            "on_failure": [step("undo", json!({ "why": "@__error" }))] }),
        json!({}),
    );
    // Its second attempt comes after the time of the run.
    let action = |name: &str| {
        json!({ "action_name": name, "kind": "http", "description": "Does it.", "http_method": "POST",
        "url": format!("https://tools.example.com/{name}"), "parameters": { "type": "object" }, "idempotent": true,
        "retry": { "attempts": 2, "base_ms": 70000, "max_ms": 70000 } })
    };
    place.json("actions/all.json", &json!([action("pay"), action("undo"), action("tell")]));
    let scenario = |name: &str, pay: Value, expect: Value| {
        json!({ "name": name, "input": {},
        "tools": { "pay": pay, "tell": [{}], "undo": [{ "undone": true }] }, "expect": expect })
    };
    place.json(
        "loop.test.json",
        &json!({ "document": "loop.json", "scenarios": [
            scenario("it fails", json!([{ "error": "http 400" }]), json!({ "termination": "step_failed", "once": ["undo"], "never": ["tell"],
                "error": { "step": "pay" }, "steps": { "on_failure.undo": { "status": "completed" } } })),
            scenario("it is too slow", json!([{ "error": "http 503" }, { "id": 1 }]), json!({ "termination": "timeout", "once": ["undo"], "never": ["tell"] })),
            scenario("it pays", json!([{ "id": 1 }]), json!({ "status": "completed", "never": ["undo"] }))
        ] }),
    );
    // Who dies before the first attempt is in the journal has the time of the second one.
    for how in [&[][..], &["--crash", "--filter", "it fails"], &["--crash", "--filter", "it pays"]] {
        let played = place.call(&[&["test", "loop.test.json"], how].concat());
        assert_eq!(played.code, 0, "{played:#?}");
    }
}

#[test]
fn the_example_of_the_page_takes_the_payment_back() {
    let page = std::fs::read_to_string("docs/language.md").unwrap();
    let section = page.split_once("\n### Failed steps\n").unwrap().1;
    let block = section.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
    let place = place(json!({}), json!({}));
    place.file("loop.json", block);
    let action = |name: &str| {
        json!({ "action_name": name, "kind": "http", "description": "Does it.", "http_method": "POST",
        "url": format!("https://tools.example.com/{name}"), "parameters": { "type": "object" } })
    };
    let all = ["pay", "book", "refund", "report"].map(action);
    place.json("actions/all.json", &json!(all));
    answers(&place, json!({ "pay": [{ "id": 9 }], "book": [{ "error": FAILS }], "refund": [{}], "report": [{}] }));
    let (done, result) = run(&place, json!({ "amount": 5 }));
    assert_eq!(
        steps(&result),
        ["0 completed", "1 failed", "on_failure.0 completed", "on_failure.1 completed"],
        "{done:#?}"
    );
    assert_eq!(at(&place, "on_failure.0")["input"], json!({ "payment": 9 }));
    assert_eq!(at(&place, "on_failure.1")["input"]["why"], "1: http 500");
}
