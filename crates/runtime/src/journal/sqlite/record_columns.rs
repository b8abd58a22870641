//! What lists show of a run and its events change, in columns.

use super::columns::written;
use crate::journal::StatusRecord;
use crate::journal::words::word;

written! {
    /// The record of a run. When it is due is not among them: a queued decision makes a paused run due at once.
    pub(super) struct RecordRow<'a> {
        status: Option<String>,
        termination: Option<String>,
        iterations: u32,
        updated_at_ms: i64,
        waits_since_ms: Option<i64>,
        tokens: Option<i64>,
        cost_usd: Option<f64>,
        error: Option<&'a str>,
        question: Option<&'a str>,
    }
}

impl<'a> From<&'a StatusRecord> for RecordRow<'a> {
    fn from(record: &'a StatusRecord) -> Self {
        Self {
            status: word(&record.status),
            termination: record.termination.as_ref().and_then(word),
            iterations: record.iterations,
            updated_at_ms: record.at_ms,
            waits_since_ms: record.waits_since_ms,
            tokens: record.tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX)),
            cost_usd: record.cost_usd,
            error: record.error.as_ref().map(|text| text.as_str()),
            question: record.question.as_ref().map(|text| text.as_str()),
        }
    }
}
