//! Read-only copies of runs: of those that another system drives, and of those that came in a file. Nobody drives them here: their status is none that
//! the queue takes, nothing of them is ever due, and their lease is refused to drivers.

use super::{NewRun, RowText, RunSummary, StatusRecord, StoreError};
use loopctl_engine::outcome::{Status, Termination};

/// What the identity of such a run begins with: a start with its id is so another run.
const RESTATE_MARK: &str = "copied from Restate: ";
/// The same of a run that came in a file.
const FILE_MARK: &str = "imported: ";
/// What follows that where values of the run are hidden in the file.
const HIDDEN_MARK: &str = "with hidden values: ";
/// The error in the row of a run that an import or a copy is still writing, or was cut off in.
const UNFINISHED: &str = "not whole: its import or its copy was not finished; repeat it";

/// Whether a run of this identity came in a file.
pub(super) fn is_imported(identity: &str) -> bool {
    identity.starts_with(FILE_MARK)
}

impl NewRun {
    /// A read-only copy of a run that a Restate server drives.
    #[must_use]
    pub fn to_read_only_copy(self) -> Self {
        self.copied(RESTATE_MARK)
    }

    /// A read-only copy of a run that came in a file.
    #[must_use]
    pub fn to_imported(self) -> Self {
        self.copied(FILE_MARK)
    }

    /// The same of a run some values of which are hidden in the file.
    #[must_use]
    pub fn to_imported_with_hidden(self) -> Self {
        Self { identity: format!("{HIDDEN_MARK}{}", self.identity), ..self }.to_imported()
    }

    fn copied(self, mark: &str) -> Self {
        let began = StatusRecord::new(Status::Running, self.at_ms);
        Self {
            identity: format!("{mark}{}", self.identity),
            status_record: Some(self.status_record.unwrap_or(began).to_read_only_copy()),
            session: None,
            callback_url: None,
            start_key: None,
            scheduled: None,
            line: None,
            ..self
        }
    }
}

impl StatusRecord {
    /// What lists show of a run while it is written by an import or a copy: it is not under way, nothing of it is due, and
    /// nobody may drive it. The record of the whole run takes the place of this one when all that belongs to it is there. It has
    /// tokens, so that its row is not completed by what the first events come to.
    #[must_use]
    pub fn unfinished(at_ms: i64) -> Self {
        Self { error: RowText::new(UNFINISHED), tokens: Some(0), ..Self::new(Status::Cancelled, at_ms) }
    }

    /// What lists show of a read-only copy. One that is under way elsewhere is stopped here, and so is one that waits for
    /// its model or for room in a spending limit: servers take them up otherwise. It waits for no time and no event.
    #[must_use]
    pub fn to_read_only_copy(self) -> Self {
        let is_taken_up = match self.status {
            Status::Running | Status::Quarantined => true,
            Status::Paused => {
                matches!(self.termination, Some(Termination::ModelError | Termination::SpendingLimit))
            }
            Status::Completed | Status::Failed | Status::Cancelled => false,
        };
        let (status, termination) =
            if is_taken_up { (Status::Cancelled, None) } else { (self.status, self.termination) };
        // One that waits for a human waits for no model beside that: servers take it up otherwise.
        let error = self.error.filter(|_| status != Status::Paused);
        Self { status, termination, error, due_at_ms: None, waits_since_ms: None, awaits: None, ..self }
    }
}

impl RunSummary {
    /// Whether the run is a read-only copy.
    pub fn is_read_only_copy(&self) -> bool {
        self.identity.starts_with(RESTATE_MARK) || self.is_imported()
    }

    /// Whether the run came in a file, and nobody continues it here.
    pub fn is_imported(&self) -> bool {
        is_imported(&self.identity)
    }

    /// Whether the run came in a file in which values of it are hidden.
    pub fn has_hidden_values(&self) -> bool {
        self.identity.strip_prefix(FILE_MARK).is_some_and(|identity| identity.starts_with(HIDDEN_MARK))
    }

    /// Whether an import or a copy is still writing the run, or was cut off in it.
    pub fn is_unfinished(&self) -> bool {
        self.status == Status::Cancelled && self.termination.is_none() && self.error.as_deref() == Some(UNFINISHED)
    }

    /// The identity of the run that it is, or is a copy of.
    pub fn original_identity(&self) -> &str {
        let of_file = self.identity.strip_prefix(FILE_MARK);
        of_file.map_or(&self.identity, |identity| identity.strip_prefix(HIDDEN_MARK).unwrap_or(identity))
    }

    /// Why the run can't be read as a whole, if it is half there.
    ///
    /// # Errors
    /// When an import or a copy did not finish it.
    pub fn is_whole(&self) -> Result<(), StoreError> {
        if self.is_unfinished() { Err(StoreError::Unfinished(self.run_id.clone())) } else { Ok(()) }
    }

    /// Why nobody may continue the run, if it is a read-only copy, or not whole.
    ///
    /// # Errors
    /// When it is one of these.
    pub fn may_be_driven(&self) -> Result<(), StoreError> {
        self.is_whole()?;
        match (self.is_imported(), self.is_read_only_copy()) {
            (true, _) => Err(StoreError::Imported(self.run_id.clone())),
            (false, true) => Err(StoreError::ReadOnlyCopy(self.run_id.clone())),
            (false, false) => Ok(()),
        }
    }
}
