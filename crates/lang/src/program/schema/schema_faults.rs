//! What is wrong with a schema itself: no valid one, a reference that leads nowhere or elsewhere, a
//! pattern or a number that can't be worked with.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError};
use serde_json::Value;

use super::SchemaFault;
use super::message;
use super::pattern;
use super::problem::ValueProblem;
use crate::policy::json_text;
use crate::program::reference::escape_pointer;

/// Why it does not match the schema of its draft: a bounded number of faults, one at a place.
pub(super) fn no_schema<'e>(
    source: &Value,
    errors: impl Iterator<Item = ValidationError<'e>>,
    most: usize,
) -> Vec<SchemaFault> {
    let mut faults: Vec<SchemaFault> = Vec::new();
    for error in errors {
        each_innermost(&error, &mut |error| {
            if faults.len() < most {
                let fault = by_draft(source, error);
                if faults.iter().all(|known| known.path != fault.path) {
                    faults.push(fault);
                }
            }
        });
        if faults.len() >= most {
            break;
        }
    }
    faults
}

/// Visits what is wrong; where none of several forms matches, what is wrong by the one that is wrong further inside.
fn each_innermost(error: &ValidationError<'_>, visit: &mut dyn FnMut(&ValidationError<'_>)) {
    let forms = match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => context.as_slice(),
        _ => &[],
    };
    let is_inside = |inner: &ValidationError<'_>| inner.instance_path().as_str() != error.instance_path().as_str();
    match forms.iter().find(|form| !form.is_empty() && form.iter().all(is_inside)) {
        Some(form) => form.iter().for_each(|inner| each_innermost(inner, visit)),
        None => visit(error),
    }
}

fn by_draft(source: &Value, error: &ValidationError<'_>) -> SchemaFault {
    if let ValidationErrorKind::Referencing(fault) = error.kind() {
        return reference(source, fault, error.instance_path().as_str());
    }
    let problem = ValueProblem::of(error);
    let message = message::of_schema(&problem);
    SchemaFault::new(problem.path, format!("this is no JSON Schema: {message}"))
}

/// A keyword holds what it can't.
pub(super) fn keyword(path: String, value: &Value) -> SchemaFault {
    let keyword = path.rsplit('/').next().unwrap_or_default().to_owned();
    let message = format!("this is no JSON Schema: `{}` can't be {}", message::shorten(&keyword), message::show(value));
    SchemaFault::new(path, message)
}

/// A pattern that the engine does not take.
pub(super) fn pattern(path: String, pattern: &str) -> SchemaFault {
    let pattern = message::shorten(pattern);
    SchemaFault::new(path, format!("the pattern `{pattern}` can't be compiled: it is wrong, or too big"))
}

/// A reference that can't be followed.
pub(super) fn reference(source: &Value, fault: &ReferencingError, path: &str) -> SchemaFault {
    let named = match fault {
        ReferencingError::Unretrievable { uri, .. } => uri.clone(),
        ReferencingError::PointerToNowhere { pointer } => pointer.clone(),
        ReferencingError::NoSuchAnchor { anchor } | ReferencingError::InvalidAnchor { anchor } => anchor.clone(),
        other => other.to_string(),
    };
    let elsewhere = matches!(fault, ReferencingError::Unretrievable { .. });
    let exact = source.pointer(path).and_then(Value::as_str).map(|written| (path.to_owned(), written.to_owned()));
    let found = exact.or_else(|| find_reference(source, &named, ""));
    let (path, reference) = found.unwrap_or((path.to_owned(), named));
    let reference = message::shorten(&reference);
    let message = if elsewhere {
        format!(
            "the schema refers to `{reference}`, and nothing is fetched or read from elsewhere; copy it under `$defs` and refer to `#/$defs/...`"
        )
    } else {
        format!("the schema refers to `{reference}`, and there is no such part in it")
    };
    SchemaFault::new(path, message)
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

/// Refuses patterns that are too long to be compiled at once, at every place.
pub(super) fn check_patterns(part: &Value, path: &str) -> Result<(), SchemaFault> {
    let too_long = |text: &str, path: &str| {
        if text.len() <= pattern::MAX_BYTES {
            return Ok(());
        }
        let message = format!("the pattern is longer than {} bytes", pattern::MAX_BYTES);
        Err(SchemaFault::new(path, message))
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
pub(super) fn immense_numbers(part: &Value, path: &str) -> Vec<SchemaFault> {
    // Hardly ever is there one: no path is written for the others.
    if !has_immense(part) {
        return Vec::new();
    }
    match part {
        Value::Number(number) => {
            let message =
                format!("{} has an exponent too big to be worked with", message::shorten(&json_text::digits(number)));
            vec![SchemaFault::new(path, message)]
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

/// The most digits of an exponent.
const MAX_EXPONENT_DIGITS: usize = 6;

/// Whether a number has an exponent of more digits than anyone needs.
pub(super) fn has_immense(part: &Value) -> bool {
    match part {
        Value::Number(number) => {
            let digits = json_text::digits(number);
            let exponent = digits.split(['e', 'E']).nth(1).unwrap_or_default();
            exponent.trim_start_matches(['+', '-']).trim_start_matches('0').len() >= MAX_EXPONENT_DIGITS
        }
        Value::Array(items) => items.iter().any(has_immense),
        Value::Object(members) => members.values().any(has_immense),
        _ => false,
    }
}
