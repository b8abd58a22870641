//! The tools of a loop by name, and an example of a turn that calls one: for a model whose replies were refused twice in
//! a row, so that it does not read the same words again.

use serde_json::{Map, Value};

use super::{Saying, is_native, name_for_model, say};
use loopctl_lang::program::selected_tools::SelectedTools;
use loopctl_lang::program::{LoopProgram, Schema, Tool};

/// The most names that are listed.
const MAX_NAMES: usize = 50;
/// How deep an example of an input goes, and how many members an object of it has at most.
const MAX_DEPTH: usize = 4;
const MAX_MEMBERS: usize = 20;

/// The words behind the second refusal in a row.
pub fn example(program: &LoopProgram, selected: Option<&SelectedTools>) -> String {
    let offered = || program.offered_of(selected);
    let names: Vec<&str> = offered().take(MAX_NAMES).map(|tool| name_for_model(program, &tool.name)).collect();
    let tools = format!("The tools are: {}.", names.join(", "));
    let dialect = program.properties.dialect;
    // The form of a native call is the provider's.
    if is_native(dialect) {
        return format!("{tools} Call one of them by a real tool call.");
    }
    let called = offered().find_map(|tool| Some((tool.name.clone(), example_input(tool)?)));
    let turn = called.and_then(|call| {
        let thought = "why this is the right next step".to_owned();
        say(dialect, &Saying { thought, calls: vec![call], answer: None })
    });
    match turn {
        Some((text, _)) => format!("{tools} A whole turn looks like this, with values of your own:\n{text}"),
        None => tools,
    }
}

/// An input that the tool takes, when one can be made of its schema.
fn example_input(tool: &Tool) -> Option<Value> {
    sample_of(&tool.parameters, &|_| "...".to_owned()).filter(Value::is_object)
}

/// A value that matches a schema, when one can be made of it; `text` makes texts.
pub fn sample_of(schema: &Schema, text: &dyn Fn(&Value) -> String) -> Option<Value> {
    let value = Sample { text }.value(schema.source(), MAX_DEPTH);
    schema.faults(&value).is_empty().then_some(value)
}

/// Makes values of schemas.
struct Sample<'t> {
    text: &'t dyn Fn(&Value) -> String,
}

impl Sample<'_> {
    /// A value that probably matches a schema: what it names itself, else the simplest of its type.
    fn value(&self, schema: &Value, depth: usize) -> Value {
        let first = |name: &str| schema.get(name).and_then(|values| values.get(0));
        let named = schema.get("const").or_else(|| schema.get("default"));
        if let Some(value) = named.or_else(|| first("examples")).or_else(|| first("enum")) {
            return value.clone();
        }
        let number = || schema.get("minimum").cloned().unwrap_or_else(|| Value::from(1));
        match schema.get("type").and_then(Value::as_str).or_else(|| first("type").and_then(Value::as_str)) {
            Some("integer" | "number") => number(),
            Some("boolean") => Value::Bool(true),
            Some("null") => Value::Null,
            Some("array") => match schema.get("minItems").and_then(Value::as_u64) {
                Some(1..) if depth > 0 => {
                    Value::Array(vec![self.value(schema.get("items").unwrap_or(&Value::Null), depth - 1)])
                }
                _ => Value::Array(Vec::new()),
            },
            Some("string") => Value::from((self.text)(schema)),
            None if schema.get("properties").is_none() && depth < MAX_DEPTH => Value::from((self.text)(schema)),
            _ => Value::Object(if depth > 0 { self.members(schema, depth - 1) } else { Map::new() }),
        }
    }

    /// The members that an object must have.
    fn members(&self, schema: &Value, depth: usize) -> Map<String, Value> {
        let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let names = required.iter().filter_map(Value::as_str).take(MAX_MEMBERS);
        let schema_of = |name: &str| schema.get("properties").and_then(|all| all.get(name)).unwrap_or(&Value::Null);
        names.map(|name| (name.to_owned(), self.value(schema_of(name), depth))).collect()
    }
}
