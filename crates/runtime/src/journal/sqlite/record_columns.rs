//! What lists show of a run and its events change, in columns; and the rows that an older version wrote without some of them.

use std::sync::LazyLock;

use super::columns::{NamedValue, assignments, written};
use super::database_errors::RequestError;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::column_words::word;
use crate::journal::{RowCompletion, StatusRecord};

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
        awaits: Option<&'a str>,
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
            awaits: record.awaits.as_deref(),
        }
    }
}

written! {
    /// What a row of an older version lacks.
    struct MissingRow<'a> {
        iterations: u32,
        tokens: Option<i64>,
        cost_usd: Option<f64>,
        error: Option<&'a str>,
        question: Option<&'a str>,
    }
}

static COMPLETE: LazyLock<String> = LazyLock::new(|| {
    let missing = assignments(MissingRow::NAMES);
    format!("UPDATE runs SET {missing} WHERE run_id = :run_id AND status = :status AND tokens IS NULL")
});
const ADD_TEXTS: &str =
    "UPDATE runs SET search_text = coalesce(search_text, :search_text), title = coalesce(title, :title)
  WHERE run_id = :run_id AND status = :status AND (search_text IS NULL OR title IS NULL)";

/// Completes the row of a run that an older version wrote.
pub(super) struct CompleteRow {
    pub(super) run_id: String,
    pub(super) row: RowCompletion,
}

impl WriteRequest for CompleteRow {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let connection = transaction.connection;
        let RecordRow { status, iterations, tokens, cost_usd, error, question, .. } = (&self.row.record).into();
        let missing = MissingRow { iterations, tokens, cost_usd, error, question };
        let run: [NamedValue<'_>; 2] = [(":run_id", &self.run_id), (":status", &status)];
        let texts: [NamedValue<'_>; 2] = [(":search_text", &self.row.search_text), (":title", &self.row.title)];
        let columns = [missing.values().as_slice(), &run].concat();
        connection.prepare_cached(&COMPLETE)?.execute(columns.as_slice())?;
        connection.prepare_cached(ADD_TEXTS)?.execute([texts.as_slice(), &run].concat().as_slice())?;
        Ok(())
    }
}
