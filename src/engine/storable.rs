//! What a journal can hold: values that are read back as they were written.
//!
//! Two kinds of value are written without a fault and can't be read again: one that is nested deeper
//! than the reader goes (127 levels, with those of the event around it), and one with a key that the
//! reader keeps for itself. Both are stopped where they come in: an event that can't be read back is
//! a run that is lost.

use serde_json::Value;

/// The deepest nesting of a value, in levels; `[]` has one.
pub const MAX_DEPTH: usize = 120;

/// How the keys begin that the reader of JSON takes for its own signs.
const KEPT_KEYS: &str = "$serde_json::private::";

/// Why a value can't be kept, in words that follow the value's name; nothing when it can.
pub fn fault_of(value: &Value) -> Option<String> {
    fault_at(value, 1)
}

/// The same for a value at this depth: it goes no deeper than the bound.
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

/// The value, or its text when it can't be kept as it is.
pub fn kept(value: Value) -> Value {
    if fault_of(&value).is_some() { Value::String(value.to_string()) } else { value }
}
