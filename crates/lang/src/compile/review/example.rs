//! An example, or names with the names of their types, in place of a schema; properties outside of `properties`.

use serde_json::{Map, Value, json};

use super::keyword::SortedMembers;
use super::{Part, listed};
use crate::diagnostic::codes;
use crate::program::fault::LocalFault;
use crate::program::schema::vocabulary::keyword_named;
use crate::program::schema::{is_type_word, type_meant};

/// How deep, and how many names wide, the schema is that a help shows.
const SHOWN_DEPTH_AND_NAMES: (usize, usize) = (3, 4);
/// The names under which other products wrap a schema.
const WRAPPERS: [&str; 8] =
    ["schema", "parameters", "json_schema", "jsonSchema", "input_schema", "inputSchema", "function", "args_schema"];

/// Whether a value is most likely a schema: an object with a keyword that says which values match.
pub(super) fn looks_like_schema(value: &Value) -> bool {
    let Value::Object(members) = value else { return false };
    members.iter().any(|(name, value)| {
        keyword_named(name).is_some_and(|keyword| {
            keyword.holds.takes(value)
                && (keyword.asserts() || keyword.name == "description")
                && (keyword.name != "type" || !value.is_string() || value.as_str().is_some_and(is_type_word))
        })
    })
}

/// The name under which a part wraps the schema that is meant.
pub(super) fn wrapper(part: &Part<'_>) -> Option<&'static str> {
    // Most parts have none of the names: a look at their few members costs less than a search for each name.
    if !part.members.keys().any(|name| WRAPPERS.contains(&name.as_str())) {
        return None;
    }
    let wraps = |name: &&&str| {
        let inner = part.members.get(**name).and_then(Value::as_object);
        inner.is_some_and(|inner| {
            inner.get("properties").is_some() || WRAPPERS.iter().any(|name| inner.contains_key(*name))
        })
    };
    WRAPPERS.iter().find(wraps).filter(|_| !part.members.contains_key("properties")).copied()
}

/// Reports a part of which nothing is a schema.
pub(super) fn whole(part: &Part<'_>, written: &SortedMembers<'_>) -> Option<LocalFault> {
    if let Some(name) = wrapper(part) {
        let message = format!("this is no JSON Schema: it wraps the one under `{name}`");
        let fault = LocalFault::error(codes::NO_SCHEMA, part.below(name), message).at_key();
        return Some(fault.help(format!(
            "write what is under `{name}` in place of the whole: the name and the description stand beside it"
        )));
    }
    if written.asserting > 0 || !written.meant.is_empty() {
        return None;
    }
    if written.properties.is_empty() && (written.others.is_empty() || written.describing > 0) {
        return None;
    }
    let names: Vec<&str> = written.properties.iter().chain(&written.others).copied().collect();
    let message = match names.as_slice() {
        [name] => format!("this is an example or a short form, and no JSON Schema: {} is no keyword", listed(&[name])),
        names => format!("this is an example or a short form, and no JSON Schema: {} are no keywords", listed(names)),
    };
    let fault = LocalFault::error(codes::NO_SCHEMA, part.at.as_str(), message);
    let whole = Value::Object(part.members.clone());
    let fault =
        fault.help(format!("a schema says what each name holds: {}", described(&whole, SHOWN_DEPTH_AND_NAMES.0)));
    Some(match short_form(&whole) {
        Some(schema) => fault.replace_with(schema.to_string()),
        None => fault,
    })
}

/// Reports properties that are written beside `properties`, or without it.
pub(super) fn outside(part: &Part<'_>, written: &SortedMembers<'_>) -> Vec<LocalFault> {
    let is_object = part.types().is_none_or(|types| types.contains(&"object"));
    let has_properties = part.members.contains_key("properties");
    let mut faults = Vec::new();
    for name in &written.properties {
        let message = format!("{} is no keyword of JSON Schema, and has no effect", listed(&[name]));
        let fault = LocalFault::error(codes::NO_SCHEMA, part.below(name), message).at_key();
        faults.push(fault.help(match (is_object, has_properties) {
            (true, true) => "a property is written inside `properties`".to_owned(),
            (true, false) => format!(
                "the properties of an object are written in `properties`: {{\"properties\": {{\"{name}\": {{...}}}}}}"
            ),
            (false, _) => "only an object has properties: \"type\": \"object\", and \"properties\"".to_owned(),
        }));
    }
    faults
}

/// The schema that names with the names of their types mean, when all of it is in that form.
fn short_form(value: &Value) -> Option<Value> {
    match value {
        Value::String(word) if is_type_word(word) => Some(match type_meant(word) {
            Some(name) => json!({ "type": name }),
            None => json!({}),
        }),
        Value::Array(items) => match items.as_slice() {
            [item] => Some(json!({ "type": "array", "items": short_form(item)? })),
            _ => None,
        },
        Value::Object(_) if looks_like_schema(value) => Some(value.clone()),
        Value::Object(members) if !members.is_empty() => {
            let named: Option<Map<String, Value>> =
                members.iter().map(|(name, value)| Some((name.clone(), short_form(value)?))).collect();
            Some(json!({ "type": "object", "properties": named? }))
        }
        _ => None,
    }
}

/// The schema that an example is one of, as a help shows it.
fn described(value: &Value, depth: usize) -> String {
    let Some(depth) = depth.checked_sub(1) else { return "{...}".to_owned() };
    let of_type = |name: &str| format!("{{\"type\": \"{name}\"}}");
    match value {
        Value::String(word) => of_type(type_meant(word).unwrap_or("string")),
        Value::Bool(_) => of_type("boolean"),
        Value::Null => of_type("null"),
        Value::Number(number) => of_type(if number.is_f64() { "number" } else { "integer" }),
        Value::Array(items) => match items.first() {
            Some(item) => format!("{{\"type\": \"array\", \"items\": {}}}", described(item, depth)),
            None => of_type("array"),
        },
        Value::Object(_) if looks_like_schema(value) => "{...}".to_owned(),
        Value::Object(members) => {
            let shown = members.iter().take(SHOWN_DEPTH_AND_NAMES.1);
            let mut shown: Vec<String> = shown
                .map(|(name, value)| format!("{}: {}", Value::from(super::short(name)), described(value, depth)))
                .collect();
            if members.len() > shown.len() {
                shown.push("...".to_owned());
            }
            format!("{{\"type\": \"object\", \"properties\": {{{}}}}}", shown.join(", "))
        }
    }
}
