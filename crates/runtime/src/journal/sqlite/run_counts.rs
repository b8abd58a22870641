//! How many runs need somebody.

use rusqlite::{Connection, params};

use super::database_errors::RequestError;
use super::reads::{DECIDABLE, SET_ASIDE, WAITS};
use crate::journal::{RunCounts, WaitMoments, WaitingRuns};

/// Counts them: each statement reads the rows that it counts, by an index.
pub(super) fn counted(connection: &Connection, moments: WaitMoments) -> Result<RunCounts, RequestError> {
    let count = |wanted: &str| -> Result<u64, RequestError> {
        let sql = format!("SELECT count(*) FROM runs WHERE parent_run_id IS NULL AND {wanted}");
        let runs: i64 = connection.prepare_cached(&sql)?.query_row((), |row| row.get(0))?;
        Ok(u64::try_from(runs).unwrap_or_default())
    };
    let sql = format!(
        "WITH waiting AS MATERIALIZED (
           SELECT loop_name, updated_at_ms AS since FROM runs
           WHERE status = 'paused' AND parent_run_id IS NULL AND coalesce(termination, '') NOT IN ('model_error', 'waiting', 'waiting_event', 'spending_limit')
             AND {DECIDABLE}
           UNION ALL
           SELECT loop_name, {WAITS} FROM runs
           WHERE status = 'running' AND parent_run_id IS NULL AND NOT {SET_ASIDE} AND {DECIDABLE})
         SELECT loop_name, (since <= ?1) + (since <= ?2) + (since <= ?3) AS moments, min(since) AS oldest_ms, count(*) AS runs
         FROM waiting WHERE since IS NOT NULL GROUP BY loop_name, moments ORDER BY loop_name, moments"
    );
    let mut query = connection.prepare_cached(&sql)?;
    let [latest, middle, earliest] = moments;
    let waiting = query.query_map(params![latest, middle, earliest], |row| {
        let (moments, runs): (i64, i64) = (row.get("moments")?, row.get("runs")?);
        Ok(WaitingRuns {
            loop_name: row.get("loop_name")?,
            moments: usize::try_from(moments).unwrap_or_default(),
            oldest_ms: row.get("oldest_ms")?,
            runs: u64::try_from(runs).unwrap_or_default(),
        })
    })?;
    Ok(RunCounts {
        quarantined: count(&format!("status = 'running' AND {SET_ASIDE}"))?,
        model_away: count("status = 'paused' AND termination = 'model_error'")?,
        callbacks_pending: count(&format!("callback = 'pending' AND (status <> 'running' OR {SET_ASIDE})"))?,
        waiting: waiting.collect::<Result<_, _>>()?,
    })
}
