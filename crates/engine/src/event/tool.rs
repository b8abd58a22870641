//! Events of a tool call: its result, or the question of a sub-run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Tokens, is_no_time};
use crate::address::CallId;
use crate::question::SubrunQuestion;

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolReturned {
    /// Which call.
    pub call: CallId,
    /// Its result.
    pub result: ToolResult,
    /// The time of the call in milliseconds, without what `waited_ms` has.
    pub duration_ms: u64,
    /// The milliseconds in which it waited for its turn.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub waited_ms: u64,
    /// Tokens that the call used itself (`llm`, a loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars, when the price of the model that the call asked is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether some of them are an estimate, because a provider did not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Whether some of them are the most that was used: nobody knows what became of a request that was sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// The sub-run, when the call was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The attempts at the model that it asks which were followed by another one (`llm`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AskedAttempt>,
}

/// An attempt at the model that a call asks. It failed, or its answer could not be taken, and the model was asked again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedAttempt {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: i64,
    /// Why it was not the last one, in a sentence without secrets.
    pub reason: String,
    /// Its time in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// The wait after it in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
}

impl ToolReturned {
    /// The end of a call that used no tokens.
    pub fn without_tokens(call: CallId, result: ToolResult, duration_ms: u64, run_id: Option<String>) -> Self {
        let (tokens, cost_usd, attempts) = (None, None, Vec::new());
        let (waited_ms, estimated, at_most) = (0, false, false);
        Self { call, result, duration_ms, waited_ms, tokens, cost_usd, estimated, at_most, run_id, attempts }
    }
}

/// An attempt at a call failed, and another one follows: the call is still under way. Or its answer was lost, and a human
/// decides what follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRetried {
    /// Which call.
    pub call: CallId,
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// Why it failed.
    pub error: ToolFault,
    /// The time of the attempt in milliseconds.
    pub duration_ms: u64,
    /// The milliseconds in which it waited for its turn before that.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub waited_ms: u64,
    /// The wait before the next attempt in milliseconds.
    pub delay_ms: u64,
    /// Whether its answer was lost, and the document wants a human to say whether the call happened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// The driver stopped between two attempts of the model that a call asks: nothing of the call is under way, and the next
/// driver makes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolLeft {
    /// Which call.
    pub call: CallId,
    /// Tokens of the attempts that failed, and that nothing else counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars, when the model's price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A sub-run waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolPaused {
    /// Which call.
    pub call: CallId,
    /// The sub-run.
    pub run_id: String,
    /// Its question.
    pub asks: SubrunQuestion,
    /// Tokens that it used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars; see [`ToolReturned`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResult {
    /// The value that the tool returned.
    Ok(Value),
    /// Why it failed.
    Failed(ToolFault),
}

impl ToolResult {
    /// A failure that the engine itself reports, in words for the model.
    pub fn failed(class: impl Into<String>) -> Self {
        Self::Failed(ToolFault { class: class.into(), ..ToolFault::default() })
    }
}

/// What is said of a failed call that may not be repeated, when what came of it is not known.
pub const MAY_HAVE_HAPPENED: &str = ": the call may have happened; find out before it is made again";

/// Why a tool call failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFault {
    /// What the model reads: the class of the failure, like `timed out after 30 s` or `http 503`.
    pub class: String,
    /// What the operator reads, beside the class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// What the server answered, which the model reads too: JSON, cut to a bound.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
}

impl ToolFault {
    /// A failure without an answer.
    pub fn new(class: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { class: class.into(), detail: detail.into(), answer: String::new() }
    }

    /// What the model reads in place of a result.
    pub fn observation(&self) -> String {
        let Self { class, answer, .. } = self;
        if answer.is_empty() {
            format!("Error: {class}")
        } else {
            format!("Error: {class}\nThe server answered: {answer}")
        }
    }
}
