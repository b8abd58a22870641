//! Parts of a schema that contradict each other: bounds that nothing meets, values of another type than the
//! declared one.

use serde_json::{Map, Value};

use super::possible_values::ValueTypes;
use super::{Part, short};
use crate::diagnostic::codes;
use crate::program::canonical::is_same;
use crate::program::condition::slashed;
use crate::program::fault::LocalFault;
use crate::program::schema::Schema;
use crate::syntax::quoted;

/// The most values of a list that are looked at.
const MAX_JUDGED_VALUES: usize = 200;
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
    if !part.judges_values() {
        return Vec::new();
    }
    if !part.members.keys().any(|name| matches!(name.as_str(), "const" | "enum" | "default" | "examples")) {
        return faults;
    }
    // The keywords are compared with the values beside them, unless one of them is itself wrong.
    let Some(own) = OwnJudge::of(part).filter(|_| faults.is_empty()) else { return faults };
    let why = |value: &Value| own.why(value);
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
    if let Some(value) = part.members.get("const").filter(|value| !values.iter().any(|listed| is_same(listed, value))) {
        let message = format!("nothing matches this: `enum` does not have the `const` {}", short(&value.to_string()));
        return faults.push(LocalFault::error(codes::IMPOSSIBLE_SCHEMA, at, message).help("leave one of them out"));
    }
    let wrong: Vec<(usize, String)> =
        values.iter().take(MAX_JUDGED_VALUES).enumerate().filter_map(|(at, value)| Some((at, why(value)?))).collect();
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
        for (at, value) in values.iter().take(MAX_JUDGED_VALUES).enumerate() {
            report(format!("{}/{at}", part.below("examples")), "examples", value);
        }
    }
}

/// The keywords of a part that judge a value by itself.
struct OwnJudge {
    /// None where there is no such keyword.
    own: Option<Schema>,
    is_nullable: bool,
}

impl OwnJudge {
    fn of(part: &Part<'_>) -> Option<Self> {
        let own = part.members.iter().filter(|(name, _)| OWN.contains(&name.as_str()));
        let own: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        let own = if own.is_empty() { None } else { Some(compiled(part, own)?) };
        Some(Self { own, is_nullable: part.is_nullable() })
    }

    /// Why they don't allow a value.
    fn why(&self, value: &Value) -> Option<String> {
        match value {
            Value::Null if self.is_nullable => None,
            value => self.own.as_ref()?.faults(value).into_iter().next().map(|fault| fault.message),
        }
    }
}

/// The types of the values that a part shuts out by bounds that nothing meets, each with the JSON pointer of the cause.
pub(super) fn excluded(part: &Part<'_>) -> Vec<(ValueTypes, String)> {
    let about = |names: &[&str]| names.iter().copied().map(ValueTypes::named).fold(ValueTypes::NONE, ValueTypes::or);
    let mut found: Vec<_> =
        empty_bounds(part).map(|(bounds, ..)| (about(bounds.about), part.below(bounds.lower))).collect();
    if slashed_pattern(part).is_some() {
        found.push((ValueTypes::TEXT, part.below("pattern")));
    }
    found
}

/// The types of the values that `const` or `enum` leaves, with the JSON pointer of the keyword.
pub(super) fn listed_types(part: &Part<'_>) -> Option<(ValueTypes, String)> {
    let constant = part.members.get("const").filter(|_| !part.draft_4);
    let values = part.members.get("enum").and_then(Value::as_array);
    let name = if values.is_some() { "enum" } else { "const" };
    let values: Vec<&Value> = match (values, constant) {
        (Some(values), _) => values.iter().collect(),
        (None, constant) => vec![constant?],
    };
    if values.len() > MAX_JUDGED_VALUES {
        return None;
    }
    let own = OwnJudge::of(part)?;
    let is_left = |value: &&Value| own.why(value).is_none() && constant.is_none_or(|constant| is_same(constant, value));
    let left = values.into_iter().filter(is_left).map(ValueTypes::of).fold(ValueTypes::NONE, ValueTypes::or);
    // A `const` that breaks the keywords beside it is itself the cause.
    let is_bad = constant.is_some_and(|constant| own.why(constant).is_some());
    Some((left, part.below(if is_bad { "const" } else { name })))
}

/// The keywords of a part that judge a value by itself, ready to do so.
fn compiled(part: &Part<'_>, mut own: Map<String, Value>) -> Option<Schema> {
    if part.draft_4 {
        own.insert("$schema".to_owned(), Value::from("http://json-schema.org/draft-04/schema#"));
    }
    Schema::compile(Value::Object(own)).ok()
}

/// The pairs of bounds between which there is nothing, with what they are.
fn empty_bounds<'p>(part: &'p Part<'_>) -> impl Iterator<Item = (&'static Bounds, &'p Value, &'p Value)> {
    // Most parts have no bounds: a look at their few keywords costs less than a search for each bound.
    let has_any = part.members.keys().any(|name| BOUNDS.iter().any(|bounds| bounds.upper == name));
    let types = if has_any { part.types() } else { None };
    BOUNDS.iter().filter(move |_| has_any).filter_map(move |bounds| {
        let (low, high) = (part.members.get(bounds.lower)?, part.members.get(bounds.upper)?);
        let (least, most) = (low.as_f64()?, high.as_f64()?);
        let is_open = bounds.lower.starts_with("exclusive") || bounds.upper.starts_with("exclusive");
        let is_about = types.as_ref().is_none_or(|types| types.iter().any(|name| bounds.about.contains(name)));
        let is_idle = bounds.lower == "minContains" && !part.members.contains_key("contains");
        (is_about && !is_idle && (least > most || (is_open && least >= most))).then_some((bounds, low, high))
    })
}

/// Bounds between which there is nothing.
fn bounds(part: &Part<'_>) -> Option<LocalFault> {
    let (Bounds { lower, upper, about }, low, high) = empty_bounds(part).next()?;
    let is_all = part.types().is_some_and(|types| types.iter().all(|name| about.contains(name)));
    let message = match (is_all, about.first().copied()) {
        (true, _) => format!("nothing matches this: `{lower}` is {low}, and `{upper}` is {high}"),
        (false, Some("string")) => format!("no text matches this: `{lower}` is {low}, and `{upper}` is {high}"),
        (false, Some("array")) => format!("no list matches this: `{lower}` is {low}, and `{upper}` is {high}"),
        (false, Some("object")) => format!("no object matches this: `{lower}` is {low}, and `{upper}` is {high}"),
        (false, _) => format!("no number matches this: `{lower}` is {low}, and `{upper}` is {high}"),
    };
    let fault = LocalFault::error(codes::IMPOSSIBLE_SCHEMA, part.below(lower), message);
    Some(fault.help("the lower bound is not above the upper one"))
}
