//! JSON as people read it: on one line, laid out within a width, or the gist of it within a budget.

use std::fmt::Write as _;

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

#[cfg(test)]
mod tests;

/// What a piece of JSON is, for a reader's eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Brackets, commas, colons and blanks.
    Mark,
    /// A key of an object, with its quotes.
    Key,
    /// A text, with its quotes.
    Text,
    /// A number, as it was written.
    Number,
    /// `true`, `false`, `null`.
    Word,
}

/// JSON on one line, with blanks where a reader's eye and a line may break.
pub fn on_one_line(value: &Value) -> String {
    laid_out(value, usize::MAX)
}

/// JSON where each list and object that fits into `width` columns is on one line.
pub fn laid_out(value: &Value, width: usize) -> String {
    let mut text = String::new();
    pieces(value, width, &mut |_, piece| text.push_str(piece));
    text
}

/// As [`laid_out`], piece by piece.
pub fn pieces(value: &Value, width: usize, to: &mut dyn FnMut(Kind, &str)) {
    Layout { width, to }.value(value, 0, 0);
}

/// The gist of a value on one line of about `columns`: what is whole when it fits, else long texts are
/// cut, and long lists and objects end with the count of what is left out. The shape stays readable.
pub fn gist(value: &Value, columns: usize) -> String {
    let whole = on_one_line(value);
    if whole.width() <= columns {
        return whole;
    }
    let mut text = whole;
    for (letters, members) in [(160, 12), (80, 8), (60, 6), (40, 5), (24, 4), (16, 3), (12, 2), (8, 1)] {
        text.clear();
        Gist { letters, members }.value(value, &mut text);
        if text.width() <= columns {
            break;
        }
    }
    text
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

struct Layout<'a> {
    width: usize,
    to: &'a mut dyn FnMut(Kind, &str),
}

impl Layout<'_> {
    /// `indent`: of the line that it stands on; `before`: columns of that line that are taken.
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
            Value::Array(_) => (self.to)(Kind::Mark, "[]"),
            Value::Object(_) => (self.to)(Kind::Mark, "{}"),
            Value::String(text) => (self.to)(Kind::Text, &quoted(text)),
            Value::Number(number) => (self.to)(Kind::Number, &number.to_string()),
            Value::Bool(_) | Value::Null => (self.to)(Kind::Word, &value.to_string()),
        }
    }

    fn broken(&self, value: &Value, before: usize) -> bool {
        // Without a bound nothing breaks, and nothing has to be measured.
        self.width != usize::MAX && before + on_one_line(value).width() > self.width
    }

    fn members<'v>(
        &mut self,
        [open, close]: [&str; 2],
        members: impl Iterator<Item = (Option<&'v str>, &'v Value)>,
        indent: usize,
        broken: bool,
    ) {
        (self.to)(Kind::Mark, open);
        let inside = indent + 2;
        for (at, (key, item)) in members.enumerate() {
            if at > 0 {
                (self.to)(Kind::Mark, if broken { "," } else { ", " });
            }
            if broken {
                self.line(inside);
            }
            let mut before = inside;
            if let Some(key) = key {
                let key = quoted(key);
                before += key.width() + 2;
                (self.to)(Kind::Key, &key);
                (self.to)(Kind::Mark, ": ");
            }
            if broken {
                self.value(item, inside, before);
            } else {
                Layout { width: usize::MAX, to: self.to }.value(item, inside, before);
            }
        }
        if broken {
            self.line(indent);
        }
        (self.to)(Kind::Mark, close);
    }

    fn line(&mut self, indent: usize) {
        (self.to)(Kind::Mark, &format!("\n{:indent$}", ""));
    }
}

/// How much of a value is told: letters of a text, members of a list or object.
struct Gist {
    letters: usize,
    members: usize,
}

impl Gist {
    fn value(&self, value: &Value, to: &mut String) {
        match value {
            Value::String(text) => to.push_str(&quoted(&self.cut(text))),
            Value::Array(items) => {
                self.members(["[", "]"], items.len(), items.iter().map(|item| (None, item)), to);
            }
            Value::Object(map) => {
                let members = map.iter().map(|(key, item)| (Some(key), item));
                // Keys say more than a list's later members do.
                Self { letters: self.letters, members: self.members.saturating_mul(2) }.members(
                    ["{", "}"],
                    map.len(),
                    members,
                    to,
                );
            }
            other => to.push_str(&other.to_string()),
        }
    }

    fn members<'v>(
        &self,
        [open, close]: [&str; 2],
        count: usize,
        members: impl Iterator<Item = (Option<&'v String>, &'v Value)>,
        to: &mut String,
    ) {
        // One that is left out alone would take as much room as its count.
        let told = if count <= self.members + 1 { count } else { self.members };
        let inner = Self { letters: self.letters, members: if open == "{" { self.members / 2 } else { self.members } };
        to.push_str(open);
        for (at, (key, item)) in members.take(told).enumerate() {
            if at > 0 {
                to.push_str(", ");
            }
            if let Some(key) = key {
                let _ = write!(to, "{}: ", quoted(&self.cut(key)));
            }
            inner.value(item, to);
        }
        if told < count {
            let _ = write!(to, ", … {} more", count - told);
        }
        to.push_str(close);
    }

    fn cut(&self, text: &str) -> String {
        match text.char_indices().nth(self.letters) {
            Some((at, _)) if text.chars().count() > self.letters + 1 => {
                format!("{}…", text.get(..at).unwrap_or_default().trim_end())
            }
            _ => text.to_owned(),
        }
    }
}
