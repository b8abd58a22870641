//! Drives runs: a task for each, which holds a slot until it ends.

use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::active_run::NoticeForwarder;
use super::slots::RunSlot;
use super::{ActiveRun, Scheduler};
use crate::drive::begin::StartedRun;
use crate::drive::engine::{Finished, Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::lease_guard::LeasedRun;
use crate::journal::StoreError;
use crate::serve::quotas::{Owner, Permit};
use crate::serve::run_store::{FoldedRun, ProgramOfRun};
use crate::trace::Redaction;

/// A run that is driven here, and the slot that it holds. Dropping this gives the slot back, also when the driver
/// panics.
pub(super) struct DrivenRun {
    scheduler: Arc<Scheduler>,
    pub run_id: String,
    active: Arc<ActiveRun>,
    slot: RunSlot,
    /// Its place among the queued runs of its owner, if it keeps it.
    place: Option<Permit>,
    /// The run as its driver left it.
    left: Option<Arc<FoldedRun>>,
}

impl DrivenRun {
    /// Counts a run as driven from now on.
    pub fn new(scheduler: &Arc<Scheduler>, run_id: String, active: Arc<ActiveRun>, slot: RunSlot) -> Self {
        scheduler.quotas.driven(&slot.owner);
        scheduler.metrics.drives(&run_id, slot.owner.org.as_deref());
        Self { scheduler: Arc::clone(scheduler), run_id, active, slot, place: None, left: None }
    }

    /// Whose run it is.
    pub fn owner(&self) -> &Owner {
        &self.slot.owner
    }

    /// The same, with a place among the queued runs that it keeps.
    pub fn in_place(mut self, place: Option<Permit>) -> Self {
        self.place = place;
        self
    }
}

impl Drop for DrivenRun {
    fn drop(&mut self) {
        let Self { scheduler, run_id, active, slot, place, left } = self;
        if std::thread::panicking() {
            tracing::error!(run_id = run_id.as_str(), "the run's driver panicked; the next server resumes it");
        }
        scheduler.quotas.left(&slot.owner);
        scheduler.metrics.left(run_id);
        drop(place.take());
        {
            let mut schedule = scheduler.schedule();
            schedule.slots.give_back(slot);
            if std::thread::panicking() {
                schedule.backoffs.rest_for_good(run_id);
            }
            schedule.is_left(run_id);
            if schedule.active.get(run_id).is_some_and(|known| Arc::ptr_eq(known, active)) {
                schedule.active.remove(run_id);
            }
        }
        active.leave(left.take());
        scheduler.idle.notify_waiters();
        // Nothing is looked up for each run that ends while nothing waits.
        let schedule = scheduler.schedule();
        let waits = !schedule.left.is_empty() || !schedule.waiting.is_empty() || schedule.suspects.wait();
        drop(schedule);
        if waits && !std::thread::panicking() {
            scheduler.look();
        }
    }
}

/// What a driver does with its run.
pub(super) enum DriverTask {
    /// Drives a run that was started.
    Start(Box<StartedRun>),
    /// Resumes a run.
    Resume {
        run: Box<LeasedRun>,
        resume: Box<Resume>,
        /// Gets a message when the decision was accepted.
        taken: Option<oneshot::Sender<()>>,
    },
}

impl Scheduler {
    /// Drives a run in a task of its own; returns the fault when a decision was not accepted.
    pub(super) fn spawn(
        self: &Arc<Self>,
        program: ProgramOfRun,
        mut driven: DrivenRun,
        task: DriverTask,
    ) -> JoinHandle<Option<Fault>> {
        let scheduler = Arc::clone(self);
        let owner = driven.owner().span();
        let task = async move {
            let (result, is_refused) = scheduler.drive(&program, &driven, task).await;
            let result = result.map(|Finished { state }| {
                driven.left = Some(Arc::new(FoldedRun { program: program.program, state }));
            });
            if is_refused {
                let run_id = driven.run_id.clone();
                drop(driven);
                if result.is_ok() {
                    scheduler.callbacks.post_what_is_due(&run_id);
                }
                return result.err();
            }
            scheduler.finish(driven, result);
            None
        };
        tokio::spawn(task.instrument(owner))
    }

    /// Drives a run until it ends, waits or is left; returns whether its decision was not accepted.
    async fn drive(
        &self,
        program: &ProgramOfRun,
        driven: &DrivenRun,
        task: DriverTask,
    ) -> (Result<Finished, Fault>, bool) {
        let ProgramOfRun { program, engine } = program;
        driven.active.drive_with(engine);
        driven.active.watch_replies(Redaction::new(&program.project.redact));
        let questions = match program.as_flow() {
            Some(_) => self.callbacks.follow(&driven.run_id).await,
            None => None,
        };
        let forwarder = NoticeForwarder {
            run_id: driven.run_id.clone(),
            run: Arc::clone(&driven.active),
            readers: Arc::clone(&self.readers),
            followers: Arc::clone(&self.followers),
            program: Arc::clone(program),
            decision_taken: Mutex::default(),
            questions,
            alone: self.is_alone(&driven.run_id).then(|| Arc::clone(&driven.scheduler)),
        };
        let watch = Watch { listener: Some(&forwarder), stop: Some(driven.active.stop(&self.stop())) };
        let result = match task {
            DriverTask::Start(started) => engine.drive(program, started, watch).await,
            DriverTask::Resume { run, resume, taken } => {
                forwarder.expect_decision(taken);
                engine.resume_leased(program, *run, *resume, watch).await
            }
        };
        (result, forwarder.awaits_decision())
    }

    /// Frees the slot of a run, and does what its end requires.
    pub(super) fn finish(self: &Arc<Self>, driven: DrivenRun, result: Result<(), Fault>) {
        let run_id = driven.run_id.clone();
        let left = driven.left.clone();
        // What is known without a look-up has no callback.
        let may_post = driven.active.row.is_none();
        let run_id = run_id.as_str();
        let is_driven = result.is_ok();
        match result {
            Ok(()) => self.schedule().backoffs.forget(run_id),
            // Another driver has it, or one of its sub-runs.
            Err(Fault::Store(StoreError::Driven(_)) | Fault::Cut(StoreError::Fenced(_) | StoreError::Driven(_))) => {}
            Err(fault) => {
                // Before its slot is free: nobody here claims it at once.
                self.schedule().backoffs.rest(run_id);
                match fault {
                    Fault::Store(fault) | Fault::Cut(fault) if !matches!(fault, StoreError::Corrupt(_)) => {
                        tracing::error!(
                            run_id,
                            code = fault.code(),
                            "the store failed; the run will be resumed: {fault}"
                        );
                    }
                    fault => tracing::error!(run_id, code = fault.code(), "the run can't be resumed: {fault}"),
                }
            }
        }
        drop(driven);
        if is_driven {
            if may_post {
                self.callbacks.post_what_is_due(run_id);
            }
            self.resume_after_outage(run_id, left.as_deref());
        }
    }
}
