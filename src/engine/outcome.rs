//! How a run ends or stops: the words of the termination table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::{CallId, SubrunQuestion};
use super::stuck::Stuck;

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Under way, or cut off.
    Running,
    /// Waits for a human.
    Paused,
    /// Ended with an answer.
    Completed,
    /// Ended without one.
    Failed,
    /// Stopped by hand or by a signal.
    Cancelled,
    /// Cut off again and again: several drivers in a row took it up and died before anything happened in it, so no
    /// server takes it up any more. Stores say this; a run's own state does not know it.
    Quarantined,
}

impl Status {
    /// The status in a word, as it is written in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Quarantined => "quarantined",
        }
    }
}

/// Why a run ended or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// `__complete__`, or the dialect's answer.
    Complete,
    /// A limit was reached and the last call answered.
    ForcedAnswer,
    /// The iterations are spent.
    MaxIterations,
    /// The active time is spent.
    Timeout,
    /// The model's window is full.
    Context,
    /// The budget is spent.
    Budget,
    /// The agent went in circles.
    Stuck,
    /// The model can't be reached, or refuses.
    ModelError,
    /// The model can't be read.
    InvalidReplies,
    /// It asked for a human.
    Human,
    /// A tool wants approval.
    Approval,
    /// A call's outcome is not known after a crash.
    Uncertain,
    /// Stopped by hand or by a signal.
    Cancelled,
    /// A step of the workflow failed.
    StepFailed,
    /// A human did not approve, and the workflow stops then.
    Rejected,
    /// Nobody filled in a form in time.
    FormExpired,
    /// The `condition` of the workflow does not hold: nothing ran.
    ConditionNotMet,
}

/// A limit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// `max_iterations`.
    MaxIterations,
    /// `timeout_ms`.
    Timeout,
    /// The model's window.
    Context,
    /// `budget`.
    Budget,
}

impl From<Limit> for Termination {
    fn from(limit: Limit) -> Self {
        match limit {
            Limit::MaxIterations => Self::MaxIterations,
            Limit::Timeout => Self::Timeout,
            Limit::Context => Self::Context,
            Limit::Budget => Self::Budget,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// Completed, failed or cancelled.
    pub status: Status,
    /// Why.
    pub termination: Termination,
    /// The answer.
    pub answer: Option<Answer>,
    /// The limit that caused a forced answer.
    pub limit: Option<Limit>,
    /// The pattern that the agent was stuck in.
    pub stuck: Option<Stuck>,
    /// The error of a failed or cancelled run.
    pub error: Option<RunError>,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

impl Ending {
    /// An ending without an answer, a limit, a pattern or an error.
    pub(super) fn new(status: Status, termination: Termination, at_ms: i64) -> Self {
        Self { status, termination, answer: None, limit: None, stuck: None, error: None, at_ms }
    }
}

/// What `__complete__` said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The answer.
    pub answer: Value,
    /// How sure the model is, 0 to 1.
    pub confidence: serde_json::Number,
    /// A summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunError {
    /// A stable word: a termination, or the kind of a model's fault.
    pub code: String,
    /// What happened, in a sentence.
    pub message: String,
    /// Whether the same step may succeed when tried again as it is.
    pub retryable: bool,
    /// The address of the step that failed, in a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

/// What a paused run waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Pause {
    /// Its number in the run, from 1.
    pub number: u32,
    /// Human, stuck, approval or uncertain; a model error, when the model could not be reached.
    pub kind: Termination,
    /// The model's question, or the engine's.
    pub question: String,
    /// What the model said about it.
    pub context: Option<String>,
    /// The answers that the model offers.
    pub options: Vec<String>,
    /// The calls that wait.
    pub calls: Vec<CallId>,
    /// The pattern that the agent is stuck in.
    pub stuck: Option<Stuck>,
    /// For a model that could not be reached: the limit whose last call it is.
    pub forced: Option<Limit>,
    /// The addresses of the steps that wait, in a workflow.
    pub steps: Vec<String>,
    /// The question of a sub-run, passed up unchanged; the fields above then describe the sub-run.
    pub asks: Option<Box<SubrunQuestion>>,
}
