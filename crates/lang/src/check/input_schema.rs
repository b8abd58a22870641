//! The schemas that texts are judged by, as far as they are sound: that of the run's input, and that of a call's
//! arguments.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::Cursor;
use super::cursor::has_fault;
use crate::compile::{Compiled, known_part};
use crate::syntax::document::DocumentKind;

/// The schema of the input of a loop or workflow. That of an agent request is what its `input` shows: a value.
pub(super) fn input_schema(compiled: &Compiled) -> Option<Cow<'_, Value>> {
    let document = &compiled.document;
    let written = document.value.get("input")?;
    let cursor = Cursor::new(&document.tree, "/input");
    match document.kind? {
        DocumentKind::Loop | DocumentKind::Workflow => sound_part(compiled, &cursor, written),
        DocumentKind::AgentRequest if written.is_object() => {
            cursor.node().is_some_and(|node| !has_fault(node)).then(|| Cow::Owned(shown(written)))
        }
        _ => None,
    }
}

/// What a value shows of the ones in its place. The entries of a list may differ.
fn shown(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let properties: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), shown(value))).collect();
            let required: Vec<&String> = members.keys().collect();
            json!({"type": "object", "required": required, "properties": properties})
        }
        Value::Array(_) => json!({"type": "array"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Null => json!({}),
    }
}

/// What is known of a schema at a place, without the parts in which an error was reported: they hide nothing of what
/// the others say.
pub(super) fn sound_part<'s>(compiled: &Compiled, at: &Cursor<'_>, written: &'s Value) -> Option<Cow<'s, Value>> {
    if at.node().is_none_or(has_fault) {
        return None;
    }
    let errors = compiled.diagnostics.iter().filter(|fault| fault.is_error() && fault.place.file == *at.file());
    let below = errors.filter_map(|fault| fault.path.strip_prefix(at.path()));
    let below: Vec<&str> = below.filter(|below| below.is_empty() || below.starts_with('/')).collect();
    known_part(written, &below)
}
