//! The least size of a request: the system prompt before anything happened.

use std::collections::HashSet;

use super::Subject;
use crate::program::template::{Template, ValueEscape};
use crate::program::{LoopProgram, Tool, ToolKind, builtin};
use crate::syntax::Node;

/// Bytes of a token, estimated for English and JSON.
const BYTES_OF_A_TOKEN: usize = 4;

/// What is sure to be in a first request, in bytes.
struct FirstRequest {
    objective: usize,
    answer: usize,
    tools: usize,
    prompt: Option<Prompt>,
}

/// A system prompt of the document's own.
struct Prompt {
    bytes: usize,
    /// The values that it needs.
    names: HashSet<String>,
}

impl Prompt {
    fn of(template: &Template) -> Self {
        let needed = template.variables().iter().filter(|variable| !variable.optional);
        let names = needed.filter_map(|variable| variable.path.first().cloned()).collect();
        Self { bytes: text_bytes(template.source()), names }
    }
}

/// The tokens of a first request, estimated from what is sure to be in it: the objective, the
/// schema of the answer, and the tools with their schemas, where the system prompt names them. Values are counted as
/// nothing, and so are the parts that have errors.
pub fn first_request(subject: &Subject<'_>) -> Option<u64> {
    let FirstRequest { objective, answer, tools, prompt } = match subject.program() {
        Some(program) => of_program(program.as_loop()?),
        None => of_document(subject)?,
    };
    let bytes = match prompt {
        None => objective + answer + tools,
        Some(prompt) => {
            let named = [("objective", objective), ("tools", tools), ("dialect_instructions", answer)];
            let named = named.into_iter().filter(|(name, _)| prompt.names.contains(*name));
            prompt.bytes + named.map(|(_, bytes)| bytes).sum::<usize>()
        }
    };
    Some(u64::try_from(bytes / BYTES_OF_A_TOKEN).unwrap_or(u64::MAX))
}

fn of_program(program: &LoopProgram) -> FirstRequest {
    FirstRequest {
        objective: text_bytes(program.objective.source()),
        answer: program.answer.as_ref().map_or(0, |schema| schema.text().len()),
        tools: least_tools(program),
        prompt: program.system_prompt.as_ref().map(Prompt::of),
    }
}

/// The bytes of the tools that are sure to be offered: of a loop that selects some, the built-in ones.
fn least_tools(program: &LoopProgram) -> usize {
    let selects = program.selection().is_some();
    let is_sure = |tool: &&Tool| !selects || matches!(tool.kind, ToolKind::Builtin(_));
    program.offered().filter(is_sure).map(tool_bytes).sum()
}

fn tool_bytes(tool: &Tool) -> usize {
    tool.name.len() + tool.description.len() + tool.parameters.source().to_string().len()
}

/// The same of a document with errors; nothing where the system prompt is not known.
fn of_document(subject: &Subject<'_>) -> Option<FirstRequest> {
    let properties = subject.react(&["system_prompt", "builtins"])?;
    let written = |name: &str| subject.property(name)?.node().map(Node::value);
    let prompt = match subject.property("system_prompt") {
        Some(_) => Some(Prompt::of(&Template::compile(properties.system_prompt.as_ref()?, ValueEscape::Plain).ok()?)),
        None => None,
    };
    let objective = written("objective").and_then(|text| Some(text_bytes(text.as_str()?)));
    let own = subject.actions().iter().map(|used| {
        let parameters = used.written().get("parameters").map_or(0, |schema| schema.to_string().len());
        used.name().len() + used.action.head().description.map_or(0, str::len) + parameters
    });
    let builtins = builtin::of(properties.builtins.as_deref())
        .iter()
        .filter(|tool| tool.is_offered())
        .map(tool_bytes)
        .sum::<usize>();
    Some(FirstRequest {
        objective: objective.unwrap_or(0),
        answer: written("answer_schema").map_or(0, |schema| schema.to_string().len()),
        tools: own.sum::<usize>() + builtins,
        prompt,
    })
}

/// The bytes of a template outside of its tags.
fn text_bytes(template: &str) -> usize {
    let mut bytes = 0;
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        bytes += before.len();
        rest = after.split_once("}}").map_or("", |(_, after)| after);
    }
    bytes + rest.len()
}
