//! Steps that choose between lists of steps: which case runs, what its steps are called, write and ask, and what is shown.

use serde_json::{Value, json};

use crate::common::{Place, Ran};

/// A workflow of these steps. The script answers for the action `pay`.
fn place(actions: Value) -> Place {
    let place = Place::new();
    let pay = json!({ "action_name": "pay", "kind": "http", "description": "Pays.", "http_method": "POST",
        "url": "https://tools.example.com/pay", "parameters": { "type": "object" } });
    place.json("actions/all.json", &json!([pay]));
    place.json("loop.json", &json!({ "name": "claims", "definition": { "actions": actions } }));
    place.json("script.json", &json!({ "replies": [], "tools": { "pay": [{ "paid": 5 }] } }));
    place
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

/// The addresses of the steps that a run has a record of, each with its status.
fn steps(result: &Value) -> Vec<String> {
    let all = result["steps"].as_array().into_iter().flatten();
    all.map(|step| format!("{} {}", step["at"].as_str().unwrap(), step["status"].as_str().unwrap())).collect()
}

fn pay(id: &str) -> Value {
    json!({ "id": id, "type": "pay", "outputKey": id, "properties": {} })
}

fn below(most: u32, steps: Value) -> Value {
    json!({ "when": { "lessThan": ["@input.amount", most] }, "steps": steps })
}

fn route() -> Value {
    json!({ "id": "route", "type": "choose",
        "cases": [below(100, json!([pay("small")])), below(5000, json!([pay("first"), { "type": "pay", "properties": {} }]))],
        "otherwise": [pay("large")] })
}

#[test]
fn the_first_case_that_holds_runs_and_else_the_other_steps() {
    for (amount, case, ran) in [
        (50, "0", &["route completed", "route.0.small completed"][..]),
        (500, "1", &["route completed", "route.1.first completed", "route.1.1 completed"]),
        (5000, "otherwise", &["route completed", "route.otherwise.large completed"]),
    ] {
        let place = place(json!([route()]));
        let (done, result) = run(&place, json!({ "amount": amount }));
        assert_eq!((done.code, steps(&result)), (0, ran.iter().map(|step| (*step).to_owned()).collect()), "{done:#?}");
        assert_eq!(result["steps"][0]["case"], case);
        let text = place.call(&["trace", "r"]).stdout;
        let shown = if case == "otherwise" { "route: otherwise".to_owned() } else { format!("route: case {case}") };
        assert!(text.contains(&shown), "{text}");
        let page = place.call(&["trace", "r", "--format", "html"]).stdout;
        assert!(page.contains(shown.split_once(' ').unwrap().1), "the page says the case");
    }
}

#[test]
fn without_a_case_that_holds_and_other_steps_it_is_skipped() {
    let place =
        place(json!([{ "id": "route", "type": "choose", "cases": [below(100, json!([pay("small")]))] }, pay("after")]));
    let (done, result) = run(&place, json!({ "amount": 100 }));
    assert_eq!(
        (done.code, steps(&result)),
        (0, vec!["route skipped".to_owned(), "after completed".to_owned()]),
        "{done:#?}"
    );
}

#[test]
fn a_condition_that_can_not_be_judged_fails_the_choice() {
    let place = place(json!([route()]));
    let (done, result) = run(&place, json!({ "amount": "many" }));
    let error = &result["error"];
    assert_eq!((done.code, &error["step"]), (1, &json!("route")), "{done:#?}");
    assert!(error["message"].as_str().unwrap().contains("the `when` of its case 0 can't be judged"), "{error}");
}

#[test]
fn choices_nest_with_each_other_and_with_loops_and_each_item_chooses_for_itself() {
    let inner = json!({ "id": "inner", "type": "choose",
        "cases": [{ "when": { "equal": ["@row.kind", "a"] }, "steps": [pay("a")] }],
        "otherwise": [{ "id": "deep", "type": "loop", "properties": { "mode": "foreach", "items_path": "@row.parts",
            "item_variable_name": "part", "collect_results": true, "result_key": "parts",
            "actions_to_execute": [{ "id": "p", "type": "pay", "properties": { "part": "@part" } }] } }] });
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.rows",
        "item_variable_name": "row", "max_concurrency": 4, "collect_results": true, "result_key": "all",
        "actions_to_execute": [
            { "id": "out", "type": "choose", "cases": [{ "when": { "notEqual": ["@row.kind", "none"] }, "steps": [inner] }] }
        ] } });
    let place = place(json!([{ "type": "choose", "cases": [below(100, json!([each]))] }]));
    let rows = json!([{ "kind": "a" }, { "kind": "b", "parts": [1, 2] }, { "kind": "none" }]);
    let (done, result) = run(&place, json!({ "amount": 1, "rows": rows }));
    assert_eq!(done.code, 0, "{done:#?}");
    let statuses: Vec<&Value> =
        result["result"]["answer"]["all"].as_array().unwrap().iter().map(|item| &item["status"]).collect();
    assert_eq!(statuses, ["completed", "completed", "skipped"]);
    let at = |address: &str| place.call(&["trace", "r", "--at", address, "--format", "json"]).json();
    let item = at("0.0.each.0");
    assert_eq!(
        steps(&item),
        [
            "0.0.each.0.out completed",
            "0.0.each.0.out.0.inner completed",
            "0.0.each.0.out.0.inner.0.a completed",
            "0.0.each.0.out.0.inner.otherwise.deep skipped"
        ],
        "{item}"
    );
    let deep = at("0.0.each.1.out.0.inner.otherwise.deep.1.p");
    assert_eq!((&deep["steps"][0]["input"], &deep["steps"][0]["status"]), (&json!({ "part": 2 }), &json!("completed")));
    let unknown = place.call(&["trace", "r", "--at", "0.7.each"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("has no step `0.7.each`"), "{unknown:#?}");
}

#[test]
fn a_step_of_a_case_waits_for_a_human_at_its_address_and_a_no_counts_the_steps_behind_the_choice() {
    let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay?" } });
    let held = json!({ "id": "held", "type": "pay", "filter": { "condition": { "equal": ["@__approved", true] } }, "properties": {} });
    let choose = json!({ "id": "route", "type": "choose", "cases": [below(100, json!([ask, held]))] });
    // Each step after it has a filter that a no makes fail: the run continues.
    let place_held = place(
        json!([choose, { "type": "choose", "cases": [{ "when": { "equal": ["@__approved", true] }, "steps": [pay("later")] }] }]),
    );
    let (paused, result) = run(&place_held, json!({ "amount": 1 }));
    assert_eq!((paused.code, &result["pause"]["steps"][0]["at"]), (3, &json!("route.0.ok")), "{paused:#?}");
    let denied = resume(&place_held, &["--deny"]);
    assert_eq!((&denied["status"], denied["steps"].as_array().unwrap().len()), (&json!("completed"), 4), "{denied}");
    // The step behind the choice is held by nothing: a no stops the run.
    let place_open = place(json!([choose, pay("later")]));
    run(&place_open, json!({ "amount": 1 }));
    let denied = resume(&place_open, &["--deny"]);
    assert_eq!((&denied["status"], &denied["error"]["step"]), (&json!("failed"), &json!("route.0.ok")), "{denied}");
}

#[test]
fn a_choice_in_the_place_of_a_step_and_a_failed_step_of_a_case_run_again() {
    let other = json!({ "type": "choose", "cases": [below(100, json!([pay("small")]))] });
    let first = json!({ "id": "big", "type": "pay", "filter": { "condition": { "greaterThan": ["@input.amount", 100] } },
        "properties": {}, "onFalse": other });
    let place = place(json!([first, pay("last")]));
    place.json("script.json", &json!({ "replies": [], "tools": { "pay": [{ "error": "http 500" }] } }));
    let (done, result) = run(&place, json!({ "amount": 1 }));
    assert_eq!((done.code, &result["error"]["step"]), (1, &json!("bigf.0.small")), "{done:#?}");
    place.json("script.json", &json!({ "replies": [], "tools": { "pay": [{ "paid": 5 }] } }));
    let again = resume(&place, &["--retry-failed"]);
    assert_eq!(steps(&again), ["bigf completed", "bigf.0.small completed", "last completed"], "{again}");
}

#[test]
fn an_action_of_that_name_keeps_its_meaning() {
    let place = place(json!([{ "type": "choose", "properties": { "of": 3 } }]));
    let action = json!({ "action_name": "choose", "kind": "http", "description": "Chooses.", "http_method": "POST",
        "url": "https://tools.example.com/choose", "parameters": { "type": "object" } });
    place.json("actions/choose.json", &action);
    place.json("script.json", &json!({ "replies": [], "tools": { "choose": [{ "chosen": true }] } }));
    let (done, result) = run(&place, json!({}));
    assert_eq!((done.code, &result["result"]["answer"]["choose"]), (0, &json!({ "chosen": true })), "{done:#?}");
}

#[test]
fn scenarios_cover_the_cases_of_the_example_of_the_page() {
    let page = std::fs::read_to_string("docs/language.md").unwrap();
    let section = page.split_once("\n### Choose\n").unwrap().1;
    let block = section.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
    let place = place(json!([]));
    place.file("loop.json", block);
    let scenario = |name: &str, amount: u32, decisions: Value, expect: Value| json!({ "name": name, "input": { "amount": amount }, "decisions": decisions, "expect": expect });
    let pays = |at: &str| json!({ "status": "completed", "calls": [{ "action": "pay", "at": at }] });
    place.json(
        "loop.test.json",
        &json!({ "document": "loop.json", "tools": { "pay": [{ "paid": true }] }, "scenarios": [
            scenario("small", 5, json!([]), pays("route.0.0")),
            scenario("middle", 500, json!([{ "at": "route.1.0", "approve": true }]), pays("route.1.1")),
            scenario("middle, a no", 500, json!([{ "deny": "no" }]), json!({ "termination": "rejected", "never": ["pay"] })),
            scenario("large", 5000, json!([{ "answer": { "reason": "x" } }]),
                json!({ "status": "completed", "steps": { "route.0.0": { "status": "skipped" } } }))
        ] }),
    );
    let played = place.call(&["test", "loop.test.json", "--crash", "--coverage"]);
    assert_eq!(played.code, 0, "{played:#?}");
    let all = format!("{}{}", played.stdout, played.stderr);
    let missing = all.lines().filter(|line| line.contains("in no scenario")).collect::<Vec<_>>();
    // What is left is the failure of the calls.
    assert_eq!(missing.len(), 2, "{all}");
    assert!(missing.iter().all(|line| line.contains("route.0.0") || line.contains("route.1.1")), "{all}");
}
