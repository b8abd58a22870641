//! Pauses that are posted: which one was the last, and the tokens that answer them.

use rusqlite::{Connection, OptionalExtension, params};

use super::database_errors::RequestError;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::answer_token::are_too_many;
use crate::journal::{AnswerToken, StoreError};

/// Adds tokens of one pause of a run. Those that are there stay as they are.
pub(super) fn put(connection: &Connection, run_id: &str, tokens: &[AnswerToken]) -> rusqlite::Result<()> {
    let Some(pause) = tokens.first().map(|token| token.pause) else { return Ok(()) };
    let there: i64 = connection
        .prepare_cached("SELECT count(*) FROM answer_tokens WHERE run_id = ?1 AND pause = ?2")?
        .query_row(params![run_id, pause], |row| row.get(0))?;
    if are_too_many(pause, usize::try_from(there).unwrap_or(usize::MAX), tokens.len()) {
        connection
            .prepare_cached("DELETE FROM answer_tokens WHERE run_id = ?1 AND pause = ?2")?
            .execute(params![run_id, pause])?;
    }
    let sql = "INSERT INTO answer_tokens (hash, run_id, pause, call, expires_at_ms, used)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (hash) DO NOTHING";
    let mut insert = connection.prepare_cached(sql)?;
    for AnswerToken { hash, pause, call, expires_at_ms, used } in tokens {
        insert.execute(params![hash, run_id, pause, call, expires_at_ms, used])?;
    }
    Ok(())
}

pub(super) fn find(connection: &Connection, run_id: &str, hash: &str) -> Result<Option<AnswerToken>, RequestError> {
    let sql = "SELECT pause, call, expires_at_ms, used FROM answer_tokens WHERE hash = ?1 AND run_id = ?2";
    let found = connection
        .prepare_cached(sql)?
        .query_row([hash, run_id], |row| {
            let (pause, call, expires_at_ms, used) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(AnswerToken { hash: hash.to_owned(), pause, call, expires_at_ms, used })
        })
        .optional()?;
    Ok(found)
}

pub(super) fn of_run(connection: &Connection, run_id: &str) -> rusqlite::Result<Vec<AnswerToken>> {
    connection
        .prepare_cached("SELECT hash, pause, call, expires_at_ms, used FROM answer_tokens WHERE run_id = ?1")?
        .query_map([run_id], |row| {
            let (hash, pause, call) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(AnswerToken { hash, pause, call, expires_at_ms: row.get(3)?, used: row.get(4)? })
        })?
        .collect()
}

/// Checks that an event may use up this token of a run.
///
/// # Errors
/// When the run has no such token, or it was used.
pub(super) fn is_unused(connection: &Connection, run_id: &str, hash: &str) -> Result<(), RequestError> {
    let sql = "SELECT 1 FROM answer_tokens WHERE hash = ?1 AND run_id = ?2 AND used = 0";
    let is_unused = connection.prepare_cached(sql)?.exists([hash, run_id])?;
    if is_unused { Ok(()) } else { Err(StoreError::TokenUsed(run_id.to_owned()).into()) }
}

/// The token is used up, in the transaction of the event that uses it.
pub(super) fn use_up(connection: &Connection, hash: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE answer_tokens SET used = 1 WHERE hash = ?1")?.execute([hash]).map(drop)
}

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

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let found = transaction
            .connection
            .prepare_cached(
                "UPDATE runs SET callback_pause = max(callback_pause, ?2), callback_at_ms = NULL WHERE run_id = ?1",
            )?
            .execute(params![self.run_id, self.pause])?;
        if found == 0 { Err(StoreError::NoSuchRun(self.run_id.clone()).into()) } else { Ok(()) }
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

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let connection = transaction.connection;
        if !connection.prepare_cached("SELECT 1 FROM runs WHERE run_id = ?1")?.exists([&self.run_id])? {
            return Err(StoreError::NoSuchRun(self.run_id.clone()).into());
        }
        Ok(put(connection, &self.run_id, &self.tokens)?)
    }
}
