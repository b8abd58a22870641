//! Which runs of a store: the flags of commands that take several.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::drive::clock;
use crate::journal::{ListedStatus, RunFilter};
use crate::serve::view::session_in_store;

/// Which runs of a store.
#[derive(Debug, Clone, Default, Args)]
pub struct RunFilterArgs {
    /// Only runs with one of these statuses; repeatable. `running` includes queued runs, and `paused` runs of which other
    /// parts are under way
    #[arg(long, value_parser = status_parser(), value_name = "STATUS", value_delimiter = ',')]
    pub status: Vec<ListedStatus>,
    /// Only runs that failed, as --status failed; with other statuses, these too
    #[arg(long)]
    pub failed: bool,
    /// Only runs that wait for a human or a model, as --status paused
    #[arg(long)]
    pub waiting: bool,
    /// Only runs that wait for a process to execute them, as --status queued
    #[arg(long)]
    pub queued: bool,
    #[command(flatten)]
    pub bounds: RunBoundsArgs,
    /// Only runs that ended at this time or later, written like --since
    #[arg(long, value_name = "TIME", value_parser = asked_time)]
    pub ended_since: Option<AskedTime>,
    /// Only runs that ended before this time, written like --since
    #[arg(long, value_name = "TIME", value_parser = asked_time)]
    pub ended_until: Option<AskedTime>,
    /// Only runs that have this text in the beginning of their objective or input; the case of letters does not matter
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Only runs of this session; with --org, of one of this organisation
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
}

/// Of what, of whom, and of when: what lists and reports of runs have in common.
#[derive(Debug, Clone, Default, Args)]
pub struct RunBoundsArgs {
    /// Only runs of this loop or workflow
    #[arg(long = "loop", value_name = "NAME")]
    pub loop_name: Option<String>,
    /// Only runs of this organisation; an empty name is the runs of none
    #[arg(long, value_name = "NAME")]
    pub org: Option<String>,
    /// Only runs that started at this time or later: 2026-01-31 or 2026-01-31T12:00:00Z (UTC), or so long ago, as in 30d, 2h
    #[arg(long, value_name = "TIME", value_parser = asked_time)]
    pub since: Option<AskedTime>,
    /// Only runs that started before this time, written like --since
    #[arg(long, value_name = "TIME", value_parser = asked_time)]
    pub until: Option<AskedTime>,
}

/// A time as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedTime {
    /// This moment, in milliseconds since 1970.
    At(i64),
    /// This number of milliseconds ago.
    Ago(i64),
}

impl AskedTime {
    /// The moment, in milliseconds since 1970.
    pub fn at_ms(self) -> i64 {
        match self {
            Self::At(at_ms) => at_ms,
            Self::Ago(ago_ms) => clock::wall_ms().saturating_sub(ago_ms),
        }
    }
}

impl RunFilterArgs {
    /// The filter as of now: what is so long ago changes with the time.
    pub fn filter(&self) -> RunFilter {
        let flags = [
            (self.failed, ListedStatus::Failed),
            (self.waiting, ListedStatus::Paused),
            (self.queued, ListedStatus::Queued),
        ];
        let flags = flags.into_iter().filter_map(|(is_set, status)| is_set.then_some(status));
        let asked: Vec<ListedStatus> = self.status.iter().copied().chain(flags).collect();
        RunFilter {
            search: self.search.clone(),
            session: self.session.as_deref().map(|session| {
                let org = self.bounds.org.as_deref().filter(|org| !org.is_empty());
                session_in_store(org, session)
            }),
            ended_since_ms: self.ended_since.map(AskedTime::at_ms),
            ended_until_ms: self.ended_until.map(AskedTime::at_ms),
            ..self.bounds.bound(RunFilter::of_statuses(&asked))
        }
    }

    /// Whether anything is asked for.
    pub fn is_any(&self) -> bool {
        let has_status = !self.status.is_empty() || self.failed || self.waiting || self.queued;
        let has_end = self.ended_since.is_some() || self.ended_until.is_some();
        has_status || has_end || self.bounds.is_any() || self.search.is_some() || self.session.is_some()
    }
}

impl RunBoundsArgs {
    /// Whether anything is asked for.
    pub fn is_any(&self) -> bool {
        self.loop_name.is_some() || self.org.is_some() || self.since.is_some() || self.until.is_some()
    }

    /// The filter within these bounds, as of now.
    pub fn bound(&self, filter: RunFilter) -> RunFilter {
        RunFilter {
            loop_name: self.loop_name.clone(),
            org: self.org.clone(),
            since_ms: self.since.map(AskedTime::at_ms),
            until_ms: self.until.map(AskedTime::at_ms),
            ..filter
        }
    }
}

/// Reads a status by its word.
fn status_parser() -> impl TypedValueParser<Value = ListedStatus> {
    let words = ListedStatus::ALL.map(|status| {
        let help = match status {
            ListedStatus::Running => "In progress, or queued",
            ListedStatus::Queued => "Waits for a process to execute it: it is new, or was interrupted",
            ListedStatus::Paused => "Waits for a human, also while other parts of it are under way",
            ListedStatus::Completed => "Ended with an answer",
            ListedStatus::Failed => "Ended without an answer",
            ListedStatus::Cancelled => "Cancelled by a human or by a signal",
            ListedStatus::Quarantined => "Interrupted too often: servers do not resume it",
        };
        PossibleValue::new(status.word()).help(help)
    });
    PossibleValuesParser::new(words).try_map(|word| ListedStatus::of_word(&word).ok_or("this is no status"))
}

/// Reads a time: a date, a moment, or how long ago.
///
/// # Errors
/// A sentence with the forms of a time.
pub fn asked_time(text: &str) -> Result<AskedTime, String> {
    if let Ok(ago_ms) = age_ms(text) {
        return Ok(AskedTime::Ago(ago_ms));
    }
    let at = |at: jiff::Timestamp| AskedTime::At(at.as_millisecond());
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return Ok(at(moment));
    }
    let day = text.parse::<jiff::civil::Date>().and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC));
    let is_day = text.len() == "2026-01-31".len();
    day.ok().filter(|_| is_day).map(|day| at(day.timestamp())).ok_or_else(|| {
        "a date (2026-01-31), a time (2026-01-31T12:00:00Z), or how long ago: a number and d, h, min or s, as in 30d"
            .to_owned()
    })
}

/// A time span as it is written, in milliseconds.
pub fn age_ms(text: &str) -> Result<i64, String> {
    let wrong = || "a number and d, h, min or s, as in 30d".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let unit_ms: i64 = match unit {
        "d" => 86_400_000,
        "h" => 3_600_000,
        "min" => 60_000,
        "s" => 1_000,
        _ => return Err(wrong()),
    };
    number.parse::<i64>().ok().and_then(|number| number.checked_mul(unit_ms)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_a_moment_or_how_long_ago() {
        for (text, time) in [
            ("1970-01-02", AskedTime::At(86_400_000)),
            ("1970-01-01T00:00:01Z", AskedTime::At(1_000)),
            ("1970-01-01T01:00:00+01:00", AskedTime::At(0)),
            ("30d", AskedTime::Ago(30 * 86_400_000)),
            ("90min", AskedTime::Ago(90 * 60_000)),
        ] {
            assert_eq!(asked_time(text), Ok(time), "{text}");
        }
        for text in ["", "yesterday", "30", "2026-02-30", "2026-01-31T12:00:00", "99999999999999999d", "20260131T00"] {
            assert!(asked_time(text).unwrap_err().contains("how long ago"), "{text}");
        }
    }
}
