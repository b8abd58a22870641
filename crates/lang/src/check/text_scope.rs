//! The names that a text can take values from: what a placeholder in another syntax was meant to take.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use serde_json::Value;

use super::steps::steps;
use super::taken_paths::TakenPaths;
use super::{SentText, Subject};
use crate::policy::secret_names::fold;
use crate::program::reference::RESERVED;
use crate::syntax::document::DocumentKind;

/// What other products call the object that has the values: `$json.id`, `${inputs.id}`.
pub const AROUND: [&str; 15] = [
    "json",
    "inputs",
    "parameters",
    "body",
    "params",
    "args",
    "vars",
    "context",
    "event",
    "state",
    "states",
    "workflow",
    "trigger",
    "payload",
    "arguments",
];
/// The most of them that are one in another: `workflow.parameters.id`.
const MAX_AROUND: usize = 3;
/// The most names that are looked through.
const MAX_NAMES: usize = 1_000;

/// What the scopes of the texts of a subject have in common: it is read once, and not for each text.
#[derive(Default)]
pub struct ScopeNames {
    /// The names of the run's input.
    inputs: OnceCell<FoldedNames>,
    /// The keys that steps write.
    keys: OnceCell<FoldedNames>,
    /// What steps give their actions, by the names of these.
    given: OnceCell<HashMap<String, BTreeSet<String>>>,
    /// By the action that texts belong to; those of the loop belong to none.
    of_texts: RefCell<HashMap<Option<usize>, Rc<TextNames>>>,
}

/// Names by their spelling without case and word marks.
#[derive(Default)]
struct FoldedNames(HashMap<String, String>);

impl FoldedNames {
    fn find(&self, name: &str) -> Option<&str> {
        self.0.get(&fold(name)).map(String::as_str)
    }
}

impl<'n> FromIterator<&'n str> for FoldedNames {
    fn from_iter<I: IntoIterator<Item = &'n str>>(names: I) -> Self {
        let mut folded = HashMap::new();
        for name in names.into_iter().take(MAX_NAMES) {
            folded.entry(fold(name)).or_insert_with(|| name.to_owned());
        }
        Self(folded)
    }
}

/// The names of the texts of an action.
#[derive(Default)]
struct TextNames {
    /// What the model writes for the action.
    arguments: FoldedNames,
    /// Whether the action lists them, and has no others.
    is_closed: bool,
    /// Whether it lists one that none of its texts takes.
    has_idle_argument: bool,
    /// What its texts take; where they belong to no action, what all texts of the loop take.
    taken: TakenPaths,
}

impl TextNames {
    fn of(subject: &Subject<'_>, action: Option<usize>, common: &ScopeNames) -> Self {
        let Some(at) = action else {
            let taken = TakenPaths::of(subject.sent_texts());
            return Self { taken, ..Self::default() };
        };
        let taken = TakenPaths::of(subject.texts_of_action(at));
        let parameters = subject.actions().get(at).and_then(|used| used.written().get("parameters"));
        match parameters.and_then(|parameters| parameters.get("properties")?.as_object()) {
            Some(listed) => Self {
                arguments: listed.keys().map(String::as_str).collect(),
                is_closed: true,
                has_idle_argument: listed.keys().take(MAX_NAMES).any(|name| !taken.has(name)),
                taken,
            },
            None => {
                let of_steps = common.given.get_or_init(|| given(subject));
                let given = subject.actions().get(at).and_then(|used| of_steps.get(used.name()));
                let named = taken.first_names().chain(given.into_iter().flatten().map(String::as_str));
                let arguments = named.filter(|name| !RESERVED.contains(name)).collect();
                Self { arguments, taken, ..Self::default() }
            }
        }
    }
}

/// The names that a text can take values from.
pub struct TextScope<'s, 'a> {
    subject: &'s Subject<'a>,
    sent: &'s SentText<'a>,
    common: &'s ScopeNames,
    names: Rc<TextNames>,
    /// What the text itself takes.
    own: OnceCell<TakenPaths>,
}

impl<'s, 'a> TextScope<'s, 'a> {
    /// The scope of a text.
    pub fn of(subject: &'s Subject<'a>, common: &'s ScopeNames, sent: &'s SentText<'a>) -> Self {
        let mut of_texts = common.of_texts.borrow_mut();
        let names = of_texts.entry(sent.action).or_insert_with(|| Rc::new(TextNames::of(subject, sent.action, common)));
        Self { subject, sent, common, names: Rc::clone(names), own: OnceCell::new() }
    }

    /// How a name is written here that a text spells in another syntax: `order_id`, `input.order_id`; nothing when
    /// nobody has such a name.
    pub fn meant(&self, name: &str) -> Option<String> {
        // `input['x']` is `input.x`.
        let name = name.replace(['"', '\'', ']'], "").replace('[', ".").replace([' ', '-'], "_");
        let mut name = name.as_str();
        for _ in 0..MAX_AROUND {
            if let Some(known) = self.known(name) {
                return Some(known);
            }
            name = name.split_once('.').filter(|(first, _)| AROUND.contains(first))?.1;
        }
        self.known(name)
    }

    /// How a name is written here that somebody has.
    fn known(&self, name: &str) -> Option<String> {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        if first == "input" && !rest.is_empty() {
            return Some(name.to_owned());
        }
        let with = |known: &str| if rest.is_empty() { known.to_owned() } else { format!("{known}.{rest}") };
        if let Some(known) = self.names.arguments.find(first) {
            return Some(with(known));
        }
        if let Some(known) = self.common.inputs.get_or_init(|| inputs(self.subject)).find(first) {
            // In a file of its own, an action has no input but that of its calls: what a run is given would hide it.
            return Some(if self.is_of_other_file() && self.takes_any() {
                with(known)
            } else {
                format!("input.{}", with(known))
            });
        }
        let of_steps = self.subject.is_step() || self.sent.action.is_none();
        let keys = || self.subject.compiled.steps.names.iter().map(String::as_str).collect();
        of_steps.then(|| self.common.keys.get_or_init(keys).find(first).map(with))?
    }

    /// Whether the text is in an action that other documents use, too.
    fn is_of_other_file(&self) -> bool {
        let file = self.sent.cursor.place().file;
        self.sent.action.is_some() && file != self.subject.document().tree.source.name
    }

    /// Whether a new name may be used in the text.
    pub fn takes_any(&self) -> bool {
        self.sent.action.is_some() && !self.names.is_closed
    }

    /// Whether the action of the text lists a parameter that none of its texts takes.
    pub fn has_idle_argument(&self) -> bool {
        self.names.has_idle_argument
    }

    /// Whether the text takes a value, which is written as it is here: then its author knows how.
    pub fn takes(&self, path: &str) -> bool {
        self.own().has(path)
    }

    /// Whether another text of the same action takes the value; of a prompt, any text of the loop.
    pub fn takes_elsewhere(&self, path: &str) -> bool {
        self.names.taken.has(path)
    }

    /// Whether the text takes any value at all.
    pub fn takes_something(&self) -> bool {
        !self.own().is_empty()
    }

    fn own(&self) -> &TakenPaths {
        self.own.get_or_init(|| TakenPaths::of(std::slice::from_ref(self.sent)))
    }
}

/// The names that steps give their actions.
fn given(subject: &Subject<'_>) -> HashMap<String, BTreeSet<String>> {
    let mut given: HashMap<String, BTreeSet<String>> = HashMap::new();
    for step in steps(subject).iter().filter(|step| !step.is_named()) {
        let names = given.entry(step.kind.to_owned()).or_default();
        names.extend(step.properties.keys().take(MAX_NAMES).cloned());
    }
    given
}

/// The names of the run's input that the document knows.
fn inputs(subject: &Subject<'_>) -> FoldedNames {
    let document = subject.document();
    let declares = matches!(document.kind, Some(DocumentKind::Loop | DocumentKind::Workflow));
    let pointer = if declares { "/input/properties" } else { "/input" };
    let known = document.value.pointer(pointer).and_then(Value::as_object);
    known.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}
