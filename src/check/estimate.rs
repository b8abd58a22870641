//! The least size of a request: the system prompt before anything happened.

use crate::program::Program;
use crate::program::template::Template;

/// Bytes of a token, estimated for English and JSON.
const BYTES_OF_A_TOKEN: usize = 4;

/// The tokens of a first request, estimated from what is sure to be in it: the objective, the
/// schema of the answer, and the tools with their schemas, where the system prompt names them. Values are counted as nothing.
pub fn first_request(program: &Program) -> u64 {
    let objective = text_bytes(&program.objective);
    let answer = program.answer.as_ref().map_or(0, |schema| schema.text().len());
    let bytes = match &program.system_prompt {
        None => objective + answer + tool_bytes(program),
        Some(prompt) => {
            let names = |name: &str| {
                let is = |first: &String| first == name;
                prompt.variables().iter().any(|variable| !variable.optional && variable.path.first().is_some_and(is))
            };
            let objective = if names("objective") { objective } else { 0 };
            let tools = if names("tools") { tool_bytes(program) } else { 0 };
            let answer = if names("dialect_instructions") { answer } else { 0 };
            text_bytes(prompt) + objective + answer + tools
        }
    };
    u64::try_from(bytes / BYTES_OF_A_TOKEN).unwrap_or(u64::MAX)
}

fn tool_bytes(program: &Program) -> usize {
    let of = |tool: &crate::program::Tool| {
        tool.name.len() + tool.description.len() + tool.parameters.source().to_string().len()
    };
    program.offered().map(of).sum()
}

/// The bytes of a template outside of its tags.
fn text_bytes(template: &Template) -> usize {
    let mut bytes = 0;
    let mut rest = template.source();
    while let Some((before, after)) = rest.split_once("{{") {
        bytes += before.len();
        rest = after.split_once("}}").map_or("", |(_, after)| after);
    }
    bytes + rest.len()
}
