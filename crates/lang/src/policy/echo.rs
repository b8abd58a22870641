//! What a server repeats of a request in the error by which it refuses it: texts of users and of tools, which say nothing about
//! the refusal, whatever words they have.

use serde_json::Value;

/// Fields of an error, in lower case, whose value is the request's own text.
const FIELDS: [&str; 11] = [
    "input",
    "input_value",
    "value",
    "ctx",
    "failed_generation",
    "request",
    "request_body",
    "messages",
    "prompt",
    "arguments",
    "generated_text",
];

/// Words right before a quoted text, in lower case, that show it to be one of the request.
const BEFORE: [&str; 12] = [
    "value",
    "input",
    "input_value",
    "failed_generation",
    "content",
    "text",
    "arguments",
    "argument",
    "got",
    "received",
    "query",
    "string",
];

/// Words, in lower case, behind which only text of the request follows.
const ONLY: [&str; 5] = [
    "failed to parse input at pos",
    "error parsing tool call: raw=",
    "input_value=",
    "last read: ",
    "failed_generation\u{27}:",
];

/// The most characters of a message that are looked at.
const MAX_READ_CHARACTERS: usize = 8_000;

/// An error without the fields that repeat the request.
pub fn without_fields(error: &Value) -> Value {
    match error {
        Value::Object(fields) => {
            let own = fields.iter().filter(|(name, _)| !FIELDS.contains(&name.to_lowercase().as_str()));
            Value::Object(own.map(|(name, value)| (name.clone(), without_fields(value))).collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(without_fields).collect()),
        other => other.clone(),
    }
}

/// A message without the quoted texts that repeat the request.
pub fn without_quotes(message: &str) -> String {
    let message: String = message.chars().take(MAX_READ_CHARACTERS).collect();
    let lower = message.to_ascii_lowercase();
    let end = ONLY.iter().filter_map(|words| lower.find(words)).min().unwrap_or(message.len());
    let mut rest = message.get(..end).unwrap_or_default();
    let mut own = String::new();
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, quoted) = rest.split_at(at);
        own.push_str(before);
        // A quotation mark right behind a letter ends a word.
        let begins = !own.trim_end_matches('\\').ends_with(char::is_alphanumeric);
        let is_echo = begins && BEFORE.contains(&last_word(&own).as_str());
        let length = if is_echo { closed(before, quoted) } else { 1 };
        let (quote, behind) = quoted.split_at_checked(length).unwrap_or((quoted, ""));
        if !is_echo {
            own.push_str(quote);
        }
        rest = behind;
    }
    own.push_str(rest);
    own
}

/// The word that a text ends with, in lower case, before any signs.
fn last_word(text: &str) -> String {
    let is_sign = |letter: char| matches!(letter, ' ' | ':' | '=' | '(' | '\\' | '"' | '\'');
    let mut words =
        text.trim_end_matches(is_sign).rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.next().unwrap_or_default().to_ascii_lowercase()
}

/// The length of a quoted text with its quotation marks; all of it when it does not end. The one that ends it has as many
/// backslashes as the one that begins it, and no letter behind it.
fn closed(before: &str, quoted: &str) -> usize {
    let backslashes = |text: &str| text.len().saturating_sub(text.trim_end_matches('\\').len());
    let escapes = backslashes(before);
    let mark = quoted.chars().next().unwrap_or('"');
    let ends = |at: &usize| {
        let (inner, behind) = quoted.split_at_checked(*at).unwrap_or((quoted, ""));
        *at > 0 && backslashes(inner) == escapes && !behind.chars().nth(1).is_some_and(char::is_alphanumeric)
    };
    quoted.match_indices(mark).map(|(at, _)| at).find(ends).map_or(quoted.len(), |at| at.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_repeat_the_request_are_left_out_at_any_depth() {
        let error = json!({
            "detail": [{ "msg": "Input should be a string", "input": [{ "text": "secret words" }], "loc": ["body", 1] }],
            "failed_generation": "secret words",
        });
        let own = without_fields(&error).to_string();
        assert!(own.contains("Input should be a string") && !own.contains("secret words"), "{own}");
    }

    #[test]
    fn texts_in_quotation_marks_that_repeat_the_request_are_left_out() {
        for (message, own) in [
            ("", ""),
            ("invalid value 'the model\\'s window' here", "invalid value  here"),
            ("invalid value 'the model's window'", "invalid value "),
            ("Invalid value: \"a \\\"b\\\" c\". Try x", "Invalid value: . Try x"),
            ("arguments: {\"text\": \"too long\"}", "arguments: {\"text\": }"),
            ("{\\\"content\\\": \\\"too long\\\", \\\"n\\\": 1}", "{\\\"content\\\": \\, \\\"n\\\": 1}"),
            ("[type=string_type, input_value='too long', input_type=str]", "[type=string_type, "),
            ("Failed to parse input at pos 7: too long", ""),
            ("input 'never ends", "input "),
            ("größe 'x'", "größe 'x'"),
        ] {
            assert_eq!(without_quotes(message), own, "{message}");
        }
    }

    #[test]
    fn what_a_server_quotes_of_another_server_stays() {
        for message in [
            "AnthropicError - {\"error\":{\"message\":\"prompt is too long: 209303 tokens > 200000 maximum\"}}",
            "Error code: 400 - {'error': {'message': 'This model's maximum context length is 8192 tokens.'}}",
            "b'{\\n \"retryDelay\": \"44s\"\\n}'",
            "{\\\"message\\\": \\\"Input is too long\\\"}",
        ] {
            assert_eq!(without_quotes(message), message);
        }
    }

    #[test]
    fn a_hostile_message_is_read_in_bounded_time() {
        let long = "value '".repeat(100_000);
        assert!(without_quotes(&long).len() < 20_000);
        assert!(without_quotes(&"value 'a".repeat(100_000)).len() < 20_000);
    }
}
