//! The thinking blocks that a reply may begin with, in the dialects whose replies are text or hold one.

use super::Reading;
use super::json::marks::{self, MarkupTag};
use crate::event::Reply;

/// The longest thought of a reply that can't be read, in characters.
const MAX_THOUGHT: usize = 2000;

/// The thinking of a reply, and the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split<'a> {
    /// What the model thought, from all blocks at the beginning.
    pub thought: String,
    /// The text behind them, without white space around it.
    pub rest: &'a str,
    /// Whether a block was opened and never closed; `rest` is empty then.
    pub open: bool,
}

/// Splits off the thinking blocks at the beginning of a reply. For some models the block begins in the prompt
/// and only ends in the reply: a closing tag without an opening one ends a thought too.
pub fn split(text: &str) -> Split<'_> {
    let mut thoughts: Vec<&str> = Vec::new();
    let mut rest = text.trim();
    loop {
        match first_tag(rest) {
            Some((0, MarkupTag::OpensThinking(name, begin))) => {
                let Some((end, behind)) = marks::thinking_end(rest, name, begin) else {
                    thoughts.push(rest.get(begin..).unwrap_or_default());
                    return Split { thought: joined(&thoughts), rest: "", open: true };
                };
                thoughts.push(rest.get(begin..end).unwrap_or_default());
                rest = rest.get(behind..).unwrap_or_default().trim();
            }
            Some((at, MarkupTag::ClosesThinking(behind))) if thoughts.is_empty() => {
                thoughts.push(rest.get(..at).unwrap_or_default());
                rest = rest.get(behind..).unwrap_or_default().trim();
            }
            _ => return Split { thought: joined(&thoughts), rest, open: false },
        }
    }
}

/// A reply that `max_tokens` cut off before anything that can be read: while the model was still thinking, or at once.
/// `None` for every other one.
pub fn cut_off(reply: &Reply) -> Option<Reading> {
    let unreadable = |thought: &str, why: &str| Reading::Unreadable { thought: short(thought), why: why.to_owned() };
    match cut_off_thought(reply) {
        Some(thought) => Some(unreadable(
            &thought,
            "Your reply was cut off while you were still thinking (max_tokens), and nothing was called. Think in fewer \
             words, and reply.",
        )),
        None if reply.calls.is_empty() && reply.text.trim().is_empty() => Some(unreadable(
            "",
            "Your reply was cut off before its first word (max_tokens), and nothing was called. Answer more briefly.",
        )),
        None => None,
    }
}

/// What the model thought, if it did nothing else in a reply that was cut off.
pub fn cut_off_thought(reply: &Reply) -> Option<String> {
    let text = reply.text.trim();
    let has_reasoning = reply.reasoning.is_some() || reply.usage.is_some_and(|usage| usage.reasoning > 0);
    if !reply.calls.is_empty() || text.is_empty() && !has_reasoning {
        return None;
    }
    let Split { thought, rest, open } = split(text);
    (rest.is_empty() && (open || text.is_empty())).then_some(thought)
}

fn first_tag(text: &str) -> Option<(usize, MarkupTag)> {
    text.match_indices('<').find_map(|(at, _)| marks::tag(text, at).map(|tag| (at, tag)))
}

fn joined(thoughts: &[&str]) -> String {
    let thoughts: Vec<&str> = thoughts.iter().map(|thought| thought.trim()).filter(|text| !text.is_empty()).collect();
    thoughts.join("\n")
}

/// The beginning of a text that can't be read: what is kept of it as the thought.
pub fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_THOUGHT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
