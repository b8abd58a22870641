//! An action whose compiled form is its templates.

use crate::language::Action;
use crate::program::template::Template;

/// An action whose compiled form is its templates: those that [`templates`](crate::language::action::ActionKind::templates)
/// names. What a call does with them, its runner knows.
#[derive(Debug)]
pub struct TemplatedAction {
    /// As written.
    pub action: Action,
    /// By their pointers in the action.
    texts: Vec<(String, Template)>,
}

impl TemplatedAction {
    /// An action with its compiled templates, each with its pointer.
    pub fn new(action: Action, texts: Vec<(String, Template)>) -> Self {
        Self { action, texts }
    }

    /// The template at a pointer of the action.
    pub fn template(&self, pointer: &str) -> Option<&Template> {
        self.texts.iter().find(|(at, _)| at == pointer).map(|(_, template)| template)
    }

    /// All templates, in their order.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.texts.iter().map(|(_, template)| template)
    }
}
