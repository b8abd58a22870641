//! The shape of a document, judged by the JSON Schema of its kind: so that what `schemas/` accepts,
//! what is accepted here and what serde reads are the same. Each fault is reported once, by the part of
//! the schema that understands it best.

mod form;
mod known;
mod object;
mod scalar;
mod union;
mod unknown;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Nearest, Place};
use crate::syntax::{Node, NodeKind, Span, Tree, token};

use form::SchemaForm;
pub(crate) use known::{DocumentSchema, known};
pub use unknown::Unknown;

/// The most faults of shape that are reported for one document.
pub const MAX_FAULTS: usize = 100;
/// The most fields that are not known and looked at: several that belong to one other place are one fault. And the
/// most values of which nothing is known.
const MAX_UNKNOWN: usize = 1_000;

/// A document after its shape was judged.
#[derive(Debug)]
pub struct Shaped {
    /// Its value, with numbers spelled so that serde reads them wherever a number is meant. Where
    /// anything is allowed, numbers keep their digits. A part that is not what its field takes is left out, or
    /// replaced where the types need one, so that the parts beside it can be read.
    pub value: Value,
    /// These parts.
    pub unknown: Unknown,
    /// Keys that are read as the field that they are near to, in the order of the walk.
    pub renamed: Vec<Renamed>,
    /// What is wrong, in the order of the text, at most [`MAX_FAULTS`].
    pub faults: Vec<Diagnostic>,
}

/// Judges a tree by the schema of its kind. In a tree with faults of syntax no field is
/// reported as missing: it may be in the part that could not be read.
pub(crate) fn shape(tree: &Tree, known: &DocumentSchema, whole: bool) -> Shaped {
    let mut walker = Walker {
        tree,
        known,
        whole,
        pointer: String::new(),
        faults: Vec::new(),
        misplaced: Vec::new(),
        reported: None,
        nearest: Nearest::default(),
        unknown_names: 0,
        unknown: Unknown::default(),
        renamed: Vec::new(),
    };
    let value = walker.walk(&known.form, &tree.root, None).unwrap_or_else(|| tree.value());
    let Walker { mut faults, unknown, renamed, .. } = walker;
    faults.sort_by_key(|fault| fault.place.start);
    Shaped { value, unknown, renamed, faults }
}

/// A key that is read as the field that it is near to.
#[derive(Debug)]
pub struct Renamed {
    /// The JSON pointer of the object; of the names on the way to it, the fields that are meant.
    pub object: String,
    /// The key as it is written.
    pub key: String,
    /// The field.
    pub field: String,
}

struct Walker<'a> {
    tree: &'a Tree,
    known: &'a DocumentSchema,
    whole: bool,
    /// Where the walk is.
    pointer: String,
    faults: Vec<Diagnostic>,
    /// Fields that are reported as misplaced: they are not reported as missing where they belong.
    misplaced: Vec<String>,
    /// The missing field that is reported already for the object that is walked next.
    reported: Option<String>,
    /// What was meant by names that are not known.
    nearest: Nearest,
    /// How many names were looked up that are not known.
    unknown_names: usize,
    /// The values of which nothing is known.
    unknown: Unknown,
    /// The keys that are read as the field that they are near to.
    renamed: Vec<Renamed>,
}

impl<'a> Walker<'a> {
    /// Judges a value and returns it; nothing when a fault leaves it unknown. `key` is the place of its key.
    fn walk(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Option<Value> {
        if node.is_fault() {
            return None;
        }
        if !form.any_of.is_empty() {
            return self.any_of(form, node, key);
        }
        if let Some(words) = &form.words {
            return self.word(words, node);
        }
        if !form.one_of.is_empty() {
            return self.one_of(form, node, key);
        }
        if !form.takes(node) {
            self.wrong_types(&form.types, node);
            return None;
        }
        match &node.kind {
            NodeKind::Object(members) => Some(self.object(form, node, members, key)),
            NodeKind::Array(items) => self.array(form, node, items),
            NodeKind::String(text) => {
                self.length(form, node, text);
                Some(node.value())
            }
            NodeKind::Number(digits) => self.number(form, node, digits),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Fault => Some(node.value()),
        }
    }

    fn array(&mut self, form: &'a SchemaForm, node: &Node, items: &[Node]) -> Option<Value> {
        let counted = self.count(form, node, items.len());
        let value = match &form.items {
            Some(of) => {
                let walked = items.iter().enumerate();
                let walked =
                    walked.map(|(index, item)| self.inside(&index.to_string(), |walker| walker.needed(of, item, None)));
                Value::Array(walked.collect())
            }
            None => node.value(),
        };
        counted.then_some(value)
    }

    /// Judges a value that the types can't do without.
    fn needed(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Value {
        match self.walk(form, node, key) {
            Some(value) => value,
            None if self.mark_unknown() => form.stand_in(),
            None => node.value(),
        }
    }

    /// Judges a value that may be left out.
    fn optional(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Option<Value> {
        match self.walk(form, node, key) {
            Some(value) => Some(value),
            None if self.mark_unknown() => None,
            None => Some(node.value()),
        }
    }

    /// Marks the value that the walk is at as unknown, unless there are too many: then what holds it can't be read.
    fn mark_unknown(&mut self) -> bool {
        let few = !self.full() && self.unknown.len() < MAX_UNKNOWN;
        if few {
            self.unknown.add(&self.pointer);
        }
        few
    }

    fn inside<T>(&mut self, key: &str, walk: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        match key.contains(['~', '/']) {
            true => self.pointer.push_str(&token(key)),
            false => self.pointer.push_str(key),
        }
        let given = walk(self);
        self.pointer.truncate(length);
        given
    }

    fn report(&mut self, fault: Diagnostic) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    fn full(&self) -> bool {
        self.faults.len() >= MAX_FAULTS
    }

    fn place(&self, span: Span) -> Place {
        self.tree.source.place(span.start, span.end)
    }

    /// What the value that the walk is at is called in a message: `` `max_iterations` ``,
    /// `` `tools[0]` ``.
    fn label(&self) -> String {
        label(&self.pointer)
    }
}

/// What the value at a pointer is called in a message.
pub(crate) fn label(pointer: &str) -> String {
    let readable = |token: &str| token.replace("~1", "/").replace("~0", "~");
    let mut tokens = pointer.rsplit('/');
    let Some(last) = tokens.next().filter(|_| !pointer.is_empty()) else { return "the document".to_owned() };
    let index = last.bytes().all(|byte| byte.is_ascii_digit()) && !last.is_empty();
    match (index, tokens.next().filter(|name| !name.is_empty())) {
        (true, Some(array)) => format!("`{}[{last}]`", readable(array)),
        (true, None) => format!("entry {last} of the document"),
        (false, _) => format!("`{}`", readable(last)),
    }
}

/// Words as an enumeration in a sentence: `a, b or c`.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A map that keeps the last of several values, as [`Node::value`] does.
fn insert(map: &mut Map<String, Value>, key: &str, value: Value) {
    map.insert(key.to_owned(), value);
}
