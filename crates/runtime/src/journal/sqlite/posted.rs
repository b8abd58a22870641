//! Writes about pauses that are posted: which one was the last, and the tokens that answer them.

use rusqlite::params;

use super::answer_tokens;
use super::trouble::Trouble;
use super::writer::{Transaction, WriteRequest};
use crate::journal::{AnswerToken, StoreFault};

/// Records the last pause that was posted.
pub(super) struct NotePostedPause {
    pub(super) run_id: String,
    pub(super) pause: u32,
}

impl WriteRequest for NotePostedPause {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), Trouble> {
        let found = transaction
            .connection
            .prepare_cached(
                "UPDATE runs SET callback_pause = max(callback_pause, ?2), callback_at_ms = NULL WHERE run_id = ?1",
            )?
            .execute(params![self.run_id, self.pause])?;
        if found == 0 { Err(StoreFault::NoSuchRun(self.run_id.clone()).into()) } else { Ok(()) }
    }
}

/// Stores tokens of one pause.
pub(super) struct PutAnswerTokens {
    pub(super) run_id: String,
    pub(super) tokens: Vec<AnswerToken>,
}

impl WriteRequest for PutAnswerTokens {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), Trouble> {
        let connection = transaction.connection;
        if !connection.prepare_cached("SELECT 1 FROM runs WHERE run_id = ?1")?.exists([&self.run_id])? {
            return Err(StoreFault::NoSuchRun(self.run_id.clone()).into());
        }
        Ok(answer_tokens::put(connection, &self.run_id, &self.tokens)?)
    }
}
