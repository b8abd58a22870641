//! A store that counts what it is asked, and a server in this process over it.

use std::collections::BTreeMap;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loopctl::engine::blob::Blob;
use loopctl::engine::outcome::Status;
use loopctl::journal::ledger::{LedgerAccount, RateShare, Reservation, Reserving, Settlement};
use loopctl::journal::memory::MemoryJournal;
use loopctl::journal::{
    AnswerToken, Append, AuditFilter, AuditLine, CallbackProgress, CancelRequest, ClaimedRun, Created, EventPut,
    EventWaiter, Journal, KeptEvent, KeptQuery, Lease, LoopSwitch, MeasuredRun, ModelWait, NewRun, OutsideEvent,
    PlaceInLine, PruneQuery, QueueQuery, QueueShare, QueuedDecision, QueuedRuns, Queueing, RowCompletion, RunCounts,
    RunExtras, RunFilter, RunHead, RunSummary, ScheduleRuns, ServedSchedules, SettledDecision, StoreError, Ticket,
    WaitMoments, Worker,
};
use loopctl::serve::folder::Folder;
use loopctl::serve::{Server, ServerOptions};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::common::Place;

/// A store that counts.
#[derive(Default)]
pub struct Counting {
    pub inner: Arc<MemoryJournal>,
    /// So often a journal can't be read.
    pub unreadable: AtomicUsize,
    /// How often a journal was read whole.
    pub whole: AtomicUsize,
    /// The events that were read from a place on.
    pub from: AtomicUsize,
    /// What it was asked, in that order.
    asked: Mutex<Vec<&'static str>>,
    /// Whether a request to cancel is answered when the run's driver has ended the run.
    pub answers_cancels_late: AtomicBool,
}

impl Counting {
    /// What it was asked since the last time, in that order.
    pub fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn note(&self, asked: &'static str) {
        self.asked.lock().unwrap().push(asked);
    }
}

/// A server in this process, over this store.
pub fn listening(place: &Place, journal: &Arc<Counting>) -> (Runtime, SocketAddr) {
    let options = ServerOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        max_concurrent_runs: 4,
        grace: Duration::ZERO,
        ..ServerOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let journal: Arc<dyn Journal> = Arc::clone(journal) as Arc<dyn Journal>;
    let folder = Folder::read(place.path()).unwrap_or_else(|_| panic!("it is sound"));
    let server = runtime.block_on(Server::bind(folder, journal, &options)).unwrap();
    let address = server.address();
    runtime.spawn(server.serve(pending()));
    (runtime, address)
}

impl Journal for Counting {
    fn create(&self, run: NewRun) -> Ticket<Created> {
        self.note("create");
        self.inner.create(run)
    }

    fn append(&self, entry: Append) -> Ticket<()> {
        self.note("append");
        self.inner.append(entry)
    }

    fn append_all(&self, entries: Vec<Append>) -> Ticket<()> {
        self.note("append");
        self.inner.append_all(entries)
    }

    fn read(&self, run_id: &str) -> Ticket<Vec<String>> {
        self.note("read");
        self.whole.fetch_add(1, Ordering::SeqCst);
        let fails = self.unreadable.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if fails.is_ok() { Ticket::ready(Err(StoreError::Locked)) } else { self.inner.read(run_id) }
    }

    fn read_from(&self, run_id: &str, from: u64, most: usize) -> Ticket<Vec<String>> {
        self.note("read_from");
        let Ticket::Ready(Some(events)) = self.inner.read_from(run_id, from, most) else { panic!("it comes at once") };
        self.from.fetch_add(events.as_ref().map_or(0, Vec::len), Ordering::SeqCst);
        Ticket::ready(events)
    }

    fn texts(&self, run_id: &str) -> Ticket<Vec<Blob>> {
        self.note("texts");
        self.inner.texts(run_id)
    }

    fn find(&self, run_id: &str) -> Ticket<Option<RunSummary>> {
        self.note("find");
        self.inner.find(run_id)
    }

    fn find_of(&self, org: Option<&str>, run_id: &str) -> Ticket<Option<RunSummary>> {
        self.note("find_of");
        self.inner.find_of(org, run_id)
    }

    fn find_by_key(&self, start_key: &str) -> Ticket<Option<RunSummary>> {
        self.note("find_by_key");
        self.inner.find_by_key(start_key)
    }

    fn list(&self, filter: RunFilter) -> Ticket<Vec<RunSummary>> {
        self.note("list");
        self.inner.list(filter)
    }

    fn measured(&self, filter: RunFilter) -> Ticket<Vec<MeasuredRun>> {
        self.note("measured");
        self.inner.measured(filter)
    }

    fn run_counts(&self, moments: WaitMoments) -> Ticket<RunCounts> {
        self.note("run_counts");
        self.inner.run_counts(moments)
    }

    fn called_under(&self, run_id: &str) -> Ticket<u64> {
        self.note("called_under");
        self.inner.called_under(run_id)
    }

    fn lease(&self, run_id: &str) -> Ticket<Lease> {
        self.note("lease");
        self.inner.lease(run_id)
    }

    fn release(&self, run_id: &str, fence: u64) -> Ticket<()> {
        self.note("release");
        self.inner.release(run_id, fence)
    }

    fn confirm(&self, run_id: &str, fence: u64) -> Ticket<()> {
        self.note("confirm");
        self.inner.confirm(run_id, fence)
    }

    fn request_cancel(&self, run_id: &str, request: CancelRequest) -> Ticket<()> {
        self.note("request_cancel");
        let requested = self.inner.request_cancel(run_id, request);
        if !self.answers_cancels_late.load(Ordering::SeqCst) {
            return requested;
        }
        let (answer, ticket) = tokio::sync::oneshot::channel();
        let (inner, run_id) = (Arc::clone(&self.inner), run_id.to_owned());
        std::thread::spawn(move || {
            let is_running = || {
                let Ticket::Ready(Some(Ok(Some(run)))) = inner.find(&run_id) else { panic!("it is there at once") };
                run.status == Status::Running
            };
            while is_running() {
                crate::common::wait_poll_interval();
            }
            answer.send(Ok(())).unwrap();
        });
        Ticket::Coming(ticket)
    }

    fn absolve(&self, run_ids: Vec<String>) -> Ticket<()> {
        self.note("absolve");
        self.inner.absolve(run_ids)
    }

    fn serve_schedules(&self, served: ServedSchedules) -> Ticket<Vec<i64>> {
        self.inner.serve_schedules(served)
    }

    fn schedule_runs(&self, schedule: &str, now_ms: i64) -> Ticket<ScheduleRuns> {
        self.note("schedule_runs");
        self.inner.schedule_runs(schedule, now_ms)
    }

    fn disregard_ahead(&self, schedule: &str, now_ms: i64) -> Ticket<()> {
        self.note("disregard_ahead");
        self.inner.disregard_ahead(schedule, now_ms)
    }

    fn queue_event(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        self.note("queue_event");
        self.inner.queue_event(run_id, decision)
    }

    fn put_event(&self, event: OutsideEvent) -> Ticket<EventPut> {
        self.note("put_event");
        self.inner.put_event(event)
    }

    fn mark_event(&self, run_id: &str, id: &str, is_taken: bool) -> Ticket<bool> {
        self.note("mark_event");
        self.inner.mark_event(run_id, id, is_taken)
    }

    fn event_waiters(&self, org: Option<&str>, event: &str) -> Ticket<Vec<EventWaiter>> {
        self.note("event_waiters");
        self.inner.event_waiters(org, event)
    }

    fn kept_events(&self, run_id: &str, query: KeptQuery) -> Ticket<Vec<KeptEvent>> {
        self.note("kept_events");
        self.inner.kept_events(run_id, query)
    }

    fn queue_decision(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        self.note("queue_decision");
        self.inner.queue_decision(run_id, decision)
    }

    fn queued_decisions(&self, run_id: &str) -> Ticket<Vec<QueuedDecision>> {
        self.note("queued_decisions");
        self.inner.queued_decisions(run_id)
    }

    fn settle_decision(&self, run_id: &str, id: &str, settled: SettledDecision) -> Ticket<()> {
        self.note("settle_decision");
        self.inner.settle_decision(run_id, id, settled)
    }

    fn cancel_requested(&self, run_id: &str) -> Ticket<Option<CancelRequest>> {
        self.note("cancel_requested");
        self.inner.cancel_requested(run_id)
    }

    fn heads(&self, run_ids: Vec<String>) -> Ticket<Vec<RunHead>> {
        self.note("heads");
        self.inner.heads(run_ids)
    }

    fn queue(&self, waiting: QueueQuery) -> Ticket<Vec<QueuedRuns>> {
        self.note("queue");
        self.inner.queue(waiting)
    }

    fn claim(&self, waiting: QueueQuery, shares: Vec<QueueShare>) -> Ticket<Vec<ClaimedRun>> {
        self.note("claim");
        self.inner.claim(waiting, shares)
    }

    fn line(&self, run_id: &str) -> Ticket<PlaceInLine> {
        self.note("line");
        self.inner.line(run_id)
    }

    fn retry_at(&self, run_id: &str, at_ms: i64) -> Ticket<()> {
        self.note("retry_at");
        self.inner.retry_at(run_id, at_ms)
    }

    fn note_model_wait(&self, run_id: &str, fence: u64, wait: Option<ModelWait>) -> Ticket<()> {
        self.note("note_model_wait");
        self.inner.note_model_wait(run_id, fence, wait)
    }

    fn claim_callbacks(&self, most: usize) -> Ticket<Vec<String>> {
        self.note("claim_callbacks");
        self.inner.claim_callbacks(most)
    }

    fn note_callback(
        &self,
        run_id: &str,
        progress: CallbackProgress,
        again_in: Option<Duration>,
        of_end_ms: Option<i64>,
    ) -> Ticket<()> {
        self.note("note_callback");
        self.inner.note_callback(run_id, progress, again_in, of_end_ms)
    }

    fn note_posted_pause(&self, run_id: &str, pause: u32) -> Ticket<()> {
        self.note("note_posted_pause");
        self.inner.note_posted_pause(run_id, pause)
    }

    fn put_answer_tokens(&self, run_id: &str, tokens: Vec<AnswerToken>) -> Ticket<()> {
        self.note("put_answer_tokens");
        self.inner.put_answer_tokens(run_id, tokens)
    }

    fn answer_token(&self, run_id: &str, hash: &str) -> Ticket<Option<AnswerToken>> {
        self.note("answer_token");
        self.inner.answer_token(run_id, hash)
    }

    fn complete_row(&self, run_id: &str, row: RowCompletion) -> Ticket<()> {
        self.note("complete_row");
        self.inner.complete_row(run_id, row)
    }

    fn extras(&self, run_id: &str) -> Ticket<RunExtras> {
        self.note("extras");
        self.inner.extras(run_id)
    }

    fn prune(&self, which: PruneQuery) -> Ticket<u64> {
        self.note("prune");
        self.inner.prune(which)
    }

    fn introduce(&self, folder: &str, address: Option<&str>) -> Ticket<()> {
        self.note("introduce");
        self.inner.introduce(folder, address)
    }

    fn workers(&self) -> Ticket<Vec<Worker>> {
        self.note("workers");
        self.inner.workers()
    }

    fn note_audit(&self, lines: Vec<AuditLine>) -> Ticket<()> {
        self.inner.note_audit(lines)
    }

    fn audit(&self, filter: AuditFilter) -> Ticket<Vec<AuditLine>> {
        self.inner.audit(filter)
    }

    fn switch_loop(&self, switch: LoopSwitch) -> Ticket<()> {
        self.inner.switch_loop(switch)
    }

    fn loop_switches(&self) -> Ticket<Vec<LoopSwitch>> {
        self.inner.loop_switches()
    }

    fn reserve(&self, reservation: Reservation) -> Ticket<Reserving> {
        self.note("reserve");
        self.inner.reserve(reservation)
    }

    fn settle(&self, settlement: Settlement) -> Ticket<bool> {
        self.note("settle");
        self.inner.settle(settlement)
    }

    fn pace(&self, share: RateShare) -> Ticket<i64> {
        self.note("pace");
        self.inner.pace(share)
    }

    fn ledger(&self, now_ms: i64, part: Option<String>) -> Ticket<Vec<LedgerAccount>> {
        self.inner.ledger(now_ms, part)
    }

    fn recall(&self, session: &str) -> Ticket<BTreeMap<String, Value>> {
        self.note("recall");
        self.inner.recall(session)
    }
}
