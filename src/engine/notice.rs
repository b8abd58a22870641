//! Notices: what a listener is told while a run goes on. They are told from the state after a step;
//! the state knows nothing of them, but for what only the driver sees (deltas, retries).
//!
//! Their names and fields are those of `--output ndjson`: `schemas/events.schema.json` is made from
//! the types here.

mod baseline;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::event::CallId;
use super::outcome::{Status, Termination};
use super::record::{Question, TokenUsage, TraceEntry, WaitingCall};

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
        /// The entry of the trace.
        #[serde(flatten)]
        entry: TraceEntry,
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
        /// What it asks.
        #[serde(flatten)]
        question: Question,
        /// The calls that wait, each to be decided on its own.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<WaitingCall>,
    },
    /// The run ended, or was stopped.
    RunEnded {
        /// The status.
        status: Status,
        /// Why.
        termination: Termination,
    },
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
