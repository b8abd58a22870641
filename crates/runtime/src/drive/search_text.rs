//! What a search finds a run by, and what lists say that it is about: the beginning of its objective and of its input.

use serde_json::{Map, Value};

use crate::journal::{MOST_SEARCH_BYTES, search_text, title_text};
use loopctl_engine::state::RunHeader;
use loopctl_lang::policy::redact::Redaction;
use loopctl_lang::program::Program;

/// A text that is longer is left out of the input, and a longer objective as a whole. Secrets are looked for in whole texts
/// only: a part of one might not show that it is one.
const MOST_TEXT_BYTES: usize = 4 * MOST_SEARCH_BYTES;

/// A longer objective is no title: its beginning might hold a part of a secret.
const MOST_TITLE_BYTES: usize = 16 * 1024;

/// The texts of an objective and an input in the row of a run. Secrets are hidden in them, with those in members of these
/// names.
pub(super) struct DescribedRun {
    /// What a search finds the run by.
    pub search_text: String,
    /// What lists say that it is about: the objective; without one, the scalar members of the input.
    pub title: String,
}

impl DescribedRun {
    /// The texts of a run.
    pub(super) fn of(program: &Program, run: &RunHeader) -> Self {
        Self::new(&program.project.redact, &run.objective, &run.input.value)
    }

    fn new(names: &[String], objective: &str, input: &Value) -> Self {
        let redact = Redaction::new(names);
        let objective = if objective.len() <= MOST_TITLE_BYTES { redact.text(objective) } else { "".into() };
        let mut text = String::new();
        if objective.len() <= MOST_TEXT_BYTES {
            text.push_str(&objective);
        }
        let mut room = MOST_SEARCH_BYTES;
        let input = redact.value(&beginning(input, &mut room));
        add_words(&input, &mut text);
        let title = if objective.trim().is_empty() { title_of_input(&input) } else { objective.into_owned() };
        Self { search_text: search_text(&text), title: title_text(&title) }
    }
}

/// The scalar members of an input with their names; a scalar input as it is.
fn title_of_input(input: &Value) -> String {
    let members = match input {
        Value::Object(members) => members,
        Value::String(text) => return text.clone(),
        Value::Null | Value::Array(_) => return String::new(),
        Value::Bool(_) | Value::Number(_) => return input.to_string(),
    };
    let shown = members.iter().filter_map(|(name, member)| match member {
        Value::String(text) => Some(format!("{name}: {text}")),
        Value::Bool(_) | Value::Number(_) => Some(format!("{name}: {member}")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The first members of a value, as many as a search text has room for.
fn beginning(value: &Value, room: &mut usize) -> Value {
    match value {
        Value::String(text) if text.len() > MOST_TEXT_BYTES => Value::Null,
        Value::Array(items) => {
            let fit = items.iter().map_while(|item| fits(item, room));
            Value::Array(fit.collect())
        }
        Value::Object(members) => {
            let fit = members.iter().map_while(|(name, member)| {
                *room = room.saturating_sub(name.len());
                Some((name.clone(), fits(member, room)?))
            });
            Value::Object(fit.collect::<Map<String, Value>>())
        }
        scalar => scalar.clone(),
    }
}

/// The beginning of a value while there is room; each value takes some.
fn fits(value: &Value, room: &mut usize) -> Option<Value> {
    if *room == 0 {
        return None;
    }
    let begun = beginning(value, room);
    let length = match &begun {
        Value::String(text) => text.len(),
        _ => 1,
    };
    *room = room.saturating_sub(length.max(1));
    Some(begun)
}

/// Adds the names and the values of a value, with blanks between them.
fn add_words(value: &Value, text: &mut String) {
    match value {
        Value::Null => {}
        Value::String(word) => text.extend([" ", word]),
        Value::Bool(_) | Value::Number(_) => text.extend([" ", &value.to_string()]),
        Value::Array(items) => items.iter().for_each(|item| add_words(item, text)),
        Value::Object(members) => {
            for (name, member) in members {
                text.extend([" ", name]);
                add_words(member, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(objective: &str, input: &Value) -> DescribedRun {
        DescribedRun::new(&["iban".to_owned()], objective, input)
    }

    fn of(objective: &str, input: &Value) -> String {
        described(objective, input).search_text
    }

    #[test]
    fn the_title_is_the_objective_or_else_the_beginning_of_the_input() {
        let input = json!({ "order": "A-17", "amount": 40, "lines": [1, 2], "iban": "DE02", "ok": true, "none": null });
        assert_eq!(described("Refund\nthe order.", &input).title, "Refund the order.");
        for empty in ["", " \n"] {
            assert_eq!(described(empty, &input).title, "order: A-17, amount: 40, iban: [hidden], ok: true");
        }
        for (input, title) in [(json!("A-17"), "A-17"), (json!(7), "7"), (json!([1]), ""), (Value::Null, "")] {
            assert_eq!(described("", &input).title, title, "{input}");
        }
        let long = described(&"objective ".repeat(1_000), &input);
        assert!(long.title.starts_with("objective objective") && long.title.ends_with('…') && long.title.len() < 310);
        assert!(!long.search_text.contains("objective"));
        // Nothing of a text that is too long to look for secrets in.
        assert_eq!(described(&"o ".repeat(20_000), &json!({ "a": 1 })).title, "a: 1");
    }

    #[test]
    fn it_has_the_names_and_the_values_and_no_secret() {
        let input =
            json!({ "order": "A-17", "amount": 40, "iban": "DE02", "customer": { "password": "x-1" }, "none": null });
        let found = of("Refund\nthe Order.", &input);
        assert_eq!(found, "refund the order. order a-17 amount 40 iban [hidden] customer password [hidden] none");
    }

    #[test]
    fn it_is_short_whatever_the_input_is() {
        let long = json!({ "a": "x".repeat(10_000_000), "list": vec!["item"; 100_000], "z": 1 });
        let found = of(&"o".repeat(10_000), &long);
        assert!(found.len() <= MOST_SEARCH_BYTES + '…'.len_utf8() && found.starts_with("a list item item"), "{found}");
    }
}
