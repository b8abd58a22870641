//! What reports count of a run: the columns of its row that they need, and no other.

use super::RunSummary;
use loopctl_engine::outcome::{Status, Termination};

/// A run in a report.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRun {
    /// Its id.
    pub run_id: String,
    /// The loop's name.
    pub loop_name: String,
    /// The organisation that it belongs to.
    pub org: Option<String>,
    /// The status of its events: one without a driver is running too.
    pub status: Status,
    /// Why it ended or waits.
    pub termination: Option<Termination>,
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: i64,
    /// When its status record last changed, in milliseconds since 1970.
    pub updated_at_ms: i64,
    /// Iterations so far.
    pub iterations: u32,
    /// The tokens so far; none where an older version wrote the row.
    pub tokens: Option<u64>,
    /// What they cost in US dollars; none where that is not known.
    pub cost_usd: Option<f64>,
}

impl From<RunSummary> for MeasuredRun {
    fn from(run: RunSummary) -> Self {
        Self {
            run_id: run.run_id,
            loop_name: run.loop_name,
            org: run.org,
            status: if run.status == Status::Quarantined { Status::Running } else { run.status },
            termination: run.termination,
            started_at_ms: run.started_at_ms,
            updated_at_ms: run.updated_at_ms,
            iterations: run.iterations,
            tokens: run.tokens,
            cost_usd: run.cost_usd,
        }
    }
}

impl MeasuredRun {
    /// Whether it has ended; one that a signal stopped has not.
    pub fn has_ended(&self) -> bool {
        has_ended(self.status, self.termination)
    }
}

/// Whether a run of this status has ended.
pub(super) fn has_ended(status: Status, termination: Option<Termination>) -> bool {
    match status {
        Status::Completed | Status::Failed => true,
        Status::Cancelled => termination.is_some(),
        Status::Running | Status::Paused | Status::Quarantined => false,
    }
}
