//! Binding: a run's input meets the loop that takes it.

use serde_json::{Map, Value};

use super::Program;
use super::reference::Scope;
use crate::diagnostic::{Diagnostic, Place, Source, codes};

/// A loop with its input.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The input: what was given, and what the document itself brings beneath it.
    pub input: Value,
    /// The objective, rendered.
    pub objective: String,
}

/// Takes a run's input: `now` (RFC 3339) and `run_id` are what the objective may name beside it.
///
/// # Errors
/// Every fault of the input, with its path in it, and every input that the objective needs and
/// nobody gave. They stand at the beginning of the document.
pub fn bind(program: &Program, input: &Value, now: &str, run_id: &str) -> Result<Bound, Vec<Diagnostic>> {
    let place = program.sources.first().map_or_else(|| Source::new("-", "").whole(), Source::whole);
    let given = match input {
        Value::Object(given) => given.clone(),
        Value::Null => Map::new(),
        _ => {
            let fault = Diagnostic::error(codes::BAD_INPUT, "the input of a run must be a JSON object", "", place);
            return Err(vec![fault.help("give its names one by one, as in --input name=value")]);
        }
    };
    let mut merged = program.default_input.clone().unwrap_or_default();
    merged.extend(given);
    let input = Value::Object(merged);
    let mut faults = schema_faults(program, &input, &place);
    if faults.is_empty() {
        faults = missing_in_tools(program, &input, &place);
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let scope = Scope { arguments: &Value::Null, input: &input, now, run_id, extra: &[], secrets: None };
    match program.objective.render(&scope) {
        Ok(objective) => Ok(Bound { objective, input }),
        Err(unresolved) => {
            let mut faults = missing_in_objective(program, &input, &place);
            if faults.is_empty() {
                let message = format!("the objective can't be made: {unresolved}");
                faults.push(Diagnostic::error(codes::MISSING_INPUT, message, "", place));
            }
            Err(faults)
        }
    }
}

fn schema_faults(program: &Program, input: &Value, place: &Place) -> Vec<Diagnostic> {
    let Some(schema) = &program.input else { return Vec::new() };
    let required = schema.source().get("required").and_then(Value::as_array).into_iter().flatten();
    let absent: Vec<&str> = required.filter_map(Value::as_str).filter(|name| input.get(name).is_none()).collect();
    let mut faults: Vec<Diagnostic> = absent
        .iter()
        .map(|name| missing(name, format!("the loop's input needs `{name}`, and it was not given"), place))
        .collect();
    for fault in schema.faults(input) {
        // That these are missing is told already, with what to do about it.
        let told = fault.path.is_empty() && absent.iter().any(|name| fault.message.contains(*name));
        if !told {
            let message = match fault.message.strip_prefix("the value ") {
                Some(rest) if fault.path.is_empty() => format!("the input {rest}"),
                _ => format!("the input does not fit: {}", fault.message),
            };
            faults.push(Diagnostic::error(codes::BAD_INPUT, message, fault.path, place.clone()));
        }
    }
    faults
}

fn missing_in_objective(program: &Program, input: &Value, place: &Place) -> Vec<Diagnostic> {
    let mut told: Vec<&str> = Vec::new();
    let mut faults = Vec::new();
    for variable in program.objective.variables() {
        let [first, name, ..] = variable.path.as_slice() else { continue };
        if first == "input" && input.get(name).is_none() && !told.contains(&name.as_str()) {
            told.push(name);
            faults.push(missing(name, format!("the objective needs `input.{name}`, and it was not given"), place));
        }
    }
    faults
}

fn missing(name: &str, message: String, place: &Place) -> Diagnostic {
    Diagnostic::error(codes::MISSING_INPUT, message, format!("/{}", super::parse::token(name)), place.clone())
        .help(format!("give it: --input {name}=..."))
}

/// The inputs that the tools' own templates need: what a call would miss is told before the first one.
fn missing_in_tools(program: &Program, input: &Value, place: &Place) -> Vec<Diagnostic> {
    let mut told: Vec<String> = Vec::new();
    let mut faults = Vec::new();
    for tool in &program.tools {
        for variable in tool.variables().iter().filter(|variable| !variable.optional) {
            let [first, name, ..] = variable.path.as_slice() else { continue };
            if first == "input" && input.get(name).is_none() && !told.contains(name) {
                told.push(name.clone());
                let message = format!("the tool `{}` needs `input.{name}`, and it was not given", tool.name);
                faults.push(missing(name, message, place));
            }
        }
    }
    faults
}
