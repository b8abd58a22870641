//! What a run that waits for a human asks, in the form that programs read.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::awaited_approval::AwaitedApproval;
use super::event::{CallId, SubrunCall};
use super::outcome::{Pause, Termination};
use super::stuck::Stuck;

/// What a paused run asks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Question {
    /// Human, stuck, approval or uncertain.
    pub kind: Termination,
    /// The question: the model's for `human`, else the engine's.
    #[serde(rename = "question")]
    pub text: String,
    /// The sub-run that asks, when it is not this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What the model said around its question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The answers that the model offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The pattern that the agent is stuck in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
}

impl From<&Pause> for Question {
    fn from(pause: &Pause) -> Self {
        Self {
            kind: pause.kind,
            text: pause.question.clone(),
            run_id: pause.asks.as_ref().map(|asks| asks.run_id.clone()),
            context: pause.context.clone(),
            options: pause.options.clone(),
            stuck: pause.stuck.clone(),
        }
    }
}

/// A call that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WaitingCall {
    /// Its id, as `resume --call` takes it: the iteration and the place in the turn, like `2.0`.
    pub id: String,
    /// The iteration, from 1.
    pub iteration: u32,
    /// Its place in the turn, from 0.
    pub index: u32,
    /// The tool.
    pub action: String,
    /// Its input.
    pub action_input: Value,
    /// What a decision is bound to, as `resume --if` takes it: a short hash of the run, the call, the
    /// tool, the input as it is written, and the document.
    pub hash: String,
    /// What its approval needs; left out when one approval of anybody is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<AwaitedApproval>,
}

impl From<&SubrunCall> for WaitingCall {
    fn from(asked: &SubrunCall) -> Self {
        let SubrunCall { call, action, action_input, hash, approval } = asked.clone();
        let CallId { iteration, index } = call;
        Self { id: call.to_string(), iteration, index, action, action_input, hash, approval }
    }
}

impl From<WaitingCall> for SubrunCall {
    fn from(call: WaitingCall) -> Self {
        let WaitingCall { iteration, index, action, action_input, hash, approval, .. } = call;
        Self { call: CallId { iteration, index }, action, action_input, hash, approval }
    }
}
