//! Appends: one statement for all runs of this driver that wait. It checks the fence of each run, its driver and the
//! order of its events, and is committed in one round trip. While one statement is under way, the next ones gather.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::Type;

use super::append_parameters::AppendParameters;
use super::batch::gather;
use super::database::Database;
use super::trouble::StatementFailure;
use crate::journal::{Append, StoreFault, failpoint};

/// The most events in a statement.
const MOST_EVENTS: usize = 512;

/// The statement. `FOR SHARE` stands against the update of another driver that takes the run: the append is before it
/// and the new driver reads it, or behind it and finds another fence. The look at the event before keeps the order,
/// and finds a database that lost events. Both are look-ups of a row for each event: as joins they would be compared
/// with each other. `IS NOT DISTINCT FROM` keeps the planner from looking at all runs of this driver for each event.
pub(super) const APPEND: &str = "
WITH a AS MATERIALIZED (
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::bytea[], $7::text[],
    $28::text[]) AS a(run, fence, seq, before, sum, event, token, decision)
), ok AS MATERIALIZED (
  SELECT a.* FROM a CROSS JOIN LATERAL (
    SELECT 1 FROM @.runs r WHERE r.id = a.run AND r.fence = a.fence AND r.driver IS NOT DISTINCT FROM $8 FOR SHARE) r
  WHERE (SELECT e.seq FROM @.events e WHERE e.run = a.run AND e.seq = a.before) IS NOT NULL
    AND (a.token IS NULL OR (
      SELECT 1 FROM @.answer_tokens t WHERE t.hash = a.token AND t.run = a.run AND NOT t.used) IS NOT NULL)
), ins AS (
  INSERT INTO @.events (run, seq, fence, sum, event) SELECT run, seq, fence, sum, event FROM ok
  ON CONFLICT (run, seq) DO NOTHING RETURNING run, seq
), tokens AS (
  UPDATE @.answer_tokens SET used = true
  WHERE hash IN (SELECT a.token FROM a JOIN ins USING (run, seq) WHERE a.token IS NOT NULL)
), decided AS (
  DELETE FROM @.decisions d USING a JOIN ins USING (run, seq)
  WHERE a.decision IS NOT NULL AND d.run = a.run AND d.id = a.decision
), kept AS (
  INSERT INTO @.texts (sha256, text)
  SELECT sha256, text FROM unnest($9::bytea[], $10::bytea[]) AS t(sha256, text) ORDER BY 1 ON CONFLICT DO NOTHING
), named AS (
  INSERT INTO @.run_texts (run, sha256)
  SELECT run, sha256 FROM unnest($11::bigint[], $12::bytea[]) AS t(run, sha256)
  WHERE run IN (SELECT run FROM ins) ON CONFLICT DO NOTHING
), memory AS (
  INSERT INTO @.session_memory (session, key, value)
  SELECT session, key, value FROM unnest($13::bigint[], $14::text[], $15::bytea[], $16::bytea[]) AS m(run, session, key, value)
  WHERE run IN (SELECT run FROM ins) ORDER BY 1, 2
  ON CONFLICT (session, key) DO UPDATE SET value = excluded.value
), standing AS (
  UPDATE @.runs r SET
    status = coalesce(s.status, r.status),
    termination = CASE WHEN s.status IS NULL THEN r.termination ELSE s.termination END,
    iterations = coalesce(s.iterations, r.iterations),
    updated_at_ms = coalesce(s.at_ms, r.updated_at_ms),
    due_at_ms = CASE WHEN s.status IS NULL THEN r.due_at_ms
      WHEN s.status = 'paused' AND EXISTS (SELECT 1 FROM @.decisions d
        WHERE d.run = r.id AND d.refused IS NULL AND (d.id = ANY ($28::text[])) IS NOT TRUE) THEN 0
      ELSE s.due_at_ms END,
    callback_at = CASE WHEN s.status IS NULL THEN r.callback_at
      WHEN s.posts THEN clock_timestamp() + $26 * interval '1 ms' END,
    callback_by = $8,
    cancel_requested = r.cancel_requested AND NOT s.reopens,
    cancel_reason = CASE WHEN s.reopens THEN NULL ELSE r.cancel_reason END,
    callback_tries = CASE WHEN s.reopens THEN 0 ELSE r.callback_tries END,
    callback = CASE WHEN s.reopens AND r.callback IS NOT NULL THEN 'pending' ELSE r.callback END,
    failed_take_ups = CASE WHEN s.releases AND r.take_up_events < s.events THEN 0 ELSE r.failed_take_ups END,
    driver = CASE WHEN s.releases THEN NULL ELSE r.driver END
  FROM unnest($17::bigint[], $18::text[], $19::text[], $20::int[], $21::bigint[], $22::bigint[], $23::bool[], $24::bool[],
    $25::bool[], $27::bigint[]) AS s(run, status, termination, iterations, at_ms, due_at_ms, posts, reopens, releases, events)
  WHERE r.id = s.run AND s.run IN (SELECT run FROM ins)
)
SELECT run, seq FROM ins";

/// What became of events that were not inserted: the fence and the driver of each run, and what is there in their place.
const LOOK: &str = "
SELECT a.run, a.seq, r.fence, r.driver, e.fence, e.sum, e.event
FROM unnest($1::bigint[], $2::int[]) AS a(run, seq)
LEFT JOIN @.runs r ON r.id = a.run LEFT JOIN @.events e ON e.run = a.run AND e.seq = a.seq";

/// The number of the next event of a run.
const NEXT: &str = "SELECT coalesce(max(seq) + 1, 0)::bigint FROM @.events WHERE run = $1";

/// An event that waits for its commit.
pub(super) struct WaitingAppend {
    pub entry: Append,
    /// The run's key, and its session.
    pub row: i64,
    pub session: Option<String>,
    asker: oneshot::Sender<Result<(), StoreFault>>,
}

/// What waits to be appended.
pub(super) type AppendInbox = mpsc::UnboundedReceiver<(Append, oneshot::Sender<Result<(), StoreFault>>)>;

/// Appends what comes, until nothing can come any more.
pub(super) async fn run(database: Arc<Database>, mut inbox: AppendInbox) {
    while let Some(waiting) = gather(&mut inbox, MOST_EVENTS, |(entry, _)| entry.event.len()).await {
        let batch = database.admitted(waiting).await;
        if !batch.is_empty() {
            database.append(batch).await;
        }
    }
}

impl Database {
    /// The events that are the next ones of runs that this driver has; the others are refused.
    async fn admitted(&self, waiting: Vec<(Append, oneshot::Sender<Result<(), StoreFault>>)>) -> Vec<WaitingAppend> {
        let mut batch = Vec::with_capacity(waiting.len());
        for (entry, asker) in waiting {
            match self.admit(&entry).await {
                Ok((row, session)) => batch.push(WaitingAppend { entry, row, session, asker }),
                // A caller who has gone wants no answer.
                Err(fault) => drop(asker.send(Err(fault))),
            }
        }
        batch
    }

    async fn admit(&self, entry: &Append) -> Result<(i64, Option<String>), StoreFault> {
        let Append { run_id, fence, seq, .. } = entry;
        let Some(held) = self.held.held_by(run_id, *fence) else {
            let there = self.find_key(run_id).await?;
            let fenced = StoreFault::Fenced(run_id.clone());
            return Err(if there.is_some() { fenced } else { StoreFault::NoSuchRun(run_id.clone()) });
        };
        let next = match held.next {
            Some(next) => next,
            None => self.next_event(held.row).await?,
        };
        if next != *seq {
            self.held.set_next(run_id, *fence, Some(next));
            return Err(StoreFault::out_of_order(run_id, *seq, next));
        }
        self.held.set_next(run_id, *fence, Some(next + 1));
        Ok((held.row, held.session))
    }

    async fn next_event(&self, row: i64) -> Result<u64, StoreFault> {
        let next = self.persist(|| async move {
            let rows = self.quick.query(NEXT, &[(&row, Type::INT8)]).await?;
            Ok(rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default())
        });
        Ok(u64::try_from(next.await?).unwrap_or_default())
    }

    /// Appends a batch, and answers.
    async fn append(&self, batch: Vec<WaitingAppend>) {
        if cfg!(debug_assertions) {
            reach(batch.len(), failpoint::BEFORE_WRITE);
        }
        match self.append_all(&batch).await {
            // One of them may break the statement for all.
            Err(StatementFailure::Database { .. } | StatementFailure::Undone(_)) if batch.len() > 1 => {
                for alone in by_run(batch) {
                    let done = self.append_all(&alone).await;
                    self.settle(alone, done);
                }
            }
            done => self.settle(batch, done),
        }
    }

    fn settle(&self, batch: Vec<WaitingAppend>, done: Result<Vec<Result<(), StoreFault>>, StatementFailure>) {
        let done = done.unwrap_or_else(|trouble| {
            let fault = trouble.into_fault();
            batch.iter().map(|_| Err(fault.clone())).collect()
        });
        let written = done.iter().filter(|done| done.is_ok()).count();
        batch.iter().filter(|_| cfg!(debug_assertions)).for_each(|append| failpoint::written(&append.entry.event));
        reach(written, failpoint::AFTER_SYNC);
        failpoint::count_appended(u64::try_from(written).unwrap_or(0));
        failpoint::way();
        batch.into_iter().zip(done).for_each(|(append, done)| self.answer(append, done));
    }

    fn answer(&self, append: WaitingAppend, done: Result<(), StoreFault>) {
        let WaitingAppend { entry, asker, .. } = append;
        match &done {
            Ok(()) if entry.release => self.held.lost(&entry.run_id, entry.fence),
            Ok(()) => {}
            Err(StoreFault::Fenced(_) | StoreFault::WentBack(_)) => self.held.lost(&entry.run_id, entry.fence),
            Err(_) => self.held.set_next(&entry.run_id, entry.fence, None),
        }
        // A caller who has gone wants no answer.
        drop(asker.send(done));
    }

    /// What became of each event.
    async fn append_all(&self, batch: &[WaitingAppend]) -> Result<Vec<Result<(), StoreFault>>, StatementFailure> {
        let parameters = AppendParameters::of(batch);
        self.persist_batch(batch.len(), || async {
            let inserted = parameters.send(self).await?;
            self.outcomes(batch, &inserted).await
        })
        .await
    }

    /// What became of each event: those that were not inserted are looked at.
    async fn outcomes(
        &self,
        batch: &[WaitingAppend],
        inserted: &HashSet<(i64, i32)>,
    ) -> Result<Vec<Result<(), StoreFault>>, StatementFailure> {
        let missing: Vec<&WaitingAppend> =
            batch.iter().filter(|append| !inserted.contains(&(append.row, seq(append)))).collect();
        if missing.is_empty() {
            return Ok(batch.iter().map(|_| Ok(())).collect());
        }
        let runs: Vec<i64> = missing.iter().map(|append| append.row).collect();
        let seqs: Vec<i32> = missing.iter().map(|append| seq(append)).collect();
        let rows = self.writer.query(LOOK, &[(&runs, Type::INT8_ARRAY), (&seqs, Type::INT4_ARRAY)]).await?;
        let mut looked: HashMap<(i64, i32), Result<(), StoreFault>> = HashMap::new();
        for row in rows {
            let key: (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
            let Some(append) = missing.iter().find(|append| (append.row, seq(append)) == key) else { continue };
            let entry = &append.entry;
            let run_id = || entry.run_id.clone();
            let fence: Option<i64> = row.try_get(2)?;
            let driver: Option<uuid::Uuid> = row.try_get(3)?;
            let there: Option<(i64, Vec<u8>)> = match row.try_get::<_, Option<i64>>(4)? {
                Some(fence) => Some((fence, row.try_get(6)?)),
                None => None,
            };
            let mine = fence.and_then(|fence| u64::try_from(fence).ok()) == Some(entry.fence);
            let is_it = there.as_ref().is_some_and(|(fence, event)| {
                u64::try_from(*fence) == Ok(entry.fence) && event == entry.event.as_bytes()
            });
            looked.insert(
                key,
                match (mine, is_it) {
                    // The answer to an earlier sending was lost.
                    (true, true) => Ok(()),
                    (false, _) => Err(StoreFault::Fenced(run_id())),
                    (true, false) if driver != Some(self.me) => Err(StoreFault::Fenced(run_id())),
                    (true, false) if there.is_some() => Err(StoreFault::WentBack(run_id())),
                    (true, false) if entry.answer_token.is_some() => Err(StoreFault::TokenUsed(run_id())),
                    (true, false) => Err(StoreFault::WentBack(run_id())),
                },
            );
        }
        let fenced = |append: &WaitingAppend| Err(StoreFault::Fenced(append.entry.run_id.clone()));
        let outcome = |append: &WaitingAppend| {
            let key = (append.row, seq(append));
            if inserted.contains(&key) { Ok(()) } else { looked.remove(&key).unwrap_or_else(|| fenced(append)) }
        };
        let mut outcome = outcome;
        Ok(batch.iter().map(&mut outcome).collect())
    }
}

/// The number of an event.
pub(super) fn seq(append: &WaitingAppend) -> i32 {
    i32::try_from(append.entry.seq).unwrap_or(i32::MAX)
}

/// The parts of a batch, one for each run, in their order.
fn by_run(batch: Vec<WaitingAppend>) -> Vec<Vec<WaitingAppend>> {
    let mut parts: Vec<Vec<WaitingAppend>> = Vec::new();
    for append in batch {
        match parts.iter_mut().find(|part| part.first().is_some_and(|first| first.row == append.row)) {
            Some(part) => part.push(append),
            None => parts.push(vec![append]),
        }
    }
    parts
}

/// Passes a fail point for each of the next `events` events.
fn reach(events: usize, point: &str) {
    if cfg!(debug_assertions) {
        for offset in 0..u64::try_from(events).unwrap_or(0) {
            failpoint::hit("journal", failpoint::appended() + offset, point);
        }
    }
}
