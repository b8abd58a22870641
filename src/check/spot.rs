//! A place in one of the texts that a rule can tell of.

use std::ops::Range;

use super::Rule;
use crate::diagnostic::{Diagnostic, Place};
use crate::syntax::{Node, Tree};

/// A value in a document, its key, or a part of its text.
#[derive(Debug, Clone)]
pub struct Spot<'a> {
    tree: &'a Tree,
    path: String,
    part: Part,
}

#[derive(Debug, Clone)]
enum Part {
    Value,
    Key,
    Inside(Range<usize>),
}

impl<'a> Spot<'a> {
    /// The value at a JSON pointer.
    pub fn new(tree: &'a Tree, path: impl Into<String>) -> Self {
        Self { tree, path: path.into(), part: Part::Value }
    }

    /// The value further down, at a JSON pointer from here.
    #[must_use]
    pub fn below(&self, pointer: &str) -> Self {
        Self::new(self.tree, format!("{}{pointer}", self.path))
    }

    /// The key in place of the value.
    #[must_use]
    pub fn key(self) -> Self {
        Self { part: Part::Key, ..self }
    }

    /// A part of the value, which is a string: bytes of it once read.
    #[must_use]
    pub fn inside(self, range: Range<usize>) -> Self {
        Self { part: Part::Inside(range), ..self }
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

    /// Where it stands.
    pub fn place(&self) -> Place {
        match &self.part {
            Part::Value => self.tree.place(&self.path),
            Part::Key => self.tree.key_place(&self.path),
            Part::Inside(range) => self.tree.place_inside(&self.path, range),
        }
    }

    /// What a rule tells of it.
    pub fn tell(&self, rule: &Rule, message: impl Into<String>) -> Diagnostic {
        let told = Diagnostic::error(rule.code, message, self.path.as_str(), self.place());
        Diagnostic { severity: rule.severity, ..told }
    }
}

/// Whether something in a value could not be read.
pub(super) fn has_fault(node: &Node) -> bool {
    node.is_fault()
        || node.items().is_some_and(|items| items.iter().any(has_fault))
        || node.members().is_some_and(|members| members.iter().any(|member| has_fault(&member.value)))
}
