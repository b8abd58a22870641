//! Records of steps, in the form that programs read.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::call_attempt::CallAttempt;
use crate::event::is_no_time;
use crate::timestamp::as_rfc3339_if_any;
use crate::token_usage::TokenUsage;
use loopctl_lang::language::notify::NOTIFY;

/// A step of a workflow that ended, or that is under way. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepRecord {
    /// Its address, like `review.57.1`: the step's `id` or number; in a loop the item and the step follow.
    pub at: String,
    /// Its `type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the item is called that it is a step of, by the `item_label` of its loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_label: Option<String>,
    /// Where it is.
    pub status: StepStatus,
    /// When it began, RFC 3339.
    #[serde(rename = "started_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub started_at_ms: Option<i64>,
    /// When it ended, RFC 3339.
    #[serde(rename = "finished_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub finished_at_ms: Option<i64>,
    /// How long of that its call waited for its turn, in milliseconds; left out when it did not wait.
    #[serde(skip_serializing_if = "is_no_time")]
    pub waited_ms: u64,
    /// Its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Arc<Value>>,
    /// What it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The run that it was, for a loop or a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The tokens that it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// How the items of a loop ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemCounts>,
    /// The case that a choice chose: its number, or `otherwise`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<StepError>,
    /// The failed attempts at its call that were followed by another one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<CallAttempt>,
    /// The address of the item whose step it is; empty for a step of the workflow itself, and where nothing asks.
    #[serde(skip)]
    pub list: Box<str>,
}

impl StepRecord {
    /// The time from its begin to its end in milliseconds; 0 when it has not ended.
    pub fn duration_ms(&self) -> u64 {
        let times = self.started_at_ms.zip(self.finished_at_ms);
        times.map_or(0, |(from, to)| u64::try_from(to.saturating_sub(from)).unwrap_or_default())
    }

    /// What a step of type `notify` has sent, and to whom.
    pub fn notice(&self) -> Option<String> {
        let input = self.input.as_ref().filter(|_| self.kind == NOTIFY)?;
        let (to, text) = (input.get("to")?.as_str()?, input.get("text")?.as_str()?);
        Some(format!("to {to}: {text}"))
    }
}

/// Where a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It has not started.
    Pending,
    /// It is under way.
    Running,
    /// It waits: for a human, or for a time.
    Waiting,
    /// It was under way when its run was killed or stopped: it may have happened.
    Uncertain,
    /// It ended.
    Completed,
    /// It failed.
    Failed,
    /// Its `filter` does not hold.
    Skipped,
    /// It had not ended when its run, or the loop around it, did.
    Cancelled,
}

impl StepStatus {
    /// The status in a word, as it is written in results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Uncertain => "uncertain",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepError {
    /// A stable word.
    pub code: String,
    /// What happened, in a sentence.
    pub message: String,
    /// The address of the step that failed: this one, or one of an item.
    pub step: String,
    /// What the server answered to its call: JSON, cut to a bound. Only in the record of the step itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer: String,
}

/// How the items of a loop ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ItemCounts {
    /// All items.
    pub total: u32,
    /// Those of which all steps ended.
    pub completed: u32,
    /// Those of which a step failed.
    pub failed: u32,
    /// Those of which a filter left out each step.
    pub skipped: u32,
    /// Those that did not end, because others failed.
    pub cancelled: u32,
    /// The numbers of those that failed, from 0: the first thousand.
    pub failed_indexes: Vec<u32>,
}
