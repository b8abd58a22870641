//! Decides which runs are driven here: a limited number at once. The others wait in the store's queue, from which every
//! server of the store claims runs when it has slots for them.

mod active_run;
mod backoff;
mod claim;
mod decisions;
mod launch_queue;
mod outage;
mod reply_readers;
mod round_robin;
mod run_followers;
mod run_tasks;
pub mod slots;
mod suspects;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Notify;
use tracing::Instrument as _;

pub use active_run::ActiveRun;
use backoff::RunBackoffs;
pub use launch_queue::SchedulerLink;
use outage::Outages;
pub use reply_readers::{ReplyReader, ReplyReaders};
use round_robin::Turns;
pub use run_followers::{RunFollower, RunFollowers};
use run_tasks::{DrivenRun, DriverTask};
use slots::RunSlots;
use suspects::Suspects;

use super::callback::Callbacks;
use super::metrics::Metrics;
use super::problem::ProblemDetails;
use super::quotas::{Owner, Permit, QuotaItem, Quotas};
use super::run_heads::{HeadReader, HeadWatch};
use super::run_store::{FoldedRun, ProgramOfRun, RunRow, RunStore};
use crate::drive::begin::StartedRun;
use crate::drive::fault::Fault;
use crate::drive::lease_guard::Leased;
use crate::drive::stop::Stop;
use crate::engine::outcome::Status;
use crate::journal::{CancelRequest, ModelWait, StoreError};

/// The interval at which a caller who waits for a run that is not driven here looks whether the server stops.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Decides which runs are driven here, and when.
pub struct Scheduler {
    runs: Arc<RunStore>,
    callbacks: Arc<Callbacks>,
    quotas: Arc<Quotas>,
    metrics: Arc<Metrics>,
    /// Who reads replies while they arrive.
    pub readers: Arc<ReplyReaders>,
    /// Who waits for runs on a connection.
    pub followers: Arc<RunFollowers>,
    heads: Arc<HeadWatch>,
    schedule: Mutex<RunSchedule>,
    /// Of the runs that are driven here; another one once they were asked to leave.
    stop: Mutex<Stop>,
    draining: AtomicBool,
    idle: Notify,
}

struct RunSchedule {
    slots: RunSlots,
    turns: Turns,
    /// The owners of whom some runs kept waiting at the last look at the queue.
    left: Vec<Owner>,
    looks: Looks,
    active: HashMap<String, Arc<ActiveRun>>,
    /// The runs that were started here and wait for a slot: for those that wait for them, and for quotas.
    waiting: HashMap<String, QueuedRun>,
    backoffs: RunBackoffs,
    suspects: Suspects,
    outages: Outages,
}

/// The looks at the queue: one at a time.
#[derive(Default)]
struct Looks {
    is_under_way: bool,
    is_wanted: bool,
}

/// A run that was started here and waits for a slot.
struct QueuedRun {
    owner: Owner,
    /// Its item in its owner's quota.
    permit: Option<Permit>,
    /// Whether another run started it: it keeps its item while it is driven.
    is_launched: bool,
    /// Whether its lease was released: from then on, any server may claim it.
    is_released: bool,
}

/// The right to start a run: its owner, and the permit to wait in the queue.
#[derive(Default)]
pub struct Admission {
    owner: Owner,
    permit: Option<Permit>,
}

/// A run that has ended or waits for a human.
pub struct SettledRun {
    /// Its row in the store; the default when the store has no such run.
    pub row: RunRow,
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
        let schedule = RunSchedule {
            slots,
            turns: Turns::default(),
            left: Vec::new(),
            looks: Looks::default(),
            active: HashMap::new(),
            waiting: HashMap::new(),
            backoffs: RunBackoffs::default(),
            suspects: Suspects::default(),
            outages: Outages::default(),
        };
        Self {
            heads: Arc::new(HeadWatch::new(Arc::clone(&runs.journal))),
            runs,
            callbacks,
            quotas,
            metrics,
            readers: Arc::default(),
            followers: Arc::default(),
            schedule: Mutex::new(schedule),
            stop: Mutex::default(),
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

    /// The wait of a run that is driven here for a model that failed.
    pub fn model_wait(&self, run_id: &str) -> Option<ModelWait> {
        self.active(run_id)?.engine()?.model_wait(run_id)
    }

    /// How many runs are driven here.
    pub fn driven(&self) -> usize {
        self.schedule().slots.driven()
    }

    /// Waits for news of a run that is not driven here.
    pub fn head_reader(&self, run_id: &str) -> HeadReader {
        self.heads.join(run_id)
    }

    /// Starts no more runs: the server is stopping.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
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
            for run_id in std::mem::take(&mut schedule.waiting).into_keys() {
                if let Some(active) = schedule.active.remove(&run_id) {
                    active.leave(None);
                }
            }
        }
        self.ask_all_to_leave();
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

    /// Drives a started run: at once, or when there is a slot for it. `row` is the run's row as it will be when its driver
    /// leaves it, if that is known now.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn start(
        self: &Arc<Self>,
        program: ProgramOfRun,
        started: Box<StartedRun>,
        admission: Admission,
        row: Option<RunRow>,
    ) -> Result<Arc<ActiveRun>, Fault> {
        let run_id = started.run_id().to_owned();
        let active = ActiveRun::new(row);
        let owner = admission.owner.clone();
        let slot = {
            let mut schedule = self.schedule();
            // A run does not overtake runs of its owner that wait.
            let may = !schedule.has_waiting(&admission.owner) && !self.is_draining();
            let slot = may.then(|| schedule.slots.take(&admission.owner)).flatten();
            schedule.active.insert(run_id.clone(), Arc::clone(&active));
            if slot.is_none() {
                let queued = QueuedRun {
                    owner: admission.owner,
                    permit: admission.permit,
                    is_launched: false,
                    is_released: false,
                };
                schedule.waiting.insert(run_id.clone(), queued);
            }
            slot
        };
        if let Some(slot) = slot {
            let driven = DrivenRun::new(self, run_id, Arc::clone(&active), slot);
            self.spawn(program, driven, DriverTask::Start(started));
            return Ok(active);
        }
        // The driver that claims the run needs the lease.
        let is_settled = started.is_settled();
        self.metrics.drives(&run_id, owner.org.as_deref());
        let left = started.leave(&program.engine, &program.program).instrument(owner.span()).await;
        self.metrics.left(&run_id);
        if is_settled {
            // It needs no slot: what the end of its driver would bring about is due now.
            self.forget(&run_id);
            self.callbacks.post_what_is_due(&run_id);
        }
        if let Some(queued) = self.schedule().waiting.get_mut(&run_id) {
            queued.is_released = true;
        }
        if self.is_draining() {
            // The runs that wait may have been left before this one was added.
            self.forget(&run_id);
        }
        self.look();
        left.map(|()| active)
    }

    /// Cancels a run of this owner that nobody drives: it leaves the queue, and its result is posted. `None`: another driver
    /// has it, and was asked to cancel it.
    ///
    /// # Errors
    /// When it has ended, its document can't be read, or the store fails.
    pub async fn cancel(
        &self,
        run_id: &str,
        owner: &Owner,
        request: CancelRequest,
    ) -> Result<Option<FoldedRun>, Fault> {
        let leased = Leased::to_cancel(&self.runs.journal, run_id, &request).await?;
        let Some(leased) = leased else { return Ok(None) };
        let (run, ProgramOfRun { program, engine }) = self.read_leased(leased, run_id).await?;
        self.metrics.drives(run_id, owner.org.as_deref());
        let cancelled = engine.cancel_leased(&program, run, request).instrument(owner.span()).await;
        self.metrics.left(run_id);
        let state = cancelled?;
        self.forget(run_id);
        self.callbacks.post_what_is_due(run_id);
        Ok(Some(FoldedRun { program, state }))
    }

    /// Signals to all who wait for a run that waits here that it will not be driven here.
    fn forget(&self, run_id: &str) {
        let mut schedule = self.schedule();
        if schedule.waiting.remove(run_id).is_some()
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
    ) -> Result<Option<SettledRun>, StoreError> {
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
    ) -> Result<Option<SettledRun>, StoreError> {
        loop {
            let run = match active.take().or_else(|| self.active(run_id)) {
                Some(active) => {
                    let run = active.left().await;
                    // What its driver left is in the store. To look that up would cost as much as a step.
                    if let (Some(row), Some(run)) = (&active.row, &run)
                        && run.state.status() != Status::Running
                    {
                        return Ok(Some(SettledRun { row: row.clone(), run: Some(Arc::clone(run)) }));
                    }
                    run
                }
                None => None,
            };
            let Some(summary) = self.runs.journal.find(run_id).await? else {
                return Ok(Some(SettledRun { row: RunRow::default(), run: None }));
            };
            if summary.status != Status::Running {
                // Another driver may have changed the run since.
                let run = run.filter(|run| run.state.status() == summary.status);
                return Ok(Some(SettledRun { row: RunRow::from(&summary), run }));
            }
            if self.active(run_id).is_some() {
                continue;
            }
            let mut head = self.head_reader(run_id);
            loop {
                if self.is_draining() || self.schedule().backoffs.has(run_id) {
                    return Ok(None);
                }
                let settled = head.until(|head| head.status != Status::Running);
                if tokio::time::timeout(DRAIN_POLL_INTERVAL, settled).await.is_ok() || self.active(run_id).is_some() {
                    break;
                }
            }
        }
    }
}

impl RunSchedule {
    /// Whether runs of this owner wait.
    fn has_waiting(&self, owner: &Owner) -> bool {
        self.left.contains(owner) || self.waiting.values().any(|queued| queued.owner == *owner)
    }
}
