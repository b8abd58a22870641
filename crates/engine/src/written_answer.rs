//! The value that the text of a model writes, where a schema says what it must be: read as forgivingly as the answer of a loop.

use serde_json::Value;

use super::dialect::as_json;
use super::{fitted, storable};
use loopctl_lang::program::Schema;
use loopctl_lang::program::schema::list;

/// How often a value is looked for in the words around it: each bracket may begin one.
const MAX_LOOKS: usize = 64;
/// What comes before an answer when a model thinks aloud.
const THOUGHT: [&str; 2] = ["<think>", "</think>"];

/// The value: the JSON that the text is, that is in a fence, or that has words around it. One that does not match is read anew
/// where it has one reading. A text that matches as it stands is taken as one where no JSON is.
///
/// # Errors
/// What is wrong, in words for the model.
pub fn written_answer(schema: &Schema, text: &str) -> Result<Value, String> {
    let [begin, end] = THOUGHT;
    let said = text.trim();
    let said = said.strip_prefix(begin).and_then(|rest| rest.split_once(end)).map_or(said, |(_, said)| said).trim();
    let whole = as_json(said);
    let found: Vec<Value> = match whole {
        Some(value) => vec![value],
        None => embedded(said),
    };
    let mut matching: Vec<Value> = Vec::new();
    for value in &found {
        if let Some(value) = matched(schema, value)
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
    let plain = Value::from(said);
    if schema.faults(&plain).is_empty() {
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

/// The objects and lists in a text with words around them; those inside of others are not among them.
fn embedded(text: &str) -> Vec<Value> {
    let (mut found, mut rest, mut looks) = (Vec::new(), text, 0);
    while let Some(at) = rest.find(['{', '[']).filter(|_| looks < MAX_LOOKS) {
        looks += 1;
        let here = rest.get(at..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(here).into_iter::<serde::de::IgnoredAny>();
        let is_value = matches!(values.next(), Some(Ok(_)));
        let length = values.byte_offset();
        // A key that is there twice has two meanings: the reader of whole values refuses it.
        match here.get(..length).filter(|_| is_value).and_then(as_json) {
            Some(value) => {
                found.push(value);
                rest = here.get(length..).unwrap_or_default();
            }
            None => rest = here.get(1..).unwrap_or_default(),
        }
    }
    found
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

    #[test]
    fn an_answer_is_read_out_of_fences_and_words() {
        let answer = r#"{"verdict":"pay","amount":1.50}"#;
        for text in [
            answer.to_owned(),
            format!("  {answer}\n"),
            format!("```json\n{answer}\n```"),
            format!("Here it is:\n```\n{answer}\n```\nAnything else?"),
            format!("The verdict [see above] is {answer}."),
            format!("<think>maybe {{\"verdict\": \"refuse\"}}</think>\n{answer}"),
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
    fn what_is_no_answer_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "holds no JSON"),
            ("I would pay.", "holds no JSON"),
            ("{\"verdict\": \"pay\"", "holds no JSON"),
            (r#"{"verdict": "maybe"}"#, "does not match the schema"),
            (r#"{"verdict": "pay", "verdict": "refuse"}"#, "holds no JSON"),
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
}
