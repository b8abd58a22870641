//! What lists show of a run and its events change, in columns.

use std::sync::LazyLock;

use super::columns::{NumberedStatement, columns, statement_parameters};
use super::database::Database;
use crate::journal::column_words::word;
use crate::journal::{RowCompletion, RowText, StatusRecord, StoreError};

columns! {
    /// The records of runs; null where a run has no new one.
    pub(super) struct RecordColumns {
        status: Option<String>,
        termination: Option<String>,
        iterations: Option<i32>,
        at_ms: Option<i64>,
        due_at_ms: Option<i64>,
        waits_since_ms: Option<i64>,
        tokens: Option<i64>,
        cost_usd: Option<f64>,
        error: Option<String>,
        question: Option<String>,
        awaits: Option<String>,
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
        let tokens = record.and_then(|record| record.tokens);
        self.tokens.push(tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX)));
        self.cost_usd.push(record.and_then(|record| record.cost_usd));
        let text = |text: &RowText| text.as_str().to_owned();
        self.error.push(record.and_then(|record| record.error.as_ref()).map(text));
        self.question.push(record.and_then(|record| record.question.as_ref()).map(text));
        self.awaits.push(record.and_then(|record| record.awaits.clone()));
        self.posts.push(record.is_some_and(StatusRecord::is_to_be_posted));
    }
}

statement_parameters! {
    /// What a row of an older version lacks.
    struct MissingParameters<'a> {
        run_id: &'a str,
        status: Option<String>,
        iterations: i32,
        tokens: Option<i64>,
        cost_usd: Option<f64>,
        error: Option<&'a str>,
        question: Option<&'a str>,
        search_text: &'a str,
        title: &'a str,
    }
}

static COMPLETE: LazyLock<NumberedStatement> = LazyLock::new(|| {
    MissingParameters::statement(
        "
UPDATE @.runs SET iterations = CASE WHEN tokens IS NULL THEN $iterations ELSE iterations END,
  cost_usd = CASE WHEN tokens IS NULL THEN $cost_usd ELSE cost_usd END,
  error = CASE WHEN tokens IS NULL THEN $error ELSE error END,
  question = CASE WHEN tokens IS NULL THEN $question ELSE question END,
  tokens = coalesce(tokens, $tokens), search_text = coalesce(search_text, $search_text), title = coalesce(title, $title)
WHERE run_id = $run_id AND status = $status AND (tokens IS NULL OR search_text IS NULL OR title IS NULL)",
    )
});

impl Database {
    pub(super) async fn complete_row(&self, run_id: String, row: RowCompletion) -> Result<(), StoreError> {
        let RowCompletion { record, search_text, title } = &row;
        let missing = MissingParameters {
            run_id: &run_id,
            status: word(&record.status),
            iterations: i32::try_from(record.iterations).unwrap_or(i32::MAX),
            tokens: record.tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX)),
            cost_usd: record.cost_usd,
            error: record.error.as_ref().map(RowText::as_str),
            question: record.question.as_ref().map(RowText::as_str),
            search_text,
            title,
        };
        self.persist(|| async { self.quick.query_numbered(&COMPLETE, &missing.parameters()).await.map(drop) }).await
    }
}
