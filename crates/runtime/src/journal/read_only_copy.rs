//! Read-only copies of runs that another system drives. Nobody drives them here: their status is none that
//! the queue takes, nothing of them is ever due, and their lease is refused to drivers.

use super::{NewRun, RunSummary, StatusRecord};
use loopctl_engine::outcome::{Status, Termination};

/// What the identity of such a run begins with: a start with its id is so another run.
const MARK: &str = "copied from Restate: ";

impl NewRun {
    /// A read-only copy of the run.
    #[must_use]
    pub fn to_read_only_copy(self) -> Self {
        let began = StatusRecord::new(Status::Running, self.at_ms);
        Self {
            identity: format!("{MARK}{}", self.identity),
            status_record: Some(self.status_record.unwrap_or(began).to_read_only_copy()),
            session: None,
            callback_url: None,
            start_key: None,
            scheduled: None,
            ..self
        }
    }
}

impl StatusRecord {
    /// What lists show of a read-only copy. One that is under way elsewhere is stopped here, and so is one that waits for
    /// its model: servers take up both otherwise.
    #[must_use]
    pub fn to_read_only_copy(self) -> Self {
        let is_taken_up = match self.status {
            Status::Running | Status::Quarantined => true,
            Status::Paused => self.termination == Some(Termination::ModelError),
            Status::Completed | Status::Failed | Status::Cancelled => false,
        };
        let (status, termination) =
            if is_taken_up { (Status::Cancelled, None) } else { (self.status, self.termination) };
        Self { status, termination, due_at_ms: None, waits_since_ms: None, ..self }
    }
}

impl RunSummary {
    /// Whether the run is a read-only copy.
    pub fn is_read_only_copy(&self) -> bool {
        self.identity.starts_with(MARK)
    }
}
