//! The shape of a document, checked by the JSON Schema of its kind, so that `schemas/`, this check and serde
//! accept the same documents. Each fault is reported once, by the most specific part of the schema.

mod document_schemas;
mod form;
mod known_fields;
mod meant_value;
mod object;
mod scalar;
mod step_condition;
mod step_fields;
mod union;
mod unread_values;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Nearest, Place, sort_by_place};
use crate::syntax::{Node, NodeKind, Span, Tree, token, unescaped};

pub(crate) use document_schemas::{DocumentSchema, known};
use form::SchemaForm;
pub(in crate::syntax) use known_fields::{KnownMember, ValueForm};
pub(crate) use step_fields::foreach_step;
pub use unread_values::Unknown;

/// The most faults of shape that are reported for one document.
pub const MAX_FAULTS: usize = 100;
/// The most unknown fields that are checked: several that belong to one other place are one fault. Also the
/// most values that could not be read.
const MAX_UNKNOWN: usize = 1_000;

/// A document after its shape was checked.
#[derive(Debug)]
pub struct Shaped {
    /// Its value. Numbers are spelled for serde where a number is expected, and keep their digits where
    /// anything is allowed. A part that does not fit its field is left out, or replaced if the types need a
    /// value, so that its neighbours can be read.
    pub value: Value,
    /// The parts that were left out or replaced.
    pub unknown: Unknown,
    /// Keys that are read as the field that they are close to, in the order of the walk.
    pub renamed: Vec<Renamed>,
    /// The faults, in the order of the text, at most [`MAX_FAULTS`].
    pub faults: Vec<Diagnostic>,
}

/// Checks a tree by the schema of its kind. In a tree with syntax faults no field is reported as missing: it
/// may be in the part that could not be read.
pub(crate) fn shape(tree: &Tree, known: &DocumentSchema, whole: bool) -> Shaped {
    let mut walker = Walker {
        tree,
        known,
        whole,
        pointer: String::new(),
        faults: Vec::new(),
        misplaced: Vec::new(),
        reported: None,
        union: None,
        nearest: Nearest::default(),
        unknown_names: 0,
        unknown: Unknown::default(),
        renamed: Vec::new(),
    };
    let value = walker.walk(&known.form, &tree.root, None).unwrap_or_else(|| tree.value());
    let Walker { mut faults, unknown, renamed, .. } = walker;
    sort_by_place(&mut faults);
    Shaped { value, unknown, renamed, faults }
}

/// A key that is read as the field that it is close to.
#[derive(Debug)]
pub struct Renamed {
    /// The JSON pointer of the object, with the corrected names of fields.
    pub object: String,
    /// The key as written.
    pub key: String,
    /// The field.
    pub field: String,
}

struct Walker<'a> {
    tree: &'a Tree,
    known: &'a DocumentSchema,
    whole: bool,
    /// The pointer of the current value.
    pointer: String,
    faults: Vec<Diagnostic>,
    /// Fields that are reported as misplaced: they are not reported as missing in their right place.
    misplaced: Vec<String>,
    /// The missing field that is already reported for the next object.
    reported: Option<String>,
    /// The branches of which the object that is walked next is one.
    union: Option<&'a SchemaForm>,
    /// The search for the nearest names of unknown ones.
    nearest: Nearest,
    /// How many unknown names were looked up.
    unknown_names: usize,
    /// The values that could not be read.
    unknown: Unknown,
    /// The keys that are read as the field that they are close to.
    renamed: Vec<Renamed>,
}

impl<'a> Walker<'a> {
    /// Checks a value and returns it; none when a fault makes it unknown. `key` is the place of its key.
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
            self.wrong_types(form, &form.types, node, form.takes_item(node));
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

    /// Checks a value that the types require.
    fn needed(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Value {
        match self.walk(form, node, key) {
            Some(value) => value,
            None if self.mark_unknown() => form.stand_in(),
            None => node.value(),
        }
    }

    /// Checks a value that may be left out.
    fn optional(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Option<Value> {
        match self.walk(form, node, key) {
            Some(value) => Some(value),
            None if self.mark_unknown() => None,
            None => Some(node.value()),
        }
    }

    /// Marks the current value as unknown, unless there are too many: then its container can't be read.
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

    /// The name of the current value in a message: `` `max_iterations` ``, `` `tools[0]` ``.
    fn label(&self) -> String {
        label(&self.pointer)
    }
}

/// The name of the value at a pointer in a message.
pub(crate) fn label(pointer: &str) -> String {
    let readable = |token: &str| unescaped(token).into_owned();
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

/// Inserts into a map that keeps the last of several values, as [`Node::value`] does.
fn insert(map: &mut Map<String, Value>, key: &str, value: Value) {
    map.insert(key.to_owned(), value);
}
