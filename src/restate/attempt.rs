//! One attempt at a run: the driver as a task, and the steps that it makes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::attempt_journal::{Acknowledgement, AttemptJournal, PendingWrite};
use super::handover::{HandedRun, SessionMemory};
use super::journal_bound::{JournalBound, JournalUse, MAX_GATHERED_BYTES};
use super::record::{DurableStep, JournalWrite, RestReason};
use super::served_folder::{OrderedRun, ServedFolder};
use super::store_copy::{AttemptCopy, CopyStore};
use crate::drive::clock;
use crate::drive::engine::{Engine, Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::requirements::Missing;
use crate::drive::stop::Stop;
use crate::engine::event::Decided;
use crate::engine::outcome::Status;
use crate::engine::state::{Phase, State};
use crate::engine::wait_deadline::{away_model, due_at_ms};
use crate::journal::{CancelRequest, Journal as _, StoreError};
use crate::program::Program;
use crate::serve::run_store::RunRow;
use crate::serve::view::AgentStatus;

/// A request to cancel a run is looked for this often while something happens in it.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// A run that waits for its model asks it again after this time.
const OUTAGE_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// What the next driver does.
#[derive(Debug, Clone)]
pub enum NextTask {
    /// Starts the run, or resumes it where the last attempt left it.
    GoOn,
    /// Resumes it with a decision.
    Decide(Box<Decided>),
    /// Ends it.
    Cancel(Option<String>),
}

/// What all attempts of a process have in common.
pub struct AttemptContext {
    /// The loops.
    pub served: Arc<ServedFolder>,
    /// What a run may have in Restate's journal.
    pub bound: JournalBound,
    /// Where runs are copied to.
    pub store: Option<Arc<CopyStore>>,
}

/// One attempt at a run.
pub struct RunAttempt {
    served: Arc<ServedFolder>,
    run_id: String,
    /// The number of the workflow, from 1.
    part: usize,
    request: Value,
    journal: Arc<AttemptJournal>,
    writes: mpsc::UnboundedReceiver<PendingWrite>,
    driver: Option<RunningDriver>,
    /// Of the step that was made last, and may not be durable yet.
    unacknowledged: Option<Vec<Acknowledgement>>,
    /// When a request to cancel the run was looked for; none before the first step of this attempt.
    looked: Option<std::time::Instant>,
    /// Whether the step before this one was made by another attempt.
    is_repeating: bool,
    used: JournalUse,
    /// What is durable: what a further workflow begins with.
    durable: Vec<JournalWrite>,
    copy: Option<AttemptCopy>,
    session: Option<SessionMemory>,
    /// Asks the driver to leave the run.
    stop: Stop,
    /// Whether the run is to continue in a further workflow.
    is_leaving: bool,
}

/// A driver that ends when the attempt does.
struct RunningDriver(JoinHandle<Result<RestReason, Fault>>);

impl Drop for RunningDriver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RunAttempt {
    /// An attempt at a run that begins with this request.
    pub fn new(context: &AttemptContext, run_id: &str, request: Value) -> Self {
        let (journal, writes) = AttemptJournal::new();
        Self {
            served: Arc::clone(&context.served),
            run_id: run_id.to_owned(),
            part: 1,
            request,
            journal: Arc::new(journal),
            writes,
            driver: None,
            unacknowledged: None,
            looked: None,
            is_repeating: false,
            used: JournalUse::new(context.bound, 1, &[]),
            durable: Vec::new(),
            copy: context.store.as_ref().map(AttemptCopy::start),
            session: None,
            stop: Stop::new(),
            is_leaving: false,
        }
    }

    /// An attempt at a part of a run that another workflow handed over.
    ///
    /// # Errors
    /// When what was handed over does not fit together.
    pub async fn handed(context: &AttemptContext, handed: HandedRun) -> Result<Self, StoreError> {
        let HandedRun { run_id, part, writes, session, cancel } = handed;
        let mut attempt = Self::new(context, &run_id, Value::Null);
        (attempt.part, attempt.used) = (part, JournalUse::new(context.bound, part, &writes));
        if let Some(session) = session {
            attempt.join(session);
        }
        attempt.repeat(writes).await?;
        if let Some(order) = cancel {
            attempt.cancel(order.reason).await?;
        }
        Ok(attempt)
    }

    /// The same with what is durable, and without its driver.
    ///
    /// # Errors
    /// When what is durable does not fit together.
    pub async fn restarted(&mut self, context: &AttemptContext) -> Result<Self, StoreError> {
        let (used, request) = (self.used, std::mem::take(&mut self.request));
        let handed = HandedRun { part: self.part, ..self.hand_over() };
        Ok(Self { used, request, ..Self::handed(context, handed).await? })
    }

    /// Whether something of the run is durable.
    pub fn has_begun(&self) -> bool {
        !self.durable.is_empty()
    }

    /// What the next workflow of the run begins with.
    pub fn hand_over(&mut self) -> HandedRun {
        let writes = std::mem::take(&mut self.durable);
        HandedRun {
            run_id: self.run_id.clone(),
            part: self.part.saturating_add(1),
            writes,
            session: self.session.clone(),
            cancel: None,
        }
    }

    /// Called before the first step of a run that has a session.
    pub fn join(&mut self, session: SessionMemory) {
        self.journal.copy().know(&session.name, session.memory.clone());
        self.session = Some(session);
    }

    /// The session of the run.
    pub fn session(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.name.as_str())
    }

    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    async fn repeat(&mut self, writes: Vec<JournalWrite>) -> Result<(), StoreError> {
        for write in writes {
            write.clone().repeat(self.journal.copy()).await?;
            self.keep(write);
        }
        Ok(())
    }

    fn keep(&mut self, write: JournalWrite) {
        if let Some(copy) = &mut self.copy {
            copy.copy(write.clone());
        }
        self.durable.push(write);
    }

    /// Whether the copy of the run in a store is complete, after a short wait for it.
    pub async fn is_copied(&mut self) -> bool {
        match &mut self.copy {
            Some(copy) => copy.is_complete().await,
            None => true,
        }
    }

    /// Whether what is durable fits into one entry of Restate's journal.
    pub fn fits(&self) -> bool {
        self.used.fits()
    }

    /// Makes the next step: waits until the driver writes something, or leaves the run.
    ///
    /// # Errors
    /// When the driver failed for a reason that another attempt may not have.
    pub async fn step(&mut self, task: NextTask) -> Result<DurableStep, Fault> {
        let is_repeating = std::mem::take(&mut self.is_repeating);
        if self.is_leaving && self.driver.is_none() {
            // The driver died before it left the run: there is none that could be in the middle of something.
            self.unacknowledged = Some(Vec::new());
            return Ok(self.bounded(DurableStep { rest: Some(RestReason::Left), ..DurableStep::default() }));
        }
        if is_repeating {
            // A request to cancel the run may have come while there was no attempt that could see it: it is looked for before the
            // driver makes a call.
            self.unacknowledged = Some(Vec::new());
            let look = self.look();
            return Ok(self.bounded(DurableStep { look, ..DurableStep::default() }));
        }
        let mut driver = match self.driver.take() {
            Some(driver) => driver,
            None => self.driver(task).await?,
        };
        let mut pending: Vec<PendingWrite> = Vec::new();
        let left = tokio::select! {
            biased;
            first = self.writes.recv() => {
                pending.extend(first);
                None
            }
            left = &mut driver.0 => Some(left),
        };
        let mut bytes: usize = pending.iter().map(|pending| pending.write.bytes()).sum();
        while (left.is_some() || bytes < MAX_GATHERED_BYTES)
            && let Ok(more) = self.writes.try_recv()
        {
            bytes = bytes.saturating_add(more.write.bytes());
            pending.push(more);
        }
        let rest = match left {
            None => {
                self.driver = Some(driver);
                None
            }
            Some(Ok(left)) => Some(left?),
            Some(Err(ended)) => return Err(Fault::Cut(StoreError::Other(format!("the driver ended: {ended}")))),
        };
        let (writes, acknowledgements) = pending.into_iter().map(|pending| (pending.write, pending.durable)).unzip();
        self.unacknowledged = Some(acknowledgements);
        let completes_copy = self.copy.is_some() && matches!(rest, Some(RestReason::Ended { .. }));
        let step = DurableStep { writes, rest, look: self.look(), completes_copy, ..DurableStep::default() };
        if let Some(why) = self.used.refusal(&step) {
            self.driver = None;
            self.unacknowledged = Some(Vec::new());
            return Ok(DurableStep { rest: Some(RestReason::Refused { why }), ..DurableStep::default() });
        }
        Ok(self.bounded(step))
    }

    /// Whether it is time to look for a request to cancel the run.
    fn look(&mut self) -> bool {
        let is_due = self.looked.is_none_or(|looked| clock::elapsed(looked) >= CANCEL_POLL_INTERVAL);
        if is_due {
            self.looked = Some(clock::instant());
        }
        is_due
    }

    /// The step, and whether the run has too much in Restate's journal with it, or continues in a further workflow. These are parts of
    /// the step, so that each attempt decides the same.
    fn bounded(&self, step: DurableStep) -> DurableStep {
        let used = self.used.and(&step);
        let hands_over = self.is_leaving || used.hands_over();
        let excess = used.excess(hands_over);
        DurableStep { hands_over: hands_over && excess.is_none(), excess, ..step }
    }

    /// Called when a step is durable. The attempt that made it lets its driver continue; another one takes over what was
    /// written.
    ///
    /// # Errors
    /// When the steps in Restate's journal do not fit together.
    pub async fn durable(&mut self, step: DurableStep) -> Result<Option<RestReason>, StoreError> {
        self.used = self.used.and(&step);
        let acknowledgements = self.unacknowledged.take();
        self.is_repeating = acknowledgements.is_none();
        if self.is_repeating {
            self.repeat(step.writes).await?;
        } else {
            step.writes.into_iter().for_each(|write| self.keep(write));
        }
        if step.excess.is_some() {
            // Before the driver continues, so that it leaves no run that waits. It looks for the request now and then, and when it leaves.
            self.cancel(step.excess).await?;
            std::mem::take(&mut self.stop).leave();
            self.is_leaving = false;
        } else if step.hands_over {
            self.stop.leave();
            self.is_leaving = true;
        }
        acknowledgements.into_iter().flatten().for_each(Acknowledgement::send);
        Ok(step.rest)
    }

    /// Asks the driver to end the run.
    ///
    /// # Errors
    /// Never, while the run is in memory.
    pub async fn cancel(&self, reason: Option<String>) -> Result<(), StoreError> {
        match self.journal.request_cancel(&self.run_id, CancelRequest { reason, by: None }).await {
            Err(StoreError::NoSuchRun(_)) => Ok(()),
            other => other,
        }
    }

    pub fn journal(&self) -> Arc<AttemptJournal> {
        Arc::clone(&self.journal)
    }

    async fn driver(&self, task: NextTask) -> Result<RunningDriver, Fault> {
        let is_new = self.journal.find(&self.run_id).await.map_err(Fault::Store)?.is_none();
        let journal = Arc::clone(&self.journal);
        if is_new {
            return Ok(RunningDriver(match self.served.order(self.request.clone(), &self.run_id) {
                Err(why) => tokio::spawn(async move { Ok(RestReason::Refused { why }) }),
                Ok(OrderedRun { program, start }) => {
                    let engine = self.served.engine(&program, journal);
                    let watch = self.watch();
                    tokio::spawn(async move {
                        match engine.run(&program, start, watch).await {
                            Ok(finished) => rest(&program, finished.state, None),
                            Err(fault) if is_final(&fault) => Ok(RestReason::Refused { why: fault.to_string() }),
                            Err(fault) => Err(fault),
                        }
                    })
                }
            }));
        }
        let events = self.journal.read(&self.run_id).await.map_err(Fault::Store)?;
        let texts = self.journal.texts(&self.run_id).await.map_err(Fault::Store)?;
        let events = crate::drive::fold::events(&self.run_id, &events, &texts)?;
        let program = self.served.program(&self.run_id, &events)?;
        let engine = self.served.engine(&program, journal);
        let (run_id, watch) = (self.run_id.clone(), self.watch());
        Ok(RunningDriver(tokio::spawn(async move { resume(&engine, &program, &run_id, task, watch).await })))
    }

    fn watch(&self) -> Watch<'static> {
        Watch { listener: None, stop: Some(self.stop.clone()) }
    }
}

async fn resume(
    engine: &Engine,
    program: &Arc<Program>,
    run_id: &str,
    task: NextTask,
    watch: Watch<'_>,
) -> Result<RestReason, Fault> {
    let resume = match task {
        NextTask::GoOn => Resume::default(),
        NextTask::Decide(decided) => Resume { decided: Some(*decided), ..Resume::default() },
        NextTask::Cancel(reason) => {
            if !matches!(engine.state(program, run_id).await?.phase, Phase::Ended(_)) {
                engine.cancel(program, run_id, CancelRequest { reason, by: None }).await?;
            }
            return rest(program, engine.state(program, run_id).await?, None);
        }
    };
    let is_decision = resume.decided.is_some();
    match engine.resume(program, run_id, resume, watch).await {
        Ok(finished) => rest(program, finished.state, None),
        Err(fault @ (Fault::Refused(_) | Fault::Busy(_))) if is_decision => {
            rest(program, engine.state(program, run_id).await?, Some(fault.to_string()))
        }
        Err(fault) => Err(fault),
    }
}

/// Whether another attempt would fail in the same way: the request is wrong.
fn is_final(fault: &Fault) -> bool {
    if let Fault::Missing(missing) = fault {
        // A key may come; a tool of another program never does.
        return missing.iter().any(|missing| matches!(missing.what, Missing::Tool { .. }));
    }
    matches!(
        fault,
        Fault::Diagnostics(_)
            | Fault::Refused(_)
            | Fault::Busy(_)
            | Fault::Conflict(_)
            | Fault::NoPrevious(_)
            | Fault::LineFull { .. }
    )
}

/// How a run that the driver left continues.
fn rest(program: &Arc<Program>, state: State, refused: Option<String>) -> Result<RestReason, Fault> {
    if state.status() == Status::Running {
        return Ok(RestReason::Left);
    }
    let wait_ms = match &state.phase {
        Phase::Ended(_) => None,
        _ => {
            let due =
                due_at_ms(&state).map(|at_ms| at_ms.saturating_sub(clock::wall_ms()).max(1).unsigned_abs().into());
            let outage = away_model(&state).map(|_| OUTAGE_RETRY_INTERVAL.as_millis());
            due.into_iter().chain(outage).min()
        }
    };
    let due_in_ms = wait_ms.map(|wait_ms| u64::try_from(wait_ms).unwrap_or(u64::MAX));
    let is_end = matches!(state.phase, Phase::Ended(_));
    let folded = crate::serve::run_store::FoldedRun { program: Arc::clone(program), state };
    let status = serde_json::to_value(AgentStatus::new(&folded, &RunRow::default(), false))
        .map_err(|why| Fault::Refused(format!("its status can't be written: {why}").into()))?;
    Ok(if is_end { RestReason::Ended { status } } else { RestReason::Waiting { status, due_in_ms, refused } })
}
