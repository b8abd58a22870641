//! The humans of a world: they decide about the steps that wait, in any order.

use loopctl::engine::event::{Decided, Decision, EventKind};
use loopctl::engine::flow::waiting_steps;
use loopctl::engine::operation::{AskedFor, Progress};
use loopctl::engine::outcome::Termination;
use loopctl::engine::question::StepQuestion;
use loopctl::engine::state::Phase;
use loopctl::program::flow::StepAction;
use serde_json::json;

use super::world::World;

impl World<'_> {
    /// A human decides about one of the steps that wait, whichever.
    pub(super) fn decide(&mut self) {
        let waiting = waiting_steps(&self.state);
        assert!(!waiting.is_empty(), "the run waits for nothing:\n{}", self.journal.join("\n"));
        let question = self.chance.pick(&waiting);
        let is_answered = |world: &mut Self, other: &StepQuestion| {
            let approval = other.approval.as_ref().and_then(|approval| approval.expires_at_ms);
            other.expires_at_ms.or(approval).is_some() && world.decision(other).is_some()
        };
        let decision = match self.decision(&question) {
            Some(decision) => decision,
            // All that can expire does so together: what is decided in time comes before.
            None if waiting.iter().any(|other| is_answered(self, other)) => return,
            None => {
                self.sees(match question.question.kind {
                    Termination::Waiting => "waits that are over",
                    _ if question.expires_at_ms.is_some() => "forms expired",
                    _ => "approvals expired",
                });
                self.wall_ms += 1_000_000;
                return self.take_durable(EventKind::ApprovalExpired);
            }
        };
        let by = Some("ana".to_owned());
        let pause = match &self.state.phase {
            Phase::Paused { pause, .. } => Some(pause.number).filter(|_| self.chance.one_in(2)),
            _ => None,
        };
        let hash = question.hash.clone().filter(|_| self.chance.one_in(2));
        let at = Some(question.at.clone()).filter(|_| hash.is_none() || waiting.len() > 1);
        if matches!(decision, Decision::Edit(_) | Decision::Approve) {
            self.inputs.remove(&question.at);
        }
        self.take_durable(EventKind::Human(Decided { pause, at, hash, by, ..Decided::from(decision) }));
    }

    /// Whether a human may decide although steps are under way.
    pub(super) fn may_decide_beside(&self) -> bool {
        let is_stopping = self.state.as_flow().is_some_and(|flow| flow.progress.stopping.is_some());
        matches!(self.state.phase, Phase::Stepping) && !is_stopping && !waiting_steps(&self.state).is_empty()
    }

    /// What a human decides; none when nobody ever will.
    fn decision(&mut self, question: &StepQuestion) -> Option<Decision> {
        let open = self.open(&question.at).clone();
        let approved = |yes: bool| if yes { Decision::Approve } else { Decision::Deny(None) };
        Some(match &open.progress {
            Progress::Asks(AskedFor::Consent { .. }) => {
                let flow = self.program.as_flow().unwrap();
                let StepAction::Approval(approval) = &flow.step_at(&open.address).unwrap().action else {
                    unreachable!()
                };
                approved(self.outside.approves(&open.input, approval.stops))
            }
            Progress::Asks(AskedFor::Approval(awaited))
                if awaited.expires_at_ms.is_some() && self.outside.lets_expire(&open.input) =>
            {
                return None;
            }
            Progress::Asks(AskedFor::Approval(_)) => match self.outside.edits(&open.input) {
                _ if !self.outside.approves(&open.input, true) => Decision::Deny(None),
                Some(edited) => Decision::Edit(edited),
                None => Decision::Approve,
            },
            Progress::Asks(AskedFor::Form { expires_at_ms }) => {
                let keys = open.input.as_array().unwrap();
                Decision::Answer(json!(self.outside.fills(&open.address, keys, expires_at_ms.is_some())?).to_string())
            }
            Progress::Waits(_) if self.chance.one_in(3) => {
                self.sees("waits that were ended");
                Decision::Approve
            }
            Progress::Waits(_) => return None,
            Progress::Asks(AskedFor::Subrun(_)) => Decision::Answer("go on".to_owned()),
            _ => {
                assert!(
                    ["work", "pay", "claim", "grant"].contains(&open.name.as_str()),
                    "{} is never of unknown outcome",
                    open.name
                );
                self.sees("calls of unknown outcome");
                match self.outside.call(&open.name, &open.input) {
                    Some(result) if self.made.contains(open.address.as_str()) => Decision::Happened(result),
                    _ => Decision::Retry,
                }
            }
        })
    }
}
