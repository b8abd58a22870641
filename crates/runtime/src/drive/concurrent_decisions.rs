//! Decisions about steps that wait, taken by the driver of their run while other steps of it are under way.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::clock;
use super::fault::Fault;
use super::inbox::{DecisionSource, PassedDecision};
use super::question_owner;
use super::run::Driver;
use super::world::{Engine, Resume};
use loopctl_engine::address::StepAddress;
use loopctl_engine::effect::steps_of;
use loopctl_engine::event::{Decided, EventKind};
use loopctl_engine::wait_deadline::due_beside;

impl Engine {
    /// Passes a decision to the driver of a run, which this engine drives and of which other steps are under way. Returns
    /// once the decision is durable. `false`: no driver here took it, because the run is not driven here, or nothing of
    /// it is under way any more.
    ///
    /// # Errors
    /// When the decision does not fit.
    pub async fn decide_beside(&self, run_id: &str, resume: &Resume) -> Result<bool, Fault> {
        let Some(decided) = resume.decided.clone().filter(|_| resume.is_decision_alone()) else {
            return Ok(false);
        };
        let Some(inbox) = self.world.inboxes.of(run_id) else { return Ok(false) };
        let (taken, is_taken) = oneshot::channel();
        let source = DecisionSource::Here(taken);
        let passed = PassedDecision { decided, answer_token: resume.answer_token.clone(), source };
        if inbox.send(passed).await.is_err() {
            return Ok(false);
        }
        // Without this, an inbox that was closed meanwhile would still have a sender.
        drop(inbox);
        match is_taken.await {
            Ok(taken) => taken.map(|()| true),
            Err(_) => Ok(false),
        }
    }
}

impl Driver<'_> {
    /// Takes a decision about a step that waits. Returns the steps to perform after it. One that does not fit is refused,
    /// and changes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn take_passed(&mut self, passed: PassedDecision) -> Result<Vec<StepAddress>, Fault> {
        let PassedDecision { decided, answer_token, source } = passed;
        let mut next = match &source {
            // What another process stored before comes first: its sender may have been answered.
            DecisionSource::Here(_) => Box::pin(self.take_queued()).await?,
            DecisionSource::Queue(_) => Vec::new(),
        };
        if let Err(fault) = self.accepts(&decided, answer_token.as_deref()).await {
            let is_busy = matches!(fault, Fault::Busy(_)) && answer_token.is_none();
            let Some(source) = (if is_busy { self.pass_below(&decided, source) } else { Some(source) }) else {
                return Ok(next);
            };
            self.report_decision(source, Err(fault)).await?;
            return Ok(next);
        }
        self.answer_token = answer_token;
        self.queued_decision = match &source {
            DecisionSource::Queue(id) => Some(id.clone()),
            DecisionSource::Here(_) => None,
        };
        let handed = match self.hand_over(EventKind::Human(decided)) {
            Ok(handed) => handed,
            // What is asked may have expired since the last event.
            Err(fault @ (Fault::Refused(_) | Fault::Busy(_))) => {
                (self.answer_token, self.queued_decision) = (None, None);
                self.report_decision(source, Err(fault)).await?;
                return Ok(next);
            }
            Err(fault) => return Err(fault),
        };
        let effects = self.durable(handed).await?;
        self.report_decision(source, Ok(())).await?;
        next.extend(steps_of(&effects));
        Ok(next)
    }

    /// Passes a decision on to the driver here of the run under way that it is about. Gives back whoever must learn what became of it
    /// where there is none. Never waits: that driver is polled by this one.
    fn pass_below(&self, decided: &Decided, source: DecisionSource) -> Option<DecisionSource> {
        let DecisionSource::Here(_) = source else { return Some(source) };
        let Some(below) = question_owner::under_way(self.program, &self.state, decided) else { return Some(source) };
        let Some(inbox) = self.world.inboxes.of(&below.run_id) else { return Some(source) };
        match inbox.try_reserve() {
            Ok(place) => {
                place.send(PassedDecision { decided: below.decided, answer_token: None, source });
                None
            }
            Err(_) => Some(source),
        }
    }

    /// Reports what became of a decision. What was taken from the queue left it with its event.
    async fn report_decision(&self, source: DecisionSource, taken: Result<(), Fault>) -> Result<(), Fault> {
        match (source, taken) {
            (DecisionSource::Here(asker), taken) => {
                // Who asked may have gone.
                let _ = asker.send(taken);
                Ok(())
            }
            (DecisionSource::Queue(id), Err(Fault::Refused(why))) => self.refuse_own(&id, why.to_string()).await,
            // It is tried again at the next look; so is one about a step whose run is under way.
            (DecisionSource::Queue(_), _) => Ok(()),
        }
    }

    /// Takes what happened to steps that wait while others are under way: what other processes decided, and what
    /// expired. Returns the steps to perform after that.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn look_beside(&mut self) -> Result<Vec<StepAddress>, Fault> {
        // An event that came in time is in time, however late the look is.
        let mut next = self.take_queued().await?;
        if let Some(effects) = Box::pin(self.take_kept_events()).await? {
            next.extend(steps_of(&effects));
        }
        if due_beside(&self.state).is_some_and(|at_ms| at_ms <= clock::wall_ms()) {
            next.extend(steps_of(&self.take(EventKind::ApprovalExpired).await?));
        }
        Ok(next)
    }

    /// Whether a decision fits: the step, the run below that asks, and the token that it uses up.
    async fn accepts(&self, decided: &Decided, answer_token: Option<&str>) -> Result<(), Fault> {
        let engine = Engine { world: Arc::clone(self.world) };
        engine.accepts_token(&self.lease.run_id, answer_token).await?;
        question_owner::accepts(&engine, self.program, &self.state, decided).await
    }
}
