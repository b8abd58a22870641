//! Tests of the schemas that are sent.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn sent(schema: &Value) -> Value {
    Value::Object(taken(schema).parameters)
}

#[test]
fn what_servers_miss_is_added_and_the_rest_is_sent_as_it_is() {
    for (schema, expected) in [
        (json!({}), json!({ "type": "object", "properties": {} })),
        (json!(true), json!({ "type": "object", "properties": {} })),
        (
            json!({ "type": "object", "properties": { "a": { "type": "array" }, "b": { "type": "object" }, "c": true } }),
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": {} },
                "b": { "type": "object", "additionalProperties": true, "properties": {} }, "c": {} } }),
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": [{ "type": "string" }] } },
                "required": ["a", "b"] }),
            json!({ "type": "object", "properties": { "a": { "type": "array", "prefixItems": [{ "type": "string" }],
                "items": {} }, "b": {} }, "required": ["a", "b"] }),
        ),
    ] {
        assert_eq!(sent(&schema), expected, "{schema}");
    }
    let whole = json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        "b": { "type": "number", "minimum": 1.50 } }, "required": ["a"], "additionalProperties": false });
    assert_eq!(sent(&whole).to_string(), whole.to_string());
}

#[test]
fn alternatives_of_members_keep_both_and_what_all_require_is_required() {
    let schema = json!({ "oneOf": [
        { "properties": { "kind": { "const": "a" }, "x": { "type": "integer" } }, "required": ["kind", "x"] },
        { "properties": { "kind": { "const": "b" } }, "required": ["kind"] } ] });
    let TakenSchema { parameters, left_out, .. } = taken(&schema);
    let either = json!({ "anyOf": [{ "const": "a" }, { "const": "b" }] });
    assert_eq!(
        Value::Object(parameters),
        json!({ "type": "object", "properties": { "kind": either, "x": { "type": "integer" } }, "required": ["kind"] })
    );
    assert_eq!(left_out.map(Value::Object), Some(schema));
    let whole = json!({ "allOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }] });
    assert!(taken(&whole).left_out.is_none());
}

#[test]
fn references_in_circles_at_the_top_end() {
    let circle =
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#" }] } } });
    assert_eq!(sent(&circle)["properties"], json!({}));
}

#[test]
fn references_into_what_is_not_sent_lead_to_a_copy_of_it() {
    let schema = json!({ "anyOf": [
        { "properties": { "x": { "type": "string" }, "y": { "$ref": "#/anyOf/0/properties/x" } } },
        { "properties": { "z": { "$ref": "#/anyOf/0/properties/x" }, "all": { "$ref": "#/anyOf/1" } } } ],
        "then": { "properties": { "t": { "$ref": "#/then/properties/t" } } },
        "$defs": { "anyOf_1": { "type": "null" } } });
    let sent = sent(&schema);
    let mut references = 0;
    references::each_part(&mut sent.as_object().unwrap().clone(), &mut |part| {
        let Some(pointer) = part.get("$ref").and_then(Value::as_str) else { return };
        references += 1;
        assert!(sent.pointer(pointer.trim_start_matches('#')).is_some_and(Value::is_object), "{pointer} in {sent}");
    });
    assert!(references >= 4, "{sent}");
    assert_eq!(sent["properties"]["z"], json!({ "$ref": "#/$defs/anyOf_0/properties/x" }));
    assert_eq!(sent["$defs"]["anyOf_1"], json!({ "type": "null" }));
}

#[test]
fn a_reference_stands_alone_and_no_part_names_a_draft() {
    let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {
        "größe": { "$ref": "#/$defs/p" }, "b": { "$ref": "#/$defs/p", "description": "d", "default": 1 },
        "c": { "$ref": "#/$defs/p" }, "d": { "$ref": "#", "anyOf": [{}] },
        "e": { "$schema": "http://json-schema.org/draft-07/schema#", "type": "string" } },
        "$defs": { "p": { "type": "integer" } } });
    assert_eq!(
        sent(&schema)["properties"],
        json!({ "gr__e": { "description": "größe", "anyOf": [{ "$ref": "#/$defs/p" }] },
            "b": { "description": "d", "default": 1, "anyOf": [{ "$ref": "#/$defs/p" }] }, "c": { "$ref": "#/$defs/p" },
            "d": { "anyOf": [{}], "allOf": [{ "$ref": "#" }] }, "e": { "type": "string" } })
    );
}

proptest! {
    #[test]
    fn each_name_is_sent_as_it_is_taken_and_comes_back(names in prop::collection::hash_set("\\PC{1,80}", 1..8)) {
        let members: Map<String, Value> = names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
        let schema = json!({ "type": "object", "properties": members });
        let TakenSchema { parameters, names: given, .. } = taken(&schema);
        let Some(sent) = parameters["properties"].as_object() else { return Err(TestCaseError::fail("an object")) };
        prop_assert_eq!(sent.len(), names.len());
        let input: Map<String, Value> = sent.keys().map(|name| (name.clone(), json!("x"))).collect();
        for name in sent.keys() {
            let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            prop_assert!(name.len() <= 64 && name.chars().all(fits), "{}", name);
        }
        let back = if given.is_empty() { Value::Object(input) } else { given.restored(Value::Object(input), &schema) };
        let back: std::collections::HashSet<String> = back.as_object().unwrap().keys().cloned().collect();
        prop_assert_eq!(back, names);
    }
}
