//! The names of members of a tool's input: Anthropic's server takes letters, digits, `_`, `.` and `-` of ASCII, at most
//! 64. A member with another name gets an accepted one in requests, and its own again in what the model calls.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::program::reference::escape_pointer;
use crate::program::schema::vocabulary::{Holds, keyword_named};
use crate::program::tool_names::{NameForm, ToolNames, is_taken_by};

/// Keywords that hold the schemas of a list's items.
const LIST_KEYWORDS: [&str; 4] = ["items", "prefixItems", "contains", "additionalItems"];

/// The most parts of a schema that are looked at for one object of an input.
const MAX_PARTS: usize = 500;

/// The members whose names are replaced.
#[derive(Debug, Default)]
pub(super) struct ParameterNames(ToolNames);

const MEMBER: NameForm = NameForm { begins: fits, has: fits };

fn fits(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

impl ParameterNames {
    /// Those of a schema.
    pub(super) fn of(schema: &Value) -> Self {
        let mut all = BTreeSet::new();
        collect(schema, &mut all);
        if all.iter().all(|name| is_taken_by(name, MEMBER)) {
            return Self::default();
        }
        Self(ToolNames::fitting(all.iter().map(String::as_str), MEMBER))
    }

    /// Whether no name is replaced.
    pub(super) fn is_empty(&self) -> bool {
        self.0.changed().next().is_none()
    }

    fn out(&self, name: &str) -> String {
        self.0.out(name).to_owned()
    }

    /// The schema with the names that are sent.
    pub(super) fn renamed(&self, schema: &Value) -> Value {
        if self.is_empty() { schema.clone() } else { self.part(schema) }
    }

    fn part(&self, schema: &Value) -> Value {
        let Some(members) = schema.as_object() else { return schema.clone() };
        let renamed = members.iter().map(|(keyword, value)| (keyword.clone(), self.keyword(keyword, value)));
        Value::Object(renamed.collect())
    }

    fn keyword(&self, keyword: &str, value: &Value) -> Value {
        match (keyword, value) {
            ("properties", Value::Object(members)) => self.members(members, true),
            ("dependentSchemas" | "dependencies" | "dependentRequired", Value::Object(members)) => {
                self.members(members, false)
            }
            ("required", value) => self.listed(value),
            ("$ref", Value::String(pointer)) => Value::from(self.pointer(pointer)),
            _ => match keyword_named(keyword).map(|keyword| keyword.holds) {
                Some(Holds::Schema) => self.part(value),
                Some(Holds::Schemas | Holds::SchemaOrSchemas) => match value {
                    Value::Array(parts) => parts.iter().map(|part| self.part(part)).collect(),
                    _ => self.part(value),
                },
                Some(Holds::NamedSchemas) => match value {
                    Value::Object(parts) => {
                        Value::Object(parts.iter().map(|(name, part)| (name.clone(), self.part(part))).collect())
                    }
                    _ => value.clone(),
                },
                _ => value.clone(),
            },
        }
    }

    /// Schemas, or lists of names, by the names of members. `says`: the description says what the document calls a
    /// member.
    fn members(&self, members: &Map<String, Value>, says: bool) -> Value {
        let renamed = members.iter().map(|(name, value)| {
            let (sent, mut part) =
                (self.out(name), if value.is_array() { self.listed(value) } else { self.part(value) });
            if says
                && sent != *name
                && let Value::Object(part) = &mut part
            {
                let before = part.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
                let described = before.map_or_else(|| name.clone(), |text| format!("{name}: {text}"));
                part.insert("description".to_owned(), Value::from(described));
            }
            (sent, part)
        });
        Value::Object(renamed.collect())
    }

    fn listed(&self, names: &Value) -> Value {
        let Some(names) = names.as_array() else { return names.clone() };
        names
            .iter()
            .map(|name| name.as_str().map_or_else(|| name.clone(), |name| Value::from(self.out(name))))
            .collect()
    }

    /// A pointer into the schema, whose members have other names now.
    fn pointer(&self, pointer: &str) -> String {
        let mut within = false;
        let renamed = pointer.split('/').map(|token| {
            let name = token.replace("~1", "/").replace("~0", "~");
            let is_name = within;
            within = !is_name && token == "properties";
            if is_name { escape_pointer(&self.out(&name)) } else { token.to_owned() }
        });
        renamed.collect::<Vec<_>>().join("/")
    }

    /// An input with the names that the document has: `schema` is the document's.
    pub(super) fn restored(&self, input: Value, schema: &Value) -> Value {
        Restoring { names: self, root: schema }.value(input, &[schema])
    }
}

/// Gives members of an input their own names.
struct Restoring<'s> {
    names: &'s ParameterNames,
    root: &'s Value,
}

impl<'s> Restoring<'s> {
    fn value(&self, value: Value, schemas: &[&'s Value]) -> Value {
        let parts = self.parts(schemas);
        match value {
            Value::Object(members) => self.object(&members, &parts),
            Value::Array(items) => {
                if !parts.iter().any(|part| LIST_KEYWORDS.iter().any(|name| part.contains_key(*name))) {
                    return Value::Array(items);
                }
                // Each of these holds one schema for all items, or one for each place.
                let all = |at: usize| -> Vec<&'s Value> {
                    let held = parts.iter().flat_map(|part| LIST_KEYWORDS.iter().filter_map(|name| part.get(*name)));
                    held.filter_map(|held| if held.is_array() { held.get(at) } else { Some(held) }).collect()
                };
                items.into_iter().enumerate().map(|(at, item)| self.value(item, &all(at))).collect()
            }
            value => value,
        }
    }

    fn object(&self, members: &Map<String, Value>, parts: &[&'s Map<String, Value>]) -> Value {
        let member = |name: &str| {
            let named = |part: &&'s Map<String, Value>| part.get("properties").and_then(|known| known.get(name));
            parts.iter().filter_map(named).collect::<Vec<&'s Value>>()
        };
        let mut restored = Map::new();
        for (name, value) in members {
            let own = self.names.0.back(name);
            let is_own =
                own != name && !members.contains_key(own) && member(name).is_empty() && !member(own).is_empty();
            let name = if is_own { own } else { name };
            let mut schemas = member(name);
            schemas.extend(parts.iter().filter_map(|part| part.get("additionalProperties")));
            let patterns = parts.iter().filter_map(|part| part.get("patternProperties")?.as_object());
            schemas.extend(patterns.flat_map(Map::values));
            restored.insert(name.to_owned(), self.value(value.clone(), &schemas));
        }
        Value::Object(restored)
    }

    /// All parts of schemas that are about one value.
    fn parts(&self, schemas: &[&'s Value]) -> Vec<&'s Map<String, Value>> {
        let mut found: Vec<&'s Map<String, Value>> = Vec::new();
        let mut todo: Vec<&'s Value> = schemas.to_vec();
        while let Some(schema) = todo.pop() {
            let Some(part) = schema.as_object() else { continue };
            if found.len() >= MAX_PARTS || found.iter().any(|known| std::ptr::eq(*known, part)) {
                continue;
            }
            found.push(part);
            let referred = part.get("$ref").and_then(Value::as_str).and_then(|pointer| pointer.strip_prefix('#'));
            todo.extend(referred.and_then(|pointer| self.root.pointer(pointer)));
            for name in ["allOf", "anyOf", "oneOf"] {
                todo.extend(part.get(name).and_then(Value::as_array).into_iter().flatten());
            }
            todo.extend(["if", "then", "else"].into_iter().filter_map(|name| part.get(name)));
            let dependent = part.get("dependentSchemas").and_then(Value::as_object);
            todo.extend(dependent.into_iter().flat_map(Map::values));
        }
        found
    }
}

/// The names of all members that a schema speaks of.
fn collect(schema: &Value, found: &mut BTreeSet<String>) {
    let Some(members) = schema.as_object() else { return };
    let mut listed = |names: &Value| {
        let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
        found.extend(names.map(str::to_owned));
    };
    if let Some(required) = members.get("required") {
        listed(required);
    }
    for name in ["dependentRequired", "dependencies"] {
        members.get(name).and_then(Value::as_object).into_iter().flat_map(Map::values).for_each(&mut listed);
    }
    for name in ["properties", "dependentRequired", "dependentSchemas", "dependencies"] {
        let named = members.get(name).and_then(Value::as_object).into_iter().flat_map(Map::keys);
        found.extend(named.cloned());
    }
    for (keyword, value) in members {
        match (keyword_named(keyword).map(|keyword| keyword.holds), value) {
            (Some(Holds::Schemas | Holds::SchemaOrSchemas), Value::Array(parts)) => {
                parts.iter().for_each(|part| collect(part, found));
            }
            (Some(Holds::Schema | Holds::SchemaOrSchemas), part) => collect(part, found),
            (Some(Holds::NamedSchemas), Value::Object(parts)) => parts.values().for_each(|part| collect(part, found)),
            _ => {}
        }
    }
}
