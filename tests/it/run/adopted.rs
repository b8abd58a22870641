//! A workflow that continues with a document that is new to it: what it has done must be the same by both, and nothing is
//! taken for done, or asked about, that never was.

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
    if path.contains("bad") { Answer::json(&json!({})).status(404) } else { Answer::json(&json!({ "paid": true })) }
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
