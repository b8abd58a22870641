//! What a schema of an object still says where it has faults: a fault in it hides nothing of what else is known.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::example::{whole, wrapper};
use super::keyword::{KeywordMeaning, SortedMembers};
use super::{Part, is_at};

/// Keywords beside `properties` that say which names an object has.
const NAMING: [&str; 12] = [
    "$schema",
    "$defs",
    "definitions",
    "$ref",
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
];
/// How many wrappers are taken off.
const MAX_WRAPPERS: usize = 3;
const PROPERTIES: &str = "/properties/";

/// The schema of an object, as far as it is known in spite of errors at these JSON pointers, which begin at the schema.
/// A property with an error allows everything. Where it is not known what an object must have, it must have everything:
/// nothing is reported then because it may be left out. Nothing where the names of the properties are not known.
pub(crate) fn known_part<'s>(written: &'s Value, errors: &[&str]) -> Option<Cow<'s, Value>> {
    let members = written.as_object()?;
    let mut schema = match errors.iter().all(|at| innermost_property(at).is_some()) {
        true => Cow::Borrowed(written),
        false => Cow::Owned(Value::Object(names(&Part::whole(members), errors, MAX_WRAPPERS)?)),
    };
    for property in errors.iter().filter_map(|at| innermost_property(at)) {
        // One error may have opened the property around that of the next one.
        if let Some(part) = schema.to_mut().pointer_mut(property) {
            *part = Value::Bool(true);
        }
    }
    Some(schema)
}

/// The beginning of a JSON pointer into a schema that leads to the innermost property.
fn innermost_property(pointer: &str) -> Option<&str> {
    let mut end = 0;
    while let Some(name) = pointer.get(end..).and_then(|rest| rest.strip_prefix(PROPERTIES)) {
        end += PROPERTIES.len() + name.find('/').unwrap_or(name.len());
    }
    pointer.get(..end).filter(|property| !property.is_empty())
}

/// A schema with the names that one with an error of the whole describes.
fn names(part: &Part<'_>, errors: &[&str], wrappers: usize) -> Option<Map<String, Value>> {
    if let Some(name) = wrapper(part) {
        let (inner, below) = (part.members.get(name)?.as_object()?, format!("/{name}"));
        let errors: Vec<&str> = errors.iter().filter_map(|at| at.strip_prefix(&below)).collect();
        return names(&Part::whole(inner), &errors, wrappers.checked_sub(1)?);
    }
    let written = SortedMembers::of(part);
    if whole(part, &written).is_some() {
        let properties = part.members.keys().map(|name| (name.clone(), Value::Bool(true))).collect();
        return Some(object(properties, Map::new()));
    }
    let has_error = |keyword: &str| errors.iter().any(|at| is_at(at, &format!("/{keyword}")));
    let mut properties = match part.members.get("properties").or_else(|| part.members.get(meant(&written)?)) {
        Some(properties) => listed(properties)?,
        None => Map::new(),
    };
    properties.extend(written.properties.iter().map(|name| ((*name).to_owned(), Value::Bool(true))));
    if properties.is_empty() {
        return None;
    }
    let naming = part.members.iter().filter(|(name, _)| NAMING.contains(&name.as_str()) && !has_error(name));
    let naming = naming.map(|(name, value)| (name.clone(), value.clone())).collect();
    Some(object(properties, naming))
}

/// A schema of an object that must have all of these properties.
fn object(properties: Map<String, Value>, naming: Map<String, Value>) -> Map<String, Value> {
    let required: Vec<&String> = properties.keys().collect();
    let mut schema = naming;
    schema.insert("required".to_owned(), json!(required));
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema
}

/// The name under which the properties are written that is no keyword.
fn meant<'s>(written: &SortedMembers<'s>) -> Option<&'s str> {
    let mut meant = written.meant.iter();
    let is_properties =
        |meaning: &KeywordMeaning| matches!(meaning, KeywordMeaning::Keyword { name: "properties", .. });
    meant.find(|(_, meaning)| is_properties(meaning)).map(|(name, _)| *name)
}

/// The properties that are written: an object of their schemas, a list of their names, or of objects with a `name`.
fn listed(properties: &Value) -> Option<Map<String, Value>> {
    let name = |entry: &Value| Some((entry.get("name").unwrap_or(entry).as_str()?.to_owned(), Value::Bool(true)));
    match properties {
        Value::Object(properties) => Some(properties.clone()),
        Value::Array(entries) => entries.iter().map(name).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(written: &Value, errors: &[&str]) -> Option<Vec<String>> {
        let known = known_part(written, errors)?;
        Some(known.get("properties")?.as_object()?.keys().cloned().collect())
    }

    #[test]
    fn the_names_of_a_schema_with_an_error_of_the_whole_are_known() {
        for (written, error) in [
            (json!({"a": "A-1", "b": 2}), ""),
            (json!({"a": "string", "b": "number"}), ""),
            (json!({"type": "string", "properties": {"a": {}, "b": {}}}), "/type"),
            (json!({"type": "object", "propertes": {"a": {}, "b": {}}}), "/propertes"),
            (json!({"type": "object", "a": {"type": "string"}, "b": {"type": "string"}}), "/a"),
            (json!({"properties": {"a": {}, "b": {}}, "required": true}), "/required"),
            (json!({"properties": ["a", {"name": "b"}]}), "/properties"),
            (json!({"name": "find", "parameters": {"properties": {"a": {}, "b": {}}}}), "/parameters"),
        ] {
            assert_eq!(names_of(&written, &[error]), Some(vec!["a".to_owned(), "b".to_owned()]), "{written}");
            let known = known_part(&written, &[error]).unwrap();
            assert_eq!(known.get("required"), Some(&json!(["a", "b"])), "{written}");
        }
    }

    #[test]
    fn what_leaves_the_names_open_is_not_known() {
        for (written, error) in
            [(json!([]), ""), (json!({"type": "string"}), "/type"), (json!({"properties": 5}), "/properties")]
        {
            assert_eq!(names_of(&written, &[error]), None, "{written}");
        }
    }

    #[test]
    fn an_error_of_a_property_opens_this_one_alone() {
        let written = json!({"properties": {"a": {"properties": {"b": {"type": "x"}, "c": {"type": "string"}}}}});
        let known = known_part(&written, &["/properties/a/properties/b/type"]).unwrap();
        assert_eq!(*known, json!({"properties": {"a": {"properties": {"b": true, "c": {"type": "string"}}}}}));
        assert_eq!(*known_part(&written, &[]).unwrap(), written);
    }
}
