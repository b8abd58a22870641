//! Examples for the JSON Schemas: what an editor shows where a document or a field is written.

use schemars::Schema;
use serde_json::{Map, Value};

use crate::policy::json_text;

/// A whole document of each kind, by its name.
const DOCUMENTS: [(&str, &str); 8] = [
    (
        "loop",
        r#"{"type": "loop", "properties": {"mode": "react", "objective": "Why is order {{input.order_id}} late?",
            "tools": [{"type": "action", "name": "find_order"}], "max_iterations": 10,
            "on_stuck": {"iterations": 3, "action": "escalate"}}}"#,
    ),
    (
        "workflow",
        r#"{"name": "claims", "definition": {"actions": [
            {"type": "lookup_claim", "properties": {"id": "@input.claim_id"}, "outputKey": "claim"},
            {"type": "PbotApproval", "filter": {"condition": {"greaterThan": ["@claim.amount", 5000]}},
             "properties": {"comment": "Pay {{claim.amount}}?"}}]}}"#,
    ),
    (
        "agent-request",
        r#"{"objective": "Why is order {{input.order_id}} late?", "tools": [{"type": "action", "name": "find_order"}],
            "config": {"max_iterations": 8}, "input": {"order_id": "A-17"}}"#,
    ),
    (
        "actions",
        r#"[{"action_name": "find_order", "kind": "http", "description": "Reads one order by its id.",
            "url": "https://api.example.com/orders/{{order_id}}", "http_method": "GET",
            "headers": {"Authorization": "Bearer orgconfig:orders_token"}}]"#,
    ),
    (
        "project",
        r#"{"model": "main", "models": {"main": {"provider": "openai", "model": "gpt-4o-mini", "api_key": "env:OPENAI_API_KEY"}},
            "orgconfig": {"orders_token": "env:ORDERS_TOKEN"}, "allow": {"hosts": ["api.example.com"]}}"#,
    ),
    (
        "scenario",
        r#"{"document": "loop.json", "tools": {"find_order": [{"state": "late"}]}, "scenarios": [
            {"name": "a late order is explained", "input": {"order_id": "A-17"},
             "replies": [{"thought": "I look it up.", "action": "find_order", "action_input": {"order_id": "A-17"}},
                         {"thought": "That is it.", "answer": "It is late."}],
             "expect": {"status": "completed", "answer": {"contains": "late"}, "never": ["refund"]}}]}"#,
    ),
    (
        "recording",
        r#"{"recording": 1, "document": "6c62272e07bb0142", "loop": "orders", "dialect": "json", "now": "2026-01-01T00:00:00Z",
            "input": {"order_id": "A-17"}, "entries": [
            {"ask": {"loop": "orders", "request": 1, "messages": ["1f3a0c5e7d2b4a69"], "tools": "0b7e", "sampling": "9c1d"},
             "reply": {"text": "{\"action\": \"find_order\", \"action_input\": {\"order_id\": \"A-17\"}}"}},
            {"call": {"at": "1.0", "action": "find_order", "input": {"order_id": "A-17"}}, "gave": {"state": "late"}}]}"#,
    ),
    (
        "script",
        r#"{"replies": [{"thought": "I look it up.", "action": "find_order", "action_input": {"order_id": "A-17"}},
            {"thought": "That is it.", "action": "__complete__", "action_input": {"answer": "It waits for a part."}}],
            "tools": {"find_order": [{"state": "waiting"}]}}"#,
    ),
];

/// An example for a field, by its name.
const FIELDS: [(&str, &str); 20] = [
    ("objective", r#""Why is order {{input.order_id}} late?""#),
    ("model", r#""gpt-4o-mini""#),
    ("result_key", r#""answer""#),
    ("outputKey", r#""claim""#),
    ("items_path", r#""@input.orders""#),
    ("item_variable_name", r#""order""#),
    ("item_label", r#""{{order.id}}""#),
    ("hint", r#""Try another tool, or complete with what you know.""#),
    ("url", r#""https://api.example.com/orders/{{order_id}}""#),
    ("program", r#""git""#),
    ("every", r#""1d""#),
    ("at", r#""09:30""#),
    ("timezone", r#""Europe/Zurich""#),
    ("comment", r#""Pay {{claim.amount}} for {{claim.id}}?""#),
    ("expected_keys", r#"["amount", "reason"]"#),
    ("equal", r#"["@claim.state", "open"]"#),
    ("greaterThan", r#"["@claim.amount", 5000]"#),
    ("hasKey", r#""claim.amount""#),
    ("in", r#"["@input.level", ["admin", "elevated"]]"#),
    ("matches", r#"["@input.order_id", "^A-[0-9]+$"]"#),
];

/// Gives the schema of a kind of document its example.
pub(super) fn whole(schema: &mut Schema, kind: &str) {
    let text = DOCUMENTS.iter().find(|(known, _)| *known == kind).map(|(_, text)| *text);
    if let Some(example) = text.and_then(|text| json_text::read(text).ok()) {
        schema.insert("examples".to_owned(), Value::Array(vec![example]));
    }
}

/// Gives the fields of an object their examples, and to a field without a text the one of its object: the
/// word that decides the kind of the object.
pub(super) fn fields(schema: &mut Schema) {
    let about = schema.get("description").cloned();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    let alone = properties.len() == 1;
    for (name, field) in properties.iter_mut() {
        let Value::Object(field) = field else { continue };
        let example = FIELDS.iter().find(|(known, _)| known == name);
        let example: Option<Value> = example.and_then(|(_, text)| json_text::read(text).ok());
        if let Some(example) = example.filter(|example| takes(field, example) && !field.contains_key("pattern")) {
            field.insert("examples".to_owned(), Value::Array(vec![example]));
        }
        let decides = alone || field.contains_key("const");
        if let Some(about) = about.as_ref().filter(|_| decides && !field.contains_key("description")) {
            field.insert("description".to_owned(), about.clone());
        }
    }
}

/// Whether a field takes values of the example's type.
fn takes(field: &Map<String, Value>, example: &Value) -> bool {
    let name = if example.is_string() { "string" } else { "array" };
    match field.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(all)) => all.iter().any(|one| one == name),
        _ => false,
    }
}
