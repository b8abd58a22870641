//! Which values a journal can store and read back unchanged.
//!
//! Two kinds of value can be written but not read again: one that is nested deeper than the reader allows (127
//! levels, including those of the event around it), and one with a key that serde_json reserves. Both are
//! refused when they come in: a run with an unreadable event would be lost.

use serde_json::Value;

/// The deepest nesting of a value, in levels; `[]` has one.
pub const MAX_DEPTH: usize = 120;

/// The prefix of the keys that serde_json reserves.
const KEPT_KEYS: &str = "$serde_json::private::";

/// Why a value can't be stored, in words that follow the value's name; none when it can.
pub fn fault_of(value: &Value) -> Option<String> {
    fault_at(value, 1)
}

/// The same for a value at this depth; recurses no deeper than the limit.
fn fault_at(value: &Value, depth: usize) -> Option<String> {
    let (Value::Array(_) | Value::Object(_)) = value else { return None };
    if depth > MAX_DEPTH {
        return Some(format!("is nested deeper than {MAX_DEPTH} levels"));
    }
    match value {
        Value::Array(items) => items.iter().find_map(|item| fault_at(item, depth + 1)),
        Value::Object(fields) => {
            if let Some(key) = fields.keys().find(|key| key.starts_with(KEPT_KEYS)) {
                return Some(format!("has the key {key:?}, which no value may have"));
            }
            fields.values().find_map(|field| fault_at(field, depth + 1))
        }
        _ => None,
    }
}

/// The value, or its text if it can't be stored.
pub fn kept(value: Value) -> Value {
    if fault_of(&value).is_some() { Value::String(value.to_string()) } else { value }
}
