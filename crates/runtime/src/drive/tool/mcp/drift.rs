//! How a tool differs from what was pinned. Servers change the form of what they say with each update, so a change has a
//! class by what follows from it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use loopctl_lang::language::mcp::LockedTool;

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriftClass {
    /// What a model reads: descriptions. It keeps reading the pinned ones.
    Text,
    /// What the server says of the effects of calls.
    Annotations,
    /// What a call may take.
    Input,
    /// What a call gives.
    Output,
    /// The tool is not there any more.
    Gone,
    /// The tool was not there.
    New,
}

impl DriftClass {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Annotations => "annotations",
            Self::Input => "input",
            Self::Output => "output",
            Self::Gone => "gone",
            Self::New => "new",
        }
    }

    /// Whether calls by the pinned schema may not be what the server takes, or gives, any more.
    pub fn stops_calls(self) -> bool {
        matches!(self, Self::Input | Self::Output | Self::Gone)
    }
}

/// What has changed of a tool. The order of keys, `title` and `$schema` are notation, and no change.
pub fn compare(pinned: &LockedTool, now: Option<&LockedTool>) -> BTreeSet<DriftClass> {
    let Some(now) = now else { return BTreeSet::from([DriftClass::Gone]) };
    let mut found = BTreeSet::new();
    if pinned == now {
        return found;
    }
    let mut differs = |class, is_other: bool| {
        if is_other {
            found.insert(class);
        }
    };
    let texts = |tool: &LockedTool| {
        let output = tool.output_schema.as_ref().map(|schema| plain(schema, SchemaTexts::Kept).into_owned());
        (plain(&tool.input_schema, SchemaTexts::Kept).into_owned(), output)
    };
    let input = |tool: &LockedTool| plain(&tool.input_schema, SchemaTexts::LeftOut).into_owned();
    let output =
        |tool: &LockedTool| tool.output_schema.as_ref().map(|schema| plain(schema, SchemaTexts::LeftOut).into_owned());
    let is_input = input(pinned) != input(now);
    let is_output = output(pinned) != output(now);
    let is_text = !is_input && !is_output && texts(pinned) != texts(now);
    differs(DriftClass::Text, is_text || pinned.description.trim() != now.description.trim());
    differs(DriftClass::Input, is_input);
    differs(DriftClass::Output, is_output);
    differs(DriftClass::Annotations, annotations(pinned) != annotations(now));
    found
}

/// Whether a server says now that calls do more harm than it said when it was pinned. `trusts`: whether calls are repeated because
/// of what it says.
pub fn is_stricter(pinned: &LockedTool, now: &LockedTool, trusts: bool) -> bool {
    let says = |tool: &LockedTool, hint: &str| tool.hint(hint) == Some(true);
    let is_new = |hint| says(now, hint) && !says(pinned, hint);
    let is_withdrawn = |hint| says(pinned, hint) && !says(now, hint);
    is_new("destructiveHint") || trusts && (is_withdrawn("readOnlyHint") || is_withdrawn("idempotentHint"))
}

fn annotations(tool: &LockedTool) -> Map<String, Value> {
    tool.annotations
        .iter()
        .filter(|(name, _)| *name != "title")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaTexts {
    Kept,
    LeftOut,
}

/// What is compared of schemas nested deeper is all of it, as it is.
const MAX_DEPTH: usize = 100;

/// A schema without what is notation.
fn plain(schema: &Value, texts: SchemaTexts) -> Cow<'_, Value> {
    Cow::Owned(schema_part(schema, texts, MAX_DEPTH))
}

fn schema_part(schema: &Value, texts: SchemaTexts, depth: usize) -> Value {
    let (Value::Object(members), Some(depth)) = (schema, depth.checked_sub(1)) else { return schema.clone() };
    let mut kept = Map::new();
    for (keyword, value) in members {
        let value = match keyword.as_str() {
            "$schema" | "title" | "$comment" => continue,
            "description" if texts == SchemaTexts::LeftOut => continue,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                named(value, texts, depth)
            }
            "items"
            | "prefixItems"
            | "additionalProperties"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames"
            | "unevaluatedProperties"
            | "unevaluatedItems" => listed(value, texts, depth),
            "required" => sorted(value),
            _ => value.clone(),
        };
        kept.insert(keyword.clone(), value);
    }
    Value::Object(kept)
}

/// Schemas by the names of properties: a property may be named as a keyword is.
fn named(value: &Value, texts: SchemaTexts, depth: usize) -> Value {
    match value {
        Value::Object(members) => {
            let part = |(name, schema): (&String, &Value)| (name.clone(), schema_part(schema, texts, depth));
            Value::Object(members.iter().map(part).collect())
        }
        other => other.clone(),
    }
}

fn listed(value: &Value, texts: SchemaTexts, depth: usize) -> Value {
    match value {
        Value::Array(schemas) => schemas.iter().map(|schema| schema_part(schema, texts, depth)).collect(),
        schema => schema_part(schema, texts, depth),
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(names) if names.iter().all(Value::is_string) => {
            let mut names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.sort_unstable();
            names.into_iter().map(Value::from).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(schema: Value) -> LockedTool {
        LockedTool { description: "Reads.".to_owned(), input_schema: schema, ..LockedTool::default() }
    }

    fn classes(one: &LockedTool, other: &LockedTool) -> Vec<&'static str> {
        compare(one, Some(other)).into_iter().map(DriftClass::word).collect()
    }

    #[test]
    fn notation_is_no_change() {
        let one = tool(json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "title": "T",
            "properties": {"title": {"type": "string", "title": "x"}, "b": {"type": "integer"}}, "required": ["b", "title"],
        }));
        let other = tool(json!({
            "required": ["title", "b"], "properties": {"b": {"type": "integer"}, "title": {"type": "string"}},
            "type": "object",
        }));
        assert_eq!(classes(&one, &other), [""; 0]);
    }

    #[test]
    fn a_hint_that_is_withdrawn_is_stricter_where_it_was_believed() {
        let says = |hints: &[&str]| {
            let annotations = hints.iter().map(|hint| ((*hint).to_owned(), Value::Bool(true))).collect();
            LockedTool { annotations, ..tool(json!({})) }
        };
        let (nothing, reads, destroys) = (says(&[]), says(&["readOnlyHint"]), says(&["destructiveHint"]));
        for (pinned, now, trusts, expected) in [
            (&nothing, &destroys, false, true),
            (&destroys, &nothing, false, false),
            (&destroys, &destroys, true, false),
            (&reads, &nothing, true, true),
            (&reads, &nothing, false, false),
            (&says(&["idempotentHint"]), &nothing, true, true),
            (&nothing, &reads, true, false),
        ] {
            assert_eq!(is_stricter(pinned, now, trusts), expected, "{pinned:?} {now:?} {trusts}");
        }
    }

    #[test]
    fn each_change_has_its_class() {
        let one = tool(json!({"type": "object", "properties": {"path": {"type": "string", "description": "p"}}}));
        let text = tool(json!({"type": "object", "properties": {"path": {"type": "string", "description": "q"}}}));
        assert_eq!(classes(&one, &text), ["text"]);
        let closed =
            tool(json!({"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": false}));
        assert_eq!(classes(&one, &closed), ["input"]);
        let without = tool(json!({"type": "object", "properties": {}}));
        assert_eq!(classes(&one, &without), ["input"]);
        let mut hinted = one.clone();
        hinted.annotations.insert("destructiveHint".to_owned(), Value::Bool(true));
        assert_eq!(classes(&one, &hinted), ["annotations"]);
        let described = LockedTool { description: "Reads all.".to_owned(), ..one.clone() };
        assert_eq!(classes(&one, &described), ["text"]);
        let gives = LockedTool { output_schema: Some(json!({"type": "object"})), ..one.clone() };
        assert_eq!(classes(&one, &gives), ["output"]);
        assert_eq!(compare(&one, None), BTreeSet::from([DriftClass::Gone]));
        // A default and an enum are values, and no schemas.
        let named = tool(json!({"enum": [{"title": 1}]}));
        assert_eq!(classes(&named, &tool(json!({"enum": [{"title": 2}]}))), ["input"]);
    }
}
