//! The templates of calls: those of an action whose compiled form they are, and those of any tool.

use super::answer_form::AnswerForm;
use super::reference::Field;
use super::{Body, Tool, ToolKind};
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
    /// What the answer of a model must be; none for a text as it is.
    pub answer: Option<AnswerForm>,
}

impl TemplatedAction {
    /// An action with its compiled templates, each with its pointer.
    pub fn new(action: Action, texts: Vec<(String, Template)>, answer: Option<AnswerForm>) -> Self {
        Self { action, texts, answer }
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

impl Tool {
    /// The templates that a call is made of, in a fixed order.
    pub fn templates(&self) -> Vec<&Template> {
        match &self.kind {
            ToolKind::Builtin(_)
            | ToolKind::Embedded(_)
            | ToolKind::Matcher(_)
            | ToolKind::Launch(_)
            | ToolKind::Loop(_) => Vec::new(),
            ToolKind::Mail(mail) => mail.templates().collect(),
            ToolKind::Http(http) => {
                let fields = http.headers.iter().chain(&http.query).flat_map(|(_, field)| field.templates());
                let mut all: Vec<&Template> = std::iter::once(&http.url).chain(fields).collect();
                match &http.body {
                    Some(Body::Json(field)) => all.extend(field.templates()),
                    Some(Body::Text(template)) => all.push(template),
                    Some(Body::Notice(_)) | None => {}
                }
                all
            }
            ToolKind::Action(tool) => tool.templates().collect(),
            ToolKind::Db(db) => db.params.iter().flat_map(Field::templates).collect(),
            ToolKind::Command(command) => {
                command.args.iter().chain(&command.stdin).chain(command.env.values()).collect()
            }
        }
    }
}
