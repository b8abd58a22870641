//! The trace's entries: Hyphen's fields, with secrets hidden.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::redact::Redaction;
use super::units::{duration, rfc3339};
use crate::engine::event::{FailedAttempt, ToolFault};
pub use crate::engine::notice::TokenUsage;
use crate::engine::state::StoredEntry;

/// What happened in one call, or in one reply that could not be read. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TraceEntry {
    /// The iteration, from 1; several calls of a turn share it.
    pub iteration: u32,
    /// When the reply came, RFC 3339.
    pub timestamp: String,
    /// What the model thought.
    pub thought: String,
    /// The tool; none for a reply that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The tool's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_input: Option<Value>,
    /// What the model was told.
    pub observation: Value,
    /// Whether the call did what was asked.
    pub success: bool,
    /// The time of the call in milliseconds; of the model, when nothing was called.
    pub duration_ms: u64,
    /// The tokens of the reply, on the first entry of a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The run that the call was, when it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Why it failed, for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFault>,
}

impl TraceEntry {
    /// An entry of a run's state as it is shown.
    pub fn new(entry: &StoredEntry, redact: &Redaction) -> Self {
        Self {
            iteration: entry.iteration,
            timestamp: rfc3339(entry.at_ms),
            thought: redact.text(&entry.thought).into_owned(),
            action: entry.action.as_deref().map(|action| redact.text(action).into_owned()),
            action_input: entry.action.as_ref().map(|_| redact.value(&entry.action_input.value())),
            observation: redact.value(&entry.observation.value()),
            success: entry.success,
            duration_ms: entry.duration_ms,
            usage: entry.usage.map(TokenUsage::from),
            run_id: entry.run_id.as_deref().map(str::to_owned),
            error: entry.error.as_ref().map(|fault| ToolFault {
                class: redact.text(&fault.class).into_owned(),
                detail: redact.text(&fault.detail).into_owned(),
            }),
        }
    }
}

/// All entries of a run, in the journal's order.
pub fn entries(all: &[StoredEntry], redact: &Redaction) -> Vec<TraceEntry> {
    all.iter().map(|entry| TraceEntry::new(entry, redact)).collect()
}

/// A failed attempt at asking the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceAttempt {
    /// The iteration that it was made for, from 1.
    pub iteration: u32,
    /// The fallback that was asked, when it was not the run's own model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it failed.
    pub reason: String,
    /// The wait after it in milliseconds.
    pub delay_ms: u64,
    /// The tokens that the provider counted all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

impl TraceAttempt {
    /// The attempt in a sentence.
    pub fn told(&self) -> String {
        let model = self.model.as_deref().unwrap_or("the model");
        let wait = match self.delay_ms {
            0 => String::new(),
            delay => format!("; retry in {}", duration(delay)),
        };
        format!("{model}: {}{wait}", self.reason)
    }
}

/// All failed attempts of a run, in their order.
pub fn attempts(all: &[(u32, FailedAttempt)], redact: &Redaction) -> Vec<TraceAttempt> {
    let shown = |(iteration, attempt): &(u32, FailedAttempt)| TraceAttempt {
        iteration: *iteration,
        model: attempt.model.clone(),
        reason: redact.text(&attempt.reason).into_owned(),
        delay_ms: attempt.delay_ms,
        usage: attempt.usage.map(TokenUsage::from),
    };
    all.iter().map(shown).collect()
}
