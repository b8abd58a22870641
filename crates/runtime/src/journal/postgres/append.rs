//! Appends: one statement for many runs of this driver, committed in one round trip. While statements are under way, the
//! next events gather in the [`AppendQueue`].
//!
//! There are three statements, because parts that have nothing to do cost more than the events of a small batch. All take
//! the same parameters, as far as their texts name them. Each checks the fence of each run, its driver and the order of its
//! events.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::audit::AuditColumns;
use super::batch::MOST_BYTES;
use super::columns::{NumberedStatement, columns, statement_parameters};
use super::database::Database;
use super::database_errors::StatementError;
use super::record_columns::RecordColumns;
use super::writes::{milliseconds, sha256};
use crate::journal::column_words::sum;
use crate::journal::{Append, CALLBACK_LEASE, StoreError, failpoint};

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
    /// Who waits; none for an event that is stored together with the one behind it.
    asker: Option<oneshot::Sender<Result<(), StoreError>>>,
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
        for QueuedAppend { entry, rest, asker } in queued {
            let (last, mut asker) = (rest.len(), Some(asker));
            for (number, entry) in std::iter::once(entry).chain(rest).enumerate() {
                match self.admit(&entry).await {
                    Ok((row, session)) => {
                        let asker = if number == last { asker.take() } else { None };
                        batch.push(WaitingAppend { entry, row, session, asker });
                    }
                    Err(fault) => {
                        // A caller who has gone wants no answer.
                        drop(asker.take().map(|asker| asker.send(Err(fault))));
                        break;
                    }
                }
            }
        }
        batch
    }

    async fn admit(&self, entry: &Append) -> Result<(i64, Option<String>), StoreError> {
        let Append { run_id, fence, seq, .. } = entry;
        let Some(held) = self.held.held_by(run_id, *fence) else {
            let there = self.find_key(run_id).await?;
            let fenced = StoreError::Fenced(run_id.clone());
            return Err(if there.is_some() { fenced } else { StoreError::NoSuchRun(run_id.clone()) });
        };
        let next = match held.next {
            Some(next) => next,
            None => self.next_event(held.row).await?,
        };
        if next != *seq {
            self.held.set_next(run_id, *fence, Some(next));
            return Err(StoreError::out_of_order(run_id, *seq, next));
        }
        self.held.set_next(run_id, *fence, Some(next + 1));
        Ok((held.row, held.session))
    }

    async fn next_event(&self, row: i64) -> Result<u64, StoreError> {
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
            Err(StatementError::Database { .. } | StatementError::Undone(_)) if batch.len() > 1 => {
                for alone in by_run(batch) {
                    let done = self.append_all(&alone).await;
                    self.settle(alone, done);
                }
            }
            done => self.settle(batch, done),
        }
    }

    fn settle(&self, batch: Vec<WaitingAppend>, done: Result<Vec<Result<(), StoreError>>, StatementError>) {
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

    fn answer(&self, append: WaitingAppend, done: Result<(), StoreError>) {
        let WaitingAppend { entry, asker, .. } = append;
        if entry.reopens || entry.takes_cancel {
            self.held.forget_requests(&entry.run_id, entry.fence);
        }
        match &done {
            Ok(()) if entry.release => self.held.lost(&entry.run_id, entry.fence),
            Ok(()) => {}
            Err(StoreError::Fenced(_) | StoreError::WentBack(_)) => self.held.lost(&entry.run_id, entry.fence),
            Err(_) => self.held.set_next(&entry.run_id, entry.fence, None),
        }
        // A caller who has gone wants no answer.
        drop(asker.map(|asker| asker.send(done)));
    }

    /// What became of each event.
    async fn append_all(&self, batch: &[WaitingAppend]) -> Result<Vec<Result<(), StoreError>>, StatementError> {
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
    ) -> Result<Vec<Result<(), StoreError>>, StatementError> {
        let missing: Vec<&WaitingAppend> =
            batch.iter().filter(|append| !inserted.contains(&(append.row, seq(append)))).collect();
        if missing.is_empty() {
            return Ok(batch.iter().map(|_| Ok(())).collect());
        }
        let runs: Vec<i64> = missing.iter().map(|append| append.row).collect();
        let seqs: Vec<i32> = missing.iter().map(|append| seq(append)).collect();
        let rows = self.writer.query(SELECT_REFUSED, &[(&runs, Type::INT8_ARRAY), (&seqs, Type::INT4_ARRAY)]).await?;
        let mut looked: HashMap<(i64, i32), Result<(), StoreError>> = HashMap::new();
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
                    (false, _) => Err(StoreError::Fenced(run_id())),
                    (true, false) if driver != Some(self.me) => Err(StoreError::Fenced(run_id())),
                    (true, false) if there.is_some() => Err(StoreError::WentBack(run_id())),
                    (true, false) if entry.answer_token.is_some() => Err(StoreError::TokenUsed(run_id())),
                    (true, false) => Err(StoreError::WentBack(run_id())),
                },
            );
        }
        let fenced = |append: &WaitingAppend| Err(StoreError::Fenced(append.entry.run_id.clone()));
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

statement_parameters! {
    /// The parameters of one sending. What every statement takes comes first.
    pub(super) struct AppendParameters<'a> {
        a: EventColumns<'a>,
        me: Uuid,
        r: AppendedRowColumns,
        s: RecordColumns,
        lease_ms: f64,
        u: UsedUpColumns<'a>,
        t: TextColumns<'a>,
        n: AppendedTextColumns,
        m: MemoryColumns<'a>,
        x: AuditColumns<'a>,
    }
}

columns! {
    pub(super) struct EventColumns<'a> {
        run: i64,
        fence: i64,
        seq: i32,
        before: i32,
        sum: i64,
        event: &'a [u8],
    }
}

columns! {
    /// What each event uses up.
    pub(super) struct UsedUpColumns<'a> {
        token: Option<&'a str>,
        decision: Option<&'a str>,
    }
}

columns! {
    /// What the rows of runs become, beside their records.
    pub(super) struct AppendedRowColumns {
        run: i64,
        reopens: bool,
        takes_cancel: bool,
        releases: bool,
        events: i64,
    }
}

columns! {
    /// Each text once, by its digest.
    pub(super) struct TextColumns<'a> {
        sha256: Vec<u8>,
        text: &'a [u8],
    }
}

columns! {
    /// Which run names which text.
    pub(super) struct AppendedTextColumns {
        run: i64,
        sha256: Vec<u8>,
    }
}

columns! {
    /// What sessions remember.
    pub(super) struct MemoryColumns<'a> {
        run: i64,
        session: &'a str,
        key: &'a [u8],
        value: Vec<u8>,
    }
}

/// A value of a session, and the run that sets it.
struct RememberedValue {
    run: i64,
    value: Vec<u8>,
}

impl<'a> AppendParameters<'a> {
    pub(super) fn of(me: Uuid, batch: &'a [WaitingAppend]) -> Self {
        let mut all = Self::without_events(me);
        // The events of one run follow each other: all are inserted, or none.
        let mut before: HashMap<i64, i32> = HashMap::new();
        let mut texts: BTreeMap<Vec<u8>, &'a [u8]> = BTreeMap::new();
        let mut memory: BTreeMap<(&'a str, &'a [u8]), RememberedValue> = BTreeMap::new();
        let mut rows: BTreeMap<i64, &WaitingAppend> = BTreeMap::new();
        for append in batch {
            let WaitingAppend { entry, row, session, .. } = append;
            let number = seq(append);
            all.a.run.push(*row);
            all.a.fence.push(i64::try_from(entry.fence).unwrap_or(i64::MAX));
            all.a.seq.push(number);
            all.a.before.push(*before.entry(*row).or_insert(number.saturating_sub(1)));
            all.a.sum.push(sum(&entry.run_id, i64::from(number), &entry.event));
            all.a.event.push(entry.event.as_bytes());
            all.u.token.push(entry.answer_token.as_deref());
            all.u.decision.push(entry.decision.as_deref());
            entry.audit.iter().for_each(|noted| all.x.add(*row, noted));
            for text in &entry.texts {
                let sha256 = sha256(text);
                all.n.run.push(*row);
                all.n.sha256.push(sha256.clone());
                texts.insert(sha256, text.as_bytes());
            }
            if let Some(session) = session {
                for (key, value) in &entry.remember {
                    let value = RememberedValue { run: *row, value: value.to_string().into_bytes() };
                    memory.insert((session, key.as_bytes()), value);
                }
            }
            if entry.status_record.is_some() || entry.reopens || entry.takes_cancel || entry.release {
                rows.insert(*row, append);
            }
        }
        (all.t.sha256, all.t.text) = texts.into_iter().unzip();
        for ((session, key), RememberedValue { run, value }) in memory {
            all.m.run.push(run);
            all.m.session.push(session);
            all.m.key.push(key);
            all.m.value.push(value);
        }
        for append in rows.into_values() {
            all.add_row(append, batch);
        }
        all
    }

    fn without_events(me: Uuid) -> Self {
        Self {
            a: EventColumns::default(),
            me,
            r: AppendedRowColumns::default(),
            s: RecordColumns::default(),
            lease_ms: milliseconds(CALLBACK_LEASE),
            u: UsedUpColumns::default(),
            t: TextColumns::default(),
            n: AppendedTextColumns::default(),
            m: MemoryColumns::default(),
            x: AuditColumns::default(),
        }
    }

    /// What the events of a run in this batch change in its row; `last` is the last of them that changes it.
    fn add_row(&mut self, last: &WaitingAppend, batch: &[WaitingAppend]) {
        let of_run = || batch.iter().filter(|append| append.row == last.row).map(|append| &append.entry);
        self.s.push(of_run().filter_map(|entry| entry.status_record.as_ref()).next_back());
        self.r.run.push(last.row);
        self.r.reopens.push(of_run().any(|entry| entry.reopens));
        self.r.takes_cancel.push(of_run().any(|entry| entry.takes_cancel));
        self.r.releases.push(of_run().any(|entry| entry.release));
        self.r.events.push(i64::from(seq(last)).saturating_add(1));
    }

    fn extent(&self) -> AppendExtent {
        let Self { r, u, n, m, x, .. } = self;
        let is_more = !n.run.is_empty() || !m.run.is_empty() || !x.run.is_empty();
        if is_more || u.token.iter().any(Option::is_some) || u.decision.iter().any(Option::is_some) {
            AppendExtent::All
        } else if r.run.is_empty() {
            AppendExtent::Events
        } else {
            AppendExtent::Rows
        }
    }

    /// Sends the statement; what it inserted.
    pub(super) async fn send(&self, database: &Database) -> Result<HashSet<(i64, i32)>, StatementError> {
        let inserted = database.writer.query_numbered(self.extent().statement(), &self.parameters()).await?;
        inserted.iter().map(|row| Ok((row.try_get("run")?, row.try_get("seq")?))).collect()
    }
}

/// The most events in a statement.
pub(super) const MOST_EVENTS: usize = 512;
/// From this number on, events are worth a statement of their own while another one is under way: the database has the next one before
/// it has answered the last. Fewer wait, as one statement for all costs it less.
const MIN_EVENTS: usize = 16;

/// An event, what is committed together with it, and who waits for that.
pub(super) struct QueuedAppend {
    pub entry: Append,
    /// The events behind it of the same run.
    pub rest: Vec<Append>,
    pub asker: oneshot::Sender<Result<(), StoreError>>,
}

impl QueuedAppend {
    fn bytes(&self) -> usize {
        std::iter::once(&self.entry).chain(&self.rest).map(|entry| entry.event.len()).sum()
    }
}

/// The events that wait. The next event of a run waits for the one before it: a statement may be sent again, and another
/// one must not be done in between.
#[derive(Default)]
pub(super) struct AppendQueue {
    pub waiting: Vec<QueuedAppend>,
    /// The runs whose events are under way.
    busy: HashSet<String>,
    statements: usize,
}

impl AppendQueue {
    /// The events of the next statement, if one is due. They are under way until [`AppendQueue::done`].
    pub fn next_batch(&mut self) -> Option<Vec<QueuedAppend>> {
        let free = self.waiting.iter().filter(|append| !self.busy.contains(&append.entry.run_id)).count();
        let most = match self.statements {
            // Two statements in place of one, so that the second is there when the first is done.
            0 if free >= 2 * MIN_EVENTS => free.div_ceil(2),
            0 => free,
            1 if free >= MIN_EVENTS => free,
            _ => 0,
        };
        if most == 0 {
            return None;
        }
        let (mut batch, mut bytes) = (Vec::with_capacity(most), 0_usize);
        let mut left = Vec::new();
        for append in self.waiting.drain(..) {
            let is_free = batch.len() < most && bytes < MOST_BYTES && !self.busy.contains(&append.entry.run_id);
            if is_free {
                bytes = bytes.saturating_add(append.bytes());
                batch.push(append);
            } else {
                left.push(append);
            }
        }
        self.waiting = left;
        self.busy.extend(batch.iter().map(|append| append.entry.run_id.clone()));
        self.statements += 1;
        Some(batch)
    }

    /// A statement with events of these runs is done.
    pub fn done(&mut self, run_ids: Vec<String>) {
        for run_id in run_ids {
            self.busy.remove(&run_id);
        }
        self.statements = self.statements.saturating_sub(1);
    }
}

/// The events. `FOR SHARE` excludes the update of another driver that takes the run: the append is before it
/// and the new driver reads it, or behind it and finds another fence. The look at the event before keeps the order,
/// and finds a database that lost events. Both are look-ups of a row for each event: as joins they would be compared
/// with each other. `IS NOT DISTINCT FROM` keeps the planner from looking at all runs of this driver for each event.
macro_rules! inserted {
    () => {
        inserted!(
            "$a",
            ""
        )
    };
    ($from:literal, $and:literal) => {
        concat!(
            "INSERT INTO @.events (run, seq, fence, sum, event)
  SELECT a.run, a.seq, a.fence, a.sum, a.event FROM ",
            $from,
            " CROSS JOIN LATERAL (
    SELECT 1 FROM @.runs r WHERE r.id = a.run AND r.fence = a.fence AND r.driver IS NOT DISTINCT FROM $me FOR SHARE) r
  WHERE (SELECT e.seq FROM @.events e WHERE e.run = a.run AND e.seq = a.before) IS NOT NULL",
            $and,
            " ON CONFLICT (run, seq) DO NOTHING RETURNING run, seq"
        )
    };
}

/// The number with which runs that continue after their end join their lines: see the migration to version 13.
macro_rules! joins {
    () => {
        "joins AS (
  UPDATE @.loopctl SET line_joins = line_joins + 1 WHERE EXISTS (
    SELECT 1 FROM unnest($r.run, $r.reopens) AS q(run, reopens)
    WHERE q.reopens AND (SELECT l.line FROM @.runs l WHERE l.id = q.run) IS NOT NULL) RETURNING line_joins
)"
    };
}

/// Columns that become those of a new record, where there is one.
macro_rules! of_record {
    ($($column:literal),*) => {
        concat!($($column, " = CASE WHEN s.status IS NULL THEN r.", $column, " ELSE s.", $column, " END, "),*)
    };
}

/// The rows of the runs whose events were inserted. A run that pauses is due at once when a decision waits.
macro_rules! updated {
    ($unless_taken:literal) => {
        concat!(
            "UPDATE @.runs r SET
    status = coalesce(s.status, r.status),
    iterations = coalesce(s.iterations, r.iterations),
    updated_at_ms = CASE WHEN s.status IS NULL OR s.status = 'running' AND r.status = 'running' THEN r.updated_at_ms
      ELSE s.at_ms END,
    progress_at_ms = coalesce(s.at_ms, r.progress_at_ms),
    ",
            of_record!("termination", "waits_since_ms", "tokens", "cost_usd", "error", "question", "awaits"),
            "
    due_at_ms = CASE WHEN s.status IS NULL THEN r.due_at_ms
      WHEN s.status = 'paused' AND EXISTS (SELECT 1 FROM @.decisions d WHERE d.run = r.id AND d.refused IS NULL",
            $unless_taken,
            ") THEN 0
      ELSE s.due_at_ms END,
    callback_at = CASE WHEN s.status IS NULL THEN r.callback_at
      WHEN s.posts THEN clock_timestamp() + $lease_ms * interval '1 ms' END,
    callback_by = $me,
    cancel_requested = r.cancel_requested AND NOT (s.reopens OR s.takes_cancel),
    cancel_reason = CASE WHEN s.reopens OR s.takes_cancel THEN NULL ELSE r.cancel_reason END,
    cancel_by = CASE WHEN s.reopens OR s.takes_cancel THEN NULL ELSE r.cancel_by END,
    callback_tries = CASE WHEN s.reopens THEN 0 ELSE r.callback_tries END,
    callback = CASE WHEN s.reopens AND r.callback IS NOT NULL THEN 'pending' ELSE r.callback END,
    failed_take_ups = CASE WHEN s.releases AND r.take_up_events < s.events THEN 0 ELSE r.failed_take_ups END,
    driver = CASE WHEN s.releases THEN NULL ELSE r.driver END,
    place = CASE WHEN s.reopens AND r.line IS NOT NULL THEN (SELECT j.line_joins FROM joins j) * 1000 + s.number
      ELSE r.place END
  FROM unnest($r.values, $s.values) WITH ORDINALITY AS s($r.names, $s.names, number)
  WHERE r.id = s.run AND s.run IN (SELECT run FROM ins)"
        )
    };
}

/// What a batch of events changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AppendExtent {
    /// Nothing else.
    Events,
    /// The rows of runs.
    Rows,
    /// Also texts, memory, answer tokens or decisions.
    All,
}

impl AppendExtent {
    pub(super) fn statement(self) -> &'static NumberedStatement {
        match self {
            Self::Events => &EVENTS,
            Self::Rows => &EVENTS_AND_ROWS,
            Self::All => &EVENTS_AND_ALL,
        }
    }
}

static EVENTS: LazyLock<NumberedStatement> = LazyLock::new(|| AppendParameters::statement(inserted!()));

static EVENTS_AND_ROWS: LazyLock<NumberedStatement> = LazyLock::new(|| {
    AppendParameters::statement(concat!(
        "WITH ins AS (",
        inserted!(),
        "), ",
        joins!(),
        ", standing AS (",
        updated!(""),
        ") SELECT run, seq FROM ins"
    ))
});

static EVENTS_AND_ALL: LazyLock<NumberedStatement> = LazyLock::new(|| AppendParameters::statement(ALL));

const ALL: &str = concat!(
    "WITH a AS MATERIALIZED (
  SELECT * FROM unnest($a.values, $u.values) AS a($a.names, $u.names)
), ins AS (",
    inserted!(
        "a",
        " AND (a.token IS NULL OR (
      SELECT 1 FROM @.answer_tokens t WHERE t.hash = a.token AND t.run = a.run AND NOT t.used) IS NOT NULL)"
    ),
    "), tokens AS (
  UPDATE @.answer_tokens SET used = true
  WHERE hash IN (SELECT a.token FROM a JOIN ins USING (run, seq) WHERE a.token IS NOT NULL)
), decided AS (
  DELETE FROM @.decisions d USING a JOIN ins USING (run, seq)
  WHERE a.decision IS NOT NULL AND d.run = a.run AND d.id = a.decision
), kept AS (
  INSERT INTO @.texts (sha256, text) SELECT sha256, text FROM $t ORDER BY 1 ON CONFLICT DO NOTHING
), named AS (
  INSERT INTO @.run_texts (run, sha256) SELECT run, sha256 FROM $n WHERE run IN (SELECT run FROM ins) ON CONFLICT DO NOTHING
), memory AS (
  INSERT INTO @.session_memory (session, key, value)
  SELECT session, key, value FROM $m WHERE run IN (SELECT run FROM ins) ORDER BY 1, 2
  ON CONFLICT (session, key) DO UPDATE SET value = excluded.value
), audited AS (
  INSERT INTO @.audit (at_ms, action, actor, detail, run_id, loop_name, org)
  SELECT x.at_ms, x.action, x.actor, x.detail, r.run_id, r.loop_name, r.org
  FROM $x JOIN @.runs r ON r.id = x.run WHERE x.run IN (SELECT run FROM ins)
), ",
    joins!(),
    ", standing AS (",
    updated!(" AND (d.id = ANY ($u.decision)) IS NOT TRUE"),
    ") SELECT run, seq FROM ins"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::event;

    /// A queue with events of these runs, each of `bytes` bytes.
    fn queue(runs: impl IntoIterator<Item = usize>, bytes: usize) -> AppendQueue {
        let waiting = runs.into_iter().enumerate().map(|(seq, run)| append(run, seq, bytes)).collect();
        AppendQueue { waiting, ..AppendQueue::default() }
    }

    fn append(run: usize, seq: usize, bytes: usize) -> QueuedAppend {
        let event = event(&format!("run-{run}"), 1, u64::try_from(seq).unwrap());
        let entry = Append { event: "x".repeat(bytes), ..event };
        QueuedAppend { entry, rest: Vec::new(), asker: oneshot::channel().0 }
    }

    fn numbers(batch: Option<Vec<QueuedAppend>>) -> Vec<u64> {
        batch.unwrap_or_default().iter().map(|append| append.entry.seq).collect()
    }

    #[test]
    fn a_few_events_wait_for_the_statement_before_them_and_many_are_sent_meanwhile() {
        let mut queue = queue(0..3, 1);
        assert_eq!(numbers(queue.next_batch()), [0, 1, 2]);
        queue.waiting.extend((0..15).map(|run| append(100 + run, run, 1)));
        assert_eq!(numbers(queue.next_batch()), [0_u64; 0]);
        queue.waiting.push(append(200, 15, 1));
        assert_eq!(numbers(queue.next_batch()).len(), 16);
        // A third statement is too many.
        queue.waiting.extend((0..64).map(|run| append(300 + run, run, 1)));
        assert_eq!(numbers(queue.next_batch()), [0_u64; 0]);
        queue.done(vec!["run-0".to_owned()]);
        assert_eq!(numbers(queue.next_batch()).len(), 64);
    }

    #[test]
    fn many_events_are_two_statements() {
        let mut queue = queue(0..33, 1);
        assert_eq!((numbers(queue.next_batch()).len(), numbers(queue.next_batch()).len()), (17, 16));
        let mut queue = self::queue(0..31, 1);
        assert_eq!((numbers(queue.next_batch()).len(), numbers(queue.next_batch()).len()), (31, 0));
    }

    #[test]
    fn events_of_a_run_are_never_in_two_statements_at_once() {
        // Twenty runs with two events each: the first half of the forty takes one event of each.
        let mut queue = queue((0..40).map(|number| number % 20), 1);
        assert_eq!(numbers(queue.next_batch()), (0..20).collect::<Vec<u64>>());
        assert_eq!(numbers(queue.next_batch()), [0_u64; 0]);
        let first: Vec<String> = (0..20).map(|run| format!("run-{run}")).collect();
        queue.done(first);
        assert_eq!(numbers(queue.next_batch()), (20..40).collect::<Vec<u64>>());
    }

    #[test]
    fn a_statement_is_closed_when_its_bytes_are_enough() {
        let mut queue = queue(0..4, MOST_BYTES / 2);
        assert_eq!(numbers(queue.next_batch()), [0, 1]);
        queue.done(vec!["run-0".to_owned(), "run-1".to_owned()]);
        assert_eq!(numbers(queue.next_batch()), [2, 3]);
    }
}
