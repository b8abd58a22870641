//! Schemas that are seen to be valid at a glance, so that they need not be compiled before a value
//! is compared with them: of known keywords, each with a value of its kind, and without references.
//! What is not seen here is compiled at once, and the compiler of schemas reports it.

use serde_json::{Map, Value};

use crate::policy::json_text;

const TYPES: [&str; 7] = ["string", "object", "integer", "number", "boolean", "array", "null"];
/// The most digits of a number that is no matter of precision.
const MAX_DIGITS: usize = 15;
/// The longest pattern that is looked at, in bytes, and the most repetitions in one.
const MAX_PATTERN: (usize, u32) = (120, 64);

/// Whether a schema is seen to be valid. `false` says nothing.
pub(super) fn is_plain(schema: &Value) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(members) => members.iter().all(|(key, value)| is_plain_member(key, value)),
        _ => false,
    }
}

fn is_plain_member(key: &str, value: &Value) -> bool {
    match key {
        "type" => match value {
            Value::Array(names) => !names.is_empty() && names.iter().all(is_type) && all_differ(names),
            name => is_type(name),
        },
        "properties" => value.as_object().is_some_and(|members: &Map<String, Value>| members.values().all(is_plain)),
        "items" | "additionalProperties" | "not" => is_plain(value),
        "anyOf" | "oneOf" | "allOf" => {
            value.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_plain))
        }
        "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string) && all_differ(names)),
        "enum" => value
            .as_array()
            .is_some_and(|values| !values.is_empty() && values.iter().all(is_plain_scalar) && all_differ(values)),
        "const" => is_plain_scalar(value),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => is_plain_number(value),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_u64().is_some_and(|count| count <= u64::from(u32::MAX))
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "description" | "title" | "$comment" => value.is_string(),
        "default" => true,
        "examples" => value.is_array(),
        "pattern" => value.as_str().is_some_and(is_plain_pattern),
        _ => false,
    }
}

fn is_type(name: &Value) -> bool {
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn all_differ(values: &[Value]) -> bool {
    values.len() <= 64
        && values.iter().enumerate().all(|(at, value)| values.iter().take(at).all(|before| before != value))
}

fn is_plain_scalar(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(_) => is_plain_number(value),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn is_plain_number(value: &Value) -> bool {
    let Value::Number(number) = value else { return false };
    let digits = json_text::digits(number);
    digits.len() <= MAX_DIGITS && !digits.contains(['e', 'E'])
}

/// Literals and classes of ASCII letters and digits, with small counts behind them.
fn is_plain_pattern(pattern: &str) -> bool {
    if pattern.len() > MAX_PATTERN.0 {
        return false;
    }
    let rest = pattern.strip_prefix('^').unwrap_or(pattern);
    let mut rest = rest.strip_suffix('$').unwrap_or(rest);
    let literal = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | ':' | '/' | '@' | ',');
    while let Some(c) = rest.chars().next() {
        rest = match rest.strip_prefix("\\d").or_else(|| rest.strip_prefix("\\.")) {
            Some(after) => after,
            None if c == '[' => match rest.get(1..).and_then(|inner| inner.split_once(']')) {
                Some((class, after)) if is_plain_class(class) => after,
                _ => return false,
            },
            None if literal(c) => rest.get(1..).unwrap_or_default(),
            None => return false,
        };
        rest = match rest.strip_prefix(['+', '*', '?']) {
            Some(after) => after,
            None if rest.starts_with('{') => match rest.get(1..).and_then(|inner| inner.split_once('}')) {
                Some((count, after)) if is_plain_count(count) => after,
                _ => return false,
            },
            None => rest,
        };
    }
    true
}

/// `A-Za-z0-9_`: ranges of one kind of letter, and letters.
fn is_plain_class(class: &str) -> bool {
    let mut rest = class;
    for range in ["A-Z", "a-z", "0-9", "A-F", "a-f"] {
        rest = rest.strip_prefix(range).unwrap_or(rest);
    }
    !class.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_plain_count(count: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().ok().filter(|count| *count <= MAX_PATTERN.1);
    match count.split_once(',') {
        Some((least, "")) => number(least).is_some(),
        Some((least, most)) => number(least).zip(number(most)).is_some_and(|(least, most)| least <= most),
        None => number(count).is_some(),
    }
}

/// An upper bound of the bytes that the patterns of a plain schema take once they are compiled: a class, a
/// letter and each repetition of one takes a state or two.
pub(super) fn pattern_bytes(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match (key.as_str(), value) {
                ("pattern", Value::String(pattern)) => bytes_of(pattern).unwrap_or_default(),
                ("default" | "examples" | "enum" | "const", _) => 0,
                ("properties", Value::Object(parts)) => parts.values().map(pattern_bytes).sum(),
                (_, value) => pattern_bytes(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(pattern_bytes).sum(),
        _ => 0,
    }
}

/// An upper bound of the bytes that a plain pattern takes once it is compiled.
pub(super) fn bytes_of(pattern: &str) -> Option<usize> {
    const STATE: usize = 96;
    if !is_plain_pattern(pattern) {
        return None;
    }
    let counts = pattern.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<usize>().ok());
    Some(STATE * (pattern.len() + counts.filter(|count| *count <= 64).sum::<usize>()))
}
