//! OpenAI's strict mode (developers.openai.com/api/docs/guides/structured-outputs) and the subset of Anthropic
//! (platform.claude.com/docs, `build-with-claude/structured-outputs`; both read in November 2026).
//!
//! In strict mode every member is required. One that may be absent takes `null` in its place, which is taken out of the
//! reply again.

use serde_json::{Map, Value, json};

use super::flat;
use crate::policy::json_text;

/// How deep objects may be nested in strict mode.
const MAX_LEVELS: usize = 10;
/// The most members that may be absent, and the most alternatives, that Anthropic's servers take.
const MAX_OPTIONAL: usize = 24;
const MAX_UNIONS: usize = 16;

/// What a shape has that a provider may refuse.
#[derive(Debug, Default)]
pub(super) struct ShapeLimits {
    /// Whether a value has no type, an object may have any members, or a list any items.
    is_open: bool,
    optional: usize,
    unions: usize,
    levels: usize,
}

impl ShapeLimits {
    pub(super) fn of(shape: &Value) -> Self {
        let mut limits = Self::default();
        limits.look(shape, 0);
        limits
    }

    /// Whether it can be put in strict mode.
    pub(super) fn may_be_strict(&self) -> bool {
        !self.is_open && self.levels <= MAX_LEVELS
    }

    /// Whether Anthropic's servers take it.
    pub(super) fn is_closed(&self) -> bool {
        !self.is_open && self.optional <= MAX_OPTIONAL && self.unions <= MAX_UNIONS
    }

    fn look(&mut self, shape: &Value, level: usize) {
        let kind = shape.get("type");
        let is = |name: &str| match kind {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
            Some(kind) => kind == name,
            None => false,
        };
        let any = shape.get("anyOf").and_then(Value::as_array);
        // Alternatives beside a type would be one schema of two.
        self.is_open |= kind.is_some() == any.is_some();
        self.unions += usize::from(any.is_some() || kind.is_some_and(Value::is_array));
        for part in any.into_iter().flatten() {
            self.look(part, level);
        }
        match shape.get("items") {
            Some(items) => self.look(items, level),
            None => self.is_open |= is("array"),
        }
        let Some(properties) = shape.get("properties").and_then(Value::as_object) else {
            self.is_open |= is("object");
            return;
        };
        self.levels = self.levels.max(level + 1);
        self.is_open |= shape["additionalProperties"] != Value::Bool(false);
        for (name, member) in properties {
            self.optional += usize::from(!is_required(shape, name));
            self.look(member, level + 1);
        }
    }
}

/// The schema of a turn in strict mode.
#[derive(Debug)]
pub struct StrictTurn {
    /// The schema as JSON.
    pub schema: Box<str>,
    /// The shapes of the tools' inputs.
    inputs: Vec<(String, Value)>,
    /// The shape of an answer that is no turn.
    answer: Option<Value>,
}

impl StrictTurn {
    pub(super) fn of(inputs: &[(&str, Value)]) -> Self {
        let schema = flat(inputs.iter().map(|(name, input)| (*name, strict(input)))).to_string().into();
        let inputs = inputs.iter().map(|(name, input)| ((*name).to_owned(), input.clone())).collect();
        Self { schema, inputs, answer: None }
    }

    /// That of an answer.
    pub(super) fn of_answer(shape: &Value) -> Self {
        Self { schema: strict(shape).to_string().into(), inputs: Vec::new(), answer: Some(shape.clone()) }
    }

    /// A reply without the `null`s that strict mode puts in the place of absent members; none when it has none.
    pub fn without_nulls(&self, reply: &str) -> Option<String> {
        let mut turn: Value = json_text::read(reply).ok()?;
        if let Some(shape) = &self.answer {
            return drop_nulls(&mut turn, shape).then(|| turn.to_string());
        }
        let name = turn.get("action")?.as_str()?;
        let (_, shape) = self.inputs.iter().find(|(tool, _)| tool == name)?;
        let dropped = drop_nulls(turn.get_mut("action_input")?, shape);
        dropped.then(|| turn.to_string())
    }
}

/// The shape with every member required.
fn strict(shape: &Value) -> Value {
    let Some(members) = shape.as_object() else { return shape.clone() };
    let mut strict: Map<String, Value> = members.clone();
    if let Some(any) = members.get("anyOf").and_then(Value::as_array) {
        strict.insert("anyOf".to_owned(), any.iter().map(self::strict).collect());
    }
    if let Some(items) = members.get("items") {
        strict.insert("items".to_owned(), self::strict(items));
    }
    if let Some(properties) = members.get("properties").and_then(Value::as_object) {
        let names: Vec<&String> = properties.keys().collect();
        strict.insert("required".to_owned(), json!(names));
        let member = |(name, member): (&String, &Value)| {
            let strict = self::strict(member);
            let may_be_null = is_required(shape, name) || takes_null(member);
            (name.clone(), if may_be_null { strict } else { json!({ "anyOf": [strict, { "type": "null" }] }) })
        };
        strict.insert("properties".to_owned(), Value::Object(properties.iter().map(member).collect()));
    }
    Value::Object(strict)
}

fn is_required(shape: &Value, name: &str) -> bool {
    shape["required"].as_array().is_some_and(|required| required.iter().any(|one| one == name))
}

/// Whether `null` is a value of its own here.
fn takes_null(shape: &Value) -> bool {
    match (shape.get("type"), shape.get("anyOf")) {
        (Some(Value::Array(kinds)), _) => kinds.iter().any(|kind| kind == "null"),
        (Some(kind), _) => kind == "null",
        (None, Some(Value::Array(any))) => any.iter().any(takes_null),
        _ => true,
    }
}

/// Takes the members out that are `null` and could be absent. Returns whether there were any.
fn drop_nulls(value: &mut Value, shape: &Value) -> bool {
    let mut dropped = false;
    for part in shape["anyOf"].as_array().into_iter().flatten() {
        dropped |= drop_nulls(value, part);
    }
    match value {
        Value::Array(items) => {
            for item in items {
                dropped |= drop_nulls(item, &shape["items"]);
            }
        }
        Value::Object(members) => {
            let Some(properties) = shape["properties"].as_object() else { return dropped };
            let before = members.len();
            members.retain(|name, member| {
                let is_absent = |known| member.is_null() && !is_required(shape, name) && !takes_null(known);
                !properties.get(name).is_some_and(is_absent)
            });
            dropped |= members.len() < before;
            for (name, member) in members {
                dropped |= properties.get(name).is_some_and(|known| drop_nulls(member, known));
            }
        }
        _ => {}
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::super::shape::Shapes;
    use super::*;

    fn limits(schema: &Value) -> ShapeLimits {
        ShapeLimits::of(&Shapes::default().shape(schema))
    }

    #[test]
    fn only_closed_values_can_be_strict() {
        for closed in [
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"a": {"enum": ["x", 1]}, "b": {"type": "array", "items": {"type": "string"}}}}),
        ] {
            assert!(limits(&closed).may_be_strict() && limits(&closed).is_closed(), "{closed}");
        }
        for open in [
            json!({"type": "object"}),
            json!({"type": "array"}),
            json!({}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": ["object", "null"]}),
        ] {
            assert!(!limits(&open).may_be_strict() && !limits(&open).is_closed(), "{open}");
        }
        let deep =
            (0..12).fold(json!({"type": "string"}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
        assert!(!limits(&deep).may_be_strict());
        let many: Map<String, Value> = (0..30).map(|n| (format!("m{n}"), json!({"type": "string"}))).collect();
        let many = limits(&json!({"type": "object", "properties": many}));
        assert!(many.may_be_strict() && !many.is_closed(), "Anthropic's servers take 24 optional members");
    }

    #[test]
    fn a_member_that_may_be_absent_is_null_in_strict_mode_and_absent_again_in_the_reply() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer"},
            "c": {"type": ["string", "null"]},
            "d": {"type": "array", "items": {"type": "object", "properties": {"e": {"type": "boolean"}}}}
        }});
        let turn = StrictTurn::of(&[("look", Shapes::default().shape(&schema))]);
        let sent: Value = serde_json::from_str(&turn.schema).unwrap();
        let input = &sent["properties"]["action_input"]["anyOf"][0];
        assert_eq!(input["required"], json!(["a", "b", "c", "d"]));
        assert_eq!(input["properties"]["a"], json!({"type": "string"}));
        assert_eq!(input["properties"]["b"], json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}));
        assert_eq!(input["properties"]["c"], json!({"type": ["string", "null"]}));
        let reply = r#"{"thought":"t","action":"look","action_input":{"a":"x","b":null,"c":null,"d":[{"e":null}]}}"#;
        let read = turn.without_nulls(reply).unwrap();
        assert_eq!(read, r#"{"thought":"t","action":"look","action_input":{"a":"x","c":null,"d":[{}]}}"#);
        assert_eq!(turn.without_nulls(&read), None);
        for other in ["no JSON", "[]", r#"{"action":"other","action_input":{"b":null}}"#, r#"{"action":"look"}"#] {
            assert_eq!(turn.without_nulls(other), None, "{other}");
        }
    }
}
