//! Answers that a dialect has as text, where the loop wants JSON.

use serde_json::Value;

use super::relaxed;

/// A text that is JSON, also in a code block; nothing when it is not.
pub fn as_json(text: &str) -> Option<Value> {
    let text = text.trim();
    let fenced = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    let inner = fenced.and_then(|inner| inner.strip_suffix("```"));
    relaxed::whole_value(inner.unwrap_or(text).trim()).ok()
}
