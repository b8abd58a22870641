//! The schemas of what steps write. They name all members, so that a path into what no step writes is found.

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::choose::is_choice;
use super::known_value::REPLY_FORMAT;
use crate::compile::context::STEP;
use crate::language::form::FormField;
use crate::program::form::AskedField;

/// The schema of a value of which nothing is known.
pub(super) const ANY: Value = Value::Bool(true);

pub(super) fn object<const COUNT: usize>(members: [(&str, Value); COUNT]) -> Value {
    json!({ "type": "object", "properties": Map::from_iter(members.map(|(name, schema)| (name.to_owned(), schema))) })
}

pub(super) fn list(items: Value) -> Value {
    let members = [("type", json!("array")), ("items", items)].into_iter().filter(|(_, value)| *value != ANY);
    Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The schema of a text.
pub(crate) fn text() -> Value {
    json!({ "type": "string" })
}

/// The schema of what a model answers whose action has no `answer_schema`.
pub(super) fn reply() -> Value {
    json!({ "type": "string", "format": REPLY_FORMAT })
}

/// The schema of a number.
pub(super) fn number() -> Value {
    json!({ "type": "number" })
}

/// The schema of a name that the engine gives to each step and that has no parts. The formats say that the text is no JSON.
pub(super) fn of_engine(name: &str) -> Option<Value> {
    match name {
        "now" => Some(json!({ "type": "string", "format": "date-time" })),
        "__run_id" => Some(json!({ "type": "string", "format": "uuid" })),
        STEP => Some(number()),
        _ => None,
    }
}

/// The schema of what a wait gives.
pub(super) fn waited() -> Value {
    object([("until", text()), ("early", json!({ "type": "boolean" }))])
}

/// The schema of the items of a list, taken out of the schema of the list.
pub(super) fn items(list: Option<&Value>) -> Value {
    part(list.and_then(|list| list.get("items")))
}

/// A part of a schema as a schema of its own. One that refers to other parts is open: they are left behind.
pub(super) fn part(part: Option<&Value>) -> Value {
    part.filter(|part| !refers(part)).cloned().unwrap_or(ANY)
}

/// Whether a schema has a reference. A document is never deeper than its reader allows: the recursion ends.
fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            let is_reference = matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") && value.is_string();
            is_reference || refers(value)
        }),
        Value::Array(values) => values.iter().any(refers),
        _ => false,
    }
}

/// The schema of a value that matches one of two schemas of objects that name all members; else nothing is known of it.
pub(super) fn either(one: Value, other: Value) -> Value {
    let members = |schema: Value| match schema {
        Value::Object(mut schema) if schema.keys().all(|keyword| matches!(keyword.as_str(), "type" | "properties")) => {
            match schema.remove("properties") {
                Some(Value::Object(members)) => Some(members),
                _ => None,
            }
        }
        _ => None,
    };
    let (Some(mut all), Some(others)) = (members(one), members(other)) else { return ANY };
    for (name, schema) in others {
        let known = all.entry(name).or_insert_with(|| schema.clone());
        if *known != schema {
            *known = ANY;
        }
    }
    of_keys(all)
}

/// What a workflow answers whose `condition` does not hold.
pub(super) fn not_met() -> Value {
    object([("status", text())])
}

/// What a call returns that does not wait for the run that it starts.
pub(crate) fn launched() -> Value {
    object([("run_id", text()), ("status", text())])
}

/// What a HEAD request gives.
pub(crate) fn head() -> Value {
    object([("status", number()), ("headers", ANY)])
}

/// What a loop of mode `react` writes under its `result_key`.
pub(super) fn result(answer: Option<&Value>) -> Value {
    object([
        ("answer", part(answer)),
        ("confidence", number()),
        ("summary", text()),
        ("forced", json!({ "type": "boolean" })),
    ])
}

/// What a loop of mode `foreach` writes under its `summary_key`.
pub(super) fn counts() -> Value {
    object([
        ("total", number()),
        ("completed", number()),
        ("failed", number()),
        ("skipped", number()),
        ("cancelled", number()),
        ("failed_indexes", list(number())),
    ])
}

/// How a schema says why a member of a value may be missing. It says no more of the value than a comment does.
pub(crate) const MAY_BE_MISSING: &str = "$comment";

/// The schema of an object of which only the `sure` members are there in each run; `why` the others may be missing, in a
/// sentence.
pub(super) fn partly_there(mut schema: Value, sure: &[&str], why: &str) -> Value {
    if let Value::Object(members) = &mut schema {
        members.insert("required".to_owned(), json!(sure));
        members.insert(MAY_BE_MISSING.to_owned(), json!(why));
    }
    schema
}

/// What a loop of mode `foreach` writes under its `result_key`, where each item gives an output. `all_complete`: whether no item
/// can end otherwise.
pub(super) fn gathered(output: Value, all_complete: bool) -> Value {
    let entry = object([
        ("index", number()),
        ("status", json!({ "enum": ["completed", "failed", "skipped", "cancelled"] })),
        ("output", output),
        ("error", object([("code", text()), ("message", text()), ("step", text())])),
    ]);
    let why = "an item that failed or was skipped has no output";
    list(if all_complete { entry } else { partly_there(entry, &["index", "status"], why) })
}

/// Whether one of these steps runs in each item, whatever its filters decide: an item of which no step runs is skipped.
pub(super) fn always_runs(steps: Option<&Value>) -> bool {
    steps.and_then(Value::as_array).into_iter().flatten().any(runs)
}

/// A document is never deeper than its reader allows: the recursion ends.
fn runs(step: &Value) -> bool {
    if step.get("filter").is_some_and(|filter| !filter.is_null()) {
        return step.get("onFalse").is_some_and(runs);
    }
    match is_choice(step) {
        false => true,
        true => {
            let cases = step.get("cases").and_then(Value::as_array).into_iter().flatten();
            cases.map(|case| case.get("steps")).chain([step.get("otherwise")]).all(always_runs)
        }
    }
}

/// The lists that a matcher writes: the pairs, and what is left of both lists.
pub(super) fn matched(left: Value, right: Value) -> [Value; 3] {
    [list(object([("a", left.clone()), ("b", right.clone())])), list(left), list(right)]
}

/// What a form writes: its keys with any value, or its fields with those of their types.
pub(super) fn of_form(properties: &Value) -> Vec<(String, Value)> {
    let list = |name: &str| properties.get(name).and_then(Value::as_array).into_iter().flatten();
    let keys = list("expected_keys").filter_map(|key| Some((key.as_str()?.to_owned(), ANY)));
    let field = |field: &Value| {
        let name = field.get("name")?.as_str()?.to_owned();
        // A field that can't be read is reported, and nothing is known of its value.
        let read = FormField::deserialize(field).ok();
        let has_default = read.as_ref().is_some_and(|field| field.default.is_some());
        let schema = read.map_or(ANY, |field| {
            let bound = |bound: Option<Value>| bound.filter(Value::is_number);
            let (min, max) = (bound(field.min.clone()), bound(field.max.clone()));
            AskedField { required: field.required != Some(false) || has_default, min, max, ..AskedField::of(&field) }
                .key_schema()
        });
        Some((name, schema))
    };
    keys.chain(list("fields").filter_map(field)).collect()
}

/// Why a list of steps failed, for the steps that run then.
pub(super) fn error() -> Value {
    let step = json!({ "type": ["string", "null"] });
    object([("step", step), ("code", text()), ("message", text()), ("retryable", json!({ "type": "boolean" }))])
}

/// What an approval writes under `__approved`.
pub(super) fn approved() -> Value {
    json!({ "type": "boolean" })
}

/// What an approval writes under `__comment`.
pub(super) fn comment() -> Value {
    json!({ "type": ["string", "null"] })
}

/// What an approval writes under its `outputKey`. Whoever approves may replace the data.
pub(super) fn approval() -> Value {
    object([("approved", approved()), ("comment", comment()), ("data", ANY)])
}

/// What a step writes under its `outputKey` when it gives these keys, each with its schema.
pub(super) fn of_keys(keys: impl IntoIterator<Item = (String, Value)>) -> Value {
    json!({ "type": "object", "properties": Map::from_iter(keys) })
}
