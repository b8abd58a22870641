//! Replies that could not be read, as they are shown: nothing is said twice, however many there are.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use crate::record::TraceEntry;

/// What the engine writes behind a text that it cut.
const CUT: &str = "[cut: the rest of this reply is not shown]";

/// The refusals that were shown already: what the model reads of one is long, and mostly the same.
#[derive(Debug, Default)]
pub struct ShownRefusals {
    /// By their text, the iteration that showed it.
    shown: HashMap<String, u32>,
}

impl ShownRefusals {
    /// The observation of an entry. That of a refused reply, if it was shown before, is its first sentence.
    pub fn shown<'v>(&mut self, entry: &TraceEntry, observation: &'v Value) -> Cow<'v, Value> {
        let Value::String(text) = observation else { return Cow::Borrowed(observation) };
        if entry.action.is_some() || entry.success {
            return Cow::Borrowed(observation);
        }
        let Some(first) = self.shown.get(text) else {
            self.shown.insert(text.clone(), entry.iteration);
            return Cow::Borrowed(observation);
        };
        match text.split_once(". ") {
            Some((sentence, _)) => Cow::Owned(Value::from(format!("{sentence}. (as in iteration {first})"))),
            None => Cow::Borrowed(observation),
        }
    }
}

/// What of a failure's detail the thought before it does not say: the text of a refused reply is often its thought.
pub fn unsaid<'d>(is_reply: bool, thought: &str, detail: &'d str) -> Cow<'d, str> {
    let detail = detail.trim();
    let thought = thought.trim().trim_end_matches('…');
    if !is_reply || thought.is_empty() {
        return Cow::Borrowed(detail);
    }
    let whole = detail.strip_suffix(CUT).map_or(detail, str::trim_end);
    if thought.starts_with(whole) {
        return Cow::Borrowed("");
    }
    match detail.strip_prefix(thought) {
        Some(rest) if rest.trim().is_empty() => Cow::Borrowed(""),
        Some(rest) => Cow::Owned(format!("…{rest}")),
        None => Cow::Borrowed(detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_that_the_thought_says_is_not_said_again() {
        let cut = format!("a b c\n{CUT}");
        for (thought, detail, shown) in [
            ("a b c", " a b c\n", ""),
            ("a b c d", cut.as_str(), ""),
            ("a b…", "a b c", "… c"),
            ("", "a b c", "a b c"),
            ("x", "a b c", "a b c"),
            ("a", "", ""),
        ] {
            assert_eq!(unsaid(true, thought, detail), shown, "{thought:?} {detail:?}");
        }
        assert_eq!(unsaid(false, "a b c", "a b c"), "a b c", "of a call, the detail is not what the model wrote");
    }
}
