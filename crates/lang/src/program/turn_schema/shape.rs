//! The shape of a schema: types, members, `enum`, `const` and alternatives, without references.

use serde_json::{Map, Value, json};

use crate::program::reference::escape_pointer;

/// How deep a schema is followed, and how many of its nodes: references may double what they lead to.
const MAX_DEPTH: usize = 24;
const MAX_NODES: usize = 1_000;

/// Keywords that describe a shape which no provider can be sent.
const LOST: [&str; 13] = [
    "allOf",
    "not",
    "if",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "prefixItems",
    "unevaluatedItems",
    "contains",
    "$dynamicRef",
];

/// A keyword that is left out of the shape of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostKeyword {
    /// The keyword.
    pub keyword: String,
    /// The JSON pointer of the keyword in the schema.
    pub pointer: String,
}

/// Makes shapes.
pub(super) struct Shapes {
    /// How many nodes may still be looked at.
    left: usize,
}

impl Default for Shapes {
    fn default() -> Self {
        Self { left: MAX_NODES }
    }
}

impl Shapes {
    /// The shape of a schema.
    pub(super) fn shape(&mut self, schema: &Value) -> Value {
        let mut walk = ShapeWalk { left: self.left, root: schema, within: Vec::new(), lost: Vec::new() };
        let shape = walk.shape(schema, "");
        self.left = walk.left;
        shape
    }

    /// Whether all nodes could be looked at.
    pub(super) fn is_whole(&self) -> bool {
        self.left > 0
    }
}

/// The keywords of a schema that its shape leaves out, though they are no mere bounds of a value.
pub fn lost_keywords(schema: &Value) -> Vec<LostKeyword> {
    let mut walk = ShapeWalk { left: MAX_NODES, root: schema, within: Vec::new(), lost: Vec::new() };
    walk.shape(schema, "");
    let mut lost = walk.lost;
    lost.sort_by(|one, other| one.pointer.cmp(&other.pointer));
    lost.dedup();
    lost
}

/// A way through one schema.
struct ShapeWalk<'a> {
    left: usize,
    root: &'a Value,
    /// The pointers of the references that lead here.
    within: Vec<&'a str>,
    lost: Vec<LostKeyword>,
}

impl<'a> ShapeWalk<'a> {
    /// The shape of the part at a pointer; `{}` is the shape of any JSON.
    fn shape(&mut self, schema: &'a Value, at: &str) -> Value {
        self.left = self.left.saturating_sub(1);
        let depth = at.matches('/').count();
        let Some(members) = schema.as_object().filter(|_| depth <= MAX_DEPTH * 2 && self.left > 0) else {
            return json!({});
        };
        if let Some(reference) = members.get("$ref") {
            return self.referred(reference, at);
        }
        for name in LOST.into_iter().filter(|name| members.contains_key(*name)) {
            self.lose(name, at);
        }
        let mut shape = Map::new();
        for name in ["type", "enum", "const"] {
            if let Some(value) = members.get(name) {
                shape.insert(name.to_owned(), value.clone());
            }
        }
        if !shape.contains_key("type")
            && let Some(kinds) = kinds_of_values(&shape)
        {
            shape.insert("type".to_owned(), kinds);
        }
        for name in ["anyOf", "oneOf"] {
            let Some(any) = members.get(name).and_then(Value::as_array) else { continue };
            let parts = any.iter().enumerate().map(|(place, part)| self.shape(part, &format!("{at}/{name}/{place}")));
            let parts: Vec<Value> = parts.collect();
            // Beside a part that matches any JSON, the others say nothing.
            if !parts.iter().any(|part| part == &json!({})) {
                shape.entry("anyOf").or_insert_with(|| Value::from(parts));
            }
        }
        match members.get("items") {
            Some(items @ Value::Object(_)) => {
                shape.insert("items".to_owned(), self.shape(items, &format!("{at}/items")));
            }
            Some(Value::Array(_)) => self.lose("items", at),
            _ => {}
        }
        if let Some(properties) = members.get("properties").and_then(Value::as_object) {
            shape.entry("type").or_insert_with(|| Value::from("object"));
            self.object(&mut shape, members, properties, at);
        } else if members.get("additionalProperties").is_some_and(Value::is_object) {
            self.lose("additionalProperties", at);
        }
        // OpenAI's servers refuse a list without items, and an object without members.
        let is = |kind: &str| match shape.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
            Some(one) => one == kind,
            None => false,
        };
        let (lacks_items, lacks_members) =
            (is("array") && !shape.contains_key("items"), is("object") && !shape.contains_key("properties"));
        if lacks_items {
            shape.insert("items".to_owned(), json!({}));
        }
        if lacks_members {
            shape.extend(any_members());
        }
        Value::Object(shape)
    }

    /// The shape of what a reference leads to. One that leads back to its own place is any JSON.
    fn referred(&mut self, reference: &'a Value, at: &str) -> Value {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let target = pointer.and_then(|pointer| Some((pointer, self.root.pointer(pointer)?)));
        let Some((pointer, target)) = target.filter(|(pointer, _)| !self.within.contains(pointer)) else {
            self.lose("$ref", at);
            return json!({});
        };
        if pointer.is_empty() || self.within.len() >= MAX_DEPTH {
            self.lose("$ref", at);
            return json!({});
        }
        self.within.push(pointer);
        let shape = self.shape(target, pointer);
        self.within.pop();
        shape
    }

    /// The members, and whether there may be others.
    fn object(
        &mut self,
        shape: &mut Map<String, Value>,
        members: &'a Map<String, Value>,
        properties: &'a Map<String, Value>,
        at: &str,
    ) {
        let mut shapes = Map::new();
        for (name, schema) in properties {
            let place = format!("{at}/properties/{}", escape_pointer(name));
            shapes.insert(name.clone(), self.shape(schema, &place));
        }
        let required = members.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_known = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        let required: Vec<&Value> = required.iter().filter(is_known).collect();
        let more = members.get("additionalProperties");
        if more.is_some_and(Value::is_object) {
            self.lose("additionalProperties", at);
        }
        let is_open = members.contains_key("patternProperties") || more.is_some_and(|more| more != &Value::Bool(false));
        shape.insert("required".to_owned(), json!(required));
        shape.insert("properties".to_owned(), Value::Object(shapes));
        shape.insert("additionalProperties".to_owned(), Value::Bool(is_open));
    }

    fn lose(&mut self, keyword: &str, at: &str) {
        self.lost.push(LostKeyword { keyword: keyword.to_owned(), pointer: format!("{at}/{keyword}") });
    }
}

/// What an object has that may have any members.
pub(super) fn any_members() -> Map<String, Value> {
    [("properties".to_owned(), json!({})), ("additionalProperties".to_owned(), Value::Bool(true))].into_iter().collect()
}

/// The types of the values of `enum` and `const`: strict schemas want a type beside them.
fn kinds_of_values(shape: &Map<String, Value>) -> Option<Value> {
    let values = match (shape.get("const"), shape.get("enum")) {
        (Some(value), _) => std::slice::from_ref(value),
        (None, Some(Value::Array(values))) => values.as_slice(),
        _ => return None,
    };
    let mut kinds: Vec<&str> = values.iter().map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    match kinds.as_slice() {
        [] => None,
        [kind] => Some(Value::from(*kind)),
        kinds => Some(json!(kinds)),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Schema;

    fn shape(schema: &Value) -> Value {
        Shapes::default().shape(schema)
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
            (
                json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!({"b": 1}),
            ),
            (json!({"allOf": [{"type": "string"}]}), json!("x")),
            (json!({"const": 1.5}), json!(1.5)),
            (json!({"type": "object"}), json!({"any": 1})),
            (json!(true), json!(1)),
        ] {
            let compiled = Schema::compile(schema.clone()).unwrap();
            assert!(compiled.faults(&value).is_empty(), "{schema}");
            let shape = shape(&schema);
            let compiled = Schema::compile(shape.clone()).unwrap();
            assert!(compiled.faults(&value).is_empty(), "{schema}\n{shape}");
        }
    }

    #[test]
    fn references_in_circles_end_where_they_close() {
        let tree = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties":
            {"l": {"$ref": "#/$defs/a"}, "name": {"type": "string"}}}}});
        let shape = shape(&tree);
        assert_eq!(shape["properties"]["l"], json!({}));
        assert_eq!(shape["properties"]["name"], json!({"type": "string"}));
        assert_eq!(self::shape(&json!({"$ref": "#"})), json!({}));
        let doubled: Map<String, Value> = (0..30)
            .map(|level| {
                let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
                (format!("d{level}"), json!({"type": "object", "properties": {"l": next, "r": next}}))
            })
            .collect();
        let mut shapes = Shapes::default();
        shapes.shape(&json!({"$ref": "#/$defs/d0", "$defs": doubled}));
        assert!(!shapes.is_whole());
    }

    #[test]
    fn keywords_of_shape_that_are_left_out_are_named_and_bounds_are_not() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 1, "multipleOf": 2},
                "b/c": {"allOf": [{"type": "string"}]},
                "d": {"type": "array", "items": [{"type": "string"}]},
                "e": {"$ref": "#/$defs/e"},
                "f": {"type": "object", "additionalProperties": {"type": "string"}},
                "g": {"type": "object", "properties": {}, "additionalProperties": false}
            },
            "$defs": {"e": {"not": {"type": "null"}}}
        });
        let lost = lost_keywords(&schema);
        let places: Vec<&str> = lost.iter().map(|lost| lost.pointer.as_str()).collect();
        assert_eq!(
            places,
            ["/$defs/e/not", "/properties/b~1c/allOf", "/properties/d/items", "/properties/f/additionalProperties"]
        );
        assert!(lost.iter().all(|lost| lost.pointer.ends_with(&lost.keyword)));
    }
}
