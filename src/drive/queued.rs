//! Decisions that cross processes: who is asked by a human queues the decision in the store, and the driver of the run
//! takes it from there, together with its event.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::asking;
use super::clock;
use super::fault::Fault;
use super::fold;
use super::inbox::{DecisionSource, PassedDecision};
use super::run::Driver;
use super::status::status_record;
use super::world::{Engine, Resume};
use crate::engine::event::{Decided, Event};
use crate::engine::flow::waiting_steps;
use crate::journal::{Journal, QueuedDecision, Queueing, SettledDecision, StoreFault};
use crate::program::Program;

/// The interval of the looks for what the driver said.
const LOOK: Duration = Duration::from_millis(50);
/// For so long the driver's word is waited for. The decision is durable by then.
const PATIENCE: Duration = Duration::from_secs(3);

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

/// A decision, as the queue holds it.
#[derive(Serialize, Deserialize)]
struct PassedOn {
    decided: Decided,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_token: Option<String>,
}

impl Engine {
    /// Passes a decision about a step that waits to the driver of the run in another process.
    ///
    /// # Errors
    /// When the decision does not fit, by what is stored of the run or by its driver; or another one about the step waits.
    pub async fn decide_elsewhere(
        &self,
        program: &Program,
        run_id: &str,
        resume: &Resume,
    ) -> Result<DecidedElsewhere, Fault> {
        let journal = &self.world.journal;
        let is_plain = program.flow.is_some() && !resume.reopens() && !resume.new_document;
        let Some(decided) = resume.decided.clone().filter(|_| is_plain) else {
            return Err(Fault::Store(StoreFault::Driven(run_id.to_owned())));
        };
        let events = self.events(run_id).await?;
        fold::same_document(program, &events)?;
        let state = fold::fold(program, run_id, events)?;
        asking::fits(self, program, &state, &decided).await?;
        let subject = decided.at.clone().or_else(|| decided.hash.clone()).unwrap_or_default();
        let decision = serde_json::to_string(&PassedOn { decided, answer_token: resume.answer_token.clone() });
        let decision = decision.map_err(|error| Fault::Refused(error.to_string()))?;
        let id = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
        let queued = QueuedDecision { id: id.clone(), subject, decision, refused: None };
        match journal.queue_decision(run_id, queued).await.map_err(Fault::Store)? {
            Queueing::Queued => {}
            Queueing::NotDriven => return Ok(DecidedElsewhere::NotDriven),
            Queueing::Occupied => {
                return Err(Fault::Refused("another decision about this step is about to be taken".to_owned()));
            }
        }
        let started_at = clock::instant();
        loop {
            tokio::time::sleep(LOOK).await;
            let queued = journal.queued_decisions(run_id).await.map_err(Fault::Store)?;
            match queued.into_iter().find(|queued| queued.id == id) {
                None => return Ok(DecidedElsewhere::Taken),
                Some(QueuedDecision { refused: Some(why), .. }) => {
                    journal.settle_decision(run_id, &id, SettledDecision::Read).await.map_err(Fault::Store)?;
                    return Err(Fault::Refused(why));
                }
                Some(_) if clock::elapsed(started_at) >= PATIENCE => return Ok(DecidedElsewhere::Queued),
                Some(_) => {}
            }
        }
    }

    /// The first queued decision that fits a run which a new driver takes up, with its id. Those that do not fit are
    /// refused; the driver takes the others while it drives.
    pub(super) async fn queued_resume(
        &self,
        program: &Program,
        run_id: &str,
        events: &[Event],
    ) -> Result<Option<(String, Resume)>, Fault> {
        if program.flow.is_none() {
            return Ok(None);
        }
        for queued in waiting(&*self.world.journal, run_id).await.map_err(Fault::Store)? {
            let why = match serde_json::from_str(&queued.decision) {
                Ok(PassedOn { decided, answer_token }) => {
                    let resume = Resume { decided: Some(decided), answer_token, ..Resume::default() };
                    let fits = match self.accepts_token(run_id, resume.answer_token.as_deref()).await {
                        Ok(()) => self.take_up(program, run_id, events.to_vec(), &resume).await.map(drop),
                        Err(fault) => Err(fault),
                    };
                    match fits {
                        Ok(()) => return Ok(Some((queued.id, resume))),
                        Err(Fault::Refused(why)) => why,
                        Err(fault) => return Err(fault),
                    }
                }
                Err(error) => unreadable(&error),
            };
            let due_at_ms = status_record(&fold::fold(program, run_id, events.to_vec())?).due_at_ms;
            let settled = SettledDecision::Refused { why, due_at_ms };
            self.world.journal.settle_decision(run_id, &queued.id, settled).await.map_err(Fault::Store)?;
        }
        Ok(None)
    }

    /// Whether a token that a decision uses up is still good.
    ///
    /// # Errors
    /// When it was used. Only the driver of the run uses tokens.
    pub(super) async fn accepts_token(&self, run_id: &str, hash: Option<&str>) -> Result<(), Fault> {
        let Some(hash) = hash else { return Ok(()) };
        let token = self.world.journal.answer_token(run_id, hash).await.map_err(Fault::Store)?;
        if token.is_none_or(|token| token.used) {
            return Err(Fault::Refused("the token of the decision was used".to_owned()));
        }
        Ok(())
    }
}

impl Driver<'_> {
    /// Takes the decisions that other processes queued. Returns the steps to perform after them.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn take_queued(&mut self) -> Result<Vec<String>, Fault> {
        if waiting_steps(&self.state).is_empty() {
            return Ok(Vec::new());
        }
        let mut next = Vec::new();
        for queued in waiting(&*self.world.journal, &self.lease.run_id).await.map_err(Fault::Cut)? {
            match serde_json::from_str(&queued.decision) {
                Ok(PassedOn { decided, answer_token }) => {
                    let source = DecisionSource::Queue(queued.id);
                    next.extend(self.take_passed(PassedDecision { decided, answer_token, source }).await?);
                }
                Err(error) => self.refuse_own(&queued.id, unreadable(&error)).await?,
            }
        }
        Ok(next)
    }

    /// Refuses a queued decision.
    pub(super) async fn refuse_own(&self, id: &str, why: String) -> Result<(), Fault> {
        let due_at_ms = status_record(&self.state).due_at_ms;
        let settled = SettledDecision::Refused { why, due_at_ms };
        self.world.journal.settle_decision(&self.lease.run_id, id, settled).await.map_err(Fault::Cut)
    }
}

/// The queued decisions about a run that no driver has refused.
async fn waiting(journal: &dyn Journal, run_id: &str) -> Result<Vec<QueuedDecision>, StoreFault> {
    let mut queued = journal.queued_decisions(run_id).await?;
    queued.retain(|queued| queued.refused.is_none());
    Ok(queued)
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("the decision can't be read: {error}")
}
