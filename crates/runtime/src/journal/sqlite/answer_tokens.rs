//! The tokens that answer a pause, in their table.

use rusqlite::{Connection, OptionalExtension, params};

use super::trouble::Trouble;
use crate::journal::StoreFault;
use crate::journal::answer_token::{AnswerToken, are_too_many};

/// Adds tokens of one pause of a run.
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
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = connection.prepare_cached(sql)?;
    for AnswerToken { hash, pause, call, expires_at_ms, used } in tokens {
        insert.execute(params![hash, run_id, pause, call, expires_at_ms, used])?;
    }
    Ok(())
}

/// The token of a run with this hash.
pub(super) fn find(connection: &Connection, run_id: &str, hash: &str) -> Result<Option<AnswerToken>, Trouble> {
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

/// All tokens of a run.
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
pub(super) fn is_unused(connection: &Connection, run_id: &str, hash: &str) -> Result<(), Trouble> {
    let sql = "SELECT 1 FROM answer_tokens WHERE hash = ?1 AND run_id = ?2 AND used = 0";
    let is_unused = connection.prepare_cached(sql)?.exists([hash, run_id])?;
    if is_unused { Ok(()) } else { Err(StoreFault::TokenUsed(run_id.to_owned()).into()) }
}

/// The token is used up, in the transaction of the event that uses it.
pub(super) fn use_up(connection: &Connection, hash: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE answer_tokens SET used = 1 WHERE hash = ?1")?.execute([hash]).map(drop)
}
