//! How a run is left, as a program matches on it.

use serde_json::Value;

use crate::drive::run_result::Finished;
use loopctl_engine::event::{Decided, Decision};
use loopctl_engine::flow::waiting_steps;
use loopctl_engine::outcome::{Answer, Pause, RunError, Status};
use loopctl_engine::question::{Question, StepQuestion, WaitingCall};
use loopctl_engine::state::{Phase, State};
use loopctl_engine::waiting_calls::waiting_calls;

/// How a run is left: [`Finished::outcome`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It has an answer.
    Completed(Answer),
    /// It ended without one.
    Failed(RunError),
    /// It waits for somebody, and continues with [`Loop::resume`](super::Loop::resume).
    Paused(PauseOutcome),
    /// It was cancelled by hand.
    Cancelled {
        /// Why, if that was said.
        reason: Option<String>,
        /// Who, if that is known.
        by: Option<String>,
    },
    /// A stop interrupted it ([`Stop::after_step`](crate::drive::stop::Stop::after_step),
    /// [`Stop::now`](crate::drive::stop::Stop::now)). It continues when somebody resumes it.
    Interrupted,
    /// It is under way: another driver has it, or it was left for one ([`Stop::leave`](crate::drive::stop::Stop::leave)).
    Running,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PauseOutcome {
    /// What it asks.
    pub question: Question,
    /// The calls that wait, each to be decided on its own; none for a question of the model.
    pub calls: Vec<PausedCall>,
    /// The steps of a workflow that wait: approvals, forms, events.
    pub steps: Vec<StepQuestion>,
}

/// A call that waits for a human. Its methods are the decisions about it: [`ResumeRun::decide`](super::ResumeRun::decide) takes one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PausedCall {
    /// The tool.
    pub action: String,
    /// Its input.
    pub input: Value,
    /// What a decision is bound to: a short hash of the run, the call, the tool, the input and the document.
    pub hash: String,
    /// Where it is: `2.0` is the first call of turn 2, `review.57.1` a step of item 57.
    pub id: String,
    /// The decision but for what is decided.
    subject: Decided,
}

impl PausedCall {
    fn new(call: WaitingCall, at: Option<&str>, is_call: bool, pause: Option<u32>) -> Self {
        let subject = Decided {
            at: at.map(str::to_owned),
            call: is_call.then_some(call.call),
            hash: Some(call.hash.clone()),
            pause,
            ..Decided::from(Decision::Approve)
        };
        Self { action: call.action, input: call.action_input, hash: call.hash, id: call.id, subject }
    }

    /// Makes the call with the input that is here: it is refused if another call waits by then.
    pub fn approve_as_shown(&self) -> Decided {
        self.subject.clone()
    }

    /// Does not make the call; the model reads the reason.
    pub fn deny(&self, reason: impl Into<String>) -> Decided {
        Decided { decision: Decision::Deny(Some(reason.into())), ..self.subject.clone() }
    }

    /// Makes the call with another input.
    pub fn edit(&self, input: Value) -> Decided {
        Decided { decision: Decision::Edit(input), ..self.subject.clone() }
    }
}

impl PauseOutcome {
    fn of(state: &State, pause: &Pause) -> Self {
        let steps = waiting_steps(state);
        let mut calls = Vec::new();
        for step in &steps {
            let is_call = !step.calls.is_empty();
            calls.extend(
                step.waiting_calls().into_iter().map(|call| PausedCall::new(call, Some(&step.at), is_call, None)),
            );
        }
        if steps.is_empty() {
            let number = Some(pause.number);
            calls.extend(waiting_calls(state).into_iter().map(|call| PausedCall::new(call, None, true, number)));
        }
        Self { question: pause.question.clone(), calls, steps }
    }
}

impl Finished {
    /// How the run is left, with what belongs to it.
    pub fn outcome(&self) -> Outcome {
        let state = &self.state;
        match &state.phase {
            Phase::Ended(ending) => match (&ending.answer, &ending.error) {
                (Some(answer), _) => Outcome::Completed(answer.clone()),
                (None, error) if ending.status == Status::Cancelled => {
                    let reason = error.as_ref().map(|error| error.message.clone());
                    Outcome::Cancelled { reason, by: ending.cancelled_by.as_deref().map(str::to_owned) }
                }
                (None, Some(error)) => Outcome::Failed(error.clone()),
                (None, None) => Outcome::Failed(RunError {
                    code: ending.status.word().to_owned(),
                    message: "the run failed".to_owned(),
                    retryable: false,
                    step: None,
                }),
            },
            _ if state.interrupted => Outcome::Interrupted,
            Phase::Paused { pause, .. } => Outcome::Paused(PauseOutcome::of(state, pause)),
            _ => Outcome::Running,
        }
    }
}
