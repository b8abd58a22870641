//! Notices: what a listener hears while a run is under way. They are computed from a step and the state after it; only
//! the pieces of a reply and the retries come from the driver itself.
//!
//! Their names and fields are those of `--output ndjson`: `schemas/events.schema.json` is made from
//! the types here.

mod baseline;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::continuation_record::ContinuationRecord;
use super::decision::decision_record::DecisionRecord;
use super::event::{CallId, Finish, ForkPoint, ToolFault};
use super::flow::item_row::ItemRow;
use super::flow::record::StepRecord;
use super::history::notes::NotesFault;
use super::outcome::{Status, Termination};
use super::question::{Question, StepQuestion, WaitingCall};
use super::question_post::QuestionPost;
use super::record::{TokenUsage, TraceEntry};
use super::state::State;
use loopctl_lang::program::Program;

pub use baseline::{Baseline, notices};

/// What a listener hears. Values are as the run has them: whoever shows them must redact and escape them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "a listener gets one at a time, and reads the fields of an entry at once"
)]
pub enum Notice {
    /// The run started.
    RunStarted {
        /// The run's id.
        run_id: String,
        /// The loop's name.
        loop_name: String,
        /// The model.
        model: String,
        /// The objective, rendered.
        objective: String,
        /// The most iterations; 0 for a workflow.
        max_iterations: u32,
        /// Where it comes from, when it is a fork. The notices of the copied steps follow.
        #[serde(skip_serializing_if = "Option::is_none")]
        fork_of: Option<ForkPoint>,
    },
    /// A driver resumed the run.
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
    /// A part of a reply that is under way, for listeners that want them. It is no part of the run's record: the
    /// whole follows in what is reported of the reply. When the attempt is another one than that of the part
    /// before, what was shown of that one is void.
    ModelDelta {
        /// The iteration, from 1.
        iteration: u32,
        /// The attempt, from 1.
        attempt: u32,
        /// The text that came, which may be empty.
        text: String,
        /// The tokens that the model has written in this attempt: its text, calls and reasoning.
        output_tokens: u64,
        /// Whether the tokens are estimated; otherwise the provider counted them.
        estimated: bool,
        /// The milliseconds from the request to the first token, in the first part of an attempt.
        #[serde(skip_serializing_if = "Option::is_none")]
        time_to_first_token_ms: Option<u64>,
        /// Whether the reply is complete.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        last: bool,
    },
    /// A model call failed and is retried.
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
        /// Why it stopped; left out when the reply is complete.
        #[serde(skip_serializing_if = "Finish::is_stop")]
        finish: Finish,
        /// The model that the provider names, when it is not the one that was asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        response_model: Option<String>,
        /// The time in milliseconds, without that in which it waited for its turn.
        duration_ms: u64,
        /// The milliseconds in which its requests waited for their turns.
        #[serde(skip_serializing_if = "is_no_time")]
        waited_ms: u64,
        /// The milliseconds from the last request to the first token of a reply that was streamed.
        #[serde(skip_serializing_if = "Option::is_none")]
        time_to_first_token_ms: Option<u64>,
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
    /// An attempt at a tool call failed, and the call is made again.
    ToolRetried {
        /// Which call; none for that of a step.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The address of the step of a workflow that makes the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// The tool.
        action: String,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why.
        error: ToolFault,
        /// The wait in milliseconds.
        delay_ms: u64,
    },
    /// The MCP server of a tool says how far a call is. It is no part of the run's record.
    McpProgress {
        /// Which call; none for that of a step.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The address of the step of a workflow that makes the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// The tool.
        action: String,
        /// How much is done, as the server counts.
        progress: f64,
        /// How much there is to do, if the server says it.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// What the server says of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The tool of an MCP server has changed since it was pinned. It is no part of the run's record.
    McpDrift {
        /// Which call; none for that of a step.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The address of the step of a workflow that makes the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// The tool.
        action: String,
        /// What has changed: `text`, `annotations`, `input`, `output` or `gone`.
        changes: Vec<String>,
        /// Whether the call is made all the same; else it fails, and nothing of it is sent.
        #[serde(rename = "called")]
        is_called: bool,
    },
    /// A step of a workflow begins.
    StepStarted {
        /// Its address, like `review.57.1`.
        at: String,
        /// Its `type`.
        #[serde(rename = "type")]
        kind: String,
        /// Its input.
        action_input: std::sync::Arc<Value>,
        /// What the item is called that it is a step of, by the `item_label` of its loop.
        #[serde(skip_serializing_if = "Option::is_none")]
        item_label: Option<std::sync::Arc<str>>,
    },
    /// A step of a workflow ended.
    StepEnded {
        /// The step.
        #[serde(flatten)]
        record: Box<StepRecord>,
    },
    /// All steps of an item of a loop have ended.
    ItemEnded {
        /// Its address, like `review.57`.
        at: String,
        /// The item.
        #[serde(flatten)]
        row: Box<ItemRow>,
    },
    /// An observation: of a tool, or of the engine about a call that is not allowed or a reply
    /// that could not be read. It is a whole entry of the trace.
    Observed {
        /// Which call; none for an unreadable reply.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The entry of the trace.
        #[serde(flatten)]
        entry: TraceEntry,
    },
    /// The share of the budget that causes a warning is used. Reported once in a run.
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
    /// Messages were removed from the history, so that the next request is not too long.
    HistoryTrimmed {
        /// The iterations so far.
        iterations: u32,
        /// How many messages were removed.
        messages: u32,
        /// Whether a summary by the model replaces them.
        summarized: bool,
        /// What is wrong with the summary: it was cut off, or there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        notes_fault: Option<NotesFault>,
    },
    /// The agent reported its progress.
    Progress {
        /// The iteration, from 1.
        iteration: u32,
        /// Its message.
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
        /// The steps of a workflow that wait, each to be decided on its own.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        steps: Vec<StepQuestion>,
    },
    /// A question was posted to a target of `ask`, or that failed.
    QuestionPosted {
        /// To whom, and how it went.
        #[serde(flatten)]
        post: QuestionPost,
    },
    /// A human decided about a pause.
    Decided {
        /// The decision.
        #[serde(flatten)]
        record: DecisionRecord,
    },
    /// A human had the run continue whose model could not be reached.
    Retried {
        /// Who and when, and how the run had ended.
        #[serde(flatten)]
        record: ContinuationRecord,
    },
    /// A human raised limits of the run.
    LimitsRaised {
        /// Who and when, how the run had ended, and the new limits.
        #[serde(flatten)]
        record: ContinuationRecord,
    },
    /// The run ended, or was stopped.
    RunEnded {
        /// The status.
        status: Status,
        /// Why.
        termination: Termination,
    },
}

/// Receives notices as they happen.
pub trait Listener: Send + Sync {
    /// Receives a notice. It is called between two steps: return soon.
    fn on(&self, notice: Notice);

    /// Whether it wants replies as they arrive. The request asks for a stream then, and parts of its reply are passed
    /// on for as long as this is so.
    fn wants_deltas(&self) -> bool {
        false
    }

    /// Hears that what the run is resumed with fits, and is durable: with what follows, its driver is concerned alone.
    fn on_accepted(&self) {}

    /// Hears for which run this one waits, in their line: it begins when enough of those ahead have ended. `keeps_turn`: whether it stays
    /// in the line when it is stopped, because it had started before.
    fn on_line(&self, _first: &str, _keeps_turn: bool) {}

    /// Whether it wants the state of a workflow as long as steps of it are under way.
    fn wants_questions(&self) -> bool {
        false
    }

    /// Receives the state of a workflow of which steps are under way and others may wait for a human. All events of it
    /// are durable.
    fn on_questions(&self, _program: &Program, _state: &State) {}
}

fn is_no_time(milliseconds: &u64) -> bool {
    *milliseconds == 0
}
