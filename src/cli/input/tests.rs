//! What a field of `--input` becomes.

use super::*;
use serde_json::json;

fn field(text: &str, schema: &Value) -> Value {
    read_fields(text, Some(schema)).unwrap().remove("n").unwrap()
}

#[test]
fn a_value_is_json_when_it_reads_as_json() {
    for (text, value) in [
        ("n=12", json!(12)),
        ("n=true", json!(true)),
        ("n={\"a\":[1]}", json!({"a": [1]})),
        ("n=TK-1", json!("TK-1")),
        ("n=", json!("")),
        ("n=a=b", json!("a=b")),
    ] {
        assert_eq!(field(text, &json!({})), value, "{text}");
    }
}

#[test]
fn a_value_stays_text_where_the_schema_says_string() {
    for schema in [
        json!({"properties": {"n": {"type": "string"}}}),
        json!({"properties": {"n": {"type": ["string", "null"]}}}),
        json!({"properties": {"n": {"enum": ["1", "2"]}}}),
        json!({"properties": {"n": {"$ref": "#/$defs/id"}}, "$defs": {"id": {"type": "string"}}}),
    ] {
        assert_eq!(field("n=12", &schema), json!("12"), "{schema}");
    }
    assert_eq!(field("n=12", &json!({"properties": {"n": {"type": "integer"}}})), json!(12));
}

#[test]
fn an_object_gives_all_its_members_as_they_are_written() {
    let schema = json!({"properties": {"n": {"type": "string"}}});
    for text in ["{\"n\": 12, \"a=b\": [1]}", "  {\"n\":12,\"a=b\":[1]}"] {
        assert_eq!(Value::Object(read_fields(text, Some(&schema)).unwrap()), json!({"n": 12, "a=b": [1]}), "{text}");
    }
    for text in ["{\"n\": 12", "{n: 12}", "{\"n\": 1, \"n\": 2}", "{\"n\": 1} and more"] {
        assert!(read_fields(text, None).is_err(), "{text}");
    }
}

#[test]
fn digits_are_kept() {
    assert_eq!(field("n=12345678901234567890123", &json!({})).to_string(), "12345678901234567890123");
}

#[test]
fn a_field_without_a_name_or_a_value_is_refused() {
    for text in ["n", "=1", ""] {
        assert!(read_fields(text, None).is_err(), "{text}");
    }
}
