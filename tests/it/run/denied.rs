//! What a no to an approval of a workflow does: it stops the run or the item, unless the approval or the filters of the
//! steps after it say otherwise.

use serde_json::{Value, json};

use crate::common::{Place, Ran};
use crate::run::workflows::{answer, foreach, place, resume, run, script, steps};

fn asked(more: Value) -> Value {
    crate::common::with(
        json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Book 5,000 EUR?" } }),
        more,
    )
}

fn filtered(step: Value, condition: Value) -> Value {
    crate::common::with(step, json!({ "filter": { "condition": condition } }))
}

fn pay() -> Value {
    json!({ "id": "pay", "type": "a", "properties": { "id": 1 } })
}

fn yes() -> Value {
    json!({ "equal": ["@__approved", true] })
}

fn note(said: &str) -> Value {
    json!({ "id": "note", "type": "b", "properties": { "t": said } })
}

/// The steps that ran after a no, and the result.
fn denied(place: &Place, actions: Value) -> (Ran, Vec<String>, Value) {
    steps(place, actions);
    let (ran, _) = run(place, json!({ "kind": "small" }));
    assert_eq!(ran.code, 3, "{ran:#?}");
    let (ran, result) = resume(place, &["--deny", "--reason", "no"]);
    (ran, completed(&result), result)
}

/// The steps that completed, but for the approval.
fn completed(result: &Value) -> Vec<String> {
    let done = |step: &&Value| step["status"] == "completed" && step["at"] != "ok";
    let all = result["steps"].as_array().cloned().unwrap_or_default();
    all.iter().filter(done).map(|step| step["at"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_no_stops_the_run_whatever_later_steps_say_in_words() {
    let inner =
        json!([asked(json!({ "id": "inner" })), filtered(json!({ "type": "a", "properties": { "id": 1 } }), yes())]);
    let nested = foreach("@input.none", json!({ "max_items": 5 }), inner);
    for later in [
        json!([pay(), note("@__approved")]),
        json!([pay(), note("moved to bills__approved")]),
        json!([pay(), note("{{__approved}}")]),
        json!([pay(), nested]),
        json!([filtered(pay(), yes()), note("done")]),
        json!([filtered(pay(), json!({ "equal": ["@input.kind", "__approved"] }))]),
        json!([filtered(pay(), json!({ "or": [yes(), { "equal": [1, 1] }] }))]),
        // Something else may make the filter hold.
        json!([filtered(pay(), json!({ "or": [yes(), { "equal": ["@input.kind", "small"] }] }))]),
        json!([filtered(pay(), json!({ "or": [yes(), { "equal": ["@input.kind", "large"] }] }))]),
        json!([filtered(note("x"), yes()), filtered(pay(), json!({ "or": [yes(), { "hasKey": "@input.force" }] }))]),
        // A decision about something else is written in between.
        json!([
            crate::common::with(
                foreach("@input.list", json!({ "max_items": 5 }), json!([asked(json!({ "id": "inner" }))])),
                json!({ "filter": { "condition": { "equal": ["@__approved", false] } } })
            ),
            filtered(pay(), yes())
        ]),
        json!([filtered(pay(), json!({ "hasKey": "@__approved" }))]),
        // What takes the place of a step whose filter asks for more than the decision is reached by a no.
        json!([crate::common::with(
            filtered(note("big"), json!({ "and": [yes(), { "equal": ["@input.kind", "large"] }] })),
            json!({ "onFalse": pay() })
        )]),
        json!([filtered(pay(), json!({ "in": ["@__approved", [true, false]] }))]),
        json!([]),
        // The next approval may be skipped: what follows it would run although the first one was denied.
        json!([
            filtered(note("x"), json!({ "equal": ["@__approved", false] })),
            filtered(asked(json!({ "id": "more" })), json!({ "equal": ["@input.kind", "large"] })),
            pay()
        ]),
    ] {
        let place = place();
        let mut actions = vec![asked(json!({}))];
        actions.extend(later.as_array().unwrap().iter().cloned());
        let (ran, done, result) = denied(&place, Value::Array(actions));
        assert_eq!((ran.code, &result["termination"]), (1, &json!("rejected")), "{later}\n{ran:#?}");
        assert!(done.is_empty(), "{later}: {done:?}");
        assert_eq!(result["error"]["retryable"], false);
    }
}

#[test]
fn a_no_goes_on_where_the_approval_says_so_or_each_later_step_is_held_by_a_filter() {
    let go_on = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "?", "on_rejected": "go_on" } });
    let refused = filtered(note("refused"), json!({ "not": yes() }));
    let both = json!({ "and": [{ "notEqual": ["@input.kind", "large"] }, yes()] });
    let with_other = crate::common::with(filtered(pay(), yes()), json!({ "onFalse": note("rejected") }));
    for (actions, expected) in [
        (json!([go_on, filtered(pay(), yes()), note("audit")]), vec!["note"]),
        (json!([asked(json!({})), filtered(pay(), yes())]), vec![]),
        (json!([asked(json!({})), filtered(pay(), both), refused]), vec!["note"]),
        (json!([asked(json!({})), with_other]), vec!["note"]),
        (json!([asked(json!({})), filtered(asked(json!({ "id": "two" })), yes()), filtered(pay(), yes())]), vec![]),
    ] {
        let place = place();
        let (ran, done, result) = denied(&place, actions.clone());
        assert_eq!((ran.code, &result["status"]), (0, &json!("completed")), "{actions}\n{ran:#?}");
        assert_eq!(done, expected, "{actions}");
        assert_eq!(answer(&result)["__approved"], false);
    }
}

#[test]
fn a_decision_about_a_call_or_about_any_step_is_none_about_the_step_that_waits() {
    let place = place();
    steps(&place, json!([asked(json!({})), pay()]));
    assert_eq!(run(&place, json!({})).0.code, 3);
    for (how, why) in [
        (&["--approve", "--call", "1.0"][..], "call 1.0 does not wait; what waits: the step `ok`"),
        (&["--approve", "--at", "ok", "--call", "1.0"], "call 1.0 does not wait; what waits: the step `ok`"),
        (&["--approve", "--at", "*"], "`--at` names one step"),
        (&["--deny", "--at", "*"], "`--at` names one step"),
    ] {
        let (ran, _) = resume(&place, how);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{ran:#?}");
    }
    assert_eq!(resume(&place, &["--approve", "--at", "ok"]).0.code, 0);
}

#[test]
fn a_yes_runs_what_is_behind_it() {
    let place = place();
    steps(&place, json!([asked(json!({})), pay(), note("@__approved")]));
    assert_eq!(run(&place, json!({})).0.code, 3);
    let (ran, result) = resume(&place, &["--approve"]);
    assert_eq!((ran.code, &result["status"]), (0, &json!("completed")), "{ran:#?}");
    assert_eq!(answer(&result)["a"], json!({ "n": 1 }));
}

#[test]
fn a_no_in_an_item_stops_that_item_alone() {
    let place = place();
    script(&place, json!({ "a": [{ "n": 1 }, { "n": 2 }], "b": [{ "n": 3 }, { "n": 4 }] }));
    let settings = json!({ "failure_strategy": "continue_on_error", "summary_key": "s", "max_concurrency": 2 });
    let inner = json!([asked(json!({})), pay(), note("__approved")]);
    steps(&place, json!([foreach("@input.l", settings, inner)]));
    let (ran, result) = run(&place, json!({ "l": [1, 2] }));
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(result["pause"]["steps"][0]["on_rejected"], "stop");
    let shown = place.call(&["trace", "r"]).stdout;
    assert!(shown.contains("a no stops this item: none of its later steps runs"), "{shown}");
    resume(&place, &["--at", "each.0.ok", "--deny"]);
    let (ran, result) = resume(&place, &["--at", "each.1.ok", "--approve"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!((&answer(&result)["s"]["completed"], &answer(&result)["s"]["failed_indexes"]), (&json!(1), &json!([0])));
    assert_eq!(result["metadata"]["tool_calls_made"], 2);
}

#[test]
fn a_no_in_an_item_reaches_the_steps_after_the_loop_as_its_failure_does() {
    let whole = asked(json!({ "id": "whole" }));
    let held = json!([asked(json!({})), filtered(note("x"), yes())]);
    // By default the item stops the loop, and the loop the run. What says that a no, or a failed item, is no reason to stop
    // lets the steps after the loop run, unless their own filter reads a decision about them.
    for (settings, inner, after, code, done) in [
        (json!({}), json!([asked(json!({})), note("x")]), json!([pay()]), 1, vec![]),
        (json!({}), json!([asked(json!({}))]), json!([pay()]), 1, vec![]),
        (json!({ "max_concurrency": 2 }), json!([asked(json!({}))]), json!([filtered(pay(), yes())]), 1, vec![]),
        (
            json!({ "failure_strategy": "continue_on_error" }),
            json!([asked(json!({}))]),
            json!([pay()]),
            0,
            vec!["each", "pay"],
        ),
        (json!({}), held.clone(), json!([pay()]), 0, vec!["each", "pay"]),
        (json!({}), held, json!([filtered(pay(), yes())]), 0, vec!["each"]),
    ] {
        let place = place();
        let mut actions = vec![foreach("@input.l", settings, inner)];
        actions.extend(after.as_array().unwrap().iter().cloned());
        steps(&place, json!(actions));
        let (ran, _) = run(&place, json!({ "l": [1] }));
        assert_eq!(ran.code, 3, "{ran:#?}");
        let (ran, result) = resume(&place, &["--at", "each.0.ok", "--deny", "--reason", "no"]);
        assert_eq!(ran.code, code, "{ran:#?}");
        assert_eq!(completed(&result), done, "{result:#}");
        let why = if code == 1 { json!("rejected") } else { Value::Null };
        assert_eq!(result["error"]["code"], why, "{result:#}");
    }
    // A list inside a list: the no ends all three.
    let named = json!({ "item_variable_name": "two" });
    let inner = crate::common::with(foreach("@input.l", named, json!([asked(json!({}))])), json!({ "id": "inner" }));
    let place = place();
    steps(&place, json!([foreach("@input.l", json!({}), json!([inner, note("x")])), pay(), whole]));
    assert_eq!(run(&place, json!({ "l": [1] })).0.code, 3);
    let (ran, result) = resume(&place, &["--at", "each.0.inner.0.ok", "--deny"]);
    assert_eq!((ran.code, &result["error"]["code"]), (1, &json!("rejected")), "{ran:#?}");
    assert_eq!(completed(&result), Vec::<&str>::new());
}

#[test]
fn the_pause_says_what_a_no_does() {
    for (actions, word, sentence) in [
        (json!([asked(json!({})), pay()]), "stop", "a no stops the run: no later step of it runs"),
        (
            json!([asked(json!({})), filtered(pay(), yes())]),
            "go_on",
            "after a no the next steps run, as their filters say",
        ),
    ] {
        let place = place();
        steps(&place, actions);
        let (_, result) = run(&place, json!({}));
        assert_eq!(result["pause"]["steps"][0]["on_rejected"], word, "{result:#}");
        let shown = place.call(&["resume", "r", "--script", "script.json"]);
        let said = format!("{}{}", shown.stdout, shown.stderr);
        assert!(said.contains(sentence) && said.contains("Book 5,000 EUR?"), "{said}");
        let page = place.call(&["trace", "r", "--format", "html"]);
        assert!(page.stdout.contains(sentence), "{}", page.stdout);
    }
}

#[test]
fn a_value_that_the_approval_demands_is_known_until_a_step_writes_another_one() {
    let first = json!({ "id": "mode", "type": "a", "properties": { "id": 1 }, "outputKey": "mode" });
    let approval = filtered(asked(json!({})), json!({ "equal": ["@mode.n", 1] }));
    let unless = json!({ "or": [{ "notEqual": ["@mode.n", 1] }, yes()] });
    let paid = filtered(pay(), unless);
    let again = filtered(
        json!({ "id": "again", "type": "b", "properties": { "t": "x" }, "outputKey": "mode" }),
        json!({ "equal": ["@__approved", false] }),
    );
    for (actions, code) in [
        (json!([first, approval, paid]), 0),
        (json!([first, approval, again, paid]), 1),
        (json!([first, approval, pay()]), 1),
    ] {
        let place = place();
        let (ran, done, result) = denied(&place, actions.clone());
        assert_eq!(ran.code, code, "{actions}\n{ran:#?}");
        assert!(!done.contains(&"pay".to_owned()), "{done:?} {result}");
    }
}
