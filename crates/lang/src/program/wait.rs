//! A step that waits for a time: how long, or until when.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::exact_text::time_of;
use super::reference::Field;
use super::time_span::{DURATION_HELP, TimeSpan};
use crate::language::wait::Wait;

/// The longest wait in seconds: 366 days of 24 hours.
const MAX_WAIT_SECONDS: i64 = 366 * 24 * 60 * 60;
/// The longest wait in milliseconds.
pub const MAX_WAIT_MS: u64 = MAX_WAIT_SECONDS.cast_unsigned() * 1_000;

/// A step that waits for a time.
#[derive(Debug)]
pub struct WaitStep {
    /// What says until when.
    pub field: AwaitedField,
}

/// What says until when a step waits.
#[derive(Debug)]
pub enum AwaitedField {
    /// A duration, from the moment at which the step begins.
    For(Field),
    /// A time.
    Until(Field),
}

impl WaitStep {
    /// Compiles what is written; none when it has a fault, which is reported before.
    pub fn compile(written: &Wait) -> Option<Self> {
        let compile = |text: &String| Field::compile(&Value::from(text.as_str())).ok();
        let field = match (&written.duration, &written.until) {
            (Some(text), None) => AwaitedField::For(compile(text)?),
            (None, Some(text)) => AwaitedField::Until(compile(text)?),
            _ => return None,
        };
        Some(Self { field })
    }

    /// The field, whichever it is.
    pub fn value(&self) -> &Field {
        match &self.field {
            AwaitedField::For(field) | AwaitedField::Until(field) => field,
        }
    }

    /// Until when it waits, by the value of its field, in milliseconds since 1970. It may be past. A date alone is its midnight in the
    /// zone, and days are those of its calendar.
    ///
    /// # Errors
    /// Why the value says no time, in a sentence without a final stop.
    pub fn until_ms(&self, value: &Value, now_ms: i64, zone: &TimeZone) -> Result<i64, String> {
        match &self.field {
            AwaitedField::For(_) => {
                let text = value
                    .as_str()
                    .ok_or_else(|| format!("its `for` is {}, and no duration: {DURATION_HELP}", shown(value)))?;
                let until = Timestamp::from_millisecond(now_ms).ok().zip(Some(span(text)?));
                let until = until.and_then(|(now, span)| span.after(now, zone));
                until
                    .map(Timestamp::as_millisecond)
                    .ok_or_else(|| format!("its `for` is {}, beyond all times", shown(value)))
            }
            AwaitedField::Until(_) => {
                let time = value.as_str().and_then(|text| moment(text, zone)).map(Timestamp::as_millisecond);
                let until_ms = time.ok_or_else(|| format!("its `until` is {}, and no time: {TIMES}", shown(value)))?;
                if until_ms.saturating_sub(now_ms) > MAX_WAIT_SECONDS.saturating_mul(1_000) {
                    return Err(format!("its `until` is {}, and a step waits for at most 366 days", shown(value)));
                }
                Ok(until_ms)
            }
        }
    }
}

/// The forms of a time, for messages.
pub const TIMES: &str = "a date or a date-time of RFC 3339: `2026-12-31`, `2026-12-31T09:30:00Z`";

/// The span that a step may wait.
///
/// # Errors
/// Why it may not, in a sentence without a final stop.
pub fn span(text: &str) -> Result<TimeSpan, String> {
    let shown = || shown(&Value::from(text));
    let is_too_long = |span: TimeSpan| span.seconds() > MAX_WAIT_SECONDS;
    match TimeSpan::read_forward(text) {
        Some(span) if !is_too_long(span) => Ok(span),
        None if text.starts_with('-') || !TimeSpan::is_too_long(text) => {
            Err(format!("its `for` is {}, and no duration: {DURATION_HELP}", shown()))
        }
        _ => Err(format!("its `for` is {}, and a step waits for at most 366 days", shown())),
    }
}

/// The moment of an RFC 3339 date-time, or of the midnight of a date in a time zone. A blank may be in the place of the `T`.
pub fn moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    time_of(text, zone).or_else(|| {
        let (date, clock) = text.split_once(' ')?;
        time_of(&format!("{date}T{clock}"), zone)
    })
}

/// A value in a message: the first of a long one.
fn shown(value: &Value) -> String {
    const MAX_SHOWN_CHARS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn step(written: &Value) -> WaitStep {
        WaitStep::compile(&serde_json::from_value(written.clone()).unwrap()).unwrap()
    }

    #[test]
    fn a_time_is_a_date_or_a_date_time_with_its_zone() {
        for (text, milliseconds) in [
            ("1970-01-02", Some(86_400_000)),
            ("1970-01-02T00:00:01Z", Some(86_401_000)),
            ("1970-01-02T00:00:01.5Z", Some(86_401_500)),
            ("1970-01-02T01:00:00+01:00", Some(86_400_000)),
            ("1970-01-02 00:00:00z", Some(86_400_000)),
            ("1970-01-02  00:00:00z", None),
            ("1970-01-02T23:59:60Z", None),
            ("1970-01-02T00:00:00", None),
            ("1970-01-02T00:00Z", None),
            ("1970-01-02T00:00:00.Z", None),
            ("1970-01-02T00:00:00+0100", None),
            ("1970-01-02T00:00:00[UTC]", None),
            ("02.01.1970", None),
            ("1970-13-02", None),
            ("1970-02-30", None),
            (" 1970-01-02", None),
            ("19700102", None),
            ("0", None),
            ("", None),
        ] {
            let read = moment(text, &TimeZone::UTC).map(Timestamp::as_millisecond);
            assert_eq!(read, milliseconds, "{text}");
        }
    }

    #[test]
    fn a_wait_ends_after_its_duration_or_at_its_time_and_names_a_value_that_is_neither() {
        let (long, until) = (step(&json!({ "for": "@input.pause" })), step(&json!({ "until": "@input.due" })));
        assert_eq!(long.until_ms(&json!("2h"), 1_000, &TimeZone::UTC), Ok(7_201_000));
        assert_eq!(long.until_ms(&json!("366d"), 0, &TimeZone::UTC), Ok(366 * 86_400_000));
        assert_eq!(
            until.until_ms(&json!("1970-01-02"), 90_000_000, &TimeZone::UTC),
            Ok(86_400_000),
            "what is past is a time"
        );
        for (step, value, why) in [
            (&long, json!("367d"), "its `for` is \"367d\", and a step waits for at most 366 days"),
            (&long, json!(7200), "its `for` is 7200, and no duration"),
            (&long, json!("2 hours"), "its `for` is \"2 hours\", and no duration"),
            (&until, json!("tomorrow"), "its `until` is \"tomorrow\", and no time"),
            (&until, json!(null), "its `until` is null, and no time"),
            (&until, json!("1971-01-03"), "its `until` is \"1971-01-03\", and a step waits for at most 366 days"),
        ] {
            let refused = step.until_ms(&value, 0, &TimeZone::UTC).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
        let long_text = until.until_ms(&json!("x".repeat(10_000)), 0, &TimeZone::UTC).unwrap_err();
        assert!(long_text.len() < 300, "{long_text}");
    }

    #[test]
    fn a_date_alone_and_days_are_those_of_the_zone() {
        let zone = crate::program::timetable::zone("Europe/Berlin").unwrap();
        let (long, until) = (step(&json!({ "for": "@input.pause" })), step(&json!({ "until": "@input.due" })));
        let ms = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        // The night of 2026-03-29 has an hour less.
        let evening = ms("2026-03-28T20:00:00Z");
        assert_eq!(until.until_ms(&json!("2026-03-30"), evening, &zone), Ok(ms("2026-03-29T22:00:00Z")));
        assert_eq!(until.until_ms(&json!("2026-03-30T00:00:00Z"), evening, &zone), Ok(ms("2026-03-30T00:00:00Z")));
        assert_eq!(long.until_ms(&json!("1d"), evening, &zone), Ok(ms("2026-03-29T19:00:00Z")));
        assert_eq!(long.until_ms(&json!("24h"), evening, &zone), Ok(ms("2026-03-29T20:00:00Z")));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail(text in ".{0,30}", now_ms in any::<i64>()) {
            for name in ["for", "until"] {
                let _ = step(&json!({ name: "@input.x" })).until_ms(&json!(text), now_ms, &TimeZone::UTC);
            }
        }
    }
}
