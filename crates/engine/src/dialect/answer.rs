//! Answers that a dialect has as text, where the loop wants JSON.

use serde_json::Value;

use loopctl_lang::policy::json_text;
use loopctl_lang::program::json_texts::whole_fence;

use super::relaxed;

/// A text that is JSON, also in a code block; nothing when it is not.
pub fn as_json(text: &str) -> Option<Value> {
    let text = text.trim();
    let fenced = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    let inner = fenced.and_then(|inner| inner.strip_suffix("```"));
    relaxed::whole_value(inner.unwrap_or(text).trim()).ok()
}

/// The same of a fence of any form, and with U+FFFD in place of half of a surrogate pair. `is_lenient`: not so in runs of older
/// editions.
pub fn answer_json(text: &str, is_lenient: bool) -> Option<Value> {
    let read = |text: &str| as_json(text).or_else(|| as_json(whole_fence(text).filter(|_| is_lenient)?));
    read(text).or_else(|| read(&json_text::repaired(text).filter(|_| is_lenient)?))
}
