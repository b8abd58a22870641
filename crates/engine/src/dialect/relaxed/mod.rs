//! JSON as models write it: read where it has one meaning, refused where it has two.
//!
//! Taken beside strict JSON: trailing commas, text in `'…'` and `“…”`, raw line breaks and tabs in
//! text, `\'`, keys without quotes, Python's `True`, `False` and `None`, comments (`//`, `/* */`,
//! `#`), numbers as JSON5 writes them (`.5`, `5.`), and the closing braces that are missing at the very end.
//! Not taken, because a guess would be needed: text or a list without its end, missing commas, quotes inside
//! text, unknown escapes, other numbers that JSON does not have, one key with two values.
//!
//! Bounds: 128 levels, 100,000 values. Each reading takes time in proportion to what it read.

mod fault;
mod number;
mod reader;
mod string;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use fault::{RelaxedFault, RelaxedFaultKind, shown};
use reader::RelaxedReader;

/// The most levels of objects and arrays, the outermost one counted.
pub const MAX_DEPTH: usize = 128;

/// The most values of one object, those inside counted.
pub const MAX_VALUES: usize = 100_000;

/// What to do when the text ends before the last bracket is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnclosedBrackets {
    /// Close the objects that are open, when the last value is complete. A list that is open is refused.
    Close,
    /// Refuse.
    Refuse,
}

/// An object that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedObject {
    /// Its members, in the order of the text.
    pub map: Map<String, Value>,
    /// Where the text continues behind it, in bytes.
    pub end: usize,
    /// How many closing braces were missing at the end of the text.
    pub supplied: usize,
    /// Its keys that occur twice with equal values.
    pub repeated: Vec<String>,
}

/// What follows an opening brace.
#[derive(Debug, Clone, PartialEq)]
pub enum Opening {
    /// A key and a colon, or `}` at once: an object is meant.
    Object {
        /// The first key.
        key: Option<String>,
    },
    /// A word or a quoted text, and no colon.
    Word {
        /// The word.
        word: String,
        /// Whether it is quoted.
        quoted: bool,
    },
    /// Something that begins no object.
    Other,
}

/// Reads the object whose `{` is at this byte.
///
/// # Errors
/// Where and why it can't be read.
pub fn object(text: &str, at: usize, unclosed: UnclosedBrackets) -> Result<ParsedObject, RelaxedFault> {
    let mut reader = RelaxedReader::new(text, at, unclosed);
    let map = reader.object()?;
    Ok(ParsedObject { map, end: reader.at(), supplied: reader.supplied(), repeated: reader.into_repeated() })
}

/// Reads a text that is one object and nothing else.
///
/// # Errors
/// Where and why it can't be read.
pub fn whole_object(text: &str) -> Result<Map<String, Value>, RelaxedFault> {
    let mut reader = RelaxedReader::new(text, 0, UnclosedBrackets::Refuse);
    reader.skip()?;
    let map = reader.object()?;
    reader.skip()?;
    reader.nothing_left()?;
    Ok(map)
}

/// Reads a text that is one quoted string and nothing else.
pub fn whole_string(text: &str) -> Option<String> {
    let mut reader = RelaxedReader::new(text, 0, UnclosedBrackets::Refuse);
    let string = reader.string().ok()?;
    reader.nothing_left().ok()?;
    Some(string)
}

/// Reads a text that is one value and nothing else.
///
/// # Errors
/// Where and why it can't be read.
pub fn whole_value(text: &str) -> Result<Value, RelaxedFault> {
    let mut reader = RelaxedReader::new(text, 0, UnclosedBrackets::Refuse);
    reader.skip()?;
    let value = reader.value()?;
    reader.skip()?;
    reader.nothing_left()?;
    Ok(value)
}

/// Looks at what follows the `{` at this byte. Gives also the byte up to which it looked.
///
/// # Errors
/// When a quoted text or a comment that begins there has no end, or holds what no text may hold.
pub fn opening(text: &str, at: usize) -> (Result<Opening, RelaxedFault>, usize) {
    let mut reader = RelaxedReader::new(text, at.saturating_add(1), UnclosedBrackets::Refuse);
    let opening = reader.opening();
    (opening, reader.at())
}
