//! Parts of the language that this version can't run yet: they are recognised and refused, not ignored.

use super::steps::is_foreach;
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::document::{Document, DocumentKind};

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
    Some(
        fault.help(
            "a loop step of it runs here as a document of its own: `{\"type\": \"loop\", \"properties\": {...}}`",
        ),
    )
}
