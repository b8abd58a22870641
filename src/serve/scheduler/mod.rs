//! Decides which runs are driven here: a limited number at once, while the others wait for a slot. A queued run
//! is in the store like any other; nobody drives it yet.

mod active;
mod driving;
mod due;
mod outage;
mod queue;
mod readers;
mod recovery;
pub mod slots;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{Notify, oneshot};

pub use active::ActiveRun;
use driving::{DrivenRun, DriverTask};
use outage::Outages;
use queue::Queue;
pub use readers::{ReplyReader, ReplyReaders};
use recovery::Recovered;
use slots::RunSlots;

use super::callback::Callbacks;
use super::metrics::Metrics;
use super::problem::ProblemDetails;
use super::quotas::{Owner, Permit, QuotaItem, Quotas, later};
use super::run_store::{FoldedRun, ProgramOfRun, RunStore};
use crate::drive::begin::StartedRun;
use crate::drive::engine::{Engine, Resume};
use crate::drive::fault::Fault;
use crate::drive::lease_guard::Leased;
use crate::drive::stop::Stop;
use crate::engine::outcome::Status;
use crate::journal::{RunSummary, StoreFault};

/// The interval at which a run that another process drives is polled.
const POLL: Duration = Duration::from_millis(250);

/// How long a decision waits for a run that is driven here. Then it is refused.
const BETWEEN_DECISIONS: Duration = Duration::from_secs(2);

/// Decides which runs are driven here, and when.
pub struct Scheduler {
    runs: Arc<RunStore>,
    callbacks: Arc<Callbacks>,
    quotas: Arc<Quotas>,
    metrics: Arc<Metrics>,
    /// Who reads replies while they arrive.
    pub readers: Arc<ReplyReaders>,
    schedule: Mutex<RunSchedule>,
    stop: Stop,
    draining: AtomicBool,
    idle: Notify,
}

struct RunSchedule {
    slots: RunSlots,
    queue: Queue<QueuedRun>,
    active: HashMap<String, Arc<ActiveRun>>,
    outages: Outages,
}

/// A run that waits for a slot.
struct QueuedRun {
    run_id: String,
    /// Its item in its owner's quota; a run that was recovered from the store counts in none.
    _permit: Option<Permit>,
}

/// The right to start a run: its owner, and the permit to wait in the queue.
#[derive(Default)]
pub struct Admission {
    owner: Owner,
    permit: Option<Permit>,
}

/// A run that has ended or waits for a human.
pub struct SettledRun {
    /// Its row in the store; none when the store has no such run.
    pub summary: Option<RunSummary>,
    /// The run as its driver left it, when it was driven here.
    pub run: Option<Arc<FoldedRun>>,
}

impl Scheduler {
    /// A scheduler with these slots.
    pub fn new(
        runs: Arc<RunStore>,
        callbacks: Arc<Callbacks>,
        quotas: Arc<Quotas>,
        metrics: Arc<Metrics>,
        slots: RunSlots,
    ) -> Self {
        let schedule =
            RunSchedule { slots, queue: Queue::default(), active: HashMap::new(), outages: Outages::default() };
        Self {
            runs,
            callbacks,
            quotas,
            metrics,
            readers: Arc::default(),
            schedule: Mutex::new(schedule),
            stop: Stop::new(),
            draining: AtomicBool::new(false),
            idle: Notify::new(),
        }
    }

    fn schedule(&self) -> MutexGuard<'_, RunSchedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run, if it is driven here or queued.
    pub fn active(&self, run_id: &str) -> Option<Arc<ActiveRun>> {
        self.schedule().active.get(run_id).cloned()
    }

    /// How many runs are driven here, and how many wait.
    pub fn load(&self) -> (usize, usize) {
        let schedule = self.schedule();
        (schedule.slots.driven(), schedule.queue.len())
    }

    /// Starts no more runs: the server is stopping.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.metrics.leave();
    }

    /// Whether the server is stopping.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Refuses requests for runs while the server is stopping.
    ///
    /// # Errors
    /// 503 then.
    pub fn accepts_runs(&self) -> Result<(), ProblemDetails> {
        if !self.is_draining() {
            return Ok(());
        }
        let detail = "the server is stopping: retry in a moment";
        Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "draining", detail))
    }

    /// Lets every run end its step and then leaves it; returns when all are left.
    pub async fn leave_all(&self) {
        {
            let mut schedule = self.schedule();
            for queued in schedule.queue.remove(|_| true) {
                if let Some(active) = schedule.active.remove(&queued.run_id) {
                    active.leave(None);
                }
            }
        }
        self.stop.leave();
        loop {
            let idle = self.idle.notified();
            if self.schedule().slots.driven() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Whether an owner may start a run, and queue it if there is no slot.
    ///
    /// # Errors
    /// 429 when its runs have used up their time, or too many of them are queued.
    pub fn admit(&self, owner: Owner) -> Result<Admission, ProblemDetails> {
        self.quotas.check_time(&owner)?;
        match self.quotas.take(&owner, QuotaItem::Queued) {
            Ok(permit) => Ok(Admission { owner, permit: Some(permit) }),
            // It need not wait.
            Err(_) if self.schedule().slots.has_room(&owner) => Ok(Admission { owner, permit: None }),
            Err(problem) => Err(problem),
        }
    }

    /// Drives a started run: at once, or when there is a slot for it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn start(
        self: &Arc<Self>,
        program: ProgramOfRun,
        started: Box<StartedRun>,
        admission: Admission,
    ) -> Result<Arc<ActiveRun>, Fault> {
        let run_id = started.run_id().to_owned();
        let active = ActiveRun::new();
        let slot = {
            let mut schedule = self.schedule();
            // A run does not overtake queued runs of its owner.
            let may = !schedule.queue.has(&admission.owner) && !self.is_draining();
            let slot = may.then(|| schedule.slots.take(&admission.owner)).flatten();
            schedule.active.insert(run_id.clone(), Arc::clone(&active));
            slot
        };
        if let Some(slot) = slot {
            let driven = DrivenRun::new(self, run_id, Arc::clone(&active), slot);
            self.spawn(program, driven, DriverTask::Start(started));
            return Ok(active);
        }
        // The lease is released first: the driver that takes the run from the queue needs it.
        let left = started.leave().await;
        let queued = QueuedRun { run_id: run_id.clone(), _permit: admission.permit };
        self.schedule().queue.push(&admission.owner, queued);
        self.start_queued();
        if self.is_draining() {
            // The queue may have been cleared before this run was added.
            self.forget(&run_id);
        }
        left.map(|()| active)
    }

    /// Starts queued runs while there are slots.
    fn start_queued(self: &Arc<Self>) {
        while let Some(driven) = self.next_queued() {
            let scheduler = Arc::clone(self);
            tokio::spawn(async move {
                match scheduler.recover(&driven.run_id).await {
                    Ok(Recovered::Leased(run, program)) => {
                        let task = DriverTask::Resume { run: Box::new(run), resume: Box::default(), taken: None };
                        scheduler.spawn(program, driven, task);
                    }
                    Ok(Recovered::Quarantined) => drop(driven),
                    Err(fault) => scheduler.finish(driven, Err(fault)),
                }
            });
        }
    }

    /// The next queued run with its slot; none when the queue is empty, or no owner in it has a slot.
    fn next_queued(self: &Arc<Self>) -> Option<DrivenRun> {
        let (run_id, active, slot) = {
            let mut schedule = self.schedule();
            let RunSchedule { slots, queue, active, .. } = &mut *schedule;
            if self.is_draining() || slots.is_full() {
                return None;
            }
            let (owner, QueuedRun { run_id, .. }) = queue.pop(|owner| slots.has_room(owner))?;
            let slot = slots.take(&owner)?;
            let active = Arc::clone(active.entry(run_id.clone()).or_insert_with(ActiveRun::new));
            (run_id, active, slot)
        };
        Some(DrivenRun::new(self, run_id, active, slot))
    }

    /// Resumes a run as a human wants: with a decision, a retry or raised limits, or a quarantined run. It needs no free slot, because the
    /// caller must learn whether the decision was accepted.
    ///
    /// # Errors
    /// When the decision does not fit, another driver has the run, the owner drives too many runs after
    /// decisions, or the store fails.
    pub async fn decide(
        self: &Arc<Self>,
        run: &RunSummary,
        mut resume: Resume,
        new_document: Option<bool>,
        owner: &Owner,
    ) -> Result<Arc<ActiveRun>, ProblemDetails> {
        let run_id = run.run_id.as_str();
        Engine::may_resume(run, &resume)?;
        self.quotas.check_time(owner)?;
        // The driver of a decision about another call of this pause may still be about to release the run.
        if let Some(driven) = self.active(run_id) {
            drop(tokio::time::timeout(BETWEEN_DECISIONS, driven.left()).await);
        }
        let active = ActiveRun::new();
        let slot = {
            let mut schedule = self.schedule();
            if schedule.active.contains_key(run_id) {
                return Err(StoreFault::Driven(run_id.to_owned()).into());
            }
            let slot = schedule.slots.take_decided(owner).ok_or_else(|| {
                let detail =
                    "this token or its organisation has the maximum number of runs that were resumed by a decision";
                later("too_many_running", detail, 1_000)
            })?;
            schedule.active.insert(run_id.to_owned(), Arc::clone(&active));
            slot
        };
        let driven = DrivenRun::new(self, run_id.to_owned(), Arc::clone(&active), slot);
        let (leased, program) = self.lease(run_id, new_document).await?;
        resume.new_document = new_document == Some(true);
        let (sender, taken) = oneshot::channel();
        let driving = self.spawn(
            program,
            driven,
            DriverTask::Resume { run: Box::new(leased), resume: Box::new(resume), taken: Some(sender) },
        );
        // The sender is dropped with its run: then the end of the run is the answer.
        match taken.await {
            Ok(()) => Ok(active),
            Err(_) => match driving.await {
                Ok(Some(fault)) => Err(fault.into()),
                _ => Ok(active),
            },
        }
    }

    /// Cancels a run that nobody drives: it leaves the queue, and its result is posted. `None`: another driver
    /// has it, and was asked to cancel it.
    ///
    /// # Errors
    /// When it has ended, its document can't be read, or the store fails.
    pub async fn cancel(&self, run_id: &str, reason: Option<String>) -> Result<Option<FoldedRun>, Fault> {
        let leased = Leased::to_cancel(&self.runs.journal, run_id, reason.as_deref()).await?;
        let Some(leased) = leased else { return Ok(None) };
        let (run, ProgramOfRun { program, engine }) = self.read_leased(leased, run_id).await?;
        let state = engine.cancel_leased(&program, run, reason).await?;
        self.metrics.cancelled();
        self.forget(run_id);
        self.callbacks.post_what_is_due(run_id);
        Ok(Some(FoldedRun { program, state }))
    }

    /// Removes a run from the queue that will not be driven here, and signals that to all who wait for it.
    fn forget(&self, run_id: &str) {
        let mut schedule = self.schedule();
        let removed = schedule.queue.remove(|queued| queued.run_id == run_id);
        if !removed.is_empty()
            && let Some(active) = schedule.active.remove(run_id)
        {
            active.leave(None);
        }
    }

    /// Waits until the run has ended, waits for a human or is left, but no longer than `at_most`. `None` when
    /// it continues. `active` is the run if the caller knows that it is driven here.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn wait(
        &self,
        run_id: &str,
        active: Option<Arc<ActiveRun>>,
        at_most: Option<Duration>,
    ) -> Result<Option<SettledRun>, StoreFault> {
        let settled = self.settled(run_id, active);
        match at_most {
            Some(at_most) => tokio::time::timeout(at_most, settled).await.unwrap_or(Ok(None)),
            None => settled.await,
        }
    }

    async fn settled(
        &self,
        run_id: &str,
        mut active: Option<Arc<ActiveRun>>,
    ) -> Result<Option<SettledRun>, StoreFault> {
        loop {
            let run = match active.take().or_else(|| self.active(run_id)) {
                Some(active) => active.left().await,
                None => None,
            };
            let Some(summary) = self.runs.journal.find(run_id).await? else {
                return Ok(Some(SettledRun { summary: None, run: None }));
            };
            if summary.status != Status::Running {
                // Another driver may have changed the run since.
                let run = run.filter(|run| run.state.status() == summary.status);
                return Ok(Some(SettledRun { summary: Some(summary), run }));
            }
            if self.is_draining() || (!summary.driven && self.active(run_id).is_none()) {
                return Ok(None);
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
