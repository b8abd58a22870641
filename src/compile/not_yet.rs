//! What the language has and this version can't run yet: recognised, and refused plainly rather than
//! ignored.

use super::document::Document;
use super::layout::Layout;
use crate::diagnostic::{Diagnostic, codes};

/// The properties that can't be used yet.
pub(super) fn faults(document: &Document, layout: Layout) -> Vec<Diagnostic> {
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
