//! Schemas that are taken at a glance are schemas that compile.

use proptest::prelude::*;
use serde_json::json;

use super::{Value, evident_schema, plan};

fn part(key: &'static str) -> impl Strategy<Value = (String, Value)> {
    let values = prop_oneof![
        Just(json!("string")),
        Just(json!("object")),
        Just(json!(["string", "null"])),
        Just(json!(["a", "b"])),
        Just(json!(["a", "a"])),
        Just(json!([1, 2.5, null, true])),
        Just(json!([])),
        Just(json!({})),
        Just(json!({"type": "integer", "minimum": 1})),
        Just(json!({"a": {"type": "string"}, "b": true})),
        Just(json!([{"type": "string"}, {"const": 1}])),
        Just(json!(true)),
        Just(json!(0)),
        Just(json!(3)),
        Just(json!(-1)),
        Just(json!(1.0)),
        Just(json!(2.5)),
        Just(json!(null)),
        Just(json!("^[a-z]{2,4}-\\d+$")),
        "[\\[\\]A-Za-z0-9_^$.*+?{},\\\\d-]{0,12}".prop_map(Value::from),
    ];
    values.prop_map(move |value| (key.to_owned(), value))
}

const KEYS: [&str; 28] = [
    "type",
    "properties",
    "items",
    "additionalProperties",
    "not",
    "anyOf",
    "oneOf",
    "allOf",
    "required",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "uniqueItems",
    "description",
    "title",
    "default",
    "examples",
    "pattern",
    "format",
    "$ref",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 8 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn a_schema_that_is_taken_at_a_glance_compiles(
        parts in proptest::collection::vec(proptest::sample::select(KEYS.to_vec()).prop_flat_map(part), 1..4)
    ) {
        let schema = Value::Object(parts.into_iter().collect());
        if evident_schema::is_plain(&schema) {
            prop_assert!(plan(&schema, usize::MAX).is_ok(), "{}", schema);
        }
    }
}

#[test]
fn what_people_write_is_taken_at_a_glance_and_what_needs_a_look_is_not() {
    let usual = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "pattern": "^TK-[0-9]{4}$", "description": "The ticket" },
            "kind": { "enum": ["a", "b"] },
            "cents": { "type": ["integer", "null"], "minimum": 0 },
            "names": { "type": "array", "items": { "type": "string", "minLength": 1 }, "uniqueItems": true }
        },
        "required": ["id", "kind"],
        "additionalProperties": false
    });
    assert!(evident_schema::is_plain(&usual));
    for odd in [
        json!({ "$ref": "#/$defs/x" }),
        json!({ "type": "text" }),
        json!({ "required": "id" }),
        json!({ "pattern": "(" }),
        json!({ "properties": { "id": { "type": "strin" } } }),
        json!({ "minLength": -1 }),
        json!({ "$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": true }),
    ] {
        assert!(!evident_schema::is_plain(&odd), "{odd}");
    }
}
