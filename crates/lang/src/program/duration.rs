//! Durations as documents write them: `30s`, `90m`, `2h`, `7d`.

/// The units, each with its milliseconds.
const UNITS: [(&str, u64); 4] = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", DAY_MS)];

/// A day of 24 hours in milliseconds.
pub const DAY_MS: u64 = 86_400_000;

/// The longest duration in milliseconds: a hundred years.
pub const MAX_MS: u64 = 100 * 366 * DAY_MS;

/// The forms of a duration, for messages.
pub const FORMS: &str = "a number with `s`, `m`, `h` or `d`: `30s`, `90m`, `2h`, `7d`";

/// The units in the spellings that people use, with their letter.
const SPELLINGS: [(&str, &str); 25] = [
    ("seconds", "s"),
    ("second", "s"),
    ("secs", "s"),
    ("sec", "s"),
    ("S", "s"),
    ("minutes", "m"),
    ("minute", "m"),
    ("mins", "m"),
    ("min", "m"),
    ("M", "m"),
    ("hours", "h"),
    ("hour", "h"),
    ("hrs", "h"),
    ("hr", "h"),
    ("H", "h"),
    ("days", "d"),
    ("day", "d"),
    ("D", "d"),
    ("s", "s"),
    ("m", "m"),
    ("h", "h"),
    ("d", "d"),
    ("weeks", "w"),
    ("week", "w"),
    ("w", "w"),
];

/// The milliseconds of a duration; none for a text that is none, or a longer one than [`MAX_MS`].
pub fn milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let factor = UNITS.iter().find(|(letter, _)| *letter == unit)?.1;
    let number: u64 = number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))?;
    number.checked_mul(factor).filter(|milliseconds| *milliseconds <= MAX_MS)
}

/// The duration that a text most likely means: `2 hours`, `PT30M`, `1w`.
pub fn meant(text: &str) -> Option<String> {
    let plain = text.trim().trim_start_matches("PT").trim_start_matches('P');
    let digits = plain.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = plain.split_at_checked(digits)?;
    let unit = unit.trim().to_owned();
    let letter = SPELLINGS.iter().find(|(spelling, _)| spelling.eq_ignore_ascii_case(&unit))?.1;
    // `P1M` is a month, and `PT1M` a minute.
    if text.trim().starts_with('P') && !text.trim().starts_with("PT") && letter != "d" {
        return None;
    }
    let written = match letter {
        "w" => format!("{}d", number.parse::<u64>().ok()?.checked_mul(7)?),
        _ => format!("{number}{letter}"),
    };
    (written != text && milliseconds(&written).is_some()).then_some(written)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_with_a_unit() {
        for (text, milliseconds_of) in [
            ("0s", Some(0)),
            ("30s", Some(30_000)),
            ("90m", Some(5_400_000)),
            ("2h", Some(7_200_000)),
            ("7d", Some(604_800_000)),
            ("36600d", Some(MAX_MS)),
            ("36601d", None),
            ("99999999999999999999d", None),
            ("1.5h", None),
            ("-2h", None),
            ("+2h", None),
            (" 2h", None),
            ("2 h", None),
            ("2", None),
            ("h", None),
            ("2H", None),
            ("2w", None),
            ("2ms", None),
            ("", None),
            ("２h", None),
        ] {
            assert_eq!(milliseconds(text), milliseconds_of, "{text}");
        }
    }

    #[test]
    fn what_other_products_write_is_understood_in_a_suggestion_only() {
        for (text, suggestion) in [
            ("2 hours", Some("2h")),
            ("30 Minutes", Some("30m")),
            ("PT30M", Some("30m")),
            ("PT45S", Some("45s")),
            ("P7D", Some("7d")),
            ("P1M", None),
            ("1w", Some("7d")),
            ("2h", None),
            ("soon", None),
            ("1.5 hours", None),
            ("99999999999999999999 days", None),
        ] {
            assert_eq!(meant(text).as_deref(), suggestion, "{text}");
            assert!(suggestion.is_none() || milliseconds(text).is_none());
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(text in ".{0,12}") {
            let _ = (milliseconds(&text), meant(&text));
        }
    }
}
