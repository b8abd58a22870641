//! JSON Schemas: compiled once, with every reference to elsewhere refused.

mod message;
mod plain;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_plain;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ReferencingError, ValidationError};
use serde_json::{Map, Value, json};

use super::reference::escape_pointer;

/// The most faults that are told of one value.
const MAX_FAULTS: usize = 20;
/// The longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;
/// The biggest program that a pattern may compile to, in bytes.
const MAX_PATTERN_PROGRAM: usize = 1 << 20;
/// The most steps back of a pattern with look-around or back-references.
const MAX_BACKTRACKS: usize = 50_000;
/// How far the parts that describe one object may lie inside each other.
const MAX_PARTS_DEPTH: usize = 8;
/// The most digits of an exponent.
const MAX_EXPONENT_DIGITS: usize = 6;

/// A JSON Schema that is known to be valid. Cheap to clone; what compares values with it is made when
/// the first value comes, and shared by all clones.
#[derive(Debug, Clone)]
pub struct Schema {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    source: Value,
    text: OnceLock<Box<str>>,
    validator: OnceLock<Result<jsonschema::Validator, SchemaFault>>,
}

/// What does not match a schema, or what is wrong with the schema itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// The JSON pointer of the faulty part.
    pub path: String,
    /// What is wrong, in a sentence without a final stop.
    pub message: String,
}

impl Schema {
    /// Compiles a schema. It may refer to its own parts (`#/$defs/x`) and to nothing else: nothing
    /// is fetched, and no file is read. Its draft is that of `$schema`, when that is a known one;
    /// else 2020-12.
    ///
    /// # Errors
    /// When it is no valid JSON Schema, or refers to elsewhere; `path` leads into the schema then.
    pub fn compile(source: Value) -> Result<Self, SchemaFault> {
        let validator = OnceLock::new();
        if !plain::is_plain(&source) {
            drop(validator.set(Ok(build(&source)?)));
        }
        Ok(Self { parts: Arc::new(Parts { source, text: OnceLock::new(), validator }) })
    }

    /// The schema that every object matches.
    pub fn any() -> Self {
        let source = json!({"type": "object"});
        Self { parts: Arc::new(Parts { source, text: OnceLock::new(), validator: OnceLock::new() }) }
    }

    /// The schema as written.
    pub fn source(&self) -> &Value {
        &self.parts.source
    }

    /// The schema as one line of JSON: every run's prompt has it.
    pub fn text(&self) -> &str {
        self.parts.text.get_or_init(|| self.parts.source.to_string().into_boxed_str())
    }

    /// Everything about `instance` that does not match, at most 20 faults; empty when it matches.
    /// `path` leads into the instance.
    pub fn faults(&self, instance: &Value) -> Vec<SchemaFault> {
        // Beyond these an exact comparison would cost more than any number is worth.
        let immense = immense_numbers(instance, "");
        if !immense.is_empty() {
            return immense;
        }
        match self.parts.validator.get_or_init(|| build(self.source())) {
            // Looking for faults costs more than looking whether there are any.
            Ok(validator) if validator.is_valid(instance) => Vec::new(),
            Ok(validator) => validator
                .iter_errors(instance)
                .take(MAX_FAULTS)
                .map(|error| SchemaFault {
                    path: error.instance_path().to_string(),
                    message: message::of(&error, self.source(), instance),
                })
                .collect(),
            // What is plain compiles; were it ever not so, nothing would match, and this says why.
            Err(fault) => vec![SchemaFault { path: String::new(), message: fault.message.clone() }],
        }
    }

    /// The names of the properties that it describes for an object, in their order: its own, those
    /// of what it refers to, and those of `allOf`, `anyOf` and `oneOf`.
    pub fn properties(&self) -> Vec<&str> {
        let (mut names, mut known) = (Vec::new(), HashSet::new());
        self.each_part(&mut |part| {
            let described = part.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
            names.extend(described.map(String::as_str).filter(|name| known.insert(*name)));
        });
        names
    }

    /// The names that it requires of every object.
    pub fn required(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for part in std::iter::once(self.source()).chain(self.referred(self.source())) {
            names
                .extend(part.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str));
        }
        names
    }

    /// Whether it says itself that an object may have other properties than those it describes.
    pub fn is_open(&self) -> bool {
        let mut open = *self.source() == Value::Bool(true);
        self.each_part(&mut |part| {
            let additional = part.get("additionalProperties").or_else(|| part.get("unevaluatedProperties"));
            open |= part.get("patternProperties").is_some() || additional.is_some_and(|value| *value != false);
        });
        open
    }

    /// Whether it says itself that an object may have no other properties.
    pub fn is_closed(&self) -> bool {
        let shut = |key: &str| self.source().get(key) == Some(&Value::Bool(false));
        (shut("additionalProperties") || shut("unevaluatedProperties"))
            && self.source().get("patternProperties").is_none()
    }

    /// Visits the parts that describe the same object, each once.
    fn each_part<'s>(&'s self, visit: &mut dyn FnMut(&'s Value)) {
        self.parts_of(self.source(), MAX_PARTS_DEPTH, &mut HashMap::new(), visit);
    }

    /// `seen` tells how deep the search below a part went: parts that name each other many times over
    /// would be gone through without end.
    fn parts_of<'s>(
        &'s self,
        part: &'s Value,
        depth: usize,
        seen: &mut HashMap<*const Value, usize>,
        visit: &mut dyn FnMut(&'s Value),
    ) {
        match seen.insert(std::ptr::from_ref(part), depth) {
            Some(deep) if deep >= depth => {
                seen.insert(std::ptr::from_ref(part), deep);
                return;
            }
            Some(_) => {}
            None => visit(part),
        }
        if depth == 0 {
            return;
        }
        if let Some(inner) = self.referred(part) {
            self.parts_of(inner, depth - 1, seen, visit);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for inner in part.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.parts_of(inner, depth - 1, seen, visit);
            }
        }
    }

    /// The own part that `part` refers to.
    fn referred<'s>(&'s self, part: &Value) -> Option<&'s Value> {
        let pointer = part.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.source().pointer(pointer)
    }
}

/// What compares values with a schema.
fn build(source: &Value) -> Result<jsonschema::Validator, SchemaFault> {
    check_patterns(source, "")?;
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKS)
        .size_limit(MAX_PATTERN_PROGRAM)
        .dfa_size_limit(MAX_PATTERN_PROGRAM);
    jsonschema::options()
        .offline()
        .with_draft(draft(source))
        .with_pattern_options(patterns)
        .build(source)
        .map_err(|error| unfit(source, &error))
}

/// The draft that a schema names; 2020-12 when it names none, or one that is not known.
fn draft(source: &Value) -> Draft {
    let name = source.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let name = name.trim_end_matches('#').trim_start_matches("http://").trim_start_matches("https://");
    match name {
        "json-schema.org/draft-04/schema" => Draft::Draft4,
        "json-schema.org/draft-06/schema" => Draft::Draft6,
        "json-schema.org/draft-07/schema" => Draft::Draft7,
        "json-schema.org/draft/2019-09/schema" => Draft::Draft201909,
        _ => Draft::Draft202012,
    }
}

/// Says what is wrong with a schema.
fn unfit(source: &Value, error: &ValidationError<'_>) -> SchemaFault {
    let path = error.instance_path().to_string();
    let ValidationErrorKind::Referencing(fault) = error.kind() else {
        if matches!(error.kind(), ValidationErrorKind::Format { format } if format == "regex") {
            let pattern = error.instance().as_str().map(message::shorten).unwrap_or_default();
            return SchemaFault {
                path,
                message: format!("the pattern `{pattern}` can't be compiled: it is wrong, or too big"),
            };
        }
        let message = message::of(error, &Value::Null, source);
        return SchemaFault { path, message: format!("this is no JSON Schema: {message}") };
    };
    let named = match fault {
        ReferencingError::Unretrievable { uri, .. } => uri.clone(),
        ReferencingError::PointerToNowhere { pointer } => pointer.clone(),
        ReferencingError::NoSuchAnchor { anchor } | ReferencingError::InvalidAnchor { anchor } => anchor.clone(),
        other => other.to_string(),
    };
    let elsewhere = matches!(fault, ReferencingError::Unretrievable { .. });
    let found = find_reference(source, &named, "");
    let (path, reference) = found.unwrap_or((path, named));
    let reference = message::shorten(&reference);
    let message = if elsewhere {
        format!(
            "the schema refers to `{reference}`, and nothing is fetched or read from elsewhere; copy it under `$defs` and refer to `#/$defs/...`"
        )
    } else {
        format!("the schema refers to `{reference}`, and there is no such part in it")
    };
    SchemaFault { path, message }
}

/// Finds the reference that a fault is about: its place, and how it is written.
fn find_reference(part: &Value, uri: &str, path: &str) -> Option<(String, String)> {
    match part {
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| find_reference(item, uri, &format!("{path}/{at}")))
        }
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let path = format!("{path}/{}", escape_pointer(key));
            match member {
                Value::String(text) if matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") => {
                    let bare =
                        text.split('#').next().unwrap_or_default().trim_start_matches("./").trim_start_matches("../");
                    let same = text.trim_start_matches('#') == uri || (!bare.is_empty() && uri.ends_with(bare));
                    same.then(|| (path, text.clone()))
                }
                _ => find_reference(member, uri, &path),
            }
        }),
        _ => None,
    }
}

/// Refuses patterns that are too long to be compiled at once, wherever they stand.
fn check_patterns(part: &Value, path: &str) -> Result<(), SchemaFault> {
    let too_long = |pattern: &str, path: &str| {
        if pattern.len() <= MAX_PATTERN_BYTES {
            return Ok(());
        }
        let message = format!("the pattern is longer than {MAX_PATTERN_BYTES} bytes");
        Err(SchemaFault { path: path.to_owned(), message })
    };
    match part {
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(at, item)| check_patterns(item, &format!("{path}/{at}")))
        }
        Value::Object(members) => members.iter().try_for_each(|(key, member)| {
            let path = format!("{path}/{}", escape_pointer(key));
            match (key.as_str(), member) {
                ("pattern", Value::String(pattern)) => too_long(pattern, &path)?,
                ("patternProperties", Value::Object(patterns)) => {
                    patterns.keys().try_for_each(|pattern| too_long(pattern, &path))?;
                }
                _ => {}
            }
            check_patterns(member, &path)
        }),
        _ => Ok(()),
    }
}

/// The numbers of a value whose exponent has more digits than anyone needs.
fn immense_numbers(part: &Value, path: &str) -> Vec<SchemaFault> {
    // Hardly ever is there one: no path is written for the others.
    if !has_immense(part) {
        return Vec::new();
    }
    match part {
        Value::Number(number) => {
            let message = format!("{} has an exponent too big to be worked with", message::shorten(number.as_str()));
            vec![SchemaFault { path: path.to_owned(), message }]
        }
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(at, item)| immense_numbers(item, &format!("{path}/{at}"))).collect()
        }
        Value::Object(members) => members
            .iter()
            .flat_map(|(key, member)| immense_numbers(member, &format!("{path}/{}", escape_pointer(key))))
            .collect(),
        _ => Vec::new(),
    }
}

fn has_immense(part: &Value) -> bool {
    match part {
        Value::Number(number) => {
            let exponent = number.as_str().split(['e', 'E']).nth(1).unwrap_or_default();
            exponent.trim_start_matches(['+', '-']).trim_start_matches('0').len() >= MAX_EXPONENT_DIGITS
        }
        Value::Array(items) => items.iter().any(has_immense),
        Value::Object(members) => members.values().any(has_immense),
        _ => false,
    }
}
