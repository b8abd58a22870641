//! What a search finds a run by: the beginning of its objective and of its input.

use serde_json::{Map, Value};

use crate::journal::{MOST_SEARCH_BYTES, search_text};
use loopctl_lang::policy::redact::Redaction;

/// A text that is longer is left out of the input, and a longer objective as a whole. Secrets are looked for in whole texts
/// only: a part of one might not show that it is one.
const MOST_TEXT_BYTES: usize = 4 * MOST_SEARCH_BYTES;

/// The text of an objective and an input. Secrets are hidden in it, with those in members of these names.
pub(super) fn search_text_of(names: &[String], objective: &str, input: &Value) -> String {
    let redact = Redaction::new(names);
    let mut text = String::new();
    if objective.len() <= MOST_TEXT_BYTES {
        text.push_str(&redact.text(objective));
    }
    let mut room = MOST_SEARCH_BYTES;
    add_words(&redact.value(&beginning(input, &mut room)), &mut text);
    search_text(&text)
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

    fn of(objective: &str, input: &Value) -> String {
        search_text_of(&["iban".to_owned()], objective, input)
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
