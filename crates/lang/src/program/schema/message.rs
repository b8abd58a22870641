//! What a schema's fault says, in plain words: which property, what was expected, what was given.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::SchemaFault;
use super::comparison::Judge;
use super::plan::Id;
use super::problem::{Forms, ProblemKind, ValueProblem};
use super::violations::Gather;
use crate::diagnostic::nearest;

/// The most characters of a given value that a message shows.
const SHOWN_CHARS: usize = 60;

/// The most names that a message lists.
const SHOWN_NAMES: usize = 5;

/// How many forms inside of forms a message goes into.
const MAX_FORMS: usize = 3;

/// The maximum number of allowed values, or names, that are looked at for the one that was meant.
const MAX_COMPARED: usize = 1_000;
/// The most faults by one form that it is measured by.
const MAX_FORM_FAULTS: usize = 64;

/// What looks up what is wrong by a form, when a message needs it.
pub(super) struct FormExplainer<'j, 'p> {
    pub judge: &'j mut Judge<'p>,
    pub source: &'j Value,
}

pub(super) fn fault(problem: ValueProblem<'_>, words: &mut FormExplainer<'_, '_>) -> SchemaFault {
    let message = sentence(&problem, Some(words), MAX_FORMS);
    let named = subject(&problem.path);
    let subject = if message.starts_with(&named) { named.len() } else { 0 };
    SchemaFault { message, near: near(&problem), subject, path: problem.path }
}

/// What was most likely meant by a name that is not described, or by a value that is none of the choices.
fn near(problem: &ValueProblem<'_>) -> Option<String> {
    let found = match (&problem.kind, &*problem.given) {
        (ProblemKind::Unknown(unexpected), _) => {
            let known = || problem.beside.iter().map(String::as_str);
            unexpected.iter().take(SHOWN_NAMES).find_map(|name| nearest(name, known()))
        }
        (ProblemKind::Enum(options), Value::String(given)) => nearest_option(options, given),
        _ => None,
    };
    found.map(str::to_owned)
}

/// The sentence for a fault of a schema.
pub(super) fn of_schema(problem: &ValueProblem<'_>) -> String {
    sentence(problem, None, MAX_FORMS)
}

fn sentence(problem: &ValueProblem<'_>, words: Option<&mut FormExplainer<'_, '_>>, forms_left: usize) -> String {
    let subject = subject(&problem.path);
    let given = &*problem.given;
    let known: Vec<&str> = problem.beside.iter().map(String::as_str).collect();
    match &problem.kind {
        ProblemKind::Unknown(unexpected) => unknown(&subject, unexpected, &known),
        ProblemKind::Required(name) => {
            format!("{subject} lacks the property `{}`{}", shorten(name), misspelt(name, given, &known))
        }
        ProblemKind::Forms(Forms::Found(found)) => forms(problem, found, words, forms_left),
        ProblemKind::Forms(Forms::Parts(parts)) => match words {
            Some(words) => {
                let found: Vec<_> = parts.iter().map(|part| by_form(problem, *part, words)).collect();
                forms(problem, &found, Some(words), forms_left)
            }
            None => forms(problem, &[], None, forms_left),
        },
        ProblemKind::ManyForms => {
            format!("{subject} matches more than one of the forms that exclude each other, but it is {}", show(given))
        }
        ProblemKind::PropertyName(problem) => {
            format!("{subject} has a property whose name is not allowed: {}", sentence(problem, words, forms_left))
        }
        kind => match expectation(kind) {
            Some(expected) => {
                format!("{subject} {expected}, but it is {}{}", measured(kind, given), nearest_choice(kind, given))
            }
            None => plain(kind, &subject),
        },
    }
}

/// What is wrong with a value by one form of several.
fn by_form<'v>(problem: &'v ValueProblem<'_>, part: Id, words: &mut FormExplainer<'_, '_>) -> Vec<ValueProblem<'v>> {
    // What came out for a value is remembered by its address, and this one lives shorter than the others.
    let short = matches!(problem.given, Cow::Owned(_)).then(|| words.judge.forget());
    let mut gather = Gather::new(words.judge, words.source, &problem.path, MAX_FORM_FAULTS);
    // What was found before the work was spent is what can be said.
    let _ = gather.part(part, &problem.given);
    let found = gather.found;
    if let Some(known) = short {
        words.judge.remember(known);
    }
    found
}

/// What a value must be, for the keywords that look at one value alone.
fn expectation(kind: &ProblemKind) -> Option<String> {
    Some(match kind {
        ProblemKind::Type(types) => format!("must be {}", types.join(" or ")),
        ProblemKind::Enum(options) => format!("must be one of {}", choices(options)),
        ProblemKind::Constant(expected) => format!("must be {}", show(expected)),
        ProblemKind::Limit(words, limit) => format!("must be {words} {}", show(limit)),
        ProblemKind::MultipleOf(unit) => format!("must be a multiple of {}", show(unit)),
        ProblemKind::Size { most, limit, noun } => {
            format!("must have at {} {}", if *most { "most" } else { "least" }, count(*limit, noun))
        }
        ProblemKind::AdditionalItems(limit) => format!("must have at most {}", count(*limit, "item")),
        ProblemKind::Pattern(pattern) => format!("must match the pattern `{}`", shorten(pattern)),
        ProblemKind::Format(format) => format!("must be written as `{}`", shorten(format)),
        ProblemKind::Not(schema) => format!("must not match {}", show(schema)),
        ProblemKind::Encoding(encoding) => format!("must be encoded as `{}`", shorten(encoding)),
        ProblemKind::MediaType(kind) => format!("must hold `{}`", shorten(kind)),
        _ => return None,
    })
}

/// The message without the given value.
fn plain(kind: &ProblemKind, subject: &str) -> String {
    match kind {
        ProblemKind::NotAllowed => format!("{subject} is not allowed here"),
        ProblemKind::UniqueItems => format!("{subject} has the same item more than once"),
        ProblemKind::Contains => {
            format!("{subject} has no item, or not the right number of items, of the kind that it must contain")
        }
        ProblemKind::UnevaluatedItems => format!("{subject} has more items than are described"),
        ProblemKind::NotUtf8 => format!("{subject} is no UTF-8 text once decoded"),
        ProblemKind::Other(keyword) => format!("{subject} breaks the rule `{}`", shorten(keyword)),
        _ => format!("{subject} does not match"),
    }
}

/// The sentence for a text that a pattern can't be compared with.
pub(super) fn undecided(path: &str) -> String {
    format!("{} can't be compared with its pattern in reasonable time", subject(path))
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
    for name in unexpected.iter().take(SHOWN_NAMES) {
        let near = nearest(name, known.iter().copied());
        let hint = near.map(|near| format!(" (did you mean `{}`?)", shorten(near))).unwrap_or_default();
        parts.push(format!("`{}`{hint}", shorten(name)));
    }
    if unexpected.len() > SHOWN_NAMES {
        parts.push(format!("{} more", unexpected.len() - SHOWN_NAMES));
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

/// None of several forms matches: reports what is wrong by the one that is nearest, the one whose
/// fault is deepest, and among those the one with the fewest faults.
fn forms(
    problem: &ValueProblem<'_>,
    found: &[Vec<ValueProblem<'_>>],
    words: Option<&mut FormExplainer<'_, '_>>,
    forms_left: usize,
) -> String {
    let path = problem.path.as_str();
    let subject = subject(path);
    let depth = |problem: &ValueProblem<'_>| problem.path.matches('/').count();
    let typed = |problem: &ValueProblem<'_>| matches!(problem.kind, ProblemKind::Type(_)) && problem.path == path;
    let scalar_types: Option<Vec<String>> = found
        .iter()
        .map(|faults| match faults.as_slice() {
            [only] if typed(only) => expectation(&only.kind).map(|text| text.trim_start_matches("must be ").to_owned()),
            _ => None,
        })
        .collect();
    if let Some(types) = scalar_types.filter(|types| !types.is_empty()) {
        return format!("{subject} must be {}, but it is {}", types.join(" or "), show(&problem.given));
    }
    let best = found
        .iter()
        .filter(|faults| !faults.iter().any(typed))
        .max_by_key(|faults| (faults.iter().map(depth).max(), std::cmp::Reverse(faults.len())))
        .and_then(|faults| faults.iter().max_by_key(|fault| depth(fault)));
    match best {
        Some(best) if matches!(best.kind, ProblemKind::Enum(_)) && best.path == path => sentence(best, words, 0),
        Some(best) if forms_left > 0 => format!(
            "{subject} matches none of the {} allowed forms; by the nearest one, {}",
            found.len(),
            sentence(best, words, forms_left - 1)
        ),
        _ => format!("{subject} matches none of the {} allowed forms, but it is {}", found.len(), show(&problem.given)),
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
fn nearest_choice(kind: &ProblemKind, given: &Value) -> String {
    let (ProblemKind::Enum(options), Value::String(given)) = (kind, given) else { return String::new() };
    nearest_option(options, given).map(|near| format!("; did you mean \"{}\"?", shorten(near))).unwrap_or_default()
}

fn nearest_option<'v>(options: &'v Value, given: &str) -> Option<&'v str> {
    nearest(given, options.as_array().into_iter().flatten().take(MAX_COMPARED).filter_map(Value::as_str))
}

fn count(limit: u64, noun: &str) -> String {
    match (limit, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "property") => format!("{limit} properties"),
        _ => format!("{limit} {noun}s"),
    }
}

/// The given value; where a length is at fault, that length as well.
fn measured(kind: &ProblemKind, given: &Value) -> String {
    let size = |limit: usize, noun| count(u64::try_from(limit).unwrap_or(u64::MAX), noun);
    let measure = match (kind, given) {
        (ProblemKind::Size { noun: "character", .. }, Value::String(text)) => size(text.chars().count(), "character"),
        (ProblemKind::Size { noun: "item", .. } | ProblemKind::AdditionalItems(_), Value::Array(items)) => {
            size(items.len(), "item")
        }
        (ProblemKind::Size { noun: "property", .. }, Value::Object(members)) => size(members.len(), "property"),
        _ => return show(given),
    };
    format!("{} ({measure})", show(given))
}

/// A value in a message: compact JSON, cut.
pub(super) fn show(value: &Value) -> String {
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
