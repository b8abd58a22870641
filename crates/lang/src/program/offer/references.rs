//! References within a schema that is sent: they lead somewhere in it, and stand alone.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::program::reference::escape_pointer;
use crate::program::schema::vocabulary::{Holds, keyword_named};

/// The schema with a copy of each part of these keywords at its top that a reference leads into, in `$defs`: the keywords
/// themselves are not sent.
pub(super) fn outside(mut schema: Map<String, Value>, keywords: &[&str]) -> Map<String, Value> {
    let mut parts: BTreeSet<String> = BTreeSet::new();
    each_part(&mut schema, &mut |members| {
        parts.extend(pointer(members).and_then(|pointer| part_of(pointer, keywords)).map(str::to_owned));
    });
    if parts.is_empty() {
        return schema;
    }
    let taken = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    let named: Vec<NamedPart> = parts.into_iter().map(|pointer| NamedPart::new(pointer, &taken)).collect();
    each_part(&mut schema, &mut |members| {
        let moved = pointer(members).and_then(|pointer| named.iter().find_map(|part| part.moved(pointer)));
        if let Some(moved) = moved {
            members.insert("$ref".to_owned(), Value::from(moved));
        }
    });
    let root = Value::Object(schema);
    let copies: Vec<(String, Value)> =
        named.into_iter().filter_map(|part| Some((part.name, root.pointer(&part.pointer)?.clone()))).collect();
    let Value::Object(mut schema) = root else { return Map::new() };
    if let Value::Object(definitions) = schema.entry("$defs").or_insert_with(|| json!({})) {
        definitions.extend(copies);
    }
    schema
}

/// A part of a keyword at the top, and its name in `$defs`. No part contains another one.
struct NamedPart {
    pointer: String,
    name: String,
}

impl NamedPart {
    fn new(pointer: String, taken: &Map<String, Value>) -> Self {
        let mut name = pointer.trim_start_matches('/').replace('/', "_");
        while taken.contains_key(&name) {
            name.push('_');
        }
        Self { pointer, name }
    }

    /// Where a reference leads that led into the part.
    fn moved(&self, pointer: &str) -> Option<String> {
        let rest =
            pointer.strip_prefix(self.pointer.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some(format!("#/$defs/{}{rest}", escape_pointer(&self.name)))
    }
}

/// The part that a pointer leads into: `/anyOf/0` of `/anyOf/0/properties/a`, `/then` of `/then/properties/a`.
fn part_of<'p>(pointer: &'p str, keywords: &[&str]) -> Option<&'p str> {
    let keyword = pointer.strip_prefix('/')?.split('/').next().filter(|keyword| keywords.contains(keyword))?;
    let has_list = keyword_named(keyword).is_some_and(|keyword| matches!(keyword.holds, Holds::Schemas));
    let mut ends = pointer.char_indices().filter(|(_, sign)| *sign == '/').map(|(at, _)| at);
    let end = ends.nth(if has_list { 2 } else { 1 }).unwrap_or(pointer.len());
    pointer.get(..end)
}

/// The pointer of a reference within the schema.
fn pointer(members: &Map<String, Value>) -> Option<&str> {
    members.get("$ref").and_then(Value::as_str)?.strip_prefix('#')
}

/// Puts what is beside a reference around it: Gemini's server takes nothing else beside `$ref`.
pub(super) fn alone(schema: &mut Map<String, Value>) {
    each_part(schema, &mut |members| {
        let says_more = members.keys().any(|name| !name.starts_with('$'));
        let free = ["anyOf", "allOf"].into_iter().find(|name| !members.contains_key(*name));
        if let Some(free) = free.filter(|_| says_more)
            && let Some(reference) = members.shift_remove("$ref")
        {
            members.insert(free.to_owned(), json!([{ "$ref": reference }]));
        }
    });
}

/// Changes each part of a schema, the inner ones first.
pub(super) fn each_part(schema: &mut Map<String, Value>, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    for (keyword, value) in schema.iter_mut() {
        let Some(keyword) = keyword_named(keyword) else { continue };
        let is_named = matches!(keyword.holds, Holds::NamedSchemas);
        let holds = is_named || matches!(keyword.holds, Holds::Schema | Holds::Schemas | Holds::SchemaOrSchemas);
        match value {
            Value::Object(parts) if is_named => {
                parts.values_mut().filter_map(Value::as_object_mut).for_each(|part| each_part(part, change));
            }
            Value::Object(part) if holds => each_part(part, change),
            Value::Array(parts) if holds => {
                parts.iter_mut().filter_map(Value::as_object_mut).for_each(|part| each_part(part, change));
            }
            _ => {}
        }
    }
    change(schema);
}
