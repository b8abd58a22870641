//! A workflow that continues with a document that is new to it: what it has done must be the same by both, and nothing is
//! taken for done, or asked about, that never was.

use std::time::Duration;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, web, with};

/// A workflow whose action `pay` posts to `/pay/{{id}}`.
struct Paying {
    place: Place,
    server: Server,
}

/// Refuses what is paid to `bad`.
fn refuses_bad(_: usize, path: &str) -> Answer {
    if path.starts_with("/pay/") && path.contains("bad") {
        Answer::json(&json!({})).status(404)
    } else {
        Answer::json(&json!({ "paid": true }))
    }
}

impl Paying {
    fn new() -> Self {
        let server = Server::with(move |number, request| refuses_bad(number, &request.path));
        let paying = Self { place: Place::new(), server };
        paying.action(json!({}));
        paying.place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        paying
    }

    fn action(&self, more: Value) {
        let parameters =
            json!({ "type": "object", "properties": { "id": { "type": "string" }, "sum": { "type": "integer" } } });
        let url = format!("{}/pay/{{{{id}}}}", self.server.url());
        let written = json!({ "parameters": parameters, "http_method": "POST", "idempotent": true });
        let action = web("pay", &url, with(written, more));
        self.place.json("actions/all.json", &json!([action]));
    }

    /// From now on, the action posts to `/right/{{id}}`, which takes all.
    fn corrected(&self) {
        self.action(json!({ "url": format!("{}/right/{{{{id}}}}", self.server.url()) }));
    }

    fn steps(&self, actions: Value) {
        self.place.json("loop.json", &json!({ "name": "w", "definition": { "actions": actions } }));
    }

    fn run(&self, code: i32) {
        let ran = self.call(&["run", "loop.json", "--run-id", "r"]);
        assert_eq!(ran.code, code, "{ran:#?}");
    }

    fn call(&self, args: &[&str]) -> Ran {
        self.place.call(args)
    }

    /// Whom was paid, in order.
    fn paid(&self) -> Vec<String> {
        self.server.requests().iter().map(|request| request.path.trim_start_matches("/pay/").to_owned()).collect()
    }

    /// Their keys.
    fn keys(&self) -> Vec<String> {
        let key =
            |request: &crate::common::server::Request| request.header("idempotency-key").unwrap_or_default().to_owned();
        self.server.requests().iter().map(key).collect()
    }

    /// A resumption that is refused and writes nothing.
    fn refused(&self, args: &[&str], words: &[&str]) {
        let events = || self.call(&["trace", "r", "--format", "json"]).stdout;
        let (before, paid) = (events(), self.paid());
        let ran = self.call(args);
        assert_eq!(ran.code, 2, "{ran:#?}");
        for word in words {
            assert!(ran.stderr.contains(word), "{word}: {ran:#?}");
        }
        assert_eq!((events(), self.paid()), (before, paid));
    }
}

fn pay(id: &str) -> Value {
    json!({ "type": "pay", "properties": { "id": id } })
}

fn named(name: &str, id: &str) -> Value {
    with(pay(id), json!({ "id": name }))
}

fn ask(comment: &str) -> Value {
    json!({ "type": "PbotApproval", "properties": { "comment": comment } })
}

const AGAIN: [&str; 4] = ["resume", "r", "--retry-failed", "--new-document"];

#[test]
fn a_step_without_an_id_that_takes_the_place_of_one_that_was_made_is_refused() {
    for (before, now) in [
        // One is inserted, removed, or has changed places with another.
        (json!([pay("a"), pay("b"), pay("bad")]), json!([pay("new"), pay("a"), pay("b"), pay("c")])),
        (json!([pay("a"), pay("b"), pay("bad")]), json!([pay("b"), pay("c")])),
        (json!([pay("a"), pay("b"), pay("bad")]), json!([pay("b"), pay("a"), pay("c")])),
        (json!([pay("a"), ask("?"), pay("bad")]), json!([ask("?"), pay("a"), pay("c")])),
    ] {
        let paying = Paying::new();
        paying.steps(before.clone());
        if before[1]["type"] == "PbotApproval" {
            paying.run(3);
            assert_eq!(paying.call(&["resume", "r", "--approve"]).code, 1);
        } else {
            paying.run(1);
        }
        paying.steps(now.clone());
        paying.refused(&AGAIN, &["the step `0`", "known by its number", "`id`"]);
        // What was made stays where it was, and the rest may be another.
        let mut kept = before.as_array().unwrap().clone();
        kept.pop();
        kept.extend([pay("c"), pay("d")]);
        paying.steps(Value::Array(kept));
        let ran = paying.call(&AGAIN);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let paid = paying.paid();
        assert_eq!(paid.iter().filter(|paid| *paid == "a").count(), 1, "{paid:?}");
        assert_eq!(&paid[paid.len() - 2..], ["c", "d"]);
    }
}

#[test]
fn items_of_a_loop_without_an_id_are_known_by_their_numbers_too() {
    let each = |inner: Value| {
        let properties = json!({ "mode": "foreach", "items_path": "@input.l", "item_variable_name": "x", "actions_to_execute": inner });
        json!({ "type": "loop", "properties": properties })
    };
    let paying = Paying::new();
    paying.steps(json!([each(json!([pay("a-{{x}}"), pay("{{x}}")]))]));
    let input = r#"{"l":["one","bad"]}"#;
    let ran = paying.call(&["run", "loop.json", "--run-id", "r", "--input", input]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    paying.steps(json!([each(json!([pay("new-{{x}}"), pay("a-{{x}}"), pay("{{x}}")]))]));
    paying.refused(&AGAIN, &["the step `0.", "known by its number"]);
}

#[test]
fn steps_with_ids_are_known_by_these_wherever_they_are() {
    let paying = Paying::new();
    paying.steps(json!([named("a", "a"), named("b", "bad")]));
    paying.run(1);
    paying.steps(json!([named("a", "other"), named("b", "b"), named("new", "c")]));
    let ran = paying.call(&AGAIN);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(paying.paid(), ["a", "bad", "b", "c"]);
}

#[test]
fn an_approval_that_waits_is_no_call_by_another_document() {
    // Without an id, the call would have the place of the approval.
    let paying = Paying::new();
    paying.steps(json!([pay("a"), ask("Pay b?"), pay("b")]));
    paying.run(3);
    paying.steps(json!([pay("a"), pay("new"), ask("Pay b?"), pay("b")]));
    paying.refused(&["resume", "r", "--new-document"], &["the step `1` was `PbotApproval`", "known by its number"]);
    // With ids, what is new in front of the approval was never called: it is, once, and then a human is asked.
    let paying = Paying::new();
    let approval = with(ask("Pay b?"), json!({ "id": "ok" }));
    paying.steps(json!([named("a", "a"), approval, named("b", "b")]));
    paying.run(3);
    paying.steps(json!([named("a", "a"), named("new", "new"), approval, named("b", "b")]));
    let ran = paying.call(&["resume", "r", "--new-document"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(ran.stdout.contains("Pay b?") || ran.stderr.contains("Pay b?"), "{ran:#?}");
    assert_eq!(paying.paid(), ["a", "new"]);
    assert_eq!(paying.call(&["resume", "r", "--approve"]).code, 0);
    assert_eq!(paying.paid(), ["a", "new", "b"]);
    // An approval of a tool that it does not need any more.
    let paying = Paying::new();
    paying.action(json!({ "requires_approval": true }));
    paying.steps(json!([named("a", "a")]));
    if paying.call(&["run", "loop.json", "--run-id", "r"]).code == 3 {
        paying.action(json!({}));
        let ran = paying.call(&["resume", "r", "--new-document"]);
        assert_eq!((ran.code, paying.paid()), (0, vec!["a".to_owned()]), "{ran:#?}");
    }
}

#[test]
fn an_answer_counts_only_for_what_was_shown() {
    let go_on = json!({ "comment": "Pay b?", "on_rejected": "go_on" });
    let ok = |properties: Value| json!({ "id": "ok", "type": "PbotApproval", "properties": properties });
    let held = with(named("b", "b"), json!({ "filter": { "condition": { "equal": ["@__approved", true] } } }));
    // A no, in the command that changes what a no does.
    let paying = Paying::new();
    paying.steps(json!([ok(json!({ "comment": "Pay b?" })), named("b", "b")]));
    paying.run(3);
    paying.steps(json!([ok(go_on.clone()), named("b", "b")]));
    for decision in ["--deny", "--approve"] {
        paying.refused(&["resume", "r", decision, "--new-document"], &["look at it first"]);
    }
    // A no that was given: the run has ended by it.
    paying.steps(json!([ok(json!({ "comment": "Pay b?" })), named("b", "b")]));
    assert_eq!(paying.call(&["resume", "r", "--deny"]).code, 1);
    paying.steps(json!([ok(go_on), named("b", "b")]));
    paying.refused(&AGAIN, &["`ok` was denied"]);
    // It may be asked again, corrected.
    paying.steps(json!([ok(json!({ "comment": "Pay c?" })), named("c", "c")]));
    let ran = paying.call(&AGAIN);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(paying.paid().is_empty());
    assert_eq!(paying.call(&["resume", "r", "--approve"]).code, 0);
    // A yes, and another question in its place.
    let paying = Paying::new();
    paying.steps(json!([ok(json!({ "comment": "Pay 5?" })), named("b", "bad")]));
    paying.run(3);
    assert_eq!(paying.call(&["resume", "r", "--approve"]).code, 1);
    paying.steps(json!([ok(json!({ "comment": "Pay 999,999?" })), named("b", "b")]));
    paying.refused(&AGAIN, &["approval `ok`", "only for what was shown"]);
    paying.steps(json!([ok(json!({ "comment": "Pay 5?" })), held]));
    assert_eq!(paying.call(&AGAIN).code, 0);
    assert_eq!(paying.paid(), ["bad", "b"]);
}

#[test]
fn a_request_that_was_changed_has_a_key_of_its_own() {
    let paying = Paying::new();
    paying.steps(json!([named("a", "bad")]));
    paying.run(1);
    // The same request has the same key, also after a change elsewhere.
    assert_eq!(paying.call(&["resume", "r", "--retry-failed"]).code, 1);
    paying.action(json!({ "description": "Pays somebody." }));
    assert_eq!(paying.call(&AGAIN).code, 1);
    // Another input, and another address.
    paying.steps(json!([named("a", "bad2")]));
    assert_eq!(paying.call(&AGAIN).code, 1);
    assert_eq!(paying.call(&["resume", "r", "--retry-failed"]).code, 1);
    paying.action(json!({ "query": { "for": "rent" } }));
    assert_eq!(paying.call(&AGAIN).code, 1);
    assert_eq!(paying.keys(), ["r-a", "r-a", "r-a", "r-a~1", "r-a~1", "r-a~2"]);
    assert_eq!(paying.call(&["trace", "r", "--format", "json"]).code, 0);
}

/// Items `l` of a loop that pays each, with these fields of the loop.
fn each(more: Value) -> Value {
    let properties = json!({
        "mode": "foreach", "items_path": "@input.l", "item_variable_name": "x", "summary_key": "s",
        "actions_to_execute": [named("go", "{{x}}")],
    });
    json!({ "type": "loop", "id": "each", "properties": with(properties, more) })
}

/// Runs `before`, which fails at `bad`; then `now` with the corrected action, and returns who was paid by it.
fn retried(before: &Value, now: &Value, input: &str, args: &[&str]) -> (Ran, Vec<String>) {
    let paying = Paying::new();
    paying.place.json("loop.json", before);
    let ran = paying.call(&["run", "loop.json", "--run-id", "r", "--input", input]);
    assert_ne!(ran.code, 2, "{ran:#?}");
    let known = paying.paid().len();
    paying.place.json("loop.json", now);
    paying.corrected();
    let ran = paying.call(args);
    (ran, paying.paid().split_off(known))
}

fn flow(definition: Value) -> Value {
    json!({ "name": "w", "definition": definition })
}

#[test]
fn a_retry_with_a_document_that_handles_the_failure_runs_what_failed_first() {
    let undo = || json!([pay("undo")]);
    for (before, now) in [
        (json!({ "actions": [named("go", "bad")] }), json!({ "actions": [named("go", "bad")], "on_failure": undo() })),
        (
            json!({ "actions": [named("go", "bad")] }),
            json!({ "actions": [named("go", "bad")], "on_failure": [ask("Undo it?"), pay("undo")] }),
        ),
    ] {
        let (ran, paid) = retried(&flow(before), &flow(now), "{}", &AGAIN);
        assert_eq!((ran.code, paid), (0, vec!["/right/bad".to_owned()]), "{ran:#?}");
    }
    // What handled the failure before is not passed over: the retry must say so.
    let (before, now) = (
        json!({ "actions": [named("go", "bad")], "on_failure": undo() }),
        json!({ "actions": [named("go", "bad")], "on_failure": [pay("undo"), pay("more")] }),
    );
    let (ran, paid) = retried(&flow(before.clone()), &flow(now.clone()), "{}", &AGAIN);
    assert!(ran.code == 2 && paid.is_empty() && ran.stderr.contains("after-on-failure"), "{ran:#?}");
    let after: Vec<&str> = AGAIN.into_iter().chain(["--after-on-failure"]).collect();
    let (ran, paid) = retried(&flow(before), &flow(now), "{}", &after);
    assert_eq!((ran.code, paid), (0, vec!["/right/bad".to_owned()]), "{ran:#?}");
}

#[test]
fn a_retry_with_a_document_by_which_a_failed_item_stops_nothing_runs_that_item_first() {
    let go_on = json!({ "failure_strategy": "continue_on_error" });
    let few = json!({ "failure_strategy": "continue_on_error", "max_failures": 0 });
    let undo = json!({ "on_failure": [pay("undo")] });
    let undo_and_go_on = with(undo.clone(), go_on.clone());
    for (before, now, items, expected) in [
        (json!({}), undo, r#"["bad","b"]"#, "/right/bad /right/b"),
        (json!({}), go_on.clone(), r#"["bad","b"]"#, "/right/bad /right/b"),
        (json!({}), undo_and_go_on.clone(), r#"["bad","b"]"#, "/right/bad /right/b"),
        (few, go_on.clone(), r#"["bad","b"]"#, "/right/bad /right/b"),
        // The run had completed, although an item of it failed.
        (go_on, undo_and_go_on, r#"["b","bad"]"#, "/right/bad"),
    ] {
        let steps = |more: &Value| flow(json!({ "actions": [each(more.clone())], "output": "@s" }));
        let (ran, paid) = retried(&steps(&before), &steps(&now), &format!("{{\"l\":{items}}}"), &AGAIN);
        assert_eq!((ran.code, paid.join(" ").as_str()), (0, expected), "{now}: {ran:#?}");
        assert!(ran.stdout.replace(' ', "").contains(r#""failed":0"#), "{ran:#?}");
    }
    // The last item had failed, and by the new document the step behind the loop begins.
    let behind = |more: Value| flow(json!({ "actions": [each(more), named("behind", "behind")] }));
    let now = behind(json!({ "failure_strategy": "continue_on_error" }));
    let (ran, paid) = retried(&behind(json!({})), &now, r#"{"l":["a","bad"]}"#, &AGAIN);
    assert_eq!((ran.code, paid), (0, vec!["/right/bad".to_owned(), "/right/behind".to_owned()]), "{ran:#?}");
}

#[test]
fn a_retry_of_a_step_that_is_a_workflow_runs_what_failed_in_it_first() {
    let paying = Paying::new();
    let below = |more: Value| {
        let definition = with(json!({ "actions": [named("go", "bad")] }), more);
        paying.place.json("workflows/below.json", &json!({ "name": "below", "definition": definition }));
    };
    below(json!({}));
    paying.steps(json!([{ "type": "workflow", "id": "w", "name": "below", "properties": {} }]));
    paying.run(1);
    below(json!({ "on_failure": [pay("undo")] }));
    paying.corrected();
    let ran = paying.call(&AGAIN);
    assert_eq!((ran.code, paying.paid()), (0, vec!["bad".to_owned(), "/right/bad".to_owned()]), "{ran:#?}");
}

#[test]
fn a_cancelled_run_does_not_continue_with_a_document_that_handles_its_cancel() {
    let paying = Paying::new();
    paying.steps(json!([named("go", "a"), ask("Go on?"), named("b", "b")]));
    paying.run(3);
    assert_eq!(paying.call(&["cancel", "r"]).code, 0);
    let actions = json!([named("go", "a"), ask("Go on?"), named("b", "b")]);
    let definition = json!({ "actions": actions, "on_failure": [pay("undo")], "on_cancel": true });
    paying.place.json("loop.json", &flow(definition));
    for args in [&AGAIN[..], &["resume", "r", "--new-document"]] {
        paying.refused(args, &["cancelled"]);
    }
}

#[test]
fn a_raised_limit_with_a_document_that_handles_the_limit_continues_the_steps() {
    let server = Server::with(|number, _| {
        std::thread::sleep(Duration::from_millis(if number == 0 { 600 } else { 0 }));
        Answer::json(&json!({}))
    });
    let place = Place::new();
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let action = web(
        "pay",
        &format!("{}/pay/{{{{id}}}}", server.url()),
        json!({ "http_method": "POST", "parameters":
        { "type": "object", "properties": { "id": { "type": "string" } } } }),
    );
    place.json("actions/all.json", &json!([action]));
    let steps = |more: Value| {
        let definition = with(json!({ "timeout_ms": 300, "actions": [named("a", "a"), named("b", "b")] }), more);
        place.json("loop.json", &flow(definition));
    };
    steps(json!({}));
    assert_eq!(place.call(&["run", "loop.json", "--run-id", "r"]).code, 1);
    steps(json!({ "on_failure": [pay("undo")] }));
    let ran = place.call(&["resume", "r", "--timeout-ms", "60000", "--new-document"]);
    let paths: Vec<String> = server.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!((ran.code, paths), (0, vec!["/pay/a".to_owned(), "/pay/b".to_owned()]), "{ran:#?}");
}

#[test]
fn a_document_that_is_refused_names_the_step_that_changed_and_what_may_be_changed() {
    let filter = json!({ "filter": { "condition": { "equal": ["@input.z", 1] } } });
    let choose = json!({ "type": "choose", "id": "c", "cases": [{ "when": { "hasKey": "@pay" }, "steps": [named("go", "bad")] }] });
    for now in [
        json!([named("a", "a")]),
        json!([named("a", "a"), with(named("go", "bad"), filter)]),
        json!([named("a", "a"), choose]),
    ] {
        let paying = Paying::new();
        paying.steps(json!([named("a", "a"), named("go", "bad")]));
        paying.run(1);
        paying.steps(now.clone());
        paying.refused(&AGAIN, &["the step `go` (`pay`) was made", "may be corrected"]);
        let said = paying.call(&AGAIN).stderr;
        assert!(!said.contains("event ") && !said.contains("is open at"), "{now}: {said}");
    }
}
