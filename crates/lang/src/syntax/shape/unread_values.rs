//! The values of a document that could not be read: a fault was reported at each of them, and their neighbours
//! are checked as if they were sound.

use std::collections::BTreeSet;

use crate::syntax::{Node, NodeKind, token};

/// The JSON pointers of these values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unknown {
    pointers: BTreeSet<String>,
}

impl Unknown {
    pub(super) fn add(&mut self, pointer: &str) {
        self.pointers.insert(pointer.to_owned());
    }

    /// Adds the parts of a value that the reader could not read: also those inside of values of any shape.
    pub(in crate::syntax) fn add_unread(&mut self, node: &Node, pointer: &mut String) {
        let length = pointer.len();
        match &node.kind {
            NodeKind::Fault => self.add(pointer),
            NodeKind::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    self.add_unread(item, pointer);
                    pointer.truncate(length);
                }
            }
            NodeKind::Object(members) => {
                for member in members {
                    pointer.push('/');
                    pointer.push_str(&token(&member.key));
                    self.add_unread(&member.value, pointer);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pointers.is_empty()
    }

    /// Whether the value at a JSON pointer is one of them, or inside of one.
    pub fn holds(&self, pointer: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let ends = pointer.match_indices('/').map(|(at, _)| at).chain([pointer.len()]);
        ends.filter_map(|end| pointer.get(..end)).any(|around| self.pointers.contains(around))
    }

    /// Those inside the value at a JSON pointer, with pointers relative to it.
    #[must_use]
    pub fn below(&self, pointer: &str) -> Self {
        let after = self.pointers.range(pointer.to_owned()..).map_while(|inner| inner.strip_prefix(pointer));
        let inside = after.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        Self { pointers: inside.map(str::to_owned).collect() }
    }
}
