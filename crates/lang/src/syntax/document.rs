//! Documents: recognises the kind of a document, and checks its shape.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::foreign_syntax::{self, ForeignEntry};
use super::shape::Unknown;
use super::{pasted_secrets, shape};
use crate::diagnostic::{Diagnostic, Nearest, Source, codes, nearest, sort_by_place};
use crate::language::Action;
use crate::syntax;
use crate::syntax::{Member, Node, Tree};

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// One loop.
    Loop,
    /// Hyphen's workflow.
    Workflow,
    /// An objective and its tools.
    AgentRequest,
    /// Registered actions.
    Actions,
    /// The settings of a folder.
    Project,
    /// Scenarios: offline tests of a loop or a workflow.
    Scenario,
    /// What was said in a run that happened.
    Recording,
    /// The replies of a scripted model.
    Script,
}

impl DocumentKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Loop,
        Self::Workflow,
        Self::AgentRequest,
        Self::Actions,
        Self::Project,
        Self::Scenario,
        Self::Recording,
        Self::Script,
    ];

    /// Its name, as `loopctl schema NAME` knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Workflow => "workflow",
            Self::AgentRequest => "agent-request",
            Self::Actions => "actions",
            Self::Project => "project",
            Self::Scenario => "scenario",
            Self::Recording => "recording",
            Self::Script => "script",
        }
    }

    /// Its name in a sentence.
    pub fn called(self) -> &'static str {
        match self {
            Self::Loop => "a loop",
            Self::Workflow => "a workflow",
            Self::AgentRequest => "an agent request",
            Self::Actions => "an actions document",
            Self::Project => "a project file",
            Self::Scenario => "a file of scenarios",
            Self::Recording => "a recording",
            Self::Script => "a script",
        }
    }
}

/// A parsed document: its tree, its kind, and the faults of its text and shape.
#[derive(Debug)]
pub struct Document {
    /// Its text, with the position of every key and value.
    pub tree: Tree,
    /// Its kind; none when no field decides it.
    pub kind: Option<DocumentKind>,
    /// Its value: as much as could be read, and null without a kind.
    pub value: Value,
    /// The parts of the value that could not be read: their faults are in `faults`.
    pub unknown: Unknown,
    /// The faults of its text and its shape.
    pub faults: Vec<Diagnostic>,
    /// The secrets that were pasted into it, once they were searched.
    pasted: OnceLock<Vec<Diagnostic>>,
    /// The actions that were read, by their place in its list of actions; none for a document of one action.
    actions: Mutex<BTreeMap<Option<usize>, Option<Arc<Action>>>>,
}

impl Document {
    /// An error for each string that looks like a key or token. A document that many loops use is searched
    /// once.
    pub(crate) fn pasted(&self) -> &[Diagnostic] {
        self.pasted.get_or_init(|| pasted_secrets::secrets(self))
    }

    /// The action at a place of its list of actions, where `value` is; nothing when it can't be read. A document
    /// whose actions many loops use is read once.
    pub(crate) fn action(&self, place: Option<usize>, value: &Value) -> Option<Arc<Action>> {
        let mut actions = self.actions.lock().unwrap_or_else(PoisonError::into_inner);
        actions.entry(place).or_insert_with(|| Action::read(value).ok().map(Arc::new)).clone()
    }

    /// Whether it has an error.
    pub fn is_broken(&self) -> bool {
        self.faults.iter().any(Diagnostic::is_error)
    }

    /// Whether a fault is about a part that could not be read: it is dropped, because another one was reported
    /// there.
    pub fn is_guessed(&self, fault: &Diagnostic) -> bool {
        self.unknown.holds(&fault.path) && fault.place.file == self.tree.source.name
    }
}

/// Reads a document of any kind.
pub fn read(source: &Source) -> Document {
    read_as(source, None)
}

/// Reads a document that is known to be of a kind, as `loopctl.json` is a project file.
pub fn read_as(source: &Source, kind: Option<DocumentKind>) -> Document {
    let (tree, mut faults) = syntax::parse(source);
    // No field of a document is in a part that is too deep.
    let whole = !tree.is_cut && faults.iter().all(|fault| fault.code == codes::TOO_MUCH);
    faults.extend(syntax::repeated_keys(&tree));
    let mut document = Document {
        tree,
        kind,
        value: Value::Null,
        unknown: Unknown::default(),
        faults,
        pasted: OnceLock::new(),
        actions: Mutex::default(),
    };
    // A document that was cut at a limit of the reader has no shape to check.
    if document.tree.root.is_fault() || document.tree.is_cut {
        return document;
    }
    let kind = match kind.map_or_else(|| recognise(&document.tree), Ok) {
        Ok(kind) => kind,
        Err(fault) => {
            // The field that decides the kind may be in the part that could not be read.
            if whole {
                document.faults.push(*fault);
            }
            return document;
        }
    };
    document.kind = Some(kind);
    match shape::known(kind.name()) {
        Some(known) => {
            let shaped = shape::shape(&document.tree, known, whole);
            document.value = shaped.value;
            document.unknown = shaped.unknown;
            if document.faults.iter().any(|fault| fault.code == codes::TOO_MUCH) {
                document.unknown.add_unread(&document.tree.root, &mut String::new());
            }
            for renamed in &shaped.renamed {
                document.tree.rename(&renamed.object, &renamed.key, &renamed.field);
            }
            document.faults.extend(shaped.faults);
        }
        None => document.value = document.tree.value(),
    }
    sort_by_place(&mut document.faults);
    document
}

/// Finds the kind of a document by its top-level fields.
///
/// # Errors
/// One fault with the fields that decide a kind.
fn recognise(tree: &Tree) -> Result<DocumentKind, Box<Diagnostic>> {
    let root = &tree.root;
    if root.items().is_some() {
        return Ok(DocumentKind::Actions);
    }
    if root.members().is_none() {
        let place = tree.source.place(root.span.start, root.span.end);
        let fault = Diagnostic::error(codes::UNKNOWN_DOCUMENT, "this value is no document", "", place);
        return Err(Box::new(fault.help("a document is a JSON object, or an array of registered actions")));
    }
    // A workflow that has a `type` is still a workflow: its shape reports that.
    let is_flow = root.get("definition").is_some() && root.get("properties").is_none();
    if root.get("type").and_then(Node::as_str) == Some("loop") && !is_flow {
        return Ok(DocumentKind::Loop);
    }
    let marks = [
        ("definition", DocumentKind::Workflow),
        ("objective", DocumentKind::AgentRequest),
        ("action_name", DocumentKind::Actions),
        ("scenarios", DocumentKind::Scenario),
        ("recording", DocumentKind::Recording),
        ("replies", DocumentKind::Script),
        ("cases", DocumentKind::Script),
        ("properties", DocumentKind::Loop),
        ("orgconfig", DocumentKind::Project),
        ("models", DocumentKind::Project),
        ("datasources", DocumentKind::Project),
        ("mcp", DocumentKind::Project),
    ];
    let has = |name: &str| root.get(name).is_some();
    // A loop whose `type` is wrong or missing is still a loop: its shape reports that.
    let step = has("type") && has("properties");
    if let Some((_, kind)) = marks.iter().find(|(mark, _)| has(mark)) {
        return match (kind, root.get("type").and_then(Node::as_str)) {
            (DocumentKind::Loop, Some(word)) if step && nearest(word, ["loop"]).is_none() => {
                Err(Box::new(step_fault(tree, word)))
            }
            _ => Ok(*kind),
        };
    }
    let mut nearest = Nearest::default();
    let near = root
        .members()
        .into_iter()
        .flatten()
        .find_map(|member| nearest.of(&member.key, marks.iter().map(|(mark, _)| *mark)).map(|mark| (member, mark)));
    let foreign = foreign_syntax::document(root);
    Err(Box::new(match (near, foreign) {
        (_, Some(shape)) => foreign_document(tree, &shape),
        // A list of steps at the top is that of a workflow, although `definition` is near to no field.
        (Some((member, mark)), None) if steps_of(root).is_none() => misspelt(tree, member, mark),
        (_, None) => unknown(tree),
    }))
}

/// The fields that decide the kind of a document, in words.
const MARKS: &str = "a loop has `\"type\": \"loop\"`, an agent request `objective`, a workflow `definition`, a registered \
                     action `action_name`, a script `replies`";

fn unknown(tree: &Tree) -> Diagnostic {
    let span = tree.root.span;
    let place = tree.source.place(span.start, (span.start + 1).min(span.end));
    let message = "nothing at the top of this document says what it is";
    let fault = Diagnostic::error(codes::UNKNOWN_DOCUMENT, message, "", place);
    let has = |name: &str| tree.root.get(name).is_some();
    let is_flow = matches!(tree.root.get("type").and_then(Node::as_str), Some("workflow" | "flow"));
    match steps_of(&tree.root) {
        Some(TopList::Actions) => fault.help("registered actions are an array: take the list out of the object around it"),
        Some(TopList::Steps(name)) => fault.help(format!(
            "`{name}` looks like the steps of a workflow, which are the list `actions` in its `definition`: {A_WORKFLOW}"
        )),
        None if is_flow => fault.help(format!("a workflow has no `type`; its steps are in its `definition`: {A_WORKFLOW}")),
        None if has("mode") || has("tools") => {
            fault.help("these look like the properties of a loop: `{\"type\": \"loop\", \"properties\": {...}}`")
        }
        None => fault.help(MARKS),
    }
}

const A_WORKFLOW: &str = "`{\"name\": \"...\", \"definition\": {\"actions\": [...]}}`";

/// A list at the top of a document that has no place there.
enum TopList<'n> {
    /// Registered actions.
    Actions,
    /// Steps, under this name.
    Steps(&'n str),
}

fn steps_of(root: &Node) -> Option<TopList<'_>> {
    let members = root.members()?;
    let named =
        members.iter().find(|member| matches!(&*member.key, "actions" | "steps" | "tasks" | "nodes" | "jobs"))?;
    let first = named.value.items()?.first()?;
    if first.get("action_name").is_some() {
        return Some(TopList::Actions);
    }
    first.members().is_some().then_some(TopList::Steps(&named.key))
}

/// The document of another product.
fn foreign_document(tree: &Tree, shape: &ForeignEntry) -> Diagnostic {
    let span = tree.root.span;
    let place = tree.source.place(span.start, (span.start + 1).min(span.end));
    let message = format!("this is {}, and no document of loopctl", shape.what);
    Diagnostic::error(codes::FOREIGN_SHAPE, message, "", place).help(shape.help)
}

/// The fault of a misspelt field that decides the kind.
fn misspelt(tree: &Tree, member: &Member, mark: &str) -> Diagnostic {
    let place = tree.source.place(member.key_span.start, member.key_span.end);
    let message = format!("nothing at the top of this document says what it is; `{}` looks like `{mark}`", member.key);
    let pointer = format!("/{}", syntax::token(&member.key));
    Diagnostic::error(codes::UNKNOWN_DOCUMENT, message, pointer, place).help(MARKS).suggest(syntax::quoted(mark))
}

/// The fault of a step of another type than `loop`: Hyphen may know it, but it is no document.
fn step_fault(tree: &Tree, word: &str) -> Diagnostic {
    let shown: String = word.chars().filter(|c| !c.is_control()).take(64).collect();
    let message = format!("a step of type `{shown}` is no document of its own: `type` must be `loop` here");
    let fault = Diagnostic::error(codes::UNKNOWN_DOCUMENT, message, "/type", tree.place("/type"));
    let mode = tree.at("/properties/mode").and_then(Node::as_str);
    match mode {
        Some("react" | "foreach") => fault.help("its `mode` is one of a loop").suggest(syntax::quoted("loop")),
        _ => fault.help(format!("a step of another type belongs to the steps of a workflow: {A_WORKFLOW}")),
    }
}
