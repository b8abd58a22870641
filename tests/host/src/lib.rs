//! What a program sees that embeds loopctl: its own types of serde, and what the library says of a number that it can't hold.
//! `just host` builds it, with the `Cargo.lock` of loopctl.
#![cfg(test)]

use loopctl::{EmbeddedTool, Fault, Loop, Missing, ToolCall, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Payment {
    Card { amount: f64 },
    Transfer { amount: f64, iban: String },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Reading {
    Exact(f64),
    Range { from: f64, to: f64 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    name: String,
    #[serde(flatten)]
    at: Coordinates,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Coordinates {
    latitude: f64,
    longitude: f64,
}

/// The three forms that `serde_json` reads through a copy of its own, where numbers of `arbitrary_precision` are maps.
fn reads_its_own_types() {
    let card: Payment = serde_json::from_str(r#"{"kind": "Card", "amount": 12.5}"#).unwrap();
    assert_eq!(card, Payment::Card { amount: 12.5 });
    let range: Reading = serde_json::from_str(r#"{"from": 1.5, "to": 2}"#).unwrap();
    assert_eq!(range, Reading::Range { from: 1.5, to: 2.0 });
    assert_eq!(serde_json::from_str::<Reading>("0.1").unwrap(), Reading::Exact(0.1));
    let place: Place = serde_json::from_str(r#"{"name": "Berlin", "latitude": 52.52, "longitude": 13.405}"#).unwrap();
    assert_eq!(place.at, Coordinates { latitude: 52.52, longitude: 13.405 });
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Order {
    /// Its number
    id: u64,
}

struct Charge;

impl EmbeddedTool for Charge {
    type Input = Order;
    type Output = Value;
    const NAME: &'static str = "charge";
    const DESCRIPTION: &'static str = "Says what an order is paid with.";

    async fn call(&self, order: Order, _: &ToolCall<'_>) -> Result<Value, ToolError> {
        reads_its_own_types();
        Ok(json!({ "order": order.id, "paid": Payment::Card { amount: 12.5 } }))
    }
}

const DOCUMENT: &str = r#"{"type": "loop", "name": "charge", "properties": {"mode": "react", "objective": "Charge the order.",
    "tools": [{"type": "action", "name": "charge"}]}}"#;

fn charge(replies: Value) -> Loop {
    let script = serde_json::from_value(json!({ "replies": replies })).unwrap();
    Loop::load_text("charge.json", DOCUMENT).tool(Charge).script(script).build().unwrap()
}

#[test]
fn types_that_are_tagged_untagged_or_flattened_are_read_beside_the_library() {
    reads_its_own_types();
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_with_such_types_ends() {
    let charge = charge(json!([
        {"thought": "Look.", "action": "charge", "action_input": {"id": 18446744073709551615u64}},
        {"thought": "Done.", "action": "__complete__", "action_input": {"answer": "charged"}}]));
    let ended = charge.start(json!({})).await.unwrap();
    assert_eq!(ended.answer_as::<String>().unwrap(), "charged");
}

#[test]
fn a_number_of_a_document_that_can_not_be_held_is_refused_at_its_place() {
    let text = DOCUMENT.replace("\"mode\"", "\"max_cost_usd\": 12345678901234567890123, \"mode\"");
    let refused = Loop::load_text("charge.json", text).tool(Charge).build().unwrap_err().to_string();
    assert!(refused.contains("a number has more digits than can be held exactly"), "{refused}");
    assert!(refused.contains("`exact-numbers`"), "{refused}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_number_of_a_model_that_can_not_be_held_is_answered_with_a_sentence() {
    let charge = charge(json!([
        "{\"thought\": \"Look.\", \"action\": \"charge\", \"action_input\": {\"id\": 12345678901234567890123}}",
        {"thought": "Done.", "action": "__complete__", "action_input": {"answer": "charged"}}]));
    let ended = charge.start(json!({})).await.unwrap();
    let state = format!("{ended:?}");
    assert!(state.contains("more digits than can be held exactly"), "{state}");
}

#[tokio::test]
async fn what_needs_http_is_refused_before_anything_happens() {
    let action = json!({ "action_name": "ask", "kind": "http", "description": "Asks.", "url": "https://shop.example.com",
        "http_method": "GET" });
    let document = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Ask.", "model": "gpt-x",
        "tools": [{ "type": "action", "name": "ask" }] }, "actions": [action] });
    let asks = Loop::load_text("ask.json", document.to_string()).api_key("k").build().unwrap();
    let Err(Fault::Missing(missing)) = asks.start(json!({})).await else { panic!("it is refused") };
    let what: Vec<&Missing> = missing.iter().map(|missing| &missing.what).collect();
    assert_eq!(what, [&Missing::Tool { name: "ask".to_owned() }, &Missing::Model { name: "gpt-x".to_owned() }]);
    assert!(missing.iter().all(|missing| missing.why.contains("feature `http`")), "{missing:?}");
}
