//! What rules look at: a compiled document, its project, and the places of everything in them.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::cursor::has_fault;
use super::input_schema::input_schema;
use super::sent_text::{self, SentText};
use super::{Cursor, Used};
use crate::compile::catalog::Catalog;
use crate::compile::effort;
use crate::compile::layout::LoopLayout;
use crate::compile::steps::{Inner, is_foreach};
use crate::compile::{Compiled, Texts};
use crate::diagnostic::{Diagnostic, Place, codes};
use crate::language::{Project, ReactProperties, ToolDeclaration};
use crate::program::Program;
use crate::syntax::document::{Document, DocumentKind};
use crate::syntax::{Node, shape};

/// No loop has this number of properties: most of these are unknown, and that was reported.
const MAX_PROPERTIES: usize = 1000;

/// What rules look at. Where something is broken already, it gives nothing: a rule whose premise
/// was reported is silent.
pub struct Subject<'a> {
    /// The texts that were compiled.
    pub texts: &'a Texts,
    /// What they mean: the program when they are sound so far, and the document with its places.
    pub compiled: &'a Compiled,
    layout: Option<LoopLayout>,
    /// The loop, when it is a step of the document.
    inner: Option<&'a Inner>,
    properties: OnceCell<Option<ReactProperties>>,
    declarations: OnceCell<Vec<(String, Cow<'a, ToolDeclaration>)>>,
    actions: OnceCell<Vec<Used<'a>>>,
    /// Where the first action of each name is in `actions`.
    actions_by_name: OnceCell<HashMap<String, usize>>,
    sent_texts: OnceCell<Vec<SentText<'a>>>,
    lone_project: OnceCell<Option<Project>>,
    input_schema: OnceCell<Option<Cow<'a, Value>>>,
    /// The project file, which the loops that are called share.
    project: Option<&'a Document>,
    /// The registered actions around the document, which its loops share.
    catalog: Rc<OnceCell<Catalog<'a>>>,
}

impl<'a> Subject<'a> {
    /// A compiled document with the texts that it was compiled from.
    pub fn new(texts: &'a Texts, compiled: &'a Compiled) -> Self {
        let document = &compiled.document;
        let judged = !is_foreach(document) && document.faults.len() < shape::MAX_FAULTS;
        Self::of(texts, compiled, LoopLayout::of(document).filter(|_| judged), Rc::default())
    }

    /// A compiled document and each loop among its steps, then the same of each loop that is called.
    pub fn all(texts: &'a Texts, compiled: &'a Compiled) -> Vec<Self> {
        let called = compiled.called.iter().map(|(texts, called)| (texts, called));
        let documents = std::iter::once((texts, compiled)).chain(called);
        let subjects = documents.flat_map(|(texts, compiled)| Self::of_document(texts, compiled));
        subjects.map(|subject| Self { project: compiled.project.as_ref(), ..subject }).collect()
    }

    fn of_document(texts: &'a Texts, compiled: &'a Compiled) -> impl Iterator<Item = Self> {
        let first = Self::new(texts, compiled);
        let catalog = Rc::clone(&first.catalog);
        let inner = compiled.steps.loops.iter();
        let inner = inner.map(move |inner| Self::of_step(texts, compiled, inner, Rc::clone(&catalog)));
        std::iter::once(first).chain(inner)
    }

    fn of_step(texts: &'a Texts, compiled: &'a Compiled, inner: &'a Inner, catalog: Rc<OnceCell<Catalog<'a>>>) -> Self {
        Self { inner: Some(inner), ..Self::of(texts, compiled, Some(inner.layout.clone()), catalog) }
    }

    fn of(
        texts: &'a Texts,
        compiled: &'a Compiled,
        layout: Option<LoopLayout>,
        catalog: Rc<OnceCell<Catalog<'a>>>,
    ) -> Self {
        Self {
            texts,
            compiled,
            layout,
            inner: None,
            properties: OnceCell::new(),
            declarations: OnceCell::new(),
            actions: OnceCell::new(),
            actions_by_name: OnceCell::new(),
            sent_texts: OnceCell::new(),
            lone_project: OnceCell::new(),
            input_schema: OnceCell::new(),
            project: compiled.project.as_ref(),
            catalog,
        }
    }

    /// The document.
    pub fn document(&self) -> &'a Document {
        &self.compiled.document
    }

    /// The program, when nothing keeps it from running so far.
    pub fn program(&self) -> Option<&'a Program> {
        match self.inner {
            Some(inner) => inner.program.as_deref(),
            None => self.compiled.program.as_deref(),
        }
    }

    /// The program as far as it can be compiled: what has an error is not in it.
    pub fn known_program(&self) -> Option<&'a Program> {
        self.program().or(self.compiled.partial.as_deref().filter(|_| self.inner.is_none()))
    }

    /// Whether it is a loop among the steps of the document.
    pub fn is_step(&self) -> bool {
        self.inner.is_some()
    }

    /// The actions that the steps of the document name, as a step or as a tool of a loop.
    pub fn names_in_steps(&self) -> HashSet<&str> {
        let steps = &self.compiled.steps;
        steps.actions.iter().chain(&steps.tools).map(String::as_str).collect()
    }

    /// What it costs to look at it with all rules.
    pub(super) fn weight(&self) -> u64 {
        let actions = self.actions().iter().map(|used| effort::weight(used.written())).sum::<u64>();
        let project = self.compiled.project.as_ref().map_or(0, |project| effort::weight(&project.value));
        effort::LOOP.saturating_add(actions).saturating_add(project)
    }

    /// A place in the document, at a JSON pointer.
    pub fn at(&self, pointer: &str) -> Cursor<'a> {
        Cursor::new(&self.document().tree, pointer)
    }

    /// The place of a property of the loop, like `on_stuck/hint`; nothing when it is not written.
    pub fn property(&self, name: &str) -> Option<Cursor<'a>> {
        let layout = self.layout.as_ref()?;
        // Most properties are left out: a look for the first name costs less than a pointer.
        let first = name.split('/').next().unwrap_or_default();
        self.document().tree.at(layout.around(name))?.get(first)?;
        Some(self.at(&layout.pointer(name))).filter(Cursor::is_written)
    }

    /// The loop's properties, when none of those that are named, like `history/keep_last`, has a fault.
    pub fn react(&self, sound: &[&str]) -> Option<&ReactProperties> {
        let layout = self.layout.as_ref()?;
        if let Some(program) = self.program() {
            return program.as_loop().map(|program| &program.properties);
        }
        if sound.iter().any(|name| self.is_lost(layout, name)) {
            return None;
        }
        self.properties.get_or_init(|| self.readable(layout)).as_ref()
    }

    /// The properties without what has faults, which has its default instead: a part of a property, or all of it where
    /// the rest could not be read.
    fn readable(&self, layout: &LoopLayout) -> Option<ReactProperties> {
        let properties = || layout.properties(self.document());
        if properties().nth(MAX_PROPERTIES).is_some() {
            return None;
        }
        let read = |values: &mut dyn Iterator<Item = (&str, &Value)>| {
            let mut values: Map<String, Value> = values.map(|(name, value)| (name.to_owned(), value.clone())).collect();
            // Tools are read one by one: see `declarations`.
            values.insert("tools".to_owned(), json!([]));
            values.entry("objective").or_insert_with(|| json!(""));
            ReactProperties::deserialize(&Value::Object(values)).ok()
        };
        let sound = || properties().filter(|(name, _)| !self.is_faulty(&layout.pointer(name)));
        read(&mut properties()).or_else(|| read(&mut sound()))
    }

    /// Whether the value of a property is not known: it has a fault, or what is in its place in the object around it
    /// may have been meant as it.
    fn is_lost(&self, layout: &LoopLayout, name: &str) -> bool {
        let pointer = layout.pointer(name);
        let inside = name.rsplit_once('/').map(|(around, _)| layout.pointer(around));
        self.is_faulty(&pointer) || inside.is_some_and(|around| self.may_hide(&around, &pointer))
    }

    fn may_hide(&self, around: &str, pointer: &str) -> bool {
        let tree = &self.document().tree;
        let is_written = tree.at(pointer).is_some();
        let hides = |fault: &Diagnostic| {
            let parent = fault.path.rsplit_once('/').map(|(parent, _)| parent);
            fault.path == around || (!is_written && fault.code == codes::UNKNOWN_FIELD && parent == Some(around))
        };
        tree.at(around).is_some_and(Node::is_fault) || self.errors().any(hides)
    }

    /// The errors that were reported in the document.
    fn errors(&self) -> impl Iterator<Item = &'a Diagnostic> {
        let main = &self.texts.main.name;
        self.compiled.diagnostics.iter().filter(|fault| fault.is_error() && fault.place.file == *main)
    }

    /// Whether an error was reported for the document's value at a pointer, or for what is in it.
    pub fn is_faulty(&self, pointer: &str) -> bool {
        let reported = self.errors().any(|fault| is_at(&fault.path, pointer));
        reported || self.document().tree.at(pointer).is_some_and(has_fault)
    }

    /// Whether the document's text could be read from end to end.
    pub fn is_whole(&self) -> bool {
        !self.document().faults.iter().any(is_unread)
    }

    /// Whether an error was already reported at this place.
    pub fn is_reported(&self, place: &Place) -> bool {
        let holds = |other: &Place| other.file == place.file && other.start <= place.start && place.end <= other.end;
        self.compiled.diagnostics.iter().any(|fault| fault.is_error() && holds(&fault.place))
    }

    /// Whether an error was already reported at this place, or in it.
    pub fn has_error_in(&self, place: &Place) -> bool {
        let is_in = |other: &Place| other.file == place.file && place.start <= other.start && other.end <= place.end;
        self.compiled.diagnostics.iter().any(|fault| fault.is_error() && is_in(&fault.place))
    }

    /// The schema of the input of a loop or workflow, open in the parts that have errors.
    pub fn input_schema(&self) -> Option<&Value> {
        self.input_schema.get_or_init(|| input_schema(self.compiled)).as_deref()
    }

    /// The entries of `tools`, each with its JSON pointer.
    pub fn declarations(&self) -> impl Iterator<Item = (&str, &ToolDeclaration)> + Clone {
        let all = self.declarations.get_or_init(|| self.read_declarations());
        all.iter().map(|(pointer, declaration)| (pointer.as_str(), &**declaration))
    }

    fn read_declarations(&self) -> Vec<(String, Cow<'a, ToolDeclaration>)> {
        let Some(layout) = &self.layout else { return Vec::new() };
        let pointer = layout.pointer("tools");
        let at = |number: usize| format!("{pointer}/{number}");
        if let Some(program) = self.program().and_then(Program::as_loop) {
            let tools = program.properties.tools.iter().enumerate();
            return tools.map(|(number, tool)| (at(number), Cow::Borrowed(tool))).collect();
        }
        let tools = layout.get(self.document(), "tools").and_then(Value::as_array).into_iter().flatten();
        let read = |(number, value): (usize, &Value)| {
            let declaration = ToolDeclaration::deserialize(value).ok()?;
            Some((at(number), Cow::Owned(declaration)))
        };
        tools.enumerate().filter_map(read).collect()
    }

    /// The names of the actions that the document can name.
    pub fn registered(&self) -> Vec<&'a str> {
        let catalog = self.catalog.get_or_init(|| Catalog::new(self.document(), &self.compiled.shelf));
        catalog.all.iter().map(|action| action.name).collect()
    }

    /// The first of [`Subject::actions`] with this name.
    pub fn action(&self, name: &str) -> Option<&Used<'a>> {
        let actions = self.actions();
        let by_name = self.actions_by_name.get_or_init(|| {
            let named = actions.iter().enumerate().rev();
            named.map(|(number, used)| (used.name().to_owned(), number)).collect()
        });
        by_name.get(name).and_then(|number| actions.get(*number))
    }

    /// The registered actions that the loop uses; those that are steps are the document's. In a document
    /// of actions all of them.
    pub fn actions(&self) -> &[Used<'a>] {
        self.actions.get_or_init(|| {
            let steps = if self.is_step() { &[][..] } else { &self.compiled.steps.actions };
            let document = self.document();
            let catalog = self.catalog.get_or_init(|| Catalog::new(document, &self.compiled.shelf));
            let declarations = self.declarations().map(|(_, declaration)| declaration);
            let mut used = Used::of(self.compiled, catalog, declarations, steps);
            if !self.is_step() {
                let mut named = self.names_in_steps();
                named.extend(used.iter().map(Used::name));
                let idle: Vec<Used<'a>> = Used::idle(catalog, &named).collect();
                used.extend(idle);
            }
            used
        })
    }

    /// The texts that are rendered or sent.
    pub fn sent_texts(&self) -> &[SentText<'a>] {
        self.sent_texts.get_or_init(|| sent_text::all(self))
    }

    /// Those of an action, by its number in [`actions`](Self::actions).
    pub(super) fn texts_of_action(&self, at: usize) -> &[SentText<'a>] {
        let texts = self.sent_texts();
        let from = texts.partition_point(|sent| sent.action < Some(at));
        let to = texts.partition_point(|sent| sent.action <= Some(at));
        texts.get(from..to).unwrap_or_default()
    }

    /// Whether a name is a parameter that the action of a text lists.
    pub fn is_argument(&self, sent: &SentText<'_>, name: &str) -> bool {
        let used = sent.action.and_then(|at| self.actions().get(at));
        let listed = used.and_then(|used| used.written().get("parameters")?.get("properties")?.as_object());
        listed.is_some_and(|listed| listed.contains_key(name))
    }

    /// Whether a name is a variable that the text's own action gives its program.
    pub fn is_given_variable(&self, sent: &SentText<'_>, name: &str) -> bool {
        let used = sent.action.and_then(|at| self.actions().get(at));
        let given = used.and_then(|used| used.written().get("env")?.as_object());
        given.is_some_and(|given| given.contains_key(name))
    }

    /// What the project says: the defaults without a project file, and what can be read of one with errors. A rule
    /// that reports what is not in it asks [`knows_project`](Self::knows_project) first.
    pub fn project(&self) -> Option<&Project> {
        let document = self.document();
        if document.kind == Some(DocumentKind::Project) {
            let read = || Project::deserialize(&document.value).ok();
            return self.lone_project.get_or_init(read).as_ref();
        }
        self.compiled.settings.as_deref()
    }

    /// Whether all that the project says of a part, at a JSON pointer, is in [`project`](Self::project): no error of
    /// the project file is in it, and none may be in its place.
    pub fn knows_project(&self, part: &str) -> bool {
        let Some(document) = self.project_document() else { return true };
        let mut errors = document.faults.iter().filter(|fault| fault.is_error());
        let written = document.tree.at(part).is_some();
        let hides = |fault: &Diagnostic| {
            let around = fault.path.rsplit_once('/').map_or("", |(around, _)| around);
            // What could not be read may have been this part.
            is_unread(fault) || (fault.code == codes::UNKNOWN_FIELD && !written && is_at(part, around))
        };
        !errors.any(hides) && !document.unknown.holds(part) && document.unknown.below(part).is_empty()
    }

    /// The names of the project's models, those with errors too; nothing when they are not known.
    pub fn models(&self) -> Option<Vec<&str>> {
        let Some(document) = self.project_document() else {
            return self.project().map(|project| project.models.keys().map(String::as_str).collect());
        };
        match document.value.get("models") {
            Some(models) if !document.unknown.holds("/models") => {
                Some(models.as_object()?.keys().map(String::as_str).collect())
            }
            Some(_) => None,
            None => self.knows_project("/models").then(Vec::new),
        }
    }

    /// A place in the project file, at a JSON pointer; nothing when there is no such file.
    pub fn in_project(&self, pointer: &str) -> Option<Cursor<'a>> {
        Some(Cursor::new(&self.project_document()?.tree, pointer))
    }

    /// The project file.
    pub(super) fn project_document(&self) -> Option<&'a Document> {
        match self.document().kind {
            Some(DocumentKind::Project) => Some(self.document()),
            _ => self.project,
        }
    }
}

/// Whether a fault keeps a part of the text from being read. What is too deep is no field that a rule knows.
fn is_unread(fault: &Diagnostic) -> bool {
    fault.is_error() && fault.code < codes::UNKNOWN_FIELD && fault.code != codes::TOO_MUCH
}

/// Whether a JSON pointer leads to the value at another one, or into it.
fn is_at(pointer: &str, top: &str) -> bool {
    pointer.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
