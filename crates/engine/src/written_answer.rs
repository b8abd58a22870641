//! The value that the text of a model writes, where a schema says what it must be: read as forgivingly as the answer of a loop.

use serde_json::Value;

use super::dialect::{answer_json, as_json, thinking};
use super::{fitted, storable};
use loopctl_lang::policy::json_text;
use loopctl_lang::program::Schema;
use loopctl_lang::program::schema::list;

/// How often a value is looked for in the words around it: each bracket may begin one.
const MAX_LOOKS: usize = 64;

/// The value: the JSON that the text is, that is in a fence, or that has words around it. One that does not match is read anew
/// where it has one reading. A text that matches as it stands is taken as one where no JSON is.
///
/// # Errors
/// What is wrong, in words for the model.
pub fn written_answer(schema: &Schema, text: &str) -> Result<Value, String> {
    let thought = thinking::split(text);
    if thought.open {
        return Err("it ends in its thinking: close it, and write the answer behind it".to_owned());
    }
    let said = thought.rest;
    // A model may write half of a character in the JSON, and in no text that stays as it stands.
    let repaired = json_text::repaired(said);
    let written = repaired.as_deref().unwrap_or(said);
    let whole = answer_json(written, true);
    let Embedded { values: found, has_broken } = match whole {
        Some(value) => Embedded { values: vec![value], has_broken: false },
        None => embedded(written),
    };
    let plain = Value::from(said);
    let takes_text = schema.faults(&plain).is_empty();
    if has_broken && !takes_text {
        return Err("it holds JSON that can't be read: write the JSON alone, each key once".to_owned());
    }
    let mut matching: Vec<Value> = Vec::new();
    for value in &found {
        // A text that matches as it stands stays so: `True` is not read as `true`, to be the text of that.
        if let Some(value) = matched(schema, value).filter(|read| !takes_text || read == value)
            && !matching.contains(&value)
        {
            matching.push(value);
        }
    }
    match (matching.len(), found.as_slice()) {
        (1, _) => return Ok(matching.remove(0)),
        (0, _) => {}
        (several, _) => return Err(format!("it holds {several} values that could be the answer; write one")),
    }
    if takes_text {
        return Ok(plain);
    }
    match found.as_slice() {
        [] => Err("it holds no JSON".to_owned()),
        [one] => Err(format!("it does not match the schema:{}", list(&schema.faults(one)))),
        several => Err(format!("it holds {} JSON values, and none matches the schema", several.len())),
    }
}

/// A value that matches, or the one reading of it that does.
fn matched(schema: &Schema, value: &Value) -> Option<Value> {
    if storable::fault_of(value).is_some() {
        return None;
    }
    if schema.faults(value).is_empty() { Some(value.clone()) } else { fitted::fitted(schema, value) }
}

/// What a text holds with words around it.
#[derive(Default)]
struct Embedded {
    /// The objects and lists, without those inside of others.
    values: Vec<Value>,
    /// Whether one of them can't be read: what the model means is not known then, whatever else is there.
    has_broken: bool,
}

/// The objects and lists in a text with words around them. Nothing inside of brackets that can't be read is a value of its own:
/// `{"verdict": "refuse", "instead_of": {"verdict": "pay"}, }}` says refuse, and is broken.
fn embedded(text: &str) -> Embedded {
    let (mut found, mut rest, mut looks) = (Embedded::default(), text, 0);
    while let Some(at) = rest.find(['{', '[']) {
        if looks == MAX_LOOKS {
            found.has_broken = true;
            break;
        }
        looks += 1;
        let here = rest.get(at..).unwrap_or_default();
        let length = bracketed(here);
        // A key that is there twice has two meanings: the reader of whole values refuses it.
        match length.and_then(|length| here.get(..length)).and_then(as_json) {
            Some(value) => found.values.push(value),
            None => found.has_broken |= begins_json(here),
        }
        rest = length.and_then(|length| here.get(length..)).unwrap_or_default();
    }
    found
}

/// The length of a text up to the bracket that closes its first one, which a text in quotes can't do. None: nothing closes it.
fn bracketed(text: &str) -> Option<usize> {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'{' | b'[' if !is_quoted => depth += 1,
            b'}' | b']' if !is_quoted => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether brackets that can't be read were meant as JSON: `{"` and `[{`, and not `{name}` or `[see above]`.
fn begins_json(text: &str) -> bool {
    let mut inner = text.chars().filter(|letter| !letter.is_whitespace());
    match (inner.next(), inner.next()) {
        (Some('{'), Some(first)) => matches!(first, '"' | '\''),
        (_, Some(first)) => matches!(first, '"' | '{' | '['),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let schema = json!({ "type": "object", "properties": { "verdict": { "enum": ["pay", "refuse"] }, "amount": { "type": "number" } },
            "required": ["verdict"], "additionalProperties": false });
        written_answer(&Schema::compile(schema).unwrap(), text).map(|value| value.to_string())
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn an_answer_is_read_out_of_fences_and_words() {
        let answer = r#"{"verdict":"pay","amount":1.50}"#;
        for text in [
            answer.to_owned(),
            format!("  {answer}\n"),
            format!("```json\n{answer}\n```"),
            format!("Here it is:\n```\n{answer}\n```\nAnything else?"),
            format!("The verdict [see above] is {answer}."),
            format!("The {{verdict}} of [the \"case\"] is {answer}."),
            format!("<think>maybe {{\"verdict\": \"refuse\"}}</think>\n{answer}"),
            format!("maybe {{\"verdict\": \"refuse\"}}</think>{answer}"),
            format!("<thinking>{{\"verdict\": \"refuse\"}}</thinking>\n{answer}"),
            format!("First {{\"note\": 1}}, then {answer}"),
            format!("{answer} - that is: {answer}"),
            r#"{"verdict": "pay", "amount": "1.50"}"#.to_owned(),
            r#"{'verdict': 'pay', 'amount': 1.50,}"#.to_owned(),
        ] {
            assert_eq!(read(&text).as_deref(), Ok(answer), "{text}");
        }
        assert_eq!(read(r#"{"verdict": "pay", "amount": null}"#).as_deref(), Ok(r#"{"verdict":"pay"}"#));
    }

    #[test]
    fn half_of_a_character_and_fences_of_all_forms_are_read() {
        let schema = Schema::compile(
            json!({ "type": "object", "properties": { "v": { "type": "string" } }, "required": ["v"] }),
        );
        let schema = schema.unwrap();
        for text in [r#"{"v": "a \ud83d b"}"#, r#"Here: {"v": "a \ud83d b"}"#] {
            assert_eq!(written_answer(&schema, text), Ok(json!({ "v": "a \u{fffd} b" })), "{text}");
        }
        for text in ["~~~json\n{\"v\": \"a\"}\n~~~", "````\n{\"v\": \"a\"}````", "```json5 {\"v\": \"a\"}```"] {
            assert_eq!(written_answer(&schema, text), Ok(json!({ "v": "a" })), "{text}");
            assert_eq!(answer_json(text, true), Some(json!({ "v": "a" })), "{text}");
            assert_eq!(answer_json(text, false), None, "{text}");
        }
        let plain = Schema::compile(json!({ "type": "string" })).unwrap();
        assert_eq!(written_answer(&plain, r"half: \ud83d"), Ok(json!(r"half: \ud83d")), "a text stays as it stands");
    }

    #[test]
    fn what_is_no_answer_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "holds no JSON"),
            ("I would pay.", "holds no JSON"),
            ("{\"verdict\": \"pay\"", "can't be read"),
            (r#"{"verdict": "maybe"}"#, "does not match the schema"),
            (r#"{"verdict": "pay", "verdict": "refuse"}"#, "can't be read"),
            (r#"{"verdict": "refuse", "instead_of": {"verdict": "pay"}"#, "can't be read"),
            (r#"{"verdict": "refuse", "instead_of": {"verdict": "pay"} oops}"#, "can't be read"),
            (r#"{"verdict": "refuse" "note": "a } in it", "instead_of": {"verdict": "pay"}}"#, "can't be read"),
            (r#"{"verdict": "pay"} and then {"verdict": "refuse""#, "can't be read"),
            (r#"[{"verdict": "pay"}, {"verdict": "refuse", "verdict": "pay"}]"#, "can't be read"),
            (r#"<think>Pay? {"verdict": "pay"}"#, "ends in its thinking"),
            ("see [this {\"verdict\": \"pay\"}", "holds no JSON"),
            (r#"{"verdict": "pay"} or {"verdict": "refuse"}"#, "2 values that could be the answer"),
            (r#"{"a": 1} and {"b": 2}"#, "none matches"),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.contains(why), "{text}: {fault}");
        }
        let deep = "[".repeat(100_000);
        assert!(read(&deep).is_err());
    }

    #[test]
    fn a_text_is_an_answer_where_the_schema_takes_one() {
        let schema = Schema::compile(json!({ "type": "string", "maxLength": 20 })).unwrap();
        assert_eq!(written_answer(&schema, " It is late. "), Ok(json!("It is late.")));
        assert_eq!(written_answer(&schema, "\"quoted\""), Ok(json!("quoted")));
        let list = Schema::compile(json!({ "type": "array", "items": { "type": "integer" } })).unwrap();
        assert_eq!(written_answer(&list, "They are [1, 2]."), Ok(json!([1, 2])));
    }

    #[test]
    fn a_text_that_a_schema_takes_stays_as_it_stands_and_json_in_quotes_is_its_text() {
        let schema = Schema::compile(json!({ "type": "string" })).unwrap();
        for (said, read) in [("True", "True"), (".5", ".5"), ("5.", "5."), ("[1]", "[1]"), ("\"True\"", "True")] {
            assert_eq!(written_answer(&schema, said), Ok(json!(read)), "{said}");
        }
        let number = Schema::compile(json!({ "type": ["string", "integer"] })).unwrap();
        assert_eq!(written_answer(&number, "5"), Ok(json!(5)));
    }
}
