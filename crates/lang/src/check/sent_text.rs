//! The texts of a document that are rendered or sent, each with its place and what it becomes. The rules about
//! placeholders and secrets read these and walk through nothing themselves.

use std::cell::OnceCell;

use serde_json::Value;

use super::secret_spelling::{SpelledSecret, spelled};
use super::{Cursor, Subject, Used, shell};
use crate::language::Action;
use crate::language::action::TextKind;
use crate::language::notify::NOTIFY;
use crate::language::wait::WAIT_FOR_EVENT;
use crate::policy::placeholder::{Placeholder, placeholders};
use crate::policy::secret_names::{Secrecy, secrecy};
use crate::program::reference::{Field, as_any_path, each_text};
use crate::syntax::{Node, unescaped};

/// A text that is rendered or sent.
#[derive(Debug)]
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
    /// Whether it may name a secret.
    pub takes_secrets: bool,
    compiled: OnceCell<Option<Field>>,
    placeholders: OnceCell<Vec<Placeholder<'a>>>,
    secrecy: OnceCell<Secrecy>,
    spelled: OnceCell<Vec<SpelledSecret>>,
}

impl<'a> SentText<'a> {
    fn new(cursor: Cursor<'a>, text: &'a str, kind: TextKind, field: String) -> Self {
        Self {
            cursor,
            text,
            kind,
            field,
            action: None,
            takes_secrets: false,
            compiled: OnceCell::new(),
            placeholders: OnceCell::new(),
            secrecy: OnceCell::new(),
            spelled: OnceCell::new(),
        }
    }

    /// Its placeholders in the syntax of other languages.
    pub fn placeholders(&self) -> &[Placeholder<'a>] {
        self.placeholders.get_or_init(|| {
            // A name of a path may hold a hyphen, which ends a name inside a text.
            let is_path = self.text.starts_with('@') && self.kind.takes_path() && as_any_path(self.text).is_some();
            if is_path { Vec::new() } else { placeholders(self.text) }
        })
    }

    /// What the name that it is sent under says about it.
    pub fn secrecy(&self) -> Secrecy {
        *self.secrecy.get_or_init(|| secrecy(&self.field))
    }

    /// The secrets that it names in another syntax. A name that the action lists as a parameter is none.
    pub fn spelled_secrets(&self, subject: &Subject<'_>) -> &[SpelledSecret] {
        self.spelled.get_or_init(|| {
            spelled(self, &|name| subject.is_argument(self, name), &|name| subject.is_given_variable(self, name))
        })
    }

    /// What the text is compiled to; nothing where it can't be read, which the compiler reported.
    pub fn compiled(&self) -> Option<&Field> {
        self.compiled.get_or_init(|| Field::compile(&Value::from(self.text)).ok()).as_ref()
    }

    /// Whether the text has one of these characters.
    pub fn has_any(&self, marks: &[char]) -> bool {
        self.text.contains(marks)
    }
}

/// All texts of a subject: first those that belong to no action, then those of each action.
pub(super) fn all<'a>(subject: &Subject<'a>) -> Vec<SentText<'a>> {
    let mut texts = Vec::new();
    let prompts =
        [("objective", TextKind::Prompt), ("system_prompt", TextKind::Prompt), ("on_stuck/hint", TextKind::Hint)];
    for (name, kind) in prompts {
        let Some(cursor) = subject.property(name) else { continue };
        let Some(text) = cursor.node().and_then(Node::as_str) else { continue };
        texts.push(SentText::new(cursor, text, kind, String::new()));
    }
    if !subject.is_step() {
        let document = subject.document();
        for pointer in &subject.compiled.steps.values {
            if let Some(value) = document.value.pointer(pointer) {
                let sent_texts = |at: &str, text| {
                    if !is_written_out(&document.value, at) {
                        texts.push(sent(subject.at(at), text, TextKind::Step, None));
                    }
                };
                strings(value, pointer, sent_texts);
            }
        }
    }
    for (at, used) in subject.actions().iter().enumerate() {
        of_action(used, at, &mut texts);
    }
    texts
}

/// Whether a text is the name of an event or of a target: it is neither rendered nor a path.
fn is_written_out(document: &Value, at: &str) -> bool {
    [("/properties/event", WAIT_FOR_EVENT), ("/properties/to", NOTIFY)].into_iter().any(|(field, word)| {
        let kind = at.strip_suffix(field).and_then(|step| document.pointer(&format!("{step}/type")));
        kind.is_some_and(|kind| kind == word)
    })
}

fn of_action<'a>(used: &Used<'a>, action: usize, texts: &mut Vec<SentText<'a>>) {
    let first = texts.len();
    for field in used.texts() {
        used.each_text(field, &mut |at, text| {
            let sent = sent(used.at(at), text, field.kind, Some(action));
            texts.push(SentText { takes_secrets: field.takes_secrets, ..sent });
        });
    }
    if let Action::Command(command) = &*used.action
        && let Some(shell) = shell::of(command)
    {
        let own = texts.iter_mut().skip(first).filter(|sent| sent.kind == TextKind::Argument);
        let scripts = own.skip(shell.script).take(if shell.all { usize::MAX } else { 1 });
        scripts.for_each(|sent| sent.kind = TextKind::Script);
    }
}

fn strings<'a>(value: &'a Value, pointer: &str, mut add: impl FnMut(&str, &'a str)) {
    each_text(value, &mut pointer.to_owned(), &mut |at, text| add(at, text));
}

fn sent<'a>(cursor: Cursor<'a>, text: &'a str, kind: TextKind, action: Option<usize>) -> SentText<'a> {
    let last = cursor.path().rsplit('/').find(|token| token.parse::<usize>().is_err()).unwrap_or_default();
    let field = unescaped(last).into_owned();
    SentText { action, ..SentText::new(cursor, text, kind, field) }
}
