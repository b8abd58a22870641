//! Hides secrets in a recording, as traces do: what was hidden stands there as `[hidden:NAME]`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::language::recording::{Recording, RecordingEntry};
use crate::trace::Redaction;
use crate::trace::redact::HIDDEN;

/// No secret that is searched for by its looks alone is shorter.
const SHORTEST_DOUBT: usize = 24;

/// What was hidden, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenCount {
    /// How many values were hidden, by name.
    pub hidden: BTreeMap<String, usize>,
    /// The beginnings of texts that look like a secret, and were left.
    pub doubtful: Vec<String>,
}

impl HiddenCount {
    /// How many values were hidden.
    pub fn total(&self) -> usize {
        self.hidden.values().sum()
    }
}

/// Hides the secrets of a recording.
pub fn hide(recording: &mut Recording, redact: &Redaction) -> HiddenCount {
    let mut hiding = Hiding { redact, count: HiddenCount::default() };
    recording.input = hiding.value(&recording.input, "input");
    for entry in &mut recording.entries {
        match entry {
            RecordingEntry::Ask(ask) => {
                if let Some(reply) = &mut ask.reply {
                    reply.text = hiding.text(&reply.text, "text");
                    reply.reasoning = hiding.text(&reply.reasoning, "reasoning");
                    for call in &mut reply.calls {
                        call.name = hiding.text(&call.name, "name");
                        call.arguments = hiding.text(&call.arguments, "arguments");
                    }
                    // Its provider takes back only what it wrote: what holds a secret is left out as a whole.
                    if reply.raw.as_ref().is_some_and(|raw| redact.text(&raw.sealed) != raw.sealed) {
                        reply.raw = None;
                        *hiding.count.hidden.entry("raw".to_owned()).or_default() += 1;
                    }
                }
                if let Some(failed) = &mut ask.failed {
                    failed.message = hiding.text(&failed.message, "message");
                }
            }
            RecordingEntry::Call(call) => {
                call.call.input = hiding.value(&call.call.input, "input");
                call.gave = call.gave.as_ref().map(|gave| hiding.value(gave, "gave"));
                if let Some(failed) = &mut call.failed {
                    failed.class = hiding.text(&failed.class, "class");
                    failed.detail = hiding.text(&failed.detail, "detail");
                    failed.answer = hiding.text(&failed.answer, "answer");
                }
            }
            RecordingEntry::Decision(decided) => {
                let decision = &mut decided.decision;
                decision.answer = decision.answer.as_ref().map(|answer| hiding.value(answer, "answer"));
                decision.deny = decision.deny.as_ref().map(|reason| hiding.text(reason, "deny"));
                decision.happened = decision.happened.as_ref().map(|result| hiding.value(result, "happened"));
                decision.fail = decision.fail.as_ref().map(|reason| hiding.text(reason, "fail"));
                if let Some(edit) = &decision.edit
                    && let Value::Object(hidden) = hiding.value(&Value::Object(edit.clone()), "edit")
                {
                    decision.edit = Some(hidden);
                }
            }
        }
    }
    hiding.count
}

/// Hides the secrets of a text of a recording that is played.
pub fn shown(text: &str, redact: &Redaction) -> String {
    let mut hiding = Hiding { redact, count: HiddenCount::default() };
    hiding.text(text, "text")
}

/// A text in which all that was hidden has no name.
fn unnamed(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut parts = text.split("[hidden:");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        plain.push_str(HIDDEN);
        plain.push_str(part.split_once(']').map_or(part, |(_, rest)| rest));
    }
    plain
}

struct Hiding<'a> {
    redact: &'a Redaction,
    count: HiddenCount,
}

impl Hiding<'_> {
    fn value(&mut self, value: &Value, name: &str) -> Value {
        let hidden = self.redact.value(value);
        self.named(value, hidden, name)
    }

    fn text(&mut self, text: &str, name: &str) -> String {
        let hidden = self.redact.text(text).into_owned();
        if let (Ok(before @ (Value::Object(_) | Value::Array(_))), Ok(after)) =
            (serde_json::from_str::<Value>(text), serde_json::from_str::<Value>(&hidden))
        {
            let is_same = hidden == text;
            let named = self.named(&before, after, name);
            // A text without secrets keeps its spelling.
            return if is_same { hidden } else { named.to_string() };
        }
        self.plain(text, hidden, name)
    }

    /// Gives what was hidden the name of its field.
    fn named(&mut self, before: &Value, after: Value, name: &str) -> Value {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                let named: Map<String, Value> = after
                    .into_iter()
                    .map(|(key, value)| {
                        let of = before.get(&key).cloned().unwrap_or_default();
                        let value = self.named(&of, value, &key);
                        (key, value)
                    })
                    .collect();
                Value::Object(named)
            }
            (Value::Array(before), Value::Array(after)) => {
                let named = after.into_iter().enumerate();
                named.map(|(at, value)| self.named(before.get(at).unwrap_or(&Value::Null), value, name)).collect()
            }
            (Value::String(before), Value::String(after)) => Value::String(self.plain(before, after, name)),
            // Hidden as a whole.
            (_, Value::String(after)) => Value::String(self.plain("", after, name)),
            (_, after) => after,
        }
    }

    fn plain(&mut self, before: &str, after: String, name: &str) -> String {
        if before == after {
            self.doubt(&after);
            return after;
        }
        // What was hidden and named before keeps its name.
        if unnamed(before) == after {
            return before.to_owned();
        }
        let name: String =
            name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).take(40).collect();
        let count = after.matches(HIDDEN).count().saturating_sub(before.matches(HIDDEN).count());
        *self.count.hidden.entry(name.clone()).or_default() += count.max(1);
        let named = after.replace(HIDDEN, &format!("[hidden:{name}]"));
        self.doubt(&named);
        named
    }

    /// Notes words that look like a key: long, with letters of both cases and digits.
    fn doubt(&mut self, text: &str) {
        let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '+')));
        for word in words.filter(|word| word.len() >= SHORTEST_DOUBT) {
            let has = |is: fn(&char) -> bool| word.chars().any(|letter| is(&letter));
            let is_like = has(char::is_ascii_digit) && has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase);
            let begins: String = word.chars().take(6).collect();
            let begins = format!("{begins}…");
            if is_like && !self.count.doubtful.contains(&begins) {
                self.count.doubtful.push(begins);
            }
        }
    }
}

#[cfg(test)]
mod tests;
