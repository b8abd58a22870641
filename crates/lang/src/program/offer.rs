//! The tools of a program as requests declare them. A provider refuses a whole request for one schema that it does not
//! take, so each schema is put into what all of them take: an object with `properties` and without alternatives at its
//! top, lists with `items`, names of members that they take. The input of a call is validated against the document's own
//! schema all the same.
//!
//! The rules are those of the servers of OpenAI, Anthropic and Google, by their documentation and refusals, read in
//! November 2026.

mod missing_keywords;
mod names;
mod references;
mod top_object;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::selected_tools::SelectedTools;
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
    /// Its place among the tools of the program.
    place: usize,
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
        let places = program.tools.iter().enumerate().filter(|(_, tool)| tool.is_offered());
        Self(places.map(|(place, tool)| OfferedTool { place, ..OfferedTool::of(program, tool) }).collect())
    }

    /// The tools that a request with at most this number of them declares: the first of those that are selected, and all
    /// built-in ones.
    pub fn at_most<'t>(
        &'t self,
        most: Option<usize>,
        selected: Option<&'t SelectedTools>,
    ) -> impl Iterator<Item = &'t OfferedTool> {
        let built_in = self.0.iter().filter(|tool| tool.is_builtin).count();
        let mut room = most.map_or(usize::MAX, |most| most.saturating_sub(built_in));
        let is_selected =
            move |tool: &&OfferedTool| tool.is_builtin || selected.is_none_or(|selected| selected.has(tool.place));
        self.0.iter().filter(is_selected).filter(move |tool| {
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
        if let Some(rules) = left_out {
            describe(&rules, &mut description, &mut parameters);
        }
        Self {
            name: name.to_owned(),
            description,
            parameters: Value::Object(parameters).to_string().into(),
            is_builtin: matches!(tool.kind, ToolKind::Builtin(_)),
            place: 0,
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

/// The schema of an input as clients take it that hand it to a model: an object's, without alternatives at its top. What that leaves
/// out is said behind the description, or in the schema where it is long.
pub fn client_schema(schema: Option<&Value>, description: &mut String) -> Map<String, Value> {
    let mut members = schema.and_then(Value::as_object).cloned().unwrap_or_default();
    members.insert("type".to_owned(), json!("object"));
    let (mut folded, left_out) = top_object::folded(members);
    if let Some(rules) = left_out {
        describe(&rules, description, &mut folded);
    }
    folded
}

/// Says rules that no schema can say at its top: behind the description of the tool, or in the schema where they are long.
fn describe(rules: &Map<String, Value>, description: &mut String, schema: &mut Map<String, Value>) {
    let note = note(rules);
    let room = MAX_DESCRIPTION.saturating_sub(description.chars().count());
    if note.chars().count() < room.min(MAX_NOTE) {
        *description = joined(description, &note);
    } else {
        let before = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let whole = Value::from(joined(before, &note));
        schema.insert("description".to_owned(), whole);
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
    let (mut folded, left_out) = top_object::folded(members);
    folded.entry("properties").or_insert_with(|| json!({}));
    references::alone(&mut folded);
    TakenSchema { parameters: missing_keywords::members(folded), left_out, names }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn sent(schema: &Value) -> Value {
        Value::Object(taken(schema).parameters)
    }

    #[test]
    fn what_servers_miss_is_added_and_the_rest_is_sent_as_it_is() {
        for (schema, expected) in [
            (json!({}), json!({ "type": "object", "properties": {} })),
            (json!(true), json!({ "type": "object", "properties": {} })),
            (
                json!({ "type": "object", "properties": { "a": { "type": "array" }, "b": { "type": "object" }, "c": true } }),
                json!({ "type": "object", "properties": { "a": { "type": "array", "items": {} },
                    "b": { "type": "object", "additionalProperties": true, "properties": {} }, "c": {} } }),
            ),
            (
                json!({ "type": "object", "properties": { "a": { "type": "array", "items": [{ "type": "string" }] } },
                    "required": ["a", "b"] }),
                json!({ "type": "object", "properties": { "a": { "type": "array", "prefixItems": [{ "type": "string" }],
                    "items": {} }, "b": {} }, "required": ["a", "b"] }),
            ),
        ] {
            assert_eq!(sent(&schema), expected, "{schema}");
        }
        let whole = json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "b": { "type": "number", "minimum": 1.50 } }, "required": ["a"], "additionalProperties": false });
        assert_eq!(sent(&whole).to_string(), whole.to_string());
    }

    #[test]
    fn alternatives_of_members_keep_both_and_what_all_require_is_required() {
        let schema = json!({ "oneOf": [
            { "properties": { "kind": { "const": "a" }, "x": { "type": "integer" } }, "required": ["kind", "x"] },
            { "properties": { "kind": { "const": "b" } }, "required": ["kind"] } ] });
        let TakenSchema { parameters, left_out, .. } = taken(&schema);
        let either = json!({ "anyOf": [{ "const": "a" }, { "const": "b" }] });
        assert_eq!(
            Value::Object(parameters),
            json!({ "type": "object", "properties": { "kind": either, "x": { "type": "integer" } }, "required": ["kind"] })
        );
        assert_eq!(left_out.map(Value::Object), Some(schema));
        let whole = json!({ "allOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }] });
        assert!(taken(&whole).left_out.is_none());
    }

    #[test]
    fn references_in_circles_at_the_top_end() {
        let circle =
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#" }] } } });
        assert_eq!(sent(&circle)["properties"], json!({}));
    }

    #[test]
    fn references_into_what_is_not_sent_lead_to_a_copy_of_it() {
        let schema = json!({ "anyOf": [
            { "properties": { "x": { "type": "string" }, "y": { "$ref": "#/anyOf/0/properties/x" } } },
            { "properties": { "z": { "$ref": "#/anyOf/0/properties/x" }, "all": { "$ref": "#/anyOf/1" } } } ],
            "then": { "properties": { "t": { "$ref": "#/then/properties/t" } } },
            "$defs": { "anyOf_1": { "type": "null" } } });
        let sent = sent(&schema);
        let mut references = 0;
        references::each_part(&mut sent.as_object().unwrap().clone(), &mut |part| {
            let Some(pointer) = part.get("$ref").and_then(Value::as_str) else { return };
            references += 1;
            assert!(sent.pointer(pointer.trim_start_matches('#')).is_some_and(Value::is_object), "{pointer} in {sent}");
        });
        assert!(references >= 4, "{sent}");
        assert_eq!(sent["properties"]["z"], json!({ "$ref": "#/$defs/anyOf_0/properties/x" }));
        assert_eq!(sent["$defs"]["anyOf_1"], json!({ "type": "null" }));
    }

    #[test]
    fn a_reference_stands_alone_and_no_part_names_a_draft() {
        let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {
            "größe": { "$ref": "#/$defs/p" }, "b": { "$ref": "#/$defs/p", "description": "d", "default": 1 },
            "c": { "$ref": "#/$defs/p" }, "d": { "$ref": "#", "anyOf": [{}] },
            "e": { "$schema": "http://json-schema.org/draft-07/schema#", "type": "string" } },
            "$defs": { "p": { "type": "integer" } } });
        assert_eq!(
            sent(&schema)["properties"],
            json!({ "gr__e": { "description": "größe", "anyOf": [{ "$ref": "#/$defs/p" }] },
                "b": { "description": "d", "default": 1, "anyOf": [{ "$ref": "#/$defs/p" }] }, "c": { "$ref": "#/$defs/p" },
                "d": { "anyOf": [{}], "allOf": [{ "$ref": "#" }] }, "e": { "type": "string" } })
        );
    }

    proptest! {
        #[test]
        fn each_name_is_sent_as_it_is_taken_and_comes_back(names in prop::collection::hash_set("\\PC{1,80}", 1..8)) {
            let members: Map<String, Value> = names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
            let schema = json!({ "type": "object", "properties": members });
            let TakenSchema { parameters, names: given, .. } = taken(&schema);
            let Some(sent) = parameters["properties"].as_object() else { return Err(TestCaseError::fail("an object")) };
            prop_assert_eq!(sent.len(), names.len());
            let input: Map<String, Value> = sent.keys().map(|name| (name.clone(), json!("x"))).collect();
            for name in sent.keys() {
                let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                prop_assert!(name.len() <= 64 && name.chars().all(fits), "{}", name);
            }
            let back = if given.is_empty() { Value::Object(input) } else { given.restored(Value::Object(input), &schema) };
            let back: std::collections::HashSet<String> = back.as_object().unwrap().keys().cloned().collect();
            prop_assert_eq!(back, names);
        }
    }
}
