//! Values for probes: the simplest that match a schema.

use serde_json::Value;

use crate::engine::dialect::sample_of;
use crate::program::Schema;

/// The shortest text of a sample without a pattern.
const TEXT: &str = "probe";
/// The longest text that is made of a schema.
const MAX_TEXT_CHARACTERS: usize = 1_000;

/// A value that matches a schema, when one can be made of it.
pub(super) fn sample(schema: &Schema) -> Option<Value> {
    sample_of(schema, &text)
}

/// A text for a schema: by its pattern, or long enough.
fn text(schema: &Value) -> String {
    if let Some(text) = schema.get("pattern").and_then(Value::as_str).and_then(of_pattern) {
        return text;
    }
    let at_least = schema.get("minLength").and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok());
    let at_most = schema.get("maxLength").and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok());
    let length = TEXT
        .len()
        .max(at_least.unwrap_or_default())
        .min(at_most.unwrap_or(MAX_TEXT_CHARACTERS))
        .min(MAX_TEXT_CHARACTERS);
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2026-01-01".to_owned(),
        Some("date-time") => "2026-01-01T00:00:00Z".to_owned(),
        Some("email") => "probe@example.com".to_owned(),
        Some("uri") => "https://example.com/".to_owned(),
        _ => TEXT.chars().cycle().take(length).collect(),
    }
}

/// A text for a plain pattern: characters and classes, each with how often it comes. None for any other.
fn of_pattern(pattern: &str) -> Option<String> {
    let mut rest = pattern.strip_prefix('^').unwrap_or(pattern);
    rest = rest.strip_suffix('$').unwrap_or(rest);
    let mut text = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(next) = chars.next() {
        let one = match next {
            '[' => {
                let first = chars.next().filter(|first| !matches!(first, '^' | '\\' | ']'))?;
                chars.by_ref().find(|c| *c == ']')?;
                first
            }
            '\\' => match chars.next()? {
                'd' => '1',
                'w' => 'a',
                's' => ' ',
                c if c.is_ascii_punctuation() => c,
                _ => return None,
            },
            '.' => 'a',
            '(' | ')' | '|' | '^' | '$' | '*' | '+' | '?' | '{' => return None,
            c => c,
        };
        let count = match chars.peek() {
            Some('{') => {
                let count: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                count.split(',').next()?.parse().ok()?
            }
            Some('*' | '+' | '?') => {
                chars.next();
                1
            }
            _ => 1,
        };
        text.extend(std::iter::repeat_n(one, usize::min(count, MAX_TEXT_CHARACTERS)));
    }
    (text.len() <= MAX_TEXT_CHARACTERS).then_some(text)
}
