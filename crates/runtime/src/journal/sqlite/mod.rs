//! The journal in SQLite: one file, in WAL mode, synced at each commit.
//!
//! Writes go through one thread with the only connection that writes (`writer`); all requests that wait at
//! the same moment share one commit. Reads have two threads with read-only connections: one for the questions
//! between two steps, one for those that may take long (whole journals, lists), so that a list of all runs
//! delays neither appends nor the steps of runs.

mod answer_tokens;
mod audit;
mod backup;
mod callbacks;
mod columns;
mod copied_rows;
mod database_errors;
mod decisions;
mod drivers;
mod examination;
mod leases;
mod ledger;
mod line;
mod outside_events;
mod prune;
mod queue;
mod reads;
mod record_columns;
mod requests;
mod run_counts;
mod scheduled_runs;
mod schedules;
mod schema;
mod take_ups;
#[cfg(test)]
mod tests;
mod texts;
mod workers;
mod write_request;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use self::answer_tokens::{NotePostedPause, PutAnswerTokens};
use self::audit::{NoteAudit, SwitchLoop};
use self::callbacks::{ClaimCallbacks, NoteCallback};
use self::copied_rows::{FinishCopy, PutRows};
use self::decisions::{QueueDecision, SettleDecision};
use self::drivers::Drivers;
use self::leases::Leases;
use self::outside_events::{MarkEvent, PutEvent};
use self::prune::{ForgetSession, GiveBackSpace};
use self::queue::{Claim, NoteModelWait, RetryAt};
use self::reads::{Census, SqliteReader};
use self::record_columns::CompleteRow;
use self::requests::{AppendedTogether, CancelRun, GiveBack, MakeSure, Take};
use self::schedules::DisregardAhead;
use self::take_ups::Absolve;
use self::workers::{Introduce, ListWorkers};
use self::writer::SqliteWriter;
use super::admin::StoreAdmin;
use super::lease_clock::Clock;
use super::ledger::{LedgerAccount, RateShare, Reservation, Reserving, Settlement};
use super::store_name::{StoreKind, StoreName};
use super::{
    AnswerToken, Append, AuditFilter, AuditLine, CallbackProgress, CancelRequest, ClaimedRun, CopiedRow, CopiedTable,
    Created, EventPut, EventWaiter, Journal, KeptEvent, KeptQuery, Lease, LoopSwitch, MeasuredRun, ModelWait, NewRun,
    OutsideEvent, PlaceInLine, PruneQuery, QueueQuery, QueueShare, QueuedDecision, QueuedRuns, Queueing, RowCompletion,
    RunCounts, RunExtras, RunFilter, RunHead, RunSummary, ScheduleRuns, ServedSchedules, SettledDecision, StatusRecord,
    StoreError, Ticket, WaitMoments, Worker, failpoint,
};
use loopctl_engine::blob::Blob;

pub(super) const KIND: StoreKind = StoreKind {
    scheme: "sqlite",
    form: "sqlite:PATH",
    file: |name| name.rest.map(|path| name.base.join(path)),
    outlives_process: true,
    shown: |name| name.written.to_owned(),
    open: |name| Ok(Arc::new(SqliteJournal::open(&path(name)?)?)),
    admin: Some(StoreAdmin {
        statements: |_| Ok(schema::statements()),
        examine: |name| examination::report(&path(name)?, name.written),
        living: |name| examination::living(&path(name)?, name.written),
        back_up: Some(|name, to| backup::back_up(&path(name)?, name.written, to)),
        give_back: Some(|name| {
            let keeps = examination::keeps_its_size(&path(name).ok()?);
            keeps.then_some(
                "an older version made the file, which keeps its size: new runs use the space again, and the copy of \
                 `loopctl store backup` is smaller, and shrinks by itself",
            )
        }),
    }),
};

/// The file of a store.
fn path(name: &StoreName<'_>) -> Result<PathBuf, StoreError> {
    match name.rest {
        None => Err(name.unknown()),
        Some("") => Err(name.refuse("no path follows sqlite: ; write sqlite:PATH")),
        Some(":memory:") => Err(name.refuse("a store in memory is written memory")),
        Some(path) if path.starts_with("//") && !path.starts_with("///") => {
            Err(name.refuse("a path follows sqlite: at once, without //; write sqlite:PATH"))
        }
        Some(path) => Ok(name.base.join(path)),
    }
}

/// A store in an SQLite file. One opened store is one driver; when it is dropped it finishes the waiting
/// requests, releases its leases and closes the file.
pub struct SqliteJournal {
    // The readers end first: the last connection that closes the file tidies it up, and only the writer can.
    quick: SqliteReader,
    slow: SqliteReader,
    writer: SqliteWriter,
    drivers: Drivers,
    clock: Clock,
    /// The digest of the folder that this process serves.
    folder: Mutex<Option<String>>,
}

/// A shorter lease would keep the writer busy with renewing it.
const MIN_LEASE: Duration = Duration::from_millis(100);

/// Options of a store.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// How long others leave the runs of a driver alone that lives but no longer renews its lease. It is
    /// renewed after a third of this time. Default: 30 s; at least 100 ms.
    pub lease_ttl: Duration,
    /// How long a statement waits while another process has locked the store. Default: 5 s.
    pub busy_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            lease_ttl: failpoint::time("lease").unwrap_or(Duration::from_secs(30)),
            busy_timeout: failpoint::time("busy").unwrap_or(Duration::from_secs(5)),
        }
    }
}

impl SqliteJournal {
    /// Opens the store at `path`; creates it, and its folders, if there is none.
    ///
    /// # Errors
    /// `Open` when the file can't be opened or is no store, `Newer` when a newer loopctl made it, `ReadOnly`,
    /// `Corrupt`, `Full`, or `Locked` after five seconds. A refused file is not changed.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// As [`SqliteJournal::open`], with other waiting times.
    ///
    /// # Errors
    /// As [`SqliteJournal::open`].
    #[expect(clippy::needless_pass_by_value, reason = "options are made for one store")]
    pub fn open_with(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        Self::start(path, &options, Clock::new())
    }

    fn start(path: &Path, options: &SqliteOptions, clock: Clock) -> Result<Self, StoreError> {
        let store = path.display().to_string();
        let failed = |error: std::io::Error| StoreError::Open { store: store.clone(), reason: error.to_string() };
        // An absolute path: the folder may be changed later, and `:memory:` is an ordinary name.
        let path = std::path::absolute(path).map_err(failed)?;
        let connection = schema::open(&path, options.busy_timeout)?;
        let drivers = Drivers::of(&path);
        let leases = Leases::new(drivers.clone(), clock.clone(), options.lease_ttl.max(MIN_LEASE));
        Ok(Self {
            quick: SqliteReader::start(&path, options.busy_timeout).map_err(failed)?,
            slow: SqliteReader::start(&path, options.busy_timeout).map_err(failed)?,
            writer: SqliteWriter::start(connection, store.clone(), leases).map_err(failed)?,
            drivers,
            clock,
            folder: Mutex::default(),
        })
    }

    fn folder(&self) -> Option<String> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn census(&self) -> Census {
        Census::new(self.drivers.clone(), self.clock.clone())
    }

    fn write<R: write_request::WriteRequest>(&self, request: R) -> Ticket<R::Answer> {
        match failpoint::store_call() {
            Ok(()) => self.writer.ask(request),
            Err(fault) => Ticket::ready(Err(fault)),
        }
    }
}

impl Journal for SqliteJournal {
    fn create(&self, run: NewRun) -> Ticket<Created> {
        self.write(run)
    }

    fn append(&self, entry: Append) -> Ticket<()> {
        self.write(entry)
    }

    fn append_all(&self, entries: Vec<Append>) -> Ticket<()> {
        self.write(AppendedTogether { entries })
    }

    fn read(&self, run_id: &str) -> Ticket<Vec<String>> {
        self.read_from(run_id, 0, usize::MAX)
    }

    fn read_from(&self, run_id: &str, from: u64, most: usize) -> Ticket<Vec<String>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let (run, from) = (run_id.to_owned(), i64::try_from(from).unwrap_or(i64::MAX));
        self.slow.ask(Some(run_id), move |connection| reads::events(connection, &run, from, most))
    }

    fn texts(&self, run_id: &str) -> Ticket<Vec<Blob>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let run = run_id.to_owned();
        self.slow.ask(Some(run_id), move |connection| texts::of_run(connection, &run))
    }

    fn find(&self, run_id: &str) -> Ticket<Option<RunSummary>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let (mut census, run) = (self.census(), run_id.to_owned());
        self.quick.ask(Some(run_id), move |connection| census.find(connection, &run))
    }

    fn find_of(&self, org: Option<&str>, run_id: &str) -> Ticket<Option<RunSummary>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let (mut census, org, run) = (self.census(), org.map(str::to_owned), run_id.to_owned());
        self.quick.ask(Some(run_id), move |connection| census.find_of(connection, org.as_deref(), &run))
    }

    fn find_by_key(&self, start_key: &str) -> Ticket<Option<RunSummary>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let (mut census, key) = (self.census(), start_key.to_owned());
        self.quick.ask(None, move |connection| census.find_by_key(connection, &key))
    }

    fn list(&self, filter: RunFilter) -> Ticket<Vec<RunSummary>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let mut census = self.census();
        self.slow.ask(None, move |connection| census.list(connection, &filter))
    }

    fn measured(&self, filter: RunFilter) -> Ticket<Vec<MeasuredRun>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let census = self.census();
        self.slow.ask(None, move |connection| census.measured(connection, &filter))
    }

    fn run_counts(&self, moments: WaitMoments) -> Ticket<RunCounts> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        self.slow.ask(None, move |connection| run_counts::counted(connection, moments))
    }

    fn heads(&self, run_ids: Vec<String>) -> Ticket<Vec<RunHead>> {
        let mut census = self.census();
        self.quick.ask(None, move |connection| census.heads(connection, &run_ids))
    }

    fn queue(&self, waiting: QueueQuery) -> Ticket<Vec<QueuedRuns>> {
        let (census, folder) = (self.census(), self.folder());
        self.quick.ask(None, move |connection| census.queued(connection, &waiting, folder.as_deref()))
    }

    fn claim(&self, waiting: QueueQuery, shares: Vec<QueueShare>) -> Ticket<Vec<ClaimedRun>> {
        self.writer.ask(Claim { waiting, shares, folder: self.folder() })
    }

    fn line(&self, run_id: &str) -> Ticket<PlaceInLine> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let run = run_id.to_owned();
        self.quick.ask(Some(run_id), move |connection| line::of_run(connection, &run))
    }

    fn retry_at(&self, run_id: &str, at_ms: i64) -> Ticket<()> {
        self.write(RetryAt { run_id: run_id.to_owned(), at_ms })
    }

    fn note_model_wait(&self, run_id: &str, fence: u64, wait: Option<ModelWait>) -> Ticket<()> {
        self.write(NoteModelWait { run_id: run_id.to_owned(), fence, wait })
    }

    fn called_under(&self, run_id: &str) -> Ticket<u64> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let run = run_id.to_owned();
        self.quick.ask(Some(run_id), move |connection| reads::called_under(connection, &run))
    }

    fn lease(&self, run_id: &str) -> Ticket<Lease> {
        self.write(Take(run_id.to_owned()))
    }

    fn release(&self, run_id: &str, fence: u64) -> Ticket<()> {
        self.write(GiveBack { run_id: run_id.to_owned(), fence })
    }

    /// Answered from memory while nobody can have taken the run: before the lease's end by the wall clock,
    /// which all processes read, and by the monotonic clock. Otherwise the database is asked.
    fn confirm(&self, run_id: &str, fence: u64) -> Ticket<()> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let view = self.writer.view().read().unwrap_or_else(PoisonError::into_inner);
        if !view.has(run_id, fence) {
            return Ticket::ready(Err(StoreError::Fenced(run_id.to_owned())));
        }
        if view.is_fresh(&self.clock) {
            return Ticket::ready(Ok(()));
        }
        drop(view);
        self.writer.ask(MakeSure { run_id: run_id.to_owned(), fence })
    }

    fn absolve(&self, run_ids: Vec<String>) -> Ticket<()> {
        self.writer.ask(Absolve(run_ids))
    }

    fn request_cancel(&self, run_id: &str, request: CancelRequest) -> Ticket<()> {
        self.write(CancelRun { run_id: run_id.to_owned(), request })
    }

    /// A look-up by key on a read-only connection: a few microseconds, as fresh as the file, whichever process
    /// requested the end, and with no state of our own to keep in step.
    fn cancel_requested(&self, run_id: &str) -> Ticket<Option<CancelRequest>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let run = run_id.to_owned();
        self.quick.ask(Some(run_id), move |connection| reads::cancel_request(connection, &run))
    }

    fn claim_callbacks(&self, most: usize) -> Ticket<Vec<String>> {
        self.writer.ask(ClaimCallbacks(most))
    }

    fn note_callback(
        &self,
        run_id: &str,
        progress: CallbackProgress,
        again_in: Option<Duration>,
        of_end_ms: Option<i64>,
    ) -> Ticket<()> {
        self.write(NoteCallback { run_id: run_id.to_owned(), progress, again_in, of_end_ms })
    }

    fn note_posted_pause(&self, run_id: &str, pause: u32) -> Ticket<()> {
        self.write(NotePostedPause { run_id: run_id.to_owned(), pause })
    }

    fn put_answer_tokens(&self, run_id: &str, tokens: Vec<AnswerToken>) -> Ticket<()> {
        self.write(PutAnswerTokens { run_id: run_id.to_owned(), tokens })
    }

    fn answer_token(&self, run_id: &str, hash: &str) -> Ticket<Option<AnswerToken>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let (run, hash) = (run_id.to_owned(), hash.to_owned());
        self.quick.ask(Some(run_id), move |connection| answer_tokens::find(connection, &run, &hash))
    }

    fn queue_decision(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        self.write(QueueDecision { run_id: run_id.to_owned(), decision, wakes: false })
    }

    fn queue_event(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        self.write(QueueDecision { run_id: run_id.to_owned(), decision, wakes: true })
    }

    fn put_event(&self, event: OutsideEvent) -> Ticket<EventPut> {
        self.write(PutEvent(event))
    }

    fn mark_event(&self, run_id: &str, id: &str, is_taken: bool) -> Ticket<bool> {
        self.write(MarkEvent { run_id: run_id.to_owned(), id: id.to_owned(), is_taken })
    }

    fn event_waiters(&self, org: Option<&str>, event: &str) -> Ticket<Vec<EventWaiter>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let (org, event) = (org.map(str::to_owned), event.to_owned());
        self.quick.ask(None, move |connection| outside_events::waiters(connection, org.as_deref(), &event))
    }

    fn kept_events(&self, run_id: &str, query: KeptQuery) -> Ticket<Vec<KeptEvent>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let of_run = run_id.to_owned();
        self.quick.ask(Some(run_id), move |connection| outside_events::kept(connection, &of_run, &query))
    }

    fn queued_decisions(&self, run_id: &str) -> Ticket<Vec<QueuedDecision>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let run = run_id.to_owned();
        self.quick.ask(Some(run_id), move |connection| decisions::of_run(connection, &run))
    }

    fn settle_decision(&self, run_id: &str, id: &str, settled: SettledDecision) -> Ticket<()> {
        self.write(SettleDecision { run_id: run_id.to_owned(), id: id.to_owned(), settled })
    }

    fn complete_row(&self, run_id: &str, row: RowCompletion) -> Ticket<()> {
        self.write(CompleteRow { run_id: run_id.to_owned(), row })
    }

    fn finish_copy(&self, run_id: &str, fence: u64, record: StatusRecord) -> Ticket<()> {
        self.write(FinishCopy { run_id: run_id.to_owned(), fence, record })
    }

    fn rows(&self, table: &'static CopiedTable, after: Option<CopiedRow>) -> Ticket<Vec<CopiedRow>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        self.slow.ask(None, move |connection| copied_rows::page(connection, table, after.as_ref()))
    }

    fn put_rows(&self, table: &'static CopiedTable, rows: Vec<CopiedRow>) -> Ticket<u64> {
        self.write(PutRows { table, rows })
    }

    fn extras(&self, run_id: &str) -> Ticket<RunExtras> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let run = run_id.to_owned();
        self.quick.ask(Some(run_id), move |connection| prune::extras(connection, &run))
    }

    fn prune(&self, which: PruneQuery) -> Ticket<u64> {
        self.write(which)
    }

    fn give_back_space(&self) -> Ticket<u64> {
        self.write(GiveBackSpace)
    }

    fn introduce(&self, folder: &str, address: Option<&str>) -> Ticket<()> {
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder.to_owned());
        self.writer.ask(Introduce { folder: folder.to_owned(), address: address.map(str::to_owned) })
    }

    fn workers(&self) -> Ticket<Vec<Worker>> {
        self.writer.ask(ListWorkers)
    }

    fn serve_schedules(&self, served: ServedSchedules) -> Ticket<Vec<i64>> {
        self.write(served)
    }

    fn schedule_runs(&self, schedule: &str, now_ms: i64) -> Ticket<ScheduleRuns> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let schedule = schedule.to_owned();
        self.quick.ask(None, move |connection| schedules::runs(connection, &schedule, now_ms))
    }

    fn disregard_ahead(&self, schedule: &str, now_ms: i64) -> Ticket<()> {
        self.write(DisregardAhead { schedule: schedule.to_owned(), now_ms })
    }

    fn note_audit(&self, lines: Vec<AuditLine>) -> Ticket<()> {
        self.write(NoteAudit(lines))
    }

    fn audit(&self, filter: AuditFilter) -> Ticket<Vec<AuditLine>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        self.slow.ask(None, move |connection| audit::lines(connection, &filter))
    }

    fn switch_loop(&self, switch: LoopSwitch) -> Ticket<()> {
        self.write(SwitchLoop(switch))
    }

    fn loop_switches(&self) -> Ticket<Vec<LoopSwitch>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        self.quick.ask(None, audit::switches)
    }

    fn reserve(&self, reservation: Reservation) -> Ticket<Reserving> {
        self.write(reservation)
    }

    fn settle(&self, settlement: Settlement) -> Ticket<bool> {
        self.write(settlement)
    }

    fn pace(&self, share: RateShare) -> Ticket<i64> {
        self.write(share)
    }

    fn ledger(&self, now_ms: i64, part: Option<String>) -> Ticket<Vec<LedgerAccount>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let drivers = self.drivers.clone();
        self.quick.ask(None, move |connection| drivers.ledger(connection, now_ms, part.as_deref()))
    }

    fn recall(&self, session: &str) -> Ticket<BTreeMap<String, Value>> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let session = session.to_owned();
        self.quick.ask(None, move |connection| reads::memory(connection, &session))
    }

    fn forget(&self, session: &str) -> Ticket<u64> {
        self.write(ForgetSession(session.to_owned()))
    }
}
