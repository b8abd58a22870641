//! Decisions that cross processes: who is asked by a human queues the decision in the store, and the driver of the run
//! takes it from there, together with its event.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::clock;
use super::fault::Fault;
use super::folded_events::FoldedEvents;
use super::inbox::{DecisionSource, PassedDecision};
use super::outside_events::{self, event_id, unmark};
use super::passed_on::PassedOn;
use super::question_owner::{self, RunUnderWay};
use super::run::Driver;
use super::run_result::Finished;
use super::stop::Stop;
use super::unused_events::pass_on;
use super::world::{Engine, Resume, Watch};
use crate::journal::{Journal, QueuedDecision, Queueing, SettledDecision, StoreError};
use loopctl_engine::address::StepAddress;
use loopctl_engine::event::{Decided, Event, EventKind};
use loopctl_engine::state::{Phase, State};
use loopctl_engine::wait_deadline::due_at_ms;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::Program;

/// The interval of the looks for what the driver said.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// For so long the driver's word is waited for. The decision is durable by then.
const PATIENCE: Duration = Duration::from_secs(3);

/// A queued decision that a run may be resumed with.
pub(super) struct QueuedResume {
    /// Its id in the queue.
    pub id: String,
    pub passed: PassedOn,
}

impl QueuedResume {
    pub fn resume(self) -> Resume {
        let PassedOn { decided, answer_token, .. } = self.passed;
        Resume { decided: Some(decided), answer_token, ..Resume::default() }
    }
}

/// What became of a decision about a run that another process drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedElsewhere {
    /// The driver took it: its event is durable.
    Taken,
    /// It is durable. The driver takes it, or the next one does if that driver died.
    Queued,
    /// Nobody drives the run any more: it can be leased.
    NotDriven,
}

impl Engine {
    /// Passes a decision about a step that waits to the driver of the run in another process. `read`: the run as it was
    /// read; what comes meanwhile is added to it.
    ///
    /// # Errors
    /// When the decision does not fit, by what is stored of the run or by its driver; or another one about the step waits.
    pub async fn decide_elsewhere(
        &self,
        program: &Program,
        read: &mut FoldedEvents,
        resume: &Resume,
    ) -> Result<DecidedElsewhere, Fault> {
        let journal = &self.world.journal;
        let run_id = read.state.header.run_id.clone();
        let may_pass = program.is_flow() && resume.is_decision_alone();
        let Some(decided) = resume.decided.clone().filter(|_| may_pass) else {
            return Err(Fault::Store(StoreError::Driven(run_id)));
        };
        let run_id = run_id.as_str();
        // A step that is under way may ask again: its driver looks at the decision until then.
        match question_owner::fits(self, program, &read.state, &decided).await {
            Err(Fault::Busy(_)) => {
                if let Some(below) = question_owner::under_way(program, &read.state, &decided)
                    && let Some(what) = Box::pin(self.decide_below(below, resume)).await?
                {
                    return Ok(what);
                }
            }
            fits => fits?,
        }
        let subject = decided.at.clone().or_else(|| decided.hash.clone()).unwrap_or_default();
        let passed = PassedOn { decided, answer_token: resume.answer_token.clone(), event: None, marked: false };
        let decision = serde_json::to_string(&passed).map_err(|error| Fault::refused(error.to_string()))?;
        let decided = passed.decided;
        let id = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let queued = QueuedDecision { id: id.clone(), subject, decision, refused: None };
        match journal.queue_decision(run_id, queued).await.map_err(Fault::Store)? {
            Queueing::Queued => {}
            Queueing::NotDriven => return Ok(DecidedElsewhere::NotDriven),
            Queueing::Occupied => {
                return Err(Fault::refused("another decision about this step is about to be taken".to_owned()));
            }
        }
        let started_at = clock::instant();
        let mut was_taken = false;
        loop {
            tokio::time::sleep(ANSWER_POLL_INTERVAL).await;
            // Before the queue is read: an event that takes the decision removes it from there.
            let mut outdated = None;
            if self.has_more(run_id, read).await? {
                was_taken |= is_among(self.catch_up(program, run_id, read).await?, &decided);
                match question_owner::fits(self, program, &read.state, &decided).await {
                    Err(Fault::Refused(why)) => outdated = Some(why),
                    Err(Fault::Busy(_)) => {}
                    fits => fits?,
                }
            }
            let queued = journal.queued_decisions(run_id).await.map_err(Fault::Store)?;
            match (queued.into_iter().find(|queued| queued.id == id), outdated) {
                (None, _) => {
                    was_taken |= is_among(self.catch_up(program, run_id, read).await?, &decided);
                    if was_taken {
                        return Ok(DecidedElsewhere::Taken);
                    }
                    // It was refused, and another one has its place in the queue.
                    return Err(Fault::refused("another decision about this step came first".to_owned()));
                }
                // Its driver refused it; or another decision was faster, or what it is about has ended: no driver can take
                // this one any more.
                (Some(QueuedDecision { refused: Some(why), .. }), _) => {
                    journal.settle_decision(run_id, &id, SettledDecision::Read).await.map_err(Fault::Store)?;
                    return Err(Fault::refused(why));
                }
                (Some(_), Some(why)) => {
                    journal.settle_decision(run_id, &id, SettledDecision::Read).await.map_err(Fault::Store)?;
                    return Err(Fault::Refused(why));
                }
                (Some(_), None) if clock::elapsed(started_at) >= PATIENCE => return Ok(DecidedElsewhere::Queued),
                (Some(_), None) => {}
            }
        }
    }

    /// Passes a decision to the driver of the run under way that it is about. None: that run is not driven any more, so its caller
    /// learns what it asks.
    async fn decide_below(&self, below: RunUnderWay<'_>, resume: &Resume) -> Result<Option<DecidedElsewhere>, Fault> {
        let RunUnderWay { program, run_id, decided } = below;
        // The answer token is one of the caller.
        if resume.answer_token.is_some() {
            return Ok(None);
        }
        let mut read = self.read(program, &run_id).await?;
        let resume = Resume { decided: Some(decided), ..resume.clone() };
        match self.decide_elsewhere(program, &mut read, &resume).await? {
            DecidedElsewhere::NotDriven => Ok(None),
            what => Ok(Some(what)),
        }
    }

    /// Whether a run has more events than were read.
    async fn has_more(&self, run_id: &str, read: &FoldedEvents) -> Result<bool, Fault> {
        let heads = self.world.journal.heads(vec![run_id.to_owned()]).await.map_err(Fault::Store)?;
        Ok(heads.first().is_some_and(|head| head.events > read.seen()))
    }

    /// The queued decisions that fit a run which a new driver takes up, with their ids: the first `most` of them. Those before them
    /// that do not fit are refused.
    pub(super) async fn queued_resumes(
        &self,
        program: &Program,
        run_id: &str,
        state: &State,
        most: usize,
    ) -> Result<Vec<QueuedResume>, Fault> {
        let journal = &self.world.journal;
        let (mut fitting, mut freed) = (Vec::new(), BTreeSet::new());
        for queued in waiting(&*self.world.journal, run_id).await.map_err(Fault::Store)? {
            if fitting.len() >= most {
                break;
            }
            let why = match json_text::read(&queued.decision) {
                Ok(passed) => {
                    let passed: PassedOn = passed;
                    let name = passed.event.clone();
                    let marked = passed.marked.then(|| event_id(&passed.decided).map(str::to_owned)).flatten();
                    let Some(passed) = self.as_it_fits(state, passed, &queued.id).await? else {
                        unmark(&**journal, run_id, marked).await.map_err(Fault::Store)?;
                        freed.extend(name);
                        continue;
                    };
                    let fits = match self.accepts_token(run_id, passed.answer_token.as_deref()).await {
                        Ok(()) => question_owner::accepts(self, program, state, &passed.decided).await,
                        Err(fault) => Err(fault),
                    };
                    match fits {
                        Ok(()) => {
                            fitting.push(QueuedResume { id: queued.id, passed });
                            continue;
                        }
                        Err(Fault::Refused(why)) => {
                            let marked = marked.filter(|id| !outside_events::has_taken(state, id));
                            unmark(&**journal, run_id, marked).await.map_err(Fault::Store)?;
                            freed.extend(name);
                            why.to_string()
                        }
                        Err(Fault::Busy(_)) => continue,
                        Err(fault) => return Err(fault),
                    }
                }
                Err(error) => unreadable(&error),
            };
            self.refuse_queued(run_id, &queued.id, why, due_at_ms(state)).await?;
        }
        pass_on(&**journal, run_id, freed).await.map_err(Fault::Store)?;
        Ok(fitting)
    }

    /// A queued decision as it fits a run that a new driver takes up. While steps are under way, one may soon wait for an event that
    /// none waits for now.
    async fn as_it_fits(&self, state: &State, passed: PassedOn, id: &str) -> Result<Option<PassedOn>, Fault> {
        let fitting = outside_events::as_it_fits(state, passed);
        if fitting.is_none() && matches!(state.phase, Phase::Paused { .. }) {
            let run_id = state.header.run_id.as_str();
            self.refuse_queued(run_id, id, "no step waits for the event".to_owned(), due_at_ms(state)).await?;
            let journal = &self.world.journal;
            journal.settle_decision(run_id, id, SettledDecision::Read).await.map_err(Fault::Store)?;
        }
        Ok(fitting)
    }

    /// A run that was resumed, with the decisions that are queued for it: one that came before the run waited for it would else wait for
    /// the next driver.
    pub(super) async fn with_what_is_queued(
        &self,
        program: &Arc<Program>,
        finished: Finished,
        watch: &Watch<'_>,
    ) -> Result<Finished, Fault> {
        let mut finished = finished;
        loop {
            let is_paused = matches!(finished.state.phase, Phase::Paused { .. });
            if !is_paused || watch.stop.as_ref().is_some_and(Stop::is_asked) {
                return Ok(finished);
            }
            let run_id = finished.state.header.run_id.clone();
            if waiting(&*self.world.journal, &run_id).await.map_err(Fault::Store)?.is_empty() {
                return Ok(finished);
            }
            let known = finished.state.decisions.len();
            match self.resumed(program, &run_id, Resume::default(), watch.clone()).await {
                // Another driver takes it.
                Err(Fault::Store(StoreError::Driven(_))) => return Ok(finished),
                resumed => finished = resumed?,
            }
            if finished.state.decisions.len() == known {
                return Ok(finished);
            }
        }
    }

    /// Refuses a queued decision. `due_at_ms`: when the run must be looked at next, if it is paused.
    pub(super) async fn refuse_queued(
        &self,
        run_id: &str,
        id: &str,
        why: String,
        due_at_ms: Option<i64>,
    ) -> Result<(), Fault> {
        let settled = SettledDecision::Refused { why, due_at_ms };
        self.world.journal.settle_decision(run_id, id, settled).await.map_err(Fault::Store)
    }

    /// Whether a token that a decision uses up is still good.
    ///
    /// # Errors
    /// When it was used. Only the driver of the run uses tokens.
    pub(super) async fn accepts_token(&self, run_id: &str, hash: Option<&str>) -> Result<(), Fault> {
        let Some(hash) = hash else { return Ok(()) };
        let token = self.world.journal.answer_token(run_id, hash).await.map_err(Fault::Store)?;
        if token.is_none_or(|token| token.used) {
            return Err(Fault::refused("the token of the decision was used".to_owned()));
        }
        Ok(())
    }
}

impl Driver<'_> {
    /// Takes the decisions that other processes queued, and refuses those about steps that wait no longer. Returns the
    /// steps to perform after them.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn take_queued(&mut self) -> Result<Vec<StepAddress>, Fault> {
        let (mut next, mut freed) = (Vec::new(), BTreeSet::new());
        for queued in waiting(&*self.world.journal, &self.lease.run_id).await.map_err(Fault::Cut)? {
            match json_text::read(&queued.decision) {
                Ok(passed) => {
                    // An event that no step waits for now stays: one may wait for it soon.
                    let Some(passed) = outside_events::as_it_fits(&self.state, passed) else { continue };
                    let (journal, run_id) = (Arc::clone(&self.world.journal), self.lease.run_id.clone());
                    let marked = outside_events::mark(&*journal, &run_id, &passed).await.map_err(Fault::Cut)?;
                    let PassedOn { decided, answer_token, event, .. } = passed;
                    let source = DecisionSource::Queue(queued.id);
                    next.extend(self.take_passed(PassedDecision { decided, answer_token, source }).await?);
                    let refused = marked.filter(|id| !outside_events::has_taken(&self.state, id));
                    freed.extend(event.filter(|_| refused.is_some()));
                    unmark(&*journal, &run_id, refused).await.map_err(Fault::Cut)?;
                }
                Err(error) => self.refuse_own(&queued.id, unreadable(&error)).await?,
            }
        }
        pass_on(&*self.world.journal, &self.lease.run_id, freed).await.map_err(Fault::Cut)?;
        Ok(next)
    }

    /// Refuses a queued decision.
    pub(super) async fn refuse_own(&self, id: &str, why: String) -> Result<(), Fault> {
        let due_at_ms = due_at_ms(&self.state);
        let settled = SettledDecision::Refused { why, due_at_ms };
        self.world.journal.settle_decision(&self.lease.run_id, id, settled).await.map_err(Fault::Cut)
    }
}

/// Whether one of these events is this decision.
fn is_among(events: &[Event], decided: &Decided) -> bool {
    events.iter().any(|event| matches!(&event.kind, EventKind::Human(other) if other == decided))
}

/// The queued decisions about a run that no driver has refused.
async fn waiting(journal: &dyn Journal, run_id: &str) -> Result<Vec<QueuedDecision>, StoreError> {
    let mut queued = journal.queued_decisions(run_id).await?;
    queued.retain(|queued| queued.refused.is_none());
    // Events come in the order in which they came, whatever the letters are that the store orders by.
    queued.sort_by(|one, other| one.subject.cmp(&other.subject));
    Ok(queued)
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("the decision can't be read: {error}")
}
