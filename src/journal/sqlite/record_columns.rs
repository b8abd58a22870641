//! What lists show of a run and its events change, in columns.

use super::columns::written;
use crate::journal::StatusRecord;
use crate::journal::words::word;

written! {
    /// The record of a run. When it is due is not among them: a queued decision makes a paused run due at once.
    pub(super) struct RecordColumns {
        status: Option<String>,
        termination: Option<String>,
        iterations: u32,
        updated_at_ms: i64,
        waits_since_ms: Option<i64>,
    }
}

impl From<&StatusRecord> for RecordColumns {
    fn from(record: &StatusRecord) -> Self {
        Self {
            status: word(&record.status),
            termination: record.termination.as_ref().and_then(word),
            iterations: record.iterations,
            updated_at_ms: record.at_ms,
            waits_since_ms: record.waits_since_ms,
        }
    }
}
