//! JSON for people: on one line, laid out within a width, or its gist within a budget.

use std::fmt::Write as _;

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

/// The kind of a piece of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonToken {
    /// Brackets, commas, colons and blanks.
    Mark,
    /// A key of an object, with its quotes.
    Key,
    /// A text, with its quotes.
    Text,
    /// A number, as written.
    Number,
    /// `true`, `false`, `null`.
    Word,
}

/// JSON on one line, with blanks where a line may break.
pub fn on_one_line(value: &Value) -> String {
    laid_out(value, usize::MAX)
}

/// JSON in which each list and object that fits into `width` columns is on one line.
pub fn laid_out(value: &Value, width: usize) -> String {
    let mut text = String::new();
    pieces(value, width, &mut |_, piece| text.push_str(piece));
    text
}

/// As [`laid_out`], piece by piece.
pub fn pieces(value: &Value, width: usize, to: &mut dyn FnMut(JsonToken, &str)) {
    JsonWriter { width, to }.value(value, 0, 0);
}

/// The gist of a value on one line of about `columns`: whole when it fits; otherwise long texts are cut, and
/// long lists and objects end with the count of what is left out. The structure stays readable.
pub fn gist(value: &Value, columns: usize) -> String {
    let whole = on_one_line(value);
    if whole.width() <= columns {
        return whole;
    }
    let mut text = whole;
    for (letters, items, keys) in GISTS {
        text.clear();
        Gist { letters, items, keys }.value(value, &mut text);
        if text.width() <= columns {
            break;
        }
    }
    text
}

/// From much to little: letters of a text, items of a list, keys of an object. Items are reduced first, because
/// later ones resemble the first.
const GISTS: [(usize, usize, usize); 9] =
    [(160, 12, 24), (80, 6, 20), (60, 3, 16), (40, 2, 16), (40, 1, 16), (24, 1, 12), (16, 1, 8), (12, 1, 5), (8, 1, 2)];
/// A key is cut less than a text.
const KEY: usize = 32;

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Whether a value has one member that can't be broken: separate lines would not make it narrower.
fn is_alone(value: &Value) -> bool {
    let only = match value {
        Value::Array(items) if items.len() == 1 => items.first(),
        Value::Object(map) if map.len() == 1 => map.values().next(),
        _ => None,
    };
    only.is_some_and(|only| !only.is_array() && !only.is_object())
}

struct JsonWriter<'a> {
    width: usize,
    to: &'a mut dyn FnMut(JsonToken, &str),
}

impl JsonWriter<'_> {
    /// `indent`: of the current line; `before`: the used columns of that line.
    fn value(&mut self, value: &Value, indent: usize, before: usize) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                let members = items.iter().map(|item| (None, item));
                self.members(["[", "]"], members, indent, self.broken(value, before));
            }
            Value::Object(map) if !map.is_empty() => {
                let members = map.iter().map(|(key, item)| (Some(key.as_str()), item));
                self.members(["{", "}"], members, indent, self.broken(value, before));
            }
            Value::Array(_) => (self.to)(JsonToken::Mark, "[]"),
            Value::Object(_) => (self.to)(JsonToken::Mark, "{}"),
            Value::String(text) => (self.to)(JsonToken::Text, &quoted(text)),
            Value::Number(number) => (self.to)(JsonToken::Number, &number.to_string()),
            Value::Bool(_) | Value::Null => (self.to)(JsonToken::Word, &value.to_string()),
        }
    }

    fn broken(&self, value: &Value, before: usize) -> bool {
        // Without a limit nothing breaks, and nothing has to be measured.
        self.width != usize::MAX && !is_alone(value) && before + on_one_line(value).width() > self.width
    }

    fn members<'v>(
        &mut self,
        [open, close]: [&str; 2],
        members: impl Iterator<Item = (Option<&'v str>, &'v Value)>,
        indent: usize,
        broken: bool,
    ) {
        (self.to)(JsonToken::Mark, open);
        let inside = indent + 2;
        for (at, (key, item)) in members.enumerate() {
            if at > 0 {
                (self.to)(JsonToken::Mark, if broken { "," } else { ", " });
            }
            if broken {
                self.line(inside);
            }
            let mut before = inside;
            if let Some(key) = key {
                let key = quoted(key);
                before += key.width() + 2;
                (self.to)(JsonToken::Key, &key);
                (self.to)(JsonToken::Mark, ": ");
            }
            if broken {
                self.value(item, inside, before);
            } else {
                JsonWriter { width: usize::MAX, to: self.to }.value(item, inside, before);
            }
        }
        if broken {
            self.line(indent);
        }
        (self.to)(JsonToken::Mark, close);
    }

    fn line(&mut self, indent: usize) {
        (self.to)(JsonToken::Mark, &format!("\n{:indent$}", ""));
    }
}

/// How much of a value is shown.
struct Gist {
    letters: usize,
    items: usize,
    keys: usize,
}

impl Gist {
    fn value(&self, value: &Value, to: &mut String) {
        match value {
            Value::String(text) => to.push_str(&quoted(&cut(text, self.letters))),
            Value::Array(items) => {
                to.push('[');
                for (at, item) in items.iter().take(self.items).enumerate() {
                    to.push_str(if at > 0 { ", " } else { "" });
                    self.value(item, to);
                }
                left_out(items.len(), self.items, to);
                to.push(']');
            }
            Value::Object(map) => {
                to.push('{');
                for (at, (key, item)) in map.iter().take(self.keys).enumerate() {
                    to.push_str(if at > 0 { ", " } else { "" });
                    let _ = write!(to, "{}: ", quoted(&cut(key, self.letters.max(KEY))));
                    self.value(item, to);
                }
                left_out(map.len(), self.keys, to);
                to.push('}');
            }
            other => to.push_str(&other.to_string()),
        }
    }
}

fn left_out(count: usize, shown: usize, to: &mut String) {
    if count > shown {
        let _ = write!(to, ", … {} more", count - shown);
    }
}

fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fits_is_on_one_line_and_the_rest_is_broken() {
        let value = json!({"rows": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}], "empty": [], "row_count": 2});
        assert_eq!(
            on_one_line(&value),
            r#"{"rows": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}], "empty": [], "row_count": 2}"#
        );
        assert_eq!(
            laid_out(&value, 40),
            r#"{
  "rows": [
    {"id": 1, "name": "one"},
    {"id": 2, "name": "two"}
  ],
  "empty": [],
  "row_count": 2
}"#
        );
    }

    #[test]
    fn what_is_laid_out_means_the_same() {
        let value: Value =
            serde_json::from_str(r#"{"n":12345678901234567890.50,"t":"\u0001\"é","l":[null,true,{}]}"#).unwrap();
        for width in [0, 10, 30, usize::MAX] {
            assert_eq!(serde_json::from_str::<Value>(&laid_out(&value, width)).unwrap(), value);
        }
    }

    #[test]
    fn a_gist_keeps_the_shape_and_counts_what_is_left_out() {
        let rows: Vec<Value> = (0..40).map(|id| json!({"id": id, "body": "lorem ipsum ".repeat(20)})).collect();
        let value = json!({"rows": rows, "row_count": 40});
        let short = gist(&value, 200);
        assert!(short.width() <= 200 && short.contains("lorem ipsum") && short.contains('…'), "{short}");
        assert!(short.ends_with(" more], \"row_count\": 40}"), "{short}");
        assert_eq!(gist(&json!({"id": 1}), 200), r#"{"id": 1}"#);
        assert_eq!(gist(&json!("x".repeat(500)), 100), format!("\"{}…\"", "x".repeat(80)));
    }

    #[test]
    fn a_gist_of_rows_keeps_the_first_row_and_what_stands_after_them() {
        let row = json!({"charge_id": "ch_1", "invoice_id": "INV-1", "status": "succeeded"});
        let short = gist(&json!({"rows": vec![row; 4], "row_count": 4}), 130);
        assert_eq!(
            short,
            r#"{"rows": [{"charge_id": "ch_1", "invoice_id": "INV-1", "status": "succeeded"}, … 3 more], "row_count": 4}"#
        );
    }
}
