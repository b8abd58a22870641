//! Waits between attempts: full jitter, or what the server asked for.

use std::time::Duration;

use crate::language::react::Retry;

/// The longest wait that a server can ask for; a longer one is cut to it.
pub const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// How long to wait after `failures` failed attempts (1 and up).
///
/// Without a word of the server it is a random time from 0 to `base_ms`, doubled for each failure
/// after the first and never over `max_ms`: clients that failed together must not come back together.
/// What the server `asked` for is obeyed up to [`LONGEST_ASKED`].
pub fn delay(retry: &Retry, failures: u32, asked: Option<Duration>) -> Duration {
    if let Some(asked) = asked {
        return asked.min(LONGEST_ASKED);
    }
    let doubled = 1u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    let bound = retry.base_ms.saturating_mul(doubled).min(retry.max_ms);
    Duration::from_millis(fastrand::u64(0..=bound))
}

/// The wait that an answer's headers ask for: `retry-after-ms`, or `retry-after` in seconds or as
/// an HTTP date. `header` looks a name up (it is asked in small letters); `now_ms` is the wall clock.
pub fn asked<'h>(header: impl Fn(&str) -> Option<&'h str>, now_ms: i64) -> Option<Duration> {
    let exact = header("retry-after-ms").and_then(|text| text.trim().parse::<u64>().ok());
    if let Some(milliseconds) = exact {
        return Some(Duration::from_millis(milliseconds));
    }
    let text = header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let wait = until.as_millisecond().saturating_sub(now_ms);
    Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header<'h>(name: &'static str, value: &'h str) -> impl Fn(&str) -> Option<&'h str> {
        move |asked| (asked == name).then_some(value)
    }

    #[test]
    fn jitter_stays_within_the_doubled_base_and_the_maximum() {
        let retry = Retry { attempts: 9, base_ms: 10, max_ms: 25 };
        for (failures, bound) in [(1, 10), (2, 20), (3, 25), (200, 25)] {
            let longest = (0..200).map(|_| delay(&retry, failures, None)).max().unwrap();
            assert!(longest <= Duration::from_millis(bound), "{failures}: {longest:?}");
        }
        assert_eq!(delay(&Retry { attempts: 2, base_ms: 0, max_ms: 0 }, 1, None), Duration::ZERO);
    }

    #[test]
    fn what_the_server_asks_for_is_obeyed_up_to_five_minutes() {
        let retry = Retry { attempts: 2, base_ms: 1, max_ms: 1 };
        assert_eq!(delay(&retry, 1, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(delay(&retry, 1, Some(Duration::from_secs(7200))), LONGEST_ASKED);
    }

    #[test]
    fn retry_after_is_read_as_seconds_milliseconds_and_date() {
        let date_ms = 784_111_777_000;
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(asked(header("retry-after", "2"), 0), Some(Duration::from_secs(2)));
        assert_eq!(asked(header("retry-after", " 0.5 "), 0), Some(Duration::from_millis(500)));
        assert_eq!(asked(header("retry-after-ms", "40"), 0), Some(Duration::from_millis(40)));
        assert_eq!(asked(header("retry-after", date), date_ms - 3000), Some(Duration::from_secs(3)));
        assert_eq!(asked(header("retry-after", date), date_ms + 3000), Some(Duration::ZERO));
    }

    #[test]
    fn a_retry_after_that_makes_no_sense_is_as_none() {
        for text in ["", "soon", "-1", "NaN", "1e99"] {
            assert_eq!(asked(header("retry-after", text), 0), None, "{text}");
        }
    }
}
