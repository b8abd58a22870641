//! The schema of one turn in the dialect `json`, to which a provider constrains the replies of a model: it has the shape
//! of the tools' schemas. What a schema says beyond shape (bounds, patterns, conditions) is left to our own validation.

use serde_json::{Map, Value, json};

use super::{Builtin, Program, Tool, ToolKind};

/// The most characters of a thought.
const MAX_THOUGHT: u32 = 1_000;
/// The most bytes of a schema that is sent.
const MAX_BYTES: usize = 64 << 10;
/// How deep a schema is followed, and how many of its nodes: references may lead in circles.
const MAX_DEPTH: usize = 24;
const MAX_NODES: usize = 2_000;

/// The schema of a turn as JSON, in two forms.
#[derive(Debug)]
pub struct TurnSchema {
    /// One branch for each tool, which ties its name to its input.
    pub branches: Box<str>,
    /// One object for all tools: OpenAI's own servers take no branches at the top.
    pub flat: Box<str>,
    /// Whether every object of it is closed and has required members only, as OpenAI's strict mode wants it.
    pub is_strict: bool,
}

impl TurnSchema {
    /// The schema of a program's turns; none when it is too large for a provider.
    pub fn of(program: &Program) -> Option<Self> {
        let mut shapes = Shapes { is_strict: true, left: MAX_NODES };
        let inputs: Vec<(&str, Value)> =
            program.offered().map(|tool| (tool.name.as_str(), shapes.input(program, tool))).collect();
        let branches: Vec<Value> = inputs
            .iter()
            .map(|(name, input)| {
                let thought = json!({ "type": "string", "maxLength": MAX_THOUGHT });
                turn(&thought, &json!({ "type": "string", "const": name }), input)
            })
            .collect();
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        let all: Vec<&Value> = inputs.iter().map(|(_, input)| input).collect();
        let action = json!({ "type": "string", "enum": names });
        let flat = turn(&json!({ "type": "string" }), &action, &json!({ "anyOf": all }));
        let (branches, flat) = (json!({ "anyOf": branches }).to_string(), flat.to_string());
        let fits = shapes.left > 0 && branches.len().max(flat.len()) <= MAX_BYTES;
        let is_strict = shapes.is_strict;
        fits.then(|| Self { branches: branches.into(), flat: flat.into(), is_strict })
    }
}

/// The object of a turn.
fn turn(thought: &Value, action: &Value, input: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "thought": thought, "action": action, "action_input": input },
        "required": ["thought", "action", "action_input"],
        "additionalProperties": false
    })
}

/// Makes schemas of shape alone.
struct Shapes {
    is_strict: bool,
    /// How many nodes may still be looked at.
    left: usize,
}

impl Shapes {
    /// The shape of a tool's input; the answer of `__complete__` has that of `answer_schema`.
    fn input(&mut self, program: &Program, tool: &Tool) -> Value {
        let mut input = self.shape(tool.parameters.source(), tool.parameters.source(), MAX_DEPTH);
        if let (ToolKind::Builtin(Builtin::Complete), Some(answer)) = (&tool.kind, &program.answer)
            && let Some(slot) = input.pointer_mut("/properties/answer")
        {
            *slot = self.shape(answer.source(), answer.source(), MAX_DEPTH);
        }
        if let Some(members) = input.as_object_mut() {
            // A call's input is always an object.
            members.insert("type".to_owned(), Value::from("object"));
        }
        input
    }

    /// The shape of a schema inside of `root`.
    fn shape(&mut self, schema: &Value, root: &Value, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        let Some(members) = schema.as_object().filter(|_| depth > 0 && self.left > 0) else { return self.anything() };
        if let Some(reference) = members.get("$ref") {
            let target = reference.as_str().and_then(|text| root.pointer(text.strip_prefix('#')?));
            return match target {
                Some(target) => self.shape(target, root, depth - 1),
                None => self.anything(),
            };
        }
        let mut shape = Map::new();
        for name in ["type", "enum", "const"] {
            if let Some(value) = members.get(name) {
                shape.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(any) = members.get("anyOf").or_else(|| members.get("oneOf")).and_then(Value::as_array) {
            let any: Vec<Value> = any.iter().map(|one| self.shape(one, root, depth - 1)).collect();
            shape.insert("anyOf".to_owned(), Value::from(any));
        }
        if let Some(items) = members.get("items").filter(|items| items.is_object()) {
            shape.insert("items".to_owned(), self.shape(items, root, depth - 1));
        }
        if members.get("properties").is_some_and(Value::is_object) {
            shape.entry("type").or_insert_with(|| Value::from("object"));
            shape.extend(self.object(members, root, depth));
        } else if has_open_type(members) {
            self.is_strict = false;
        }
        if shape.is_empty() { self.anything() } else { Value::Object(shape) }
    }

    /// The members, and whether there may be others.
    fn object(&mut self, members: &Map<String, Value>, root: &Value, depth: usize) -> Map<String, Value> {
        let empty = Map::new();
        let properties = members.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let shapes: Map<String, Value> =
            properties.iter().map(|(name, schema)| (name.clone(), self.shape(schema, root, depth - 1))).collect();
        let required = members.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_known = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        let required: Vec<&Value> = required.iter().filter(is_known).collect();
        let is_open = members.contains_key("patternProperties")
            || members.get("additionalProperties").is_some_and(|more| more != &Value::Bool(false));
        self.is_strict &= required.len() == properties.len() && !is_open;
        let mut shape = Map::new();
        shape.insert("required".to_owned(), json!(required));
        shape.insert("properties".to_owned(), Value::Object(shapes));
        shape.insert("additionalProperties".to_owned(), Value::Bool(is_open));
        shape
    }

    /// Any JSON: what has no shape that can be sent.
    fn anything(&mut self) -> Value {
        self.is_strict = false;
        json!({})
    }
}

/// Whether a schema without `properties` is of an object with any members, or of a list of anything.
fn has_open_type(members: &Map<String, Value>) -> bool {
    let is = |name: &str| members.get("type").is_some_and(|kind| kind == name);
    is("object") || is("array") && !members.contains_key("items")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Schema;

    fn shape(schema: &Value) -> (Value, bool) {
        let mut shapes = Shapes { is_strict: true, left: MAX_NODES };
        let shape = shapes.shape(schema, schema, MAX_DEPTH);
        (shape, shapes.is_strict)
    }

    #[test]
    fn a_value_that_matches_a_schema_matches_its_shape() {
        for (schema, value) in [
            (json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}}), json!({"n": 3})),
            (
                json!({"type": "object", "properties": {"n": {"enum": [1, "x", null]}}, "required": ["n"]}),
                json!({"n": null}),
            ),
            (json!({"type": ["string", "null"], "pattern": "^a"}), json!("abc")),
            (json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]}), json!([1, 2])),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}), json!(true)),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {}}),
                json!({"x": "y"}),
            ),
            (json!({"allOf": [{"type": "string"}]}), json!("x")),
            (json!({"type": "object"}), json!({"any": 1})),
            (json!(true), json!(1)),
        ] {
            let compiled = Schema::compile(schema.clone()).unwrap();
            assert!(compiled.faults(&value).is_empty(), "{schema}");
            let (shape, _) = shape(&schema);
            let compiled = Schema::compile(shape.clone()).unwrap();
            assert!(compiled.faults(&value).is_empty(), "{schema}\n{shape}");
        }
    }

    #[test]
    fn only_closed_objects_of_required_members_are_strict() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert!(shape(&closed).1);
        for open in [
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object"}),
            json!({"type": "array"}),
            json!({}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ] {
            assert!(!shape(&open).1, "{open}");
        }
    }

    #[test]
    fn references_in_circles_end() {
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties":
            {"l": {"$ref": "#/$defs/a"}, "m": {"$ref": "#/$defs/a"}, "r": {"$ref": "#/$defs/a"}}}}});
        assert!(shape(&circle).0.to_string().len() < MAX_BYTES * 10);
        assert_eq!(shape(&json!({"$ref": "#"})).0, json!({}));
    }
}
