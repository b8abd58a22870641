//! A call of a turn, and how far it is.

use serde_json::Value;

use super::awaited_approval::AwaitedApproval;
use super::call_attempt::CallAttempt;
use super::event::{CallId, Decided, SubrunQuestion, Tokens, ToolResult};

/// A call of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Which one.
    pub id: CallId,
    /// The tool as the model named it.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// How far it is.
    pub progress: CallProgress,
    /// The sub-run, once its id is known.
    pub run_id: Option<Box<str>>,
    /// Whether it is a run of another loop.
    pub is_subrun: bool,
    /// When it was requested last, in milliseconds since 1970; none before.
    pub called_at_ms: Option<i64>,
    /// The failed attempts at it, when it was made again.
    pub attempts: Vec<CallAttempt>,
}

/// Why nobody knows whether a call happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The process stopped during the call.
    Stopped,
    /// Its answer was lost: its last attempt says how.
    Lost,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub enum CallProgress {
    /// A human must approve it first.
    AwaitsApproval(Box<AwaitedApproval>),
    /// It waits for calls of its turn: for those that the loop's `order` puts before it; with a budget, a call that asks
    /// models waits until the cost of the one before it is known.
    Held,
    /// It was requested; only the driver knows whether it is under way.
    Asked,
    /// It may or may not have happened; a human must decide.
    Uncertain(Doubt),
    /// Its sub-run waits for a human.
    Waits(Box<Waits>),
    /// It ended, or was not made because it is not allowed.
    Done {
        /// Its result.
        result: ToolResult,
        /// The time of the call in milliseconds.
        duration_ms: u64,
    },
}

/// A sub-run that waits for a human.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// What it asks.
    pub asks: SubrunQuestion,
    /// The decision of the human, to be passed to the sub-run.
    pub decided: Option<Decided>,
    /// Whether it asks again, because another document asked before.
    pub again: bool,
    /// What was counted so far.
    pub settled: SettledCost,
}

/// What was counted of a sub-run that has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SettledCost {
    /// Tokens.
    pub tokens: Tokens,
    /// US dollars.
    pub cost_usd: f64,
}

impl CallProgress {
    /// Whether the driver must perform it: it was requested and has not ended.
    pub fn is_under_way(&self) -> bool {
        match self {
            Self::Asked => true,
            Self::Waits(waits) => waits.decided.is_some() || waits.again,
            Self::AwaitsApproval(_) | Self::Held | Self::Uncertain(_) | Self::Done { .. } => false,
        }
    }
}
