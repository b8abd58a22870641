//! `loopctl trace RUN --at ADDRESS`: the steps of a workflow at an address, while they run, wait, fail and run again.

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, with};
use crate::run::workflows::{definition, foreach, place, resume, run, script};

fn at(place: &Place, address: &str) -> Value {
    let ran = place.call(&["trace", "r", "--at", address, "--format", "json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.stdout).expect("JSON")
}

fn refused(place: &Place, address: &str) -> String {
    let Ran { code, stdout, stderr } = place.call(&["trace", "r", "--at", address]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    stderr
}

/// The address and the status of each step.
fn steps(view: &Value) -> Vec<String> {
    let steps = view["steps"].as_array().expect("a list");
    steps.iter().map(|step| format!("{} {}", step["at"], step["status"]).replace('"', "")).collect()
}

fn rows(view: &Value) -> Vec<String> {
    let rows = view["items"]["rows"].as_array().expect("a list");
    rows.iter().map(|row| format!("{} {}", row["index"], row["status"]).replace('"', "")).collect()
}

/// A loop in a loop: `b` is called for each item of each item above 1; `c` in its place for the others.
fn nested(place: &Place) {
    let in_place = json!({ "type": "c", "properties": { "of": "@sub" } });
    let call = json!({ "type": "b", "properties": { "of": "@sub", "token": "@input.token" }, "outputKey": "did",
        "filter": { "condition": { "greaterThan": ["@sub", 1] } }, "onFalse": in_place });
    let inner = with(
        foreach("@one", json!({ "item_variable_name": "sub", "failure_strategy": "continue_on_error" }), json!([call])),
        json!({ "id": "inner" }),
    );
    let settings = json!({ "failure_strategy": "continue_on_error", "summary_key": "counts" });
    definition(
        place,
        json!({ "output": "@counts", "actions": [
            { "id": "first", "type": "a", "properties": {}, "filter": { "condition": { "equal": ["@input.token", 0] } } },
            foreach("@input.items", settings, json!([{ "type": "a", "properties": {} }, inner])), { "id": "last", "type": "a", "properties": {} }] }),
    );
}

#[test]
fn every_address_of_a_run_that_ended_shows_what_was_there() {
    let place = place();
    nested(&place);
    script(
        &place,
        json!({ "a": [{ "n": 1 }], "b": [{ "n": 2 }, { "error": "broken" }, { "n": 3 }], "c": [{ "n": 4 }] }),
    );
    let (ran, _) = run(&place, json!({ "items": [[2, 1], [], [3]], "token": "hidden-value-1" }));
    assert_eq!(ran.code, 0, "{ran:?}");
    let all = at(&place, "");
    assert_eq!(steps(&all), ["first skipped", "each completed", "last completed"]);
    assert_eq!((&all["status"], &all["waiting"]), (&json!("completed"), &json!(0)));
    assert_eq!(all["steps"][2]["output"], Value::Null, "what a step gave is at its own address");
    assert_eq!(at(&place, "last")["steps"][0]["output"], json!({ "n": 1 }));
    let each = at(&place, "each");
    assert_eq!(rows(&each), ["0 completed", "1 completed", "2 completed"]);
    assert_eq!(each["items"]["counts"], json!({ "completed": 3 }));
    let item = at(&place, "each.0");
    assert_eq!(
        (steps(&item), &item["item"]),
        (vec!["each.0.0 completed".to_owned(), "each.0.inner completed".to_owned()], &json!("completed"))
    );
    assert_eq!(item["steps"][1]["items"]["completed"], 2);
    assert_eq!(rows(&at(&place, "each.0.inner")), ["0 completed", "1 completed"]);
    assert_eq!(rows(&at(&place, "each.2.inner")), ["0 failed"]);
    let step = at(&place, "each.0.inner.0.0");
    assert_eq!(step["steps"][0]["input"], json!({ "of": 2, "token": "[hidden]" }));
    assert_eq!(step["steps"][0]["output"], json!({ "n": 2 }));
    // What took the place of a step has an address of its own, and is found in that of the step's.
    assert_eq!(steps(&at(&place, "each.0.inner.1")), ["each.0.inner.1.0f completed"]);
    assert_eq!(steps(&at(&place, "each.0.inner.1.0f")), ["each.0.inner.1.0f completed"]);
    let failed = at(&place, "each.2.inner.0");
    assert_eq!((steps(&failed), &failed["item"]), (vec!["each.2.inner.0.0 failed".to_owned()], &json!("failed")));
    assert!(failed["steps"][0]["error"]["message"].as_str().unwrap().contains("broken"), "{failed}");

    for (address, words) in [
        ("nope", "the workflow has no step `nope`; its steps are `first`, `each`, `last`"),
        ("eac", "did you mean `each`?"),
        ("each.3", "the loop `each` has no item `3`; it has 3 items: 0 to 2"),
        ("each.01", "no item `01`"),
        ("each.x", "no item `x`"),
        ("each.1.inner.0", "the loop `each.1.inner` has no item `0`; it has no items"),
        ("each.0.9", "`each.0` has no step `9`; its steps are `0`, `inner`"),
        ("last.0", "the step `last` is no loop over items"),
        ("each.0.inner.0.0.0", "the step `each.0.inner.0.0` is no loop over items"),
        (".", "has no step ``"),
    ] {
        let said = refused(&place, address);
        assert!(said.contains(words), "{address}: {said}");
    }
    let text = place.call(&["trace", "r", "--at", "each.2.inner.0"]).stdout;
    for words in
        ["This item is failed.", "each.2.inner.0.0  b  failed", "→ b {\"of\": 3, \"token\": \"[hidden]\"}", "✗ broken"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let text = place.call(&["trace", "r", "--at", "each.2.inner"]).stdout;
    assert!(text.contains("1 item: 1 failed\nitem 0 failed\n"), "{text}");
    let html = place.call(&["trace", "r", "--at", "each", "--format", "html"]).stdout;
    assert!(html.contains("<h2 class=\"title\">Items</h2>\n<p>3 items: 3 completed</p>"), "{html}");
    let both = place.call(&["trace", "r", "--at", "each", "--format", "json", "--reasoning"]);
    assert_eq!(both.code, 2, "{both:?}");
}

#[test]
fn a_loop_that_stops_shows_its_cancelled_items_and_runs_them_again_on_request() {
    let place = place();
    let filter = json!({ "condition": { "notEqual": ["@one", 3] } });
    let steps_of_item = json!([{ "type": "a", "properties": {}, "filter": filter }, { "type": "b", "properties": {} }, { "type": "c", "properties": {} }]);
    definition(
        &place,
        json!({ "actions": [foreach("@input.items", json!({}), steps_of_item), { "id": "last", "type": "a", "properties": {} }] }),
    );
    script(
        &place,
        json!({ "a": [{ "n": 1 }], "b": [{ "n": 2 }, { "error": "broken" }, { "n": 3 }, { "n": 3 }, { "n": 3 }, { "n": 3 }], "c": [{ "n": 4 }] }),
    );
    let (ran, _) = run(&place, json!({ "items": [1, 2, 3, 4] }));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(steps(&at(&place, "")), ["each failed", "last pending"]);
    assert_eq!(rows(&at(&place, "each")), ["0 completed", "1 failed", "2 cancelled", "3 cancelled"]);
    assert_eq!(steps(&at(&place, "each.1")), ["each.1.0 completed", "each.1.1 failed", "each.1.2 pending"]);
    assert_eq!(steps(&at(&place, "each.3")), ["each.3.0 pending", "each.3.1 pending", "each.3.2 pending"]);
    let (ran, _) = resume(&place, &["--retry-failed"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(rows(&at(&place, "each")), ["0 completed", "1 completed", "2 completed", "3 completed"]);
    assert_eq!(steps(&at(&place, "each.1")), ["each.1.0 completed", "each.1.1 completed", "each.1.2 completed"]);
    assert_eq!(steps(&at(&place, "each.2")), ["each.2.0 skipped", "each.2.1 completed", "each.2.2 completed"]);
    assert_eq!(steps(&at(&place, "each.1.1")), ["each.1.1 completed"], "the failure is not shown any more");
}

#[test]
fn what_waits_is_shown_with_its_question_and_what_a_cancelled_run_asked_is_cancelled() {
    let place = place();
    let ask = json!({ "id": "ask", "type": "PbotApproval", "properties": { "comment": "Pay {{one}}?" } });
    let think = json!({ "id": "think", "type": "loop",
        "properties": { "mode": "react", "objective": "Think of {{one}}.", "result_key": "thought", "tools": [] } });
    let settings = json!({ "max_concurrency": 2 });
    definition(
        &place,
        json!({ "actions": [foreach("@input.items", settings, json!([think, ask, { "type": "c", "properties": {} }])), { "id": "last", "type": "a", "properties": {} }] }),
    );
    place.json(
        "script.json",
        &json!({ "replies": [complete(json!("fine"))], "tools": { "c": [{ "n": 1 }], "a": [{ "n": 1 }] } }),
    );
    let (ran, _) = run(&place, json!({ "items": ["x", "y", "z"] }));
    assert_eq!(ran.code, 3, "{ran:?}");
    let all = at(&place, "");
    assert_eq!((steps(&all), &all["waiting"]), (vec!["each waiting".to_owned(), "last pending".to_owned()], &json!(2)));
    assert_eq!(rows(&at(&place, "each")), ["0 waiting", "1 waiting", "2 pending"]);
    let item = at(&place, "each.1");
    assert_eq!(steps(&item), ["each.1.think completed", "each.1.ask waiting", "each.1.2 pending"]);
    assert_eq!(item["steps"][0]["run_id"], "r.each.1.think");
    assert_eq!(item["questions"].as_array().map(Vec::len), Some(1));
    assert_eq!(item["questions"][0]["question"], "Pay y?");
    let text = place.call(&["trace", "r", "--at", "each.1"]).stdout;
    assert!(text.contains("run r.each.1.think") && text.contains("┃ Pay y?"), "{text}");
    let html = place.call(&["trace", "r", "--format", "html"]).stdout;
    assert!(html.contains("Pay x?") && html.contains("Pay y?"), "{html}");
    let (ran, _) = resume(&place, &["--at", "each.0.ask", "--approve"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(rows(&at(&place, "each")), ["0 completed", "1 waiting", "2 waiting"]);
    assert_eq!(place.call(&["cancel", "r"]).code, 0);
    assert_eq!(rows(&at(&place, "each")), ["0 completed", "1 cancelled", "2 cancelled"]);
    let item = at(&place, "each.1");
    assert_eq!(steps(&item), ["each.1.think completed", "each.1.ask cancelled", "each.1.2 pending"]);
    assert_eq!((&item["waiting"], &item["questions"]), (&json!(0), &Value::Null));
    assert_eq!(steps(&at(&place, "")), ["each cancelled", "last pending"]);
}
