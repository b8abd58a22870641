//! What stays of a reply in the conversation, and what the trace shows of one that was refused: one reply can't fill the
//! window.

use serde_json::{Map, Value};

use super::window;
use crate::conversation::{Conversation, Native};
use crate::dialect::{self, Reading, Saying};
use crate::event::{Reasoning, SaidCall};
use crate::operation::Call;
use crate::state::LoopState;
use loopctl_lang::language::react::Dialect;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::LoopProgram;

/// How much of a refused or overlong reply stays in the conversation, in characters: enough to see what was wrong.
const KEPT_CHARS: usize = 500;
/// A reply that can be read and was refused stays whole up to this number of bytes: the model may correct it.
const CORRECTED: usize = 2_000;
/// How much of an unreadable reply the trace shows, in characters.
const SHOWN_CHARS: usize = 2_000;

/// The reply as it stays in the conversation: without what the model invented after its action, and shortened
/// if it could not be read.
pub(crate) fn remembered(mut text: String, counts: usize, unreadable: bool, alone: bool) -> String {
    if counts < text.len() {
        text.truncate(text.floor_char_boundary(counts));
        text.truncate(text.trim_end().len());
    }
    if unreadable {
        text = cut(text, KEPT_CHARS);
    }
    // Providers refuse messages without text.
    if alone && text.trim().is_empty() { "(nothing)".to_owned() } else { text }
}

/// Native calls as they stay in a conversation whose calls are text; nothing for other replies.
pub(crate) fn as_text(dialect: Dialect, has_native: bool, reading: &Reading) -> Option<String> {
    let Reading::Calls { thought, calls } = reading else { return None };
    if !has_native || dialect::is_native(dialect) {
        return None;
    }
    let calls = calls.iter().map(|wanted| (wanted.name.clone(), wanted.input.clone())).collect();
    dialect::say(dialect, &Saying { thought: thought.clone(), calls, answer: None }).map(|(text, _)| text)
}

/// The reasoning of a reply as it stays in the conversation: what is sent back. Its text is the thought of a reply that
/// has none.
pub(crate) fn reasoning(reasoning: Option<Box<Reasoning>>, thought: &mut String) -> Option<Box<Reasoning>> {
    let mut reasoning = reasoning?;
    let text = std::mem::take(&mut reasoning.text);
    if thought.is_empty() {
        *thought = text;
    }
    Some(reasoning).filter(|reasoning| !reasoning.sealed.is_empty())
}

/// What the trace shows of a reply that can't be read: its text, and its native calls.
pub(crate) fn shown(text: &str, calls: &[SaidCall]) -> String {
    let mut shown = text.trim().chars().take(SHOWN_CHARS + 1).collect::<String>();
    for call in calls {
        if shown.len() > SHOWN_CHARS * 4 {
            break;
        }
        shown.push('\n');
        shown.push_str(&call.name);
        shown.push(' ');
        shown.extend(call.arguments.chars().take(SHOWN_CHARS + 1));
    }
    cut(shown, SHOWN_CHARS)
}

/// A text of at most `most` characters, which says when it was cut.
fn cut(mut text: String, most: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
        text.push_str("\n[cut: the rest of this reply is not shown]");
    }
    text
}

/// Cuts the calls of a reply that could not be read, in the conversation.
pub(crate) fn shorten_unreadable(state: &mut LoopState) {
    if state.header.knows_windows() && size_of_last(&state.conversation) > CORRECTED {
        replace(state, None);
    }
}

/// Cuts a reply with these calls in the conversation, if it is overlong, or long and nothing of it was accepted.
pub(crate) fn shorten(program: &LoopProgram, state: &mut LoopState, thought: &str, calls: &[Call], is_refused: bool) {
    let whole = window::whole_reply_bytes(state);
    let most = if is_refused { whole.min(CORRECTED) } else { whole };
    if !state.header.knows_windows() || size_of_last(&state.conversation) <= most {
        return;
    }
    let shorter = |call: &Call| (call.name.clone(), shortened(&call.input, &mut KEPT_CHARS.clone()));
    let saying = Saying {
        thought: cut(thought.to_owned(), KEPT_CHARS),
        calls: calls.iter().map(shorter).collect(),
        answer: None,
    };
    // In the same form as before: a model continues as it began.
    let said = match dialect::is_native(program.properties.dialect) {
        true => None,
        false => dialect::say(program.properties.dialect, &saying).map(|(text, _)| text),
    };
    replace(state, said);
}

/// The bytes of the last message, without what is sealed of its reasoning.
fn size_of_last(conversation: &Conversation) -> usize {
    conversation.messages.last().map_or(0, |message| {
        message.calls().iter().fold(message.text.len(), |size, call| size.saturating_add(call.arguments.len()))
    })
}

/// Replaces the text of the last message, which was not sent yet, by this one or by its beginning, and cuts the inputs
/// of its native calls.
fn replace(state: &mut LoopState, text: Option<String>) {
    let before = state.conversation.bytes;
    state.conversation.change_last(|message| {
        message.text = text.unwrap_or_else(|| cut(message.text.to_string(), KEPT_CHARS)).into();
        // What a provider sealed may be bound to the calls behind it.
        if let Some(Native::Reply { calls, reasoning: None }) = message.native.as_deref_mut() {
            for call in calls.iter_mut().filter(|call| call.arguments.len() > KEPT_CHARS) {
                let input = json_text::read(&call.arguments).unwrap_or_default();
                call.arguments = shortened(&input, &mut KEPT_CHARS.clone()).to_string();
            }
        }
    });
    let gone = state.counters.estimator.tokens(before.saturating_sub(state.conversation.bytes));
    state.counters.window = (state.counters.window.0.saturating_sub(gone), state.conversation.bytes);
}

/// The beginning of a value in its own shape: at most `left` characters of names and texts, and what says that it was cut.
fn shortened(value: &Value, left: &mut usize) -> Value {
    let mut take = |text: &str| {
        let (end, count) = match text.char_indices().nth(*left) {
            Some((end, _)) => (end, *left),
            None => (text.len(), text.chars().count()),
        };
        *left -= count;
        end
    };
    match value {
        Value::String(text) => {
            let end = take(text);
            match text.get(end..).map(|rest| rest.chars().count()) {
                Some(gone) if gone > 0 => {
                    Value::from(format!("{}[cut: {gone} characters]", text.get(..end).unwrap_or_default()))
                }
                _ => value.clone(),
            }
        }
        Value::Array(items) => {
            let mut kept = Vec::new();
            for item in items {
                if *left == 0 {
                    kept.push(Value::from(format!("[cut: {} entries]", items.len() - kept.len())));
                    break;
                }
                kept.push(shortened(item, left));
            }
            Value::Array(kept)
        }
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, member) in members {
                if *left <= name.len() {
                    *left = 0;
                    kept.insert("[cut]".to_owned(), Value::from(members.len() - kept.len()));
                    break;
                }
                *left -= name.len();
                kept.insert(name.clone(), shortened(member, left));
            }
            Value::Object(kept)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            take(&value.to_string());
            value.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shortened_value_has_the_same_shape_and_says_what_was_cut() {
        let short = |value: Value| shortened(&value, &mut 20);
        assert_eq!(short(json!({ "a": "b", "n": 1.50 })), json!({ "a": "b", "n": 1.50 }));
        assert_eq!(
            short(json!({ "path": "a.txt", "text": "x".repeat(30), "z": 1 })),
            json!({
                "path": "a.txt", "text": "xxxxxxx[cut: 23 characters]", "[cut]": 1
            })
        );
        assert_eq!(
            short(json!(["é".repeat(19), "ab", "c"])),
            json!(["é".repeat(19), "a[cut: 1 characters]", "[cut: 1 entries]"])
        );
        let deep = (0..50).fold(json!("end"), |value, _| json!([value, "x".repeat(50)]));
        assert!(short(deep).to_string().len() < 4_000);
        let many = Value::from(vec![7; 100_000]);
        assert!(short(many).to_string().len() < 100);
    }
}
