//! What a text is beside a text: a number, a boolean or a time, by one rule for conditions, matchers and the inputs of steps.
//! Nothing is rounded or guessed, and a text with blanks around is none of them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Number;

use crate::policy::json_text;
use crate::syntax::decimal::Decimal;

/// The number that a text is the JSON of, unless this build can't hold it.
pub fn number_of(text: &str) -> Option<Number> {
    json_text::number(text)
}

/// The decimal that a text is the JSON of, with all of its digits.
pub(crate) fn decimal_of(text: &str) -> Option<Decimal> {
    json_text::is_number(text).then(|| Decimal::read(text)).flatten()
}

/// The boolean that a text is the JSON of.
pub fn boolean_of(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The day that a text is the RFC 3339 date of.
pub(crate) fn date_of(text: &str) -> Option<Date> {
    let is_date = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    text.parse().ok().filter(|_| is_date)
}

/// The moment that a text is the RFC 3339 date and time of, or that a date alone begins at in a time zone. The last day that a date
/// can name, 9999-12-31, begins after the last moment that is counted in some zones: it is that moment then, since people write it
/// for what has no end.
pub fn time_of(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Some(date) = date_of(text) {
        return Some(date.to_zoned(zone.clone()).map_or(Timestamp::MAX, |zoned| zoned.timestamp()));
    }
    let (date, clock) = text.split_at_checked(10)?;
    date_of(date)?;
    is_clock(clock.strip_prefix(['T', 't'])?).then(|| text.parse().ok()).flatten()
}

/// Whether a text is the time of an RFC 3339 date and time, with its offset: `10:30:00.5+01:00`.
fn is_clock(text: &str) -> bool {
    let two = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((time, rest)) = text.split_at_checked(8) else { return false };
    let mut parts = time.split(':');
    // A leap second has no place of its own on the time line: it would be taken for the second before it.
    let (hours, minutes, seconds) = (parts.next(), parts.next(), parts.next());
    let is_time = [hours, minutes, seconds].into_iter().all(|part| part.is_some_and(two)) && parts.next().is_none();
    let digits = rest.strip_prefix('.').map(|rest| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    let has_fraction = digits.is_some_and(|digits| digits.len() + 1 < rest.len());
    let offset = digits.unwrap_or(rest);
    let is_offset = match offset.strip_prefix(['+', '-']) {
        Some(offset) => offset
            .split_once(':')
            .is_some_and(|(hours, minutes)| two(hours) && hours < "24" && two(minutes) && minutes < "60"),
        None => matches!(offset, "Z" | "z"),
    };
    is_time && seconds.is_some_and(|seconds| seconds < "60") && (has_fraction || digits.is_none()) && is_offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::timetable::zone;

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_number_is_exactly_its_json() {
        for text in ["7", "-7", "0", "-0", "1.50", "1e3", "1E+400", "12345678901234567890123"] {
            assert_eq!(number_of(text).map(|number| number.to_string().len() >= text.len() - 1), Some(true), "{text}");
        }
        for text in [
            "", " 7", "7 ", "7\n", "\t7", "+7", "007", "7.", ".7", "1,5", "1'000", "0x1", "NaN", "7a", "\"7\"", "٧",
            "\u{a0}7",
        ] {
            assert_eq!(number_of(text), None, "{text:?}");
        }
        assert_eq!([boolean_of("true"), boolean_of("True"), boolean_of(" true")], [Some(true), None, None]);
    }

    #[test]
    fn a_time_is_one_of_rfc_3339_and_a_date_alone_is_its_midnight() {
        let berlin = zone("Europe/Berlin").unwrap();
        let read = |text: &str| time_of(text, &berlin).map(|time| time.to_string());
        for (text, moment) in [
            ("2026-03-29", "2026-03-28T23:00:00Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-07-01T10:00:00Z", "2026-07-01T10:00:00Z"),
            ("2026-07-01t10:00:00z", "2026-07-01T10:00:00Z"),
            ("2026-07-01T10:00:00.25+02:00", "2026-07-01T08:00:00.25Z"),
            ("2024-02-29T00:00:00-05:30", "2024-02-29T05:30:00Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(moment), "{text}");
        }
        for text in [
            "",
            "2026-02-29",
            "2026-13-01",
            "2026-1-5",
            "31.12.2026",
            "12/31/2026",
            "20261231",
            "2026-W10-1",
            " 2026-07-01",
            "2026-07-01 ",
            "2026-07-01 10:00:00Z",
            "2026-07-01T10:00Z",
            "2026-07-01T10:00:00",
            "2026-07-01T10:00:00.Z",
            "2026-07-01T24:00:00Z",
            "2026-07-01T10:00:60Z",
            "2026-07-01T10:00:00+0200",
            "2026-07-01T10:00:00[Europe/Berlin]",
            "2026-07-01T10:00:00Z[UTC]",
            "2026-07-01T10:00:00+02",
            "2026-07-01T10:00:00+24:00",
            "2026-07-01T10:00:00+25:59",
            "-002026-07-01",
            "2026-07-0١",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_first_and_the_last_day_that_a_date_names_are_times() {
        for name in ["UTC", "Europe/Berlin", "Pacific/Kiritimati", "America/New_York"] {
            let zone = zone(name).unwrap();
            let [first, other, last] =
                ["0000-01-01", "9999-12-30", "9999-12-31"].map(|text| time_of(text, &zone).unwrap());
            assert!(first < other && other < last, "{name}");
        }
        assert_eq!(time_of("9999-12-31T23:00:00Z", &TimeZone::UTC), None);
    }

    #[test]
    fn a_midnight_that_a_zone_skips_is_the_first_moment_of_the_day() {
        let zone = zone("America/Sao_Paulo").unwrap();
        assert_eq!(time_of("2018-11-04", &zone).unwrap().to_string(), "2018-11-04T03:00:00Z");
    }
}
