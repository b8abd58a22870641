//! Events of a step of a workflow: its outcome, or the question of its run.

use serde::{Deserialize, Serialize};

use super::tool::{AskedAttempt, ToolFault, ToolResult};
use super::{Tokens, is_no_time};
use crate::question::SubrunQuestion;

/// How a step ended. Its input is not in it: it follows from the context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepReturned {
    /// The address of the step.
    pub at: String,
    /// Its `type`: with another document, another step may have the address.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it gave.
    pub result: ToolResult,
    /// The time of the step in milliseconds, without what `waited_ms` has.
    pub duration_ms: u64,
    /// The milliseconds in which its call waited for its turn.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub waited_ms: u64,
    /// Tokens that it used itself (`llm`, a loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars, when the price of the model that it asked is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether some of them are an estimate, because a provider did not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Whether some of them are the most that was used: nobody knows what became of a request that was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// The run that it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The attempts at the model that it asks which were followed by another one (`llm`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AskedAttempt>,
    /// Whether its run completed although items in it failed: these run again when the run above is retried.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partly: bool,
    /// Whether the same call, or the same run, may succeed unchanged: it failed for a reason that may pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
    /// Whether its run failed for a reason outside of it, and continues when the step runs again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outage: bool,
    /// Whether its time or its budget ended its run, which continues when it is given more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
}

/// An attempt at the call of a step failed, and another one follows. Or its answer was lost, and a human decides what
/// follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRetried {
    /// The address of the step.
    pub at: String,
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// Why.
    pub error: ToolFault,
    /// The time of the attempt in milliseconds.
    pub duration_ms: u64,
    /// The milliseconds in which it waited for its turn before that.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub waited_ms: u64,
    /// The wait after it in milliseconds.
    pub delay_ms: u64,
    /// Whether its answer was lost, and the document wants a human to say whether the call happened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// The driver stopped between two attempts of the model that a step asks: nothing of the step is under way, and the next
/// driver makes its call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepLeft {
    /// The address of the step.
    pub at: String,
    /// Tokens of the attempts that failed, and that nothing else counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars, when the model's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A spending limit of the project leaves no room for the model that a step asks: nothing of the step is under way, and its call
/// is made when there may be room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepWaits {
    /// The address of the step.
    pub at: String,
    /// Which limit leaves no room.
    pub why: String,
    /// Until when, in milliseconds since 1970.
    pub until_ms: i64,
    /// Tokens of the attempts that failed before, and that nothing else counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars, when the model's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// The run of a step waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepPaused {
    /// The address of the step.
    pub at: String,
    /// The run.
    pub run_id: String,
    /// Its question.
    pub asks: SubrunQuestion,
    /// Tokens that it used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars; see [`StepReturned`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}
