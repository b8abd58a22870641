//! Parts of a schema that contradict each other: bounds that nothing meets, values of another type than the
//! declared one.

use serde_json::{Map, Value};

use super::{Part, short};
use crate::diagnostic::codes;
use crate::program::condition::slashed;
use crate::program::fault::LocalFault;
use crate::program::schema::Schema;
use crate::syntax::quoted;

/// The most values of a list that are looked at.
const LOOKED_AT: usize = 200;
/// The keywords that judge a value by itself.
const OWN: [&str; 12] = [
    "type",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// A lower and an upper bound, and the types of the values that they bound.
struct Bounds {
    lower: &'static str,
    upper: &'static str,
    about: &'static [&'static str],
}

const BOUNDS: [Bounds; 8] = [
    Bounds { lower: "minimum", upper: "maximum", about: &["number", "integer"] },
    Bounds { lower: "exclusiveMinimum", upper: "maximum", about: &["number", "integer"] },
    Bounds { lower: "minimum", upper: "exclusiveMaximum", about: &["number", "integer"] },
    Bounds { lower: "exclusiveMinimum", upper: "exclusiveMaximum", about: &["number", "integer"] },
    Bounds { lower: "minLength", upper: "maxLength", about: &["string"] },
    Bounds { lower: "minItems", upper: "maxItems", about: &["array"] },
    Bounds { lower: "minProperties", upper: "maxProperties", about: &["object"] },
    Bounds { lower: "minContains", upper: "maxContains", about: &["array"] },
];

/// Reports what contradicts itself in a part.
pub(super) fn faults(part: &Part<'_>) -> Vec<LocalFault> {
    let mut faults: Vec<LocalFault> = bounds(part).into_iter().chain(slashed_pattern(part)).collect();
    if !part.members.keys().any(|name| matches!(name.as_str(), "const" | "enum" | "default" | "examples")) {
        return faults;
    }
    // The keywords are compared with the values beside them, unless one of them is itself wrong.
    let own: Map<String, Value> = part
        .members
        .iter()
        .filter(|(name, _)| OWN.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let is_free = own.is_empty();
    let Some(own) = compiled(part, own).filter(|_| faults.is_empty()) else { return faults };
    let why = |value: &Value| match value {
        _ if is_free => None,
        Value::Null if part.is_nullable() => None,
        value => own.faults(value).into_iter().next().map(|fault| fault.message),
    };
    if let Some(value) = part.members.get("const")
        && let Some(why) = why(value)
    {
        let message = format!("nothing matches this: by the keywords beside `const`, {why}");
        faults.push(LocalFault::error(codes::IMPOSSIBLE_SCHEMA, part.below("const"), message).help(CORRECT));
    }
    if let Some(Value::Array(values)) = part.members.get("enum") {
        choices(part, values, &why, &mut faults);
    }
    described(part, &why, &mut faults);
    faults
}

const CORRECT: &str = "correct the value, or the `type` and the bounds beside it";

/// A pattern between slashes, as JavaScript writes one: they are part of it.
fn slashed_pattern(part: &Part<'_>) -> Option<LocalFault> {
    let slashed = slashed(part.members.get("pattern")?.as_str()?).filter(|slashed| slashed.matches_nothing)?;
    let meant = quoted(&slashed.meant());
    let message = "no text matches this: the slashes are part of the pattern, and none is beyond the ends of a text";
    let fault = LocalFault::error(codes::IMPOSSIBLE_SCHEMA, part.below("pattern"), message);
    Some(fault.help(format!("a pattern is written without slashes and flags: {meant}")).replace_with(meant))
}

/// The values of `enum`: none of them matches, or some never do.
fn choices(part: &Part<'_>, values: &[Value], why: &dyn Fn(&Value) -> Option<String>, faults: &mut Vec<LocalFault>) {
    let at = part.below("enum");
    if values.is_empty() {
        let message = "nothing matches this: the `enum` is empty";
        return faults
            .push(LocalFault::error(codes::IMPOSSIBLE_SCHEMA, at, message).help("list the values, or leave it out"));
    }
    if let Some(value) = part.members.get("const").filter(|value| !values.contains(value)) {
        let message = format!("nothing matches this: `enum` does not have the `const` {}", short(&value.to_string()));
        return faults.push(LocalFault::error(codes::IMPOSSIBLE_SCHEMA, at, message).help("leave one of them out"));
    }
    let wrong: Vec<(usize, String)> =
        values.iter().take(LOOKED_AT).enumerate().filter_map(|(at, value)| Some((at, why(value)?))).collect();
    if wrong.len() == values.len()
        && let Some((_, why)) = wrong.first()
    {
        let message = format!("nothing matches this: by the keywords beside `enum`, {why}");
        return faults.push(LocalFault::error(codes::IMPOSSIBLE_SCHEMA, at, message).help(CORRECT));
    }
    for (index, why) in wrong {
        let message = format!("this value never matches: by the keywords beside `enum`, {why}");
        let is_null = values.get(index) == Some(&Value::Null);
        let help = match part.members.get("type").and_then(Value::as_str).filter(|_| is_null) {
            Some(name) => format!("a value that may be null has \"type\": [\"{name}\", \"null\"]"),
            None => CORRECT.to_owned(),
        };
        faults.push(LocalFault::warning(codes::IDLE_KEYWORD, format!("{at}/{index}"), message).help(help));
    }
}

/// The values that only describe: a default, and examples.
fn described(part: &Part<'_>, why: &dyn Fn(&Value) -> Option<String>, faults: &mut Vec<LocalFault>) {
    let choices = part.members.get("enum").and_then(Value::as_array);
    let is_choice = |value: &Value| choices.is_none_or(|choices| choices.contains(value));
    let mut report = |pointer: String, name: &str, value: &Value| {
        let why = match why(value) {
            Some(why) => why,
            None if is_choice(value) || (value.is_null() && part.is_nullable()) => return,
            None => format!("{} is none of the `enum`", short(&value.to_string())),
        };
        let message = format!("the schema does not allow its own `{name}`: {why}");
        faults.push(LocalFault::warning(codes::IDLE_KEYWORD, pointer, message).help(CORRECT));
    };
    if let Some(value) = part.members.get("default") {
        report(part.below("default"), "default", value);
    }
    if let Some(Value::Array(values)) = part.members.get("examples") {
        for (at, value) in values.iter().take(LOOKED_AT).enumerate() {
            report(format!("{}/{at}", part.below("examples")), "examples", value);
        }
    }
}

/// The keywords of a part that judge a value by itself, ready to do so.
fn compiled(part: &Part<'_>, mut own: Map<String, Value>) -> Option<Schema> {
    if part.draft_4 {
        own.insert("$schema".to_owned(), Value::from("http://json-schema.org/draft-04/schema#"));
    }
    Schema::compile(Value::Object(own)).ok()
}

/// Bounds between which there is nothing.
fn bounds(part: &Part<'_>) -> Option<LocalFault> {
    // Most parts have no bounds: a look at their few keywords costs less than a search for each bound.
    if !part.members.keys().any(|name| BOUNDS.iter().any(|bounds| bounds.upper == name)) {
        return None;
    }
    let types = part.types();
    BOUNDS.iter().find_map(|Bounds { lower, upper, about }| {
        let (low, high) = (part.members.get(*lower)?, part.members.get(*upper)?);
        let (least, most) = (low.as_f64()?, high.as_f64()?);
        let is_open = lower.starts_with("exclusive") || upper.starts_with("exclusive");
        let is_about = types.as_ref().is_none_or(|types| types.iter().any(|name| about.contains(name)));
        if !is_about || !(least > most || (is_open && least >= most)) {
            return None;
        }
        let message = format!("nothing matches this: `{lower}` is {low}, and `{upper}` is {high}");
        let fault = LocalFault::error(codes::IMPOSSIBLE_SCHEMA, part.below(lower), message);
        Some(fault.help("the lower bound is not above the upper one"))
    })
}
