//! What the actions and workflows of a document take, as far as that is written and has no error: a script may call one
//! that has an error elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::compile::Compiled;
use crate::program::schema::Schema;
use crate::syntax::document::DocumentKind;

/// The most actions of a document that are looked at.
const MAX_ACTIONS: usize = 1_000;

/// The schemas by the names that calls use.
pub(super) fn of_document(compiled: &Compiled) -> BTreeMap<String, Vec<Arc<Schema>>> {
    let document = &compiled.document;
    let mut known: BTreeMap<String, Vec<Arc<Schema>>> = BTreeMap::new();
    let mut add = |name: Option<&Value>, schema: Option<&Value>, at: &str| {
        let (Some(name), Some(schema)) = (name.and_then(Value::as_str), schema.filter(|schema| schema.is_object()))
        else {
            return;
        };
        if !has_error_in(compiled, at)
            && let Ok(schema) = Schema::compile(schema.clone())
        {
            known.entry(name.to_owned()).or_default().push(Arc::new(schema));
        }
    };
    let value = &document.value;
    if matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::Workflow)) {
        add(value.get("name"), value.get("input"), "/input");
    }
    let (at, actions) = match document.kind {
        Some(DocumentKind::Actions) => ("", Some(value)),
        _ => ("/actions", value.get("actions")),
    };
    for (index, action) in actions.and_then(Value::as_array).into_iter().flatten().take(MAX_ACTIONS).enumerate() {
        add(action.get("action_name"), action.get("parameters"), &format!("{at}/{index}/parameters"));
    }
    known
}

fn has_error_in(compiled: &Compiled, at: &str) -> bool {
    let file = &compiled.document.tree.source.name;
    let is_in = |path: &str| path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    compiled.diagnostics.iter().any(|fault| fault.is_error() && fault.place.file == *file && is_in(&fault.path))
}
