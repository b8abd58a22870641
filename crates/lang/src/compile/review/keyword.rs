//! Members of a schema that are no keywords: a slip in one, another dialect's, a property outside of `properties`.

use serde_json::Value;

use super::{Part, short};
use crate::compile::review::example::looks_like_schema;
use crate::diagnostic::{Severity, codes, is_lone, nearest};
use crate::program::fault::LocalFault;
use crate::program::schema::is_type_word;
use crate::program::schema::vocabulary::{VOCABULARY, keyword_named};

/// The most names of one schema that are compared with all keywords.
const MAX_COMPARED_NAMES: usize = 40;
/// The shortest name in which a slip is looked for: a shorter one is near to too much.
const MIN_NAME_BYTES: usize = 3;

/// Annotations that editors and form builders read: they are no keywords of JSON Schema, and mean no harm.
const EXTENSIONS: [&str; 22] = [
    "allowTrailingCommas",
    "contains_pii",
    "defaultSnippets",
    "deprecationMessage",
    "doNotSuggest",
    "enumDescriptions",
    "enumNames",
    "enum_descriptions",
    "errorMessage",
    "errorMessages",
    "isSecret",
    "javaType",
    "markdownDescription",
    "markdownEnumDescriptions",
    "meta",
    "metadata",
    "order",
    "patternErrorMessage",
    "propertyOrder",
    "sensitive",
    "tsEnumNames",
    "tsType",
];

/// Keywords of other dialects and languages: the one of JSON Schema that means the same.
const SAME: &[(&str, &str)] = &[
    ("allowed", "enum"),
    ("allowedValues", "enum"),
    ("attributes", "properties"),
    ("arguments", "properties"),
    ("args", "properties"),
    ("choices", "enum"),
    ("columns", "properties"),
    ("constant", "const"),
    ("dataType", "type"),
    ("defaultValue", "default"),
    ("definition", "$defs"),
    ("defs", "$defs"),
    ("desc", "description"),
    ("descr", "description"),
    ("disallow", "not"),
    ("divisibleBy", "multipleOf"),
    ("doc", "description"),
    ("element", "items"),
    ("elements", "items"),
    ("enumValues", "enum"),
    ("extends", "allOf"),
    ("fields", "properties"),
    ("help", "description"),
    ("item", "items"),
    ("itemType", "items"),
    ("kind", "type"),
    ("label", "title"),
    ("maximumItems", "maxItems"),
    ("maximumLength", "maxLength"),
    ("members", "properties"),
    ("minimumItems", "minItems"),
    ("minimumLength", "minLength"),
    ("one_of", "oneOf"),
    ("options", "enum"),
    ("parameters", "properties"),
    ("params", "properties"),
    ("possibleValues", "enum"),
    ("props", "properties"),
    ("ref", "$ref"),
    ("regex", "pattern"),
    ("regexp", "pattern"),
    ("requiredProperties", "required"),
    ("size", "maxLength"),
    ("unique", "uniqueItems"),
    ("values", "enum"),
];

/// The members of a part, by what they are.
#[derive(Default)]
pub(super) struct SortedMembers<'s> {
    /// Those that are keywords and say which values match.
    pub asserting: usize,
    /// Those that are keywords and only describe.
    pub describing: usize,
    /// Names that are near to a keyword, or another dialect's.
    pub meant: Vec<(&'s str, KeywordMeaning)>,
    /// Names with a schema, or with the name of a type: properties outside of `properties`.
    pub properties: Vec<&'s str>,
    /// Names of which nothing is known.
    pub others: Vec<&'s str>,
}

/// What a name that is no keyword means.
pub(super) enum KeywordMeaning {
    /// This keyword. `is_clear` when no other is as near.
    Keyword { name: &'static str, is_clear: bool },
    /// What has no keyword of its own, with how it is written.
    Otherwise { help: String, severity: Severity },
}

impl<'s> SortedMembers<'s> {
    /// Sorts the members of a part.
    pub(super) fn of(part: &Part<'s>) -> Self {
        let mut written = Self::default();
        let mut measured = 0;
        for (name, value) in part.members {
            if let Some(keyword) = keyword_named(name) {
                let fits = keyword.holds.takes(value);
                written.asserting += usize::from(fits && keyword.asserts());
                written.describing += usize::from(fits && !keyword.asserts());
                continue;
            }
            if is_extension(name) || (part.draft_4 && name == "id") {
                written.describing += 1;
                continue;
            }
            measured += 1;
            if let Some(meant) = meant(part, name, value, measured <= MAX_COMPARED_NAMES) {
                written.meant.push((name, meant));
            } else if looks_like_schema(value) || value.as_str().is_some_and(is_type_word) {
                written.properties.push(name);
            } else {
                written.others.push(name);
            }
        }
        written
    }
}

/// Reports the names that are no keywords.
pub(super) fn faults(part: &Part<'_>, written: &SortedMembers<'_>) -> Vec<LocalFault> {
    let mut faults: Vec<LocalFault> = written.meant.iter().map(|(name, meant)| unknown(part, name, meant)).collect();
    for name in &written.others {
        let message = format!("`{}` is no keyword of JSON Schema, and has no effect", short(name));
        let fault = LocalFault::warning(codes::UNKNOWN_KEYWORD, part.below(name), message).at_key();
        faults.push(
            fault.help("an extension begins with `x-`; what a property holds stands in its schema under `properties`"),
        );
    }
    if let Some(Value::Object(properties)) = part.members.get("properties") {
        for name in ["additionalProperties", "unevaluatedProperties"] {
            if properties.get(name).is_some_and(Value::is_boolean) {
                let pointer = format!("{}/{name}", part.below("properties"));
                let message = format!("`{name}` is written inside `properties`, where it is the name of a property");
                let fault = LocalFault::error(codes::UNKNOWN_KEYWORD, pointer, message).at_key();
                faults.push(fault.help("it belongs one level up, beside `properties`"));
            }
        }
    }
    faults
}

fn unknown(part: &Part<'_>, name: &str, meant: &KeywordMeaning) -> LocalFault {
    let message = format!("`{}` is no keyword of JSON Schema, and has no effect", short(name));
    let fault = LocalFault::error(codes::UNKNOWN_KEYWORD, part.below(name), message).at_key();
    match meant {
        KeywordMeaning::Keyword { name: keyword, is_clear } => {
            let asserts = keyword_named(keyword).is_some_and(|keyword| keyword.asserts());
            let severity = if asserts { Severity::Error } else { Severity::Warning };
            let fault = LocalFault { severity, ..fault }.help(format!("it is written `{keyword}`"));
            if *is_clear && !part.members.contains_key(*keyword) { fault.rename(name, keyword) } else { fault }
        }
        KeywordMeaning::Otherwise { help, severity } => LocalFault { severity: *severity, ..fault }.help(help.clone()),
    }
}

fn is_extension(name: &str) -> bool {
    name.starts_with("x-")
        || name.starts_with("x_")
        || name.starts_with("//")
        || name.contains([':', '.', '@'])
        || EXTENSIONS.contains(&name)
}

/// What a name that is no keyword means, by its value too: the keyword must be able to hold it.
fn meant(part: &Part<'_>, name: &str, value: &Value, is_measured: bool) -> Option<KeywordMeaning> {
    if let Some(meant) = otherwise(part, name, value) {
        return Some(meant);
    }
    let takes = |keyword: &str| keyword_named(keyword).is_some_and(|keyword| keyword.holds.takes(value));
    let same = SAME.iter().find(|(foreign, _)| is_same_word(foreign, name)).map(|(_, ours)| *ours);
    if let Some(ours) = same.filter(|ours| takes(ours) && (*ours != "type" || value.as_str().is_some_and(is_type_word)))
    {
        return Some(KeywordMeaning::Keyword { name: ours, is_clear: ours != "maxLength" });
    }
    if name.len() < MIN_NAME_BYTES || !is_measured {
        return None;
    }
    let fitting = || VOCABULARY.iter().filter(|keyword| keyword.holds.takes(value)).map(|keyword| keyword.name);
    let near = fitting().find(|keyword| is_same_word(keyword, name)).or_else(|| nearest(name, fitting()))?;
    Some(KeywordMeaning::Keyword { name: near, is_clear: is_lone(name, fitting()) })
}

/// Whether two names differ by case and word marks alone.
fn is_same_word(one: &str, other: &str) -> bool {
    let letters = |text: &str| -> Vec<char> {
        text.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
    };
    one.len().abs_diff(other.len()) <= 3 && letters(one) == letters(other)
}

/// What has no keyword of its own in JSON Schema.
fn otherwise(part: &Part<'_>, name: &str, value: &Value) -> Option<KeywordMeaning> {
    let meant = |severity, help: String| Some(KeywordMeaning::Otherwise { help, severity });
    let of_type = part.members.get("type").and_then(Value::as_str);
    match (name, value) {
        ("nullable", Value::Bool(true)) => {
            let of_type = of_type.unwrap_or("string");
            meant(
                Severity::Warning,
                format!(
                    "it is OpenAPI's, and null is refused here: a value that may be null has \"type\": [\"{of_type}\", \"null\"]"
                ),
            )
        }
        ("nullable", Value::Bool(false)) => meant(
            Severity::Warning,
            "it is OpenAPI's, and here no value may be null unless `type` says so: leave it out".to_owned(),
        ),
        ("example", _) => meant(Severity::Warning, "it is OpenAPI's: \"examples\" is a list of them".to_owned()),
        ("discriminator" | "xml" | "externalDocs", _) => {
            meant(Severity::Warning, "it is OpenAPI's: leave it out, or say it in the `description`".to_owned())
        }
        ("id", Value::String(text)) if text.contains(['/', '#']) => {
            meant(Severity::Warning, "it is written `$id` since draft 6".to_owned())
        }
        ("optional" | "mandatory" | "isRequired" | "is_required", Value::Bool(value)) => {
            let is_needed = *value == (name != "optional");
            let own = part.at.rsplit('/').next().unwrap_or_default();
            let help = match is_needed {
                true => format!("the object around it lists what must be there: \"required\": [\"{own}\"]"),
                false => "what is not among the `required` of the object around it may be left out".to_owned(),
            };
            meant(if is_needed { Severity::Error } else { Severity::Warning }, help)
        }
        ("strict", Value::Bool(_)) => {
            meant(Severity::Warning, "it is OpenAI's: \"additionalProperties\": false allows no other names".to_owned())
        }
        ("min" | "max" | "minLen" | "maxLen" | "length", Value::Number(_)) => bound(name, of_type),
        _ => None,
    }
}

/// The bound that a short name means, by the type beside it.
fn bound(name: &str, of_type: Option<&str>) -> Option<KeywordMeaning> {
    let keyword = match (name, of_type) {
        ("min", Some("integer" | "number")) => "minimum",
        ("max", Some("integer" | "number")) => "maximum",
        ("min", Some("string")) | ("minLen", _) => "minLength",
        ("max", Some("string")) | ("maxLen", _) => "maxLength",
        ("min", Some("array")) => "minItems",
        ("max", Some("array")) => "maxItems",
        ("length", _) => {
            let help = "`minLength` and `maxLength` bound a text, `minItems` and `maxItems` a list".to_owned();
            return Some(KeywordMeaning::Otherwise { help, severity: Severity::Error });
        }
        _ => {
            let help = format!("`{name}imum` bounds a number, `{name}Length` a text, `{name}Items` a list");
            return Some(KeywordMeaning::Otherwise { help, severity: Severity::Error });
        }
    };
    Some(KeywordMeaning::Keyword { name: keyword, is_clear: true })
}
