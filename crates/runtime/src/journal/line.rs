//! Lines of runs: of those with one line, at most a number are under way at a time, in the order in which they joined it.
//!
//! Nothing counts places. A run has one while fewer open runs than its limit are before it in its line, so that a run that
//! ends, however it ends, leaves its place, and a driver that dies leaves none behind. Runs ahead only become fewer: a run that
//! has ended and continues joins the line anew, at its end. So what a reader saw of a line some time ago never lets a run in
//! too early.

use serde::{Deserialize, Serialize};

use loopctl_engine::outcome::{Status, Termination};

/// The line of a new run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRunLine {
    /// What the runs of the line have in common.
    pub line: String,
    /// How many of its line are under way at a time, when this one is.
    pub limit: u32,
    /// What happens when it has no place.
    pub rule: LineRule,
}

/// What happens to a new run that has no place in its line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineRule {
    /// It waits.
    #[default]
    Wait,
    /// It is not created.
    Refuse,
    /// It waits until its driver has ended those ahead: it may be driven before it has a place.
    Replace,
}

/// Where a run is in its line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlaceInLine {
    /// How many of the line are under way at a time; 0 for a run that is in none.
    pub limit: u32,
    /// What happens while it has no place.
    pub rule: LineRule,
    /// The open runs ahead of it, the first one first: at most [`MOST_AHEAD`].
    pub ahead: Vec<RunAhead>,
}

/// The most runs ahead that are read; the largest limit is not greater.
pub const MOST_AHEAD: usize = 1_000;

/// A run that is ahead of another one in their line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAhead {
    /// Its id.
    pub run_id: String,
    /// Its status.
    pub status: Status,
    /// Why it waits.
    pub termination: Option<Termination>,
    /// Whether it has a driver; the driver may have died.
    pub driven: bool,
}

impl PlaceInLine {
    /// Whether the run has a place, or is in no line.
    pub fn has_place(&self) -> bool {
        self.limit == 0 || u64::try_from(self.ahead.len()).unwrap_or(u64::MAX) < u64::from(self.limit)
    }
}

/// Whether a run of this status is in its line: one that can continue without being retried.
pub(super) fn is_open(status: Status, termination: Option<Termination>) -> bool {
    match status {
        Status::Running | Status::Paused | Status::Quarantined => true,
        Status::Cancelled => termination.is_none(),
        Status::Completed | Status::Failed => false,
    }
}
