//! How a run ends or stops: the words of the termination table.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::event::CallId;
use super::question::{Question, SubrunQuestion};
use super::stuck::Stuck;
pub use loopctl_lang::language::ending::{Limit, Status, Termination};

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
    /// Who cancelled it.
    pub cancelled_by: Option<Box<str>>,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

impl Ending {
    /// An ending without an answer, a limit, a pattern or an error.
    pub(super) fn new(status: Status, termination: Termination, at_ms: i64) -> Self {
        Self { status, termination, answer: None, limit: None, stuck: None, error: None, cancelled_by: None, at_ms }
    }
}

/// What `__complete__` said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// The answer.
    pub answer: Value,
    /// How sure the model is, 0 to 1. A workflow says nothing of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<serde_json::Number>,
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
    /// What it asks; for a sub-run that asks, its question.
    pub question: Question,
    /// The calls that wait.
    pub calls: Vec<CallId>,
    /// For a model that could not be reached: the limit whose last call it is.
    pub forced: Option<Limit>,
    /// The addresses of the steps that wait, in a workflow.
    pub steps: Vec<String>,
    /// What a sub-run asks, passed up unchanged.
    pub asks: Option<Box<SubrunQuestion>>,
    /// For a spending limit: until when the run waits, in milliseconds since 1970.
    pub until_ms: Option<i64>,
}
