//! Notices: what a listener is told while a run goes on. They are told from the state after a step;
//! the state knows nothing of them, but for what only the driver sees (deltas, retries).
//!
//! Their names and fields are those of `--output ndjson`: `schemas/events.schema.json` is made from
//! the types here.

mod baseline;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::consent;
use super::event::{CallId, SubrunCall, Tokens, ToolFault};
use super::outcome::{Status, Termination};
use super::state::{CallProgress, Phase, State};
use super::stuck::Stuck;

pub use baseline::{Baseline, notices};

/// What a listener is told. Values are as the run has them: who shows them redacts and escapes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Notice {
    /// The run began.
    RunStarted {
        /// The run's id.
        run_id: String,
        /// The loop's name.
        loop_name: String,
        /// The model.
        model: String,
        /// The objective, rendered.
        objective: String,
        /// How many iterations it may have.
        max_iterations: u32,
    },
    /// A driver took the run up again.
    RunResumed {
        /// The run's id.
        run_id: String,
        /// The loop's name.
        loop_name: String,
        /// The iterations before.
        iterations: u32,
    },
    /// The model is asked.
    ModelAsked {
        /// The iteration, from 1.
        iteration: u32,
    },
    /// A piece of the model's reply, for listeners that want them. The pieces of an attempt that failed
    /// midway come again.
    ModelDelta {
        /// The iteration, from 1.
        iteration: u32,
        /// The piece.
        text: String,
    },
    /// A model call failed and is made again.
    ModelRetried {
        /// The iteration, from 1.
        iteration: u32,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why, in a sentence.
        reason: String,
        /// The wait in milliseconds.
        delay_ms: u64,
    },
    /// The model replied.
    ModelReplied {
        /// The iteration, from 1.
        iteration: u32,
        /// The thought, as far as it was read.
        thought: String,
        /// The tokens.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
        /// The time in milliseconds.
        duration_ms: u64,
    },
    /// A tool is called.
    ToolCalled {
        /// Which call.
        call: CallId,
        /// The tool.
        action: String,
        /// Its input.
        action_input: Value,
    },
    /// An observation was made: by a tool, or by the engine about a call that was not allowed or a reply
    /// that could not be read. It is an entry of the trace, whole.
    Observed {
        /// Which call; none for an unreadable reply.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The iteration, from 1; several calls of a turn share it.
        iteration: u32,
        /// When the reply came, in milliseconds since 1970; written in RFC 3339.
        #[serde(rename = "timestamp", serialize_with = "as_rfc3339")]
        #[schemars(with = "String")]
        at_ms: i64,
        /// What the model thought; empty but for the first entry of a turn.
        thought: String,
        /// The tool; none for an unreadable reply.
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        /// Its input; none for an unreadable reply.
        #[serde(skip_serializing_if = "Option::is_none")]
        action_input: Option<Value>,
        /// What the model was told.
        observation: Value,
        /// Whether the call did what was asked.
        success: bool,
        /// The time of the call in milliseconds; of the model, when nothing was called.
        duration_ms: u64,
        /// The tokens of the reply, on the first entry of a turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
        /// The run that the call was, when it was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        /// Why it failed, for the operator.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ToolFault>,
    },
    /// The share of the budget is used at which a warning is given. Told once in a run.
    BudgetWarning {
        /// The iterations so far.
        iterations: u32,
        /// The tokens that were used, read and written.
        tokens: u64,
        /// What they cost in US dollars, when all prices are known.
        cost_usd: Option<f64>,
        /// The share of the budget that is used; 1 is all of it.
        used: f64,
    },
    /// Messages went from the history, so that the next request is not too long.
    HistoryTrimmed {
        /// The iterations so far.
        iterations: u32,
        /// How many messages went.
        messages: u32,
        /// Whether notes of the model stand in for them.
        summarized: bool,
    },
    /// The agent told how far it is.
    Progress {
        /// The iteration, from 1.
        iteration: u32,
        /// What it told.
        message: String,
        /// The milestone.
        #[serde(skip_serializing_if = "Option::is_none")]
        milestone: Option<String>,
        /// How much is done, 0 to 100.
        #[serde(skip_serializing_if = "Option::is_none")]
        percent: Option<f64>,
    },
    /// The run waits for a human.
    Paused {
        /// The pause's number, from 1.
        pause: u32,
        /// Human, stuck, approval or uncertain.
        kind: Termination,
        /// The question: the model's for `human`, else the engine's.
        question: String,
        /// The run that asks, when it is not this one but one that it called.
        #[serde(skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        /// What the model said around its question.
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<String>,
        /// The answers that the model offers.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// The calls that wait, each to be decided on its own.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<WaitingCall>,
        /// The pattern that the agent is stuck in.
        #[serde(skip_serializing_if = "Option::is_none")]
        stuck: Option<Stuck>,
    },
    /// The run ended, or was stopped.
    RunEnded {
        /// The status.
        status: Status,
        /// Why.
        termination: Termination,
    },
}

/// Tokens of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenUsage {
    /// Those that the model read.
    pub input_tokens: u64,
    /// Those that it wrote.
    pub output_tokens: u64,
}

impl From<Tokens> for TokenUsage {
    fn from(tokens: Tokens) -> Self {
        Self { input_tokens: tokens.input, output_tokens: tokens.output }
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
}

impl From<&SubrunCall> for WaitingCall {
    fn from(asked: &SubrunCall) -> Self {
        let SubrunCall { call, action, action_input, hash } = asked.clone();
        Self { id: call.to_string(), iteration: call.iteration, index: call.index, action, action_input, hash }
    }
}

impl From<WaitingCall> for SubrunCall {
    fn from(call: WaitingCall) -> Self {
        let WaitingCall { iteration, index, action, action_input, hash, .. } = call;
        Self { call: CallId { iteration, index }, action, action_input, hash }
    }
}

/// The calls that a paused run waits for a decision about, in their order: its own, or those of the run
/// that asks. A question of the model's is none of them: what it asks is told already.
pub fn waiting_calls(state: &State) -> Vec<WaitingCall> {
    let Phase::Paused { pause, .. } = &state.phase else { return Vec::new() };
    if !matches!(pause.kind, Termination::Approval | Termination::Uncertain) {
        return Vec::new();
    }
    if let Some(asks) = &pause.asks {
        return asks.calls.iter().map(WaitingCall::from).collect();
    }
    let calls = pause.calls.iter().filter_map(|id| state.call(*id));
    calls
        .filter(|call| !matches!(call.progress, CallProgress::Done { .. } | CallProgress::Held | CallProgress::Asked))
        .map(|call| WaitingCall {
            id: call.id.to_string(),
            iteration: call.id.iteration,
            index: call.id.index,
            action: call.tool.clone(),
            action_input: call.input.clone(),
            hash: consent::hash(&state.header, call),
        })
        .collect()
}

/// A time in RFC 3339, UTC, to the millisecond; the bare number where the calendar has no such time.
pub fn rfc3339(wall_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(wall_ms).map_or_else(|_| wall_ms.to_string(), |at| format!("{at:.3}"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn as_rfc3339<S: Serializer>(wall_ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*wall_ms))
}

/// Is told what happens, as it happens.
pub trait Listener: Send + Sync {
    /// Something happened. Called between two steps: return soon.
    fn on(&self, notice: Notice);

    /// Whether it wants the model's reply in pieces; then the model is asked to stream.
    fn wants_deltas(&self) -> bool {
        false
    }
}
