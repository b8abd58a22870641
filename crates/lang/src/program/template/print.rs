//! The only place that prints a value into a text.

use std::io::{self, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{MAX_RENDERED_BYTES, ValueEscape};
use crate::policy::json_text;
use crate::program::scope::Unresolved;

/// All but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text with a limit on its size.
pub(super) struct Text {
    text: String,
    escape: ValueEscape,
    /// Whether the author's text has opened a JSON string that is still open, and whether its last character was a backslash
    /// there.
    in_string: bool,
    is_escaped: bool,
}

impl Text {
    pub fn new(escape: ValueEscape) -> Self {
        Self { text: String::new(), escape, in_string: false, is_escaped: false }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn into_string(self) -> String {
        self.text
    }

    /// Adds literal text of the author.
    pub fn authored(&mut self, text: &str) -> Result<(), Unresolved> {
        if self.text.len() + text.len() > MAX_RENDERED_BYTES {
            return Err(too_long());
        }
        self.text.push_str(text);
        if self.escape == ValueEscape::JsonStrings {
            for c in text.chars() {
                self.in_string ^= c == '"' && !self.is_escaped;
                self.is_escaped = c == '\\' && self.in_string && !self.is_escaped;
            }
        }
        Ok(())
    }

    /// Adds a value, escaped: a text unchanged, a number with its digits as written, `null` as nothing, a list
    /// or object as compact JSON.
    pub fn value(&mut self, value: &Value) -> Result<(), Unresolved> {
        match value {
            Value::Null => Ok(()),
            Value::Bool(true) => self.escaped("true"),
            Value::Bool(false) => self.escaped("false"),
            Value::Number(number) => self.escaped(&json_text::digits(number)),
            Value::String(text) => self.escaped(text),
            Value::Array(_) | Value::Object(_) => {
                if !within_depth(value, 256) {
                    return Err(Unresolved::refused("a value is nested more than 256 deep"));
                }
                let mut json = Bounded { bytes: Vec::new(), left: MAX_RENDERED_BYTES };
                serde_json::to_writer(&mut json, value).map_err(|_| too_long())?;
                self.escaped(&String::from_utf8_lossy(&json.bytes))
            }
        }
    }

    /// Adds a text, escaped.
    pub fn escaped(&mut self, text: &str) -> Result<(), Unresolved> {
        if self.text.len() + text.len() > MAX_RENDERED_BYTES {
            return Err(too_long());
        }
        match self.escape {
            ValueEscape::Url => self.text.extend(utf8_percent_encode(text, RESERVED)),
            ValueEscape::JsonStrings if !self.in_string => self.text.push_str(text),
            ValueEscape::Plain => self.text.push_str(text),
            ValueEscape::Json | ValueEscape::JsonStrings => {
                let quoted = Value::from(text).to_string();
                self.text.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
            }
        }
        if self.text.len() > MAX_RENDERED_BYTES { Err(too_long()) } else { Ok(()) }
    }
}

fn too_long() -> Unresolved {
    Unresolved::refused(format!("the text would be longer than {} MiB", MAX_RENDERED_BYTES / (1024 * 1024)))
}

/// Whether a value is nested at most `most` levels deep; recurses no deeper than that.
fn within_depth(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most > 0 && items.iter().all(|item| within_depth(item, most - 1)),
        Value::Object(members) => most > 0 && members.values().all(|member| within_depth(member, most - 1)),
        _ => true,
    }
}

/// Bytes up to a limit.
struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("too long"))?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
