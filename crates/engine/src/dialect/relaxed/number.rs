//! Numbers: JSON's own, with every digit as it was written, and JSON5's without a digit before or behind the point.

use std::borrow::Cow;

use loopctl_lang::policy::json_text;
use serde_json::Number;

/// The number that this word is, when it is one of JSON's or JSON5's.
pub fn number(word: &str) -> Option<Number> {
    json_text::number_as_written(&with_digits_at_the_point(word))
}

/// Whether this word is a number, and has more digits than this build holds.
pub fn is_inexact(word: &str) -> bool {
    let word = with_digits_at_the_point(word);
    json_text::is_number(&word) && !json_text::is_exact(&word)
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
