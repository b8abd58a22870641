//! From texts to a program: each part by its own module, put together here.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::catalog::Shelf;
use super::declare::Declare;
use super::document::{self, Document, DocumentKind};
use super::layout::{self, Layout};
use super::prompt::Prompts;
use super::steps::{self, Context, Steps};
use super::{Compiled, Program, Schema, Texts, names, not_yet, pasted, shape};
use crate::diagnostic::{Diagnostic, Source, codes};
use crate::language::Project;

/// Compiles a loop document or an agent request. All faults are gathered; the program is there only
/// when none of them is an error.
pub fn compile(texts: &Texts) -> Compiled {
    compile_read(texts, document::read(&texts.main))
}

/// The same for a document that was read already, from the text that is the main one.
pub fn compile_read(texts: &Texts, main: Document) -> Compiled {
    let mut faults = main.faults.clone();
    faults.extend(pasted::secrets(&main));
    let (project, settings) = project(texts.project.as_ref(), &mut faults);
    let layout = Layout::of(&main).filter(|_| !steps::is_foreach(&main));
    let has_steps = !steps::roots(&main).is_empty();
    let shelf = if layout.is_some() || has_steps { Shelf::read(texts) } else { Shelf::default() };
    let mut steps = Steps::default();
    let program = match main.kind {
        // One with so many faults is not judged further: it is most likely no loop at all.
        Some(_) if main.faults.len() >= shape::MAX_FAULTS && (layout.is_some() || has_steps) => None,
        Some(_) if layout.is_some() || has_steps => {
            let around = Around { texts, shelf: &shelf, project: settings.clone().unwrap_or_default() };
            faults.extend(shelf.faults_of_given());
            faults.extend(not_yet::document(&main));
            whole(&around, &main, layout, (&mut steps, &mut faults))
        }
        Some(kind) if !main.is_broken() => {
            faults.push(no_loop(&main, kind));
            None
        }
        _ => None,
    };
    sort(&mut faults, &main.tree.source);
    if has_steps {
        // What several loops of one document meet is told once.
        let mut told = HashSet::new();
        faults.retain(|fault| {
            told.insert((fault.code, fault.place.file.clone(), fault.place.start, fault.message.clone()))
        });
    }
    let program = program.filter(|_| !faults.iter().any(Diagnostic::is_error));
    Compiled { program, diagnostics: faults, document: main, project, settings, shelf, steps }
}

/// What stands around a document.
pub(super) struct Around<'a> {
    texts: &'a Texts,
    shelf: &'a Shelf,
    project: Arc<Project>,
}

/// The loop that a document is, and its steps.
fn whole(
    around: &Around<'_>,
    main: &Document,
    layout: Option<Layout>,
    (steps, faults): (&mut Steps, &mut Vec<Diagnostic>),
) -> Option<Program> {
    let defaults = layout::defaults()?;
    let of_steps = layout.clone().unwrap_or_else(|| Layout::of_step("/properties".to_owned()));
    let mut declare = Declare::new(around.texts, main, of_steps, around.shelf, &defaults);
    declare.own_names();
    let head = head(main, faults);
    if !steps::roots(main).is_empty() {
        *steps = steps::walk(around, main, &mut declare, faults);
    }
    let program = layout.and_then(|layout| {
        let read = Read { layout: &layout, head, context: &Context::default() };
        react(around, main, read, (&declare, faults))
    });
    faults.append(&mut declare.faults);
    program
}

/// The meaning of a loop that is a step.
pub(super) fn inner(
    around: &Around<'_>,
    main: &Document,
    layout: &Layout,
    (context, declare): (&Context, &Declare<'_>),
    faults: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let name = stem(&main.tree.source.name);
    let head = Head { name, description: None, input: None, default_input: None };
    react(around, main, Read { layout, head, context }, (declare, faults))
}

/// The document's faults first, then those of each other file; each in the order of the text.
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
        DocumentKind::Actions => fault.help("name the loop, and this one with `--actions FILE`"),
        DocumentKind::Script => fault.help("name the loop, and this one with `--script FILE`"),
        DocumentKind::Project => fault.help("name the loop: the project file of its folder is found by itself"),
        _ => fault,
    }
}

/// The project file as it was read, and what it says when it is sound.
fn project(source: Option<&Source>, faults: &mut Vec<Diagnostic>) -> (Option<Document>, Option<Arc<Project>>) {
    let Some(source) = source else { return (None, Some(Arc::default())) };
    let document = document::read_as(source, Some(DocumentKind::Project));
    faults.extend(document.faults.iter().cloned());
    faults.extend(pasted::secrets(&document));
    if document.is_broken() {
        return (Some(document), None);
    }
    let settings = Project::deserialize(&document.value);
    let settings = settings.map_err(|error| faults.push(unreadable(&document, &error))).ok();
    (Some(document), settings.map(Arc::new))
}

/// A loop of a document: where it stands, what is around it, what the steps before it write.
struct Read<'r> {
    layout: &'r Layout,
    head: Head,
    context: &'r Context,
}

fn react(
    around: &Around<'_>,
    main: &Document,
    Read { layout, head, context }: Read<'_>,
    (lookup, faults): (&Declare<'_>, &mut Vec<Diagnostic>),
) -> Option<Program> {
    let sound = !main.is_broken();
    let mut reading = Vec::new();
    let typed = layout.read(main).map_err(|error| reading.push(unreadable(main, &error))).ok();
    let defaults = if typed.is_some() { None } else { layout::defaults() };
    let mut declare = lookup.of_step(layout.clone(), typed.as_ref().or(defaults.as_ref())?);
    declare.all();
    faults.append(&mut declare.faults);
    let shelf = around.shelf;
    for document in shelf.beside.iter().chain(&shelf.given) {
        if declare.used.iter().any(|used| used.name == document.tree.source.name) {
            faults.extend(pasted::secrets(document));
        }
    }
    let mut prompts = Prompts::compile(main, layout, context);
    faults.append(&mut prompts.faults);
    faults.extend(not_yet::faults(main, layout));
    let answer = schema(main, &layout.pointer("answer_schema"), faults);
    let mut sources = vec![main.tree.source.clone()];
    sources.append(&mut declare.used);
    let tools = std::mem::take(&mut declare.tools);
    // Why they can't be read is told by the shape, unless that found nothing.
    if sound {
        faults.append(&mut reading);
    }
    let properties = typed.filter(|_| sound);
    Some(Program {
        name: head.name,
        description: head.description,
        properties: properties?,
        objective: prompts.objective?,
        system_prompt: prompts.system_prompt,
        input: head.input,
        default_input: head.default_input,
        answer,
        tools,
        project: Arc::clone(&around.project),
        sources,
    })
}

/// What stands around the properties.
struct Head {
    name: String,
    description: Option<String>,
    input: Option<Schema>,
    default_input: Option<Map<String, Value>>,
}

fn head(main: &Document, faults: &mut Vec<Diagnostic>) -> Head {
    let stem = stem(&main.tree.source.name);
    if main.kind == Some(DocumentKind::AgentRequest) {
        let default_input = main.value.get("input").and_then(Value::as_object).cloned();
        return Head { name: stem, description: None, input: None, default_input };
    }
    if main.kind == Some(DocumentKind::Workflow) {
        // Its name is told to be wrong where a tool names it.
        return Head { name: stem, description: None, input: None, default_input: None };
    }
    let text = |field: &str| main.value.get(field).and_then(Value::as_str).map(str::to_owned);
    let name = text("name");
    if let Some((name, fault)) = name.as_deref().and_then(|name| Some((name, names::fault_of(name)?))) {
        faults.push(names::told(name, fault, "/name", main.tree.place("/name")));
    }
    let input = schema(main, "/input", faults);
    Head { name: name.unwrap_or(stem), description: text("description"), input, default_input: None }
}

/// A file's name without its folders and its ending.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".json").unwrap_or(name).to_owned()
}

/// The JSON Schema that the document holds at a pointer.
fn schema(main: &Document, pointer: &str, faults: &mut Vec<Diagnostic>) -> Option<Schema> {
    let written = main.value.pointer(pointer).filter(|written| written.is_object())?;
    match Schema::compile(written.clone()) {
        Ok(schema) => Some(schema),
        Err(fault) => {
            let at = format!("{pointer}{}", fault.path);
            faults.push(Diagnostic::error(codes::BAD_SCHEMA, fault.message, at.as_str(), main.tree.place(&at)));
            None
        }
    }
}

/// Only a schema that disagrees with its type can make reading fail where the shape is right; then
/// that is told, and nothing is run.
pub(super) fn unreadable(document: &Document, error: &serde_json::Error) -> Diagnostic {
    let message = format!("the document can't be read: {error}");
    Diagnostic::error(codes::UNREADABLE, message, "", document.tree.source.whole())
}
