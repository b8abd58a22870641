//! Tests of the review: schemas, and what is reported of each with its place.

use serde_json::{Value, json};

use super::{ReviewedValues, review};
use crate::diagnostic::codes::{
    IDLE_KEYWORD as IDLE, IMPOSSIBLE_SCHEMA as IMPOSSIBLE, NO_SCHEMA, UNDESCRIBED_NAME as UNDESCRIBED,
    UNKNOWN_KEYWORD as UNKNOWN,
};

fn found(schema: &Value) -> Vec<(&'static str, String)> {
    review(schema, ReviewedValues::Objects, &[]).faults.into_iter().map(|fault| (fault.code, fault.pointer)).collect()
}

fn fixed(schema: &Value) -> Vec<String> {
    let faults = review(schema, ReviewedValues::Objects, &[]).faults;
    faults.into_iter().filter_map(|fault| fault.replacement.or(fault.rename.map(|(_, meant)| meant))).collect()
}

#[test]
fn each_fault_is_reported_at_its_place() {
    for (schema, faults) in [
        (json!({"requird": ["a"], "properties": {"a": {}}}), vec![(UNKNOWN, "/requird")]),
        (json!({"properties": {"a": {"type": "string", "nullable": true}}}), vec![(UNKNOWN, "/properties/a/nullable")]),
        (json!({"type": "integer", "divisibleBy": 2}), vec![(UNKNOWN, "/divisibleBy")]),
        (json!({"type": "string", "id": "http://x/y"}), vec![(UNKNOWN, "/id")]),
        (json!({"type": "string", "example": "x"}), vec![(UNKNOWN, "/example")]),
        (json!({"type": "string", "colour": "red"}), vec![(UNKNOWN, "/colour")]),
        (json!({"type": "array", "items": {"type": "string", "min": 1}}), vec![(UNKNOWN, "/items/min")]),
        (
            json!({"type": "object", "properties": {"a": {}, "additionalProperties": false}}),
            vec![(UNKNOWN, "/properties/additionalProperties")],
        ),
        (json!({"a": "string", "b": "int"}), vec![(NO_SCHEMA, "")]),
        (json!({"a": "Ada", "b": 41}), vec![(NO_SCHEMA, "")]),
        (json!({"type": "object", "a": {"type": "string"}}), vec![(NO_SCHEMA, "/a")]),
        (json!({"properties": {"a": {"name": "string"}}}), vec![(NO_SCHEMA, "/properties/a")]),
        (
            json!({"name": "x", "strict": true, "schema": {"type": "object", "properties": {}}}),
            vec![(NO_SCHEMA, "/schema")],
        ),
        (json!({"properties": {"a": {}}, "required": ["a", "b"]}), vec![(UNDESCRIBED, "/required/1")]),
        (json!({"type": "object", "required": ["b"]}), vec![(UNDESCRIBED, "/required/0")]),
        (
            json!({"properties": {"a": {}}, "required": ["b"], "additionalProperties": false}),
            vec![(IMPOSSIBLE, "/required/0")],
        ),
        (json!({"properties": {"a": false}, "required": ["a"]}), vec![(IMPOSSIBLE, "/properties/a")]),
        (json!({"minimum": 3, "maximum": 2}), vec![(IMPOSSIBLE, "/minimum")]),
        (json!({"exclusiveMinimum": 2, "maximum": 2}), vec![(IMPOSSIBLE, "/exclusiveMinimum")]),
        (json!({"items": {"minLength": 3, "maxLength": 2}}), vec![(IMPOSSIBLE, "/items/minLength")]),
        (json!({"type": "string", "const": 5}), vec![(IMPOSSIBLE, "/const")]),
        (json!({"const": 5, "enum": [1, 2]}), vec![(IMPOSSIBLE, "/enum")]),
        (json!({"type": "integer", "enum": ["1", "2"]}), vec![(IMPOSSIBLE, "/enum")]),
        (json!({"type": "string", "pattern": "^[0-9]+$", "enum": ["a"]}), vec![(IMPOSSIBLE, "/enum")]),
        (json!({"type": "string", "enum": ["a", null]}), vec![(IDLE, "/enum/1")]),
        (json!({"type": "integer", "default": "ten"}), vec![(IDLE, "/default")]),
        (json!({"enum": ["a", "b"], "default": "c"}), vec![(IDLE, "/default")]),
        (json!({"type": "integer", "minLength": 3}), vec![(IDLE, "/minLength")]),
        (json!({"type": "array", "properties": {"a": {}}}), vec![(IDLE, "/properties")]),
        (json!({"then": {"type": "string"}}), vec![(IDLE, "/then")]),
    ] {
        let faults: Vec<(&str, String)> = faults.into_iter().map(|(code, at)| (code, at.to_owned())).collect();
        assert_eq!(found(&schema), faults, "{schema}");
    }
}

#[test]
fn what_is_legal_and_odd_is_sound() {
    for schema in [
        json!({}),
        json!({"type": "object", "properties": {"type": {"type": "string"}, "required": {}, "properties": {}, "enum": {}}}),
        json!({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}, "$comment": "x"}),
        json!({"patternProperties": {"^x": {}}, "required": ["x1"], "type": "object"}),
        json!({"additionalProperties": {"type": "string"}, "required": ["a"], "type": "object"}),
        json!({"allOf": [{"properties": {"a": {}}}, {"required": ["a"]}], "required": ["a"]}),
        json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}, "b": {}}}),
        json!({"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}),
        json!({"dependentRequired": {"a": ["b"]}, "unevaluatedProperties": false, "minProperties": 1}),
        json!({"type": "string", "contentEncoding": "base64", "format": "iban", "deprecated": true, "readOnly": true}),
        json!({"type": ["string", "null"], "enum": ["a", null], "default": null, "examples": ["a"]}),
        json!({"x-order": 1, "x-ui": {"widget": "text"}, "ui:widget": "text", "markdownDescription": "x", "enumNames": ["A"]}),
        json!({"type": "number", "const": 1.0, "minimum": 1, "maximum": 1}),
        json!({"type": "integer", "enum": [1.0, 2]}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x/y", "minimum": 1, "exclusiveMinimum": true}),
        json!({"prefixItems": [{"type": "string"}], "items": false, "contains": {"const": "x"}, "minContains": 1}),
        json!({"not": {"required": ["a"]}}),
        json!({"description": "anything"}),
    ] {
        assert_eq!(found(&schema), [], "{schema}");
    }
}

#[test]
fn where_there_is_one_reading_it_is_offered() {
    for (schema, meant) in [
        (json!({"requird": ["a"], "properties": {"a": {}}}), vec!["required"]),
        (json!({"type": "string", "max": 5}), vec!["maxLength"]),
        (json!({"type": "number", "minLength": 5}), vec!["minimum"]),
        (json!({"fields": {"a": {"type": "string"}}}), vec!["properties"]),
        (json!({"properties": {"order_id": {}}, "required": ["orderid"]}), vec!["order_id"]),
        (
            json!({"a": "str", "b": ["int"]}),
            vec![
                r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}}}"#,
            ],
        ),
        (json!({"type": "number", "length": 5}), vec![]),
        (json!({"a": "Ada"}), vec![]),
    ] {
        assert_eq!(fixed(&schema), meant, "{schema}");
    }
}

#[test]
fn what_the_draft_refuses_is_not_reported_again() {
    let schema = json!({"properties": {"a": {"enum": [1], "type": "string"}, "b": {"enum": [1], "type": "string"}}});
    let refused = ["/properties/a"];
    let places: Vec<String> =
        review(&schema, ReviewedValues::Objects, &refused).faults.into_iter().map(|fault| fault.pointer).collect();
    assert_eq!(places, ["/properties/b/enum"]);
}

#[test]
fn what_hides_the_names_of_a_schema_is_known() {
    let hides = |schema: &Value| review(schema, ReviewedValues::Objects, &[]).hides_names;
    assert!(hides(&json!({"a": "string"})) && hides(&json!({"fields": {"a": {"type": "string"}}})));
    assert!(!hides(&json!({"properties": {"a": {"enum": [1], "type": "string"}}})));
    assert!(!hides(&json!({"properties": {"a": {}}, "titel": "x"})));
}
