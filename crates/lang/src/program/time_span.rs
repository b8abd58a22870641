//! Spans of time as they are written: `90s`, `30m`, `-2h`, `30d`.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

/// How a span is written, in a sentence.
pub const SPAN_HELP: &str =
    "a number with `s`, `m`, `h` or `d`, with a `-` for back in time: `90s`, `30m`, `-2h`, `-30d`";

/// How a span that is not back in time is written, in a sentence.
pub const DURATION_HELP: &str = "a number with `s`, `m`, `h` or `d`: `30s`, `90m`, `2h`, `7d`";

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

/// The longest span, in days: a hundred years.
pub const MAX_DAYS: i64 = 100 * 366;
const SECONDS_OF_DAY: i64 = 24 * 60 * 60;

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSpan {
    /// Seconds of the clock.
    Seconds(i64),
    /// Days of the calendar.
    Days(i64),
}

impl TimeSpan {
    /// The span that a text writes.
    pub fn read(text: &str) -> Option<Self> {
        let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (number, unit) = rest.split_at_checked(rest.len().checked_sub(1)?)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = number.parse().ok().filter(|_| is_number)?;
        let factor = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => return (number <= MAX_DAYS).then_some(Self::Days(sign * number)),
            _ => return None,
        };
        let seconds = number.checked_mul(factor).filter(|seconds| *seconds <= MAX_DAYS * SECONDS_OF_DAY)?;
        Some(Self::Seconds(sign * seconds))
    }

    /// Whether a text is written as a span is, and says more than a hundred years.
    pub fn is_too_long(text: &str) -> bool {
        let rest = text.strip_prefix('-').unwrap_or(text);
        let number = rest.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && Self::read(text).is_none()
    }

    /// The same of a text that writes no span back in time.
    pub fn read_forward(text: &str) -> Option<Self> {
        Self::read(text).filter(|_| !text.starts_with('-'))
    }

    /// Its seconds, where a day has 24 hours.
    pub fn seconds(self) -> i64 {
        match self {
            Self::Seconds(seconds) => seconds,
            Self::Days(days) => days.saturating_mul(SECONDS_OF_DAY),
        }
    }

    /// The duration that a text most likely means: `2 hours`, `PT30M`, `1w`.
    pub fn meant(text: &str) -> Option<String> {
        let plain = text.trim().trim_start_matches("PT").trim_start_matches('P');
        let digits = plain.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = plain.split_at_checked(digits)?;
        let unit = unit.trim().to_owned();
        let letter = SPELLINGS.iter().find(|(spelling, _)| spelling.eq_ignore_ascii_case(&unit))?.1;
        // `P1M` is a month, and `PT1M` a minute; `1M` alone may be either.
        if unit == "M" && !text.trim().starts_with("PT") {
            return None;
        }
        if text.trim().starts_with('P') && !text.trim().starts_with("PT") && letter != "d" {
            return None;
        }
        let written = match letter {
            "w" => format!("{}d", number.parse::<u64>().ok()?.checked_mul(7)?),
            _ => format!("{number}{letter}"),
        };
        (written != text && Self::read(&written).is_some()).then_some(written)
    }

    /// The moment that is this much after another one; days are those of the zone, whose length may differ. None when it is
    /// beyond all times.
    pub fn after(self, moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Seconds(seconds) => moment.checked_add(SignedDuration::from_secs(seconds)).ok(),
            Self::Days(days) => {
                let days = Span::new().try_days(days).ok()?;
                moment.to_zoned(zone.clone()).checked_add(days).ok().map(|zoned| zoned.timestamp())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::program::timetable::zone;

    #[test]
    fn spans_are_read_as_they_are_written() {
        for (text, span) in [
            ("90s", TimeSpan::Seconds(90)),
            ("-30m", TimeSpan::Seconds(-1_800)),
            ("0h", TimeSpan::Seconds(0)),
            ("-30d", TimeSpan::Days(-30)),
            ("36600d", TimeSpan::Days(36_600)),
        ] {
            assert_eq!(TimeSpan::read(text), Some(span), "{text}");
        }
        for text in [
            "",
            "d",
            "-d",
            "30",
            "+30d",
            "30 d",
            " 30d",
            "1.5h",
            "1w",
            "30D",
            "--1d",
            "36601d",
            "99999999999999999999s",
            "1h30m",
            "ä",
        ] {
            assert_eq!(TimeSpan::read(text), None, "{text:?}");
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
            assert_eq!(TimeSpan::meant(text).as_deref(), suggestion, "{text}");
            assert!(suggestion.is_none() || TimeSpan::read(text).is_none());
        }
        assert_eq!(
            (TimeSpan::read_forward("-2h"), TimeSpan::read_forward("2h")),
            (None, Some(TimeSpan::Seconds(7_200)))
        );
        assert_eq!(TimeSpan::read("-2d").map(TimeSpan::seconds), Some(-172_800));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(text in ".{0,12}") {
            let _ = (TimeSpan::read(&text), TimeSpan::meant(&text));
        }
    }

    #[test]
    fn a_day_is_one_of_the_calendar_and_an_hour_is_one_of_the_clock() {
        let zone = zone("Europe/Berlin").unwrap();
        // The night of 2026-03-29 has an hour less.
        let evening: Timestamp = "2026-03-28T20:00:00Z".parse().unwrap();
        let after = |span: &str| TimeSpan::read(span).unwrap().after(evening, &zone).unwrap().to_string();
        assert_eq!(after("1d"), "2026-03-29T19:00:00Z");
        assert_eq!(after("24h"), "2026-03-29T20:00:00Z");
        assert_eq!(after("-1d"), "2026-03-27T20:00:00Z");
        let first: Timestamp = "-009900-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(TimeSpan::Days(-36_600).after(first, &zone), None, "no such moment");
    }
}
