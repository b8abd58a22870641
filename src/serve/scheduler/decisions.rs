//! Decisions of humans: they resume a run at once, or go to the driver that has it here.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::run_tasks::{DrivenRun, DriverTask};
use super::{ActiveRun, Scheduler};
use crate::drive::clock;
use crate::drive::decision_queue::DecidedElsewhere;
use crate::drive::engine::{Engine, Resume};
use crate::engine::event::Decision;
use crate::engine::flow::form_answer;
use crate::journal::StoreError;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::{Owner, later};
use crate::serve::request::WaitQuery;
use crate::serve::run_store::{DecidedRun, FollowedRun, ProgramOfRun};

/// How long a decision waits for a run that is driven here. Then it is refused.
const DECISION_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a decision waits for a step whose run is under way. Then it is stored for the driver of the run.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval of the attempts meanwhile.
const BUSY_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Who takes a decision.
pub enum DecisionTaker {
    /// This server, which drives the run from the decision on.
    Here(Arc<ActiveRun>),
    /// The driver of the run in this server: other steps of it are under way.
    Beside(Arc<ActiveRun>),
    /// The process that drives the run has taken it.
    Elsewhere,
    /// It is stored for the driver of the run.
    Queued,
}

impl DecisionTaker {
    /// The run, if it is driven here.
    pub fn active(self) -> Option<Arc<ActiveRun>> {
        match self {
            Self::Here(active) | Self::Beside(active) => Some(active),
            Self::Elsewhere | Self::Queued => None,
        }
    }

    /// How long the response may wait for the run: not at all where others than this decision make it continue. Then the
    /// decision is stored, and that is what the response says.
    fn bounds(&self, waiting: WaitQuery) -> WaitQuery {
        WaitQuery { is_async: waiting.is_async || !matches!(self, Self::Here(_)), ..waiting }
    }
}

impl Scheduler {
    /// Takes a decision for a response that may wait for the run and whose caller may read replies while they arrive: the run,
    /// if it is driven here, and how long the response may wait for it.
    ///
    /// # Errors
    /// Those of [`Scheduler::decide`].
    pub async fn decide_for(
        self: &Arc<Self>,
        run: &mut DecidedRun,
        resume: Resume,
        new_document: Option<bool>,
        owner: &Owner,
        waiting: WaitQuery,
    ) -> Result<(Option<Arc<ActiveRun>>, WaitQuery), ProblemDetails> {
        let reader = waiting.deltas.then(|| self.readers.join(&run.row.run_id));
        let taker = self.decide(run, resume, new_document, owner).await?;
        let waiting = taker.bounds(waiting);
        let active = taker.active();
        if let Some((reader, active)) = reader.zip(active.as_ref()) {
            active.expect_reader(reader);
        }
        Ok((active, waiting))
    }

    /// Resumes a run as a human wants: with a decision, a retry or raised limits, or a quarantined run. It needs no free
    /// slot, because the caller must learn whether the decision was accepted. The driver of a workflow here takes the
    /// decision about a step that waits while other steps are under way; if another process drives it, the decision is
    /// passed on to that one.
    ///
    /// # Errors
    /// When the decision does not fit, another driver has the run, the owner drives too many runs after
    /// decisions, or the store fails.
    pub async fn decide(
        self: &Arc<Self>,
        run: &mut DecidedRun,
        resume: Resume,
        new_document: Option<bool>,
        owner: &Owner,
    ) -> Result<DecisionTaker, ProblemDetails> {
        Engine::may_resume(&run.row, &resume)?;
        let resume = resume.of_run(&run.row);
        self.quotas.check_time(owner)?;
        if let Some(decided) = resume.decided.as_ref().filter(|decided| matches!(decided.decision, Decision::Answer(_)))
        {
            form_answer::judge(&self.runs.read(run).await?.run.state, decided).map_err(ProblemDetails::bad_answer)?;
        }
        let asked_at = clock::instant();
        loop {
            match self.decide_here(run, &resume, new_document, owner).await {
                // Another answer has the step's run under way, most often for a moment.
                Err(problem) if problem.is_busy() && clock::elapsed(asked_at) < BUSY_TIMEOUT => {
                    tokio::time::sleep(BUSY_POLL_INTERVAL).await;
                }
                Err(problem)
                    if (problem.is_driven_elsewhere() || problem.is_busy())
                        && new_document != Some(true)
                        && resume.is_decision_alone() =>
                {
                    // As the run is now: its document is not exchanged.
                    let FollowedRun { program: ProgramOfRun { program, engine }, run: read } =
                        self.runs.read_on(run).await?;
                    match engine.decide_elsewhere(program, read, &resume).await? {
                        DecidedElsewhere::Taken => return Ok(DecisionTaker::Elsewhere),
                        DecidedElsewhere::Queued => return Ok(DecisionTaker::Queued),
                        DecidedElsewhere::NotDriven if problem.is_busy() => return Err(problem),
                        DecidedElsewhere::NotDriven => {}
                    }
                }
                taken => return taken,
            }
        }
    }

    /// Takes a decision about a run that is driven here, or by nobody.
    async fn decide_here(
        self: &Arc<Self>,
        run: &mut DecidedRun,
        resume: &Resume,
        new_document: Option<bool>,
        owner: &Owner,
    ) -> Result<DecisionTaker, ProblemDetails> {
        let run_id = run.row.run_id.clone();
        let run_id = run_id.as_str();
        if let Some(driven) = self.active(run_id) {
            // Other steps of a workflow may be under way.
            if let Some(engine) = driven.engine().filter(|_| new_document != Some(true))
                && engine.decide_beside(run_id, resume).await?
            {
                return Ok(DecisionTaker::Beside(driven));
            }
            // The driver of a decision about another call of this pause may still be about to release the run.
            drop(tokio::time::timeout(DECISION_TIMEOUT, driven.left()).await);
        }
        let active = ActiveRun::new(None);
        let slot = {
            let mut schedule = self.schedule();
            if schedule.active.contains_key(run_id) {
                return Err(StoreError::Driven(run_id.to_owned()).into());
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
        let (leased, program) = self.lease(run, new_document).await?;
        let resume = Resume { new_document: new_document == Some(true), ..resume.clone() };
        let (sender, taken) = oneshot::channel();
        let driving = self.spawn(
            program,
            driven,
            DriverTask::Resume { run: Box::new(leased), resume: Box::new(resume), taken: Some(sender) },
        );
        // The sender is dropped with its run: then the end of the run is the answer.
        match taken.await {
            Ok(()) => Ok(DecisionTaker::Here(active)),
            Err(_) => match driving.await {
                Ok(Some(fault)) => Err(fault.into()),
                _ => Ok(DecisionTaker::Here(active)),
            },
        }
    }
}
