//! The questions of steps that wait for a human, in the form that programs read.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::engine::awaited_approval::AwaitedApproval;
use crate::engine::outcome::Termination;
use crate::engine::record::WaitingCall;
use crate::engine::timestamp::as_rfc3339_if_any;

/// A question of a step that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepQuestion {
    /// The address of the step, as `resume --at` takes it.
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
