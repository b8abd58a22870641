//! The agent's memory: values by key, with bounds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::event::ToolResult;
use super::step::failed;
use super::storable;
use crate::diagnostic::nearest;

/// The longest key, in characters.
const KEY_CHARS: usize = 256;
/// The largest value, in bytes of JSON.
const VALUE_BYTES: usize = 64 * 1024;
/// The most keys.
const KEYS: usize = 256;
/// The largest memory, in bytes of JSON: each run of a session begins with a copy.
const MEMORY_BYTES: usize = 1024 * 1024;

/// Keeps a value.
///
/// # Errors
/// When the key or the value is too large, or there are too many keys.
pub(super) fn store(memory: &mut BTreeMap<String, Value>, key: &str, value: Value) -> Result<(), String> {
    if key.is_empty() || key.chars().count() > KEY_CHARS {
        return Err(format!("a key has 1 to {KEY_CHARS} characters"));
    }
    if let Some(why) = storable::fault_of(&value) {
        return Err(format!("the value {why}"));
    }
    let bytes = value.to_string().len();
    if bytes > VALUE_BYTES {
        return Err(format!("a value has at most {VALUE_BYTES} bytes, and this one has {bytes}"));
    }
    if !memory.contains_key(key) && memory.len() >= KEYS {
        return Err(format!("the memory holds at most {KEYS} keys"));
    }
    let others = memory.iter().filter(|(known, _)| known.as_str() != key);
    if others.map(|(_, kept)| kept.to_string().len()).sum::<usize>().saturating_add(bytes) > MEMORY_BYTES {
        return Err(format!("the memory holds at most {MEMORY_BYTES} bytes; store less, or under a key that is there"));
    }
    memory.insert(key.to_owned(), value);
    Ok(())
}

/// Gives a value, or all keys.
pub(super) fn retrieve(memory: &BTreeMap<String, Value>, key: Option<&str>) -> ToolResult {
    let Some(key) = key else {
        return ToolResult::Ok(json!({ "keys": memory.keys().collect::<Vec<_>>() }));
    };
    match memory.get(key) {
        Some(value) => ToolResult::Ok(value.clone()),
        None => match nearest(key, memory.keys().map(String::as_str)) {
            Some(near) => failed(format!("nothing is stored under that key; the nearest one is {near:?}")),
            None => failed("nothing is stored under that key"),
        },
    }
}
