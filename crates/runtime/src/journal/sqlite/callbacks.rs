//! Writes about callbacks: which are due, and how far they are.

use std::time::Duration;

use rusqlite::{Connection, params};

use super::database_errors::RequestError;
use super::queue::listed;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::column_words::word;
use crate::journal::{CALLBACK_LEASE, CallbackProgress, CallbackState, StoreError};

/// Takes the callbacks that are due.
pub(super) struct ClaimCallbacks(pub(super) usize);

impl WriteRequest for ClaimCallbacks {
    type Answer = Vec<String>;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Vec<String>, RequestError> {
        let connection = transaction.connection;
        let most = i64::try_from(self.0).unwrap_or(i64::MAX);
        // A driver that posts need not drive anything: it need not renew a lease.
        let living = listed(&transaction.leases.protected(connection, true)?);
        let mut query = connection.prepare_cached(
            "SELECT id, run_id FROM runs
             WHERE callback = 'pending' AND status <> 'running' AND callback_at_ms IS NOT NULL AND (callback_at_ms <= ?1
               OR callback_by IS NULL OR callback_by NOT IN (SELECT value FROM json_each(?2)))
             ORDER BY id LIMIT ?3",
        )?;
        let due: Vec<(i64, String)> = query
            .query_map(params![transaction.leases.after(Duration::ZERO), living, most], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<Result<_, _>>()?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        transaction.leases.ensure(connection)?;
        let mut update =
            connection.prepare_cached("UPDATE runs SET callback_at_ms = ?2, callback_by = ?3 WHERE id = ?1")?;
        for (row, _) in &due {
            update.execute(params![row, transaction.leases.after(CALLBACK_LEASE), transaction.leases.me()])?;
        }
        Ok(due.into_iter().map(|(_, run_id)| run_id).collect())
    }
}

/// Records the progress of a run's callback.
pub(super) struct NoteCallback {
    pub(super) run_id: String,
    pub(super) progress: CallbackProgress,
    pub(super) again_in: Option<Duration>,
    pub(super) of_end_ms: Option<i64>,
}

impl WriteRequest for NoteCallback {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let is_pending = self.progress.state == CallbackState::Pending;
        if is_pending && is_settled(transaction.connection, &self.run_id)? {
            return Ok(());
        }
        if let Some(end_ms) = self.of_end_ms
            && has_continued(transaction.connection, &self.run_id, end_ms)?
        {
            return Ok(());
        }
        let at_ms = self.again_in.map(|time| transaction.leases.after(time.saturating_add(CALLBACK_LEASE)));
        let found = transaction
            .connection
            .prepare_cached(
                "UPDATE runs SET callback = CASE WHEN callback IS NULL THEN NULL ELSE ?2 END, callback_tries = ?3,
                   callback_at_ms = ?4, callback_by = ?5 WHERE run_id = ?1",
            )?
            .execute(params![
                self.run_id,
                word(&self.progress.state),
                self.progress.tries,
                at_ms,
                transaction.leases.me()
            ])?;
        if found == 0 { Err(StoreError::NoSuchRun(self.run_id.clone()).into()) } else { Ok(()) }
    }
}

/// Whether a callback is no longer to be made.
fn is_settled(connection: &Connection, run_id: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM runs WHERE run_id = ?1 AND callback <> 'pending'")?.exists([run_id])
}

/// Whether a run that had ended at this moment has continued since.
fn has_continued(connection: &Connection, run_id: &str, end_ms: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM runs WHERE run_id = ?1 AND (updated_at_ms <> ?2 OR status = 'running')")?
        .exists(params![run_id, end_ms])
}
