//! Retries: how long a model is asked again, how often a tool is called again, and the waits between the attempts (full
//! jitter, or what the server asked for).

use std::time::{Duration, Instant};

use super::clock;
use super::tool::CallOutcome;
use crate::engine::event::{MAY_HAVE_HAPPENED, ToolFault, ToolResult};
use crate::language::action::OnUncertain;
use crate::language::react::Retry;
use crate::language::retry::CallRetry;
use crate::program::Tool;

/// How long a model is retried by default, in milliseconds.
pub const FOR_MS: u64 = 120_000;
/// The attempts by default where something else can be done than to wait: another model is asked, or the model of the
/// run reads that its `llm` action failed.
const ATTEMPTS: u32 = 4;
/// The most attempts of one call to one model when time alone bounds them: each is kept in the journal.
const MOST_ATTEMPTS: u32 = 10_000;

/// The rule where something else can be done than to wait: a few attempts, unless the rule says otherwise.
pub fn brief(retry: &Retry) -> Retry {
    let attempts = retry.attempts.or(retry.for_ms.is_none().then_some(ATTEMPTS));
    Retry { attempts, ..retry.clone() }
}

/// The failed attempts of one call to one model.
#[derive(Debug, Default)]
pub struct Failures {
    count: u32,
    first_at: Option<Instant>,
}

impl Failures {
    /// Counts a failure that may pass. Returns the wait before the next attempt; none when the retries are spent.
    /// `asked`: the wait that the server asked for.
    pub fn next_delay(&mut self, retry: &Retry, asked: Option<Duration>) -> Option<Duration> {
        self.count = self.count.saturating_add(1);
        let first_at = *self.first_at.get_or_insert_with(clock::instant);
        let for_ms = retry.for_ms.or(retry.attempts.is_none().then_some(FOR_MS));
        let has_time = for_ms.is_none_or(|for_ms| clock::elapsed_ms(first_at) < for_ms);
        let more = has_time && self.count < retry.attempts.unwrap_or(MOST_ATTEMPTS);
        more.then(|| delay(&Backoff::from(retry), self.count, asked))
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

/// The wait before a tool is called again, after so many failed attempts (1 and up); none when it is not.
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

/// What follows an attempt at a call of a tool, after so many failed ones (1 and up, this one too). One whose answer was lost
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
/// server `asked` for is respected up to the longest one.
pub fn delay(backoff: &Backoff, failures: u32, asked: Option<Duration>) -> Duration {
    if let Some(asked) = asked {
        return asked.min(backoff.longest_asked);
    }
    let doubled = 1u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    let bound = backoff.base_ms.saturating_mul(doubled).min(backoff.max_ms);
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
    fn a_rule_that_says_nothing_is_brief_where_something_else_can_be_done() {
        assert_eq!(brief(&retry(None, None)).attempts, Some(ATTEMPTS));
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
        for (code, again) in [(408, true), (429, true), (500, true), (599, true), (400, false), (404, false)] {
            assert_eq!(call_delay(&rule, 2, status(code)).is_some(), again, "{code}");
        }
        assert_eq!(call_delay(&rule, 3, Transient::default()), None, "the attempts are spent");
        let asked = |seconds| Transient { status: Some(503), after: Some(Duration::from_secs(seconds)) };
        assert_eq!(call_delay(&rule, 1, asked(1)), Some(Duration::from_secs(1)));
        assert_eq!(call_delay(&rule, 1, asked(60)), Some(Duration::from_secs(2)), "cut to max_ms");
        let own = CallRetry { on: Some(vec![404]), ..rule };
        assert_eq!((call_delay(&own, 1, status(404)).is_some(), call_delay(&own, 1, status(503))), (true, None));
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
