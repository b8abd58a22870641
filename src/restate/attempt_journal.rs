//! The journal of one attempt at a run. What the driver writes becomes durable in Restate; what it reads is a copy in
//! memory, which a new attempt makes again from the steps in Restate's journal.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::record::JournalWrite;
use crate::engine::blob::Blob;
use crate::journal::memory::MemoryJournal;
use crate::journal::{
    AnswerToken, Append, AuditFilter, AuditLine, CallbackProgress, CancelRequest, ClaimedRun, Created, EventPut,
    EventWaiter, Journal, KeptEvent, KeptQuery, Lease, LoopSwitch, MeasuredRun, ModelWait, NewRun, OutsideEvent,
    PlaceInLine, PruneQuery, QueueQuery, QueueShare, QueuedDecision, QueuedRuns, Queueing, RowCompletion, RunCounts,
    RunExtras, RunFilter, RunHead, RunSummary, ScheduleRuns, ServedSchedules, SettledDecision, StoreError, Ticket,
    WaitMoments, Worker,
};

/// A write that is not durable yet.
pub struct PendingWrite {
    /// What is written.
    pub write: JournalWrite,
    /// Lets the driver continue.
    pub durable: Acknowledgement,
}

/// What the driver waits for.
pub enum Acknowledgement {
    /// That a run was created.
    Run(oneshot::Sender<Result<Created, StoreError>>, Lease),
    /// That an event was appended.
    Event(oneshot::Sender<Result<(), StoreError>>),
}

impl Acknowledgement {
    /// Reports that the write is durable. The driver may have gone.
    pub fn send(self) {
        match self {
            Self::Run(driver, lease) => drop(driver.send(Ok(Created::New(lease)))),
            Self::Event(driver) => drop(driver.send(Ok(()))),
        }
    }
}

pub struct AttemptJournal {
    copy: MemoryJournal,
    writes: mpsc::UnboundedSender<PendingWrite>,
}

impl AttemptJournal {
    /// An empty journal, and what is written to it.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<PendingWrite>) {
        let (writes, pending) = mpsc::unbounded_channel();
        (Self { copy: MemoryJournal::new(), writes }, pending)
    }

    /// The copy in memory: what is written to it is durable already.
    pub fn copy(&self) -> &MemoryJournal {
        &self.copy
    }
}

/// A ticket that is ready has its answer.
fn answer<T: Unpin>(ticket: Ticket<T>) -> Result<T, StoreError> {
    match ticket {
        Ticket::Ready(Some(answer)) => answer,
        Ticket::Ready(None) | Ticket::Coming(_) => {
            Err(StoreError::Other("the copy in memory has no answer".to_owned()))
        }
    }
}

/// Methods that only the copy in memory answers.
macro_rules! of_the_copy {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> Ticket<$answer> {
            self.copy.$name($($argument),*)
        })*
    };
}

impl Journal for AttemptJournal {
    fn create(&self, run: NewRun) -> Ticket<Created> {
        if run.line.is_some() {
            let why = "`concurrency` is held by a store, and the runs of a Restate server are not in one";
            return Ticket::ready(Err(StoreError::Other(why.to_owned())));
        }
        let write = JournalWrite::run(&run);
        let run_id = run.run_id.clone();
        let lease = match answer(self.copy.create(run)) {
            Ok(Created::New(lease)) => lease,
            other => return Ticket::ready(other),
        };
        let (driver, durable) = oneshot::channel();
        let pending = PendingWrite { write, durable: Acknowledgement::Run(driver, lease) };
        match self.writes.send(pending) {
            Ok(()) => Ticket::Coming(durable),
            Err(_) => Ticket::ready(Err(StoreError::Fenced(run_id))),
        }
    }

    fn append(&self, entry: Append) -> Ticket<()> {
        let write = JournalWrite::event(&entry);
        let run_id = entry.run_id.clone();
        if let Err(fault) = answer(self.copy.append(entry)) {
            return Ticket::ready(Err(fault));
        }
        let (driver, durable) = oneshot::channel();
        match self.writes.send(PendingWrite { write, durable: Acknowledgement::Event(driver) }) {
            Ok(()) => Ticket::Coming(durable),
            Err(_) => Ticket::ready(Err(StoreError::Fenced(run_id))),
        }
    }

    /// The steps of the writes follow each other, so that the last one is durable after the others.
    fn append_all(&self, entries: Vec<Append>) -> Ticket<()> {
        entries.into_iter().map(|entry| self.append(entry)).last().unwrap_or_else(|| Ticket::ready(Ok(())))
    }

    /// An attempt that is over makes no further effect.
    fn confirm(&self, run_id: &str, fence: u64) -> Ticket<()> {
        if self.writes.is_closed() {
            return Ticket::ready(Err(StoreError::Fenced(run_id.to_owned())));
        }
        self.copy.confirm(run_id, fence)
    }

    of_the_copy! {
        read(run_id: &str) -> Vec<String>;
        read_from(run_id: &str, from: u64, most: usize) -> Vec<String>;
        texts(run_id: &str) -> Vec<Blob>;
        find(run_id: &str) -> Option<RunSummary>;
        find_of(org: Option<&str>, run_id: &str) -> Option<RunSummary>;
        find_by_key(start_key: &str) -> Option<RunSummary>;
        list(filter: RunFilter) -> Vec<RunSummary>;
        measured(filter: RunFilter) -> Vec<MeasuredRun>;
        run_counts(moments: WaitMoments) -> RunCounts;
        heads(run_ids: Vec<String>) -> Vec<RunHead>;
        queue(waiting: QueueQuery) -> Vec<QueuedRuns>;
        claim(waiting: QueueQuery, shares: Vec<QueueShare>) -> Vec<ClaimedRun>;
        line(run_id: &str) -> PlaceInLine;
        retry_at(run_id: &str, at_ms: i64) -> ();
        note_model_wait(run_id: &str, fence: u64, wait: Option<ModelWait>) -> ();
        called_under(run_id: &str) -> u64;
        lease(run_id: &str) -> Lease;
        release(run_id: &str, fence: u64) -> ();
        absolve(run_ids: Vec<String>) -> ();
        request_cancel(run_id: &str, request: CancelRequest) -> ();
        cancel_requested(run_id: &str) -> Option<CancelRequest>;
        claim_callbacks(most: usize) -> Vec<String>;
        note_callback(run_id: &str, progress: CallbackProgress, again_in: Option<Duration>, of_end_ms: Option<i64>) -> ();
        note_posted_pause(run_id: &str, pause: u32) -> ();
        put_answer_tokens(run_id: &str, tokens: Vec<AnswerToken>) -> ();
        answer_token(run_id: &str, hash: &str) -> Option<AnswerToken>;
        queue_decision(run_id: &str, decision: QueuedDecision) -> Queueing;
        queue_event(run_id: &str, decision: QueuedDecision) -> Queueing;
        put_event(event: OutsideEvent) -> EventPut;
        mark_event(run_id: &str, id: &str, is_taken: bool) -> bool;
        event_waiters(org: Option<&str>, event: &str) -> Vec<EventWaiter>;
        kept_events(run_id: &str, query: KeptQuery) -> Vec<KeptEvent>;
        queued_decisions(run_id: &str) -> Vec<QueuedDecision>;
        settle_decision(run_id: &str, id: &str, settled: SettledDecision) -> ();
        complete_row(run_id: &str, row: RowCompletion) -> ();
        extras(run_id: &str) -> RunExtras;
        prune(which: PruneQuery) -> u64;
        introduce(folder: &str, address: Option<&str>) -> ();
        workers() -> Vec<Worker>;
        serve_schedules(served: ServedSchedules) -> Vec<i64>;
        schedule_runs(schedule: &str, now_ms: i64) -> ScheduleRuns;
        disregard_ahead(schedule: &str, now_ms: i64) -> ();
        recall(session: &str) -> BTreeMap<String, Value>;
        note_audit(lines: Vec<AuditLine>) -> ();
        audit(filter: AuditFilter) -> Vec<AuditLine>;
        switch_loop(switch: LoopSwitch) -> ();
        loop_switches() -> Vec<LoopSwitch>;
    }
}
