//! The keywords of each draft: which are known, in which order their faults are reported, what they ask for.

use std::collections::{HashMap, HashSet};

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::SchemaFault;
use super::lowering::{Lowering, Task};
use super::plan::{Choices, Demand, Id, PropertyRules, Ruled, SchemaRule, Sized, TYPES};
use super::schema_faults;
use crate::policy::json_text;
use crate::program::canonical;
use crate::program::reference::escape_pointer;
use crate::syntax::decimal::Decimal;

/// A keyword, its value, and the keywords beside it.
#[derive(Clone, Copy)]
pub(super) struct Written<'r> {
    pub name: &'static str,
    pub value: &'r Value,
    pub members: &'r Map<String, Value>,
}

/// The keywords with the drafts that know them, in the order in which their faults are reported.
const KEYWORDS: &[(&str, Draft, Draft)] = &[
    ("type", Draft::Draft4, Draft::Draft202012),
    ("const", Draft::Draft6, Draft::Draft202012),
    ("enum", Draft::Draft4, Draft::Draft202012),
    ("minimum", Draft::Draft4, Draft::Draft202012),
    ("maximum", Draft::Draft4, Draft::Draft202012),
    ("exclusiveMinimum", Draft::Draft6, Draft::Draft202012),
    ("exclusiveMaximum", Draft::Draft6, Draft::Draft202012),
    ("multipleOf", Draft::Draft4, Draft::Draft202012),
    ("minLength", Draft::Draft4, Draft::Draft202012),
    ("maxLength", Draft::Draft4, Draft::Draft202012),
    ("minItems", Draft::Draft4, Draft::Draft202012),
    ("maxItems", Draft::Draft4, Draft::Draft202012),
    ("minProperties", Draft::Draft4, Draft::Draft202012),
    ("maxProperties", Draft::Draft4, Draft::Draft202012),
    ("required", Draft::Draft4, Draft::Draft202012),
    ("dependentRequired", Draft::Draft201909, Draft::Draft202012),
    ("pattern", Draft::Draft4, Draft::Draft202012),
    ("format", Draft::Draft4, Draft::Draft7),
    ("contentEncoding", Draft::Draft6, Draft::Draft7),
    ("contentMediaType", Draft::Draft6, Draft::Draft7),
    ("uniqueItems", Draft::Draft4, Draft::Draft202012),
    ("properties", Draft::Draft4, Draft::Draft202012),
    ("patternProperties", Draft::Draft4, Draft::Draft202012),
    ("additionalProperties", Draft::Draft4, Draft::Draft202012),
    ("propertyNames", Draft::Draft6, Draft::Draft202012),
    ("items", Draft::Draft4, Draft::Draft202012),
    ("prefixItems", Draft::Draft202012, Draft::Draft202012),
    ("additionalItems", Draft::Draft4, Draft::Draft202012),
    ("contains", Draft::Draft6, Draft::Draft202012),
    ("dependencies", Draft::Draft4, Draft::Draft202012),
    ("dependentSchemas", Draft::Draft201909, Draft::Draft202012),
    ("allOf", Draft::Draft4, Draft::Draft202012),
    ("anyOf", Draft::Draft4, Draft::Draft202012),
    ("oneOf", Draft::Draft4, Draft::Draft202012),
    ("not", Draft::Draft4, Draft::Draft202012),
    ("if", Draft::Draft7, Draft::Draft202012),
    ("unevaluatedProperties", Draft::Draft201909, Draft::Draft202012),
    ("unevaluatedItems", Draft::Draft201909, Draft::Draft202012),
    ("$ref", Draft::Draft4, Draft::Draft202012),
    ("$recursiveRef", Draft::Draft201909, Draft::Draft201909),
    ("$dynamicRef", Draft::Draft202012, Draft::Draft202012),
];

/// The keyword of that name, where the draft knows it.
pub(super) fn known(draft: Draft, name: &str) -> Option<&'static str> {
    let found = KEYWORDS.iter().find(|(known, first, last)| *known == name && (*first..=*last).contains(&draft));
    found.map(|(name, ..)| *name)
}

/// The place of a keyword's faults among those of a part.
pub(super) fn order(name: &str) -> usize {
    KEYWORDS.iter().position(|(known, ..)| *known == name).unwrap_or(KEYWORDS.len())
}

/// Adds what a keyword asks for.
///
/// # Errors
/// When it holds what it can't.
pub(super) fn read<'r>(
    lowering: &mut Lowering<'r>,
    task: &Task<'r>,
    written: Written<'r>,
    rules: &mut Vec<Ruled>,
) -> Result<(), SchemaFault> {
    let Written { name, value, .. } = written;
    let rule = match name {
        "$ref" | "$dynamicRef" => match value.as_str() {
            Some(reference) => Some(SchemaRule::Ref(lowering.refer(task, reference)?)),
            None => None,
        },
        "$recursiveRef" => Some(SchemaRule::Ref(lowering.recurse(task)?)),
        "allOf" => Some(SchemaRule::AllOf(lowering.parts(task, value, name)?)),
        "anyOf" => Some(SchemaRule::AnyOf(lowering.parts(task, value, name)?)),
        "oneOf" => Some(SchemaRule::OneOf(lowering.parts(task, value, name)?)),
        "not" => Some(SchemaRule::Not(lowering.part(task, value, name)?)),
        "propertyNames" => Some(SchemaRule::PropertyNames(lowering.part(task, value, name)?)),
        "unevaluatedProperties" => Some(SchemaRule::UnevaluatedProperties(lowering.part(task, value, name)?)),
        "unevaluatedItems" => Some(SchemaRule::UnevaluatedItems(lowering.part(task, value, name)?)),
        "if" => match condition(lowering, task, &written)? {
            Some(rule) => Some(rule),
            None => return Ok(()),
        },
        "items" | "prefixItems" | "additionalItems" | "contains" => return items(lowering, task, &written, rules),
        "properties" | "patternProperties" | "additionalProperties" | "dependencies" | "dependentSchemas" => {
            return members(lowering, task, &written, rules);
        }
        "pattern" => match value.as_str() {
            Some(pattern) => Some(SchemaRule::Pattern(lowering.pattern(task, pattern, name)?)),
            None => None,
        },
        _ => return leaf(task, &written, rules),
    };
    let Some(rule) = rule else { return Err(schema_faults::keyword(Lowering::path(task, name), value)) };
    rules.push(Ruled { keyword: name, rule });
    Ok(())
}

fn condition<'r>(
    lowering: &mut Lowering<'r>,
    task: &Task<'r>,
    written: &Written<'r>,
) -> Result<Option<SchemaRule>, SchemaFault> {
    let branches = ["then", "else"].into_iter().any(|name| written.members.contains_key(name));
    // Alone, it asks for nothing. It speaks of members and items then, where a later draft looks for them.
    if !branches && task.draft < Draft::Draft201909 {
        return Ok(None);
    }
    let condition = lowering.part(task, written.value, "if")?;
    let mut branch = |name| match written.members.get(name) {
        Some(part) => lowering.part(task, part, name).map(Some),
        None => Ok(None),
    };
    Ok(Some(SchemaRule::If { condition, then: branch("then")?, otherwise: branch("else")? }))
}

fn items<'r>(
    lowering: &mut Lowering<'r>,
    task: &Task<'r>,
    written: &Written<'r>,
    rules: &mut Vec<Ruled>,
) -> Result<(), SchemaFault> {
    let Written { name, value, members } = written;
    let listed = |key: &str| members.get(key).and_then(Value::as_array).map(Vec::len);
    let rule = match (*name, value) {
        ("items", Value::Array(_)) | ("prefixItems", _) => SchemaRule::PrefixItems(lowering.parts(task, value, name)?),
        ("items", _) => {
            let from = if task.draft == Draft::Draft202012 { listed("prefixItems").unwrap_or(0) } else { 0 };
            SchemaRule::Items { from, part: lowering.part(task, value, name)? }
        }
        ("additionalItems", _) => match listed("items") {
            Some(from) => SchemaRule::Items { from, part: lowering.part(task, value, name)? },
            None => return Ok(()),
        },
        _ => {
            let bound = |key: &str| {
                members
                    .get(key)
                    .filter(|_| task.draft >= Draft::Draft201909)
                    .map(|limit| whole(limit).ok_or_else(|| schema_faults::keyword(Lowering::path(task, key), limit)))
            };
            let (least, most) = (bound("minContains").transpose()?.unwrap_or(1), bound("maxContains").transpose()?);
            SchemaRule::Contains { part: lowering.part(task, value, name)?, least, most }
        }
    };
    rules.push(Ruled { keyword: name, rule });
    Ok(())
}

fn members<'r>(
    lowering: &mut Lowering<'r>,
    task: &Task<'r>,
    written: &Written<'r>,
    rules: &mut Vec<Ruled>,
) -> Result<(), SchemaFault> {
    let Written { name, value, members } = written;
    let rule = match (*name, value) {
        ("additionalProperties", _) => additional(lowering, task, written)?,
        (_, Value::Object(parts)) => match *name {
            "properties" => {
                let listed: Box<[_]> = lowering.named(task, parts, name)?.into();
                let named: HashMap<Box<str>, Id> = listed.iter().cloned().collect();
                let by_value = members.contains_key("additionalProperties");
                SchemaRule::Properties(PropertyRules { listed, by_value, named })
            }
            "patternProperties" => {
                let mut patterns = Vec::with_capacity(parts.len());
                for (pattern, part) in parts {
                    let part = lowering.part(task, part, &format!("{name}/{}", escape_pointer(pattern)))?;
                    patterns.push((lowering.pattern(task, pattern, name)?, part));
                }
                SchemaRule::PatternProperties(patterns.into())
            }
            "dependentSchemas" => SchemaRule::Dependent(lowering.named(task, parts, name)?.into()),
            _ => return dependencies(lowering, task, parts, rules),
        },
        _ => return Err(schema_faults::keyword(Lowering::path(task, name), value)),
    };
    rules.push(Ruled { keyword: name, rule });
    Ok(())
}

fn additional<'r>(
    lowering: &mut Lowering<'r>,
    task: &Task<'r>,
    written: &Written<'r>,
) -> Result<SchemaRule, SchemaFault> {
    let names = |key: &str| written.members.get(key).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let known: HashSet<Box<str>> = names("properties").map(|name| name.as_str().into()).collect();
    let mut patterns = Vec::new();
    for pattern in names("patternProperties") {
        patterns.push(lowering.pattern(task, pattern, "patternProperties")?);
    }
    let part = lowering.part(task, written.value, "additionalProperties")?;
    Ok(SchemaRule::AdditionalProperties { known, patterns: patterns.into(), part })
}

/// What later drafts say with `dependentRequired` and `dependentSchemas`.
fn dependencies<'r>(
    lowering: &mut Lowering<'r>,
    task: &Task<'r>,
    written: &'r Map<String, Value>,
    rules: &mut Vec<Ruled>,
) -> Result<(), SchemaFault> {
    let (mut parts, mut lists): (Vec<(Box<str>, Id)>, Vec<Demand>) = (Vec::new(), Vec::new());
    for (key, value) in written {
        let below = format!("dependencies/{}", escape_pointer(key));
        match names(value) {
            Some(names) => lists.push(Demand { name: key.as_str().into(), names }),
            None => parts.push((key.as_str().into(), lowering.part(task, value, &below)?)),
        }
    }
    rules.push(Ruled { keyword: "dependencies", rule: SchemaRule::DependentRequired(lists.into()) });
    rules.push(Ruled { keyword: "dependencies", rule: SchemaRule::Dependent(parts.into()) });
    Ok(())
}

/// The keywords that look at one value alone.
fn leaf(task: &Task<'_>, written: &Written<'_>, rules: &mut Vec<Ruled>) -> Result<(), SchemaFault> {
    let Written { name, value, members } = written;
    let unfit = || schema_faults::keyword(Lowering::path(task, name), value);
    if let Some(fault) = schema_faults::immense_numbers(value, &Lowering::path(task, name)).into_iter().next() {
        return Err(fault);
    }
    let rule = match *name {
        "type" => types(value).map(|types| SchemaRule::Type { types, written_integers: task.draft == Draft::Draft4 }),
        "const" => Some(SchemaRule::Choice(choices(std::slice::from_ref(*value)))),
        "enum" => value.as_array().map(|values| SchemaRule::Choice(choices(values))),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            decimal(value).map(|limit| SchemaRule::Bound {
                limit,
                below: name.ends_with("aximum"),
                exclusive: match members.get(if name.ends_with("aximum") {
                    "exclusiveMaximum"
                } else {
                    "exclusiveMinimum"
                }) {
                    Some(Value::Bool(exclusive)) => *exclusive && task.draft == Draft::Draft4,
                    _ => name.starts_with("exclusive"),
                },
            })
        }
        "multipleOf" => decimal(value).map(SchemaRule::MultipleOf),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            let of = match name.get(3..) {
                Some("Length") => Sized::Text,
                Some("Items") => Sized::Items,
                _ => Sized::Members,
            };
            whole(value).map(|limit| SchemaRule::Size { of, limit, most: name.starts_with("max") })
        }
        "required" => names(value).map(SchemaRule::Required),
        "dependentRequired" => value
            .as_object()
            .and_then(|lists| {
                lists
                    .iter()
                    .map(|(key, list)| Some(Demand { name: key.as_str().into(), names: names(list)? }))
                    .collect()
            })
            .map(SchemaRule::DependentRequired),
        "uniqueItems" => match value {
            Value::Bool(true) => Some(SchemaRule::UniqueItems),
            Value::Bool(false) => return Ok(()),
            _ => None,
        },
        _ => match judged(task, written) {
            Some(rule) => Some(rule),
            None => return Ok(()),
        },
    };
    let rule = rule.ok_or_else(unfit)?;
    rules.push(Ruled { keyword: name, rule });
    Ok(())
}

/// What the library of schemas judges on its own: formats, and what a text encodes.
fn judged(task: &Task<'_>, written: &Written<'_>) -> Option<SchemaRule> {
    let mut alone = Map::new();
    alone.insert(written.name.to_owned(), written.value.clone());
    // What a text holds is known once it is decoded.
    if written.name == "contentMediaType"
        && let Some(encoding) = written.members.get("contentEncoding")
    {
        alone.insert("contentEncoding".to_owned(), encoding.clone());
    }
    let validator = jsonschema::options().offline().with_draft(task.draft).build(&json!(alone)).ok()?;
    Some(SchemaRule::Judged(Box::new(validator)))
}

fn types(value: &Value) -> Option<u8> {
    let one = |name: &Value| {
        let at = TYPES.iter().position(|known| Some(*known) == name.as_str())?;
        Some(1_u8 << u32::try_from(at).ok()?)
    };
    match value {
        Value::Array(names) => names.iter().try_fold(0, |all, name| Some(all | one(name)?)),
        name => one(name),
    }
}

fn choices(values: &[Value]) -> Choices {
    let mut choices = Choices::default();
    for value in values {
        match value {
            Value::String(text) => choices.texts.insert(text.as_str().into()),
            other => choices.others.insert(canonical::spelling(other).into()),
        };
    }
    choices
}

fn names(value: &Value) -> Option<Box<[Box<str>]>> {
    value.as_array()?.iter().map(|name| name.as_str().map(Box::from)).collect()
}

fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => Decimal::read(&json_text::digits(number)),
        _ => None,
    }
}

/// A number of things. What is beyond all numbers of things is the largest.
fn whole(value: &Value) -> Option<u64> {
    let number = decimal(value)?;
    if !number.is_whole() {
        return None;
    }
    Some(number.whole().map_or(u64::MAX, |digits| digits.parse().unwrap_or(u64::MAX)))
}
