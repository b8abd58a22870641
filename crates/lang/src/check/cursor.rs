//! A place in one of the texts that a rule can report.

use std::ops::Range;
use std::sync::Arc;

use super::Rule;
use crate::diagnostic::{Diagnostic, Place, codes};
use crate::syntax::{Node, Tree};

/// A value in a document, its key, or a part of its text.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    tree: &'a Tree,
    path: String,
    side: Side,
}

#[derive(Debug, Clone)]
enum Side {
    Value,
    Key,
    Inside(Range<usize>),
}

impl<'a> Cursor<'a> {
    /// The value at a JSON pointer.
    pub fn new(tree: &'a Tree, path: impl Into<String>) -> Self {
        Self { tree, path: path.into(), side: Side::Value }
    }

    /// The value further down, at a JSON pointer from here.
    #[must_use]
    pub fn below(&self, pointer: &str) -> Self {
        Self::new(self.tree, format!("{}{pointer}", self.path))
    }

    /// The key in place of the value.
    #[must_use]
    pub fn key(self) -> Self {
        Self { side: Side::Key, ..self }
    }

    /// A part of the value, which is a string: bytes of it once read.
    #[must_use]
    pub fn inside(self, range: Range<usize>) -> Self {
        Self { side: Side::Inside(range), ..self }
    }

    /// The value, as it is written.
    pub fn node(&self) -> Option<&'a Node> {
        self.tree.at(&self.path)
    }

    /// Whether there is a value.
    pub fn is_written(&self) -> bool {
        self.node().is_some()
    }

    /// Its JSON pointer.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name of the file that it is in.
    pub fn file(&self) -> &'a Arc<str> {
        &self.tree.source.name
    }

    /// Its place in the text.
    pub fn place(&self) -> Place {
        match &self.side {
            Side::Value => self.tree.place(&self.path),
            Side::Key => self.tree.key_place(&self.path),
            Side::Inside(range) => self.tree.place_inside(&self.path, range),
        }
    }

    /// A diagnostic of a rule at this place, as severe as the rule's code.
    pub fn report(&self, rule: &Rule, message: impl Into<String>) -> Diagnostic {
        let error = Diagnostic::error(rule.code, message, self.path.as_str(), self.place());
        let severity = codes::find(rule.code).map_or(error.severity, |row| row.severity);
        Diagnostic { severity, ..error }
    }
}

/// Whether something in a value could not be read.
pub(super) fn has_fault(node: &Node) -> bool {
    node.is_fault()
        || node.items().is_some_and(|items| items.iter().any(has_fault))
        || node.members().is_some_and(|members| members.iter().any(|member| has_fault(&member.value)))
}
