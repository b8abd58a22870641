//! One fault hides no other: for each pair of faults in different values of one document both are reported, and
//! nothing else is.

use loopctl::compile::Texts;
use loopctl::diagnostic::Source;
use loopctl::load_texts;
use serde_json::{Value, json};

/// A document without a fault.
fn sound() -> Value {
    json!({
        "type": "loop",
        "input": {"type": "object", "properties": {"order": {"type": "string"}}},
        "actions": [{
            "action_name": "refund",
            "kind": "http",
            "description": "Refunds an order.",
            "url": "https://shop.example.com/refunds/{{id}}",
            "http_method": "POST",
            "headers": {"Accept": "text/plain"},
            "body": {"amount": "@amount", "note": "Refund"},
            "idempotent": true,
            "timeout_ms": 1000,
            "parameters": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "amount": {"type": "number"}},
                "required": ["id", "amount"],
            },
        }],
        "properties": {
            "mode": "react",
            "objective": "Refund {{input.order}}.",
            "max_iterations": 5,
            "temperature": 0.5,
            "tools": [{"type": "action", "name": "refund"}],
            "answer_schema": {"type": "object", "properties": {"paid": {"type": "boolean"}}},
        },
    })
}

/// A value that is wrong, and what is reported of it: its code and its pointer.
struct Slip {
    at: &'static str,
    /// The value at that place; none when the field is left out.
    value: Option<Value>,
    code: &'static str,
    path: &'static str,
}

fn slips() -> Vec<Slip> {
    let slip = |at, value, code| Slip { at, value: Some(value), code, path: at };
    vec![
        Slip { at: "/actions/0/kind", value: None, code: "L011", path: "/actions/0" },
        slip("/actions/0/url", json!("https://shop.example.com/refunds/{{id}}/{{nobody}}"), "L060"),
        slip("/actions/0/http_method", json!("POTS"), "L012"),
        slip("/actions/0/headers/Accept", json!(5), "L013"),
        slip("/actions/0/body/note", json!("{{#if id}}"), "L050"),
        slip("/actions/0/idempotent", json!("yes"), "L013"),
        slip("/actions/0/timeout_ms", json!(0), "L014"),
        slip("/actions/0/description", json!(5), "L013"),
        slip("/actions/0/parameters/type", json!("objct"), "L070"),
        slip("/actions/0/parameters/properties/id/type", json!("str"), "L070"),
        slip("/actions/0/parameters/properties/amount/minimum", json!("0"), "L070"),
        slip("/actions/0/parameters/properties/amount/maximm", json!(5), "L150"),
        slip("/actions/0/headers/Authorization", json!("Bearer orgconfig.shop"), "L132"),
        slip("/actions/0/headers/Host", json!("shop.example.com"), "L075"),
        slip("/actions/0/body/token", json!("${SHOP_TOKEN}"), "L132"),
        slip("/actions/0/body/ref", json!("{id}"), "L057"),
        Slip {
            at: "/actions/0/query",
            value: Some(json!({"amount": "{{amount | round}}"})),
            code: "L050",
            path: "/actions/0/query/amount",
        },
        Slip { at: "/actions/0/ok_status", value: Some(json!(["20x"])), code: "L013", path: "/actions/0/ok_status/0" },
        slip("/actions/0/paramters", json!({}), "L010"),
        slip("/input/properties/order/type", json!("text"), "L070"),
        slip("/properties/objective", json!("Refund {{nobody}}."), "L054"),
        slip("/properties/system_prompt", json!("You refund {{order"), "L050"),
        slip("/properties/max_iterations", json!(0), "L014"),
        slip("/properties/tool_timeout_ms", json!(0), "L014"),
        Slip {
            at: "/properties/on_stuck",
            value: Some(json!({"action": "warn"})),
            code: "L012",
            path: "/properties/on_stuck/action",
        },
        slip("/properties/temprature", json!(0.5), "L010"),
        slip("/properties/tools/1", json!(5), "L013"),
        slip("/properties/answer_schema/properties/paid/type", json!("bool"), "L070"),
    ]
}

fn put(document: &mut Value, slip: &Slip) {
    let (around, last) = slip.at.rsplit_once('/').unwrap();
    match (document.pointer_mut(around).unwrap(), &slip.value) {
        (Value::Object(members), Some(value)) => drop(members.insert(last.to_owned(), value.clone())),
        (Value::Object(members), None) => drop(members.shift_remove(last)),
        (Value::Array(items), value) => items.push(value.clone().unwrap()),
        _ => panic!("{}", slip.at),
    }
}

/// The errors of a document: each with its code and pointer.
fn errors(document: &Value) -> Vec<(String, String)> {
    let texts = Texts::new(Source::new("loop.json", format!("{document:#}")));
    let found = load_texts(&texts, std::path::PathBuf::new()).err().map(|unsound| unsound.diagnostics);
    let errors = found.into_iter().flatten().filter(loopctl::diagnostic::Diagnostic::is_error);
    let mut errors: Vec<_> = errors.map(|fault| (fault.code.to_owned(), fault.path)).collect();
    errors.sort();
    errors
}

#[test]
fn of_two_faults_in_different_values_both_are_reported_and_nothing_else() {
    assert!(errors(&sound()).is_empty(), "{:?}", errors(&sound()));
    let slips = slips();
    for (at, one) in slips.iter().enumerate() {
        for other in slips.iter().skip(at) {
            let mut document = sound();
            put(&mut document, one);
            if one.at != other.at {
                put(&mut document, other);
            }
            let mut expected: Vec<_> =
                [one, other].map(|slip| (slip.code.to_owned(), slip.path.to_owned())).into_iter().collect();
            expected.sort();
            expected.dedup();
            assert_eq!(errors(&document), expected, "{} and {}", one.at, other.at);
        }
    }
}
