//! The top of a schema as one object: OpenAI's and Anthropic's servers refuse alternatives, `$ref` and conditions there.
//! The members of all alternatives become members of the object; what that loses is said in words.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::references;

/// Keywords that providers refuse, or do not follow, at the top of a tool's schema.
const REFUSED_AT_TOP: [&str; 10] = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const"];
/// Keywords of an `allOf` of which nothing is lost when their members are taken.
const TAKEN_WHOLE: [&str; 9] = [
    "type",
    "properties",
    "required",
    "title",
    "description",
    "$comment",
    "$defs",
    "definitions",
    "additionalProperties",
];
/// How deep alternatives within each other are followed, and how many of them.
const MAX_DEPTH: usize = 16;
const MAX_PARTS: usize = 1_000;

/// The schema of an object without what no provider takes at its top, and the rules that this left out.
pub(super) fn folded(schema: Map<String, Value>) -> (Map<String, Value>, Option<Map<String, Value>>) {
    if !REFUSED_AT_TOP.iter().any(|name| schema.contains_key(*name)) {
        return (schema, None);
    }
    let root = Value::Object(references::outside(schema, &REFUSED_AT_TOP));
    let mut fold = Fold { root: &root, members: Map::new(), parts: MAX_PARTS };
    let required = fold.take(&root, 0);
    let members = fold.members;
    let left_out = left_out(&root);
    let Value::Object(mut schema) = root else { return (Map::new(), None) };
    schema.retain(|name, _| !REFUSED_AT_TOP.contains(&name.as_str()));
    schema.insert("properties".to_owned(), Value::Object(members));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    (schema, left_out)
}

/// The rules at the top that the members alone do not say.
fn left_out(root: &Value) -> Option<Map<String, Value>> {
    let rules = root.as_object()?.iter().filter(|(name, value)| match name.as_str() {
        "$ref" => !is_taken_whole(value.as_str().and_then(|pointer| target(root, pointer)), root, 0),
        "allOf" => value.as_array().into_iter().flatten().any(|part| !is_taken_whole(Some(part), root, 0)),
        // One alternative is none.
        "anyOf" | "oneOf" => value.as_array().is_none_or(|parts| match parts.as_slice() {
            [part] => !is_taken_whole(Some(part), root, 0),
            _ => true,
        }),
        name => REFUSED_AT_TOP.contains(&name),
    });
    let rules: Map<String, Value> = rules.map(|(name, value)| (name.clone(), value.clone())).collect();
    Some(rules).filter(|rules| !rules.is_empty())
}

/// Whether the members of a part say all that it says.
fn is_taken_whole(part: Option<&Value>, root: &Value, depth: usize) -> bool {
    let Some(members) = part.and_then(Value::as_object).filter(|_| depth < MAX_DEPTH) else { return false };
    members.iter().all(|(name, value)| match name.as_str() {
        "$ref" => is_taken_whole(value.as_str().and_then(|pointer| target(root, pointer)), root, depth + 1),
        "allOf" => value.as_array().into_iter().flatten().all(|part| is_taken_whole(Some(part), root, depth + 1)),
        name => TAKEN_WHOLE.contains(&name),
    })
}

fn target<'s>(root: &'s Value, pointer: &str) -> Option<&'s Value> {
    root.pointer(pointer.strip_prefix('#')?)
}

struct Fold<'s> {
    root: &'s Value,
    members: Map<String, Value>,
    /// How many parts may still be looked at.
    parts: usize,
}

impl<'s> Fold<'s> {
    /// Takes the members of a part and of those within it. Gives the names that it requires.
    fn take(&mut self, part: &'s Value, depth: usize) -> BTreeSet<String> {
        let mut required = BTreeSet::new();
        self.parts = self.parts.saturating_sub(1);
        let Some(members) = part.as_object().filter(|_| depth < MAX_DEPTH && self.parts > 0) else { return required };
        for (name, member) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.member(name, member);
        }
        let names = members.get("required").and_then(Value::as_array).into_iter().flatten();
        required.extend(names.filter_map(Value::as_str).map(str::to_owned));
        let referred = members.get("$ref").and_then(Value::as_str).and_then(|pointer| target(self.root, pointer));
        if let Some(target) = referred {
            required.extend(self.take(target, depth + 1));
        }
        for part in list(members, "allOf") {
            required.extend(self.take(part, depth + 1));
        }
        for name in ["anyOf", "oneOf"] {
            let mut common: Option<BTreeSet<String>> = None;
            for part in list(members, name) {
                let its = self.take(part, depth + 1);
                common = Some(common.map_or_else(|| its.clone(), |common| &common & &its));
            }
            required.extend(common.unwrap_or_default());
        }
        for part in ["if", "then", "else"].into_iter().filter_map(|name| members.get(name)) {
            self.take(part, depth + 1);
        }
        required
    }

    /// Takes a member. One that two parts have in two ways may be either.
    fn member(&mut self, name: &str, schema: &Value) {
        let says_nothing = |schema: &Value| schema.is_boolean() || schema.as_object().is_some_and(Map::is_empty);
        let Some(known) = self.members.get_mut(name) else {
            self.members.insert(name.to_owned(), schema.clone());
            return;
        };
        if known == schema || says_nothing(schema) {
            return;
        }
        if says_nothing(known) {
            *known = schema.clone();
            return;
        }
        let either = known.as_object().filter(|known| known.len() == 1).and_then(|known| known.get("anyOf"));
        let mut parts = either.and_then(Value::as_array).cloned().unwrap_or_else(|| vec![known.clone()]);
        if !parts.contains(schema) {
            parts.push(schema.clone());
        }
        *known = json!({ "anyOf": parts });
    }
}

fn list<'s>(members: &'s Map<String, Value>, name: &str) -> impl Iterator<Item = &'s Value> {
    members.get(name).and_then(Value::as_array).into_iter().flatten()
}
