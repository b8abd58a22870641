//! The words that stores, results, reports and documents have for the variants of an enum: the ones that it is read by.

use serde::Serialize;
use serde_json::Value;

/// The word that a value is written as; nothing for a value that is no word.
pub fn written(value: &impl Serialize) -> Option<String> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Some(word),
        _ => None,
    }
}
