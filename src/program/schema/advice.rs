//! How a fault of a schema is fixed: the type that is meant, a schema in place of its short form.

use serde_json::Value;

use super::message::shorten;
use super::plan::TYPES;
use crate::diagnostic::nearest;

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
        Value::String(word) if named(around) || (!index && keyword == "items") => of_short_form(word),
        Value::String(name) if keyword == "required" && !index && !named(around) => {
            let name = Value::from(name.as_str()).to_string();
            Some(Advice {
                help: "a list of names is written in `[` and `]`".to_owned(),
                fix: Some(Fix { meant: format!("[{name}]"), written: name }),
            })
        }
        Value::Bool(_) if keyword == "required" && !named(around) => {
            let help = "`required` is a list of names beside `properties`: `\"required\": [\"...\"]`";
            Some(Advice { help: help.to_owned(), fix: None })
        }
        _ => None,
    }
}

/// The type that a word means.
fn meant(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let foreign = FOREIGN_TYPES.iter().find(|(known, _)| *known == lower).map(|(_, ours)| *ours);
    foreign.or_else(|| TYPES.into_iter().find(|known| *known == lower)).or_else(|| nearest(word, TYPES))
}

fn of_type(word: &str) -> Advice {
    let lower = word.to_lowercase();
    let no_fix = |help: String| Advice { help, fix: None };
    if ANY.contains(&&*lower) {
        return no_fix("a schema without `type` takes any value: leave it out".to_owned());
    }
    if lower == "datetime" || FORMATS.contains(&&*lower) {
        let format = if lower == "datetime" { "date-time" } else { &lower };
        return no_fix(format!("it is a format of texts: write \"type\": \"string\", \"format\": \"{format}\""));
    }
    match meant(word) {
        Some(ours) => Advice {
            help: format!("`{}` is written `{ours}` in JSON Schema", shorten(word)),
            fix: Some(Fix { written: Value::from(word).to_string(), meant: Value::from(ours).to_string() }),
        },
        None => no_fix(format!("the types are `{}`", TYPES.join("`, `"))),
    }
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
}
