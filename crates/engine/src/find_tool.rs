//! The tool that finds tools which are not offered yet. What it finds is offered from the next request on.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::dialect;
use super::event::ToolResult;
use super::state::LoopState;
use loopctl_lang::program::{LoopProgram, Program, Tool};

/// The most tools that one call finds.
const MAX_TOOLS: usize = 6;
/// The most characters of a description that is shown.
const MAX_DESCRIPTION: usize = 600;

impl LoopState {
    /// The names of the tools that are offered now, of a loop that does not offer all; else none.
    pub fn selected_names(&self, program: &Program) -> Vec<String> {
        let (Some(selected), Some(program)) = (self.selected.as_deref(), program.as_loop()) else { return Vec::new() };
        program.offered_of(Some(selected)).map(|tool| tool.name.clone()).collect()
    }
}

/// Finds the tools that fit a query best.
pub(super) fn run(program: &LoopProgram, state: &mut LoopState, query: &str) -> ToolResult {
    let places = program.tool_index().best(query, MAX_TOOLS);
    let found: Vec<&Tool> = places.iter().filter_map(|place| program.tools.get(*place)).collect();
    if found.is_empty() {
        let why = "no tool has these words in its name or its description: say in other words what it is to do";
        return ToolResult::failed(why);
    }
    if let Some(selected) = &state.selected {
        state.selected = Some(Arc::new(selected.with(&places)));
    }
    // Native calls have their schemas in the request.
    let mut room = match dialect::is_native(program.properties.dialect) {
        true => None,
        false => Some(program.properties.max_observation_chars / 4 * 3),
    };
    let shown: Vec<Value> = found.into_iter().map(|tool| shown(program, tool, &mut room)).collect();
    ToolResult::Ok(json!({ "tools": shown }))
}

/// A tool as the model reads of it; `room`: how many bytes the schemas may have that are still to be shown.
fn shown(program: &LoopProgram, tool: &Tool, room: &mut Option<usize>) -> Value {
    let mut members = Map::new();
    members.insert("name".to_owned(), Value::from(dialect::name_for_model(program, &tool.name)));
    let mut description: String = tool.description.chars().take(MAX_DESCRIPTION).collect();
    if description.len() < tool.description.len() {
        description.push('…');
    }
    members.insert("description".to_owned(), Value::from(description));
    if let Some(room) = room {
        let length = tool.parameters.text().len();
        let input = match room.checked_sub(length) {
            Some(rest) => {
                *room = rest;
                tool.parameters.source().clone()
            }
            None => Value::from("too long to be shown here: call the tool, and read what is wrong with the input"),
        };
        members.insert("input".to_owned(), input);
    }
    Value::Object(members)
}
