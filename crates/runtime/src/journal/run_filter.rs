//! Which runs a list holds, and the statuses that lists show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RunSummary;
use loopctl_engine::outcome::Status;

/// The status of a run as lists show it: that of its events, and what the store knows of its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListedStatus {
    /// A driver has it, or it was called by a run.
    Running,
    /// It waits for a driver: it has had none yet, or was interrupted.
    Queued,
    /// It waits for a human or for its model.
    Paused,
    /// It ended with an answer.
    Completed,
    /// It ended without one.
    Failed,
    /// It was stopped by hand or by a signal.
    Cancelled,
    /// It was interrupted too often: servers do not resume it.
    Quarantined,
}

impl ListedStatus {
    /// All statuses, in the order in which they are listed.
    pub const ALL: [Self; 7] =
        [Self::Running, Self::Queued, Self::Paused, Self::Completed, Self::Failed, Self::Cancelled, Self::Quarantined];

    /// The status in a word, as it is written in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            other => other.status().word(),
        }
    }

    /// The status of its events; that of a quarantined run stays as it is.
    pub fn status(self) -> Status {
        match self {
            Self::Running | Self::Queued => Status::Running,
            Self::Paused => Status::Paused,
            Self::Completed => Status::Completed,
            Self::Failed => Status::Failed,
            Self::Cancelled => Status::Cancelled,
            Self::Quarantined => Status::Quarantined,
        }
    }

    /// The status with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

impl From<Status> for ListedStatus {
    /// The status of a run that has a driver, if it needs one.
    fn from(status: Status) -> Self {
        match status {
            Status::Running => Self::Running,
            Status::Paused => Self::Paused,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
            Status::Quarantined => Self::Quarantined,
        }
    }
}

impl RunSummary {
    /// The status that lists show.
    pub fn listed_status(&self) -> ListedStatus {
        if self.is_queued() { ListedStatus::Queued } else { self.status.into() }
    }
}

/// Which runs.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Of one of these statuses only, exactly as lists show them; of any, when none is named and `waiting` is not set.
    /// [`RunFilter::of_statuses`] takes them as people ask for them.
    pub statuses: Vec<ListedStatus>,
    /// Also those that are paused, and those under way of which a part waits for a human. Without `statuses`: only those.
    pub waiting: bool,
    /// Also those that a stop interrupted: they are `cancelled`, have no termination, and continue when they are resumed. Without
    /// `statuses` and `waiting`: only those.
    pub interrupted: bool,
    /// Only those that wait for a human: neither for a time or an event, nor for a model or a spending limit.
    pub for_humans: bool,
    /// Of this organisation only; the empty text is the runs of none.
    pub org: Option<String>,
    /// Those whose id begins with this text only.
    pub id_prefix: Option<String>,
    /// Of this loop only.
    pub loop_name: Option<String>,
    /// Of this session only.
    pub session: Option<String>,
    /// Those of which objective or input has this text in its beginning, as [`super::search_text`] writes both.
    pub search: Option<String>,
    /// Started at this moment or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Started before this moment, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// Ended at this moment or later, in milliseconds since 1970. Runs that have not ended are left out, and so are those that a
    /// signal stopped.
    pub ended_since_ms: Option<i64>,
    /// Ended before this moment; the same runs are left out.
    pub ended_until_ms: Option<i64>,
    /// Only those that come after this run in the list.
    pub after: Option<String>,
    /// Only those whose callback is still to be made.
    pub callback_pending: bool,
    /// Only those that must be looked at by this moment although nobody asks for them, in milliseconds since 1970.
    pub due_ms: Option<i64>,
    /// Also those that other runs called.
    pub called: bool,
    /// The oldest first.
    pub oldest_first: bool,
    /// The maximum number; 0 is all.
    pub limit: usize,
}

impl RunFilter {
    /// Runs of these statuses, as people ask for them: `paused` is everything that waits for a human, also while its run is
    /// under way, and `running` is everything under way, with what is queued.
    #[must_use]
    pub fn of_statuses(asked: &[ListedStatus]) -> Self {
        let mut filter = Self::default();
        for status in asked {
            match status {
                ListedStatus::Paused => filter.waiting = true,
                ListedStatus::Running => filter.statuses.extend([ListedStatus::Running, ListedStatus::Queued]),
                other => filter.statuses.push(*other),
            }
        }
        filter
    }

    /// Whether the list is bounded by when runs ended.
    pub(super) fn asks_for_ends(&self) -> bool {
        self.ended_since_ms.is_some() || self.ended_until_ms.is_some()
    }

    /// Whether a run ended when it is wanted.
    pub(super) fn wants_end_of(&self, run: &RunSummary) -> bool {
        let is_in = self.ended_since_ms.is_none_or(|since_ms| run.updated_at_ms >= since_ms)
            && self.ended_until_ms.is_none_or(|until_ms| run.updated_at_ms < until_ms);
        !self.asks_for_ends() || run.has_ended() && is_in
    }

    /// Whether the statuses bound the list.
    pub(super) fn names_statuses(&self) -> bool {
        self.waiting || self.interrupted || !self.statuses.is_empty()
    }

    /// Whether the filter asks for runs by what the store knows of their drivers.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn asks_for_drivers(&self) -> bool {
        let has = |status| self.statuses.contains(&status);
        // Both together are all that is under way.
        has(ListedStatus::Running) != has(ListedStatus::Queued)
    }

    /// Whether the status of a run is wanted.
    pub(super) fn wants_status_of(&self, run: &RunSummary) -> bool {
        let waits = run.status == Status::Paused || run.waits_since_ms.is_some();
        let is_interrupted = run.status == Status::Cancelled && run.termination.is_none();
        let is_listed = !self.names_statuses()
            || self.waiting && waits
            || self.interrupted && is_interrupted
            || self.statuses.contains(&run.listed_status());
        is_listed && (!self.for_humans || run.status != Status::Quarantined && run.waits_for_human())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_asked_for_by_the_words_that_are_shown() {
        for status in ListedStatus::ALL {
            assert_eq!(ListedStatus::of_word(status.word()), Some(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.word());
        }
        assert_eq!(ListedStatus::of_word("done"), None);
    }

    #[test]
    fn who_asks_for_running_gets_what_is_queued_too() {
        let of = |asked: &[ListedStatus]| {
            let filter = RunFilter::of_statuses(asked);
            (filter.statuses, filter.waiting)
        };
        use ListedStatus::{Failed, Paused, Queued, Running};
        assert_eq!(of(&[]), (vec![], false));
        assert_eq!(of(&[Running]), (vec![Running, Queued], false));
        assert_eq!(of(&[Queued]), (vec![Queued], false));
        assert_eq!(of(&[Paused, Failed]), (vec![Failed], true));
    }
}
