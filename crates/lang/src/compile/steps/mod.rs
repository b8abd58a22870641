//! Steps: those of workflows and of loops of mode `foreach`, and those in `onFalse`. Running them is not
//! there yet; what they say is judged all the same, each loop among them as if it were alone.

mod address;
mod bounds;
mod choose;
mod known_value;
mod named;
mod output;
mod provided;
mod result;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::layout::LoopLayout;
use super::tool::StepInput;
use crate::program::Program;
use crate::program::flow::ON_FAILURE;
use crate::program::template::ValueUse;
use crate::syntax::document::{Document, DocumentKind};

pub(crate) use address::properties_at;
pub(crate) use choose::{CaseList, case_lists, is_choice};
pub(crate) use known_value::{CELL_FORMAT, DeclaredText, JsonTypes, KnownValue, REPLY_FORMAT, listed};
pub(crate) use named::{NamedStep, named_document};
pub(crate) use output::{MAY_BE_MISSING, head, launched, text};
pub(crate) use provided::ProvidedStep;
pub(crate) use result::ListSource;
pub(crate) use result::{CHANGES, ROW_IDS, ROWS, of_action, of_tables};
pub(super) use walk::walk;

/// The most steps of a document that are looked at.
pub(super) const MAX_STEPS: usize = 1_000;

/// The steps of a document, as far as rules want to know of them.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// The loops of mode `react` among them.
    pub loops: Vec<Inner>,
    /// The registered actions that are steps themselves.
    pub actions: Vec<String>,
    /// The names in the `tools` of those loops.
    pub tools: Vec<String>,
    /// The JSON pointers of the values that hold texts: what steps are given, and their conditions.
    pub values: Vec<String>,
    /// The names that some step takes values from.
    pub names: BTreeSet<String>,
    /// The JSON pointers of all steps, in their order.
    pub places: Vec<String>,
    /// The JSON pointers of all conditions.
    pub conditions: Vec<String>,
    /// What is known of the values that `@paths` name, by the JSON pointers of these texts.
    pub known: BTreeMap<String, Arc<KnownValue>>,
    /// Texts of conditions that name a value and lack the `@`: the path that is meant, by the JSON pointer of the text.
    pub bare_paths: BTreeMap<String, String>,
    /// The texts that take parts of values whose schemas are known.
    pub typed: Vec<TypedText>,
    /// The schemas of the entries of the two lists of matchers, by the JSON pointer of the step.
    pub matchers: BTreeMap<String, [Value; 2]>,
    /// The JSON pointers of the lists that a query or a table may give in part, with what gives them.
    pub cut_lists: Vec<(String, ListSource)>,
    /// The schemas of the inputs of the actions that are steps, by name.
    pub inputs: HashMap<String, Option<Arc<StepInput>>>,
    /// The steps that run a document by its name, by JSON pointer.
    pub named: BTreeMap<String, NamedStep>,
    /// The tools of MCP servers, and of the program around the engine, that are steps, by the type of these steps.
    pub provided: BTreeMap<String, ProvidedStep>,
    /// The schema of what a run of the document answers, where it has steps.
    pub answer: Value,
}

/// A text that takes parts of values whose schemas are known.
#[derive(Debug)]
pub(crate) struct TypedText {
    /// The JSON pointer of the text.
    pub at: String,
    /// What it takes of them.
    pub uses: Vec<ValueUse>,
    /// The schemas of what steps write, by the first name of a path.
    pub schemas: Vec<(String, Arc<Value>)>,
}

impl TypedText {
    fn new(at: &str) -> Self {
        Self { at: at.to_owned(), uses: Vec::new(), schemas: Vec::new() }
    }
}

/// A loop that is a step.
#[derive(Debug)]
pub(crate) struct Inner {
    /// The places of its parts.
    pub layout: LoopLayout,
    /// What it means, when nothing is wrong with it.
    pub program: Option<Arc<Program>>,
}

/// The JSON pointers of the lists of steps, and of the lone steps, that a document holds.
pub(super) fn roots(document: &Document) -> Roots {
    let is = |at: &str| document.value.pointer(at).is_some();
    match document.kind {
        Some(DocumentKind::Workflow) => Roots { foreach: None, list: Some("/definition/actions"), lone: None },
        Some(DocumentKind::Loop) => Roots {
            foreach: is_foreach(document).then_some("/properties"),
            list: None,
            lone: is("/onFalse").then_some("/onFalse"),
        },
        _ => Roots { foreach: None, list: None, lone: None },
    }
}

/// The places of steps in a document.
pub(super) struct Roots {
    /// The properties of a loop of mode `foreach`.
    pub foreach: Option<&'static str>,
    /// A list of steps.
    pub list: Option<&'static str>,
    /// A step.
    pub lone: Option<&'static str>,
}

impl Roots {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.foreach.is_none() && self.list.is_none() && self.lone.is_none()
    }
}

/// Where a document says how many runs of it are under way at a time; none where one of its kind can't.
pub(crate) fn concurrency_at(document: &Document) -> Option<&'static str> {
    match document.kind? {
        DocumentKind::Workflow => Some("/definition/concurrency"),
        DocumentKind::Loop => Some("/concurrency"),
        _ => None,
    }
}

/// What the runs of a document that are counted together have in common, and its place.
pub(super) fn key_of_line(document: &Document) -> Option<(String, &Value)> {
    let at = format!("{}/key", concurrency_at(document)?);
    let key = document.value.pointer(&at)?;
    Some((at, key))
}

/// Whether a document is a loop of mode `foreach`.
pub(crate) fn is_foreach(document: &Document) -> bool {
    document.kind == Some(DocumentKind::Loop)
        && document.value.pointer("/properties/mode").and_then(Value::as_str) == Some("foreach")
}

/// The names of all actions that the steps of a document name, as steps or as tools of their loops; and
/// every tool declaration of these loops.
pub(super) fn named(document: &Document) -> (Vec<&str>, Vec<&Value>) {
    let (mut names, mut tools) = (Vec::new(), Vec::new());
    let roots = roots(document);
    let at = |pointer: Option<&str>| pointer.and_then(|pointer| document.value.pointer(pointer));
    if let Some(properties) = at(roots.foreach) {
        of_properties(properties, &mut names, &mut tools);
    }
    let lists = [at(roots.list), at(roots.list.map(|_| "/definition/on_failure"))];
    let steps = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
    for step in steps.chain(at(roots.lone)) {
        of_step(step, &mut names, &mut tools);
    }
    (names, tools)
}

/// The names of the steps of a document that are loops of mode `react`, by which scripts call their runs: an `id`, else a
/// `result_key`, else the number.
pub(super) fn names_of_loops(document: &Document) -> Vec<String> {
    let roots = roots(document);
    let mut names = Vec::new();
    if let Some(properties) = roots.foreach.and_then(|pointer| document.value.pointer(pointer)) {
        loops_of_list(properties.get("actions_to_execute"), &mut names);
        loops_of_list(properties.get(ON_FAILURE), &mut names);
    }
    if let Some(list) = roots.list {
        loops_of_list(document.value.pointer(list), &mut names);
        loops_of_list(document.value.pointer("/definition/on_failure"), &mut names);
    }
    names
}

/// A document is never deeper than its reader allows: the recursion ends.
fn loops_of_list(steps: Option<&Value>, names: &mut Vec<String>) {
    for (number, first) in steps.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let mut number = number.to_string();
        let mut next = Some(first);
        while let Some(step) = next {
            case_lists(step).iter().for_each(|case| loops_of_list(Some(case.steps), names));
            if named_document(step).is_some() || is_choice(step) {
                "onFalse".clone_into(&mut number);
                next = step.get("onFalse");
                continue;
            }
            let mode = step.pointer("/properties/mode").and_then(Value::as_str);
            if step.get("type").and_then(Value::as_str) == Some("loop") && mode != Some("foreach") {
                names.push(name_of_loop(step, &number).to_owned());
            }
            loops_of_list(step.pointer("/properties/actions_to_execute"), names);
            loops_of_list(step.pointer("/properties/on_failure"), names);
            "onFalse".clone_into(&mut number);
            next = step.get("onFalse");
        }
    }
}

/// The name of a loop that is a step: scripts and traces call its runs by it.
fn name_of_loop<'v>(step: &'v Value, number: &'v str) -> &'v str {
    let key = || step.pointer("/properties/result_key").and_then(Value::as_str);
    step.get("id").and_then(Value::as_str).or_else(key).unwrap_or(number)
}

fn of_step<'v>(step: &'v Value, names: &mut Vec<&'v str>, tools: &mut Vec<&'v Value>) {
    // A document is never deeper than its reader allows: the recursion ends.
    for inner in case_lists(step).iter().filter_map(|case| case.steps.as_array()).flatten() {
        of_step(inner, names, tools);
    }
    match (step.get("type").and_then(Value::as_str), step.get("properties")) {
        _ if is_choice(step) => {}
        _ if let Some((_, name)) = named_document(step) => names.push(name),
        (Some("loop"), Some(properties)) => of_properties(properties, names, tools),
        (Some(name), _) => names.push(name),
        (None, _) => {}
    }
    if let Some(otherwise) = step.get("onFalse") {
        of_step(otherwise, names, tools);
    }
}

fn of_properties<'v>(properties: &'v Value, names: &mut Vec<&'v str>, tools: &mut Vec<&'v Value>) {
    let lists = ["actions_to_execute", ON_FAILURE].into_iter().filter_map(|list| properties.get(list)?.as_array());
    for step in lists.flatten() {
        of_step(step, names, tools);
    }
    tools.extend(properties.get("tools").and_then(Value::as_array).into_iter().flatten());
}
