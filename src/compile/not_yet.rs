//! What the language has and this version can't run yet: recognised, and refused plainly rather than
//! ignored.

use super::document::{Document, DocumentKind};
use super::layout::Layout;
use super::steps::is_foreach;
use crate::diagnostic::{Diagnostic, codes};

/// A document that can't be run as a whole.
pub(super) fn document(document: &Document) -> Option<Diagnostic> {
    let tree = &document.tree;
    if is_foreach(document) {
        let at = "/properties/mode";
        let fault = Diagnostic::error(codes::NOT_YET, "loops of mode `foreach` can't be run yet", at, tree.place(at));
        return Some(fault.help("the mode that runs here is `react`"));
    }
    if document.kind != Some(DocumentKind::Workflow) {
        return None;
    }
    let at = "/definition";
    let fault = Diagnostic::error(codes::NOT_YET, "workflows can't be run yet", at, tree.key_place(at));
    Some(fault.help("a loop step of it runs here when it stands alone: `{\"type\": \"loop\", \"properties\": {...}}`"))
}

/// The properties that can't be used yet.
pub(super) fn faults(document: &Document, layout: &Layout) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    let mut refuse = |property: &str, what: String, help: &str| {
        let pointer = layout.pointer(property);
        let place = document.tree.place(&pointer);
        faults.push(Diagnostic::error(codes::NOT_YET, what, pointer, place).help(help));
    };
    if layout.get(document, "history/max_messages").is_some() {
        let what = "`max_messages` can't be used yet".to_owned();
        refuse("history/max_messages", what, "take it out: the history is kept whole; `context_tokens` bounds it");
    }
    faults
}
