//! Documents that are no loops, checked on their own: actions that no loop may use yet, project files, scripts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::catalog::{Registered, registered};
use super::layout::unreadable;
use super::{declare, layout, names, scripted, steps, tool};
use crate::diagnostic::{Diagnostic, codes, few, few_of_many};
use crate::language::approval::RequiresApproval;
use crate::language::tool::ActionTool;
use crate::language::{Project, ReactProperties, Script};
use crate::syntax::document::{Document, DocumentKind};

#[cfg(test)]
mod tests;

/// The declarations of the loops around a document: their faults are not reported a second time.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// The names of their tools.
    pub names: BTreeSet<String>,
    /// The names that have a description in their declaration.
    pub described: BTreeSet<String>,
    /// Whether they may have others, whose names are not known: those of MCP servers.
    pub is_open: bool,
    /// The workflows that are declared by their `id`.
    by_id: BTreeSet<String>,
    /// The names of the workflows around the document, by `id`.
    workflows: BTreeMap<String, String>,
}

impl Declared {
    /// Adds what a loop declares.
    pub fn add(&mut self, document: &Document) {
        let (names, mut tools) = steps::named(document);
        self.names.extend(names.into_iter().map(str::to_owned));
        self.names.extend(steps::names_of_loops(document));
        let layout = layout::LoopLayout::of(document);
        let own = layout.iter().filter_map(|layout| layout.get(document, "tools")?.as_array());
        tools.extend(own.flatten());
        for tool in tools {
            self.is_open |= tool.get("type").and_then(Value::as_str) == Some("mcp");
            self.by_id.extend(text_of(tool, "id"));
            let Some(name) = tool.as_str().or_else(|| tool.get("name").and_then(Value::as_str)) else { continue };
            self.names.insert(name.to_owned());
            let described = tool.get("description").and_then(Value::as_str);
            if described.is_some_and(|text| !text.trim().is_empty()) {
                self.described.insert(name.to_owned());
            }
        }
        if document.kind == Some(DocumentKind::Workflow) {
            self.workflows.extend(text_of(&document.value, "id").zip(text_of(&document.value, "name")));
        }
        // Models are offered a workflow under its name.
        let offered = self.by_id.iter().filter_map(|id| self.workflows.get(id));
        self.names.extend(offered.cloned());
    }
}

fn text_of(object: &Value, field: &str) -> Option<String> {
    object.get(field).and_then(Value::as_str).map(str::to_owned)
}

/// The faults of a document of actions, a project file or a script, besides those of its text and its shape.
/// Empty for other kinds of documents: the compiler checks those.
pub fn alone(document: &Document, declared: &Declared) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    match document.kind {
        Some(DocumentKind::Actions) => actions(document, declared, &mut faults),
        Some(DocumentKind::Project) if !document.is_broken() => {
            faults.extend(Project::deserialize(&document.value).err().map(|error| unreadable(document, &error)));
        }
        Some(DocumentKind::Script) if !document.is_broken() => {
            faults.extend(Script::deserialize(&document.value).err().map(|error| unreadable(document, &error)));
            scripted::names(document, declared, &mut faults);
        }
        _ => {}
    }
    faults.retain(|fault| !document.is_guessed(fault));
    few(&mut faults);
    faults
}

fn actions(document: &Document, declared: &Declared, faults: &mut Vec<Diagnostic>) {
    let all: Vec<Registered<'_>> = match &document.value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.filter_map(|(index, value)| registered(document, Some(index), false, value)).collect()
        }
        value => registered(document, None, false, value).into_iter().collect(),
    };
    let defaults = layout::defaults();
    let mut first: BTreeMap<&str, Registered<'_>> = BTreeMap::new();
    for action in all {
        named(action, &mut first, declared, faults);
        if let Some(defaults) = &defaults {
            compiled(action, defaults, declared, faults);
        }
        few_of_many(faults);
    }
}

/// Names that no loop could declare, and duplicate names of actions.
fn named<'a>(
    action: Registered<'a>,
    first: &mut BTreeMap<&'a str, Registered<'a>>,
    declared: &Declared,
    faults: &mut Vec<Diagnostic>,
) {
    let at = format!("{}/action_name", action.pointer());
    if let Some(other) = first.get(action.name) {
        // If a loop declares the name, this is reported at its declaration.
        if !declared.names.contains(action.name) {
            let message = format!("there are two actions of the name `{}`", action.name);
            let fault = Diagnostic::error(codes::TWO_OF_A_NAME, message, at, action.place());
            let fault = fault.help("give one of the two another name");
            faults.push(fault.related(&other.place(), "the other is here"));
        }
        return;
    }
    first.insert(action.name, action);
    // The shape reports an empty name, and one that is too long.
    let reported = !(1..=64).contains(&action.name.chars().count());
    if reported || declared.names.contains(action.name) {
        return;
    }
    if action.name.starts_with("__") {
        let message =
            format!("names that begin with `__` are those of built-in tools: no loop can use `{}`", action.name);
        let fault = Diagnostic::error(codes::SHADOWED_BUILTIN, message, at, action.place());
        faults.push(fault.help("give the action another name"));
    } else if let Some(fault) = names::fault_of(action.name) {
        faults.push(Diagnostic::error(codes::BAD_NAME, fault, at, action.place()));
    }
}

/// The faults that a loop which declares the action would have.
fn compiled(action: Registered<'_>, defaults: &ReactProperties, declared: &Declared, faults: &mut Vec<Diagnostic>) {
    // The shape reports an action that can't be read.
    let Some(meaning) = action.read() else { return };
    let described = declared.described.contains(action.name);
    let declaration = ActionTool {
        name: action.name.to_owned(),
        description: described.then(|| "described where it is declared".to_owned()),
        requires_approval: RequiresApproval::default(),
        approval: None,
        max_calls: None,
        timeout_ms: None,
        polling: false,
        remember: BTreeMap::new(),
    };
    let pointer = action.pointer();
    let unknown = action.document.unknown.below(&pointer);
    let found = match tool::declared(&declaration, &meaning, defaults, &unknown) {
        Ok((_, warnings)) => warnings,
        Err(found) => found,
    };
    faults.extend(found.into_iter().map(|fault| declare::place(action, &pointer, fault)));
}
