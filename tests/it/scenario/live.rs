//! `loopctl test --live`: the models of the documents are asked, and everything else is played.

use serde_json::{Value, json};

use super::{answer, lookup};
use crate::common::Place;
use crate::common::server::{Answer, Request, Server};

/// A place with a loop whose model is this server, with a key, and a scenario that reads an order. Its own replies would not
/// hold.
fn place(server: &Server, expect: Value) -> Place {
    let place = Place::new();
    place.json(
        "loop.json",
        &json!({"type": "loop", "name": "orders", "properties": {"mode": "react", "objective": "Settle it.",
                "dialect": "json", "model": "main", "tools": [{"type": "action", "name": "lookup"}]}}),
    );
    place.json("actions/lookup.json", &lookup());
    place.json(
        "loopctl.json",
        &json!({"models": {"main": {"provider": "openai", "model": "gpt-4o-mini", "base_url": server.url(),
                                    "api_key": "env:SHOP_MODEL_KEY", "price": {"input": 1000, "output": 2000}}},
                "allow": {"hosts": ["shop.example.com"]}}),
    );
    place.json(
        "loop.test.json",
        &json!({"document": "loop.json", "tools": {"lookup": [{"state": "late"}]}, "scenarios": [
            {"name": "a late order", "now": "2026-03-04T05:06:07Z", "replies": [answer("written")], "expect": expect}]}),
    );
    place
}

/// The model looks, and answers with what the tool gave, or with nothing in every play that `fails`.
fn model(fails: impl Fn(usize) -> bool + Send + Sync + 'static) -> Server {
    Server::with(move |number, _| {
        let look = json!({"thought": "Look.", "action": "lookup", "action_input": {"id": "A-1"}});
        let says = if fails(number / 2) { "on time" } else { "late" };
        Answer::openai(&if number % 2 == 0 { look } else { answer(says) }.to_string())
    })
}

const KEY: [(&str, &str); 1] = [("SHOP_MODEL_KEY", "sk-live-of-the-shop-model")];

fn late() -> Value {
    json!({"answer": "late", "calls": [{"action": "lookup", "input": {"id": "A-1"}, "success": true}]})
}

#[test]
fn a_live_play_asks_the_model_of_the_document_with_its_key_and_plays_the_tools() {
    let server = model(|_| false);
    let place = place(&server, late());
    let ran = place.call_with(&["test", "--live", "--report", "json=-"], &KEY);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // Ten tokens read and five written, twice.
    assert!(ran.stderr.contains("✓ a late order  (1 call)  1 of 1 hold, $0.0400"), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let scenario = &report["files"][0]["scenarios"][0];
    assert_eq!(scenario["live"], json!({"hold": 1, "of": 1}));
    assert_eq!((&scenario["tokens"], &scenario["iterations"]), (&json!(30), &json!(2)));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let authorized = |request: &Request| request.header("authorization") == Some("Bearer sk-live-of-the-shop-model");
    assert!(requests.iter().all(authorized));
    assert!(requests[0].text().contains("2026-03-04"), "the clock starts at `now`: {}", requests[0].text());
    let left: Vec<_> =
        place.files().into_iter().filter(|(path, _)| path.to_string_lossy().contains(".loopctl")).collect();
    assert!(left.is_empty(), "nothing is stored: {left:?}");
}

#[test]
fn each_play_counts_and_a_scenario_holds_when_it_holds_in_all_of_them() {
    let server = model(|play| play == 1);
    let place = place(&server, late());
    let ran = place.call_with(&["test", "--live", "--repeat", "4"], &KEY);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("✗ a late order  3 of 4 hold"), "{}", ran.stderr);
    assert!(ran.stderr.contains("in 1 of 4 plays: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("on time"), "{}", ran.stderr);
    assert_eq!(server.requests().len(), 8);
    let held = place.call_with(&["test", "--live", "--repeat", "2", "--filter", "late"], &KEY);
    assert_eq!(held.code, 0, "{}", held.stderr);
}

#[test]
fn no_play_begins_once_the_plays_have_cost_the_most() {
    let server = model(|_| false);
    let place = place(&server, late());
    let ran = place.call_with(&["test", "--live", "--repeat", "5", "--max-cost", "0.05"], &KEY);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(server.requests().len(), 4, "two plays cost $0.08: {}", ran.stderr);
    let why = "3 of 5 plays were not made: the plays cost $0.0800 so far, and --max-cost is $0.0500";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    place.json("loopctl.json", &json!({"models": {"main": {"provider": "openai", "base_url": server.url()}}}));
    let unpriced = place.call_with(&["test", "--live", "--max-cost", "0.05"], &KEY);
    assert_eq!(unpriced.code, 2, "{}", unpriced.stderr);
    assert!(unpriced.stderr.contains("the price of the model \"main\" is not known"), "{}", unpriced.stderr);
    assert_eq!(server.requests().len(), 4, "no model was asked");
}

#[test]
fn what_a_live_play_needs_is_asked_for_before_a_model_is() {
    let server = model(|_| false);
    let place = place(&server, late());
    let without = place.call(&["test", "--live"]);
    assert_eq!(without.code, 1, "{}", without.stderr);
    assert!(without.stderr.contains("SHOP_MODEL_KEY"), "{}", without.stderr);
    for other in ["--crash", "--update", "--by-position", "--probe"] {
        assert_eq!(place.call_with(&["test", "--live", other], &KEY).code, 2, "{other}");
    }
    for alone in [["--repeat", "2"], ["--max-cost", "1"]] {
        assert_eq!(place.call(&["test", alone[0], alone[1]]).code, 2, "{alone:?} needs --live");
    }
    assert_eq!(server.requests().len(), 0);
    let offline = place.call(&["test"]);
    assert_eq!((offline.code, server.requests().len()), (1, 0), "without --live no model is asked: {}", offline.stderr);
}

#[test]
fn a_tool_that_nothing_plays_is_not_called_in_a_live_play() {
    let server = model(|_| false);
    let place = place(&server, json!({}));
    place.json(
        "loop.test.json",
        &json!({"document": "loop.json", "scenarios": [{"name": "no tools", "replies": [answer("x")], "expect": {}}]}),
    );
    let ran = place.call_with(&["test", "--live"], &KEY);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("`lookup` would really be called"), "{}", ran.stderr);
}

#[test]
fn faults_of_calls_and_expiries_are_played_live_and_faults_of_replies_are_left_out() {
    let server = Server::reading(|number, request| {
        let look = json!({"thought": "Look.", "action": "lookup", "action_input": {"id": "A-1"}});
        let says = if request.text().contains("503") { "it is down" } else { "it is up" };
        Answer::openai(&if number == 0 { look } else { answer(says) }.to_string())
    });
    let place = place(&server, json!({}));
    let fails = json!([{"action": "lookup", "fails": "http 503"}]);
    let of_reply = json!([{"reply": 1, "reply_is": "cut"}]);
    place.json(
        "loop.test.json",
        &json!({"document": "loop.json", "tools": {"lookup": [{}]}, "scenarios": [
            {"name": "down", "replies": [answer("x")], "faults": fails, "expect": {"answer": "it is down"}},
            {"name": "cut", "replies": [answer("x")], "faults": of_reply, "expect": {}}]}),
    );
    let ran = place.call_with(&["test", "--live"], &KEY);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("`cut` is not played live: it has faults of replies"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 scenario in 1 file: all hold"), "{}", ran.stderr);
}

#[test]
fn the_expiry_of_an_approval_passes_at_once_in_a_live_play() {
    let server = Server::with(|number, _| {
        let look = json!({"thought": "Look.", "action": "lookup", "action_input": {"id": "A-1"}});
        Answer::openai(&if number == 0 { look } else { answer("nobody decided") }.to_string())
    });
    let place = place(&server, json!({}));
    let mut action = lookup();
    action["requires_approval"] = json!(true);
    action["approval"] = json!({"expires_after_ms": 86_400_000, "on_expiry": "deny"});
    place.json("actions/lookup.json", &action);
    let expect = json!({"answer": "nobody decided", "never": ["lookup"], "pauses": [{"kind": "approval"}]});
    place.json(
        "loop.test.json",
        &json!({"document": "loop.json", "tools": {"lookup": [{}]}, "scenarios": [
            {"name": "expired", "replies": [answer("x")], "decisions": [{"expires": true}], "expect": expect}]}),
    );
    let ran = place.call_with(&["test", "--live"], &KEY);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
