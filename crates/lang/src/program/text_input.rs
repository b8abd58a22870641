//! Texts in the input of a step whose schema wants a number or a boolean: they are read where they are exactly the JSON of one.

use serde_json::Value;

use super::exact_text::{boolean_of, number_of};
use crate::policy::json_text;
use crate::policy::redact::Redaction;
use crate::syntax::decimal::Decimal;
use crate::syntax::token;

/// The most characters of a text in a sentence.
const MAX_SHOWN_CHARACTERS: usize = 60;
/// The most references that are followed from one part of a schema.
const MAX_REFERENCES: usize = 16;
/// The most schemas of a choice that are looked at: what has more is not read.
const MAX_CHOICES: usize = 16;

/// A text that is not what its schema wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadText {
    /// The JSON pointer of the text.
    pub path: String,
    /// The text.
    pub text: String,
    /// What its schema wants, in a sentence: `a whole number`.
    pub wanted: &'static str,
}

/// Types that a text may be read as.
#[derive(Debug, Clone, Copy, Default)]
struct WantedTypes {
    number: bool,
    integer: bool,
    boolean: bool,
}

impl UnreadText {
    /// What is wrong, in a sentence without a final stop; values under these names are hidden, beside those that always are.
    pub fn sentence(&self, hidden: &[String]) -> String {
        let redact = Redaction::new(hidden);
        let value = Value::from(self.text.as_str());
        let mut named = String::new();
        let mut is_hidden = false;
        for name in self.path.split('/').skip(1) {
            let name = crate::syntax::unescaped(name);
            is_hidden |= redact.hides(&name, &value);
            match name.parse::<usize>() {
                Ok(index) => named.push_str(&format!("[{index}]")),
                Err(_) if named.is_empty() => named.push_str(&name),
                Err(_) => named.push_str(&format!(".{name}")),
            }
        }
        let Self { text, wanted, .. } = self;
        let shown = redact.text(text);
        let shown = match shown.char_indices().nth(MAX_SHOWN_CHARACTERS) {
            Some((at, _)) => format!("{}...", shown.get(..at).unwrap_or_default()),
            None => shown.into_owned(),
        };
        let what =
            if is_hidden { "a text that is hidden".to_owned() } else { format!("the text {}", Value::from(shown)) };
        format!("`{named}` is {what}, and no {wanted}")
    }
}

/// Reads the texts of a value whose parts of the schema want a number or a boolean, and no text. Only what the schema says in
/// plain words counts: types, the parts of objects and lists, references into itself, and choices between such schemas.
///
/// # Errors
/// The first text that is not exactly the JSON of what is wanted: with blanks, separators, or digits that would be lost.
pub fn read_texts(schema: &Value, value: &mut Value) -> Result<(), UnreadText> {
    read_part(schema, schema, value)
}

/// The same for a part of a schema, `root`, which it may refer to.
///
/// # Errors
/// As those of [`read_texts`].
pub fn read_part(root: &Value, part: &Value, value: &mut Value) -> Result<(), UnreadText> {
    SchemaRoot(root).read_at(part, value, &mut String::new())
}

/// A whole schema, whose parts refer to others.
#[derive(Clone, Copy)]
struct SchemaRoot<'s>(&'s Value);

impl<'s> SchemaRoot<'s> {
    /// The schema that a part refers to, or is the only choice of; itself where it says a type, or nothing of the kind.
    fn resolved(self, part: &'s Value) -> &'s Value {
        let mut part = part;
        for _ in 0..MAX_REFERENCES {
            if part.get("type").is_some() {
                break;
            }
            let lone = part.get("allOf").and_then(Value::as_array).filter(|parts| parts.len() == 1);
            let named = part.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
            match named.and_then(|pointer| self.0.pointer(pointer)).or_else(|| lone.and_then(|parts| parts.first())) {
                Some(other) => part = other,
                None => break,
            }
        }
        part
    }

    /// The schemas that a part chooses between; itself where it does not choose.
    fn choices(self, part: &'s Value) -> Vec<&'s Value> {
        let part = self.resolved(part);
        let choices = || part.get("anyOf").or_else(|| part.get("oneOf"))?.as_array();
        match choices().filter(|_| part.get("type").is_none()) {
            Some(choices) => choices.iter().take(MAX_CHOICES + 1).map(|choice| self.resolved(choice)).collect(),
            None => vec![part],
        }
    }

    /// The schema of a part that says what is in the objects, or the lists, that it takes; none where several do.
    fn container(self, part: &'s Value, words: &[&str]) -> Option<&'s Value> {
        let choices = self.choices(part).into_iter();
        let mut found = choices.filter(|choice| words.iter().any(|word| choice.get(word).is_some()));
        found.next().filter(|_| found.next().is_none())
    }

    fn member(self, part: &'s Value, name: &str) -> Option<&'s Value> {
        part.get("properties").and_then(|properties| properties.get(name)).or_else(|| {
            let others = part.get("additionalProperties").filter(|_| part.get("patternProperties").is_none());
            others.filter(|schema| schema.is_object())
        })
    }

    fn entry(self, part: &'s Value, index: usize) -> Option<&'s Value> {
        let first = part.get("prefixItems").and_then(Value::as_array).and_then(|parts| parts.get(index));
        first.or_else(|| part.get("items")).filter(|part| part.is_object())
    }

    /// A value is never deeper than its reader allows: the recursion ends.
    fn read_at(self, part: &'s Value, value: &mut Value, path: &mut String) -> Result<(), UnreadText> {
        let length = path.len();
        match value {
            Value::String(text) => {
                let Some(wanted) = WantedTypes::of(&self.choices(part)) else { return Ok(()) };
                let read = wanted.read(text);
                let unread = || UnreadText { path: path.clone(), text: text.clone(), wanted: wanted.called() };
                let read = read.ok_or_else(unread)?;
                *value = read;
            }
            Value::Object(members) => {
                let Some(part) = self.container(part, &["properties", "additionalProperties"]) else { return Ok(()) };
                for (name, member) in members {
                    let Some(part) = self.member(part, name) else { continue };
                    path.push('/');
                    path.push_str(&token(name));
                    self.read_at(part, member, path)?;
                    path.truncate(length);
                }
            }
            Value::Array(entries) => {
                let Some(part) = self.container(part, &["items", "prefixItems"]) else { return Ok(()) };
                for (index, entry) in entries.iter_mut().enumerate() {
                    let Some(part) = self.entry(part, index) else { continue };
                    path.push_str(&format!("/{index}"));
                    self.read_at(part, entry, path)?;
                    path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }
}

impl WantedTypes {
    /// What a text is read as; none where the schema takes texts, or wants neither numbers nor booleans.
    fn of(choices: &[&Value]) -> Option<Self> {
        if choices.len() > MAX_CHOICES {
            return None;
        }
        let mut wanted = Self::default();
        let mut takes_text = false;
        let mut add = |name: &str| match name {
            "number" => wanted.number = true,
            "integer" => wanted.integer = true,
            "boolean" => wanted.boolean = true,
            "string" => takes_text = true,
            _ => {}
        };
        for schema in choices {
            match schema.get("type")? {
                Value::String(name) => add(name),
                Value::Array(names) => names.iter().filter_map(Value::as_str).for_each(&mut add),
                _ => return None,
            }
        }
        let Self { number, integer, boolean } = wanted;
        (!takes_text && (number || integer || boolean)).then_some(wanted)
    }

    fn read(self, text: &str) -> Option<Value> {
        let is_whole = |digits: &str| Decimal::read(digits).is_some_and(|number| number.is_whole());
        let number =
            number_of(text).filter(|number| self.number || self.integer && is_whole(&json_text::digits(number)));
        let boolean = || boolean_of(text).filter(|_| self.boolean).map(Value::Bool);
        number.map(Value::Number).or_else(boolean)
    }

    fn called(self) -> &'static str {
        match (self.number, self.integer, self.boolean) {
            (true, _, true) => "number, `true` or `false`",
            (true, _, false) => "number",
            (false, true, true) => "whole number, `true` or `false`",
            (false, true, false) => "whole number",
            _ => "`true` or `false`",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value, value: Value) -> Result<Value, String> {
        let mut value = value;
        read_texts(schema, &mut value).map(|()| value).map_err(|unread| unread.sentence(&["pin".to_owned()]))
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_text_that_is_exactly_the_json_of_what_is_wanted_is_read_and_no_other() {
        let schema = json!({ "type": "object", "properties": {
            "n": { "type": "integer" }, "x": { "type": ["number", "null"] }, "b": { "type": "boolean" }, "t": { "type": "string" },
            "both": { "type": ["string", "integer"] }, "pin": { "type": "integer" }, "password": { "type": "integer" },
            "lines": { "type": "array", "items": { "type": "object", "properties": { "a/b": { "type": "number" } } } } } });
        let given = json!({ "n": "007".trim_start_matches('0'), "x": "1.50", "b": "true", "t": "7", "both": "7", "more": "7",
            "lines": [{ "a/b": "1e400" }, { "a/b": 2 }] });
        let wanted = r#"{"n":7,"x":1.50,"b":true,"t":"7","both":"7","more":"7","lines":[{"a/b":1e+400},{"a/b":2}]}"#;
        assert_eq!(read(&schema, given).unwrap().to_string(), wanted);
        for (given, why) in [
            (json!({ "n": " 7" }), r#"`n` is the text " 7", and no whole number"#),
            (json!({ "n": "7.5" }), r#"`n` is the text "7.5", and no whole number"#),
            (json!({ "n": "" }), r#"`n` is the text "", and no whole number"#),
            (json!({ "x": "1,5" }), r#"`x` is the text "1,5", and no number"#),
            (json!({ "x": "null" }), r#"`x` is the text "null", and no number"#),
            (json!({ "b": "True" }), r#"`b` is the text "True", and no `true` or `false`"#),
            (json!({ "lines": [{}, { "a/b": "1'000" }] }), r#"`lines[1].a/b` is the text "1'000", and no number"#),
            (json!({ "pin": "secret" }), "`pin` is a text that is hidden, and no whole number"),
            (json!({ "password": "secret" }), "`password` is a text that is hidden, and no whole number"),
            (
                json!({ "n": "9".repeat(70) + "x" }),
                &format!("`n` is the text \"{}...\", and no whole number", "9".repeat(60)),
            ),
        ] {
            assert_eq!(read(&schema, given.clone()), Err(why.to_owned()), "{given}");
        }
        assert_eq!(read(&json!({ "type": "integer" }), json!("7")), Ok(json!(7)), "whole: 7.0 is an integer too");
        assert_eq!(read(&json!(true), json!("7")), Ok(json!("7")));
    }

    #[test]
    fn references_choices_and_other_members_of_a_schema_are_read_too() {
        let schema = json!({ "$defs": { "money": { "type": "number" }, "line": { "type": "object", "properties": {
            "net": { "$ref": "#/$defs/money", "description": "x" }, "next": { "$ref": "#/$defs/line" } } },
            "round": { "$ref": "#/$defs/round" } }, "properties": {
            "money": { "allOf": [{ "$ref": "#/$defs/money" }] },
            "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "line": { "anyOf": [{ "$ref": "#/$defs/line" }, { "type": "null" }] },
            "either": { "oneOf": [{ "type": "integer" }, { "type": "string" }] },
            "open": { "anyOf": [{ "type": "integer" }, {}] },
            "two": { "anyOf": [{ "properties": { "n": { "type": "integer" } } }, { "properties": { "n": {} } }] },
            "map": { "additionalProperties": { "type": "number" }, "properties": { "name": { "type": "string" } } },
            "named": { "additionalProperties": { "type": "number" }, "patternProperties": { "^t": { "type": "string" } } },
            "row": { "prefixItems": [{ "type": "string" }, { "type": "integer" }], "items": { "type": "boolean" } },
            "round": { "$ref": "#/$defs/round" }, "away": { "$ref": "other.json" } } });
        let given = json!({ "money": "1.50", "maybe": "7", "line": { "net": "2", "next": { "net": "3" } }, "either": "7",
            "open": "7", "two": { "n": "7" }, "map": { "name": "7", "b": "8" }, "named": { "t": "7", "b": "8" },
            "row": ["7", "8", "true"], "round": "7", "away": "7" });
        let wanted = json!({ "money": 1.50, "maybe": 7, "line": { "net": 2, "next": { "net": 3 } }, "either": "7",
            "open": "7", "two": { "n": "7" }, "map": { "name": "7", "b": 8 }, "named": { "t": "7", "b": "8" },
            "row": ["7", 8, true], "round": "7", "away": "7" });
        assert_eq!(read(&schema, given).unwrap().to_string().replace("1.50", "1.5"), wanted.to_string());
        let why = r#"`maybe` is the text "7.5", and no whole number"#;
        assert_eq!(read(&schema, json!({ "maybe": "7.5" })), Err(why.to_owned()));
    }
}
