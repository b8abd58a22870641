//! Deletes runs that ended, and what only they named.

use rusqlite::{Connection, params};

use super::answer_tokens::of_run;
use super::database_errors::RequestError;
use super::line;
use super::queue::listed;
use super::scheduled_runs;
use super::take_ups::below;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::column_words::word;
use crate::journal::{PruneQuery, RunExtras, StoreError};

/// Of an imported run, which nobody continues: `FILE_MARK` of [`crate::journal::read_only_copy`].
macro_rules! is_imported {
    ($run:literal) => {
        concat!("substr(", $run, ".identity, 1, 10) = 'imported: '")
    };
}
/// What holds of each run that may be deleted.
macro_rules! is_free {
    () => {
        concat!(
            "updated_at_ms < ?1 AND (?5 IS NULL OR loop_name = ?5) AND loop_name NOT IN (SELECT value FROM json_each(?6))
  AND (?7 IS NULL OR run_id IN (SELECT value FROM json_each(?7)))
  AND (driver IS NULL OR driver NOT IN (SELECT value FROM json_each(?3)))
  AND (callback IS NULL OR callback <> 'pending')
  AND NOT EXISTS (SELECT 1 FROM runs AS b WHERE b.parent_run_id IS NOT NULL
    AND b.run_id > runs.run_id || '.' AND b.run_id < runs.run_id || '/' AND b.status IN ('running', 'paused')
    AND NOT ",
            is_imported!("b"),
            ")"
        )
    };
}
/// The runs that may be deleted. `?1` is the moment, `?2` the statuses, `?3` the drivers that live, `?4` the bound, `?5` the
/// only loop, `?6` the loops that are left out, `?7` the only runs. The first line is the condition of the index `runs_by_end`; what follows
/// `UNION ALL` are the imported runs that wait for a human.
const OLD: &str = concat!(
    "SELECT id, run_id, updated_at_ms FROM runs
WHERE parent_run_id IS NULL AND status IN ('completed', 'failed', 'cancelled')
  AND status IN (SELECT value FROM json_each(?2)) AND (status <> 'cancelled' OR termination IS NOT NULL OR ",
    is_imported!("runs"),
    ") AND ",
    is_free!(),
    " UNION ALL SELECT id, run_id, updated_at_ms FROM runs
WHERE parent_run_id IS NULL AND status = 'paused' AND 'cancelled' IN (SELECT value FROM json_each(?2)) AND ",
    is_imported!("runs"),
    " AND ",
    is_free!(),
    " ORDER BY updated_at_ms LIMIT ?4"
);

impl WriteRequest for PruneQuery {
    type Answer = u64;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<u64, RequestError> {
        let connection = transaction.connection;
        let living = listed(&transaction.leases.protected(connection, true)?);
        let statuses: Vec<String> = self.statuses.iter().filter_map(word).collect();
        let most = if self.dry_run { -1 } else { i64::try_from(self.most).unwrap_or(i64::MAX) };
        let (only, but) = self.loops.names();
        let runs = self.runs.as_deref().map(listed);
        let old: Vec<(i64, String)> = connection
            .prepare_cached(OLD)?
            .query_map(params![self.before_ms, listed(&statuses), living, most, only, listed(but), runs], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_, _>>()?;
        for (row, run_id) in old.iter().filter(|_| !self.dry_run) {
            delete(connection, *row, run_id)?;
            for (row, run_id) in called(connection, run_id)? {
                delete(connection, row, &run_id)?;
            }
        }
        Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
    }
}

/// Deletes the memory of a session.
pub(super) struct ForgetSession(pub(super) String);

impl WriteRequest for ForgetSession {
    type Answer = u64;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<u64, RequestError> {
        let sql = "DELETE FROM session_memory WHERE session = ?1";
        let deleted = transaction.connection.prepare_cached(sql)?.execute([&self.0])?;
        Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
    }
}

/// Gives pages that deleted runs left back to the system, at the end of the file.
pub(super) struct GiveBackSpace;

/// The mode in which SQLite gives pages back when it is asked to.
pub(super) const INCREMENTAL: i64 = 2;
/// The most pages that are given back at a time (1 MiB): they are moved in one transaction, and others write before the next.
const MAX_PAGES: i64 = 256;
/// One page in this number stays free for the next runs: a file that grows and shrinks moves pages for nothing.
const FREE_PART: i64 = 16;

impl WriteRequest for GiveBackSpace {
    type Answer = u64;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<u64, RequestError> {
        let number = |sql: &str| transaction.connection.query_row(sql, (), |row| row.get::<_, i64>(0));
        if number("PRAGMA auto_vacuum")? != INCREMENTAL {
            return Ok(0);
        }
        let spare = number("PRAGMA freelist_count")?.saturating_sub(number("PRAGMA page_count")? / FREE_PART);
        let pages = spare.clamp(0, MAX_PAGES);
        if pages == 0 {
            return Ok(0);
        }
        transaction.connection.execute_batch(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let bytes = pages.saturating_mul(number("PRAGMA page_size")?);
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}

/// The runs that a run called, and those that they called.
fn called(connection: &Connection, run_id: &str) -> rusqlite::Result<Vec<(i64, String)>> {
    connection
        .prepare_cached("SELECT id, run_id FROM runs WHERE run_id > ?1 AND run_id < ?2 AND parent_run_id IS NOT NULL")?
        .query_map(below(run_id), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn delete(connection: &Connection, row: i64, run_id: &str) -> rusqlite::Result<()> {
    let texts: Vec<i64> = connection
        .prepare_cached("SELECT text FROM run_texts WHERE run = ?1")?
        .query_map([row], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for statement in
        ["DELETE FROM events WHERE run = ?1", "DELETE FROM run_texts WHERE run = ?1", "DELETE FROM runs WHERE id = ?1"]
    {
        connection.prepare_cached(statement)?.execute([row])?;
    }
    for statement in ["DELETE FROM answer_tokens WHERE run_id = ?1", "DELETE FROM decisions WHERE run_id = ?1"] {
        connection.prepare_cached(statement)?.execute([run_id])?;
    }
    scheduled_runs::deleted(connection, run_id)?;
    for text in texts {
        connection
            .prepare_cached("DELETE FROM texts WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM run_texts WHERE text = ?1)")?
            .execute([text])?;
    }
    Ok(())
}

/// What a copy of a run needs besides its events.
pub(super) fn extras(connection: &Connection, run_id: &str) -> Result<RunExtras, RequestError> {
    let sql =
        "SELECT token, due_at_ms, waits_since_ms, start_key, search_text, title, awaits, line, line_limit, line_rule
         FROM runs WHERE run_id = ?1";
    let mut query = connection.prepare_cached(sql)?;
    let mut rows = query.query([run_id])?;
    let row = rows.next()?.ok_or_else(|| StoreError::NoSuchRun(run_id.to_owned()))?;
    Ok(RunExtras {
        token: row.get("token")?,
        due_at_ms: row.get("due_at_ms")?,
        waits_since_ms: row.get("waits_since_ms")?,
        answer_tokens: of_run(connection, run_id)?,
        start_key: row.get("start_key")?,
        search_text: row.get("search_text")?,
        title: row.get("title")?,
        awaits: row.get("awaits")?,
        line: line::written(row)?,
        scheduled: scheduled_runs::of_run(connection, run_id)?,
    })
}
