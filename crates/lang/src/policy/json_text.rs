//! Reading JSON: the one gate at which the digits of a number become a value. With the cargo feature `exact-numbers` a number keeps all
//! of them. A host that embeds the library builds without it, because it changes how all crates of a program read numbers: what `i64`,
//! `u64` and `f64` can't hold is refused there, and never rounded.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::de::StrRead;
use serde_json::{Deserializer, Number, Value};

/// What helps against a number that this build can't hold.
pub const INEXACT: &str = "a number has more digits than can be held exactly: write it as a string, or build with the cargo feature `exact-numbers` of loopctl";

/// The value of a JSON text.
///
/// # Errors
/// When it is no JSON or not of the type, or has a number that this build can't hold exactly.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    is_held(text)?;
    serde_json::from_str(text)
}

/// A reader of a JSON text, for values that are not parsed as a whole.
///
/// # Errors
/// When it has a number that this build can't hold exactly.
pub fn reader(text: &str) -> serde_json::Result<Deserializer<StrRead<'_>>> {
    is_held(text)?;
    Ok(Deserializer::from_str(text))
}

/// A reader of a JSON text for what keeps no number of it: a search for keys, or for secrets, which are hidden beside any number.
pub fn unchecked_reader(text: &str) -> Deserializer<StrRead<'_>> {
    Deserializer::from_str(text)
}

/// The value of a JSON text to look for secrets in, beside any number: it may be rounded.
///
/// # Errors
/// When it is no JSON.
pub fn unchecked(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text)
}

/// A JSON text with U+FFFD in place of each half of a surrogate pair, which has as many bytes; none where there is no half. Some
/// languages, and models, write halves of characters.
pub fn repaired(text: &str) -> Option<String> {
    if !text.contains("\\u") {
        return None;
    }
    let mut whole = String::with_capacity(text.len());
    let (mut rest, mut is_changed) = (text, false);
    while let Some((before, escape)) = rest.split_once('\\') {
        whole.push_str(before);
        // One unit has 5 characters after its mark, and the second one of a pair has its own mark.
        let second = escape.get(5..).and_then(|after| unit(after.strip_prefix('\\')?));
        let (kept, length) = match (unit(escape), second) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (true, 11),
            (Some(0xd800..=0xdfff), _) => (false, 5),
            _ => (true, escape.chars().next().map_or(0, char::len_utf8)),
        };
        let (escape, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        whole.push('\\');
        whole.push_str(if kept { escape } else { "ufffd" });
        is_changed |= !kept;
        rest = after;
    }
    whole.push_str(rest);
    is_changed.then_some(whole)
}

fn unit(escape: &str) -> Option<u16> {
    u16::from_str_radix(escape.strip_prefix('u')?.get(..4)?, 16).ok()
}

/// Why [`read`] refuses a text that is JSON: it has a number that this build can't hold exactly.
pub fn refusal(text: &str) -> Option<serde_json::Error> {
    let error = is_held(text).err()?;
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok().then_some(error)
}

/// The number that a text without blanks is, unless this build can't hold it exactly.
pub fn number(text: &str) -> Option<Number> {
    if !is_number(text) || !is_exact(text) {
        return None;
    }
    text.parse().ok()
}

/// The number that a text without blanks is, in its own spelling: parsing would write `1E400` as `1e+400`.
pub fn number_as_written(text: &str) -> Option<Number> {
    #[cfg(feature = "exact-numbers")]
    return is_number(text).then(|| Number::from_string_unchecked(text.to_owned()));
    #[cfg(not(feature = "exact-numbers"))]
    number(text)
}

/// The digits of a number: as they are written with `exact-numbers`, otherwise the shortest ones of its value.
pub fn digits(number: &Number) -> Cow<'_, str> {
    #[cfg(feature = "exact-numbers")]
    return Cow::Borrowed(number.as_str());
    #[cfg(not(feature = "exact-numbers"))]
    Cow::Owned(number.to_string())
}

/// Whether a text without blanks has JSON's grammar of numbers: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
pub fn is_number(word: &str) -> bool {
    let word = word.strip_prefix('-').unwrap_or(word).as_bytes();
    let (whole, rest) = leading_digits(word);
    if whole.is_empty() || (whole.len() > 1 && whole.first() == Some(&b'0')) {
        return false;
    }
    let rest = match rest.strip_prefix(b".") {
        Some(rest) => match leading_digits(rest) {
            ([], _) => return false,
            (_, rest) => rest,
        },
        None => rest,
    };
    let Some((b'e' | b'E', rest)) = rest.split_first() else { return rest.is_empty() };
    let rest = rest.strip_prefix(b"+").or_else(|| rest.strip_prefix(b"-")).unwrap_or(rest);
    matches!(leading_digits(rest), ([_, ..], []))
}

fn leading_digits(word: &[u8]) -> (&[u8], &[u8]) {
    let end = word.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(word.len());
    word.split_at_checked(end).unwrap_or((word, &[]))
}

/// Whether this build holds a number of JSON's grammar as exactly as it is written.
#[cfg(feature = "exact-numbers")]
pub fn is_exact(_word: &str) -> bool {
    true
}

/// Whether this build holds a number of JSON's grammar as exactly as it is written.
#[cfg(not(feature = "exact-numbers"))]
pub fn is_exact(word: &str) -> bool {
    inexact::is_exact(word)
}

#[cfg(feature = "exact-numbers")]
fn is_held(_text: &str) -> serde_json::Result<()> {
    Ok(())
}

#[cfg(not(feature = "exact-numbers"))]
fn is_held(text: &str) -> serde_json::Result<()> {
    inexact::is_held(text)
}

/// The judgement itself. It is compiled for the tests of both builds.
#[cfg(any(test, not(feature = "exact-numbers")))]
mod inexact {
    use serde::de::Error as _;

    use super::{INEXACT, is_number};

    /// The most digits of a whole number that fits `i64` in any case, and of a fraction that `f64` gives back as it was.
    const MAX_PLAIN_DIGITS: usize = 15;

    /// Fails at the first number that is not held exactly. What is no JSON is found by who reads the text.
    pub fn is_held(text: &str) -> serde_json::Result<()> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at = match byte {
                b'"' => string_end(bytes, at.saturating_add(1)),
                b'-' | b'0'..=b'9' => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let belongs = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
                    let end = at.saturating_add(rest.iter().position(|byte| !belongs(byte)).unwrap_or(rest.len()));
                    if text.get(at..end).is_some_and(|word| is_number(word) && !is_exact(word)) {
                        return Err(fault(text, at));
                    }
                    end
                }
                _ => at.saturating_add(1),
            };
        }
        Ok(())
    }

    /// Behind the string whose content begins here.
    fn string_end(bytes: &[u8], mut at: usize) -> usize {
        while let Some(byte) = bytes.get(at) {
            at = at.saturating_add(1);
            match byte {
                b'"' => return at,
                b'\\' => at = at.saturating_add(1),
                _ => {}
            }
        }
        at
    }

    /// The sentence, in the form from which serde_json takes the line and the column.
    fn fault(text: &str, at: usize) -> serde_json::Error {
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count().saturating_add(1);
        let column = before.rsplit('\n').next().unwrap_or_default().len().saturating_add(1);
        serde_json::Error::custom(format!("{INEXACT} at line {line} column {column}"))
    }

    /// Whether `i64`, `u64` or `f64` gives a number back with the value that is written.
    pub fn is_exact(word: &str) -> bool {
        if word.len() <= MAX_PLAIN_DIGITS && !word.contains(['e', 'E']) {
            return true;
        }
        if word.parse::<i64>().is_ok() || word.parse::<u64>().is_ok() {
            return true;
        }
        // `f64` is written with the fewest digits that give it back.
        let Ok(float) = word.parse::<f64>() else { return false };
        float.is_finite()
            && DecimalValue::of(word).is_some_and(|value| Some(value) == DecimalValue::of(&format!("{float:e}")))
    }

    /// What a number is, whatever it is written like: its digits without zeros around, and the power of ten.
    #[derive(PartialEq, Eq)]
    struct DecimalValue {
        is_negative: bool,
        digits: String,
        power: i64,
    }

    impl DecimalValue {
        fn of(word: &str) -> Option<Self> {
            let (is_negative, word) = word.strip_prefix('-').map_or((false, word), |word| (true, word));
            let (mantissa, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let all = format!("{whole}{fraction}");
            let digits = all.trim_start_matches('0');
            if digits.is_empty() {
                return Some(Self { is_negative: false, digits: String::new(), power: 0 });
            }
            let kept = digits.trim_end_matches('0');
            let (cut, behind) = (i64::try_from(digits.len() - kept.len()).ok()?, i64::try_from(fraction.len()).ok()?);
            let power = exponent.parse::<i64>().ok()?.checked_add(cut)?.checked_sub(behind)?;
            Some(Self { is_negative, digits: kept.to_owned(), power })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HELD: &[&str] = &[
        "0",
        "-0",
        "-0.0",
        "7",
        "1.50",
        "0.1",
        "-9223372036854775808",
        "18446744073709551615",
        "0.30000000000000004",
        "52.520006599999995",
        "1e3",
        "1E+22",
        "1.7976931348623157e308",
        "5e-324",
        "100000000000000000000",
        "0e999",
        "1.000",
        "1234567890123456e-3",
    ];
    const NOT_HELD: &[&str] = &[
        "12345678901234567890123",
        "18446744073709551617",
        "-9223372036854775809",
        "0.1000000000000000055511151231257827",
        "1e400",
        "-1E400",
        "1e-400",
        "1e99999999999999999999",
        "12345678901234567.89",
        "12345678901234567e-3",
        "9007199254740993.0",
    ];

    #[test]
    fn a_number_is_held_exactly_or_refused() {
        for held in HELD {
            assert!(inexact::is_exact(held), "{held}");
        }
        for refused in NOT_HELD {
            assert!(!inexact::is_exact(refused), "{refused}");
        }
    }

    #[test]
    fn the_first_number_that_is_not_held_is_named_by_its_place() {
        let text = "{\"a\": \"12345678901234567890123 \\\" 1e400\",\n \"b\": [1, 12345678901234567890123]}";
        let error = inexact::is_held(text).unwrap_err();
        assert_eq!((error.line(), error.column()), (2, 11));
        assert_eq!(error.to_string(), format!("{INEXACT} at line 2 column 11"));
        for other in ["", "{", "\"", "\"\\", "[1", "nothing 12a", "-", "1.2.3", "00000000000000000000000001"] {
            assert!(inexact::is_held(other).is_ok(), "{other}");
        }
    }

    #[test]
    fn the_gate_of_this_build_reads_no_number_otherwise_than_it_is_written() {
        for text in HELD.iter().chain(NOT_HELD) {
            let value = read::<serde_json::Value>(text).ok().map(|value| value.to_string());
            assert_eq!(value.is_some(), number(text).is_some(), "{text}");
            if cfg!(feature = "exact-numbers") {
                assert!(value.is_some(), "{text}");
            } else {
                assert_eq!(value.is_some(), HELD.contains(text), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_programs_write_of_their_numbers_is_held(real in any::<f64>(), whole in any::<i64>(), natural in any::<u64>()) {
            prop_assume!(real.is_finite());
            for text in [serde_json::to_string(&real).unwrap(), format!("{real:e}"), whole.to_string(), natural.to_string()] {
                prop_assert!(inexact::is_exact(&text));
                let list = format!("[{text}]");
                prop_assert!(inexact::is_held(&list).is_ok());
            }
            let read: f64 = read(&serde_json::to_string(&real).unwrap()).unwrap();
            prop_assert_eq!(read.to_bits(), real.to_bits());
        }

        #[test]
        fn whole_numbers_beyond_all_types_are_refused_unless_they_are_round(whole in (u128::from(u64::MAX) + 1)..u128::MAX) {
            // Seventeen digits give every float back, so one with more of them is none.
            let text = whole.to_string();
            let is_long = text.trim_end_matches('0').len() > 17;
            prop_assert!(!(is_long && inexact::is_exact(&text)));
        }
    }
}
