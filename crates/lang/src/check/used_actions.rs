//! The registered actions that a loop uses, with their places.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::Cursor;
use super::input_schema::sound_part;
use crate::compile::Compiled;
use crate::compile::catalog::{Catalog, Registered};
use crate::language::action::ActionText;
use crate::language::tool::TypedTool;
use crate::language::{Action, ToolDeclaration};
use crate::policy::name_pattern::{is_pattern, matches_pattern};
use crate::program::reference::each_text;
use crate::syntax::document::DocumentKind;
use crate::syntax::shape::Unknown;

/// A registered action that the loop can call.
pub struct Used<'a> {
    /// What it does.
    pub action: Arc<Action>,
    cursor: Cursor<'a>,
    written: &'a Value,
    unknown: Unknown,
    parameters: OnceCell<Option<Cow<'a, Value>>>,
}

impl<'a> Used<'a> {
    fn new(registered: Registered<'a>) -> Option<Self> {
        let action = registered.read()?;
        let written = registered.value;
        let pointer = registered.pointer();
        let unknown = registered.document.unknown.below(&pointer);
        let cursor = Cursor::new(&registered.document.tree, pointer);
        Some(Self { action, written, unknown, cursor, parameters: OnceCell::new() })
    }

    /// Those that tools declare, and those that are steps; in a document of actions all of them. One that can't be read is
    /// left out: the compiler reported why.
    pub(super) fn of<'d>(
        compiled: &'a Compiled,
        catalog: &Catalog<'a>,
        declarations: impl Iterator<Item = &'d ToolDeclaration>,
        steps: &'d [String],
    ) -> Vec<Self> {
        let main = &compiled.document;
        if main.kind == Some(DocumentKind::Actions) {
            return Catalog::of_actions(main).into_iter().filter_map(Self::new).collect();
        }
        let mut seen = HashSet::new();
        let mut used = Vec::new();
        // An action that is declared as a loop is meant, too.
        let declared = declarations.filter_map(|declaration| match declaration {
            ToolDeclaration::Typed(TypedTool::Loop(tool)) => Some(&*tool.name),
            declaration => action_name(declaration),
        });
        for name in declared.chain(steps.iter().map(String::as_str)) {
            if is_pattern(name) {
                let matching = catalog.all.iter().filter(|action| matches_pattern(name, action.name));
                used.extend(matching.filter(|action| seen.insert(action.name)).copied().filter_map(Self::new));
            } else if seen.insert(name) {
                used.extend(catalog.find(name).iter().copied().filter_map(Self::new));
            }
        }
        used
    }

    /// The document's own actions that nothing names: a name may be misspelt where it is used.
    pub(super) fn idle(catalog: &Catalog<'a>, named: &HashSet<&str>) -> impl Iterator<Item = Self> {
        let idle = catalog.all.iter().filter(|action| action.own && !named.contains(action.name));
        idle.copied().filter_map(Self::new)
    }

    pub(super) fn written(&self) -> &'a Value {
        self.written
    }

    /// Its `parameters`, as far as they are sound.
    pub(super) fn parameters(&self, compiled: &Compiled) -> Option<&Value> {
        let sound = || sound_part(compiled, &self.at("/parameters"), self.written.get("parameters")?);
        self.parameters.get_or_init(sound).as_deref()
    }

    /// The parts of it that could not be read.
    pub(super) fn unknown(&self) -> &Unknown {
        &self.unknown
    }

    /// The action's name.
    pub fn name(&self) -> &str {
        self.action.head().action_name
    }

    /// Whether none of its fields has a fault and so a replacement in `action`.
    pub fn knows(&self, fields: &[&str]) -> bool {
        !fields.iter().any(|field| self.unknown.holds(field))
    }

    /// A place in it, at a JSON pointer from the action on.
    pub fn at(&self, pointer: &str) -> Cursor<'a> {
        self.cursor.below(pointer)
    }

    /// The fields of it whose texts take values.
    pub fn texts(&self) -> &'static [ActionText] {
        self.action.kind().texts()
    }

    /// Visits the strings of a field, each with its JSON pointer from the action on.
    pub fn each_text(&self, text: &ActionText, visit: &mut dyn FnMut(&str, &'a str)) {
        if let Some(value) = self.written.get(text.field) {
            each_text(value, &mut format!("/{}", text.field), visit);
        }
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
