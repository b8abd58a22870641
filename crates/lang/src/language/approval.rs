//! Approvals: when a human must approve the call of a tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::Condition;

/// How an approval is given: by how many, and within what time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalSettings {
    /// How long the call waits, in milliseconds from the pause, also while no process runs. Default: without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expires_after_ms: Option<u64>,
    /// What happens when nobody has decided by then. Default: `deny`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    /// How many different people must approve the call. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub approvers: Option<u32>,
    /// The targets of the project's `notify` that the question is posted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Vec<String>>,
}

/// What happens when nobody has decided about a call in time; a later one is stricter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// From then on only holders of the scope `decide:escalated` may decide; the question is sent again.
    Escalate,
    /// The call is not made, and the model reads why.
    #[default]
    Deny,
    /// The run fails.
    Fail,
}

/// Whether a human must approve the calls of a tool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RequiresApproval {
    /// Each call, or none.
    Always(bool),
    /// The calls whose input meets a condition; `@input` is the input of the call.
    When(Box<Condition>),
}

impl Default for RequiresApproval {
    fn default() -> Self {
        Self::Always(false)
    }
}

impl RequiresApproval {
    /// Whether no call must be approved.
    pub fn is_never(&self) -> bool {
        matches!(self, Self::Always(false))
    }
}
