//! Compiles a loop of mode `react`: its tools, its prompts, its answer, the loops that it calls.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::catalog::Shelf;
use super::context::Context;
use super::declare::Declare;
use super::layout::{self, LoopLayout, unreadable};
use super::link::{self, Linker};
use super::prompt::Prompts;
use super::review::{ReviewedValues, review};
use super::{Texts, effort, names, tool};
use crate::diagnostic::{Diagnostic, few_of_many};
use crate::language::mcp_offer::McpOffer;
use crate::program::concurrency::ConcurrencyRule;
use crate::program::schema::Schema;
use crate::program::selected_tools::most;
use crate::program::template::{Template, ValueEscape};
use crate::program::tool_names::ToolNames;
use crate::program::{LoopProgram, ProgramHead, ToolKind, builtin};
use crate::syntax::document::Document;

/// The texts around a document.
pub(super) struct Around<'a> {
    pub(super) texts: &'a Texts,
    pub(super) shelf: &'a Shelf,
}

/// A loop of a document: its position, its head and the names that the steps before it write.
pub(super) struct ReadLoop<'r> {
    pub(super) layout: &'r LoopLayout,
    pub(super) head: Head,
    pub(super) context: &'r Context,
    /// Finds the actions that the loop names.
    pub(super) lookup: &'r Declare<'r>,
}

impl<'r> ReadLoop<'r> {
    /// A loop that is a step.
    pub(super) fn of_step(
        main: &Document,
        layout: &'r LoopLayout,
        context: &'r Context,
        lookup: &'r Declare<'r>,
    ) -> Self {
        let name = names::stem(&main.tree.source.name);
        Self { layout, head: Head::named(name), context, lookup }
    }
}

/// Compiles a loop: the main one of a document, or a step.
pub(super) fn react(
    calls: &mut Linker<'_>,
    around: &Around<'_>,
    main: &Document,
    ReadLoop { layout, head, context, lookup }: ReadLoop<'_>,
    faults: &mut Vec<Diagnostic>,
) -> Option<LoweredLoop> {
    if !calls.effort.spend(effort::LOOP) {
        faults.extend(calls.effort.too_much(&main.tree.source));
        return None;
    }
    let sound = !main.is_broken();
    let mut reading = Vec::new();
    let typed = layout.read(main).map_err(|error| reading.push(unreadable(main, &error))).ok();
    let defaults = if typed.is_some() { None } else { layout::defaults() };
    let mut declare = lookup.of_step(layout.clone(), typed.as_ref().or(defaults.as_ref())?);
    declare.all();
    faults.append(&mut declare.faults);
    let mut sources = vec![main.tree.source.clone()];
    sources.append(&mut declare.used);
    let mut tools = std::mem::take(&mut declare.tools);
    let called = std::mem::take(&mut declare.called);
    let shelf = around.shelf;
    let used: HashSet<Arc<str>> = sources.iter().map(|used| Arc::clone(&used.name)).collect();
    for document in shelf.beside.iter().chain(&shelf.given) {
        if used.contains(&document.tree.source.name) {
            faults.extend_from_slice(document.pasted());
        }
    }
    let mut prompts = Prompts::compile(main, layout, context, &calls.effort);
    faults.append(&mut prompts.faults);
    few_of_many(faults);
    let answer = schema(main, &layout.pointer("answer_schema"), ReviewedValues::Anything, faults);
    let link::MadeLoops { made, levels, is_whole } = calls.make(main, called, faults);
    // The shape reports why they can't be read, unless it found nothing.
    if sound {
        faults.append(&mut reading);
    }
    link::put(made, &mut tools, &mut sources);
    let is_whole = is_whole && sound && typed.is_some() && prompts.objective.is_some();
    let properties = typed.or(defaults)?;
    let declared = tools.iter().filter(|tool| !matches!(tool.kind, ToolKind::Builtin(_))).count();
    // Where all of them are offered, there is nothing to find.
    if properties.select.as_ref().is_some_and(|select| declared > most(select)) {
        tools.push(builtin::find_tool(declared));
    }
    let program = LoopProgram {
        head: ProgramHead {
            name: head.name,
            description: head.description,
            input: head.input,
            mcp: head.mcp,
            project: calls.settings.clone().unwrap_or_default(),
            sources,
            levels,
            timeout_ms: properties.timeout_ms,
            budget: properties.budget.clone(),
            concurrency: head.concurrency,
        },
        properties,
        objective: prompts.objective.or_else(|| Template::compile("", ValueEscape::Plain).ok())?,
        system_prompt: prompts.system_prompt,
        default_input: head.default_input,
        previous_run_id: head.previous_run_id,
        answer,
        called: ToolNames::of(tools.iter().map(|tool| tool.name.as_str())),
        turn_schema: OnceLock::new(),
        offered_tools: OnceLock::new(),
        tool_index: OnceLock::new(),
        tools,
        step: None,
    };
    Some(LoweredLoop { program, is_whole })
}

/// A loop as far as it can be compiled.
pub(super) struct LoweredLoop {
    /// The loop. Where a part has an error, it is left out, or its default takes its place.
    pub program: LoopProgram,
    /// Whether it has all its parts, so that it can run if nothing else has an error.
    pub is_whole: bool,
}

/// The parts of a document around the properties.
pub(super) struct Head {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) input: Option<Schema>,
    pub(super) mcp: McpOffer,
    pub(super) concurrency: Option<ConcurrencyRule>,
    pub(super) default_input: Option<Map<String, Value>>,
    pub(super) previous_run_id: Option<String>,
}

impl Head {
    /// A head with a name and nothing else.
    pub(super) fn named(name: String) -> Self {
        Self {
            name,
            description: None,
            input: None,
            mcp: McpOffer::default(),
            concurrency: None,
            default_input: None,
            previous_run_id: None,
        }
    }
}

/// The JSON Schema that the document holds at a pointer.
pub(super) fn schema(
    main: &Document,
    pointer: &str,
    about: ReviewedValues,
    faults: &mut Vec<Diagnostic>,
) -> Option<Schema> {
    let written = main.value.pointer(pointer).filter(|written| written.is_object())?;
    let examined = Schema::examine(&Arc::new(written.clone()));
    let refused: Vec<&str> = examined.faults.iter().map(|fault| fault.path.as_str()).collect();
    let review = review(written, about, &refused);
    let refused = examined.faults.into_iter().map(|fault| tool::bad_schema(written, fault));
    let found: Vec<Diagnostic> = refused.chain(review.faults).map(|fault| fault.placed(&main.tree, pointer)).collect();
    let is_sound = !found.iter().any(Diagnostic::is_error);
    faults.extend(found);
    examined.rest.filter(|_| is_sound)
}
