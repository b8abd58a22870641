//! How a fault of a schema is fixed: the type that is meant, a schema in place of its short form.

use serde_json::Value;

use super::message::shorten;
use super::plan::TYPES;
use super::vocabulary::{Holds, keyword_named};
use crate::diagnostic::nearest;
use crate::policy::json_text;
use crate::program::reference::escape_pointer;

/// The most parts of a schema that a reference is compared with.
const MEASURED_PARTS: usize = 200;

/// What to write in place of a part of a schema.
#[derive(Debug, PartialEq, Eq)]
pub struct Advice {
    /// In a sentence.
    pub help: String,
    /// The text that is written, and the one that is meant, when there is one reading.
    pub fix: Option<Fix>,
}

/// A text, and the one that takes its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Fix {
    /// The JSON that is written.
    pub written: String,
    /// The JSON that is meant.
    pub meant: String,
}

/// The types of other languages, and ours.
const FOREIGN_TYPES: &[(&str, &str)] = &[
    ("dict", "object"),
    ("dictionary", "object"),
    ("map", "object"),
    ("struct", "object"),
    ("record", "object"),
    ("hash", "object"),
    ("json", "object"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("int", "integer"),
    ("int32", "integer"),
    ("int64", "integer"),
    ("long", "integer"),
    ("str", "string"),
    ("text", "string"),
    ("char", "string"),
    ("varchar", "string"),
    ("bool", "boolean"),
    ("list", "array"),
    ("tuple", "array"),
    ("set", "array"),
    ("none", "null"),
    ("nil", "null"),
    ("undefined", "null"),
];
/// Words for what any value is.
const ANY: [&str; 5] = ["any", "mixed", "unknown", "variant", "*"];
/// Words for texts of a format.
const FORMATS: [&str; 8] = ["date", "date-time", "time", "email", "uri", "uuid", "hostname", "ipv4"];

/// How the fault at a JSON pointer of a schema is fixed, where that can be said.
pub fn advice(source: &Value, path: &str) -> Option<Advice> {
    let value = source.pointer(path)?;
    let (around, last) = path.rsplit_once('/')?;
    let index = last.bytes().all(|byte| byte.is_ascii_digit());
    let keyword = if index { around.rsplit('/').next()? } else { last };
    // A key under `properties` is a name, and its value a schema.
    let named = |at: &str| at.ends_with("/properties") || at.ends_with("/$defs") || at.ends_with("/definitions");
    match value {
        Value::String(word) if keyword == "type" && !named(around) => Some(of_type(word)),
        Value::String(word) if named(around) || (!index && keyword == "items") => {
            of_short_form(word).or_else(of_example)
        }
        Value::String(name) if keyword == "required" && !index && !named(around) => {
            let name = Value::from(name.as_str()).to_string();
            Some(Advice {
                help: "a list of names is written in `[` and `]`".to_owned(),
                fix: Some(Fix { meant: format!("[{name}]"), written: name }),
            })
        }
        Value::Bool(_) if keyword == "required" && !named(around) => Some(no_fix(match around.rsplit_once('/') {
            Some((object, name)) if named(object) => {
                format!(
                    "the object around it lists what must be there, beside its `properties`: \"required\": [\"{name}\"]"
                )
            }
            _ => "`required` is a list of names beside `properties`: `\"required\": [\"...\"]`".to_owned(),
        })),
        Value::String(reference) if keyword == "$ref" && !named(around) => of_reference(source, reference),
        value if named(around) => of_named(last, value),
        value => of_keyword(keyword, value),
    }
}

/// A reference to a part that is not there: the one that is meant, or those that are there.
fn of_reference(source: &Value, written: &str) -> Option<Advice> {
    let below = written.rsplit(['/', '#']).next().unwrap_or_default();
    let name = below.strip_suffix(".json").unwrap_or(below);
    let parts = || {
        ["$defs", "definitions"].into_iter().flat_map(|keyword| {
            let named = source.get(keyword).and_then(Value::as_object).into_iter().flatten();
            named.take(MEASURED_PARTS).map(move |(name, _)| (keyword, name.as_str()))
        })
    };
    if let Some(near) = nearest(name, parts().map(|(_, name)| name)) {
        let keyword = parts().find(|(_, name)| *name == near).map_or("$defs", |(keyword, _)| keyword);
        let meant = format!("#/{keyword}/{}", escape_pointer(near));
        let fix = Fix { written: Value::from(written).to_string(), meant: Value::from(meant.as_str()).to_string() };
        // What is elsewhere may differ from a part of the same name.
        let fix = Some(fix).filter(|_| written.starts_with('#'));
        return Some(Advice { help: format!("the nearest part is `{}`", shorten(&meant)), fix });
    }
    let known: Vec<String> =
        parts().take(8).map(|(keyword, name)| format!("`#/{keyword}/{}`", shorten(name))).collect();
    match known.as_slice() {
        // The message says what to do with what is written elsewhere.
        _ if !written.starts_with('#') => None,
        [] => Some(no_fix("write the part under `$defs` of the schema, and refer to it by `#/$defs/NAME`")),
        known => Some(no_fix(format!("the schema has {}", known.join(", ")))),
    }
}

/// Advice without a fix.
fn no_fix(help: impl Into<String>) -> Advice {
    Advice { help: help.into(), fix: None }
}

/// An example in the place of a schema.
fn of_example() -> Option<Advice> {
    Some(no_fix("an example is no schema: {\"type\": \"string\", \"examples\": [...]}"))
}

/// What a property holds that is no schema.
fn of_named(name: &str, value: &Value) -> Option<Advice> {
    let is_keyword = keyword_named(name).is_some_and(|keyword| keyword.holds.takes(value));
    Some(no_fix(match value {
        _ if is_keyword => {
            format!("inside `properties`, `{name}` is the name of a property: the keyword stands beside `properties`")
        }
        Value::Number(_) => "an example is no schema: {\"type\": \"number\", \"examples\": [...]}".to_owned(),
        Value::Array(_) => {
            "a list of allowed values is written {\"enum\": [...]}, a list {\"type\": \"array\", \"items\": {...}}"
                .to_owned()
        }
        _ => return None,
    }))
}

/// A keyword that holds what it can't.
fn of_keyword(keyword: &str, value: &Value) -> Option<Advice> {
    let holds = keyword_named(keyword)?.holds;
    let unquoted = |text: &str| {
        let fix = Fix { written: Value::from(text).to_string(), meant: text.to_owned() };
        Some(Advice { help: "take the quotes away".to_owned(), fix: Some(fix) })
    };
    match (holds, value) {
        (Holds::Bound | Holds::Count, Value::String(text)) if json_text::is_number(text) => unquoted(text),
        (Holds::Flag | Holds::Schema, Value::String(text)) if matches!(text.as_str(), "true" | "false") => {
            unquoted(text)
        }
        (Holds::Bound, Value::Bool(true)) => {
            let bound = keyword.replace("exclusiveM", "m");
            Some(no_fix(format!(
                "since draft 6 it is the bound itself: write the number of `{bound}` here, and leave `{bound}` out"
            )))
        }
        (Holds::Values, Value::String(text)) => {
            let values: Vec<&str> = text.split([',', '|']).map(str::trim).filter(|value| !value.is_empty()).collect();
            let fix = Fix { written: Value::from(text.as_str()).to_string(), meant: Value::from(values).to_string() };
            Some(Advice { help: "a list of values is written in `[` and `]`".to_owned(), fix: Some(fix) })
        }
        (Holds::NamedSchemas, Value::Array(_)) => {
            Some(no_fix("it is an object with a schema for each name: {\"name\": {\"type\": \"string\"}}"))
        }
        (Holds::SchemaOrSchemas, Value::Array(_)) => Some(no_fix(
            "one schema for all items stands without `[` and `]`; a schema for each place is `prefixItems`",
        )),
        (Holds::Names, Value::Object(_)) => Some(no_fix("it is a list of names: [\"...\"]")),
        (Holds::Types, Value::Object(_)) => {
            Some(no_fix("it is the name of a type: what is inside belongs one level up"))
        }
        _ => None,
    }
}

/// Whether a word is the name of a type, in JSON Schema or in another language.
pub fn is_type_word(word: &str) -> bool {
    let lower = word.to_lowercase();
    TYPES.contains(&&*lower)
        || ANY.contains(&&*lower)
        || FORMATS.contains(&&*lower)
        || lower == "datetime"
        || FOREIGN_TYPES.iter().any(|(known, _)| *known == lower)
}

/// The type that the name of a type means; nothing for one that means any.
pub fn type_meant(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let is_format = lower == "datetime" || FORMATS.contains(&&*lower);
    if is_format { Some("string") } else { meant(word).filter(|_| is_type_word(word)) }
}

/// The type that a word means.
fn meant(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let foreign = FOREIGN_TYPES.iter().find(|(known, _)| *known == lower).map(|(_, ours)| *ours);
    foreign.or_else(|| TYPES.into_iter().find(|known| *known == lower)).or_else(|| nearest(word, TYPES))
}

fn of_type(word: &str) -> Advice {
    let lower = word.to_lowercase();
    if ANY.contains(&&*lower) {
        return no_fix("a schema without `type` takes any value: leave it out");
    }
    if lower == "enum" {
        return no_fix("a list of allowed values is `enum`, and needs no type: {\"enum\": [...]}");
    }
    if lower == "datetime" || FORMATS.contains(&&*lower) {
        let format = if lower == "datetime" { "date-time" } else { &lower };
        return no_fix(format!("it is a format of texts: write \"type\": \"string\", \"format\": \"{format}\""));
    }
    if let Some(item) = item_type(&lower) {
        return no_fix(format!("a list is written \"type\": \"array\", \"items\": {{\"type\": \"{item}\"}}"));
    }
    if let Some(types) = several_types(&lower) {
        let fix = Fix { written: Value::from(word).to_string(), meant: Value::from(types).to_string() };
        return Advice { help: "several types are a list of their names".to_owned(), fix: Some(fix) };
    }
    match meant(word) {
        Some(ours) => Advice {
            help: format!("`{}` is written `{ours}` in JSON Schema", shorten(word)),
            fix: Some(Fix { written: Value::from(word).to_string(), meant: Value::from(ours).to_string() }),
        },
        None => no_fix(format!("the types are `{}`", TYPES.join("`, `"))),
    }
}

/// The type of the items, in the spelling of another language: `string[]`, `array<string>`, `list[int]`.
fn item_type(word: &str) -> Option<&'static str> {
    let inner = ["array", "list", "set"].iter().find_map(|list| {
        let inner = word.strip_prefix(list)?;
        let of_angles = inner.strip_prefix('<').and_then(|inner| inner.strip_suffix('>'));
        of_angles.or_else(|| inner.strip_prefix('[')?.strip_suffix(']')).filter(|inner| !inner.is_empty())
    });
    let inner = inner.or_else(|| word.strip_suffix("[]"))?;
    type_meant(inner.trim())
}

/// The types of a word that names several: `string|null`, `int or float`, `string?`.
fn several_types(word: &str) -> Option<Vec<&'static str>> {
    let word = match word.strip_suffix('?') {
        Some(word) => format!("{word}|null"),
        None => word.replace(" or ", "|").replace([',', '/'], "|"),
    };
    let names: Vec<&str> = word.split('|').map(str::trim).collect();
    if names.len() < 2 {
        return None;
    }
    names.into_iter().map(type_meant).collect()
}

/// The name of a type in place of a schema.
fn of_short_form(word: &str) -> Option<Advice> {
    if ANY.contains(&&*word.to_lowercase()) {
        let fix = Fix { written: Value::from(word).to_string(), meant: "{}".to_owned() };
        return Some(Advice { help: "a schema that takes any value is `{}`".to_owned(), fix: Some(fix) });
    }
    let schema = format!("{{\"type\": \"{}\"}}", meant(word)?);
    let help = format!("a schema is an object: `{schema}`");
    Some(Advice { help, fix: Some(Fix { written: Value::from(word).to_string(), meant: schema }) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fixed(source: &Value, path: &str) -> Option<String> {
        advice(source, path).and_then(|advice| advice.fix).map(|fix| fix.meant)
    }

    #[test]
    fn the_types_of_other_languages_are_named_in_ours() {
        for (word, ours) in [
            ("dict", "object"),
            ("map", "object"),
            ("struct", "object"),
            ("float", "number"),
            ("int", "integer"),
            ("Str", "string"),
            ("bool", "boolean"),
            ("list", "array"),
            ("tuple", "array"),
            ("STRING", "string"),
            ("objct", "object"),
            ("strnig", "string"),
        ] {
            let source = json!({"properties": {"a": {"type": word}, "b": {"type": ["null", word]}}});
            assert_eq!(fixed(&source, "/properties/a/type"), Some(format!("\"{ours}\"")), "{word}");
            assert_eq!(fixed(&source, "/properties/b/type/1"), Some(format!("\"{ours}\"")), "{word}");
        }
    }

    #[test]
    fn a_word_of_several_readings_has_advice_and_no_fix() {
        for (word, about) in
            [("any", "leave it out"), ("datetime", "\"format\": \"date-time\""), ("colour", "the types are")]
        {
            let source = json!({"type": word});
            let advice = advice(&source, "/type").unwrap();
            assert!(advice.help.contains(about) && advice.fix.is_none(), "{advice:?}");
        }
    }

    #[test]
    fn a_property_that_is_called_type_is_a_schema() {
        let source = json!({"properties": {"type": "str", "required": "any"}});
        assert_eq!(fixed(&source, "/properties/type"), Some("{\"type\": \"string\"}".to_owned()));
        assert_eq!(fixed(&source, "/properties/required"), Some("{}".to_owned()));
        assert_eq!(fixed(&json!({"required": "a"}), "/required"), Some("[\"a\"]".to_owned()));
        assert_eq!(advice(&json!({"minLength": -1}), "/minLength"), None);
    }

    #[test]
    fn what_a_keyword_can_not_hold_is_written_as_it_holds_it() {
        for (source, path, meant) in [
            (json!({"minimum": "5"}), "/minimum", "5"),
            (json!({"uniqueItems": "true"}), "/uniqueItems", "true"),
            (json!({"additionalProperties": "false"}), "/additionalProperties", "false"),
            (json!({"enum": "low, high"}), "/enum", r#"["low","high"]"#),
            (json!({"type": "string|null"}), "/type", r#"["string","null"]"#),
            (json!({"type": "int or float"}), "/type", r#"["integer","number"]"#),
            (json!({"type": "bool?"}), "/type", r#"["boolean","null"]"#),
            (json!({"$ref": "#/$defs/a", "definitions": {"a": {}}}), "/$ref", r##""#/definitions/a""##),
        ] {
            assert_eq!(fixed(&source, path).as_deref(), Some(meant), "{source}");
        }
    }

    #[test]
    fn what_has_several_readings_is_explained() {
        for (source, path, about) in [
            (json!({"properties": ["a"]}), "/properties", "a schema for each name"),
            (json!({"properties": {"required": ["a"]}}), "/properties/required", "beside `properties`"),
            (json!({"properties": {"a": {"required": true}}}), "/properties/a/required", r#""required": ["a"]"#),
            (json!({"properties": {"a": "Ada"}}), "/properties/a", "an example is no schema"),
            (json!({"properties": {"a": 5}}), "/properties/a", "an example is no schema"),
            (json!({"properties": {"a": ["x", "y"]}}), "/properties/a", "\"enum\""),
            (json!({"items": [{}]}), "/items", "prefixItems"),
            (json!({"exclusiveMinimum": true}), "/exclusiveMinimum", "the number of `minimum`"),
            (json!({"type": "string[]"}), "/type", "\"items\": {\"type\": \"string\"}"),
            (json!({"type": "array<int>"}), "/type", "\"items\": {\"type\": \"integer\"}"),
            (json!({"type": "enum"}), "/type", "`enum`"),
            (json!({"type": {"enum": []}}), "/type", "one level up"),
            (json!({"required": {"a": true}}), "/required", "a list of names"),
            (json!({"$ref": "#/$defs/x"}), "/$ref", "under `$defs`"),
            (json!({"$ref": "https://x.test/adress.json", "$defs": {"address": {}}}), "/$ref", "`#/$defs/address`"),
            (json!({"$ref": "#/$defs/x", "$defs": {"colour": {}}}), "/$ref", "the schema has `#/$defs/colour`"),
        ] {
            let advice = advice(&source, path).unwrap();
            assert!(advice.help.contains(about) && advice.fix.is_none(), "{source}: {advice:?}");
        }
    }
}
