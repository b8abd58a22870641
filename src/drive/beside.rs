//! Decisions about steps that wait, taken by the driver of their run while other steps of it are under way.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::asking;
use super::fault::Fault;
use super::inbox::PassedDecision;
use super::run::Driver;
use super::world::{Engine, Resume};
use crate::engine::effect::steps_of;
use crate::engine::event::{Decided, EventKind};

impl Engine {
    /// Passes a decision to the driver of a run, which this engine drives and of which other steps are under way. Returns
    /// once the decision is durable. `false`: no driver here took it, because the run is not driven here, or nothing of
    /// it is under way any more.
    ///
    /// # Errors
    /// When the decision does not fit.
    pub async fn decide_beside(&self, run_id: &str, resume: &Resume) -> Result<bool, Fault> {
        let Some(decided) = resume.decided.clone().filter(|_| !resume.reopens() && !resume.new_document) else {
            return Ok(false);
        };
        let Some(inbox) = self.world.inboxes.of(run_id) else { return Ok(false) };
        let (taken, is_taken) = oneshot::channel();
        let passed = PassedDecision { decided, answer_token: resume.answer_token.clone(), taken };
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
    pub(super) async fn take_passed(&mut self, passed: PassedDecision) -> Result<Vec<String>, Fault> {
        let PassedDecision { decided, answer_token, taken } = passed;
        if let Err(fault) = self.accepts(&decided, answer_token.as_deref()).await {
            let _ = taken.send(Err(fault));
            return Ok(Vec::new());
        }
        self.answer_token = answer_token;
        let handed = match self.hand_over(EventKind::Human(decided)) {
            Ok(handed) => handed,
            // What is asked may have expired since the last event.
            Err(fault @ Fault::Refused(_)) => {
                self.answer_token = None;
                let _ = taken.send(Err(fault));
                return Ok(Vec::new());
            }
            Err(fault) => return Err(fault),
        };
        let effects = self.durable(handed).await?;
        let _ = taken.send(Ok(()));
        Ok(steps_of(&effects))
    }

    /// Whether a decision fits: the step, the run below that asks, and the token that it uses up.
    async fn accepts(&self, decided: &Decided, answer_token: Option<&str>) -> Result<(), Fault> {
        let engine = Engine { world: Arc::clone(self.world) };
        if let Some(hash) = answer_token {
            let run_id = &self.lease.run_id;
            let token = self.world.journal.answer_token(run_id, hash).await.map_err(Fault::Store)?;
            // Nobody else appends to the run: it is not used in between.
            if token.is_none_or(|token| token.used) {
                return Err(Fault::Refused("the token of the decision was used".to_owned()));
            }
        }
        asking::fits(&engine, self.program, &self.state, decided).await?;
        let stale = asking::asked_by_another(&engine, self.program, &self.state, Some(decided)).await?;
        if stale && asking::needs_sight(decided) {
            return Err(Fault::Refused(asking::UNSEEN.to_owned()));
        }
        Ok(())
    }
}
