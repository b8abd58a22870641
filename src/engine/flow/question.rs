//! The questions of steps that wait for a human, in the form that programs read.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::engine::address::is_at;
use crate::engine::awaited_approval::AwaitedApproval;
use crate::engine::decision::OTHER_CALL;
use crate::engine::effect::Refused;
use crate::engine::event::{Decided, SubrunCall, SubrunStep};
use crate::engine::outcome::Termination;
use crate::engine::question::WaitingCall;
use crate::engine::timestamp::as_rfc3339_if_any;

pub use crate::language::step::OnRejected;

/// A question of a step that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepQuestion {
    /// The address of the step, as `resume --at` takes it. That of a step of a workflow which the step calls in turn
    /// follows after a `/`.
    pub at: String,
    /// Approval, human, uncertain or stuck.
    pub kind: Termination,
    /// The question.
    pub question: String,
    /// The action, or the type of the step.
    pub action: String,
    /// What the human is shown: the input of a call, or the payload of an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_input: Option<Value>,
    /// What a decision is bound to, as `resume --if` takes it: a short hash of the run, the address, the action, what is
    /// shown, and the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The keys of a form, all of which must be filled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_keys: Vec<String>,
    /// Until when a form can be filled in, RFC 3339.
    #[serde(rename = "expires_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub expires_at_ms: Option<i64>,
    /// What the approval of a call needs; left out when one approval of anybody is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<AwaitedApproval>,
    /// What a no to an approval of a step does: `stop` fails the run, or the item around the step; after `go_on` the next
    /// step begins. Left out where a model reads the no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_rejected: Option<OnRejected>,
    /// The run of the step that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The pause that this run is in, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_pause: Option<u32>,
    /// The answers that a model offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The calls of that run that wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<WaitingCall>,
}

impl StepQuestion {
    /// The question as the run that called the workflow keeps it; `run_id` is the workflow's run.
    pub fn passed_up(self, run_id: &str) -> SubrunStep {
        let Self {
            at,
            kind,
            question,
            action,
            action_input,
            hash,
            expected_keys,
            expires_at_ms,
            approval,
            on_rejected,
            ..
        } = self;
        SubrunStep {
            at,
            kind,
            question,
            action,
            action_input,
            hash,
            expected_keys,
            expires_at_ms,
            approval,
            on_rejected,
            run_id: self.run_id.unwrap_or_else(|| run_id.to_owned()),
            run_pause: self.run_pause,
            options: self.options,
            calls: self.calls.into_iter().map(SubrunCall::from).collect(),
        }
    }

    /// The calls that the question is about; none for a form and for the question of a model.
    pub fn waiting_calls(&self) -> Vec<WaitingCall> {
        if !self.calls.is_empty() {
            return self.calls.clone();
        }
        let (Some(input), Some(hash)) = (&self.action_input, &self.hash) else { return Vec::new() };
        vec![WaitingCall {
            id: self.at.clone(),
            iteration: 0,
            index: 0,
            action: self.action.clone(),
            action_input: input.clone(),
            hash: hash.clone(),
            approval: self.approval.clone(),
        }]
    }
}

impl From<&SubrunStep> for StepQuestion {
    fn from(step: &SubrunStep) -> Self {
        let step = step.clone();
        Self {
            at: step.at,
            kind: step.kind,
            question: step.question,
            action: step.action,
            action_input: step.action_input,
            hash: step.hash,
            expected_keys: step.expected_keys,
            expires_at_ms: step.expires_at_ms,
            approval: step.approval,
            on_rejected: step.on_rejected,
            run_id: Some(step.run_id),
            run_pause: step.run_pause,
            options: step.options,
            calls: step.calls.iter().map(WaitingCall::from).collect(),
        }
    }
}

/// The questions that a decision is about: that of the step which is named, or the only one. `*` stands for any part of
/// an address, for steps of unknown outcome only.
///
/// # Errors
/// When no step is meant, or several that are decided one by one.
pub(in crate::engine) fn meant<'q>(
    waiting: &'q [StepQuestion],
    decided: &Decided,
) -> Result<Vec<&'q StepQuestion>, Refused> {
    let names = || waiting.iter().map(|question| question.at.as_str()).take(10).collect::<Vec<_>>().join(", ");
    let matching: Vec<&StepQuestion> = match (&decided.at, &decided.hash) {
        (Some(at), _) => waiting.iter().filter(|question| is_at(&question.at, at)).collect(),
        (None, Some(hash)) => {
            let asks = |question: &&StepQuestion| {
                question.hash.as_ref() == Some(hash) || question.calls.iter().any(|call| call.hash == *hash)
            };
            waiting.iter().filter(asks).collect()
        }
        (None, None) => waiting.iter().collect(),
    };
    match (matching.as_slice(), &decided.at, &decided.hash) {
        ([], Some(at), _) => Err(Refused::new(format!("no step waits at `{at}`; what waits: {}", names()))),
        ([], None, Some(_)) => Err(Refused::new(OTHER_CALL)),
        ([_], _, _) => Ok(matching),
        (several, Some(at), None) if at.contains('*') => {
            if several.iter().any(|question| question.kind != Termination::Uncertain) {
                return Err(Refused::new("approvals and questions are decided one by one: name one address"));
            }
            Ok(matching)
        }
        _ => Err(Refused::new(format!("several steps wait; name one of them with `at`: {}", names()))),
    }
}
