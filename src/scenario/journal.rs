//! A journal of a played run that can be stopped: from one event on nothing is stored, as if the process had died there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::engine::blob::Blob;
use crate::journal::ledger::{LedgerAccount, RateShare, Reservation, Reserving, Settlement};
use crate::journal::memory::MemoryJournal;
use crate::journal::{
    AnswerToken, Append, AuditFilter, AuditLine, CallbackProgress, CancelRequest, ClaimedRun, Created, EventPut,
    EventWaiter, Journal, KeptEvent, KeptQuery, Lease, LoopSwitch, MeasuredRun, ModelWait, NewRun, OutsideEvent,
    PlaceInLine, PruneQuery, QueueQuery, QueueShare, QueuedDecision, QueuedRuns, Queueing, RowCompletion, RunCounts,
    RunExtras, RunFilter, RunHead, RunSummary, ScheduleRuns, ServedSchedules, SettledDecision, StoreError, Ticket,
    WaitMoments, Worker,
};

/// Where the process dies: at an event of all runs together, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashPoint {
    pub event: usize,
    /// Whether the event is stored before the process dies.
    pub is_stored: bool,
}

/// The journal of a played run.
pub struct StoppableJournal {
    store: MemoryJournal,
    state: Mutex<StopState>,
}

#[derive(Default)]
struct StopState {
    /// Where it stops; none once it did.
    stop: Option<CrashPoint>,
    is_stopped: bool,
    /// How many events were given to it.
    events: usize,
    /// The leases of the living driver, by run.
    leases: BTreeMap<String, u64>,
    /// The runs, in the order in which they began.
    runs: Vec<String>,
    /// A planted fault: each event is acknowledged at once, and stored together with the next one.
    #[cfg(test)]
    late: Option<LateEvents>,
}

/// An event of each run that was acknowledged and is not stored.
#[cfg(test)]
type LateEvents = BTreeMap<String, Append>;

impl StoppableJournal {
    /// An empty journal that stops at a point, or never.
    pub fn new(stop: Option<CrashPoint>) -> Arc<Self> {
        let state = StopState { stop, ..StopState::default() };
        Arc::new(Self { store: MemoryJournal::new(), state: Mutex::new(state) })
    }

    /// The same with a fault: what is acknowledged is stored too late.
    #[cfg(test)]
    pub fn storing_late(stop: Option<CrashPoint>) -> Arc<Self> {
        let journal = Self::new(stop);
        journal.state().late = Some(LateEvents::new());
        journal
    }

    /// Stores what was acknowledged, at the end of a process.
    #[cfg(test)]
    fn store_late(&self) {
        let late = self.state().late.as_mut().map(std::mem::take);
        for entry in late.into_iter().flatten().map(|(_, entry)| entry) {
            drop(self.store.append(entry));
        }
    }

    fn state(&self) -> MutexGuard<'_, StopState> {
        // Each change leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many events were given to it.
    pub fn events(&self) -> usize {
        self.state().events
    }

    /// The runs, in the order in which they began.
    pub fn runs(&self) -> Vec<String> {
        self.state().runs.clone()
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    /// A new process opens the journal: the leases of the dead driver are over.
    pub fn restart(&self) {
        let leases = {
            let mut state = self.state();
            state.is_stopped = false;
            std::mem::take(&mut state.leases)
        };
        for (run_id, fence) in leases {
            drop(self.store.release(&run_id, fence));
        }
    }

    fn alive<T>(&self, work: impl FnOnce(&MemoryJournal) -> Ticket<T>) -> Ticket<T> {
        if self.is_stopped() { Ticket::ready(Err(died())) } else { work(&self.store) }
    }

    /// Stores an event, unless the process dies before; it may die right after.
    fn write<T>(&self, work: impl FnOnce(&MemoryJournal) -> Ticket<T>) -> Ticket<T> {
        self.write_all(1, work)
    }

    /// The same for events that are stored together: where the process dies at one of them, all are stored or none.
    fn write_all<T>(&self, count: usize, work: impl FnOnce(&MemoryJournal) -> Ticket<T>) -> Ticket<T> {
        let stop = {
            let mut state = self.state();
            if state.is_stopped {
                return Ticket::ready(Err(died()));
            }
            let first = state.events;
            state.events += count;
            let stop = state.stop.filter(|stop| (first..state.events).contains(&stop.event));
            if stop.is_some() {
                state.stop = None;
                state.is_stopped = true;
                #[cfg(test)]
                state.late.iter_mut().for_each(LateEvents::clear);
            }
            stop
        };
        match stop {
            None => work(&self.store),
            Some(CrashPoint { is_stored, .. }) => {
                if is_stored {
                    drop(work(&self.store));
                }
                Ticket::ready(Err(died()))
            }
        }
    }
}

fn died() -> StoreError {
    StoreError::Other("the process died here".to_owned())
}

impl Journal for StoppableJournal {
    fn create(&self, run: NewRun) -> Ticket<Created> {
        let run_id = run.run_id.clone();
        self.write(|store| {
            let mut created = store.create(run);
            if let Ticket::Ready(Some(Ok(Created::New(lease)))) = &mut created {
                let mut state = self.state();
                state.leases.insert(run_id.clone(), lease.fence);
                state.runs.push(run_id);
            }
            created
        })
    }

    fn append(&self, entry: Append) -> Ticket<()> {
        self.append_all(vec![entry])
    }

    fn append_all(&self, entries: Vec<Append>) -> Ticket<()> {
        self.write_all(entries.len(), |store| {
            #[cfg(test)]
            if let Some(late) = &mut self.state().late {
                let put = |entry: Append| late.insert(entry.run_id.clone(), entry);
                let before = entries.into_iter().filter_map(put).collect();
                return store.append_all(before);
            }
            store.append_all(entries)
        })
    }

    fn read(&self, run_id: &str) -> Ticket<Vec<String>> {
        self.alive(|store| store.read(run_id))
    }

    fn read_from(&self, run_id: &str, from: u64, most: usize) -> Ticket<Vec<String>> {
        self.alive(|store| store.read_from(run_id, from, most))
    }

    fn texts(&self, run_id: &str) -> Ticket<Vec<Blob>> {
        self.alive(|store| store.texts(run_id))
    }

    fn find(&self, run_id: &str) -> Ticket<Option<RunSummary>> {
        self.alive(|store| store.find(run_id))
    }

    fn find_of(&self, org: Option<&str>, run_id: &str) -> Ticket<Option<RunSummary>> {
        self.alive(|store| store.find_of(org, run_id))
    }

    fn find_by_key(&self, start_key: &str) -> Ticket<Option<RunSummary>> {
        self.alive(|store| store.find_by_key(start_key))
    }

    fn list(&self, filter: RunFilter) -> Ticket<Vec<RunSummary>> {
        self.alive(|store| store.list(filter))
    }

    fn measured(&self, filter: RunFilter) -> Ticket<Vec<MeasuredRun>> {
        self.alive(|store| store.measured(filter))
    }

    fn run_counts(&self, moments: WaitMoments) -> Ticket<RunCounts> {
        self.alive(|store| store.run_counts(moments))
    }

    fn called_under(&self, run_id: &str) -> Ticket<u64> {
        self.alive(|store| store.called_under(run_id))
    }

    fn lease(&self, run_id: &str) -> Ticket<Lease> {
        let mut lease = self.alive(|store| store.lease(run_id));
        if let Ticket::Ready(Some(Ok(lease))) = &mut lease {
            self.state().leases.insert(run_id.to_owned(), lease.fence);
        }
        lease
    }

    fn release(&self, run_id: &str, fence: u64) -> Ticket<()> {
        #[cfg(test)]
        self.store_late();
        self.alive(|store| store.release(run_id, fence))
    }

    fn confirm(&self, run_id: &str, fence: u64) -> Ticket<()> {
        self.alive(|store| store.confirm(run_id, fence))
    }

    fn request_cancel(&self, run_id: &str, request: CancelRequest) -> Ticket<()> {
        self.alive(|store| store.request_cancel(run_id, request))
    }

    fn cancel_requested(&self, run_id: &str) -> Ticket<Option<CancelRequest>> {
        self.alive(|store| store.cancel_requested(run_id))
    }

    fn heads(&self, run_ids: Vec<String>) -> Ticket<Vec<RunHead>> {
        self.alive(|store| store.heads(run_ids))
    }

    fn queue(&self, waiting: QueueQuery) -> Ticket<Vec<QueuedRuns>> {
        self.alive(|store| store.queue(waiting))
    }

    fn claim(&self, waiting: QueueQuery, shares: Vec<QueueShare>) -> Ticket<Vec<ClaimedRun>> {
        self.alive(|store| store.claim(waiting, shares))
    }

    fn line(&self, run_id: &str) -> Ticket<PlaceInLine> {
        self.alive(|store| store.line(run_id))
    }

    fn retry_at(&self, run_id: &str, at_ms: i64) -> Ticket<()> {
        self.alive(|store| store.retry_at(run_id, at_ms))
    }

    fn note_model_wait(&self, run_id: &str, fence: u64, wait: Option<ModelWait>) -> Ticket<()> {
        self.alive(|store| store.note_model_wait(run_id, fence, wait))
    }

    fn claim_callbacks(&self, most: usize) -> Ticket<Vec<String>> {
        self.alive(|store| store.claim_callbacks(most))
    }

    fn note_callback(
        &self,
        run_id: &str,
        progress: CallbackProgress,
        again_in: Option<Duration>,
        of_end_ms: Option<i64>,
    ) -> Ticket<()> {
        self.alive(|store| store.note_callback(run_id, progress, again_in, of_end_ms))
    }

    fn note_posted_pause(&self, run_id: &str, pause: u32) -> Ticket<()> {
        self.alive(|store| store.note_posted_pause(run_id, pause))
    }

    fn put_answer_tokens(&self, run_id: &str, tokens: Vec<AnswerToken>) -> Ticket<()> {
        self.alive(|store| store.put_answer_tokens(run_id, tokens))
    }

    fn queue_decision(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        self.alive(|store| store.queue_decision(run_id, decision))
    }

    fn queue_event(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        self.alive(|store| store.queue_event(run_id, decision))
    }

    fn put_event(&self, event: OutsideEvent) -> Ticket<EventPut> {
        self.alive(|store| store.put_event(event))
    }

    fn mark_event(&self, run_id: &str, id: &str, is_taken: bool) -> Ticket<bool> {
        self.alive(|store| store.mark_event(run_id, id, is_taken))
    }

    fn event_waiters(&self, org: Option<&str>, event: &str) -> Ticket<Vec<EventWaiter>> {
        self.alive(|store| store.event_waiters(org, event))
    }

    fn kept_events(&self, run_id: &str, query: KeptQuery) -> Ticket<Vec<KeptEvent>> {
        self.alive(|store| store.kept_events(run_id, query))
    }

    fn queued_decisions(&self, run_id: &str) -> Ticket<Vec<QueuedDecision>> {
        self.alive(|store| store.queued_decisions(run_id))
    }

    fn settle_decision(&self, run_id: &str, id: &str, settled: SettledDecision) -> Ticket<()> {
        self.alive(|store| store.settle_decision(run_id, id, settled))
    }

    fn answer_token(&self, run_id: &str, hash: &str) -> Ticket<Option<AnswerToken>> {
        self.alive(|store| store.answer_token(run_id, hash))
    }

    fn complete_row(&self, run_id: &str, row: RowCompletion) -> Ticket<()> {
        self.alive(|store| store.complete_row(run_id, row))
    }

    fn extras(&self, run_id: &str) -> Ticket<RunExtras> {
        self.alive(|store| store.extras(run_id))
    }

    fn forget(&self, session: &str) -> Ticket<u64> {
        self.alive(|store| store.forget(session))
    }

    fn prune(&self, which: PruneQuery) -> Ticket<u64> {
        self.alive(|store| store.prune(which))
    }

    fn introduce(&self, folder: &str, address: Option<&str>) -> Ticket<()> {
        self.alive(|store| store.introduce(folder, address))
    }

    fn workers(&self) -> Ticket<Vec<Worker>> {
        self.alive(Journal::workers)
    }

    fn absolve(&self, run_ids: Vec<String>) -> Ticket<()> {
        self.alive(|store| store.absolve(run_ids))
    }

    fn serve_schedules(&self, served: ServedSchedules) -> Ticket<Vec<i64>> {
        self.alive(|store| store.serve_schedules(served))
    }

    fn schedule_runs(&self, schedule: &str, now_ms: i64) -> Ticket<ScheduleRuns> {
        self.alive(|store| store.schedule_runs(schedule, now_ms))
    }

    fn disregard_ahead(&self, schedule: &str, now_ms: i64) -> Ticket<()> {
        self.alive(|store| store.disregard_ahead(schedule, now_ms))
    }

    fn note_audit(&self, lines: Vec<AuditLine>) -> Ticket<()> {
        self.alive(|store| store.note_audit(lines))
    }

    fn audit(&self, filter: AuditFilter) -> Ticket<Vec<AuditLine>> {
        self.alive(|store| store.audit(filter))
    }

    fn switch_loop(&self, switch: LoopSwitch) -> Ticket<()> {
        self.alive(|store| store.switch_loop(switch))
    }

    fn loop_switches(&self) -> Ticket<Vec<LoopSwitch>> {
        self.alive(|store| store.loop_switches())
    }

    fn reserve(&self, reservation: Reservation) -> Ticket<Reserving> {
        self.alive(|store| store.reserve(reservation))
    }

    fn settle(&self, settlement: Settlement) -> Ticket<bool> {
        self.alive(|store| store.settle(settlement))
    }

    fn pace(&self, share: RateShare) -> Ticket<i64> {
        self.alive(|store| store.pace(share))
    }

    fn ledger(&self, now_ms: i64, part: Option<String>) -> Ticket<Vec<LedgerAccount>> {
        self.alive(|store| store.ledger(now_ms, part))
    }

    fn recall(&self, session: &str) -> Ticket<BTreeMap<String, Value>> {
        self.alive(|store| store.recall(session))
    }
}
