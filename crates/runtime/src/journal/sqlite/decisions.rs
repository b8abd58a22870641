//! The decisions that wait for the drivers of their runs, in their table.

use rusqlite::{Connection, OptionalExtension, params};

use super::database_errors::RequestError;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::{QueuedDecision, Queueing, SettledDecision, StoreError};

/// A decision is taken, in the transaction of its event.
pub(super) fn remove(connection: &Connection, run_id: &str, id: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM decisions WHERE run_id = ?1 AND id = ?2")?.execute([run_id, id]).map(drop)
}

/// The decisions about a run.
pub(super) fn of_run(connection: &Connection, run_id: &str) -> Result<Vec<QueuedDecision>, RequestError> {
    let mut query = connection
        .prepare_cached("SELECT id, subject, decision, refused FROM decisions WHERE run_id = ?1 ORDER BY subject")?;
    let queued = query.query_map([run_id], |row| {
        Ok(QueuedDecision { id: row.get(0)?, subject: row.get(1)?, decision: row.get(2)?, refused: row.get(3)? })
    })?;
    Ok(queued.collect::<Result<_, _>>()?)
}

/// Queues a decision.
pub(super) struct QueueDecision {
    pub(super) run_id: String,
    pub(super) decision: QueuedDecision,
    /// Whether it is queued for a run that nobody drives, too.
    pub(super) wakes: bool,
}

impl WriteRequest for QueueDecision {
    type Answer = Queueing;

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Queueing, RequestError> {
        let connection = transaction.connection;
        let driven = connection
            .prepare_cached("SELECT driver IS NOT NULL FROM runs WHERE run_id = ?1")?
            .query_row([&self.run_id], |row| row.get::<_, bool>(0))
            .optional()?;
        if !driven.ok_or_else(|| StoreError::NoSuchRun(self.run_id.clone()))? && !self.wakes {
            return Ok(Queueing::NotDriven);
        }
        let QueuedDecision { id, subject, decision, .. } = &self.decision;
        let queued = connection
            .prepare_cached(
                "INSERT INTO decisions (run_id, subject, id, decision) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (run_id, subject) DO UPDATE SET id = ?3, refused = NULL,
                   decision = CASE WHEN id = ?3 AND refused IS NULL THEN decision ELSE ?4 END
                 WHERE refused IS NOT NULL OR id = ?3",
            )?
            .execute([&self.run_id, subject, id, decision])?;
        if queued == 0 {
            return Ok(Queueing::Occupied);
        }
        // Its driver has paused it and is about to release it, or died: who has a slot takes the run.
        connection
            .prepare_cached("UPDATE runs SET due_at_ms = 0 WHERE run_id = ?1 AND status = 'paused'")?
            .execute([&self.run_id])?;
        Ok(Queueing::Queued)
    }
}

/// Records what became of a decision.
pub(super) struct SettleDecision {
    pub(super) run_id: String,
    pub(super) id: String,
    pub(super) settled: SettledDecision,
}

impl WriteRequest for SettleDecision {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let connection = transaction.connection;
        match &self.settled {
            SettledDecision::Read => remove(connection, &self.run_id, &self.id)?,
            SettledDecision::Refused { why, due_at_ms } => {
                connection
                    .prepare_cached("UPDATE decisions SET refused = ?3 WHERE run_id = ?1 AND id = ?2")?
                    .execute([&self.run_id, &self.id, why])?;
                connection
                    .prepare_cached(
                        "UPDATE runs SET due_at_ms = ?2 WHERE run_id = ?1 AND status = 'paused'
                         AND NOT EXISTS (SELECT 1 FROM decisions WHERE run_id = ?1 AND refused IS NULL)",
                    )?
                    .execute(params![self.run_id, due_at_ms])?;
            }
        }
        Ok(())
    }
}
