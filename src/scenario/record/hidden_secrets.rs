//! Hides secrets in a recording, as traces do: what was hidden is shown as `[hidden:NAME]`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::language::recording::{Recording, RecordingEntry};
use crate::policy::json_text;
use crate::trace::Redaction;
use crate::trace::redact::HIDDEN;

/// No secret that is searched for by its looks alone is shorter.
const MIN_DOUBTED_CHARACTERS: usize = 24;

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
            (json_text::read::<Value>(text), json_text::read::<Value>(&hidden))
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
        for word in words.filter(|word| word.len() >= MIN_DOUBTED_CHARACTERS) {
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
mod tests {
    use serde_json::{Value, json};

    use super::{HiddenCount, hide, shown};
    use crate::language::recording::Recording;
    use crate::trace::Redaction;

    const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";

    fn recording(input: &Value, entries: &Value) -> Recording {
        let recording = json!({"recording": 1, "document": "d", "loop": "l", "now": "2026-01-01T00:00:00Z",
                               "input": input, "entries": entries});
        serde_json::from_value(recording).unwrap()
    }

    /// The recording as it is written, and what was hidden.
    fn hidden(input: &Value, entries: &Value) -> (Value, HiddenCount) {
        let mut recording = recording(input, entries);
        let count = hide(&mut recording, &Redaction::new(&["iban".to_owned()]));
        (serde_json::to_value(recording).unwrap(), count)
    }

    /// What becomes of a value in the input of a run.
    fn input(value: &Value) -> (Value, HiddenCount) {
        let (recording, count) = hidden(value, &json!([]));
        (recording.get("input").cloned().unwrap_or_default(), count)
    }

    fn counted(names: &[(&str, usize)]) -> HiddenCount {
        let hidden = names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        HiddenCount { hidden, doubtful: Vec::new() }
    }

    #[test]
    fn a_secret_is_hidden_in_each_text_that_a_run_brought_in() {
        let ask = |more: Value| json!({"ask": {"loop": "l", "request": 1}, "reply": more});
        let said = json!([{"id": "1", "name": TOKEN, "arguments": format!("{{\"a\":\"{TOKEN}\"}}")}]);
        let entries = json!([
            ask(json!({"text": TOKEN, "reasoning": TOKEN, "calls": said})),
            {"ask": {"loop": "l", "request": 2}, "failed": {"code": "http", "message": TOKEN}},
            {"call": {"at": "1.0", "action": "a", "input": {"iban": 7}}, "gave": [TOKEN]},
            {"call": {"at": "2.0", "action": "a"}, "failed": {"class": TOKEN, "detail": TOKEN, "answer": TOKEN}},
            {"decision": {"answer": TOKEN, "deny": TOKEN, "edit": {"note": TOKEN}}},
            {"decision": {"happened": {"state": TOKEN}}},
            {"decision": {"fail": TOKEN}},
        ]);
        let (recording, count) = hidden(&json!({"note": TOKEN}), &entries);
        let written = recording.to_string();
        assert!(!written.contains("ghp_") && !written.contains("iban\":7"), "{written}");
        let names = [
            "a",
            "answer",
            "arguments",
            "class",
            "deny",
            "detail",
            "fail",
            "gave",
            "iban",
            "message",
            "name",
            "note",
            "reasoning",
            "state",
            "text",
        ];
        for name in names.iter().filter(|name| **name != "arguments") {
            assert!(written.contains(&format!("[hidden:{name}]")), "{name}: {written}");
            assert!(count.hidden.contains_key(*name), "{name}: {count:?}");
        }
        assert_eq!((count.total(), count.hidden.get("note"), count.hidden.get("answer")), (16, Some(&2), Some(&2)));
        assert_eq!(count.doubtful, Vec::<String>::new());
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_was_written() {
        let entries = json!([
            {"ask": {"loop": "l", "request": 1},
             "reply": {"text": "{\"a\" : 1.0}", "raw": {"origin": "o", "sealed": "[ {\"thinking\": \"t\"} ]"}}},
            {"call": {"at": "1.0", "action": "a", "input": {"n": 1}}, "gave": null},
            {"decision": {"approve": true, "edit": {"n": [1, "[hidden]"]}}},
        ]);
        let input = json!({"text": "[hidden:name] and [hidden]", "more": {"password": "[hidden:password]"}});
        let (written, count) = hidden(&input, &entries);
        assert_eq!(written, serde_json::to_value(recording(&input, &entries)).unwrap());
        assert_eq!((count.total(), count), (0, HiddenCount::default()));
    }

    #[test]
    fn reasoning_for_its_provider_is_left_out_when_it_holds_a_secret() {
        let sealed = format!("[{{\"thinking\":\"use {TOKEN}\",\"signature\":\"s\"}}]");
        let entries = json!([{"ask": {"loop": "l", "request": 1},
                              "reply": {"text": "t", "raw": {"origin": "o", "sealed": sealed}}}]);
        let (written, count) = hidden(&Value::Null, &entries);
        assert_eq!(written.pointer("/entries/0/reply"), Some(&json!({"text": "t"})));
        assert_eq!(count, counted(&[("raw", 1)]));
    }

    #[test]
    fn what_was_hidden_has_the_name_of_its_nearest_field() {
        for (value, expected, names) in [
            (json!({"password": "p"}), json!({"password": "[hidden:password]"}), vec![("password", 1)]),
            (json!({"iban": 7}), json!({"iban": "[hidden:iban]"}), vec![("iban", 1)]),
            (json!({"iban": [1, {"b": 2}]}), json!({"iban": "[hidden:iban]"}), vec![("iban", 1)]),
            (
                json!({"a": [["x", TOKEN], format!("{TOKEN}, {TOKEN}")]}),
                json!({"a": [["x", "[hidden:a]"], "[hidden:a], [hidden:a]"]}),
                vec![("a", 3)],
            ),
            (
                json!({"note é\n!": format!("{TOKEN} [hidden] [hidden:old]")}),
                json!({"note é\n!": "[hidden:note____] [hidden:note____] [hidden:old]"}),
                vec![("note____", 1)],
            ),
            (
                json!({"x".repeat(41): TOKEN}),
                json!({"x".repeat(41): format!("[hidden:{}]", "x".repeat(40))}),
                vec![("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1)],
            ),
            (
                json!({"json": format!("{{\"list\": [\"{TOKEN}\"]}}")}),
                json!({"json": "{\"list\":[\"[hidden:json]\"]}"}),
                vec![("json", 1)],
            ),
        ] {
            let (written, count) = input(&value);
            assert_eq!((written, count), (expected, counted(&names)), "{value}");
        }
    }

    #[test]
    fn a_text_that_holds_json_names_its_fields() {
        let text = format!("{{\"list\": [1, \"{TOKEN}\"], \"password\": \"p\", \"kept\": 1.50}}");
        let entries = json!([{"ask": {"loop": "l", "request": 1}, "reply": {"text": text}}]);
        let (written, count) = hidden(&Value::Null, &entries);
        let expected = "{\"list\":[1,\"[hidden:list]\"],\"password\":\"[hidden:password]\",\"kept\":1.50}";
        assert_eq!(written.pointer("/entries/0/reply/text"), Some(&json!(expected)));
        assert_eq!(count, counted(&[("list", 1), ("password", 1)]));
        assert_eq!(shown(&text, &Redaction::default()), expected);
        assert_eq!(shown("[1, 2]", &Redaction::default()), "[1, 2]");
    }

    #[test]
    fn words_that_look_like_a_key_are_reported_once_and_stay() {
        let doubtful = "Aa0-_+6789abcdefghijklmn";
        assert_eq!(doubtful.len(), 24);
        let (written, count) = input(&json!([format!("{doubtful}é, {doubtful}"), doubtful]));
        assert_eq!(written, json!([format!("{doubtful}é, {doubtful}"), doubtful]));
        assert_eq!(count, HiddenCount { doubtful: vec!["Aa0-_+…".to_owned()], ..HiddenCount::default() });
        let (_, count) = input(&json!(format!("{TOKEN} {doubtful}")));
        assert_eq!((count.total(), count.doubtful.len()), (1, 1));
        for plain in [
            "Aa0-_+6789abcdefghijklm",
            "aa0-_+6789abcdefghijklmn",
            "AA0-_+6789ABCDEFGHIJKLMN",
            "Aaabcdefghijklmnopqrstuvwx",
        ] {
            assert_eq!(input(&json!(plain)).1, HiddenCount::default(), "{plain}");
        }
    }
}
