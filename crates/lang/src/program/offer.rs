//! The tools of a program as requests declare them. A provider refuses a whole request for one schema that it does not
//! take, so each schema is put into what all of them take: an object with `properties` and without alternatives at its
//! top, lists with `items`, names of members that they take. The input of a call is validated against the document's own
//! schema all the same.
//!
//! The rules are those of the servers of OpenAI, Anthropic and Google, by their documentation and refusals, read in
//! November 2026.

mod fold;
mod names;
mod references;
mod whole;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{LoopProgram, Tool, ToolKind};
use names::ParameterNames;

/// The most characters of what is said about a schema behind the description of its tool.
const MAX_NOTE: usize = 400;
/// The most characters of a description with such a note: those that all providers take.
const MAX_DESCRIPTION: usize = 1_000;

/// A tool as a request declares it.
#[derive(Debug)]
pub struct OfferedTool {
    /// Its name there.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The schema of its input, as JSON.
    pub parameters: Box<str>,
    /// Whether it is built in: the others can do without it least.
    pub is_builtin: bool,
    /// Its name in the document.
    tool: String,
    names: ParameterNames,
}

/// The tools of a program as requests declare them, in their order.
#[derive(Debug)]
pub struct OfferedTools(Vec<OfferedTool>);

impl OfferedTools {
    /// Those of a program.
    pub fn of(program: &LoopProgram) -> Self {
        Self(program.offered().map(|tool| OfferedTool::of(program, tool)).collect())
    }

    /// The tools that a request with at most this number of them declares: the first ones, and all built-in ones.
    pub fn at_most(&self, most: Option<usize>) -> impl Iterator<Item = &OfferedTool> {
        let built_in = self.0.iter().filter(|tool| tool.is_builtin).count();
        let mut room = most.map_or(usize::MAX, |most| most.saturating_sub(built_in));
        self.0.iter().filter(move |tool| {
            let is_declared = tool.is_builtin || room > 0;
            room = room.saturating_sub(usize::from(!tool.is_builtin));
            is_declared
        })
    }

    /// All of them.
    pub fn all(&self) -> &[OfferedTool] {
        &self.0
    }

    /// The input of a call with the names that the document has.
    pub fn own_input(&self, program: &LoopProgram, tool: &str, input: Value) -> Value {
        let offered = self.0.iter().find(|offered| offered.tool == tool);
        match (offered.filter(|offered| !offered.names.is_empty()), program.tool(tool)) {
            (Some(offered), Some(tool)) => offered.names.restored(input, tool.parameters.source()),
            _ => input,
        }
    }
}

impl OfferedTool {
    fn of(program: &LoopProgram, tool: &Tool) -> Self {
        let name = program.called.out(&tool.name);
        let mut description =
            if name == tool.name { tool.description.clone() } else { format!("{}: {}", tool.name, tool.description) };
        let TakenSchema { mut parameters, left_out, names } = taken(tool.parameters.source());
        if let Some(note) = left_out.map(|rules| note(&rules)) {
            let room = MAX_DESCRIPTION.saturating_sub(description.chars().count());
            if note.chars().count() < room.min(MAX_NOTE) {
                description = joined(&description, &note);
            } else {
                let before = parameters.get("description").and_then(Value::as_str).unwrap_or_default();
                let whole = Value::from(joined(before, &note));
                parameters.insert("description".to_owned(), whole);
            }
        }
        Self {
            name: name.to_owned(),
            description,
            parameters: Value::Object(parameters).to_string().into(),
            is_builtin: matches!(tool.kind, ToolKind::Builtin(_)),
            tool: tool.name.clone(),
            names,
        }
    }

    /// Its name in the document.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Its description, cut to this number of characters.
    pub fn short_description(&self, most: Option<usize>) -> Cow<'_, str> {
        let Some(most) = most.filter(|most| self.description.chars().count() > *most) else {
            return Cow::Borrowed(&self.description);
        };
        Cow::Owned(self.description.chars().take(most.saturating_sub(1)).chain(['…']).collect())
    }
}

fn joined(text: &str, note: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() { note.to_owned() } else { format!("{text}\n\n{note}") }
}

/// What a model must know of rules that no schema can say at its top.
fn note(rules: &Map<String, Value>) -> String {
    format!("The parameters must match this JSON Schema too: {}", Value::Object(rules.clone()))
}

/// A schema as all providers take it.
struct TakenSchema {
    parameters: Map<String, Value>,
    /// What it lacks of the rules at the top.
    left_out: Option<Map<String, Value>>,
    names: ParameterNames,
}

fn taken(schema: &Value) -> TakenSchema {
    let names = ParameterNames::of(schema);
    let renamed = names.renamed(schema);
    let mut members = match renamed {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    // A call's input is always an object. Where it may be other things too, it is not.
    members.insert("type".to_owned(), json!("object"));
    // A server reads all parts in the one draft that it knows.
    references::each_part(&mut members, &mut |part| drop(part.shift_remove("$schema")));
    let (mut folded, left_out) = fold::folded(members);
    folded.entry("properties").or_insert_with(|| json!({}));
    references::alone(&mut folded);
    TakenSchema { parameters: whole::members(folded), left_out, names }
}

#[cfg(test)]
mod tests;
