//! The agent's memory: values by key, with bounds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::event::ToolResult;
use super::storable;
use loopctl_lang::diagnostic::nearest;

/// The longest key, in characters.
const KEY_CHARS: usize = 256;
/// The largest value, in bytes of JSON.
const VALUE_BYTES: usize = 64 * 1024;
/// The most keys.
const KEYS: usize = 256;
/// The largest memory, in bytes of JSON: each run of a session begins with a copy.
const MEMORY_BYTES: usize = 1024 * 1024;

/// The most characters of a value that a list shows.
const SHOWN_CHARS: usize = 200;
/// The longest list, in bytes.
const LIST_BYTES: usize = 4 * 1024;

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

/// Keeps the parts of an observation that the tool's declaration names; a missing part leaves the earlier
/// value. Returns the changed keys, and a line for the model that says what is kept now.
pub(super) fn remember(
    memory: &mut BTreeMap<String, Value>,
    wanted: &BTreeMap<String, String>,
    observed: &Value,
) -> (Vec<String>, String) {
    let (mut keys, mut notes) = (Vec::new(), Vec::new());
    for (key, pointer) in wanted {
        let Some(value) = observed.pointer(pointer) else { continue };
        if memory.get(key) == Some(value) {
            continue;
        }
        match store(memory, key, value.clone()) {
            Ok(()) => {
                notes.push(line(key, value));
                keys.push(key.clone());
            }
            Err(why) => notes.push(format!("{} could not be kept: {why}", Value::from(key.as_str()))),
        }
    }
    let note = if notes.is_empty() { String::new() } else { format!("\n[kept in memory: {}]", notes.join(", ")) };
    (keys, note)
}

/// The memory as a compact list: long values are cut, and keys that do not fit are counted. Keys and values are
/// JSON on one line each, so that no text in them can look like another line.
pub(super) fn list(memory: &BTreeMap<String, Value>) -> String {
    let mut text = String::new();
    for (at, (key, value)) in memory.iter().enumerate() {
        let line = format!("- {}\n", line(key, value));
        if text.len() + line.len() > LIST_BYTES {
            text.push_str(&format!("- and {} more\n", memory.len() - at));
            break;
        }
        text.push_str(&line);
    }
    text.truncate(text.trim_end().len());
    text
}

fn line(key: &str, value: &Value) -> String {
    let text = value.to_string();
    let shown = match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}… ({} bytes)", text.get(..at).unwrap_or_default(), text.len()),
        None => text,
    };
    format!("{} = {shown}", Value::from(key))
}

/// Returns a value, or all keys.
pub(super) fn retrieve(memory: &BTreeMap<String, Value>, key: Option<&str>) -> ToolResult {
    let Some(key) = key else {
        return ToolResult::Ok(json!({ "keys": memory.keys().collect::<Vec<_>>() }));
    };
    match memory.get(key) {
        Some(value) => ToolResult::Ok(value.clone()),
        None => match nearest(key, memory.keys().map(String::as_str)) {
            Some(near) => ToolResult::failed(format!("nothing is stored under that key; the nearest one is {near:?}")),
            None => ToolResult::failed("nothing is stored under that key"),
        },
    }
}
