//! Whether a value is what a matcher asks for.

use serde_json::{Value, json};

use crate::language::scenario::ValueMatcher;
use crate::program::Schema;
use crate::program::canonical::spelling;
use crate::trace::json::gist;

/// The columns of a value in a sentence.
const MAX_COLUMNS: usize = 160;

/// Why a value is not what the matcher asks for, in a few words that follow on a subject: `is 3; 4 was expected`. None
/// when it is.
pub fn mismatch(expected: &ValueMatcher, found: &Value) -> Option<String> {
    differs(&expected.0, found, "")
}

/// Whether a value is what the matcher asks for.
pub fn holds(expected: &ValueMatcher, found: &Value) -> bool {
    mismatch(expected, found).is_none()
}

fn differs(expected: &Value, found: &Value, path: &str) -> Option<String> {
    if let Some((word, about)) = ValueMatcher::word(expected) {
        let why = match word {
            "contains" => contains(about, found),
            "matches" => matches(about, found),
            "schema" => fits(about, found),
            _ => differs(about, found, "").is_none().then(|| format!("is {}, which is not allowed", shown(found))),
        };
        return why.map(|why| at(path, &why));
    }
    match (expected, found) {
        (Value::Object(members), Value::Object(there)) => members.iter().find_map(|(name, expected)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match there.get(name) {
                Some(found) => differs(expected, found, &path),
                None => Some(at(&path, &format!("is not there; {} was expected", wanted(expected)))),
            }
        }),
        (Value::Array(items), Value::Array(there)) if items.len() == there.len() => items
            .iter()
            .zip(there)
            .enumerate()
            .find_map(|(index, (expected, found))| differs(expected, found, &format!("{path}[{index}]"))),
        _ if spelling(expected) == spelling(found) => None,
        _ => Some(at(path, &format!("is {}; {} was expected", shown(found), wanted(expected)))),
    }
}

fn at(path: &str, why: &str) -> String {
    if path.is_empty() { why.to_owned() } else { format!("has a difference: `{path}` {why}") }
}

fn contains(part: &Value, found: &Value) -> Option<String> {
    let there = match (part, found) {
        (Value::String(part), Value::String(text)) => text.contains(part.as_str()),
        (part, Value::Array(items)) => items.iter().any(|item| differs(part, item, "").is_none()),
        // What an answer or an observation contains is also looked for in its JSON.
        (Value::String(part), Value::Object(_)) => found.to_string().contains(part.as_str()),
        _ => false,
    };
    (!there).then(|| format!("is {}; it was expected to contain {}", shown(found), shown(part)))
}

fn matches(pattern: &Value, found: &Value) -> Option<String> {
    let Some(pattern) = pattern.as_str() else { return Some("can't be compared: the pattern is no text".to_owned()) };
    let schema = match Schema::compile(json!({ "type": "string", "pattern": pattern })) {
        Ok(schema) => schema,
        Err(fault) => return Some(format!("can't be compared: {}", fault.message)),
    };
    let text = match found {
        Value::String(_) => found.clone(),
        other => Value::String(other.to_string()),
    };
    let fits = schema.faults(&text).is_empty();
    (!fits).then(|| format!("is {}; it was expected to match `{pattern}`", shown(found)))
}

fn fits(schema: &Value, found: &Value) -> Option<String> {
    match Schema::compile(schema.clone()) {
        Ok(schema) => {
            let fault = schema.faults(found).into_iter().next()?;
            let of = if fault.path.is_empty() { String::new() } else { format!(" at `{}`", fault.path) };
            Some(format!("is {}, which does not fit the schema{of}: {}", shown(found), fault.message))
        }
        Err(fault) => Some(format!("can't be compared: {}", fault.message)),
    }
}

/// A value in a sentence.
pub fn shown(value: &Value) -> String {
    gist(value, MAX_COLUMNS)
}

/// What a matcher asks for, in a sentence.
fn wanted(expected: &Value) -> String {
    match ValueMatcher::word(expected) {
        Some(("contains", part)) => format!("one that contains {}", shown(part)),
        Some(("matches", pattern)) => format!("one that matches {}", shown(pattern)),
        Some(("schema", _)) => "one that fits the schema".to_owned(),
        Some((_, inner)) => format!("another one than {}", wanted(inner)),
        None => shown(expected),
    }
}
