//! The schemas that texts are judged by, as far as they are sound: that of the run's input, and that of a call's
//! arguments.

use std::borrow::Cow;

use serde_json::Value;

use super::Cursor;
use super::cursor::has_fault;
use crate::compile::{Compiled, known_part};
use crate::syntax::document::DocumentKind;

/// The schema of the input of a loop or workflow.
pub(super) fn input_schema(compiled: &Compiled) -> Option<Cow<'_, Value>> {
    let document = &compiled.document;
    let declares = matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::Workflow));
    let written = document.value.get("input").filter(|_| declares)?;
    sound_part(compiled, &Cursor::new(&document.tree, "/input"), written)
}

/// What is known of a schema at a place, without the parts in which an error was reported: they hide nothing of what
/// the others say.
pub(super) fn sound_part<'s>(compiled: &Compiled, at: &Cursor<'_>, written: &'s Value) -> Option<Cow<'s, Value>> {
    if at.node().is_none_or(has_fault) {
        return None;
    }
    let file = at.place().file;
    let errors = compiled.diagnostics.iter().filter(|fault| fault.is_error() && fault.place.file == file);
    let below = errors.filter_map(|fault| fault.path.strip_prefix(at.path()));
    let below: Vec<&str> = below.filter(|below| below.is_empty() || below.starts_with('/')).collect();
    known_part(written, &below)
}
