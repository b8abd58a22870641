//! The one judgement of a document: what the compiler reports, what the rules report, and suggestions that were tried.

use super::{judge, suggestions, without_consequences};
use crate::compile::{Compiled, Texts, compile_read};
use crate::diagnostic::few;
use crate::syntax::document::{Document, DocumentKind};

/// Compiles and checks a document: `run` and `check` both use only this. `document` is what was read from the
/// main text.
pub fn examine(texts: &Texts, document: Document) -> Compiled {
    let kind = document.kind;
    let mut compiled = examined(texts, document);
    suggestions::judge(texts, kind, &mut compiled.diagnostics, examined);
    compiled
}

fn examined(texts: &Texts, document: Document) -> Compiled {
    let mut compiled = compile_read(texts, document);
    if compiled.document.kind == Some(DocumentKind::Actions) && texts.project.is_none() {
        // The project that will use them is not known.
        compiled.settings = None;
    }
    // The rules also check each called loop: no loop is sound without the loops that it calls.
    let judged = judge(texts, &compiled);
    compiled.diagnostics.extend(judged);
    without_consequences(&mut compiled.diagnostics);
    few(&mut compiled.diagnostics);
    compiled
}
