//! The journal in memory: for runs that need not outlive the process.

mod administration;
mod audit;
mod decisions;
mod ledger;
mod line;
mod outside_events;
mod queue;
mod schedules;
mod stored_run;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;

use self::audit::AuditLog;
use self::ledger::{KnownLedger, largest_first};
use self::outside_events::KnownEvents;
use self::schedules::KnownSchedules;
use self::stored_run::{is_wanted, listed, waiting_called};
use super::answer_token::{AnswerToken, AnswerTokens};
use super::lease_clock::Clock;
use super::ledger::{LedgerAccount, RateShare, Reservation, Reserving, Settlement};
use super::log::Log;
use super::store_name::StoreKind;
use super::{
    Append, AuditFilter, AuditLine, CALLBACK_LEASE, CallbackProgress, CallbackState, CancelRequest, ClaimedRun,
    Created, EventPut, EventWaiter, Journal, KeptEvent, KeptQuery, Lease, LoopSwitch, MeasuredRun, ModelWait, NewRun,
    NewRunLine, OutsideEvent, PlaceInLine, PruneQuery, QueueQuery, QueueShare, QueuedDecision, QueuedRuns, Queueing,
    RowCompletion, RunCounts, RunExtras, RunFilter, RunHead, RunSummary, ScheduleRuns, ScheduledRun, ServedSchedules,
    SettledDecision, StatusRecord, StoreError, Ticket, WaitMoments, Worker, failpoint, search_text,
};
use loopctl_engine::blob::Blob;
use loopctl_engine::outcome::Status;

pub(super) const KIND: StoreKind = StoreKind {
    scheme: "memory",
    form: "memory",
    file: |_| None,
    outlives_process: false,
    shown: |name| name.written.to_owned(),
    open: |name| match name.rest {
        None => Ok(Arc::new(MemoryJournal::new())),
        Some(_) => Err(name.unknown()),
    },
    admin: None,
};

/// A store that ends with the process. It keeps every run until then, also those that have ended: some
/// kilobytes each. A process that plays runs without end needs a store on disk. An append locks its own run
/// only.
#[derive(Debug)]
pub struct MemoryJournal {
    /// Locked for writing only while a run is created.
    table: RwLock<RunTable>,
    sessions: Mutex<HashMap<String, BTreeMap<String, Value>>>,
    schedules: Mutex<KnownSchedules>,
    audit: Mutex<AuditLog>,
    events: Mutex<KnownEvents>,
    ledger: Mutex<KnownLedger>,
    /// The digest of the folder that the process serves.
    folder: Mutex<Option<String>>,
    /// Where it listens.
    address: Mutex<Option<String>>,
    /// When it was made, in milliseconds since 1970.
    since_ms: i64,
    clock: Clock,
}

impl Default for MemoryJournal {
    fn default() -> Self {
        let clock = Clock::new();
        let (folder, address, since_ms) = (Mutex::default(), Mutex::default(), clock.wall_ms());
        let (sessions, schedules, audit) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (events, ledger) = (Mutex::default(), Mutex::default());
        Self { table: RwLock::default(), sessions, schedules, audit, events, ledger, folder, address, since_ms, clock }
    }
}

#[derive(Debug, Default)]
struct RunTable {
    by_id: HashMap<Arc<str>, Arc<StoredRun>>,
    /// The same runs by organisation: the look-up of another organisation's run costs as much as that of no
    /// run.
    by_org: HashMap<Option<String>, HashMap<Arc<str>, Arc<StoredRun>>>,
    /// Those that were started with a key.
    by_key: HashMap<String, Arc<StoredRun>>,
    in_order: Vec<Arc<StoredRun>>,
}

/// A run: the fields that never change, and those that do.
#[derive(Debug)]
struct StoredRun {
    run_id: Arc<str>,
    loop_name: String,
    session: Option<String>,
    org: Option<String>,
    token: Option<String>,
    callback_url: Option<String>,
    parent_run_id: Option<String>,
    identity: String,
    start_key: Option<String>,
    scheduled: Option<ScheduledRun>,
    line: Option<Box<NewRunLine>>,
    started_at_ms: i64,
    data: Mutex<RunData>,
}

#[derive(Debug)]
struct RunData {
    events: Log,
    /// As they were passed in: the caller shares equal texts, not the store.
    texts: Vec<Blob>,
    status_record: StatusRecord,
    /// The model that failed and is asked again, by the driver with this lease.
    model_wait: Option<(u64, ModelWait)>,
    fence: u64,
    driven: bool,
    cancel: Option<CancelRequest>,
    callback: CallbackProgress,
    /// When the callback is free to be posted; none when there is nothing to post.
    callback_at_ms: Option<i64>,
    posted_pause: u32,
    answer_tokens: AnswerTokens,
    /// By their subjects.
    decisions: BTreeMap<String, QueuedDecision>,
    search_text: Option<String>,
    title: Option<String>,
    /// Its number in its line, which grows with each that joins it.
    place: u64,
}

impl RunData {
    fn next(&self) -> u64 {
        u64::try_from(self.events.len()).unwrap_or(u64::MAX)
    }
}

impl MemoryJournal {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn run(&self, run_id: &str) -> Result<Arc<StoredRun>, StoreError> {
        failpoint::store_call()?;
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.by_id.get(run_id).cloned().ok_or_else(|| StoreError::NoSuchRun(run_id.to_owned()))
    }

    fn make(&self, new: NewRun) -> Result<Created, StoreError> {
        failpoint::store_call()?;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = table.by_id.get(new.run_id.as_str()) {
            return Ok(if there.identity == new.identity { Created::Same } else { Created::Conflict });
        }
        if let Some(there) = new.start_key.as_ref().and_then(|key| table.by_key.get(key)) {
            return Ok(Created::KeyTaken(there.run_id.to_string()));
        }
        let place = match &new.line {
            Some(line) => match table.join(line) {
                Ok(place) => place,
                Err(before) => return Ok(Created::LineFull(before)),
            },
            None => 0,
        };
        let mut events = Log::default();
        events.push(&new.event);
        let is_to_be_posted = new.status_record.as_ref().is_some_and(StatusRecord::is_to_be_posted);
        let data = RunData {
            events,
            texts: new.texts,
            model_wait: None,
            status_record: new.status_record.unwrap_or_else(|| StatusRecord::new(Status::Running, new.at_ms)),
            fence: 1,
            driven: true,
            cancel: None,
            callback: CallbackProgress::default(),
            callback_at_ms: is_to_be_posted.then(|| self.after(CALLBACK_LEASE)),
            posted_pause: 0,
            answer_tokens: AnswerTokens::default(),
            decisions: BTreeMap::new(),
            search_text: new.search_text,
            title: new.title,
            place,
        };
        if let Some(scheduled) = &new.scheduled {
            self.schedules().started(&new.run_id, scheduled.clone());
        }
        if let Some(entry) = new.audit {
            let (loop_name, org) = (Some(new.loop_name.clone()), new.org.clone());
            let run_id = Some(new.run_id.clone());
            self.audit_log().add(AuditLine { run_id, loop_name, org, ..AuditLine::new(*entry) });
        }
        let id: Arc<str> = new.run_id.into();
        let run = Arc::new(StoredRun {
            run_id: Arc::clone(&id),
            loop_name: new.loop_name,
            session: new.session,
            org: new.org,
            token: new.token,
            callback_url: new.callback_url,
            parent_run_id: new.parent_run_id,
            identity: new.identity,
            start_key: new.start_key,
            scheduled: new.scheduled,
            line: new.line,
            started_at_ms: new.at_ms,
            data: Mutex::new(data),
        });
        table.in_order.push(Arc::clone(&run));
        if let Some(key) = &run.start_key {
            table.by_key.insert(key.clone(), Arc::clone(&run));
        }
        table.by_org.entry(run.org.clone()).or_default().insert(Arc::clone(&id), Arc::clone(&run));
        table.by_id.insert(id, run);
        Ok(Created::New(Lease { fence: 1, events: 1, failed_take_ups: 0 }))
    }

    /// Gives a session the memory that it has elsewhere.
    pub fn know(&self, session: &str, memory: BTreeMap<String, Value>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(session.to_owned()).or_default().extend(memory);
    }

    fn write(&self, entry: Append) -> Result<(), StoreError> {
        let run = self.run(&entry.run_id)?;
        // Runs join a line one after the other.
        let table = entry.reopens.then(|| self.table.write().unwrap_or_else(PoisonError::into_inner));
        let joined = table.as_ref().and_then(|table| Some(table.last_place(&run.line.as_ref()?.line) + 1));
        let mut data = run.held(entry.fence)?;
        if data.next() != entry.seq {
            return Err(StoreError::out_of_order(&entry.run_id, entry.seq, data.next()));
        }
        if let Some(hash) = &entry.answer_token {
            if !data.answer_tokens.is_unused(hash) {
                return Err(StoreError::TokenUsed(entry.run_id));
            }
            data.answer_tokens.use_up(hash);
        }
        if let Some(session) = run.session.as_ref().filter(|_| !entry.remember.is_empty()) {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.entry(session.clone()).or_default().extend(entry.remember);
        }
        if let Some(id) = &entry.decision {
            data.take_decision(id);
        }
        data.events.push(&entry.event);
        data.texts.extend(entry.texts);
        if let Some(status_record) = entry.status_record {
            data.callback_at_ms = status_record.is_to_be_posted().then(|| self.after(CALLBACK_LEASE));
            data.status_record = status_record;
            data.model_wait = None;
        }
        if entry.takes_cancel {
            data.cancel = None;
        }
        if entry.reopens {
            data.cancel = None;
            data.callback = CallbackProgress::default();
            data.place = joined.unwrap_or_default();
        }
        drop(table);
        data.driven = !entry.release;
        if let Some(noted) = entry.audit {
            let (run_id, loop_name) = (Some(entry.run_id), Some(run.loop_name.clone()));
            let org = run.org.clone();
            self.audit_log().add(AuditLine { run_id, loop_name, org, ..AuditLine::new(*noted) });
        }
        Ok(())
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        failpoint::store_call()?;
        let in_order = self.table.read().unwrap_or_else(PoisonError::into_inner).in_order.clone();
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit };
        let mut runs: Vec<_> = in_order.iter().collect();
        if !filter.oldest_first {
            runs.reverse();
        }
        if let Some(after) = &filter.after {
            let at = runs.iter().position(|run| *run.run_id == **after).map_or(runs.len(), |at| at + 1);
            runs.drain(..at);
        }
        let search = filter.search.as_deref().map(search_text);
        let is_found = |run: &StoredRun| search.as_ref().is_none_or(|text| run.has_text(text));
        let is_due = |run: &StoredRun| filter.due_ms.is_none_or(|now_ms| run.is_due(now_ms));
        let called = waiting_called(&in_order);
        let summaries = runs.iter().filter(|run| is_due(run) && is_found(run));
        let summaries = summaries.map(|run| listed(self.behind(run.summary()), &called));
        Ok(summaries.filter(|run| is_wanted(filter, run)).take(limit).collect())
    }
}

impl Journal for MemoryJournal {
    fn create(&self, run: NewRun) -> Ticket<Created> {
        Ticket::ready(self.make(run))
    }

    fn append(&self, entry: Append) -> Ticket<()> {
        Ticket::ready(self.write(entry))
    }

    fn append_all(&self, entries: Vec<Append>) -> Ticket<()> {
        Ticket::ready(entries.into_iter().try_for_each(|entry| self.write(entry)))
    }

    fn read(&self, run_id: &str) -> Ticket<Vec<String>> {
        self.read_from(run_id, 0, usize::MAX)
    }

    fn read_from(&self, run_id: &str, from: u64, most: usize) -> Ticket<Vec<String>> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let rest = |run: Arc<StoredRun>| run.data().events.from(from, most);
        Ticket::ready(self.run(run_id).map(rest))
    }

    fn texts(&self, run_id: &str) -> Ticket<Vec<Blob>> {
        Ticket::ready(self.run(run_id).map(|run| run.data().texts.clone()))
    }

    fn find(&self, run_id: &str) -> Ticket<Option<RunSummary>> {
        Ticket::ready(match self.run(run_id) {
            Ok(run) => Ok(Some(self.behind(run.summary()))),
            Err(StoreError::NoSuchRun(_)) => Ok(None),
            Err(fault) => Err(fault),
        })
    }

    fn find_of(&self, org: Option<&str>, run_id: &str) -> Ticket<Option<RunSummary>> {
        let of = org.map(str::to_owned);
        let found = || {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            table.by_org.get(&of).and_then(|runs| runs.get(run_id)).cloned()
        };
        Ticket::ready(failpoint::store_call().map(|()| found().map(|run| self.behind(run.summary()))))
    }

    fn find_by_key(&self, start_key: &str) -> Ticket<Option<RunSummary>> {
        let found = || {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            table.by_key.get(start_key).cloned()
        };
        Ticket::ready(failpoint::store_call().map(|()| found().map(|run| self.behind(run.summary()))))
    }

    fn list(&self, filter: RunFilter) -> Ticket<Vec<RunSummary>> {
        Ticket::ready(self.runs(&filter))
    }

    fn measured(&self, filter: RunFilter) -> Ticket<Vec<MeasuredRun>> {
        Ticket::ready(self.runs(&filter).map(|runs| runs.into_iter().map(MeasuredRun::from).collect()))
    }

    fn run_counts(&self, moments: WaitMoments) -> Ticket<RunCounts> {
        Ticket::ready(self.runs(&RunFilter::default()).map(|runs| RunCounts::of(&runs, moments)))
    }

    fn heads(&self, run_ids: Vec<String>) -> Ticket<Vec<RunHead>> {
        Ticket::ready(Ok(self.heads_of(&run_ids)))
    }

    fn queue(&self, waiting: QueueQuery) -> Ticket<Vec<QueuedRuns>> {
        Ticket::ready(Ok(self.queued(&waiting)))
    }

    fn claim(&self, waiting: QueueQuery, shares: Vec<QueueShare>) -> Ticket<Vec<ClaimedRun>> {
        Ticket::ready(Ok(self.claimed(&waiting, &shares)))
    }

    fn line(&self, run_id: &str) -> Ticket<PlaceInLine> {
        Ticket::ready(self.run(run_id).map(|run| self.line_of(&run)))
    }

    fn retry_at(&self, run_id: &str, at_ms: i64) -> Ticket<()> {
        Ticket::ready(self.run(run_id).map(|run| run.retry_at(at_ms)))
    }

    fn note_model_wait(&self, run_id: &str, fence: u64, wait: Option<ModelWait>) -> Ticket<()> {
        Ticket::ready(self.run(run_id).map(|run| run.note_model_wait(fence, wait)))
    }

    fn called_under(&self, run_id: &str) -> Ticket<u64> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let is_under = |run: &&Arc<StoredRun>| {
            run.parent_run_id.is_some() && run.run_id.strip_prefix(run_id).is_some_and(|rest| rest.starts_with('.'))
        };
        let called = table.in_order.iter().filter(is_under).count();
        Ticket::ready(failpoint::store_call().map(|()| u64::try_from(called).unwrap_or(u64::MAX)))
    }

    fn lease(&self, run_id: &str) -> Ticket<Lease> {
        Ticket::ready(self.run(run_id).and_then(|run| run.lease()))
    }

    fn release(&self, run_id: &str, fence: u64) -> Ticket<()> {
        Ticket::ready(match self.run(run_id) {
            Ok(run) => {
                run.release(fence);
                Ok(())
            }
            Err(StoreError::NoSuchRun(_)) => Ok(()),
            Err(fault) => Err(fault),
        })
    }

    fn confirm(&self, run_id: &str, fence: u64) -> Ticket<()> {
        Ticket::ready(match self.run(run_id) {
            Ok(run) => run.held(fence).map(|_| ()),
            Err(StoreError::NoSuchRun(run_id)) => Err(StoreError::Fenced(run_id)),
            Err(fault) => Err(fault),
        })
    }

    fn request_cancel(&self, run_id: &str, request: CancelRequest) -> Ticket<()> {
        Ticket::ready(self.run(run_id).map(|run| {
            run.data().cancel.get_or_insert(request);
        }))
    }

    fn cancel_requested(&self, run_id: &str) -> Ticket<Option<CancelRequest>> {
        Ticket::ready(self.run(run_id).map(|run| run.data().cancel.clone()))
    }

    fn claim_callbacks(&self, most: usize) -> Ticket<Vec<String>> {
        Ticket::ready(Ok(self.due_callbacks(most)))
    }

    fn note_callback(
        &self,
        run_id: &str,
        progress: CallbackProgress,
        again_in: Option<Duration>,
        of_end_ms: Option<i64>,
    ) -> Ticket<()> {
        let at_ms = again_in.map(|again_in| self.after(again_in.saturating_add(CALLBACK_LEASE)));
        Ticket::ready(self.run(run_id).map(|run| {
            let mut data = run.data();
            let record = &data.status_record;
            let has_continued =
                of_end_ms.is_some_and(|end_ms| record.at_ms != end_ms || record.status == Status::Running);
            let may_change = progress.state != CallbackState::Pending || data.callback.state == CallbackState::Pending;
            if may_change && !has_continued {
                (data.callback, data.callback_at_ms) = (progress, at_ms);
            }
        }))
    }

    fn note_posted_pause(&self, run_id: &str, pause: u32) -> Ticket<()> {
        Ticket::ready(self.run(run_id).map(|run| {
            let mut data = run.data();
            data.posted_pause = data.posted_pause.max(pause);
            data.callback_at_ms = None;
        }))
    }

    fn put_answer_tokens(&self, run_id: &str, tokens: Vec<AnswerToken>) -> Ticket<()> {
        Ticket::ready(self.run(run_id).map(|run| run.data().answer_tokens.put(tokens)))
    }

    fn answer_token(&self, run_id: &str, hash: &str) -> Ticket<Option<AnswerToken>> {
        Ticket::ready(match self.run(run_id) {
            Ok(run) => Ok(run.data().answer_tokens.get(hash)),
            Err(StoreError::NoSuchRun(_)) => Ok(None),
            Err(fault) => Err(fault),
        })
    }

    fn queue_decision(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        Ticket::ready(self.run(run_id).map(|run| run.queue_decision(decision, false)))
    }

    fn queue_event(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        Ticket::ready(self.run(run_id).map(|run| run.queue_decision(decision, true)))
    }

    fn put_event(&self, event: OutsideEvent) -> Ticket<EventPut> {
        Ticket::ready(Ok(self.keep(event)))
    }

    fn mark_event(&self, run_id: &str, id: &str, is_taken: bool) -> Ticket<bool> {
        Ticket::ready(self.run(run_id).map(|run| {
            let is_new = self.note_taken(run.org.as_deref(), id, is_taken);
            if is_new {
                run.note_marked(id, is_taken);
            }
            is_new
        }))
    }

    fn event_waiters(&self, org: Option<&str>, event: &str) -> Ticket<Vec<EventWaiter>> {
        Ticket::ready(Ok(self.waiters(org, event)))
    }

    fn kept_events(&self, run_id: &str, query: KeptQuery) -> Ticket<Vec<KeptEvent>> {
        Ticket::ready(self.run(run_id).map(|run| self.kept(run.org.as_deref(), &query)))
    }

    fn queued_decisions(&self, run_id: &str) -> Ticket<Vec<QueuedDecision>> {
        Ticket::ready(self.run(run_id).map(|run| run.data().decisions.values().cloned().collect()))
    }

    fn settle_decision(&self, run_id: &str, id: &str, settled: SettledDecision) -> Ticket<()> {
        Ticket::ready(self.run(run_id).map(|run| run.settle_decision(id, settled)))
    }

    fn complete_row(&self, run_id: &str, row: RowCompletion) -> Ticket<()> {
        Ticket::ready(match self.run(run_id) {
            Ok(run) => {
                run.complete(row);
                Ok(())
            }
            Err(StoreError::NoSuchRun(_)) => Ok(()),
            Err(fault) => Err(fault),
        })
    }

    fn finish_copy(&self, run_id: &str, fence: u64, record: StatusRecord) -> Ticket<()> {
        Ticket::ready(self.run(run_id).and_then(|run| {
            let mut data = run.held(fence)?;
            data.callback_at_ms = record.is_to_be_posted().then(|| self.after(CALLBACK_LEASE));
            (data.status_record, data.driven) = (record, false);
            Ok(())
        }))
    }

    fn extras(&self, run_id: &str) -> Ticket<RunExtras> {
        let scheduled = || self.schedules().of(run_id);
        Ticket::ready(self.run(run_id).map(|run| RunExtras { scheduled: scheduled(), ..run.extras() }))
    }

    fn prune(&self, which: PruneQuery) -> Ticket<u64> {
        Ticket::ready(failpoint::store_call().map(|()| self.pruned(&which)))
    }

    fn introduce(&self, folder: &str, address: Option<&str>) -> Ticket<()> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address.map(str::to_owned);
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder.to_owned());
        Ticket::ready(Ok(()))
    }

    fn workers(&self) -> Ticket<Vec<Worker>> {
        Ticket::ready(Ok(self.own_process()))
    }

    fn absolve(&self, _run_ids: Vec<String>) -> Ticket<()> {
        // It ends with its drivers.
        Ticket::ready(Ok(()))
    }

    fn serve_schedules(&self, served: ServedSchedules) -> Ticket<Vec<i64>> {
        Ticket::ready(failpoint::store_call().map(|()| self.schedules().serve(&served)))
    }

    fn schedule_runs(&self, schedule: &str, now_ms: i64) -> Ticket<ScheduleRuns> {
        Ticket::ready(failpoint::store_call().map(|()| self.runs_of(schedule, now_ms)))
    }

    fn disregard_ahead(&self, schedule: &str, now_ms: i64) -> Ticket<()> {
        Ticket::ready(failpoint::store_call().map(|()| self.schedules().disregard_ahead(schedule, now_ms)))
    }

    fn note_audit(&self, lines: Vec<AuditLine>) -> Ticket<()> {
        let mut log = self.audit_log();
        lines.into_iter().for_each(|line| log.add(line));
        Ticket::ready(Ok(()))
    }

    fn audit(&self, filter: AuditFilter) -> Ticket<Vec<AuditLine>> {
        Ticket::ready(Ok(self.audit_lines(&filter)))
    }

    fn switch_loop(&self, switch: LoopSwitch) -> Ticket<()> {
        self.switched(switch);
        Ticket::ready(Ok(()))
    }

    fn reserve(&self, reservation: Reservation) -> Ticket<Reserving> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Ticket::ready(Ok(ledger.reserve(reservation, |run_id, fence| self.is_held(run_id, fence))))
    }

    fn settle(&self, settlement: Settlement) -> Ticket<bool> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Ticket::ready(Ok(ledger.settle(&settlement)))
    }

    fn pace(&self, share: RateShare) -> Ticket<i64> {
        if let Err(fault) = failpoint::store_call() {
            return Ticket::ready(Err(fault));
        }
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Ticket::ready(Ok(ledger.pace(share)))
    }

    fn ledger(&self, now_ms: i64, part: Option<String>) -> Ticket<Vec<LedgerAccount>> {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let accounts = ledger.accounts(now_ms, |run_id, fence| self.is_held(run_id, fence));
        Ticket::ready(Ok(largest_first(accounts, part.as_deref())))
    }

    fn loop_switches(&self) -> Ticket<Vec<LoopSwitch>> {
        Ticket::ready(Ok(self.switches()))
    }

    fn recall(&self, session: &str) -> Ticket<BTreeMap<String, Value>> {
        let sessions = || self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        Ticket::ready(failpoint::store_call().map(|()| sessions().get(session).cloned().unwrap_or_default()))
    }

    fn forget(&self, session: &str) -> Ticket<u64> {
        let had = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(session).unwrap_or_default();
        Ticket::ready(Ok(u64::try_from(had.len()).unwrap_or(u64::MAX)))
    }
}
