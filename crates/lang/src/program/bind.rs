//! Binds the input of a run to the loop.

pub mod run_input;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::run_input::RunInput;
use super::Program;
use super::null_member;
use super::reference::Scope;
use super::template::{Template, Variable};
use crate::diagnostic::{Diagnostic, Help, Place, Remedy, Source, codes, nearest};
use crate::program::json_texts::JsonRule;
use crate::syntax;

/// A loop with its input.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The input: the given one, over the document's own.
    pub input: RunInput,
    /// The objective, rendered.
    pub objective: String,
}

/// Binds the input of a run. The objective may also use `now` (RFC 3339) and `run_id`.
///
/// # Errors
/// All faults of the input, with their paths in it, and every input that the objective needs and that is
/// missing. Their place is where the document names that input.
pub fn bind(program: &Program, input: impl Into<RunInput>, now: &str, run_id: &str) -> Result<Bound, Vec<Diagnostic>> {
    bound(program, input.into(), now, run_id).map_err(|faults| placed(program, faults))
}

/// A fault of an input, at its place in the document.
pub fn refused_input(program: &Program, path: &str, message: String) -> Vec<Diagnostic> {
    let place = program.sources.first().map_or_else(|| Source::new("-", "").whole(), Source::whole);
    placed(program, vec![Diagnostic::error(codes::BAD_INPUT, message, path, place)])
}

/// The faults at their places in the document: in its `input`, or in its objective.
fn placed(program: &Program, mut faults: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let Some(source) = program.sources.first() else { return faults };
    let (tree, _) = syntax::parse(source);
    for fault in &mut faults {
        let name = fault.path.split('/').nth(1).unwrap_or_default();
        let property = format!("/input/properties/{name}");
        let variables = program.objective().into_iter().flat_map(Template::variables);
        let in_objective = variables.filter(|variable| variable.path.first().is_some_and(|first| first == "input"));
        let named =
            in_objective.into_iter().find(|variable| variable.path.get(1).is_some_and(|at| syntax::token(at) == name));
        let objective = ["/properties/objective", "/objective"].into_iter().find(|at| tree.at(at).is_some());
        // In an agent request, `input` is a value and no schema.
        let schema = program.input.is_some();
        fault.place = match (named, objective) {
            _ if schema && !name.is_empty() && tree.at(&property).is_some() => tree.key_place(&property),
            (Some(variable), Some(objective)) => tree.place_inside(objective, &variable.range),
            _ if schema => tree.key_place("/input"),
            _ => continue,
        };
    }
    faults
}

/// The input without the nulls of members that may be left out, and that the schema does not take: who writes an empty field means that.
fn without_nulls(program: &Program, input: RunInput) -> RunInput {
    let Some(schema) = program.input.as_ref().filter(|_| program.step().is_none() && has_null(&input.value)) else {
        return input;
    };
    let Some(read) = null_member::without_nulls(schema, &input.whole()) else { return input };
    let RunInput { mut value, lists } = input;
    if lists.is_empty() {
        return RunInput { value: read, lists };
    }
    // A list that is kept as its text has null in its place.
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, member| !member.is_null() || read.get(name).is_some());
    }
    RunInput { value, lists }
}

/// Whether a member at any depth is null. Inputs are bounded in depth: the recursion ends.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(|member| member.is_null() || has_null(member)),
        Value::Array(entries) => entries.iter().any(has_null),
        _ => false,
    }
}

fn bound(program: &Program, input: RunInput, now: &str, run_id: &str) -> Result<Bound, Vec<Diagnostic>> {
    let place = program.sources.first().map_or_else(|| Source::new("-", "").whole(), Source::whole);
    let RunInput { value, lists } = input;
    let given = match value {
        Value::Object(given) => given,
        Value::Null => Map::new(),
        _ => {
            let fault = Diagnostic::error(codes::BAD_INPUT, "the input of a run must be a JSON object", "", place);
            return Err(vec![fault.help(Remedy::GiveInputByName)]);
        }
    };
    let value = match program.default_input().cloned() {
        None => Value::Object(given),
        Some(mut merged) => {
            merged.extend(given);
            Value::Object(merged)
        }
    };
    let input = without_nulls(program, RunInput { value, lists });
    // A schema judges a list as a whole.
    let judged = if program.input.is_some() { input.whole() } else { Cow::Borrowed(&input.value) };
    let binding = Binding { program, input: &judged, place: &place };
    // The input of a step has what its texts use, as far as the workflow has it.
    if program.step().is_none() {
        let mut faults = binding.schema_faults();
        if faults.is_empty() {
            faults = binding.missing_in_tools();
        }
        if !faults.is_empty() {
            return Err(faults);
        }
    }
    let Some(of_loop) = program.as_loop() else {
        drop(judged);
        return Ok(Bound { objective: String::new(), input });
    };
    let names = of_loop.step.as_ref().and(input.value.as_object());
    let scope = Scope {
        context: names.as_slice(),
        lists: Some(&input.lists),
        now,
        run_id,
        ..Scope::of_input(of_loop.input_of(&input.value), JsonRule::PRESENT.into())
    };
    match of_loop.objective.render(&scope) {
        Ok(objective) => {
            drop(judged);
            Ok(Bound { objective, input })
        }
        Err(unresolved) => {
            let mut faults = binding.missing_in_objective();
            if faults.is_empty() {
                let message = format!("the objective can't be made: {unresolved}");
                faults.push(Diagnostic::error(codes::MISSING_INPUT, message, "", place));
            }
            Err(faults)
        }
    }
}

/// An input for a loop, and the place at which its faults are reported.
struct Binding<'a> {
    program: &'a Program,
    input: &'a Value,
    place: &'a Place,
}

impl Binding<'_> {
    fn schema_faults(&self) -> Vec<Diagnostic> {
        let Some(schema) = &self.program.input else { return Vec::new() };
        let required = schema.source().get("required").and_then(Value::as_array).into_iter().flatten();
        let absent: Vec<&str> =
            required.filter_map(Value::as_str).filter(|name| self.input.get(name).is_none()).collect();
        let of = if self.program.is_flow() { "workflow" } else { "loop" };
        let needs = |name: &&str| self.missing(name, format!("the {of}'s input needs `{name}`, and it was not given"));
        let mut faults: Vec<Diagnostic> = absent.iter().map(needs).collect();
        for fault in schema.faults(self.input) {
            // The missing ones are reported already, with a help.
            let reported = fault.path.is_empty() && absent.iter().any(|name| fault.message.contains(*name));
            if !reported {
                let message = match fault.message.strip_prefix("the value ") {
                    Some(rest) if fault.path.is_empty() => format!("the input {rest}"),
                    _ => format!("the input does not fit: {}", fault.message),
                };
                faults.push(Diagnostic::error(codes::BAD_INPUT, message, fault.path, self.place.clone()));
            }
        }
        faults
    }

    fn missing_in_objective(&self) -> Vec<Diagnostic> {
        let mut reported: Vec<&str> = Vec::new();
        let mut faults = Vec::new();
        for variable in self.program.objective().into_iter().flat_map(Template::variables) {
            let [first, name, ..] = variable.path.as_slice() else { continue };
            if first == "input" && self.input.get(name).is_none() && !reported.contains(&name.as_str()) {
                reported.push(name);
                let message = format!("the objective needs `input.{name}`, and it was not given");
                faults.push(self.missing(name, message));
            }
        }
        faults
    }

    /// The inputs that the templates of the tools need: reported before the first call, which would lack them.
    fn missing_in_tools(&self) -> Vec<Diagnostic> {
        let mut reported: Vec<String> = Vec::new();
        let mut faults = Vec::new();
        for tool in self.program.tools() {
            for variable in tool.variables().iter().filter(|variable| !variable.optional) {
                let [first, name, ..] = variable.path.as_slice() else { continue };
                if first == "input" && self.input.get(name).is_none() && !reported.contains(name) {
                    reported.push(name.clone());
                    let message = format!("the tool `{}` needs `input.{name}`, and it was not given", tool.name);
                    faults.push(self.missing(name, message));
                }
            }
        }
        faults
    }

    fn missing(&self, name: &str, message: String) -> Diagnostic {
        // A given name that the document does not have and that is near: most likely misspelt.
        let given = self.input.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let before = match nearest(name, given.filter(|given| !is_known(self.program, given))) {
            Some(given) => format!("`{given}` was given, which the loop does not have: write "),
            None => "give it: ".to_owned(),
        };
        let help = Help::ending(before, Remedy::GiveInput(name.to_owned()));
        let path = format!("/{}", syntax::token(name));
        Diagnostic::error(codes::MISSING_INPUT, message, path, self.place.clone()).help(help)
    }
}

/// Whether the document has an input of this name.
fn is_known(program: &Program, name: &str) -> bool {
    let schema = program.input.as_ref().and_then(|schema| schema.source().get("properties"));
    let names = |variable: &Variable| matches!(variable.path.as_slice(), [first, second, ..] if first == "input" && second == name);
    schema.is_some_and(|properties| properties.get(name).is_some())
        || program.objective().is_some_and(|objective| objective.variables().iter().any(names))
        || program.tools().iter().any(|tool| tool.variables().iter().any(names))
}
