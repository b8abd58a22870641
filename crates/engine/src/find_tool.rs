//! The tool that finds tools which are not offered yet. What it finds is offered from the next request on.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::dialect;
use super::event::ToolResult;
use super::reply::window;
use super::state::LoopState;
use loopctl_lang::program::builtin::FIND_TOOL;
use loopctl_lang::program::{LoopProgram, Program, Tool};

/// The most tools that one call finds.
const MAX_TOOLS: usize = 6;
/// The most characters of a description that is shown.
const MAX_DESCRIPTION: usize = 600;
/// The most bytes of a schema that is shown in short.
const MAX_OUTLINE: usize = 1_000;
/// The bytes that the result has beside the tools and the names of those that are offered.
const FRAME: usize = 100;

impl LoopState {
    /// The names of the tools that are offered now, of a loop that does not offer all; else none.
    pub fn selected_names(&self, program: &Program) -> Vec<String> {
        let (Some(selected), Some(program)) = (self.selected.as_deref(), program.as_loop()) else { return Vec::new() };
        program.offered_of(Some(selected)).map(|tool| tool.name.clone()).collect()
    }

    /// The first iteration in which a search for tools found others than it does in the state under another document: what is found
    /// is not in the journal, and the model has read it.
    pub fn differing_search(&self, other: &Self) -> Option<u32> {
        self.found_tools()
            .zip(other.found_tools())
            .find(|(one, other)| one != other)
            .map(|((iteration, _), _)| iteration)
    }

    /// The iterations in which the model searched for tools, with the names that it read then.
    fn found_tools(&self) -> impl Iterator<Item = (u32, Vec<Value>)> {
        let searches = self.entries.iter().filter(|entry| entry.action.as_deref() == Some(FIND_TOOL));
        searches.map(|entry| {
            let observation = entry.observation.value();
            let found = observation.get("tools").and_then(Value::as_array).into_iter().flatten();
            (entry.iteration, found.filter_map(|tool| tool.get("name").cloned()).collect())
        })
    }
}

/// Finds the tools that fit a query best, in a turn with this number of calls.
pub(super) fn run(program: &LoopProgram, state: &mut LoopState, query: &str, calls: usize) -> ToolResult {
    let is_native = dialect::is_native(program.properties.dialect);
    let ranked = program.tool_index().best(query, usize::MAX);
    if ranked.is_empty() {
        let why = "no tool has these words in its name or its description: say in other words what it is to do";
        return ToolResult::failed(why);
    }
    // In a dialect of texts, what was found earlier may no longer be in the history: it is shown again.
    let is_offered = |place: &usize| {
        let selected = state.selected.as_deref();
        selected.is_some_and(|selected| if is_native { selected.has(*place) } else { selected.is_fitting(*place) })
    };
    let tool = |place: &usize| program.tools.get(*place);
    let best = ranked.iter().take(MAX_TOOLS).filter(|place| is_offered(place));
    let offered: Vec<&str> = best.filter_map(tool).map(|tool| dialect::name_for_model(program, &tool.name)).collect();
    let new: Vec<usize> = ranked.iter().copied().filter(|place| !is_offered(place)).collect();
    let offered_bytes = offered.iter().map(|name| name.len() + 3).sum::<usize>();
    let room = window::observation_chars(program, state, calls).saturating_sub(offered_bytes + FRAME);
    let found: Vec<&Tool> = new.iter().take(MAX_TOOLS).filter_map(tool).collect();
    let shown = if is_native { declared(program, &found, room) } else { described(program, &found, query, room) };
    let (now, rest) = new.split_at(shown.len().min(new.len()));
    if let Some(selected) = &state.selected {
        state.selected = Some(Arc::new(selected.with(now)));
    }
    let mut members = Map::new();
    members.insert("tools".to_owned(), Value::from(shown));
    if !offered.is_empty() {
        members.insert("already_offered".to_owned(), Value::from(offered));
    }
    if !rest.is_empty() {
        members.insert("more_that_match".to_owned(), Value::from(rest.len()));
    }
    ToolResult::Ok(Value::Object(members))
}

/// The tools of native calls, whose schemas the next request has: as many as there is room for.
fn declared(program: &LoopProgram, found: &[&Tool], room: usize) -> Vec<Value> {
    let mut shown: Vec<Value> = found.iter().map(|tool| shown(program, tool, None)).collect();
    fit(&mut shown, room);
    shown
}

/// The tools with the schemas of their inputs, each in short where there is no room for all of it. A tool that is searched for by its
/// name is shown whole before others are shown at all.
fn described(program: &LoopProgram, found: &[&Tool], query: &str, room: usize) -> Vec<Value> {
    let short = |tool: &&Tool| shown(program, tool, Some(outline(tool.parameters.source())));
    let mut entries: Vec<Value> = found.iter().map(short).collect();
    fit(&mut entries, room);
    let mut used: usize = entries.iter().map(bytes).sum();
    let is_named = found.first().is_some_and(|tool| tool.name.to_lowercase() == query.trim().to_lowercase());
    if is_named && let Some(first) = found.first().map(|tool| shown(program, tool, Some(whole(tool)))) {
        let length = bytes(&first);
        let of_first = entries.first().map_or(0, bytes);
        while length <= room && used - of_first + length > room {
            used -= entries.pop().as_ref().map_or(0, bytes);
        }
    }
    for (entry, tool) in entries.iter_mut().zip(found) {
        let (short, all) = (bytes(entry), shown(program, tool, Some(whole(tool))));
        if used - short + bytes(&all) <= room {
            used = used - short + bytes(&all);
            *entry = all;
        } else if let Some(members) = entry.as_object_mut() {
            let why = match bytes(&all) <= room {
                true => "the input is shown in short: find this exact name to read it whole",
                false => "the input is shown in short",
            };
            members.insert("note".to_owned(), Value::from(why));
        }
    }
    entries
}

/// Leaves out the last ones for which there is no room; the first one stays.
fn fit(entries: &mut Vec<Value>, room: usize) {
    let mut used: usize = entries.iter().map(bytes).sum();
    while used > room && entries.len() > 1 {
        used -= entries.pop().as_ref().map_or(0, bytes);
    }
}

/// How long an entry of a list is, with the note of one that is shown in short.
fn bytes(entry: &Value) -> usize {
    entry.to_string().len() + 80
}

fn whole(tool: &Tool) -> Value {
    tool.parameters.source().clone()
}

/// A tool as the model reads of it, with what it says of its input.
fn shown(program: &LoopProgram, tool: &Tool, input: Option<Value>) -> Value {
    let mut members = Map::new();
    members.insert("name".to_owned(), Value::from(dialect::name_for_model(program, &tool.name)));
    let mut description: String = tool.description.chars().take(MAX_DESCRIPTION).collect();
    if description.len() < tool.description.len() {
        description.push('…');
    }
    members.insert("description".to_owned(), Value::from(description));
    members.extend(input.map(|input| ("input".to_owned(), input)));
    Value::Object(members)
}

/// A schema in short: the names of the properties with their types, those of objects in them as far as there is room, and which
/// are required.
fn outline(schema: &Value) -> Value {
    let is_short = |outline: &Value| outline.to_string().len() <= MAX_OUTLINE;
    if let Some(deep) = [3, 2].into_iter().map(|depth| part(schema, depth)).find(is_short) {
        return deep;
    }
    let mut flat = part(schema, 1);
    let required = flat.get("required").cloned();
    let is_required =
        |name: &str| required.as_ref().and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name));
    let mut length = flat.to_string().len();
    if let Some(properties) = flat.get_mut("properties").and_then(Value::as_object_mut) {
        let names: Vec<String> = properties.keys().rev().cloned().collect();
        for name in names.into_iter().filter(|name| !is_required(name)) {
            if length <= MAX_OUTLINE {
                break;
            }
            let removed = properties.remove(&name).map_or(0, |removed| removed.to_string().len());
            length = length.saturating_sub(removed + name.len() + 4);
        }
    }
    flat
}

fn part(schema: &Value, depth: usize) -> Value {
    let mut members = Map::new();
    for key in ["type", "required"] {
        members.extend(schema.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|_| depth > 0) {
        let parts = properties.iter().map(|(name, schema)| (name.clone(), part(schema, depth - 1)));
        members.insert("properties".to_owned(), Value::Object(parts.collect()));
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_in_short_has_the_names_the_types_and_what_is_required() {
        let schema = json!({ "type": "object", "description": "x".repeat(2_000), "required": ["body"], "properties": {
            "body": { "type": "object", "required": ["sum"], "properties": { "sum": { "type": "number", "minimum": 1 } } },
            "dry": { "type": "boolean", "description": "Whether nothing is done." },
        } });
        let expected = json!({ "type": "object", "required": ["body"], "properties": {
            "body": { "type": "object", "required": ["sum"], "properties": { "sum": { "type": "number" } } },
            "dry": { "type": "boolean" },
        } });
        assert_eq!(outline(&schema), expected);
    }

    #[test]
    fn a_schema_of_many_properties_keeps_what_is_required() {
        let properties: Map<String, Value> =
            (0..500).map(|number| (format!("property_{number}"), json!({ "type": "string" }))).collect();
        let short = outline(&json!({ "type": "object", "properties": properties, "required": ["property_499"] }));
        assert!(short["properties"].get("property_499").is_some() && short["properties"].get("property_0").is_some());
        assert!(short.to_string().len() <= MAX_OUTLINE, "{short}");
    }
}
