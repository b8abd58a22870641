//! The decisions that wait for the drivers of their runs, in their table.

use rusqlite::Connection;

use super::trouble::Trouble;
use crate::journal::QueuedDecision;

/// A decision is taken, in the transaction of its event.
pub(super) fn remove(connection: &Connection, run_id: &str, id: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM decisions WHERE run_id = ?1 AND id = ?2")?.execute([run_id, id]).map(drop)
}

/// The decisions about a run.
pub(super) fn of_run(connection: &Connection, run_id: &str) -> Result<Vec<QueuedDecision>, Trouble> {
    let mut query = connection
        .prepare_cached("SELECT id, subject, decision, refused FROM decisions WHERE run_id = ?1 ORDER BY subject")?;
    let queued = query.query_map([run_id], |row| {
        Ok(QueuedDecision { id: row.get(0)?, subject: row.get(1)?, decision: row.get(2)?, refused: row.get(3)? })
    })?;
    Ok(queued.collect::<Result<_, _>>()?)
}
