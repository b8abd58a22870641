//! The schema of the run's input, as far as it is sound.

use std::borrow::Cow;

use serde_json::Value;

use super::cursor::has_fault;
use crate::compile::Compiled;
use crate::diagnostic::Diagnostic;
use crate::syntax::document::DocumentKind;

const INPUT: &str = "/input";

/// The schema of the input of a loop or workflow. Its properties in which an error was reported allow everything: they
/// hide nothing of what the others say. Nothing where the error is of the whole.
pub(super) fn input_schema(compiled: &Compiled) -> Option<Cow<'_, Value>> {
    let document = &compiled.document;
    let declares = matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::Workflow));
    let written = document.value.get("input").filter(|input| declares && input.is_object())?;
    if document.tree.at(INPUT).is_none_or(has_fault) {
        return None;
    }
    let main = &document.tree.source.name;
    let is_here = |fault: &&Diagnostic| fault.is_error() && fault.place.file == *main;
    let mut schema = Cow::Borrowed(written);
    for fault in compiled.diagnostics.iter().filter(is_here) {
        let Some(below) = fault.path.strip_prefix(INPUT).filter(|below| below.is_empty() || below.starts_with('/'))
        else {
            continue;
        };
        // One fault may have opened the property around that of the next one.
        if let Some(part) = schema.to_mut().pointer_mut(innermost_property(below)?) {
            *part = Value::Bool(true);
        }
    }
    Some(schema)
}

/// The beginning of a JSON pointer into a schema that leads to the innermost property.
fn innermost_property(pointer: &str) -> Option<&str> {
    const PROPERTIES: &str = "/properties/";
    let mut end = 0;
    while let Some(name) = pointer.get(end..).and_then(|rest| rest.strip_prefix(PROPERTIES)) {
        end += PROPERTIES.len() + name.find('/').unwrap_or(name.len());
    }
    pointer.get(..end).filter(|property| !property.is_empty())
}
