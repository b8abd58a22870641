//! What lists show of a run and its events change, in columns.

use super::columns::columns;
use crate::journal::StatusRecord;
use crate::journal::words::word;

columns! {
    /// The records of runs; null where a run has no new one.
    pub(super) struct RecordColumns {
        status: Option<String>,
        termination: Option<String>,
        iterations: Option<i32>,
        at_ms: Option<i64>,
        due_at_ms: Option<i64>,
        waits_since_ms: Option<i64>,
        /// Whether it is to be posted to the callback of the run.
        posts: bool,
    }
}

impl RecordColumns {
    /// Adds a record.
    pub(super) fn push(&mut self, record: Option<&StatusRecord>) {
        self.status.push(record.and_then(|record| word(&record.status)));
        self.termination.push(record.and_then(|record| record.termination.as_ref().and_then(word)));
        self.iterations.push(record.map(|record| i32::try_from(record.iterations).unwrap_or(i32::MAX)));
        self.at_ms.push(record.map(|record| record.at_ms));
        self.due_at_ms.push(record.and_then(|record| record.due_at_ms));
        self.waits_since_ms.push(record.and_then(|record| record.waits_since_ms));
        self.posts.push(record.is_some_and(StatusRecord::is_to_be_posted));
    }
}
