//! Leases of runs: of one by its id, of those that wait in the queue, and of callbacks that are due.

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::connection::Parameter;
use super::database::Database;
use super::database_errors::StatementError;
use super::line::may_be_driven;
use crate::journal::column_words::known;
use crate::journal::{
    CALLBACK_LEASE, ClaimedRun, Lease, MOST_FAILED_TAKE_UPS, QueueQuery, QueueShare, QueuedRuns, RunHead, StoreError,
};

/// Whether a living driver has a run, or posts its callback.
macro_rules! lives {
    ($driver:literal) => {
        concat!("EXISTS (SELECT 1 FROM @.drivers d WHERE d.driver = ", $driver, " AND d.until > clock_timestamp())")
    };
}
pub(super) use lives;

/// The runs that wait for a driver. `$1` is the time, `$2` the runs that the caller does not want, `$3` the caller: it
/// never gets what it has itself, nor runs of another folder while a living driver serves that. The number is [`MOST_FAILED_TAKE_UPS`].
macro_rules! waiting {
    () => {
        concat!(
            "r.called_by IS NULL AND (r.status = 'running' OR r.due_at_ms IS NOT NULL)
             AND (r.status = 'running' AND (r.failed_take_ups < 3 OR r.driver IS NOT NULL)
               OR r.status = 'paused' AND r.due_at_ms <= $1)
             AND r.run_id <> ALL ($2::text[]) AND r.format <= 1
             AND (r.driver IS NULL OR r.driver <> $3 AND NOT ",
            lives!("r.driver"),
            ") AND NOT (r.folder IS NOT NULL
                AND r.folder IS DISTINCT FROM (SELECT m.folder FROM @.drivers m WHERE m.driver = $3)
                AND EXISTS (SELECT 1 FROM @.drivers f WHERE f.folder = r.folder AND f.until > clock_timestamp()))
             AND ",
            may_be_driven!()
        )
    };
}
const _: () = assert!(MOST_FAILED_TAKE_UPS == 3);

const QUEUE: &str = concat!(
    "SELECT r.org, r.token, count(*), min(CASE r.status WHEN 'paused' THEN greatest(r.due_at_ms, r.updated_at_ms)
       ELSE greatest(r.progress_at_ms, r.updated_at_ms) END)
     FROM @.runs r WHERE ",
    waiting!(),
    " GROUP BY 1, 2 ORDER BY min(r.id)"
);
/// The runs of drivers whose leases are over only if `$8` says so, and never while the own lease is over: when the clock
/// of the database jumps, the leases of all are over at once, and runs would go from one to the other until each is
/// renewed.
const CLAIM: &str = concat!(
    "WITH old AS MATERIALIZED (SELECT r.id, r.driver FROM @.runs r WHERE ",
    waiting!(),
    " AND (r.driver IS NULL OR $8 AND ",
    lives!("$3"),
    ") AND r.org IS NOT DISTINCT FROM $5 AND r.token IS NOT DISTINCT FROM $6
      ORDER BY r.id LIMIT $7 FOR UPDATE SKIP LOCKED)
    UPDATE @.runs r SET fence = r.fence + 1, driver = $3, claim = $4 FROM old WHERE r.id = old.id
    RETURNING r.id, r.run_id, r.fence, old.driver IS NOT NULL, r.session"
);
const LEASE: &str = concat!(
    "WITH old AS MATERIALIZED (SELECT r.id, r.driver FROM @.runs r WHERE r.run_id = $1
       AND (r.driver IS NULL OR r.driver <> $2 AND NOT ",
    lives!("r.driver"),
    ") FOR UPDATE)
    UPDATE @.runs r SET fence = r.fence + 1, driver = $2, claim = $3 FROM old WHERE r.id = old.id
    RETURNING r.id, r.run_id, r.fence, old.driver IS NOT NULL, r.session"
);
/// Runs that were leased by this request, although the answer was lost.
const CLAIMED: &str =
    "SELECT r.id, r.run_id, r.fence, true, r.session FROM @.runs r WHERE r.driver = $1 AND r.claim = $2 ORDER BY r.id";
const THERE: &str = "SELECT id FROM @.runs WHERE run_id = $1";
/// How many events each run has, and the count of drivers that died of it. A statement of its own: the update before it
/// may have waited for an append of the old driver, and its own view of the events is older.
const TAKE_UP: &str = "
WITH own AS (
  SELECT r.id, r.take_up_fence IS DISTINCT FROM r.fence AS fresh, t.died,
    (SELECT coalesce(max(e.seq) + 1, 0) FROM @.events e WHERE e.run = r.id) AS events,
    (SELECT coalesce(sum((SELECT max(e.seq) + 1 FROM @.events e WHERE e.run = b.id)), 0) FROM @.runs b
      WHERE b.called_by IS NOT NULL AND b.run_id > r.run_id || '.' AND b.run_id < r.run_id || '/') AS below,
    (SELECT count(*) FROM @.runs b WHERE b.status = 'running'
      AND b.called_by IS NOT NULL AND b.run_id > r.run_id || '.' AND b.run_id < r.run_id || '/') AS under_way
  FROM unnest($1::bigint[], $2::bigint[], $3::bool[]) AS t(id, fence, died)
  JOIN @.runs r ON r.id = t.id AND r.fence = t.fence AND r.driver = $4
), noted AS (
  UPDATE @.runs r SET take_up_fence = r.fence, take_up_events = own.events + own.below + own.under_way + 1,
    failed_take_ups = CASE WHEN r.take_up_events IS NULL OR own.events + own.below > r.take_up_events THEN 0
      WHEN own.died THEN r.failed_take_ups + 1 ELSE r.failed_take_ups END
  FROM own WHERE r.id = own.id AND own.fresh RETURNING r.id, r.failed_take_ups
)
SELECT own.id, own.events::bigint, coalesce(noted.failed_take_ups, r.failed_take_ups)
FROM own JOIN @.runs r ON r.id = own.id LEFT JOIN noted ON noted.id = own.id";
const HEADS: &str = concat!(
    "SELECT r.run_id, (SELECT coalesce(max(e.seq) + 1, 0) FROM @.events e WHERE e.run = r.id)::bigint,
       CASE WHEN r.status = 'running' AND r.failed_take_ups >= 3 AND r.driver IS NULL THEN 'quarantined' ELSE r.status END, ",
    lives!("r.driver"),
    " FROM @.runs r WHERE r.run_id = ANY ($1)"
);
const CALLBACKS: &str = concat!(
    "WITH due AS MATERIALIZED (SELECT r.id FROM @.runs r
       WHERE r.callback = 'pending' AND r.status <> 'running' AND r.callback_at IS NOT NULL
         AND (r.callback_at <= clock_timestamp() OR r.callback_by IS NULL OR NOT ",
    lives!("r.callback_by"),
    ") ORDER BY r.id LIMIT $1 FOR UPDATE SKIP LOCKED)
    UPDATE @.runs r SET callback_at = clock_timestamp() + $2 * interval '1 ms', callback_by = $3
    FROM due WHERE r.id = due.id RETURNING r.run_id"
);

/// A run that was taken, before its events are counted.
struct TakenRow {
    row: i64,
    run_id: String,
    fence: i64,
    died: bool,
    session: Option<String>,
}

impl TakenRow {
    fn of(row: &tokio_postgres::Row) -> Result<Self, StatementError> {
        let (row, run_id, fence, died, session) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        Ok(Self { row, run_id, fence, died, session })
    }
}

impl Database {
    /// The key of a run.
    pub(super) async fn find_key(&self, run_id: &str) -> Result<Option<i64>, StoreError> {
        let rows = self.persist(|| async {
            let rows = self.quick.query(THERE, &[(&run_id, Type::TEXT)]).await?;
            Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
        });
        rows.await
    }

    pub(super) async fn lease(&self, run_id: String) -> Result<Lease, StoreError> {
        self.ensure().await?;
        let nonce = Uuid::now_v7();
        let taken = self.persist(|| async {
            // A sending whose answer was lost may have taken it.
            let claimed = self.quick.query(CLAIMED, &[(&self.me, Type::UUID), (&nonce, Type::UUID)]).await?;
            if let Some(row) = claimed.first() {
                return TakenRow::of(row).map(Some);
            }
            let parameters: [Parameter<'_>; 3] = [(&run_id, Type::TEXT), (&self.me, Type::UUID), (&nonce, Type::UUID)];
            self.quick.query(LEASE, &parameters).await?.first().map(TakenRow::of).transpose()
        });
        match taken.await? {
            Some(taken) => match self.take_up(vec![taken]).await?.into_iter().next() {
                Some(claimed) => claimed.1,
                None => Err(StoreError::Fenced(run_id)),
            },
            None if self.find_key(&run_id).await?.is_some() => Err(StoreError::Driven(run_id)),
            None => Err(StoreError::NoSuchRun(run_id)),
        }
    }

    /// Counts the events of runs that were taken, and records that this driver has them.
    async fn take_up(&self, taken: Vec<TakenRow>) -> Result<Vec<(String, Result<Lease, StoreError>)>, StoreError> {
        let rows: Vec<i64> = taken.iter().map(|taken| taken.row).collect();
        let fences: Vec<i64> = taken.iter().map(|taken| taken.fence).collect();
        let died: Vec<bool> = taken.iter().map(|taken| taken.died).collect();
        let counted = self.persist(|| async {
            let parameters: [Parameter<'_>; 4] = [
                (&rows, Type::INT8_ARRAY),
                (&fences, Type::INT8_ARRAY),
                (&died, Type::BOOL_ARRAY),
                (&self.me, Type::UUID),
            ];
            let mut counted: Vec<(i64, i64, i32)> = Vec::new();
            for row in self.quick.query(TAKE_UP, &parameters).await? {
                counted.push((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
            }
            Ok(counted)
        });
        let counted = counted.await?;
        let mut leased = Vec::with_capacity(taken.len());
        for TakenRow { row, run_id, fence, session, .. } in taken {
            // Another driver may have taken it since: this one was slow.
            let Some((_, events, failed)) = counted.iter().find(|(of, _, _)| *of == row) else { continue };
            let fence = u64::try_from(fence).unwrap_or_default();
            if *events < 1 {
                drop(self.release(run_id.clone(), fence).await);
                leased.push((run_id.clone(), Err(StoreError::cut_short(&run_id))));
                continue;
            }
            let (events, failed_take_ups) =
                (u64::try_from(*events).unwrap_or_default(), u32::try_from(*failed).unwrap_or_default());
            self.held.granted(&run_id, row, (fence, events), session);
            leased.push((run_id, Ok(Lease { fence, events, failed_take_ups })));
        }
        Ok(leased)
    }

    pub(super) async fn queue(&self, waiting: QueueQuery) -> Result<Vec<QueuedRuns>, StoreError> {
        let QueueQuery { now_ms, except } = &waiting;
        let queued = self.persist(|| async {
            let parameters: [Parameter<'_>; 3] =
                [(now_ms, Type::INT8), (except, Type::TEXT_ARRAY), (&self.me, Type::UUID)];
            let mut queued = Vec::new();
            for row in self.quick.query(QUEUE, &parameters).await? {
                let runs: i64 = row.try_get(2)?;
                let runs = u64::try_from(runs).unwrap_or_default();
                let since_ms = row.try_get(3)?;
                queued.push(QueuedRuns { org: row.try_get(0)?, token: row.try_get(1)?, runs, since_ms });
            }
            Ok(queued)
        });
        queued.await
    }

    pub(super) async fn claim(
        &self,
        waiting: QueueQuery,
        shares: Vec<QueueShare>,
    ) -> Result<Vec<ClaimedRun>, StoreError> {
        self.ensure().await?;
        let mut claimed = Vec::new();
        for share in shares {
            let taken = self.claim_share(&waiting, &share).await?;
            let leased = if taken.is_empty() { Vec::new() } else { self.take_up(taken).await? };
            claimed.extend(leased.into_iter().map(|(run_id, lease)| ClaimedRun {
                run_id,
                org: share.org.clone(),
                token: share.token.clone(),
                lease,
            }));
        }
        Ok(claimed)
    }

    async fn claim_share(&self, waiting: &QueueQuery, share: &QueueShare) -> Result<Vec<TakenRow>, StoreError> {
        let QueueQuery { now_ms, except } = waiting;
        let held = self.held.all().into_iter().map(|(run_id, _)| run_id);
        // In a database that went back, numbers come again: what this driver holds it never claims.
        let except: Vec<String> = except.iter().cloned().chain(held).collect();
        let (nonce, most) = (Uuid::now_v7(), i64::try_from(share.runs).unwrap_or(i64::MAX));
        let taken = self.persist(|| async {
            let mut rows = self.quick.query(CLAIMED, &[(&self.me, Type::UUID), (&nonce, Type::UUID)]).await?;
            if rows.is_empty() {
                rows = self
                    .quick
                    .query(
                        CLAIM,
                        &[
                            (now_ms, Type::INT8),
                            (&except, Type::TEXT_ARRAY),
                            (&self.me, Type::UUID),
                            (&nonce, Type::UUID),
                            (&share.org, Type::TEXT),
                            (&share.token, Type::TEXT),
                            (&most, Type::INT8),
                            (&self.may_take_over(), Type::BOOL),
                        ],
                    )
                    .await?;
            }
            let mut taken = rows.iter().map(TakenRow::of).collect::<Result<Vec<_>, _>>()?;
            taken.sort_by_key(|taken| taken.row);
            Ok(taken)
        });
        taken.await
    }

    pub(super) async fn heads(&self, run_ids: Vec<String>) -> Result<Vec<RunHead>, StoreError> {
        let heads = self.persist(|| async {
            let mut heads = Vec::new();
            for row in self.quick.query(HEADS, &[(&run_ids, Type::TEXT_ARRAY)]).await? {
                let (events, status): (i64, String) = (row.try_get(1)?, row.try_get(2)?);
                let status = known(&status).map_err(|_| StoreError::Corrupt(format!("there is no status {status}")))?;
                let events = u64::try_from(events).unwrap_or_default();
                heads.push(RunHead { run_id: row.try_get(0)?, events, status, driven: row.try_get(3)? });
            }
            Ok(heads)
        });
        heads.await
    }

    pub(super) async fn claim_callbacks(&self, most: usize) -> Result<Vec<String>, StoreError> {
        self.ensure().await?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let lease_ms = f64::from(u32::try_from(CALLBACK_LEASE.as_millis()).unwrap_or(u32::MAX));
        let claimed = self.persist(|| async {
            let parameters: [Parameter<'_>; 3] =
                [(&most, Type::INT8), (&lease_ms, Type::FLOAT8), (&self.me, Type::UUID)];
            let mut claimed = Vec::new();
            for row in self.quick.query(CALLBACKS, &parameters).await? {
                claimed.push(row.try_get(0)?);
            }
            Ok(claimed)
        });
        claimed.await
    }
}
