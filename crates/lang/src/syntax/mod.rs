//! From a text to a tree: a strict JSON reader (RFC 8259) that keeps the position of every key and value. It
//! recovers from faults, so that one pass reports all faults of a text, each of them once.

mod container;
pub(crate) mod decimal;
pub mod document;
mod foreign_condition;
pub(crate) mod foreign_step;
mod foreign_syntax;
mod foreign_words;
pub mod formatter;
mod lookup;
mod number;
mod other_word;
mod pasted_secrets;
pub use pasted_secrets::looks_like;
mod reader;
pub mod shape;
mod string;
mod text;
mod value;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_cases;
#[cfg(test)]
mod tests_faults;
#[cfg(test)]
mod tests_formatter;

use crate::diagnostic::{Diagnostic, Source};

pub(crate) use foreign_syntax::APPROVAL_OF_STEP;
pub use lookup::{unescaped, value_at};
pub(crate) use text::quoted;
pub use value::repeated_keys;

/// The deepest nesting of arrays and objects.
pub const MAX_DEPTH: usize = 128;
/// The longest text, in bytes: 16 MiB.
pub const MAX_BYTES: usize = 16 << 20;
/// The most values of a text; a larger one is no document but an attack on memory.
pub const MAX_VALUES: usize = 100_000;
/// The most faults that are reported for one text.
pub const MAX_FAULTS: usize = 50;
/// The most bytes of the keys on the path to a value. Values are named by their pointers: with long ones, many
/// small values would take many times the size of the document.
pub const MAX_PATH_BYTES: usize = 8 << 10;

/// A text with its tree.
#[derive(Debug, Clone)]
pub struct Tree {
    /// The text.
    pub source: Source,
    /// Its value. Parts that could not be read are [`NodeKind::Fault`].
    pub root: Node,
    /// Whether the end of the text lies beyond a limit of the reader, and was not read.
    pub(crate) is_cut: bool,
    lookup: lookup::PointerIndex,
}

/// The bytes of a text from `start` to before `end`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its place; includes the quotes of a string.
    pub span: Span,
    /// What it is.
    pub kind: NodeKind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(Box<str>),
    /// A string, with its escapes resolved.
    String(Box<str>),
    /// An array.
    Array(Vec<Node>),
    /// An object: every member as written, including duplicate keys.
    Object(Vec<Member>),
    /// A part that could not be read; its fault is reported already.
    Fault,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The key, with its escapes resolved.
    pub key: Box<str>,
    /// The place of the key, with its quotes.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// Reads a text. The faults are in the order of the text, at most [`MAX_FAULTS`] of them; duplicate keys are
/// not among them: see [`repeated_keys`].
pub fn parse(source: &Source) -> (Tree, Vec<Diagnostic>) {
    reader::JsonReader::read(source)
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

impl Node {
    /// Its text, when it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Its items, when it is an array.
    pub fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            NodeKind::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Its members, when it is an object.
    pub fn members(&self) -> Option<&[Member]> {
        match &self.kind {
            NodeKind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member with this key; of duplicates the last, which counts.
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members()?.iter().rev().find(|member| &*member.key == key)
    }

    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.member(key).map(|member| &member.value)
    }

    /// Whether it could not be read.
    pub fn is_fault(&self) -> bool {
        self.kind == NodeKind::Fault
    }
}

/// A key as a part of a JSON pointer.
pub fn token(key: &str) -> String {
    match key.contains(['~', '/']) {
        true => key.replace('~', "~0").replace('/', "~1"),
        false => key.to_owned(),
    }
}
