//! Numbers: JSON's own, with every digit as it was written.

use serde_json::Number;

/// The number that this word is, when it is one of JSON's.
pub fn number(word: &str) -> Option<Number> {
    // Parsing would write `1E400` as `1e+400`; the word is judged here, so nothing is unchecked.
    is_number(word.as_bytes()).then(|| Number::from_string_unchecked(word.to_owned()))
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
