//! Secrets that were pasted into a document: a document is kept in journals and shown to others.

use super::document::{Document, DocumentKind};
use crate::diagnostic::{Diagnostic, codes};
use crate::policy::secret_shapes;
use crate::policy::secret_shapes::{Found, PRIVATE_KEY};
use crate::syntax::{MAX_FAULTS, Node, NodeKind, token};

/// The fewest letters and digits of a private key. A text may be about the line before it.
const SHORTEST_PRIVATE_KEY: usize = 32;

/// An error for each string that looks like a key or token; what it says never shows the secret.
pub(super) fn secrets(document: &Document) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    // Most documents have none: the places are looked for only where there is a fault to report.
    if is_anywhere(&document.tree.root) {
        visit(document, &document.tree.root, &mut String::new(), &mut faults);
    }
    faults
}

fn is_anywhere(node: &Node) -> bool {
    match &node.kind {
        NodeKind::String(text) => looks_like(text).is_some(),
        NodeKind::Array(items) => items.iter().any(is_anywhere),
        NodeKind::Object(members) => members.iter().any(|member| is_anywhere(&member.value)),
        _ => false,
    }
}

fn visit(document: &Document, node: &Node, pointer: &mut String, faults: &mut Vec<Diagnostic>) {
    let length = pointer.len();
    if faults.len() >= MAX_FAULTS {
        return;
    }
    match &node.kind {
        NodeKind::String(text) => {
            if let Some(what) = looks_like(text) {
                let place = document.tree.place(pointer);
                let message = format!("this text looks like {what}, written out");
                let fault = Diagnostic::error(codes::SECRET, message, pointer.as_str(), place);
                let help = if document.kind == Some(DocumentKind::Project) {
                    "write `env:MY_KEY` or `file:PATH` here, and make the one that was written out invalid"
                } else {
                    "name it in the project's `orgconfig` (`\"my_key\": \"env:MY_KEY\"`), write \
                     `orgconfig:my_key` here, and make the one that was written out invalid"
                };
                faults.push(fault.help(help));
            }
        }
        NodeKind::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                visit(document, item, pointer, faults);
                pointer.truncate(length);
            }
        }
        NodeKind::Object(members) => {
            for member in members {
                pointer.push('/');
                pointer.push_str(&token(&member.key));
                visit(document, &member.value, pointer, faults);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

/// What the secret in a text is called, when there is one. Of what a run brings more is hidden than is reported
/// here: an example in a document has few different characters, a key has many.
pub fn looks_like(text: &str) -> Option<&'static str> {
    if !secret_shapes::may_have(text) {
        return None;
    }
    let reported = |found: &Found| {
        let secret = text.get(found.range.clone()).unwrap_or_default();
        if found.called == PRIVATE_KEY {
            return secret.bytes().filter(u8::is_ascii_alphanumeric).count() >= SHORTEST_PRIVATE_KEY;
        }
        secret.len() >= 20 && !secret.starts_with("orgconfig") && is_random(secret)
    };
    secret_shapes::find(text).into_iter().find(reported).map(|found| found.called)
}

/// Whether a text has digits and many different characters, as keys have and examples have not.
fn is_random(text: &str) -> bool {
    let mut characters: Vec<char> = text.chars().collect();
    characters.sort_unstable();
    characters.dedup();
    characters.len() >= 10 && text.contains(|c: char| c.is_ascii_digit())
}
