//! From texts to a program: combines the results of the other modules.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use super::catalog::Shelf;
use super::context::Context;
use super::declare::Declare;
use super::flow::{self, FlowHead};
use super::layout::{self, LoopLayout, unreadable};
use super::link::Linker;
use super::names::{self, stem};
use super::react::{Around, Head, ReadLoop, react, schema};
use super::review::ReviewedValues;
use super::steps::{self, Steps};
use super::{Compiled, Texts, documents};
use crate::diagnostic::{Diagnostic, Remedy, Source, codes, few};
use crate::language::concurrency::Concurrency;
use crate::language::mcp_offer::McpOffer;
use crate::language::{Project, SecretSource};
use crate::program::Program;
use crate::program::concurrency::ConcurrencyRule;
use crate::program::schema::too_many_patterns_in;
use crate::syntax::document::{Document, DocumentKind, read};
use crate::syntax::{document, shape};

/// Compiles a loop document or an agent request. All faults are collected; there is a program only when none of
/// them is an error.
pub fn compile(texts: &Texts) -> Compiled {
    compile_read(texts, document::read(&texts.main))
}

/// The same for a document that was parsed before, from the main text.
pub fn compile_read(texts: &Texts, main: Document) -> Compiled {
    let mut faults = Vec::new();
    let (project, settings) = project(texts.project.as_ref(), &mut faults);
    let settings = settings.map(|settings| with_secrets(settings, &texts.secrets));
    let is_loop = LoopLayout::of(&main).is_some() || !steps::roots(&main).is_empty();
    let shelf = if is_loop { Shelf::read(texts) } else { Shelf::default() };
    let mut calls = Linker::new(texts, Arc::new(shelf), settings, one);
    let mut compiled = one(&mut calls, texts, main);
    compiled.project = project;
    compiled.called = calls.called;
    faults.append(&mut compiled.diagnostics);
    if !compiled.called.is_empty() {
        faults.extend(compiled.called.iter().flat_map(|(_, called)| called.diagnostics.iter().cloned()));
        once(&mut faults);
    }
    few(&mut faults);
    sort(&mut faults, &texts.main);
    if faults.iter().any(Diagnostic::is_error) {
        compiled.partial = compiled.program.take().or(compiled.partial);
    }
    Compiled { diagnostics: faults, ..compiled }
}

/// Removes duplicates of faults that several loops have in common.
pub fn once(faults: &mut Vec<Diagnostic>) {
    let mut reported = HashSet::new();
    faults.retain(|fault| {
        let place = (Arc::clone(&fault.place.file), fault.place.start, fault.place.end);
        reported.insert((fault.code, place, fault.message.clone()))
    });
}

/// Compiles one document: the main one, or a called loop.
fn one(calls: &mut Linker<'_>, texts: &Texts, main: Document) -> Compiled {
    let mut faults = main.faults.clone();
    faults.extend_from_slice(main.pasted());
    let layout = LoopLayout::of(&main).filter(|_| !steps::is_foreach(&main));
    let has_steps = !steps::roots(&main).is_empty();
    let dialect = layout.as_ref().map(|layout| layout.pointer("dialect"));
    let (mut steps, mut is_whole) = (Steps::default(), false);
    let heavy = patterns(&main);
    faults.extend(heavy.clone());
    let program = match main.kind {
        // Its schemas would be compiled one by one.
        _ if heavy.is_some() => None,
        // A document with more faults is not checked further: it is most likely no loop at all.
        Some(_) if main.faults.len() >= shape::MAX_FAULTS && (layout.is_some() || has_steps) => None,
        Some(_) if layout.is_some() || has_steps => {
            let shelf = Arc::clone(&calls.shelf);
            if !calls.is_called() {
                faults.extend(shelf.faults_of_given());
            }
            let around = Around { texts, shelf: &shelf };
            let judged = whole(calls, &around, &main, layout);
            faults.extend(judged.faults.into_iter().filter(|fault| !main.is_guessed(fault)));
            (steps, is_whole) = (judged.steps, judged.is_whole);
            judged.program
        }
        Some(kind) if !main.is_broken() => {
            faults.push(no_loop(&main, kind));
            None
        }
        _ => None,
    };
    sort(&mut faults, &main.tree.source);
    if has_steps {
        // A fault that several loops of one document share is reported once.
        once(&mut faults);
    }
    let is_sound = !faults.iter().any(Diagnostic::is_error);
    let (program, partial) = match program {
        Some(program) if is_sound && is_whole => (Some(Arc::new(program)), None),
        Some(program) => (None, Some(Arc::new(program))),
        None => (None, None),
    };
    // What takes the place of the dialect says nothing of the replies.
    let partial = partial.filter(|_| !dialect.is_some_and(|dialect| main.unknown.holds(&dialect)));
    let (settings, shelf, effort) = (calls.settings.clone(), Arc::clone(&calls.shelf), calls.effort.clone());
    let called = Vec::new();
    Compiled {
        program,
        partial,
        diagnostics: faults,
        document: main,
        project: None,
        settings,
        shelf,
        steps,
        effort,
        called,
    }
}

/// The parts of a document, compiled.
#[derive(Default)]
struct Judged {
    /// The loop that the document is.
    program: Option<Program>,
    /// Whether it has all its parts.
    is_whole: bool,
    steps: Steps,
    faults: Vec<Diagnostic>,
}

/// Compiles a document as a loop, and its steps.
fn whole(calls: &mut Linker<'_>, around: &Around<'_>, main: &Document, layout: Option<LoopLayout>) -> Judged {
    let Some(defaults) = layout::defaults() else { return Judged::default() };
    let (mut steps, mut faults) = (Steps::default(), Vec::new());
    let of_steps = layout.clone().unwrap_or_else(|| LoopLayout::of_step("/properties".to_owned()));
    let mut declare = Declare::new(around.texts, main, of_steps, around.shelf, &defaults);
    (declare.effort, declare.project) = (calls.effort.clone(), calls.settings.clone());
    declare.own_names();
    let head = head(main, &mut faults);
    let has_steps = !steps::roots(main).is_empty();
    if has_steps || steps::key_of_line(main).is_some() {
        steps = steps::walk(calls, around, main, &mut declare, &mut faults);
        if has_steps && let Some(project) = &calls.settings {
            faults.extend(documents::faults(main, project, &around.texts.outside));
        }
    }
    let (mut used, tools) = steps::named(main);
    let own = layout.iter().filter_map(|layout| layout.get(main, "tools")?.as_array()).flatten();
    used.extend(tools.into_iter().chain(own).filter_map(|tool| tool.as_str().or_else(|| tool.get("name")?.as_str())));
    declare.idle(&used.into_iter().collect());
    let mut is_whole = true;
    let program = match layout {
        Some(layout) => {
            let read = ReadLoop { layout: &layout, head, context: &Context::default(), lookup: &declare };
            react(calls, around, main, read, &mut faults).map(|lowered| {
                is_whole = lowered.is_whole;
                Program::Loop(lowered.program)
            })
        }
        // Faults of the steps are known; only what is sound can be lowered.
        None if main.is_broken() || faults.iter().chain(&declare.faults).any(Diagnostic::is_error) => None,
        None => {
            let Head { name, description, input, mcp, concurrency, .. } = head;
            let project = calls.settings.clone().unwrap_or_default();
            let head = FlowHead { name, description, input, mcp, concurrency, project };
            flow::lower(main, &steps, &mut declare, head).map(Program::Flow)
        }
    };
    faults.append(&mut declare.faults);
    Judged { program, is_whole, steps, faults }
}

/// The error when the patterns of its schemas together are too large.
fn patterns(main: &Document) -> Option<Diagnostic> {
    let fault = too_many_patterns_in(&main.value)?;
    let place = main.tree.place(&fault.path);
    Some(Diagnostic::error(codes::BAD_SCHEMA, fault.message, fault.path, place))
}

/// The document's faults first, then those of each other file; within a file in the order of the text.
fn sort(faults: &mut [Diagnostic], main: &Source) {
    let order = |fault: &Diagnostic| {
        let other = (fault.place.file != main.name).then(|| fault.place.file.clone());
        (other, fault.place.start)
    };
    faults.sort_by_cached_key(order);
}

fn no_loop(main: &Document, kind: DocumentKind) -> Diagnostic {
    let place = main.tree.source.whole();
    let message = format!("a loop was expected; this is {}", kind.called());
    let fault = Diagnostic::error(codes::NO_LOOP, message, "", place);
    match kind {
        DocumentKind::Actions => fault.help(Remedy::RunLoopWithActions),
        DocumentKind::Script => fault.help(Remedy::RunLoopWithScript),
        DocumentKind::Scenario => fault.help(Remedy::PlayScenarios),
        DocumentKind::Recording => fault.help("a scenario plays it: name it under `recording`"),
        DocumentKind::Project => fault.help("name the loop: the project file of its folder is found by itself"),
        _ => fault,
    }
}

/// The parsed project file, and its settings: if it has errors, those that can be read.
fn project(source: Option<&Source>, faults: &mut Vec<Diagnostic>) -> (Option<Document>, Option<Arc<Project>>) {
    let Some(source) = source else { return (None, Some(Arc::default())) };
    let document = document::read_as(source, Some(DocumentKind::Project));
    faults.extend(document.faults.iter().cloned());
    faults.extend_from_slice(document.pasted());
    let settings = match Project::deserialize(&document.value) {
        Ok(settings) => Some(Arc::new(settings)),
        Err(_) if document.is_broken() => None,
        Err(error) => {
            faults.push(unreadable(&document, &error));
            None
        }
    };
    (Some(document), settings)
}

/// The settings with the secrets that the program around the engine gives.
fn with_secrets(settings: Arc<Project>, given: &[String]) -> Arc<Project> {
    let lacks = |key: &&String| !settings.orgconfig.contains_key(*key);
    let lacking: Vec<String> = given.iter().filter(lacks).cloned().collect();
    if lacking.is_empty() {
        return settings;
    }
    let mut settings = Project::clone(&settings);
    settings.orgconfig.extend(lacking.into_iter().map(|key| {
        let source = SecretSource::given(&key);
        (key, source)
    }));
    Arc::new(settings)
}

fn head(main: &Document, faults: &mut Vec<Diagnostic>) -> Head {
    let stem = stem(&main.tree.source.name);
    if main.kind == Some(DocumentKind::AgentRequest) {
        let default_input = main.value.get("input").and_then(Value::as_object).cloned();
        let previous_run_id = main.value.get("previous_run_id").and_then(Value::as_str).map(str::to_owned);
        return Head { default_input, previous_run_id, ..Head::named(stem) };
    }
    let text = |field: &str| main.value.get(field).and_then(Value::as_str).map(str::to_owned);
    let name = text("name");
    // What has another shape is reported where the shape is judged.
    let mcp = main.value.get("mcp").and_then(|mcp| McpOffer::deserialize(mcp).ok()).unwrap_or_default();
    let concurrency = steps::concurrency_at(main).and_then(|at| Concurrency::deserialize(main.value.pointer(at)?).ok());
    let concurrency = concurrency.as_ref().and_then(ConcurrencyRule::of);
    if main.kind == Some(DocumentKind::Workflow) {
        // A wrong name is reported where a tool names it.
        let input = schema(main, "/input", ReviewedValues::Objects, faults);
        return Head { description: text("description"), input, mcp, concurrency, ..Head::named(name.unwrap_or(stem)) };
    }
    if let Some((name, fault)) = name.as_deref().and_then(|name| Some((name, names::fault_of(name)?))) {
        faults.push(names::bad_name(name, fault, "/name", main.tree.place("/name")));
    }
    let input = schema(main, "/input", ReviewedValues::Objects, faults);
    Head { description: text("description"), input, mcp, concurrency, ..Head::named(name.unwrap_or(stem)) }
}

/// The parsed texts, shared by the documents beside them.
#[derive(Debug, Clone, Default)]
pub struct Readings {
    /// By the address of the text in memory: the source in the slot keeps it valid.
    all: Arc<Mutex<HashMap<usize, ReadingSlot>>>,
}

/// A text and its document.
type ReadingSlot = Arc<(Source, OnceLock<Arc<Document>>)>;

impl Readings {
    /// The document of a text; parsed on first use.
    pub(crate) fn document(&self, source: &Source) -> Arc<Document> {
        let place = source.text.as_ptr().addr();
        let slot = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(place).or_insert_with(|| Arc::new((source.clone(), OnceLock::new()))))
        };
        // Two empty texts may have the same address.
        if slot.0.name != source.name || slot.0.text != source.text {
            return Arc::new(read(source));
        }
        Arc::clone(slot.1.get_or_init(|| Arc::new(read(source))))
    }
}
