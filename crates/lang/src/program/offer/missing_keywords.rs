//! What servers miss in a schema that is right without it: the `properties` of an object, the `items` of a list, a schema
//! in the place of `true`, the form of 2020 in the place of older ones.

use serde_json::{Map, Value, json};

use crate::program::schema::vocabulary::{Holds, keyword_named};

/// A part of a schema, whole.
fn part(schema: Value) -> Value {
    match schema {
        Value::Object(written) => Value::Object(members(written)),
        Value::Bool(true) => json!({}),
        Value::Bool(false) => json!({ "not": {} }),
        schema => schema,
    }
}

/// The keywords of a schema, whole.
pub(super) fn members(written: Map<String, Value>) -> Map<String, Value> {
    let mut members: Map<String, Value> = written
        .into_iter()
        .map(|(keyword, value)| {
            let value = within(&keyword, value);
            (keyword, value)
        })
        .collect();
    modern(&mut members);
    let is = |kind: &str| match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    };
    let (is_list, is_object) = (is("array"), is("object"));
    if is_list {
        members.entry("items").or_insert_with(|| json!({}));
    }
    if is_object {
        object(&mut members);
    }
    members
}

fn within(keyword: &str, value: Value) -> Value {
    // Here `true` and `false` are taken.
    if matches!(keyword, "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems") && value.is_boolean() {
        return value;
    }
    match (keyword_named(keyword).map(|keyword| keyword.holds), value) {
        (Some(Holds::Schemas | Holds::SchemaOrSchemas), Value::Array(parts)) => parts.into_iter().map(part).collect(),
        (Some(Holds::Schema | Holds::SchemaOrSchemas), value) => part(value),
        (Some(Holds::NamedSchemas), Value::Object(parts)) => {
            Value::Object(parts.into_iter().map(|(name, schema)| (name, part(schema))).collect())
        }
        (_, value) => value,
    }
}

/// The keywords of older drafts in the form that servers read.
fn modern(members: &mut Map<String, Value>) {
    if let Some(Value::Array(_)) = members.get("items")
        && let Some(places) = members.shift_remove("items")
    {
        members.insert("prefixItems".to_owned(), places);
        let others = members.shift_remove("additionalItems").unwrap_or_else(|| json!({}));
        members.insert("items".to_owned(), others);
    }
    for (bound, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match members.get(bound) {
            Some(Value::Bool(true)) => {
                members.shift_remove(bound);
                if let Some(number) = members.shift_remove(limit) {
                    members.insert(bound.to_owned(), number);
                }
            }
            Some(Value::Bool(false)) => drop(members.shift_remove(bound)),
            _ => {}
        }
    }
}

/// The members of an object: all that are required are among them.
fn object(members: &mut Map<String, Value>) {
    let says_more = ["additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames", "$ref"];
    if !members.contains_key("properties") {
        // Some servers take an object whose members are not named for an empty one.
        if !says_more.iter().any(|name| members.contains_key(*name)) {
            members.insert("additionalProperties".to_owned(), Value::Bool(true));
        }
        members.insert("properties".to_owned(), json!({}));
    }
    let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for name in required.iter().filter_map(Value::as_str) {
            properties.entry(name).or_insert_with(|| json!({}));
        }
    }
}
