//! The texts of a document that are rendered or sent, each with its place and what it becomes. The rules about
//! placeholders and secrets read these and walk through nothing themselves.

use serde_json::Value;

use super::{Cursor, Subject, Used, shell};
use crate::language::Action;
use crate::program::reference::each_text;
use crate::syntax::Node;

/// What a text becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// The objective or the system prompt of a loop.
    Prompt,
    /// The hint for an agent that is stuck. It is no template.
    Hint,
    /// The question of an `llm` action.
    Question,
    /// An address.
    Url,
    /// The value of a header.
    Header,
    /// A value of the query.
    Query,
    /// A body, or a text in it.
    Body,
    /// The value of a placeholder in SQL.
    SqlValue,
    /// An argument of a program.
    Argument,
    /// An argument that a shell runs.
    Script,
    /// What a program reads.
    Stdin,
    /// A variable of a program's environment.
    Variable,
    /// A value that a step is given, or an operand of its condition.
    Step,
}

impl TextKind {
    /// Whether people and models read it: a text about placeholders is sound there.
    pub fn is_prose(self) -> bool {
        matches!(self, Self::Prompt | Self::Hint | Self::Question)
    }

    /// Whether a whole text may be an `@path`.
    pub fn takes_path(self) -> bool {
        matches!(self, Self::Header | Self::Query | Self::Body | Self::SqlValue | Self::Step)
    }
}

/// A text that is rendered or sent.
#[derive(Debug, Clone)]
pub struct SentText<'a> {
    /// Its place.
    pub cursor: Cursor<'a>,
    /// The text.
    pub text: &'a str,
    /// What it becomes.
    pub kind: TextKind,
    /// The name that it is sent under, as that of a header; empty without one.
    pub field: String,
    /// The action that it belongs to, as an index of [`Subject::actions`].
    pub action: Option<usize>,
}

impl SentText<'_> {
    /// Whether the text has one of these characters.
    pub fn has_any(&self, marks: &[char]) -> bool {
        self.text.contains(marks)
    }
}

/// All texts of a subject.
pub(super) fn all<'a>(subject: &Subject<'a>) -> Vec<SentText<'a>> {
    let mut texts = Vec::new();
    let prompts =
        [("objective", TextKind::Prompt), ("system_prompt", TextKind::Prompt), ("on_stuck/hint", TextKind::Hint)];
    for (name, kind) in prompts {
        let Some(cursor) = subject.property(name) else { continue };
        let Some(text) = cursor.node().and_then(Node::as_str) else { continue };
        texts.push(SentText { cursor, text, kind, field: String::new(), action: None });
    }
    for (at, used) in subject.actions().iter().enumerate() {
        of_action(used, at, &mut texts);
    }
    if !subject.is_step() {
        let document = subject.document();
        for pointer in &subject.compiled.steps.values {
            if let Some(value) = document.value.pointer(pointer) {
                let add = |at: &str, text| texts.push(sent(subject.at(at), text, TextKind::Step, None));
                strings(value, pointer, add);
            }
        }
    }
    texts
}

fn of_action<'a>(used: &Used<'a>, action: usize, texts: &mut Vec<SentText<'a>>) {
    let fields: &[(&str, TextKind)] = match &used.action {
        Action::Http(_) => &[
            ("url", TextKind::Url),
            ("headers", TextKind::Header),
            ("query", TextKind::Query),
            ("body", TextKind::Body),
        ],
        Action::Db(_) => &[("params", TextKind::SqlValue)],
        Action::Command(_) => &[("args", TextKind::Argument), ("stdin", TextKind::Stdin), ("env", TextKind::Variable)],
        Action::Llm(_) => &[("template", TextKind::Question)],
        Action::Matcher(_) | Action::CustomTable(_) => &[],
    };
    for (field, kind) in fields {
        if let Some(value) = used.written().get(field) {
            strings(value, &format!("/{field}"), |at, text| texts.push(sent(used.at(at), text, *kind, Some(action))));
        }
    }
    if let Action::Command(command) = &used.action
        && let Some(shell) = shell::of(command)
    {
        let own = texts.iter_mut().filter(|sent| sent.action == Some(action) && sent.kind == TextKind::Argument);
        let scripts = own.skip(shell.script).take(if shell.all { usize::MAX } else { 1 });
        scripts.for_each(|sent| sent.kind = TextKind::Script);
    }
}

fn strings<'a>(value: &'a Value, pointer: &str, mut add: impl FnMut(&str, &'a str)) {
    each_text(value, &mut pointer.to_owned(), &mut |at, text| add(at, text));
}

fn sent<'a>(cursor: Cursor<'a>, text: &'a str, kind: TextKind, action: Option<usize>) -> SentText<'a> {
    let last = cursor.path().rsplit('/').find(|token| token.parse::<usize>().is_err()).unwrap_or_default();
    let field = last.replace("~1", "/").replace("~0", "~");
    SentText { cursor, text, kind, field, action }
}
