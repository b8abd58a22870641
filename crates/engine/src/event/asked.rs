//! A server asks a human before it continues with a call.

use serde::{Deserialize, Serialize};

use super::CallId;
use crate::server_question::ServerQuestion;

/// The server of a tool asks a human before it continues with a call. Nothing of the call is under way then: it is made again with
/// what is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolAsks {
    /// Which call.
    pub call: CallId,
    /// What it asks.
    pub asks: ServerQuestion,
}

/// The same for the call of a step of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepAsks {
    /// The address of the step.
    pub at: String,
    /// What it asks.
    pub asks: ServerQuestion,
}
