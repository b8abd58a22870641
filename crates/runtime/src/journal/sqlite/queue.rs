//! The queue: the runs that wait for a driver, and how far runs are.

use rusqlite::{Connection, params};

use super::database_errors::RequestError;
use super::leases::{HeldLease, Leases};
use super::line::may_be_driven;
use super::requests::Take;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::{ClaimedRun, MOST_FAILED_TAKE_UPS, ModelWait, QueueQuery, QueueShare, QueuedRuns};

/// The runs that wait for a driver. `?1` is the time, `?2` the drivers that are alive, `?3` the runs that the caller
/// does not want, `?4` the folders that only others serve. The first part is the condition of the index `runs_by_queue`; the number is
/// [`MOST_FAILED_TAKE_UPS`].
macro_rules! waiting {
    () => {
        concat!(
            "parent_run_id IS NULL AND (status = 'running' OR due_at_ms IS NOT NULL)
         AND (status = 'running' AND (failed_take_ups < 3 OR driver IS NOT NULL)
           OR status = 'paused' AND due_at_ms <= ?1)
         AND (driver IS NULL OR driver NOT IN (SELECT value FROM json_each(?2)))
         AND run_id NOT IN (SELECT value FROM json_each(?3))
         AND (folder IS NULL OR folder NOT IN (SELECT value FROM json_each(?4)))
         AND ",
            may_be_driven!()
        )
    };
}
const QUEUE: &str = concat!(
    "SELECT org, token, count(*), min(CASE status WHEN 'paused' THEN max(due_at_ms, updated_at_ms) ELSE updated_at_ms END)
     FROM runs INDEXED BY runs_by_queue WHERE ",
    waiting!(),
    " GROUP BY 1, 2 ORDER BY min(id)"
);
const OF_SHARE: &str = concat!(
    "SELECT run_id FROM runs INDEXED BY runs_by_queue WHERE ",
    waiting!(),
    " AND org IS ?5 AND token IS ?6 ORDER BY id LIMIT ?7"
);
const _: () = assert!(MOST_FAILED_TAKE_UPS == 3);

/// Names as the list that a statement takes.
pub(super) fn listed(names: &[String]) -> String {
    serde_json::to_string(names).unwrap_or_default()
}

/// The runs that wait, counted by their owners.
pub(super) fn queued(
    connection: &Connection,
    waiting: &QueueQuery,
    around: &OtherDrivers,
) -> Result<Vec<QueuedRuns>, RequestError> {
    let mut query = connection.prepare_cached(QUEUE)?;
    let (living, foreign) = (listed(&around.living), listed(&around.foreign));
    let queued = query.query_map(params![waiting.now_ms, living, listed(&waiting.except), foreign], |row| {
        let runs: i64 = row.get(2)?;
        let runs = u64::try_from(runs).unwrap_or_default();
        Ok(QueuedRuns { org: row.get(0)?, token: row.get(1)?, runs, since_ms: row.get(3)? })
    })?;
    Ok(queued.collect::<Result<_, _>>()?)
}

/// Leases runs that wait.
pub(super) struct Claim {
    pub(super) waiting: QueueQuery,
    pub(super) shares: Vec<QueueShare>,
    /// The folder that this process serves.
    pub(super) folder: Option<String>,
}

/// The other drivers of the store.
pub(super) struct OtherDrivers {
    /// Those whose runs must be left alone.
    pub(super) living: Vec<String>,
    /// The folders that only others serve.
    pub(super) foreign: Vec<String>,
}

impl Claim {
    /// The runs that are to be leased for a share.
    fn of_share(
        &self,
        connection: &Connection,
        share: &QueueShare,
        around: &OtherDrivers,
    ) -> rusqlite::Result<Vec<String>> {
        let QueueQuery { now_ms, except } = &self.waiting;
        let most = i64::try_from(share.runs).unwrap_or(i64::MAX);
        connection
            .prepare_cached(OF_SHARE)?
            .query_map(
                params![
                    now_ms,
                    listed(&around.living),
                    listed(except),
                    listed(&around.foreign),
                    share.org,
                    share.token,
                    most
                ],
                |row| row.get(0),
            )?
            .collect()
    }
}

impl WriteRequest for Claim {
    type Answer = Vec<ClaimedRun>;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Vec<ClaimedRun>, RequestError> {
        let around = OtherDrivers {
            living: transaction.leases.protected(transaction.connection, false)?,
            foreign: transaction.leases.drivers().foreign(transaction.connection, self.folder.as_deref())?,
        };
        let mut claimed = Vec::new();
        for share in &self.shares {
            for run_id in self.of_share(transaction.connection, share, &around)? {
                let lease = match Take(run_id.clone()).perform(transaction) {
                    Ok(lease) => Ok(lease),
                    Err(RequestError::Refused(fault)) => Err(fault),
                    Err(trouble @ RequestError::Database(_)) => return Err(trouble),
                };
                claimed.push(ClaimedRun { run_id, org: share.org.clone(), token: share.token.clone(), lease });
            }
        }
        Ok(claimed)
    }

    fn durable(&self, claimed: &Vec<ClaimedRun>, rows: &[i64], leases: &mut Leases) {
        let leased = claimed.iter().filter_map(|run| Some((&run.run_id, run.lease.as_ref().ok()?)));
        for ((run_id, lease), row) in leased.zip(rows) {
            let fence = i64::try_from(lease.fence).unwrap_or(i64::MAX);
            leases.granted(run_id, HeldLease { row: *row, fence, next: None });
        }
    }

    fn unclaimed(&self, claimed: &Vec<ClaimedRun>, leases: &mut Leases) {
        for run in claimed {
            if let Ok(lease) = &run.lease {
                leases.orphaned(&run.run_id, lease.fence);
            }
        }
    }
}

/// Has a run that waits for its model claimed from a moment on, whatever else it waits for.
pub(super) struct RetryAt {
    pub(super) run_id: String,
    pub(super) at_ms: i64,
}

impl WriteRequest for RetryAt {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        transaction
            .connection
            .prepare_cached(
                // The SQL form of [`RunSummary::waits_for_model`].
                "UPDATE runs SET due_at_ms = min(?2, coalesce(due_at_ms, ?2))
                 WHERE run_id = ?1 AND status = 'paused'
                   AND (termination IN ('model_error', 'spending_limit')
                     OR error IS NOT NULL AND termination NOT IN ('waiting', 'waiting_event'))",
            )?
            .execute(params![self.run_id, self.at_ms])?;
        Ok(())
    }
}

/// Notes that a model of a run failed and is asked again, or that it is not any more.
pub(super) struct NoteModelWait {
    pub(super) run_id: String,
    pub(super) fence: u64,
    pub(super) wait: Option<ModelWait>,
}

impl WriteRequest for NoteModelWait {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let text = self.wait.as_ref().and_then(|wait| wait.for_row(self.fence));
        let fence = i64::try_from(self.fence).unwrap_or(i64::MAX);
        transaction
            .connection
            .prepare_cached("UPDATE runs SET error = ?3 WHERE run_id = ?1 AND fence = ?2 AND status = 'running'")?
            .execute(params![self.run_id, fence, text])?;
        Ok(())
    }
}

/// The statements that read the queue.
#[cfg(test)]
pub(super) fn statements() -> [&'static str; 2] {
    [QUEUE, OF_SHARE]
}
