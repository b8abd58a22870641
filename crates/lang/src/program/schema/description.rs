//! What a schema says of the values below the one that it describes.

use serde_json::{Map, Value};

use crate::program::reference::PathStep;

/// The most references of a part that are followed.
const MAX_REFERENCES: usize = 16;
/// The most names of `required` that are gone through for a use. Members of a longer list count as required.
const MAX_REQUIRED: usize = 1_000;
/// The most branches of an `anyOf` that are looked at.
const MAX_BRANCHES: usize = 50;
/// Keywords with which a schema may describe a value in another part, or in several ways.
const ELSEWHERE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "if", "$dynamicRef", "$recursiveRef", "dependentSchemas", "dependencies", "not"];
/// Keywords with which a schema describes members without naming them.
const UNNAMED: [&str; 4] = ["patternProperties", "propertyNames", "additionalProperties", "unevaluatedProperties"];

/// Formats of texts that are never JSON.
const NO_JSON: [&str; 9] = ["date", "time", "date-time", "duration", "email", "uri", "uuid", "hostname", "ipv4"];

/// How far a schema describes the way to a value.
#[derive(Debug, Default, PartialEq)]
pub struct Described<'s> {
    /// The first step that leads nowhere.
    pub absent: Option<AbsentStep<'s>>,
    /// The steps to members that may be left out.
    pub optional: Vec<usize>,
    /// What describes the value at the end of the path.
    pub value: Option<&'s Map<String, Value>>,
}

/// A step that leads nowhere.
#[derive(Debug, PartialEq)]
pub struct AbsentStep<'s> {
    /// Its number in the path.
    pub at: usize,
    /// Why, as the end of a sentence whose subject is the value before the step: `is a text and has no `name``.
    pub why: String,
    /// The members that the value before it has, where it is an object.
    pub members: Option<&'s Map<String, Value>>,
    /// What the value before it is.
    pub owner: StepOwner<'s>,
}

/// A value that does not have the step that a path takes from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepOwner<'s> {
    /// A list, with the members of its entries where they are objects.
    List(Option<&'s Map<String, Value>>),
    /// A text that may be JSON, into which a path leads.
    Text,
    /// A text that is no JSON.
    Word,
    /// Another value.
    Other,
}

/// Follows a path from the value that a schema describes. Where the schema leaves something open, it says nothing.
pub fn described<'s>(schema: &'s Value, path: &[PathStep]) -> Described<'s> {
    let mut found = Described::default();
    let mut part = schema;
    for (at, step) in path.iter().enumerate() {
        let Some(resolved) = resolved(schema, part) else { return found };
        match below(resolved, step) {
            Below::Part { part: next, is_required } => {
                if !is_required {
                    found.optional.push(at);
                }
                part = next;
            }
            Below::Open => return found,
            Below::Absent { why, members, owner } => {
                found.absent = Some(AbsentStep { at, why, members, owner });
                return found;
            }
        }
    }
    found.value = resolved(schema, part);
    found
}

/// The types of a value that is no text, number or boolean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LargeTypes {
    /// It may be an object.
    pub object: bool,
    /// It may be a list.
    pub list: bool,
    /// It may be null.
    pub null: bool,
}

impl LargeTypes {
    /// Those that a part of a schema allows; nothing where it leaves that open in ways that are not followed.
    pub fn allowed(schema: &Value, part: &Map<String, Value>) -> Option<Self> {
        if let Some(branches) = part.get("anyOf").or_else(|| part.get("oneOf")).and_then(Value::as_array) {
            if part.contains_key("type") || branches.len() > MAX_BRANCHES {
                return None;
            }
            return branches.iter().try_fold(Self::default(), |all, branch| {
                let branch = resolved(schema, branch).filter(|branch| !is_elsewhere(branch))?;
                Some(all.or(Self::of(branch)))
            });
        }
        (!is_elsewhere(part)).then(|| Self::of(part))
    }

    fn of(part: &Map<String, Value>) -> Self {
        let values = part.get("enum").and_then(Value::as_array).map(Vec::as_slice);
        if let Some(values) = values.or_else(|| part.get("const").map(std::slice::from_ref)) {
            let any = |is: fn(&Value) -> bool| values.iter().any(is);
            return Self { object: any(Value::is_object), list: any(Value::is_array), null: any(Value::is_null) };
        }
        let names: Vec<&str> = match part.get("type") {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => vec!["object", "array", "null"],
        };
        let has = |name: &str| names.contains(&name);
        Self { object: has("object"), list: has("array"), null: has("null") }
    }

    fn or(self, other: Self) -> Self {
        Self { object: self.object || other.object, list: self.list || other.list, null: self.null || other.null }
    }
}

fn is_elsewhere(part: &Map<String, Value>) -> bool {
    // A part has few members: a look at them costs less than a search for each keyword.
    part.keys().any(|keyword| ELSEWHERE.contains(&keyword.as_str()))
}

enum Below<'s> {
    Part { part: &'s Value, is_required: bool },
    Open,
    Absent { why: String, members: Option<&'s Map<String, Value>>, owner: StepOwner<'s> },
}

/// A part with its references followed; nothing when they lead nowhere or too far.
fn resolved<'s>(schema: &'s Value, part: &'s Value) -> Option<&'s Map<String, Value>> {
    let mut part = part;
    for _ in 0..MAX_REFERENCES {
        let members = part.as_object()?;
        match members.get("$ref") {
            Some(reference) => part = schema.pointer(reference.as_str()?.strip_prefix('#')?)?,
            None => return Some(members),
        }
    }
    None
}

fn below<'s>(part: &'s Map<String, Value>, step: &PathStep) -> Below<'s> {
    if is_elsewhere(part) {
        return Below::Open;
    }
    let types: Vec<&str> = match part.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect(),
        _ if part.contains_key("properties") => vec!["object"],
        _ => type_of_values(part).into_iter().collect(),
    };
    match (types.as_slice(), step) {
        (["object"], PathStep::Name(name)) => member(part, name),
        (["array"], PathStep::Entry) => item(part),
        (["array"], PathStep::Name(name)) if name.bytes().all(|byte| byte.is_ascii_digit()) => item(part),
        (["array" | "string"], PathStep::Name(name)) if name == "length" => Below::Open,
        (["object"], PathStep::Entry) => Below::Open,
        // A path into a text that is JSON reads the JSON, and so does a block that goes through it.
        (["string"], PathStep::Name(_)) if is_json(part) => Below::Open,
        (["string"], PathStep::Entry) if is_declared_json(part) => Below::Open,
        ([of_type @ ("array" | "string" | "integer" | "number" | "boolean")], step) => {
            let is = match *of_type {
                "array" => "is a list",
                "string" => "is a text",
                "boolean" => "is true or false",
                _ => "is a number",
            };
            let why = match step {
                PathStep::Name(name) => format!("{is} and has no `{}`", short(name)),
                PathStep::Entry => format!("{is}, and `each` needs a list"),
            };
            let owner = match *of_type {
                "array" => StepOwner::List(members_of_entries(part)),
                "string" if is_word(part) => StepOwner::Word,
                "string" => StepOwner::Text,
                _ => StepOwner::Other,
            };
            Below::Absent { why, members: None, owner }
        }
        _ => Below::Open,
    }
}

/// The type of all values that an `enum` or a `const` lists, without null; none where they are of several.
fn type_of_values(part: &Map<String, Value>) -> Option<&'static str> {
    let values = part.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let values = values.or_else(|| part.get("const").map(std::slice::from_ref))?;
    let type_of = |value: &Value| match value {
        Value::Null => None,
        Value::Bool(_) => Some("boolean"),
        Value::Number(_) => Some("number"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("array"),
        Value::Object(_) => Some("object"),
    };
    let mut types = values.iter().filter_map(type_of);
    let first = types.next()?;
    types.all(|other| other == first).then_some(first)
}

fn member<'s>(part: &'s Map<String, Value>, name: &str) -> Below<'s> {
    let Some(properties) = part.get("properties").and_then(Value::as_object) else { return Below::Open };
    if let Some(found) = properties.get(name) {
        let required = part.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_required = required.len() > MAX_REQUIRED || required.iter().any(|one| one.as_str() == Some(name));
        return Below::Part { part: found, is_required };
    }
    if UNNAMED.iter().any(|keyword| part.get(*keyword).is_some_and(|value| *value != Value::Bool(false))) {
        return Below::Open;
    }
    Below::Absent { why: format!("has no `{}`", short(name)), members: Some(properties), owner: StepOwner::Other }
}

fn item(part: &Map<String, Value>) -> Below<'_> {
    match part.get("items") {
        Some(items @ Value::Object(_)) if !part.contains_key("prefixItems") => {
            Below::Part { part: items, is_required: true }
        }
        _ => Below::Open,
    }
}

fn members_of_entries(list: &Map<String, Value>) -> Option<&Map<String, Value>> {
    list.get("items")?.get("properties")?.as_object()
}

/// Whether a text is said to hold JSON.
fn is_json(part: &Map<String, Value>) -> bool {
    is_declared_json(part) || ["format", "description", "title"].into_iter().any(|keyword| names_json(part, keyword))
}

/// Whether a schema declares that its texts are JSON.
pub fn is_declared_json(part: &Map<String, Value>) -> bool {
    part.contains_key("contentSchema") || names_json(part, "contentMediaType")
}

fn names_json(part: &Map<String, Value>, keyword: &str) -> bool {
    part.get(keyword).and_then(Value::as_str).is_some_and(|text| text.to_ascii_lowercase().contains("json"))
}

/// Whether a text is said to be something else than JSON.
fn is_word(part: &Map<String, Value>) -> bool {
    let is_short = part.get("maxLength").and_then(Value::as_f64).is_some_and(|most| most < 2.0);
    let format = part.get("format").and_then(Value::as_str).unwrap_or_default();
    let is_begin = |value: &Value| value.as_str().is_some_and(|text| text.trim_start().starts_with(['{', '[']));
    let values = part.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let values = values.or_else(|| part.get("const").map(std::slice::from_ref));
    is_short || NO_JSON.contains(&format) || values.is_some_and(|values| !values.iter().any(is_begin))
}

/// A name, cut where it is long.
pub fn short(name: &str) -> String {
    super::message::shorten(name).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Vec<PathStep> {
        text.split('.')
            .map(|name| if name == "*" { PathStep::Entry } else { PathStep::Name(name.to_owned()) })
            .collect()
    }

    #[test]
    fn a_path_is_followed_as_far_as_the_schema_describes_it() {
        let schema = json!({
            "type": "object",
            "required": ["customer", "items", "raw", "ref", "open", "count"],
            "properties": {
                "customer": {"type": "string"},
                "items": {"type": "array", "items": {
                    "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
                "raw": {"type": "string", "contentMediaType": "application/json"},
                "ref": {"$ref": "#/$defs/window"},
                "open": {"type": "object", "properties": {"a": {}}, "additionalProperties": true},
                "count": {"type": ["integer", "null"]},
                "note": {"type": "string"},
                "either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
            },
            "$defs": {"window": {"properties": {"from": {}, "to": {}}, "required": ["from", "to"]}},
        });
        for (at, why) in [
            ("customer.name", Some("is a text and has no `name`")),
            ("items.*.qty", Some("has no `qty`")),
            ("items.0.qty", Some("has no `qty`")),
            ("items.name", Some("is a list and has no `name`")),
            ("items.*.name.first", Some("is a text and has no `first`")),
            ("count.*", Some("is a number, and `each` needs a list")),
            ("note.*", Some("is a text, and `each` needs a list")),
            ("raw.*", None),
            ("ref.start", Some("has no `start`")),
            ("missing", Some("has no `missing`")),
            ("customer", None),
            ("customer.length", None),
            ("items.length", None),
            ("items.*.name", None),
            ("raw.anything.at.all", None),
            ("open.whatever", None),
            ("either.x", None),
            ("ref.from.x", None),
        ] {
            let found = described(&schema, &path(at));
            assert_eq!(found.absent.map(|absent| absent.why).as_deref(), why, "{at}");
        }
        assert_eq!(described(&schema, &path("note")).optional, [0]);
        assert_eq!(described(&schema, &path("ref.from")).optional, [] as [usize; 0]);
    }

    #[test]
    fn what_a_part_allows_beside_texts_numbers_and_booleans() {
        for (part, allowed) in [
            (json!({"type": "string"}), Some("")),
            (json!({"type": ["integer", "null"]}), Some("null")),
            (json!({"type": "array", "items": {}}), Some("list")),
            (json!({"type": ["object", "array", "number"]}), Some("object list")),
            (json!({"description": "any"}), Some("object list null")),
            (json!({"enum": ["a", null]}), Some("null")),
            (json!({"type": "string", "enum": ["a"]}), Some("")),
            (json!({"const": {"a": 1}}), Some("object")),
            (json!({"anyOf": [{"type": "string"}, {"type": "object"}]}), Some("object")),
            (json!({"oneOf": [{"type": "string"}, {"$ref": "#/nowhere"}]}), None),
            (json!({"allOf": [{"type": "string"}]}), None),
        ] {
            let found = LargeTypes::allowed(&part, part.as_object().unwrap());
            let words = found.map(|found| {
                let all = [(found.object, "object"), (found.list, "list"), (found.null, "null")];
                all.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(words.as_deref(), allowed, "{part}");
        }
    }
}
