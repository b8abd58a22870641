//! Retries: how long a model is asked again, how often a tool is called again, and the waits between the attempts (full
//! jitter, or what the server asked for).

use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::clock;
use super::tool::CallOutcome;
use loopctl_engine::event::{MAY_HAVE_HAPPENED, ToolFault, ToolResult};
use loopctl_lang::language::action::OnUncertain;
use loopctl_lang::language::react::Retry;
use loopctl_lang::language::retry::CallRetry;
use loopctl_lang::program::Tool;

/// How long a model is retried by default, in milliseconds.
pub const FOR_MS: u64 = 120_000;
/// The most attempts of one call to one model when time alone bounds them: each is kept in the journal.
const MOST_ATTEMPTS: u32 = 10_000;
/// A wait that a server asks for and that is shorter costs an attempt: it would be asked for again and again.
const LEAST_HELD: Duration = Duration::from_millis(100);

/// The rule where something else can be done than to wait: another model is asked, or the model of the run reads that its
/// `llm` action failed. A few attempts, unless the rule says otherwise.
pub fn brief(retry: &Retry) -> Retry {
    let attempts = retry.attempts.or(retry.for_ms.is_none().then_some(Retry::FEW_ATTEMPTS));
    Retry { attempts, ..retry.clone() }
}

/// The failed attempts of one call to one model.
#[derive(Debug, Default)]
pub struct Failures {
    count: u32,
    /// Those after which the server asked for a wait.
    held: u32,
    first_at: Option<Instant>,
}

impl Failures {
    /// Counts a failure that may pass. Returns the wait before the next attempt; none when the retries are spent.
    /// `asked`: the wait that the server asked for.
    pub fn next_delay(&mut self, retry: &Retry, asked: Option<Duration>) -> Option<Duration> {
        self.count = self.count.saturating_add(1);
        let first_at = *self.first_at.get_or_insert_with(clock::instant);
        let for_ms = retry.for_ms.or(retry.attempts.is_none().then_some(FOR_MS));
        // The last wait ends when the time does, and not after it.
        let left_ms = for_ms.map_or(u64::MAX, |for_ms| for_ms.saturating_sub(clock::elapsed_ms(first_at)));
        let more = left_ms > 0 && self.count < retry.attempts.unwrap_or(MOST_ATTEMPTS);
        more.then(|| delay(&Backoff::from(retry), self.count, asked).min(Duration::from_millis(left_ms)))
    }

    /// How long a server that wants no request is waited for from now on.
    pub fn patience(&self, retry: &Retry) -> Duration {
        let time = Duration::from_millis(retry.for_ms.unwrap_or(FOR_MS));
        time.saturating_sub(self.first_at.map_or(Duration::ZERO, clock::elapsed))
    }

    /// The wait before the next attempt after the server had too many requests and asked for this wait. It costs no attempt while the time
    /// of the retries lasts; none when that is over before.
    pub fn held_delay(&mut self, retry: &Retry, asked: Duration) -> Option<Duration> {
        self.first_at.get_or_insert_with(clock::instant);
        let left = self.patience(retry);
        self.held = self.held.saturating_add(1);
        let more = self.count.saturating_add(self.held) < MOST_ATTEMPTS;
        (more && asked >= LEAST_HELD && asked <= left).then_some(asked)
    }
}

/// A failure of a call after which the same call may succeed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transient {
    /// The status of the server's answer; none when there was no answer.
    pub status: Option<u16>,
    /// The wait that the server asked for.
    pub after: Option<Duration>,
}

impl Transient {
    /// Whether the same call may succeed unchanged: nothing answered, or the server says that it could not answer now. A
    /// rule of the call can name other statuses.
    pub fn may_pass(self, rule: Option<&CallRetry>) -> bool {
        self.status
            .is_none_or(|status| CallRetry::default().is_on(status) || rule.is_some_and(|rule| rule.is_on(status)))
    }
}

/// The wait before a tool is called again, after `failures` failed attempts (1 and up); none when it is not.
pub fn call_delay(retry: &CallRetry, failures: u32, failure: Transient) -> Option<Duration> {
    let more = failures < retry.attempts && failure.status.is_none_or(|status| retry.is_on(status));
    more.then(|| delay(&Backoff::from(retry), failures, failure.after))
}

/// What follows an attempt at a call.
pub enum NextAttempt {
    /// The call ended.
    None(ToolResult),
    /// It is made again after a wait.
    After(ToolFault, Duration),
    /// Its answer was lost, and a human says whether it happened.
    Asked(ToolFault),
}

/// What follows an attempt at a call of a tool, after this number of failed ones (1 and up, this one too). One whose answer was lost
/// follows the `on_uncertain` of the document: it is made again once, or a human is asked. Where the document wants neither, who
/// made the call reads that it may have happened.
pub fn next_attempt(tool: &Tool, failures: u32, outcome: CallOutcome) -> NextAttempt {
    let CallOutcome { result, transient, is_lost, .. } = outcome;
    let mut fault = match result {
        ToolResult::Failed(fault) => fault,
        result => return NextAttempt::None(result),
    };
    let rule = tool.retry.as_ref().zip(transient);
    if let Some(delay) = rule.and_then(|(rule, failure)| call_delay(rule, failures, failure)) {
        return NextAttempt::After(fault, delay);
    }
    if is_lost {
        match tool.after_lost_answer() {
            OnUncertain::Pause => return NextAttempt::Asked(fault),
            OnUncertain::Retry if failures == 1 => return NextAttempt::After(fault, Duration::ZERO),
            OnUncertain::Retry | OnUncertain::Fail => fault.class.push_str(MAY_HAVE_HAPPENED),
        }
    }
    NextAttempt::None(ToolResult::Failed(fault))
}

/// The longest wait that the server of a model can ask for; a longer one is cut to it.
pub const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// The bounds of the waits between attempts.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// The first wait in milliseconds, before jitter.
    base_ms: u64,
    /// The longest wait in milliseconds.
    max_ms: u64,
    /// The longest wait that a server can ask for.
    longest_asked: Duration,
}

impl From<&Retry> for Backoff {
    fn from(retry: &Retry) -> Self {
        Self { base_ms: retry.base_ms, max_ms: retry.max_ms, longest_asked: LONGEST_ASKED }
    }
}

impl From<&CallRetry> for Backoff {
    fn from(retry: &CallRetry) -> Self {
        Self { base_ms: retry.base_ms, max_ms: retry.max_ms, longest_asked: Duration::from_millis(retry.max_ms) }
    }
}

/// How long to wait after `failures` failed attempts (1 and up).
///
/// Unless the server asked for a wait, it is a random time from 0 to `base_ms`, doubled for each failure after
/// the first and never over `max_ms`: clients that failed together must not come back together. A wait that the
/// server `asked` for is respected up to the longest one; one of no time only twice, or a server that repeats it would be
/// asked without end.
pub fn delay(backoff: &Backoff, failures: u32, asked: Option<Duration>) -> Duration {
    if let Some(asked) = asked.filter(|asked| !asked.is_zero() || failures <= 2) {
        return asked.min(backoff.longest_asked);
    }
    let doubled = 1u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    let bound = backoff.base_ms.saturating_mul(doubled).min(backoff.max_ms);
    Duration::from_millis(fastrand::u64(0..=bound))
}

/// The wait that an answer's headers ask for: `retry-after-ms`, or `retry-after` in seconds, as `1s` or as a date; else,
/// after a refusal of too many requests, the time until the limit that is used up is reset. `header` looks a name up (it
/// is asked in small letters); `now_ms` is the wall clock.
pub fn asked<'h>(status: u16, header: impl Fn(&str) -> Option<&'h str>, now_ms: i64) -> Option<Duration> {
    header("retry-after-ms")
        .and_then(|text| wait(text, MILLISECOND, now_ms))
        .or_else(|| wait(header("retry-after")?, SECOND, now_ms))
        .or_else(|| if matches!(status, 403 | 429) { reset(header, now_ms) } else { None })
}

const MILLISECOND: f64 = 0.001;
const SECOND: f64 = 1.0;

/// A wait in one of the forms in which servers write it. A bare number is of `unit`, in seconds. Of several waits, which a proxy joined
/// with commas, the longest.
fn wait(text: &str, unit: f64, now_ms: i64) -> Option<Duration> {
    let one = |text: &str| match text.trim().parse::<f64>() {
        Ok(number) => Duration::try_from_secs_f64(number * unit).ok(),
        Err(_) => span(text.trim()),
    };
    let several = || text.split(',').map(one).collect::<Option<Vec<_>>>()?.into_iter().max();
    several().or_else(|| until(text.trim(), now_ms))
}

/// The time until a date of HTTP, in any of its three forms, or of RFC 3339; none when it is over.
fn until(text: &str, now_ms: i64) -> Option<Duration> {
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    let at_ms = date.or_else(|| old_date(text)).or_else(|| text.parse().ok())?.as_millisecond();
    Some(Duration::from_millis(u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0)))
}

/// A date of HTTP in one of its obsolete forms: `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. The name of the day says
/// nothing else.
fn old_date(text: &str) -> Option<Timestamp> {
    let read = |form: &str, text: &str| jiff::fmt::strtime::parse(form, text).ok()?.to_datetime().ok();
    let of_850 = text.split_once(", ").and_then(|(_, date)| read("%d-%b-%y %H:%M:%S GMT", date));
    let date = of_850.or_else(|| read("%b %e %H:%M:%S %Y", text.split_once(' ')?.1.trim_start()))?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// A time that is written with units: `1s`, `20ms`, `6m0s`, `2m59.56s`, `2 seconds`.
pub fn span(text: &str) -> Option<Duration> {
    span_before(text).filter(|(_, rest)| rest.trim().is_empty()).map(|(time, _)| time)
}

/// The time with units that a text begins with, and the rest of the text.
fn span_before(text: &str) -> Option<(Duration, &str)> {
    let mut time = None;
    let mut rest = text;
    while let Some((part, behind)) = part_before(rest) {
        time = Some(time.unwrap_or(0.0) + part);
        rest = behind;
    }
    Some((Duration::try_from_secs_f64(time?).ok()?, rest))
}

/// One number and its unit, in seconds.
fn part_before(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number: f64 = text.get(..end)?.parse().ok()?;
    let behind = text.get(end..)?.trim_start_matches(' ');
    let end = behind.find(|letter: char| !letter.is_alphabetic()).unwrap_or(behind.len());
    let unit = match behind.get(..end)?.to_lowercase().as_str() {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => MILLISECOND,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        "us" | "µs" | "μs" | "ns" => 0.0,
        _ => return None,
    };
    Some((number * unit, behind.get(end..)?))
}

/// Words of a refusal behind which its wait stands, in lower case.
const BEFORE_WAIT: [&str; 6] =
    ["retrydelay", "retry in ", "try again in ", "retry after ", "again after ", "reset after "];

/// The characters of a refusal's words in which a wait is looked for.
const READ: usize = 4_000;

/// The wait that the words of a refusal ask for: `Please try again in 1.2s.`
pub fn asked_in_words(message: &str) -> Option<Duration> {
    let message: String = message.chars().take(READ).flat_map(char::to_lowercase).collect();
    BEFORE_WAIT.iter().find_map(|words| {
        let (_, behind) = message.split_once(words)?;
        // Such a text may be JSON within JSON.
        let behind = behind.trim_start_matches(['"', '\'', '\\', ':', ' ', '~']);
        span_before(behind).map(|(time, _)| time).filter(|time| !time.is_zero())
    })
}

/// The headers of limits: until when one holds, and what is left of it.
const LIMITS: [(&str, &str); 14] = [
    ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
    ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ("x-ratelimit-reset-requests-minute", "x-ratelimit-remaining-requests-minute"),
    ("x-ratelimit-reset-tokens-minute", "x-ratelimit-remaining-tokens-minute"),
    ("x-ratelimit-reset-requests-day", "x-ratelimit-remaining-requests-day"),
    ("x-ratelimit-reset-tokens-day", "x-ratelimit-remaining-tokens-day"),
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
    ("x-rate-limit-reset", "x-rate-limit-remaining"),
    ("ratelimit-reset", "ratelimit-remaining"),
    ("anthropic-ratelimit-requests-reset", "anthropic-ratelimit-requests-remaining"),
    ("anthropic-ratelimit-tokens-reset", "anthropic-ratelimit-tokens-remaining"),
    ("anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-input-tokens-remaining"),
    ("anthropic-ratelimit-output-tokens-reset", "anthropic-ratelimit-output-tokens-remaining"),
    ("anthropic-ratelimit-unified-reset", "anthropic-ratelimit-unified-remaining"),
];

/// The time until the limits that are used up are reset. Where no server says what is left, all count.
fn reset<'h>(header: impl Fn(&str) -> Option<&'h str>, now_ms: i64) -> Option<Duration> {
    let is_spent = |left: &str| left.trim().parse::<f64>().is_ok_and(|left| left.abs() < f64::EPSILON);
    let longest = |counts: &dyn Fn(Option<&str>) -> bool| {
        let counted = LIMITS.iter().filter(|(_, left)| counts(header(left)));
        counted.filter_map(|(reset, _)| until_reset(header(reset)?, now_ms)).max()
    };
    longest(&|left| left.is_some_and(is_spent)).or_else(|| longest(&|left| left.is_none()))
}

/// The numbers from which on a number is a moment since 1970: in seconds, and in milliseconds.
const SINCE_1970: (f64, f64) = (1e9, 1e11);

/// The time until a moment that is still to come: a time, a number of seconds, or a moment in one of three forms.
fn until_reset(text: &str, now_ms: i64) -> Option<Duration> {
    let text = text.trim();
    let (seconds, milliseconds) = SINCE_1970;
    let left = match text.parse::<f64>() {
        Ok(number) if number >= seconds => {
            // Divided, since such a number in milliseconds is a whole one, and its seconds are not.
            let at = Duration::try_from_secs_f64(if number >= milliseconds { number / 1_000.0 } else { number });
            at.ok()?.checked_sub(Duration::from_millis(u64::try_from(now_ms).ok()?))?
        }
        _ => wait(text, SECOND, now_ms)?,
    };
    Some(left).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::clock::played::{self, PlayedClock};
    use super::*;

    fn header<'h>(name: &'static str, value: &'h str) -> impl Fn(&str) -> Option<&'h str> {
        move |asked| (asked == name).then_some(value)
    }

    fn retry(attempts: Option<u32>, for_ms: Option<u64>) -> Retry {
        Retry { attempts, for_ms, base_ms: 500, max_ms: 30_000 }
    }

    /// How many attempts fail, and how many milliseconds are waited, until the retries are spent.
    fn spent(retry: &Retry) -> (u32, u64) {
        let clock = PlayedClock::start();
        let mut failures = Failures::default();
        while let Some(delay) = failures.next_delay(retry, None) {
            assert!(played::wait(delay));
        }
        (failures.count, clock.waited_ms().load(Ordering::SeqCst))
    }

    #[test]
    fn time_bounds_retries_and_a_count_keeps_its_meaning() {
        let (_, waited) = spent(&retry(None, None));
        assert!((FOR_MS..FOR_MS + 30_000).contains(&waited), "{waited}");
        let (_, waited) = spent(&retry(None, Some(3_600_000)));
        assert!((3_600_000..3_630_000).contains(&waited), "{waited}");
        assert_eq!(spent(&retry(Some(40), None)).0, 40, "a count alone: no time bounds it");
        assert_eq!(spent(&retry(Some(1), None)), (1, 0));
        assert_eq!(spent(&retry(None, Some(0))), (1, 0));
        let (attempts, waited) = spent(&retry(Some(1000), Some(60_000)));
        assert!(attempts < 1000 && waited >= 60_000, "both: what is spent first ends it");
        let hasty = Retry { base_ms: 0, max_ms: 0, ..retry(None, None) };
        assert_eq!(spent(&hasty), (MOST_ATTEMPTS, 0), "waits of nothing end, too");
    }

    #[test]
    fn the_last_wait_ends_when_the_time_does() {
        for for_ms in [2_000, 60_000, FOR_MS] {
            assert_eq!(spent(&retry(None, Some(for_ms))).1, for_ms);
            assert_eq!(spent(&retry(Some(9_999), Some(for_ms))).1, for_ms, "beside attempts");
        }
        let _clock = PlayedClock::start();
        let (mut failures, rule) = (Failures::default(), retry(None, Some(2_000)));
        let hour = Some(Duration::from_secs(3_600));
        let wait = failures.next_delay(&rule, hour).unwrap();
        assert_eq!(wait, Duration::from_millis(2_000), "a wait that the server asked for ends with it too");
        assert!(played::wait(wait));
        assert_eq!(failures.next_delay(&rule, hour), None);
        let unbounded = Failures::default().next_delay(&retry(Some(3), None), hour);
        assert_eq!(unbounded, Some(LONGEST_ASKED), "a count alone: no time bounds it");
    }

    #[test]
    fn a_rule_that_says_nothing_is_brief_where_something_else_can_be_done() {
        assert_eq!(brief(&retry(None, None)).attempts, Some(Retry::FEW_ATTEMPTS));
        assert_eq!(brief(&retry(Some(9), None)).attempts, Some(9));
        assert_eq!(brief(&retry(None, Some(7))).attempts, None);
    }

    #[test]
    fn jitter_stays_within_the_doubled_base_and_the_maximum() {
        let retry = Retry { base_ms: 10, max_ms: 25, ..retry(None, None) };
        for (failures, bound) in [(1, 10), (2, 20), (3, 25), (200, 25)] {
            let longest = (0..200).map(|_| delay(&Backoff::from(&retry), failures, None)).max().unwrap();
            assert!(longest <= Duration::from_millis(bound), "{failures}: {longest:?}");
        }
        let none = Retry { base_ms: 0, max_ms: 0, ..retry };
        assert_eq!(delay(&Backoff::from(&none), 1, None), Duration::ZERO);
    }

    #[test]
    fn what_the_server_asks_for_is_obeyed_up_to_five_minutes() {
        let backoff = Backoff::from(&Retry { base_ms: 1, max_ms: 1, ..retry(None, None) });
        assert_eq!(delay(&backoff, 1, Some(Duration::from_secs(7))), Duration::from_secs(7));
        assert_eq!(delay(&backoff, 1, Some(Duration::from_secs(7200))), LONGEST_ASKED);
    }

    #[test]
    fn a_tool_is_called_again_as_often_and_as_late_as_its_rule_allows() {
        let rule = CallRetry { attempts: 3, base_ms: 10, max_ms: 2_000, on: None };
        let status = |status| Transient { status: Some(status), after: None };
        assert!(call_delay(&rule, 1, Transient::default()).is_some_and(|wait| wait <= Duration::from_millis(10)));
        for (code, again) in
            [(408, true), (425, true), (429, true), (500, true), (599, true), (400, false), (404, false)]
        {
            assert_eq!(call_delay(&rule, 2, status(code)).is_some(), again, "{code}");
        }
        assert_eq!(call_delay(&rule, 3, Transient::default()), None, "the attempts are spent");
        let asked = |seconds| Transient { status: Some(503), after: Some(Duration::from_secs(seconds)) };
        assert_eq!(call_delay(&rule, 1, asked(1)), Some(Duration::from_secs(1)));
        assert_eq!(call_delay(&rule, 1, asked(60)), Some(Duration::from_secs(2)), "cut to max_ms");
        let own = CallRetry { on: Some(vec![404]), ..rule };
        assert_eq!((call_delay(&own, 1, status(404)).is_some(), call_delay(&own, 1, status(503))), (true, None));
    }

    fn after(name: &'static str, value: &str) -> Option<Duration> {
        asked(429, header(name, value), NOW_MS)
    }

    /// 1994-11-06T08:49:34Z.
    const NOW_MS: i64 = 784_111_774_000;

    #[test]
    fn a_wait_is_read_in_each_form_in_which_servers_write_it() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (name, text, wait_ms) in [
            ("retry-after", "2", 2_000),
            ("retry-after", " 0.5 ", 500),
            ("retry-after", "1s", 1_000),
            ("retry-after", "2 seconds", 2_000),
            ("retry-after", "1m30s", 90_000),
            ("retry-after", "20ms", 20),
            ("retry-after", date, 3_000),
            ("retry-after", "1994-11-06T08:49:37Z", 3_000),
            ("retry-after", "Sun, 06 Nov 1994 08:49:31 GMT", 0),
            ("retry-after", "Sunday, 06-Nov-94 08:49:37 GMT", 3_000),
            ("retry-after", "Sun Nov  6 08:49:37 1994", 3_000),
            ("retry-after", "2, 3", 3_000),
            ("retry-after", "1s,2", 2_000),
            ("retry-after-ms", "40", 40),
            ("retry-after-ms", "800ms", 800),
            ("retry-after-ms", "1s", 1_000),
        ] {
            assert_eq!(after(name, text), Some(Duration::from_millis(wait_ms)), "{name}: {text}");
            assert_eq!(asked(503, header(name, text), NOW_MS), after(name, text), "{name}: {text}");
        }
        assert_eq!(after("retry-after-ms", "800.7"), Some(Duration::from_micros(800_700)));
        let both = |name: &str| match name {
            "retry-after-ms" => Some("soon"),
            "retry-after" => Some("3"),
            _ => None,
        };
        assert_eq!(asked(429, both, NOW_MS), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_retry_after_that_makes_no_sense_is_as_none() {
        for text in [
            "",
            "soon",
            "-1",
            "NaN",
            "inf",
            "1e99",
            "1e308",
            "-1s",
            "1e308s",
            "s",
            "1 fortnight",
            "1s soon",
            "+262145-01-01",
        ] {
            for name in
                ["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset"]
            {
                assert_eq!(after(name, text), None, "{name}: {text}");
            }
        }
        // What is far away is cut where it is used.
        for text in
            ["9999-12-31T23:59:59Z", "Fri, 31 Dec 9999 23:59:59 GMT", "99999999999999", "9".repeat(300).as_str()]
        {
            for name in ["retry-after", "x-ratelimit-reset-tokens"] {
                let wait = delay(&Backoff::from(&retry(None, None)), 1, after(name, text));
                assert!(wait <= LONGEST_ASKED, "{text}: {wait:?}");
                let wait = Failures::default().next_delay(&retry(None, Some(1_000)), after(name, text)).unwrap();
                assert!(wait <= Duration::from_secs(1), "{text}: {wait:?}");
            }
        }
    }

    #[test]
    fn a_wait_of_no_time_is_kept_twice() {
        let backoff = Backoff::from(&Retry { base_ms: 1_000_000, max_ms: 1_000_000, ..retry(None, None) });
        for failures in [1, 2] {
            assert_eq!(delay(&backoff, failures, Some(Duration::ZERO)), Duration::ZERO);
        }
        let waits: Vec<Duration> = (0..20).map(|_| delay(&backoff, 3, Some(Duration::ZERO))).collect();
        assert!(waits.iter().any(|wait| !wait.is_zero()), "{waits:?}");
    }

    #[test]
    fn after_too_many_requests_the_reset_of_the_limit_that_is_used_up_counts() {
        let waits = |headers: &[(&str, &str)]| {
            let header = |asked: &str| headers.iter().find(|(name, _)| *name == asked).map(|(_, value)| *value);
            asked(429, header, NOW_MS).map(|wait| u64::try_from(wait.as_millis()).unwrap())
        };
        let now_s = NOW_MS / 1_000;
        let in_5_s = (now_s + 1_000_000_005).to_string();
        let of = |reset: &str, left: &str| {
            waits(&[("x-ratelimit-reset-tokens", reset), ("x-ratelimit-remaining-tokens", left)])
        };
        for (reset, wait_ms) in [
            ("6m0s", 360_000),
            ("1s", 1_000),
            ("20ms", 20),
            ("2m59.56s", 179_560),
            ("7.66s", 7_660),
            ("12.5", 12_500),
            ("60", 60_000),
            ("1994-11-06T08:49:39Z", 5_000),
        ] {
            assert_eq!(of(reset, "0"), Some(wait_ms), "{reset}");
            assert_eq!(of(reset, "17"), None, "there is something left");
            assert_eq!(waits(&[("x-ratelimit-reset-tokens", reset)]), Some(wait_ms), "nobody says what is left");
        }
        assert_eq!((of("0", "-1"), of("0s", "0"), of("1994-11-06T08:49:30Z", "0")), (None, None, None));
        // The moments since 1970 are those of a later clock.
        let later =
            |text: &str, now_ms: i64| asked(429, |name: &str| (name == "x-ratelimit-reset").then_some(text), now_ms);
        assert_eq!(later(&in_5_s, (now_s + 1_000_000_000) * 1_000), Some(Duration::from_secs(5)));
        let in_5_s_of_2026 = later("1795852805000", 1_795_852_800_000);
        assert_eq!(in_5_s_of_2026, Some(Duration::from_secs(5)));
        assert_eq!(later("1795852700", 1_795_852_800_000), None, "it is over");
        assert_eq!(later("784111779000", NOW_MS), Some(Duration::from_secs(5)));
        let anthropic = [
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "1994-11-06T08:49:35Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "1994-11-06T08:49:44Z"),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
            ("anthropic-ratelimit-output-tokens-reset", "1994-11-06T08:49:36Z"),
        ];
        assert_eq!(waits(&anthropic), Some(10_000), "the later one of two");
        let first = [("retry-after", "2"), ("x-ratelimit-reset-tokens", "6m0s"), ("x-ratelimit-remaining-tokens", "0")];
        assert_eq!(waits(&first), Some(2_000), "what is asked for counts first");
        let header = header("x-ratelimit-reset-tokens", "6m0s");
        assert_eq!(asked(500, header, NOW_MS), None, "a fault of the server has nothing to do with limits");
    }

    #[test]
    fn a_wait_is_read_from_the_words_of_a_refusal() {
        for (message, wait_ms) in [
            ("You exceeded your current quota. Please retry in 53.016342224s.", 53_016),
            ("Rate limit reached for gpt-4 on tokens per min. Please try again in 6ms. Visit https://x", 6),
            ("on tokens per day (TPD): Limit 100000. Please try again in 9m38.016s. Need more tokens?", 578_016),
            ("Rate limit is exceeded. Try again in 2 seconds.", 2_000),
            ("exceeded token rate limit. Please retry after 55 seconds. Please go here", 55_000),
            ("request reached max request: 3, please try again after 1 seconds", 1_000),
            ("VertexAIException - b'{\\n \"retryDelay\": \"44s\"\\n}'", 44_000),
            ("{\\\"retryDelay\\\": \\\"1.5s\\\"}", 1_500),
        ] {
            let wait = asked_in_words(message).map(|wait| u64::try_from(wait.as_millis()).unwrap());
            assert_eq!(wait, Some(wait_ms), "{message}");
        }
        for message in
            ["", "Please try again in a moment.", "retry after 2026-01-01", "try again in -5s", "try again in 0s"]
        {
            assert_eq!(asked_in_words(message), None, "{message}");
        }
    }
}
