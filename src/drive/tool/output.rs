//! What a program or a server said, as a value; and faults in their two wordings.

use serde_json::Value;

use super::twice;
use crate::engine::event::ToolFault;

/// The most characters of a fault's detail that are kept.
const MAX_DETAIL: usize = 2000;

/// A fault: the class that the model reads, and what only the operator reads beside it.
pub(super) fn fault(class: impl Into<String>, detail: impl Into<String>) -> ToolFault {
    ToolFault { class: class.into(), detail: detail.into() }
}

/// Bytes as a value: JSON when the type says so or when they are one object or array, with numbers
/// as written; else the text. JSON nested deeper than 128 levels stays a text, and so does JSON in which
/// a key stands twice in an object: what it says is not clear, and a line before it names the key.
///
/// # Errors
/// When they are neither JSON nor text: not UTF-8, or with a zero byte.
pub(super) fn value(bytes: Vec<u8>, content_type: Option<&str>) -> Result<Value, ToolFault> {
    let length = bytes.len();
    let text = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text,
        _ => {
            let kind = content_type.map_or_else(|| "unknown".to_owned(), media_type);
            return Err(fault(format!("binary answer of {length} bytes, type {kind}"), ""));
        }
    };
    let text = text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned);
    let looks = text.trim_start().starts_with(['{', '[']);
    if (looks || content_type.is_some_and(is_json))
        && let Ok(value) = serde_json::from_str(&text)
    {
        return Ok(match twice::key_of(&text, &value) {
            Some(key) => {
                Value::String(format!("[kept as text: the key {key:?} stands twice in an object of this JSON]\n{text}"))
            }
            None => value,
        });
    }
    Ok(Value::String(text))
}

/// The beginning of a fault's detail: at most 2,000 characters, and what was cut is counted. To be cut when
/// the secrets have been taken out: the first half of one is found by nobody.
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

/// `type/subtype` of a content type, with nothing in it that a server could play tricks with.
fn media_type(content_type: &str) -> String {
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
