//! The registered actions that a loop uses, with their places.

use serde_json::Value;

use super::Spot;
use crate::compile::catalog::{Catalog, Registered};
use crate::compile::parse::token;
use crate::compile::{Compiled, DocumentKind, layout};
use crate::language::tool::TypedTool;
use crate::language::{Action, ToolDeclaration};

/// A registered action that the loop can call.
pub struct Used<'a> {
    /// What it does.
    pub action: Action,
    spot: Spot<'a>,
}

impl<'a> Used<'a> {
    fn new(registered: Registered<'a>) -> Option<Self> {
        let action = layout::action(registered.value).ok()?;
        // One of a kind that is recognised only is refused as a whole.
        action.head()?;
        Some(Self { action, spot: Spot::new(&registered.document.tree, registered.pointer()) })
    }

    /// Those that tools declare, and those that are steps; in a document of actions all of them. One that can't be read is
    /// left out: the compiler told why.
    pub(super) fn of(
        compiled: &'a Compiled,
        declarations: &[(String, ToolDeclaration)],
        steps: &[String],
    ) -> Vec<Self> {
        let main = &compiled.document;
        if main.kind == Some(DocumentKind::Actions) {
            return Catalog::of_actions(main).into_iter().filter_map(Self::new).collect();
        }
        let catalog = Catalog::new(main, &compiled.shelf);
        let mut seen: Vec<&str> = Vec::new();
        let mut used = Vec::new();
        let declared = declarations.iter().filter_map(|(_, declaration)| action_name(declaration));
        for name in declared.chain(steps.iter().map(String::as_str)) {
            if let [registered] = catalog.find(name)
                && !seen.contains(&name)
            {
                seen.push(name);
                used.extend(Self::new(*registered));
            }
        }
        used
    }

    /// The action's name.
    pub fn name(&self) -> &str {
        self.action.head().map_or("", |head| head.action_name)
    }

    /// A place in it, at a JSON pointer from the action on.
    pub fn at(&self, pointer: &str) -> Spot<'a> {
        self.spot.below(pointer)
    }

    /// The strings in which secrets are resolved, each with its JSON pointer from the action on. An
    /// `llm` action has none, and a program's arguments are none: a secret there is a fault by itself.
    pub fn secret_strings(&self) -> Vec<(String, &str)> {
        let mut found = Vec::new();
        match &self.action {
            Action::Http(http) => {
                found.push(("/url".to_owned(), http.url.as_str()));
                found.extend(http.headers.iter().map(|(name, text)| (format!("/headers/{}", token(name)), &**text)));
                for (name, value) in &http.query {
                    strings(value, &format!("/query/{}", token(name)), &mut found);
                }
                if let Some(body) = &http.body {
                    strings(body, "/body", &mut found);
                }
            }
            Action::Db(db) => {
                found.push(("/datasource".to_owned(), db.datasource.as_str()));
                for (at, value) in db.params.iter().enumerate() {
                    strings(value, &format!("/params/{at}"), &mut found);
                }
            }
            Action::Command(command) => {
                found.extend(command.stdin.iter().map(|text| ("/stdin".to_owned(), text.as_str())));
                found.extend(command.env.iter().map(|(name, text)| (format!("/env/{}", token(name)), &**text)));
            }
            Action::Llm(_) | Action::Matcher(_) | Action::CustomTable(_) => {}
        }
        found
    }
}

/// The name of the action that a declaration means.
pub fn action_name(declaration: &ToolDeclaration) -> Option<&str> {
    match declaration {
        ToolDeclaration::Legacy(name) => Some(name),
        ToolDeclaration::Typed(TypedTool::Action(tool)) => Some(&tool.name),
        ToolDeclaration::Typed(_) => None,
    }
}

fn strings<'v>(value: &'v Value, pointer: &str, found: &mut Vec<(String, &'v str)>) {
    match value {
        Value::String(text) => found.push((pointer.to_owned(), text)),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                strings(item, &format!("{pointer}/{at}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                strings(member, &format!("{pointer}/{}", token(name)), found);
            }
        }
        _ => {}
    }
}
