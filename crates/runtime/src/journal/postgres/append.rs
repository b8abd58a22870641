//! Appends: one statement ([`super::append_statements`]) for many runs of this driver, committed in one round trip. While
//! statements are under way, the next events gather ([`super::append_queue`]).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::Type;

use super::append_parameters::AppendParameters;
use super::append_queue::{AppendQueue, MOST_EVENTS, QueuedAppend};
use super::database::Database;
use super::trouble::StatementFailure;
use crate::journal::{Append, StoreFault, failpoint};

/// What became of events that were not inserted: the fence and the driver of each run, and what is there in their place.
const SELECT_REFUSED: &str = "
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

/// Appends what comes, until nothing can come any more.
pub(super) async fn run(database: Arc<Database>, mut inbox: mpsc::UnboundedReceiver<QueuedAppend>) {
    let mut queue = AppendQueue::default();
    let mut under_way = FuturesUnordered::new();
    let mut is_open = true;
    while is_open || !under_way.is_empty() {
        let has_room = queue.waiting.len() < MOST_EVENTS;
        tokio::select! {
            Some(run_ids) = under_way.next() => queue.done(run_ids),
            received = inbox.recv_many(&mut queue.waiting, MOST_EVENTS), if is_open && has_room => is_open = received > 0,
        }
        while let Some(batch) = queue.next_batch() {
            under_way.push(database.append_batch(batch));
        }
    }
}

impl Database {
    /// Appends events, and answers; returns their runs.
    async fn append_batch(&self, queued: Vec<QueuedAppend>) -> Vec<String> {
        let run_ids = queued.iter().map(|append| append.entry.run_id.clone()).collect();
        let batch = self.admitted(queued).await;
        if !batch.is_empty() {
            self.append(batch).await;
        }
        run_ids
    }

    /// The events that are the next ones of runs that this driver has; the others are refused.
    async fn admitted(&self, queued: Vec<QueuedAppend>) -> Vec<WaitingAppend> {
        let mut batch = Vec::with_capacity(queued.len());
        for QueuedAppend { entry, asker } in queued {
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
        let parameters = AppendParameters::of(self.me, batch);
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
        let rows = self.writer.query(SELECT_REFUSED, &[(&runs, Type::INT8_ARRAY), (&seqs, Type::INT4_ARRAY)]).await?;
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
