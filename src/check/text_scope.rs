//! The names that a text can take values from: what a placeholder in another syntax was meant to take.

use serde_json::Value;

use super::{SentText, Subject};
use crate::policy::secret_names::fold;
use crate::program::reference::{Field, RESERVED};
use crate::syntax::document::DocumentKind;

/// What other products call the object that has the values: `$json.id`, `${inputs.id}`.
const AROUND: [&str; 9] = ["json", "inputs", "body", "params", "args", "vars", "context", "event", "state"];
/// The most names that are looked through.
const MAX_NAMES: usize = 1_000;

/// The names that a text can take values from.
pub struct TextScope<'s, 'a> {
    subject: &'s Subject<'a>,
    sent: &'s SentText<'a>,
    /// What the model writes for the action that the text belongs to.
    arguments: Vec<String>,
    /// Whether the action lists them, and has no others.
    is_closed: bool,
    /// The names of the run's input.
    inputs: Vec<&'a str>,
}

impl<'s, 'a> TextScope<'s, 'a> {
    /// The scope of a text.
    pub fn of(subject: &'s Subject<'a>, sent: &'s SentText<'a>) -> Self {
        let written = sent.action.and_then(|at| subject.actions().get(at)).map(|used| used.written());
        let parameters = written.and_then(|written| written.get("parameters"));
        let listed = parameters.and_then(|parameters| parameters.get("properties")?.as_object());
        let mut scope =
            Self { subject, sent, arguments: Vec::new(), is_closed: listed.is_some(), inputs: inputs(subject) };
        match listed {
            Some(listed) => scope.arguments = listed.keys().take(MAX_NAMES).cloned().collect(),
            None => {
                let mut taken = scope.taken(|other| other.action.is_some() && other.action == sent.action);
                taken.retain(|path| path.first().is_some_and(|name| !RESERVED.contains(&name.as_str())));
                scope.arguments = taken.into_iter().filter_map(|path| path.into_iter().next()).collect();
            }
        }
        scope
    }

    /// How a name is written here that a text spells in another syntax: `order_id`, `input.order_id`; nothing when
    /// nobody has such a name.
    pub fn meant(&self, name: &str) -> Option<String> {
        // `input['x']` is `input.x`.
        let name = name.replace(['"', '\'', ']'], "").replace('[', ".").replace([' ', '-'], "_");
        let inner = name.split_once('.').filter(|(first, _)| AROUND.contains(first));
        self.known(&name).or_else(|| self.known(inner?.1))
    }

    /// How a name is written here that somebody has.
    fn known(&self, name: &str) -> Option<String> {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        if first == "input" && !rest.is_empty() {
            return Some(name.to_owned());
        }
        let with = |known: &str| if rest.is_empty() { known.to_owned() } else { format!("{known}.{rest}") };
        let same = |known: &str| known == first || fold(known) == fold(first);
        if let Some(known) = self.arguments.iter().find(|known| same(known)) {
            return Some(with(known));
        }
        if let Some(known) = self.inputs.iter().find(|known| same(known)) {
            return Some(format!("input.{}", with(known)));
        }
        let names = &self.subject.compiled.steps.names;
        let of_steps = self.subject.is_step() || self.sent.action.is_none();
        names.iter().take(MAX_NAMES).find(|known| of_steps && same(known)).map(|known| with(known))
    }

    /// Whether a new name may be used in the text.
    pub fn takes_any(&self) -> bool {
        self.sent.action.is_some() && !self.is_closed
    }

    /// Whether the action of the text lists a parameter that none of its texts takes.
    pub fn has_idle_argument(&self) -> bool {
        self.is_closed && self.arguments.iter().any(|name| !self.takes_elsewhere(name))
    }

    /// Whether the text takes a value, which is written as it is here: then its author knows how.
    pub fn takes(&self, path: &str) -> bool {
        self.is_taken(path, |other| self.is_itself(other))
    }

    /// Whether another text of the same action takes the value; of a prompt, any text of the loop.
    pub fn takes_elsewhere(&self, path: &str) -> bool {
        self.is_taken(path, |other| self.sent.action.is_none() || other.action == self.sent.action)
    }

    /// Whether the text takes any value at all.
    pub fn takes_something(&self) -> bool {
        !self.taken(|other| self.is_itself(other)).is_empty()
    }

    fn is_itself(&self, other: &SentText<'_>) -> bool {
        other.action == self.sent.action && other.cursor.path() == self.sent.cursor.path()
    }

    fn is_taken(&self, path: &str, of: impl Fn(&SentText<'_>) -> bool) -> bool {
        let wanted: Vec<&str> = path.split('.').collect();
        let begins = |taken: &Vec<String>| {
            let length = taken.len().min(wanted.len());
            length > usize::from(wanted.first() == Some(&"input"))
                && taken.iter().zip(&wanted).all(|(one, other)| one == other)
        };
        self.taken(of).iter().any(begins)
    }

    /// The paths that some of the texts take.
    fn taken(&self, of: impl Fn(&SentText<'_>) -> bool) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        for other in self.subject.sent_texts().iter().filter(|other| of(other)) {
            match other.compiled() {
                Some(Field::Path(path)) if other.kind.takes_path() => paths.push(path.clone()),
                Some(Field::Template(template)) => {
                    paths.extend(template.variables().iter().map(|variable| variable.path.clone()));
                }
                _ => {}
            }
            if paths.len() > MAX_NAMES {
                break;
            }
        }
        paths
    }
}

/// The names of the run's input that the document knows.
fn inputs<'a>(subject: &Subject<'a>) -> Vec<&'a str> {
    let document = subject.document();
    let pointer = if document.kind == Some(DocumentKind::Loop) { "/input/properties" } else { "/input" };
    let known = document.value.pointer(pointer).and_then(Value::as_object);
    known.into_iter().flatten().map(|(name, _)| name.as_str()).take(MAX_NAMES).collect()
}
