//! Numbers: JSON's own, with every digit as it was written, and JSON5's without a digit before or behind the point.

use std::borrow::Cow;

use serde_json::Number;

/// The number that this word is, when it is one of JSON's or JSON5's.
pub fn number(word: &str) -> Option<Number> {
    let word = with_digits_at_the_point(word);
    // Parsing would write `1E400` as `1e+400`; the word is judged here, so nothing is unchecked.
    is_number(word.as_bytes()).then(|| Number::from_string_unchecked(word.into_owned()))
}

/// `.5` as `0.5`, and `5.` as `5.0`: the zero that JSON wants on both sides of the point.
fn with_digits_at_the_point(word: &str) -> Cow<'_, str> {
    let Some((before, behind)) = word.split_once('.') else { return Cow::Borrowed(word) };
    let (has_before, has_behind) = (before.ends_with(is_digit), behind.starts_with(is_digit));
    if has_before == has_behind {
        return Cow::Borrowed(word);
    }
    let zero = |missing: bool| if missing { "0" } else { "" };
    Cow::Owned(format!("{before}{}.{}{behind}", zero(!has_before), zero(!has_behind)))
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

/// Whether a byte may belong to a number, right or wrong: the word is taken whole and then judged.
pub fn belongs(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

/// JSON's grammar: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
fn is_number(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").unwrap_or(word);
    let (whole, rest) = digits(word);
    if whole.is_empty() || (whole.len() > 1 && whole.first() == Some(&b'0')) {
        return false;
    }
    let rest = match rest.strip_prefix(b".") {
        Some(rest) => match digits(rest) {
            ([], _) => return false,
            (_, rest) => rest,
        },
        None => rest,
    };
    let Some((b'e' | b'E', rest)) = rest.split_first() else { return rest.is_empty() };
    let rest = rest.strip_prefix(b"+").or_else(|| rest.strip_prefix(b"-")).unwrap_or(rest);
    matches!(digits(rest), ([_, ..], []))
}

fn digits(word: &[u8]) -> (&[u8], &[u8]) {
    let end = word.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(word.len());
    word.split_at_checked(end).unwrap_or((word, &[]))
}
