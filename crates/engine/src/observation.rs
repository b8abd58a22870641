//! Observations: what the trace and the model hold of a result, cut to a bound.

use std::borrow::Cow;

use serde_json::Value;

use super::state::LoopState;

/// An observation for the trace and for the model, cut to `max` characters.
pub(super) fn cut(state: &mut LoopState, value: Value, max: usize) -> (Value, String) {
    if let Some(short) = cut_to(&value, max) {
        state.counters.truncated_observations += 1;
        let text = short.as_str().unwrap_or_default().to_owned();
        return (short, text);
    }
    let text = match &value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    (value, text)
}

/// The text of a value that has more than `max` characters, cut to them; none if the value is shorter.
pub(super) fn cut_to(value: &Value, max: usize) -> Option<Value> {
    let (text, plain) = match value {
        Value::String(text) => (Cow::Borrowed(text.as_str()), true),
        other => (Cow::Owned(other.to_string()), false),
    };
    // A text has at most as many characters as bytes: the common case needs no count.
    if text.len() <= max {
        return None;
    }
    let (at, _) = text.char_indices().nth(max)?;
    let all = text.chars().count();
    let head = text.get(..at).unwrap_or_default();
    let kind = if plain { "" } else { " of JSON" };
    Some(Value::String(format!("{head}\n[cut: {} of {all} characters{kind} are not shown]", all - max)))
}
