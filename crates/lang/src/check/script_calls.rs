//! The calls in a script, held against the tools of the loops around it.

mod cases;
mod inputs;
mod replies;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use self::cases::cases;
use self::replies::replies;
pub(super) use self::replies::too_many_calls;
use super::Cursor;
use super::scenario::endings::programs;
use crate::compile::Compiled;
use crate::diagnostic::{Diagnostic, Place, codes, nearest};
use crate::policy::json_text;
use crate::program::builtin::RUN_WORKFLOW;
use crate::program::flow::FlowProgram;
use crate::program::null_member::without_nulls;
use crate::program::schema::Schema;
use crate::program::{Program, Tool};
use crate::syntax::document::{Document, DocumentKind};
use crate::syntax::{quoted, token};

/// The most faults that are reported of a script, and of one call.
const MAX_FAULTS: usize = 50;
const MAX_OF_CALL: usize = 5;

/// A call that a script makes.
struct ScriptedCall<'s> {
    at: String,
    tool: &'s str,
    input: Option<&'s Value>,
    /// The loop whose replies it is among; nothing when it is of any.
    of: Option<&'s str>,
}

/// The loops that a script may play.
#[derive(Debug, Clone)]
pub struct ScriptedLoops {
    /// The loops and workflows. What has an error in one is left out of it.
    pub loops: Vec<Arc<Program>>,
    /// Whether none of them has an error.
    pub is_sound: bool,
    /// What the actions and workflows take, by name, of documents with an error: where they are not left out, too.
    pub inputs: BTreeMap<String, Vec<Arc<Schema>>>,
}

impl Default for ScriptedLoops {
    fn default() -> Self {
        Self { loops: Vec::new(), is_sound: true, inputs: BTreeMap::new() }
    }
}

impl ScriptedLoops {
    /// Those of a document; `is_sound`: whether it has no error.
    pub fn of(compiled: &Compiled, is_sound: bool) -> Self {
        let inputs = if is_sound { BTreeMap::new() } else { inputs::of_document(compiled) };
        Self { loops: compiled.loops().cloned().collect(), is_sound, inputs }
    }

    /// Adds those of a document.
    pub fn add(&mut self, others: &Self) {
        self.loops.extend(others.loops.iter().cloned());
        self.is_sound &= others.is_sound;
        for (name, schemas) in &others.inputs {
            self.inputs.entry(name.clone()).or_default().extend(schemas.iter().cloned());
        }
    }
}

/// What loops have against the replies of a script beside them. Where several loops may be meant, each of them must
/// refuse a reply.
pub fn script_calls(document: &Document, ScriptedLoops { loops, is_sound, inputs }: &ScriptedLoops) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let is_unread = document.faults.iter().any(|fault| fault.is_error() && fault.code < codes::UNKNOWN_FIELD);
    if document.kind != Some(DocumentKind::Script) || is_unread {
        return found;
    }
    let mut all: Vec<&Program> = loops.iter().flat_map(|program| programs(program)).collect();
    all.dedup_by_key(|program| std::ptr::from_ref(*program));
    for call in calls(document) {
        if found.len() >= MAX_FAULTS {
            break;
        }
        let own: Vec<&Program> =
            all.iter().copied().filter(|program| call.of.is_none_or(|name| program.name == name)).collect();
        if call.tool == RUN_WORKFLOW {
            // A workflow with an error is left out of the loop that has it.
            found.extend(is_sound.then(|| unknown_workflow(document, &call, &own, &all)).flatten());
        } else {
            let tools = own.iter().filter_map(|program| program.tool(call.tool)).map(|tool: &Tool| &tool.parameters);
            let others = inputs.get(call.tool).into_iter().flatten().map(|schema| &**schema);
            refused(document, &call, tools.chain(others), &mut found);
        }
    }
    found.extend(replies(document, &all, MAX_FAULTS.saturating_sub(found.len())));
    found.extend(cases(document, &all, MAX_FAULTS.saturating_sub(found.len())));
    found
}

/// A list of replies in a script.
struct ReplyList<'s> {
    pointer: String,
    /// The loop whose replies they are; nothing when they are of any.
    of: Option<&'s str>,
    replies: &'s [Value],
}

/// All lists of replies in a script that can be read.
fn lists(document: &Document) -> Vec<ReplyList<'_>> {
    let script = &document.value;
    let loops = script.get("loops").and_then(Value::as_object).into_iter().flatten();
    let loops = loops.map(|(name, replies)| ReplyList {
        pointer: format!("/loops/{}", token(name)),
        of: Some(name.as_str()),
        replies: items(Some(replies)),
    });
    let first = ReplyList { pointer: "/replies".to_owned(), of: None, replies: items(script.get("replies")) };
    let cases = items(script.get("cases")).iter().enumerate();
    let cases = cases.map(|(at, case)| ReplyList {
        pointer: format!("/cases/{at}/replies"),
        of: None,
        replies: items(case.get("replies")),
    });
    std::iter::once(first).chain(cases).chain(loops).filter(|list| !document.unknown.holds(&list.pointer)).collect()
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn calls(document: &Document) -> Vec<ScriptedCall<'_>> {
    let mut found = Vec::new();
    for ReplyList { pointer, of, replies } in lists(document) {
        of_replies(replies, &pointer, of, &mut found);
    }
    found
}

fn of_replies<'s>(replies: &'s [Value], pointer: &str, of: Option<&'s str>, found: &mut Vec<ScriptedCall<'s>>) {
    for (index, reply) in replies.iter().enumerate() {
        let at = format!("{pointer}/{index}");
        let several = reply.get("calls").and_then(Value::as_array).into_iter().flatten().enumerate();
        let several = several.map(|(index, call)| (format!("{at}/calls/{index}"), call));
        for (at, call) in std::iter::once((at.clone(), reply)).chain(several) {
            if let Some(tool) = call.get("action").and_then(Value::as_str) {
                found.push(ScriptedCall { at, tool, input: call.get("action_input"), of });
            }
        }
    }
}

/// The workflows that the replies of a scenario call in Hyphen's old way and that the tested document does not have.
pub(super) fn unknown_workflows(
    document: &Document,
    replies: &[Value],
    pointer: &str,
    tested: &Program,
) -> Vec<Diagnostic> {
    let mut calls = Vec::new();
    of_replies(replies, pointer, None, &mut calls);
    let old = calls.iter().filter(|call| call.tool == RUN_WORKFLOW);
    old.filter_map(|call| unknown_workflow(document, call, &programs(tested), &[])).take(MAX_FAULTS).collect()
}

/// How often an input is read again: a text may hold the JSON of a text.
const MAX_READINGS: usize = 4;

/// Whether an input fits once its texts that are JSON, or its numbers and truth values, are read as what the schema wants. A run reads
/// more than that; of what it reads so, nothing can be said here.
fn is_read_otherwise(schema: &Schema, input: &Value) -> bool {
    let mut read = input.clone();
    for _ in 0..MAX_READINGS {
        let faults = schema.faults(&read);
        if faults.is_empty() {
            return true;
        }
        let mut is_changed = false;
        for fault in &faults {
            let Some(part) = read.pointer_mut(&fault.path) else { continue };
            let other = match &*part {
                Value::String(text) => json_text::read::<Value>(text).ok().filter(|value| !value.is_string()),
                Value::Number(_) | Value::Bool(_) => Some(Value::String(part.to_string())),
                _ => None,
            };
            if let Some(other) = other {
                *part = other;
                is_changed = true;
            }
        }
        if !is_changed {
            return false;
        }
    }
    false
}

/// The faults of an input that every tool of the name refuses.
fn refused<'s>(
    document: &Document,
    call: &ScriptedCall<'_>,
    schemas: impl Iterator<Item = &'s Schema>,
    found: &mut Vec<Diagnostic>,
) {
    let none = Value::Object(Map::new());
    let input = call.input.unwrap_or(&none);
    // An input that is no object is no call.
    if !input.is_object() {
        return;
    }
    // A run leaves out nulls where it may, and reads values that are written otherwise.
    let faults = |schema: &Schema| match without_nulls(schema, input) {
        Some(_) => Vec::new(),
        None if is_read_otherwise(schema, input) => Vec::new(),
        None => schema.faults(input),
    };
    let mut faults = schemas.map(faults);
    let Some(first) = faults.next().filter(|first| !first.is_empty()) else { return };
    if faults.any(|others| others.is_empty()) {
        return;
    }
    // One fault of an object is the other end of the next one: a name that it lacks, and one that it does not know.
    let (near, others): (Vec<_>, Vec<_>) = first.into_iter().partition(|fault| fault.near.is_some());
    let mut reported = BTreeSet::new();
    for fault in near.into_iter().chain(others).take(MAX_OF_CALL) {
        let (pointer, place) = place(document, call, &fault.path);
        if !reported.insert(pointer.clone()) {
            continue;
        }
        let why = fault.about_whole("its input");
        let message = format!("the call of `{}` is refused: {why}", call.tool);
        let fault = Diagnostic::warning(codes::SCRIPT_INPUT, message, pointer, place);
        found.push(fault.help("the model reads that, and the tool is not called: write what its schema allows"));
    }
}

/// The place of a part of a call's input: that of the input, or of the call, where it is not written.
fn place(document: &Document, call: &ScriptedCall<'_>, path: &str) -> (String, Place) {
    let pointers = [format!("{}/action_input{path}", call.at), format!("{}/action_input", call.at)];
    let written = pointers.into_iter().find(|pointer| document.tree.at(pointer).is_some());
    let pointer = written.unwrap_or_else(|| format!("{}/action", call.at));
    let place = Cursor::new(&document.tree, pointer.as_str()).place();
    (pointer, place)
}

/// A workflow that is called in Hyphen's old way, and that no loop has as a tool; or, where no loop has one, that no
/// document of the folder is.
fn unknown_workflow(
    document: &Document,
    call: &ScriptedCall<'_>,
    loops: &[&Program],
    folder: &[&Program],
) -> Option<Diagnostic> {
    let mut workflows: Vec<(&str, &FlowProgram)> = loops.iter().flat_map(|program| workflows(program)).collect();
    let are_tools = !workflows.is_empty();
    if !are_tools {
        let own = folder.iter().filter_map(|program| Some((program.name.as_str(), program.as_flow()?)));
        workflows.extend(own.filter(|(_, flow)| flow.is_workflow()));
    }
    // Without any, the script belongs to others.
    let known = |key: &str| match key {
        "workflow_id" => workflows.iter().filter_map(|(_, flow)| flow.id.as_deref()).collect::<Vec<_>>(),
        _ => workflows.iter().map(|(name, _)| *name).collect(),
    };
    for key in ["workflow_id", "workflow_name"] {
        let Some(name) = call.input.and_then(|input| input.get(key)?.as_str()) else { continue };
        let known = known(key);
        if workflows.is_empty() || known.contains(&name) {
            continue;
        }
        let (pointer, place) = place(document, call, &format!("/{key}"));
        let what = if key == "workflow_id" { "id" } else { "name" };
        let who = if are_tools { "loop has a workflow" } else { "document is a workflow" };
        let message = format!("no {who} with the {what} `{name}`: the call would be refused");
        let fault = Diagnostic::error(codes::UNKNOWN_WORKFLOW, message, pointer, place);
        return Some(match nearest(name, known.iter().copied()) {
            Some(near) => fault.help(format!("the nearest one is `{near}`")).suggest(quoted(near)),
            None if known.is_empty() => fault.help("the workflows have no `id`: call one by its `workflow_name`"),
            None => fault.help(format!("there are `{}`", known.join("`, `"))),
        });
    }
    None
}

/// The tools of a loop that are workflows, by name.
fn workflows(program: &Program) -> impl Iterator<Item = (&str, &FlowProgram)> {
    program.tools().iter().filter_map(|tool| {
        let flow = tool.called_loop().or(tool.launched())?.as_flow()?;
        flow.is_workflow().then_some((tool.name.as_str(), flow))
    })
}
