//! Targets of `notify` that no document of the folder names: a text that was meant for them is sent elsewhere, or by nobody.

use std::collections::BTreeSet;

use serde_json::Value;

use super::token_loops::covers_folder_of;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::notify::NOTIFY;
use crate::project::Targets;
use crate::syntax::document::{Document, DocumentKind};
use crate::syntax::token;

/// The targets that a document names. A document is never deeper than its reader allows: the recursion ends.
pub fn named(document: &Document) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if document.kind != Some(DocumentKind::Project) {
        collect(&document.value, &mut names);
    }
    names
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if members.get("type").is_some_and(|kind| kind == NOTIFY) {
                let to = members.get("properties").and_then(|properties| properties.get("to"));
                names.extend(to.and_then(Value::as_str).map(str::to_owned));
            }
            let asked = members.get("ask").and_then(Value::as_array).into_iter().flatten();
            names.extend(asked.filter_map(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| collect(member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

/// The targets of a project file that none of these names is. Nothing where documents of its folder are not checked: they may
/// name them.
pub fn unused(document: &Document, named: &BTreeSet<String>, checked: &Targets) -> Vec<Diagnostic> {
    let targets = document.value.get("notify").and_then(Value::as_object).into_iter().flatten();
    let mut faults = Vec::new();
    for (name, _) in targets.filter(|(name, _)| !named.contains(*name)) {
        let pointer = format!("/notify/{}", token(name));
        let message = format!("no document names the `notify` target `{name}`");
        let place = document.tree.key_place(&pointer);
        let fault = Diagnostic::warning(codes::NOTIFY_TARGET, message, pointer.as_str(), place);
        faults.push(fault.help(
            "take it out, or send it something: {\"type\": \"notify\", \"properties\": {\"to\": ..., \"text\": ...}}",
        ));
    }
    if faults.is_empty() || !covers_folder_of(checked, document) { Vec::new() } else { faults }
}
