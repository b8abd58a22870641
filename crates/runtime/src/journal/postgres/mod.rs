//! The journal in PostgreSQL, for several machines: one server of loopctl each, in front of one database.
//!
//! The store has one thread with a runtime of its own, and four connections, however many runs it drives: one for
//! new runs (`new_runs`) and appends (`append`), one for what is asked between two steps, one for lists and whole journals, and one for the
//! lease. A connection that is lost is made again. A statement whose outcome is not known is sent again; each one finds
//! out whether an earlier sending was done.

pub(crate) mod address;
mod append;
mod audit;
mod batch;
mod columns;
mod connection;
mod copied_rows;
mod database;
mod database_errors;
mod decisions;
mod examination;
mod leases;
mod ledger;
mod line;
mod new_runs;
mod outside_events;
mod pooler;
mod prune;
mod queue;
mod reads;
mod record_columns;
mod run_counts;
mod schedules;
mod schema;
mod target;
#[cfg(test)]
mod tests;
pub(crate) mod tls;
mod writes;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};

use self::append::QueuedAppend;
use self::database::{Database, REQUESTS_LAST_MS};
use self::new_runs::CreateOutbox;
use self::target::PostgresTarget;
use super::admin::StoreAdmin;
use super::lease_clock::Clock;
use super::ledger::{LedgerAccount, RateShare, Reservation, Reserving, Settlement};
use super::store_name::StoreKind;
use super::{
    AnswerToken, Append, AuditFilter, AuditLine, CallbackProgress, CancelRequest, ClaimedRun, CopiedRow, CopiedTable,
    Created, EventPut, EventWaiter, Journal, KeptEvent, KeptQuery, Lease, LoopSwitch, MeasuredRun, ModelWait, NewRun,
    OutsideEvent, PlaceInLine, PruneQuery, QueueQuery, QueueShare, QueuedDecision, QueuedRuns, Queueing, RowCompletion,
    RunCounts, RunExtras, RunFilter, RunHead, RunSummary, ScheduleRuns, ServedSchedules, SettledDecision, StatusRecord,
    StoreError, Ticket, WaitMoments, Worker, failpoint,
};
use loopctl_engine::blob::Blob;

pub(super) const KIND: StoreKind = StoreKind {
    scheme: "postgres",
    form: "postgres://USER@HOST/DATABASE",
    file: |_| None,
    outlives_process: true,
    shown: |name| match PostgresTarget::read(name.written, name.base) {
        Ok(target) => target.shown().to_owned(),
        Err(_) => "postgres://...".to_owned(),
    },
    open: |name| Ok(Arc::new(PostgresJournal::reached(PostgresTarget::named(name)?)?)),
    admin: Some(StoreAdmin {
        statements: |name| Ok(schema::printed(&PostgresTarget::named(name)?)),
        examine: |name| examination::examine(PostgresTarget::named(name)?),
        living: |name| examination::living(PostgresTarget::named(name)?),
        back_up: None,
        give_back: None,
    }),
};

/// A store in a PostgreSQL database. One opened store is one driver; when it is dropped, it finishes the waiting
/// requests and releases its leases.
pub struct PostgresJournal {
    database: Arc<Database>,
    appends: Option<mpsc::UnboundedSender<QueuedAppend>>,
    creates: Option<CreateOutbox>,
    runtime: Handle,
    stop: Option<oneshot::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
}

impl PostgresJournal {
    /// Opens the store of this address; makes its tables if there are none and the role may. Relative paths in the
    /// address start from `base`.
    ///
    /// # Errors
    /// `Open` when the database can't be reached or used, with a sentence that says what to do; `Newer` when a newer
    /// loopctl made the tables.
    pub fn open(url: &str, base: &Path) -> Result<Self, StoreError> {
        Self::reached(PostgresTarget::read(url, base)?)
    }

    fn reached(target: PostgresTarget) -> Result<Self, StoreError> {
        let failed = |error: std::io::Error| target.refuse(&error.to_string());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let (opened, database) = std::sync::mpsc::channel();
        let (appends, append_inbox) = mpsc::unbounded_channel();
        let (creates, create_inbox) = mpsc::unbounded_channel();
        let builder = std::thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || {
            runtime.block_on(async move {
                let database = match Database::open(target, Clock::new()).await {
                    Ok(database) => Arc::new(database),
                    Err(fault) => return drop(opened.send(Err(fault))),
                };
                let appending = tokio::spawn(append::run(Arc::clone(&database), append_inbox).boxed());
                let creating = tokio::spawn(new_runs::run(Arc::clone(&database), create_inbox).boxed());
                let beating = tokio::spawn(Arc::clone(&database).beat().boxed());
                drop(opened.send(Ok(Arc::clone(&database))));
                let in_order = stopped.await.unwrap_or(true);
                if in_order {
                    // They end when nothing can come any more.
                    drop(tokio::join!(appending, creating));
                    beating.abort();
                    database.leave().await;
                }
            });
        });
        let thread = thread.map_err(|error| StoreError::Other(error.to_string()))?;
        let gone = |_| StoreError::Other("the store's thread is gone".to_owned());
        match database.recv().map_err(gone)? {
            Ok(database) => Ok(Self {
                database,
                appends: Some(appends),
                creates: Some(creates),
                runtime: handle,
                stop: Some(stop),
                thread: Some(thread),
            }),
            Err(fault) => Err(fault),
        }
    }

    /// Ends like a process that is killed: nothing is released.
    #[cfg(test)]
    fn die(mut self) {
        let _ = self.stop.take().map(|stop| stop.send(false));
    }

    /// Asks the database in the store's thread.
    fn ask<T: Send + 'static, F: Future<Output = Result<T, StoreError>> + Send + 'static>(
        &self,
        request: impl FnOnce(Arc<Database>) -> F,
    ) -> Ticket<T> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        self.ask_beside(request)
    }

    /// The same for what leases runs: those that nobody waits for any more are released.
    fn ask_lease<T: Send + 'static, F: Future<Output = Result<T, StoreError>> + Send + 'static>(
        &self,
        request: impl FnOnce(Arc<Database>) -> F,
        unclaimed: impl FnOnce(T) -> Vec<(String, u64)> + Send + 'static,
    ) -> Ticket<T> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let (asker, answer) = oneshot::channel();
        let (database, request) = (Arc::clone(&self.database), request(Arc::clone(&self.database)));
        self.runtime.spawn(
            async move {
                if let Err(Ok(answer)) = asker.send(request.await) {
                    for (run_id, fence) in unclaimed(answer) {
                        drop(database.release(run_id, fence).await);
                    }
                }
            }
            .boxed(),
        );
        Ticket::Coming(answer)
    }

    /// The same for what is not asked for one run, but each second.
    fn ask_beside<T: Send + 'static, F: Future<Output = Result<T, StoreError>> + Send + 'static>(
        &self,
        request: impl FnOnce(Arc<Database>) -> F,
    ) -> Ticket<T> {
        let (asker, answer) = oneshot::channel();
        let request = request(Arc::clone(&self.database));
        self.runtime.spawn(
            async move {
                // A caller who has gone wants no answer.
                drop(asker.send(request.await));
            }
            .boxed(),
        );
        Ticket::Coming(answer)
    }
}

impl Drop for PostgresJournal {
    fn drop(&mut self) {
        (self.appends, self.creates) = (None, None);
        let _ = self.stop.take().map(|stop| stop.send(true));
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, there would be nobody to answer.
            drop(thread.join());
        }
    }
}

impl PostgresJournal {
    fn queued(&self, entry: Append, rest: Vec<Append>) -> Ticket<()> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let (asker, answer) = oneshot::channel();
        if let Some(appends) = &self.appends {
            // If the thread is gone, the sender is dropped, and the ticket reports that.
            drop(appends.send(QueuedAppend { entry, rest, asker }));
        }
        Ticket::Coming(answer)
    }
}

impl Journal for PostgresJournal {
    fn create(&self, run: NewRun) -> Ticket<Created> {
        let run_id = run.run_id.clone();
        let unclaimed = |created| match created {
            Created::New(lease) => vec![(run_id, lease.fence)],
            Created::Same | Created::Conflict | Created::KeyTaken(_) | Created::LineFull(_) => Vec::new(),
        };
        let Some(creates) = self.creates.clone() else {
            return Ticket::ready(Err(StoreError::Other("the store is closed".to_owned())));
        };
        self.ask_lease(move |database| async move { database.create(run, creates).await }, unclaimed)
    }

    fn append(&self, entry: Append) -> Ticket<()> {
        self.queued(entry, Vec::new())
    }

    fn append_all(&self, entries: Vec<Append>) -> Ticket<()> {
        let mut entries = entries.into_iter();
        match entries.next() {
            Some(entry) => self.queued(entry, entries.collect()),
            None => Ticket::ready(Ok(())),
        }
    }

    fn read(&self, run_id: &str) -> Ticket<Vec<String>> {
        self.read_from(run_id, 0, usize::MAX)
    }

    fn read_from(&self, run_id: &str, from: u64, most: usize) -> Ticket<Vec<String>> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.events(run_id, from, most).await })
    }

    fn texts(&self, run_id: &str) -> Ticket<Vec<Blob>> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.texts(run_id).await })
    }

    fn find(&self, run_id: &str) -> Ticket<Option<RunSummary>> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.find(run_id).await })
    }

    fn find_of(&self, org: Option<&str>, run_id: &str) -> Ticket<Option<RunSummary>> {
        let (org, run_id) = (org.map(str::to_owned), run_id.to_owned());
        self.ask(move |database| async move { database.find_of(org, run_id).await })
    }

    fn find_by_key(&self, start_key: &str) -> Ticket<Option<RunSummary>> {
        let start_key = start_key.to_owned();
        self.ask(move |database| async move { database.find_by_key(start_key).await })
    }

    fn list(&self, filter: RunFilter) -> Ticket<Vec<RunSummary>> {
        self.ask(move |database| async move { database.list(filter).await })
    }

    fn measured(&self, filter: RunFilter) -> Ticket<Vec<MeasuredRun>> {
        self.ask(move |database| async move { database.measured(filter).await })
    }

    fn run_counts(&self, moments: WaitMoments) -> Ticket<RunCounts> {
        self.ask(move |database| async move { database.run_counts(moments).await })
    }

    fn heads(&self, run_ids: Vec<String>) -> Ticket<Vec<RunHead>> {
        self.ask_beside(move |database| async move { database.heads(run_ids).await })
    }

    fn queue(&self, waiting: QueueQuery) -> Ticket<Vec<QueuedRuns>> {
        self.ask_beside(move |database| async move { database.queue(waiting).await })
    }

    fn claim(&self, waiting: QueueQuery, shares: Vec<QueueShare>) -> Ticket<Vec<ClaimedRun>> {
        let unclaimed = |claimed: Vec<ClaimedRun>| {
            let leased = claimed.into_iter().filter_map(|run| Some((run.run_id, run.lease.ok()?.fence)));
            leased.collect()
        };
        self.ask_lease(move |database| async move { database.claim(waiting, shares).await }, unclaimed)
    }

    fn line(&self, run_id: &str) -> Ticket<PlaceInLine> {
        let run_id = run_id.to_owned();
        self.ask_beside(move |database| async move { database.line(run_id).await })
    }

    fn retry_at(&self, run_id: &str, at_ms: i64) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.retry_at(run_id, at_ms).await })
    }

    fn note_model_wait(&self, run_id: &str, fence: u64, wait: Option<ModelWait>) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.note_model_wait(run_id, fence, wait).await })
    }

    fn called_under(&self, run_id: &str) -> Ticket<u64> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.called_under(run_id).await })
    }

    fn lease(&self, run_id: &str) -> Ticket<Lease> {
        let (run_id, run) = (run_id.to_owned(), run_id.to_owned());
        let unclaimed = move |lease: Lease| vec![(run, lease.fence)];
        self.ask_lease(move |database| async move { database.lease(run_id).await }, unclaimed)
    }

    fn release(&self, run_id: &str, fence: u64) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.release(run_id, fence).await })
    }

    /// Answered from memory while nobody can have taken the run. It follows an append that the database has just
    /// checked, and is as fresh as that.
    fn confirm(&self, run_id: &str, fence: u64) -> Ticket<()> {
        if self.database.held.held_by(run_id, fence).is_none() {
            return Ticket::ready(Err(StoreError::Fenced(run_id.to_owned())));
        }
        if self.database.held.is_fresh() {
            return Ticket::ready(failpoint::store_call());
        }
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.confirm(run_id, fence).await })
    }

    fn absolve(&self, run_ids: Vec<String>) -> Ticket<()> {
        self.ask_beside(move |database| async move { database.absolve(run_ids).await })
    }

    fn request_cancel(&self, run_id: &str, request: CancelRequest) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.request_cancel(run_id, request).await })
    }

    /// Answered from memory for runs that this driver has: one query for all of them, at each beat.
    fn cancel_requested(&self, run_id: &str) -> Ticket<Option<CancelRequest>> {
        if let Some(known) = self.database.held.cancel(run_id, REQUESTS_LAST_MS) {
            return Ticket::ready(failpoint::store_call().map(|()| known));
        }
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.cancel_requested(run_id).await })
    }

    fn claim_callbacks(&self, most: usize) -> Ticket<Vec<String>> {
        self.ask_beside(move |database| async move { database.claim_callbacks(most).await })
    }

    fn note_callback(
        &self,
        run_id: &str,
        progress: CallbackProgress,
        again_in: Option<Duration>,
        of_end_ms: Option<i64>,
    ) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.note_callback(run_id, progress, again_in, of_end_ms).await })
    }

    fn note_posted_pause(&self, run_id: &str, pause: u32) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.note_posted_pause(run_id, pause).await })
    }

    fn put_answer_tokens(&self, run_id: &str, tokens: Vec<AnswerToken>) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.put_answer_tokens(run_id, tokens).await })
    }

    fn answer_token(&self, run_id: &str, hash: &str) -> Ticket<Option<AnswerToken>> {
        let (run_id, hash) = (run_id.to_owned(), hash.to_owned());
        self.ask(move |database| async move { database.answer_token(run_id, hash).await })
    }

    fn queue_decision(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.queue_decision(run_id, decision, false).await })
    }

    fn queue_event(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.queue_decision(run_id, decision, true).await })
    }

    fn put_event(&self, event: OutsideEvent) -> Ticket<EventPut> {
        self.ask(move |database| async move { database.put_event(event).await })
    }

    fn mark_event(&self, run_id: &str, id: &str, is_taken: bool) -> Ticket<bool> {
        let (run_id, id) = (run_id.to_owned(), id.to_owned());
        self.ask(move |database| async move { database.mark_event(run_id, id, is_taken).await })
    }

    fn event_waiters(&self, org: Option<&str>, event: &str) -> Ticket<Vec<EventWaiter>> {
        let (org, event) = (org.unwrap_or_default().to_owned(), event.to_owned());
        self.ask(move |database| async move { database.event_waiters(org, event).await })
    }

    fn kept_events(&self, run_id: &str, query: KeptQuery) -> Ticket<Vec<KeptEvent>> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.kept_events(run_id, query).await })
    }

    /// Answered from memory for runs that this driver has, as long as no decision about one of them waits.
    fn queued_decisions(&self, run_id: &str) -> Ticket<Vec<QueuedDecision>> {
        if !self.database.held.may_be_decided(run_id, REQUESTS_LAST_MS) {
            return Ticket::ready(failpoint::store_call().map(|()| Vec::new()));
        }
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.queued_decisions(run_id).await })
    }

    fn settle_decision(&self, run_id: &str, id: &str, settled: SettledDecision) -> Ticket<()> {
        let (run_id, id) = (run_id.to_owned(), id.to_owned());
        self.ask(move |database| async move { database.settle_decision(run_id, id, settled).await })
    }

    fn complete_row(&self, run_id: &str, row: RowCompletion) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.complete_row(run_id, row).await })
    }

    fn finish_copy(&self, run_id: &str, fence: u64, record: StatusRecord) -> Ticket<()> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.finish_copy(run_id, fence, record).await })
    }

    fn rows(&self, table: &'static CopiedTable, after: Option<CopiedRow>) -> Ticket<Vec<CopiedRow>> {
        self.ask(move |database| async move { database.rows(table, after).await })
    }

    fn put_rows(&self, table: &'static CopiedTable, rows: Vec<CopiedRow>) -> Ticket<u64> {
        self.ask(move |database| async move { database.put_rows(table, rows).await })
    }

    fn extras(&self, run_id: &str) -> Ticket<RunExtras> {
        let run_id = run_id.to_owned();
        self.ask(move |database| async move { database.extras(run_id).await })
    }

    fn prune(&self, which: PruneQuery) -> Ticket<u64> {
        self.ask(move |database| async move { database.prune(which).await })
    }

    fn introduce(&self, folder: &str, address: Option<&str>) -> Ticket<()> {
        let (folder, address) = (folder.to_owned(), address.map(str::to_owned));
        self.ask_beside(move |database| async move { database.introduce(folder, address).await })
    }

    fn workers(&self) -> Ticket<Vec<Worker>> {
        self.ask_beside(move |database| async move { database.workers().await })
    }

    fn serve_schedules(&self, served: ServedSchedules) -> Ticket<Vec<i64>> {
        self.ask(move |database| async move { database.serve_schedules(served).await })
    }

    fn schedule_runs(&self, schedule: &str, now_ms: i64) -> Ticket<ScheduleRuns> {
        let schedule = schedule.to_owned();
        self.ask(move |database| async move { database.schedule_runs(schedule, now_ms).await })
    }

    fn disregard_ahead(&self, schedule: &str, now_ms: i64) -> Ticket<()> {
        let schedule = schedule.to_owned();
        self.ask(move |database| async move { database.disregard_ahead(schedule, now_ms).await })
    }

    fn note_audit(&self, lines: Vec<AuditLine>) -> Ticket<()> {
        self.ask(move |database| async move { database.note_audit(lines).await })
    }

    fn audit(&self, filter: AuditFilter) -> Ticket<Vec<AuditLine>> {
        self.ask(move |database| async move { database.audit(filter).await })
    }

    fn switch_loop(&self, switch: LoopSwitch) -> Ticket<()> {
        self.ask(move |database| async move { database.switch_loop(switch).await })
    }

    fn loop_switches(&self) -> Ticket<Vec<LoopSwitch>> {
        self.ask(move |database| async move { database.switches().await })
    }

    fn reserve(&self, reservation: Reservation) -> Ticket<Reserving> {
        self.ask(move |database| async move { database.reserve(reservation).await })
    }

    fn settle(&self, settlement: Settlement) -> Ticket<bool> {
        self.ask(move |database| async move { database.settle_spending(settlement).await })
    }

    fn pace(&self, share: RateShare) -> Ticket<i64> {
        self.ask(move |database| async move { database.pace(share).await })
    }

    fn ledger(&self, now_ms: i64, part: Option<String>) -> Ticket<Vec<LedgerAccount>> {
        self.ask(move |database| async move { database.ledger(now_ms, part).await })
    }

    fn recall(&self, session: &str) -> Ticket<BTreeMap<String, Value>> {
        let session = session.to_owned();
        self.ask(move |database| async move { database.recall(session).await })
    }

    fn forget(&self, session: &str) -> Ticket<u64> {
        let session = session.to_owned();
        self.ask(move |database| async move { database.forget(session).await })
    }
}
