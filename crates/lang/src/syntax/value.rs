//! The tree as a `serde_json` value, and repeated keys.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{MAX_FAULTS, Member, Node, NodeKind, Tree, token};
use crate::diagnostic::{Diagnostic, codes};
use crate::policy::json_text;

impl Tree {
    /// The whole text as a value: of duplicate keys the last one counts, and what could not be read is null.
    pub fn value(&self) -> Value {
        self.root.value()
    }
}

impl Node {
    /// The value without positions; numbers keep their digits.
    pub fn value(&self) -> Value {
        // The tree is never deeper than MAX_DEPTH: the recursion ends.
        match &self.kind {
            NodeKind::Null | NodeKind::Fault => Value::Null,
            NodeKind::Bool(truth) => Value::Bool(*truth),
            NodeKind::Number(digits) => json_text::number(digits).map_or(Value::Null, Value::Number),
            NodeKind::String(text) => Value::String(String::from(&**text)),
            NodeKind::Array(items) => Value::Array(items.iter().map(Node::value).collect()),
            NodeKind::Object(members) => {
                let members = members.iter().map(|member| (String::from(&*member.key), member.value.value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// An error for each duplicate key of an object, and for keys that serde_json reserves; at most [`MAX_FAULTS`].
pub fn repeated_keys(tree: &Tree) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    // Most documents have none: positions are searched only when there is a fault to report.
    if is_odd_anywhere(&tree.root) {
        visit(tree, &tree.root, &mut String::new(), &mut faults);
    }
    faults
}

/// The prefix of the keys that serde_json reserves.
const KEPT: &str = "$serde_json::private::";
/// In an object with at most this number of members, comparing all keys is faster than hashing them.
const MAX_COMPARED_MEMBERS: usize = 16;

/// Whether an object has a duplicate key, or a reserved one.
fn is_odd_anywhere(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Array(items) => items.iter().any(is_odd_anywhere),
        NodeKind::Object(members) => {
            let twice = if members.len() <= MAX_COMPARED_MEMBERS {
                let twin =
                    |(at, member): (usize, &Member)| members.iter().take(at).any(|before| before.key == member.key);
                members.iter().enumerate().any(twin)
            } else {
                let mut seen = HashSet::with_capacity(members.len());
                members.iter().any(|member| !seen.insert(&*member.key))
            };
            twice || members.iter().any(|member| member.key.starts_with(KEPT) || is_odd_anywhere(&member.value))
        }
        _ => false,
    }
}

fn visit(tree: &Tree, node: &Node, pointer: &mut String, faults: &mut Vec<Diagnostic>) {
    let length = pointer.len();
    match &node.kind {
        NodeKind::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                visit(tree, item, pointer, faults);
                pointer.truncate(length);
            }
        }
        NodeKind::Object(members) => {
            let mut seen = std::collections::HashMap::with_capacity(members.len());
            for member in members {
                if faults.len() >= MAX_FAULTS {
                    return;
                }
                pointer.push('/');
                pointer.push_str(&token(&member.key));
                let place = || tree.source.place(member.key_span.start, member.key_span.end);
                if let Some(first) = seen.insert(&*member.key, member.key_span) {
                    let first = tree.source.place(first.start, first.end);
                    let message = format!("the key `{}` is written twice in this object", member.key);
                    let fault = Diagnostic::error(codes::DUPLICATE_KEY, message, pointer.as_str(), place())
                        .help("keep one of the two: readers of JSON do not agree on which one counts")
                        .related(&first, "it is written here already");
                    faults.push(fault);
                } else if member.key.starts_with(KEPT) {
                    let message = format!("the key `{}` can't be used", member.key);
                    faults.push(Diagnostic::error(codes::SYNTAX, message, pointer.as_str(), place()));
                }
                visit(tree, &member.value, pointer, faults);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}
