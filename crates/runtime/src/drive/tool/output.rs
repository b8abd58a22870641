//! Converts the output of a program or a server to a value; and faults with a text for the model and one for
//! the operator.

use std::borrow::Cow;

use serde_json::Value;

use super::charset::{self, NoText};
use crate::drive::broken_message;
use loopctl_engine::event::ToolFault;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::file_value;

/// The most characters of a fault's detail that are kept.
pub(super) const MAX_DETAIL: usize = 2000;

/// A fault: the class is for the model, the detail for the operator only.
pub(super) fn fault(class: impl Into<String>, detail: impl Into<String>) -> ToolFault {
    ToolFault::new(class, detail)
}

/// The most bytes of an answer that are read.
pub(super) const MAX_BODY: usize = 10 << 20;

/// A text that is not longer can't have a value that takes too much memory.
const LIGHT_BYTES: usize = 1 << 20;

/// The fault of an answer that is longer.
pub(super) fn too_large() -> ToolFault {
    fault("response too large", format!("more than {MAX_BODY} bytes"))
}

/// Converts bytes to a value: JSON when the type says so or when they are one object or array, with numbers as
/// written; otherwise the text. JSON that is nested deeper than 128 levels stays a text. So does JSON with a
/// duplicate key in an object, or one that is reserved, because its meaning is unclear, and JSON whose value takes too much memory: the model that made the call reads a line before
/// the text that names the key, and a step (`is_step`) has the text as it came, in which a path finds the same fault. Half of a character
/// is read as U+FFFD.
///
/// # Errors
/// When they are neither JSON nor text: in no charset that is read, or with a zero byte.
pub(super) fn value(bytes: &[u8], content_type: Option<&str>, is_step: bool) -> Result<Value, ToolFault> {
    let length = bytes.len();
    let text = match charset::decode(bytes, content_type) {
        Ok(text) => text,
        Err(NoText::Charset(charset)) => {
            let class = format!("the answer is a text in the charset {charset}; {} are read", charset::READ);
            return Err(fault(class, ""));
        }
        Err(NoText::Invalid(charset)) => {
            return Err(fault(format!("the answer is no text in {charset}, the charset that it names"), ""));
        }
        Err(NoText::Binary) => {
            let kind = content_type.map_or_else(|| "unknown".to_owned(), media_type);
            if (kind.starts_with("text/") || is_json(&kind) || charset::is_markup(&kind)) && !bytes.contains(&0) {
                let class = format!("the answer of the type {kind} names no charset, and is no text in utf-8");
                return Err(fault(class, ""));
            }
            if content_type.is_none() && !bytes.contains(&0) {
                // A program has no way to name a charset.
                let class = format!(
                    "the answer of {length} bytes is no text in utf-8, which is read where no charset is named"
                );
                return Err(fault(class, ""));
            }
            return Err(fault(format!("binary answer of {length} bytes, type {kind}"), ""));
        }
    };
    let text = text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned);
    if let Some(error) = json_text::refusal(&readable(&text)).filter(|_| is_read(&text, content_type)) {
        return Ok(kept_as_text(text, &error, is_step));
    }
    // A tool may answer with a few megabytes whose value takes half a gigabyte: nobody could read so much of it.
    if text.len() > LIGHT_BYTES && is_read(&text, content_type) && file_value::is_too_heavy(&readable(&text)) {
        let why = format!("its value takes more than {} MiB of memory", file_value::MAX_WEIGHT >> 20);
        return Ok(kept_as_text(text, &why, is_step));
    }
    if let Some(value) = read_json(&text, content_type) {
        let why = match (file_value::reserved_key(&text), file_value::key_twice(&text, &value)) {
            (Some(key), _) => file_value::reserved(&key),
            (None, Some(key)) => format!("the key {key:?} stands twice in an object of this JSON"),
            (None, None) => return Ok(value),
        };
        return Ok(kept_as_text(text, &why, is_step));
    }
    Ok(Value::String(text))
}

fn kept_as_text(text: String, why: &impl std::fmt::Display, is_step: bool) -> Value {
    Value::String(if is_step { text } else { format!("[kept as text: {why}]\n{text}") })
}

/// Why JSON of a database has no value: a key that is twice in an object, or one that no value may have. `value`: what was read.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn unclear_json(text: &str, value: &Value) -> Option<String> {
    if let Some(key) = file_value::reserved_key(text) {
        return Some(format!("has a key that is reserved, {key:?}: select it as text"));
    }
    let key = file_value::key_twice(text, value)?;
    Some(format!("has the key {key:?} twice in an object, and JSON keeps one: select it as text"))
}

/// The number of a database, by its digits. `damaged`: what is said of digits that are no number.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn exact_number(digits: &str, damaged: fn() -> String) -> Result<Value, String> {
    if json_text::is_number(digits) && !json_text::is_exact(digits) {
        return Err(format!("holds a number that can't be taken: {}", json_text::INEXACT));
    }
    json_text::number(digits).map(Value::Number).ok_or_else(damaged)
}

/// The JSON of a text: when the type says so or when it is one object or array.
pub(super) fn read_json(text: &str, content_type: Option<&str>) -> Option<Value> {
    is_read(text, content_type).then(|| json_text::read(&readable(text)).ok())?
}

/// JSON with U+FFFD in the place of each half of a character, as a server writes it that cut a text: what a message of MCP and an answer
/// of a model are read by, too.
pub(super) fn readable(json: &str) -> Cow<'_, str> {
    match json.contains("\\ud") || json.contains("\\uD") {
        true => Cow::Owned(broken_message::repaired(json.as_bytes())),
        false => Cow::Borrowed(json),
    }
}

fn is_read(text: &str, content_type: Option<&str>) -> bool {
    text.trim_start().starts_with(['{', '[']) || content_type.is_some_and(is_json)
}

/// The beginning of a fault's detail, or of a server's answer: at most 2,000 characters, and the number of characters that were cut.
/// Remove secrets first: nobody would find the first half of one.
pub(super) fn shortened(detail: String) -> String {
    match detail.char_indices().nth(MAX_DETAIL) {
        Some((at, _)) => {
            let head = detail.get(..at).unwrap_or_default();
            format!("{head} [{} more bytes]", detail.len().saturating_sub(at))
        }
        None => detail,
    }
}

fn is_json(content_type: &str) -> bool {
    let kind = media_type(content_type);
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

/// The `type/subtype` of a content type, without anything that a server could use for tricks.
pub(super) fn media_type(content_type: &str) -> String {
    let kind: String = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '+' | '-' | '.'))
        .take(64)
        .collect();
    if kind.is_empty() { "unknown".to_owned() } else { kind.to_ascii_lowercase() }
}
