//! What can be wrong with JSON, and the sentences that say so.

use super::{MAX_DEPTH, MAX_VALUES};

/// Why a text can't be read as JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelaxedFault {
    /// What is wrong.
    pub kind: RelaxedFaultKind,
    /// The byte of the text at which it is wrong.
    pub at: usize,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelaxedFaultKind {
    /// The text ends in the middle.
    CutOff,
    /// A quoted text has no end.
    OpenString,
    /// A `\` that JSON does not know.
    Escape,
    /// Half of a surrogate pair.
    Surrogate,
    /// A control character inside a quoted text.
    Control,
    /// A number with more digits than this build holds.
    Inexact,
    /// A number that JSON does not have.
    Number,
    /// A word that is no value.
    Word,
    /// A key is missing.
    Key,
    /// No colon behind a key.
    Colon,
    /// A value is missing.
    Value,
    /// Neither a comma nor the end behind a value.
    Separator,
    /// A `/*` without `*/`.
    OpenComment,
    /// Too many levels.
    TooDeep,
    /// Too many values.
    TooMany,
    /// One key with two values.
    Repeated(String),
    /// A key that the machine uses for its own ends.
    Reserved,
    /// Text behind the object.
    Trailing,
}

impl RelaxedFault {
    /// What is wrong and where, as a part of a sentence. `text` is the one that was read.
    pub fn words(&self, text: &str) -> String {
        let before = text.get(..self.at).unwrap_or(text);
        let line = before.matches('\n').count().saturating_add(1);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count().saturating_add(1);
        format!("{} (line {line}, column {column})", self.kind.words())
    }
}

impl RelaxedFaultKind {
    fn words(&self) -> String {
        let words = match self {
            Self::CutOff => "it ends in the middle",
            Self::OpenString => "a string is not closed",
            Self::Escape => "a string has a backslash that JSON does not know; write \\\\ for a backslash",
            Self::Surrogate => "a string has half of a \\u surrogate pair",
            Self::Control => "a string has a raw control character; write it as \\u00XX",
            Self::Inexact => "a number has more digits than can be held exactly; write it as a string",
            Self::Number => "a number is not written as JSON writes numbers",
            Self::Word => "a word stands where a value is expected; put text in double quotes",
            Self::Key => "a key in double quotes is expected",
            Self::Colon => "a colon is expected behind a key",
            Self::Value => "a value is expected",
            Self::Separator => "a comma or a closing bracket is expected; write a double quote inside a string as \\\"",
            Self::OpenComment => "a comment is not closed",
            Self::TooDeep => return format!("it has more than {MAX_DEPTH} levels"),
            Self::TooMany => return format!("it has more than {MAX_VALUES} values"),
            Self::Repeated(key) => return format!("the key {} stands there twice, with two values", shown(key)),
            Self::Reserved => "a key is reserved; choose another one",
            Self::Trailing => "something stands behind its end",
        };
        words.to_owned()
    }
}

/// A name from a reply, for a sentence: in double quotes, at most 60 characters, escaped.
pub fn shown(name: &str) -> String {
    let mut short: String = name.chars().take(60).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    format!("\"{}\"", short.escape_debug())
}
