//! What a schema's fault says, in plain words: which property, what was expected, what was given.

use std::borrow::Cow;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::types::JsonType;
use serde_json::{Map, Value};

use crate::diagnostic::nearest;

/// The most characters of a given value that a message shows.
const SHOWN_CHARS: usize = 60;

/// How many forms inside of forms a message goes into.
const MAX_FORMS: usize = 3;

/// The sentence for a fault of `instance`. `schema` is the whole schema, for the names that it knows.
pub(super) fn of(error: &ValidationError<'_>, schema: &Value, instance: &Value) -> String {
    let path = error.instance_path().as_str();
    let shut =
        matches!(error.kind(), Kind::FalseSchema) && error.schema_path().as_str().ends_with("/additionalProperties");
    match instance.pointer(path).and_then(Value::as_object) {
        // A schema that knows no property at all complains without a name.
        Some(object) if shut => {
            unknown(&subject(path), &object.keys().cloned().collect::<Vec<_>>(), &siblings(error, schema))
        }
        _ => sentence(error, schema, MAX_FORMS),
    }
}

fn sentence(error: &ValidationError<'_>, schema: &Value, forms_left: usize) -> String {
    let subject = subject(error.instance_path().as_str());
    let given = error.instance();
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unknown(&subject, unexpected, &siblings(error, schema))
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!(
                "{subject} lacks the property `{}`{}",
                shorten(name),
                misspelt(name, given, &siblings(error, schema))
            )
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => forms(error, context, schema, forms_left),
        Kind::OneOfMultipleValid { .. } => {
            format!("{subject} matches more than one of the forms that exclude each other, but it is {}", show(given))
        }
        Kind::PropertyNames { error } => {
            format!("{subject} has a property whose name is not allowed: {}", sentence(error, &Value::Null, forms_left))
        }
        kind => match expectation(kind) {
            Some(expected) => {
                format!("{subject} {expected}, but it is {}{}", measured(kind, given), nearest_choice(kind, given))
            }
            None => plain(kind, &subject),
        },
    }
}

/// What a value must be, for the keywords that look at one value alone.
fn expectation(kind: &Kind) -> Option<String> {
    Some(match kind {
        Kind::Type { kind } => format!("must be {}", types(kind)),
        Kind::Enum { options } => format!("must be one of {}", choices(options)),
        Kind::Constant { expected_value } => format!("must be {}", show(expected_value)),
        Kind::Minimum { limit } => format!("must be at least {}", show(limit)),
        Kind::Maximum { limit } => format!("must be at most {}", show(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {}", show(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {}", show(limit)),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {}", show(multiple_of)),
        Kind::MinLength { limit } => format!("must have at least {}", count(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", count(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", count(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", count(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", count(u64::try_from(*limit).unwrap_or(u64::MAX), "item"))
        }
        Kind::MinProperties { limit } => format!("must have at least {}", properties(*limit)),
        Kind::MaxProperties { limit } => format!("must have at most {}", properties(*limit)),
        Kind::Pattern { pattern } => format!("must match the pattern `{}`", shorten(pattern)),
        Kind::Format { format } => format!("must be written as `{}`", shorten(format)),
        Kind::Not { schema } => format!("must not match {}", show(schema)),
        Kind::ContentEncoding { content_encoding } => format!("must be encoded as `{}`", shorten(content_encoding)),
        Kind::ContentMediaType { content_media_type } => format!("must hold `{}`", shorten(content_media_type)),
        _ => return None,
    })
}

/// What is told without the given value.
fn plain(kind: &Kind, subject: &str) -> String {
    match kind {
        Kind::FalseSchema => format!("{subject} is not allowed here"),
        Kind::UniqueItems => format!("{subject} has the same item more than once"),
        Kind::Contains => {
            format!("{subject} has no item, or not the right number of items, of the kind that it must contain")
        }
        Kind::UnevaluatedItems { .. } => format!("{subject} has more items than are described"),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            format!("{subject} can't be compared with its pattern in reasonable time")
        }
        Kind::FromUtf8 { .. } => format!("{subject} is no UTF-8 text once decoded"),
        Kind::Custom { message, .. } => format!("{subject}: {}", shorten(message)),
        Kind::Referencing(_) => format!("{subject} is described by a part of the schema that does not exist"),
        other => format!("{subject} breaks the rule `{}`", other.keyword()),
    }
}

/// How a message calls the part at a JSON pointer: `a.b[2]`.
fn subject(pointer: &str) -> String {
    let mut name = String::new();
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
            name.push_str(&format!("[{segment}]"));
        } else {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&shorten(&segment));
        }
    }
    if name.is_empty() { "the value".to_owned() } else { format!("`{name}`") }
}

fn unknown(subject: &str, unexpected: &[String], known: &[&str]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for name in unexpected.iter().take(5) {
        let near = nearest(name, known.iter().copied());
        let hint = near.map(|near| format!(" (did you mean `{}`?)", shorten(near))).unwrap_or_default();
        parts.push(format!("`{}`{hint}", shorten(name)));
    }
    if unexpected.len() > 5 {
        parts.push(format!("{} more", unexpected.len() - 5));
    }
    let noun = if unexpected.len() == 1 { "an unknown property" } else { "unknown properties" };
    let list = match known {
        [] => "; it may have none".to_owned(),
        known if known.len() <= 12 => {
            let names: Vec<String> = known.iter().map(|name| format!("`{}`", shorten(name))).collect();
            format!("; known are {}", names.join(", "))
        }
        _ => String::new(),
    };
    format!("{subject} has {noun}: {}{list}", parts.join(", "))
}

/// A missing property is often there under a name much like it.
fn misspelt(name: &str, given: &Value, known: &[&str]) -> String {
    let given = given.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    nearest(name, given.filter(|given| !known.contains(given)))
        .map(|near| format!("; it has `{}`", shorten(near)))
        .unwrap_or_default()
}

/// The properties that the schema describes beside the keyword that complains. Where the path goes
/// through a reference, it is the place that the reference leads to.
fn siblings<'s>(error: &ValidationError<'_>, schema: &'s Value) -> Vec<&'s str> {
    let path = error.schema_path().as_str();
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    // A missing or an unknown property may be complained about one step further down.
    let outer = parent.rsplit_once('/').map_or("", |(parent, _)| parent);
    [parent, outer]
        .iter()
        .find_map(|at| schema.pointer(at)?.get("properties")?.as_object())
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// None of several forms matches: tells what is wrong by the one that is nearest, the one whose
/// fault lies deepest, and among those the one with the fewest faults.
fn forms(
    error: &ValidationError<'_>,
    context: &[Vec<ValidationError<'static>>],
    schema: &Value,
    forms_left: usize,
) -> String {
    let path = error.instance_path().as_str();
    let subject = subject(path);
    let depth = |error: &ValidationError<'_>| error.instance_path().as_str().matches('/').count();
    let typed = |error: &ValidationError<'_>| {
        matches!(error.kind(), Kind::Type { .. }) && error.instance_path().as_str() == path
    };
    let scalar_types: Option<Vec<String>> = context
        .iter()
        .map(|faults| match faults.as_slice() {
            [only] if typed(only) => {
                expectation(only.kind()).map(|text| text.trim_start_matches("must be ").to_owned())
            }
            _ => None,
        })
        .collect();
    if let Some(types) = scalar_types.filter(|types| !types.is_empty()) {
        return format!("{subject} must be {}, but it is {}", types.join(" or "), show(error.instance()));
    }
    let best = context
        .iter()
        .filter(|faults| !faults.iter().any(typed))
        .max_by_key(|faults| (faults.iter().map(depth).max(), std::cmp::Reverse(faults.len())))
        .and_then(|faults| faults.iter().max_by_key(|fault| depth(fault)));
    match best {
        Some(best) if matches!(best.kind(), Kind::Enum { .. }) && best.instance_path().as_str() == path => {
            sentence(best, schema, 0)
        }
        Some(best) if forms_left > 0 => format!(
            "{subject} matches none of the {} allowed forms; by the nearest one, {}",
            context.len(),
            sentence(best, schema, forms_left - 1)
        ),
        _ => format!(
            "{subject} matches none of the {} allowed forms, but it is {}",
            context.len(),
            show(error.instance())
        ),
    }
}

fn types(kind: &TypeKind) -> String {
    let one = |kind: JsonType| match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    };
    match kind {
        TypeKind::Single(kind) => one(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(one).collect::<Vec<_>>().join(" or "),
    }
}

fn choices(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut shown: Vec<String> = options.iter().take(20).map(show).collect();
    if options.len() > 20 {
        shown.push(format!("{} more", options.len() - 20));
    }
    shown.join(", ")
}

/// The allowed value that was most likely meant.
fn nearest_choice(kind: &Kind, given: &Value) -> String {
    let (Kind::Enum { options }, Value::String(given)) = (kind, given) else { return String::new() };
    nearest(given, options.as_array().into_iter().flatten().filter_map(Value::as_str))
        .map(|near| format!("; did you mean \"{}\"?", shorten(near)))
        .unwrap_or_default()
}

fn count(limit: u64, noun: &str) -> String {
    if limit == 1 { format!("1 {noun}") } else { format!("{limit} {noun}s") }
}

fn properties(limit: u64) -> String {
    if limit == 1 { "1 property".to_owned() } else { format!("{limit} properties") }
}

/// The given value; where a length is at fault, that length as well.
fn measured(kind: &Kind, given: &Value) -> String {
    let size = |limit: usize| u64::try_from(limit).unwrap_or(u64::MAX);
    let measure = match (kind, given) {
        (Kind::MinLength { .. } | Kind::MaxLength { .. }, Value::String(text)) => {
            count(size(text.chars().count()), "character")
        }
        (Kind::MinItems { .. } | Kind::MaxItems { .. } | Kind::AdditionalItems { .. }, Value::Array(items)) => {
            count(size(items.len()), "item")
        }
        (Kind::MinProperties { .. } | Kind::MaxProperties { .. }, Value::Object(members)) => {
            properties(size(members.len()))
        }
        _ => return show(given),
    };
    format!("{} ({measure})", show(given))
}

/// A value in a message: compact JSON, cut.
fn show(value: &Value) -> String {
    match value {
        // Not the whole of a long text, or of a long list, only to cut it.
        Value::String(text) if text.len() > 8 * SHOWN_CHARS => {
            shorten(&Value::from(text.chars().take(SHOWN_CHARS + 1).collect::<String>()).to_string()).into_owned()
        }
        Value::Array(items) if items.len() > SHOWN_CHARS => {
            format!("a list of {}", count(u64::try_from(items.len()).unwrap_or(u64::MAX), "item"))
        }
        value => shorten(&value.to_string()).into_owned(),
    }
}

/// A text cut to what a message shows.
pub(super) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => Cow::Owned(format!("{}...", text.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}
