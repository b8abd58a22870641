//! Records: what happened in a run, in the form that programs read. Notices, results, traces and HTTP share them, so
//! that a field has one name, one type and one description everywhere. Values are as the run has them; `trace` hides
//! secrets.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::consent;
use super::event::{CallId, FailedAttempt, SubrunCall, Tokens, ToolFault};
use super::outcome::{Pause, Termination};
use super::state::{CallProgress, Phase, State, StoredEntry};
use super::stuck::Stuck;
use super::timestamp::as_rfc3339;

/// What happened in one call, or in one reply that could not be read. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TraceEntry {
    /// The iteration, from 1; several calls of a turn share it.
    pub iteration: u32,
    /// When the reply came, RFC 3339.
    #[serde(rename = "timestamp", serialize_with = "as_rfc3339")]
    #[schemars(with = "String")]
    pub at_ms: i64,
    /// What the model thought; empty but for the first entry of a turn.
    pub thought: String,
    /// The tool; none for a reply that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The tool's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_input: Option<Value>,
    /// What the model reads of it.
    pub observation: Value,
    /// Whether the call did what was asked.
    pub success: bool,
    /// The time of the call in milliseconds; of the model, when nothing was called.
    pub duration_ms: u64,
    /// The tokens of the reply, on the first entry of a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The sub-run, when the call was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Why it failed, for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFault>,
}

impl From<&StoredEntry> for TraceEntry {
    fn from(entry: &StoredEntry) -> Self {
        Self {
            iteration: entry.iteration,
            at_ms: entry.at_ms,
            thought: entry.thought.to_string(),
            action: entry.action.as_deref().map(str::to_owned),
            action_input: entry.action.as_ref().map(|_| entry.action_input.value()),
            observation: entry.observation.value(),
            success: entry.success,
            duration_ms: entry.duration_ms,
            usage: entry.usage.map(TokenUsage::from),
            run_id: entry.run_id.as_deref().map(str::to_owned),
            error: entry.error.as_deref().cloned(),
        }
    }
}

/// A failed request to the model.
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
    /// An attempt, with the iteration that it was made for.
    pub fn new(iteration: u32, attempt: &FailedAttempt) -> Self {
        Self {
            iteration,
            model: attempt.model.clone(),
            reason: attempt.reason.clone(),
            delay_ms: attempt.delay_ms,
            usage: attempt.usage.map(TokenUsage::from),
        }
    }
}

/// Tokens of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenUsage {
    /// Those that the model read.
    pub input_tokens: u64,
    /// Those that it wrote.
    pub output_tokens: u64,
    /// What of them was cached or reasoning.
    #[serde(flatten)]
    pub details: TokenDetails,
}

/// What of the tokens was cached, and what was reasoning; what does not apply is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenDetails {
    /// Those of the input that the provider had in its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Those of the input that the provider put into its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Those of the output that are reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
}

impl From<Tokens> for TokenDetails {
    fn from(tokens: Tokens) -> Self {
        Self {
            cached_input_tokens: tokens.cached_input,
            cache_write_tokens: tokens.cache_write,
            reasoning_tokens: tokens.reasoning,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl From<Tokens> for TokenUsage {
    fn from(tokens: Tokens) -> Self {
        Self { input_tokens: tokens.input, output_tokens: tokens.output, details: tokens.into() }
    }
}

/// What a paused run asks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Question {
    /// Human, stuck, approval or uncertain.
    pub kind: Termination,
    /// The question: the model's for `human`, else the engine's.
    #[serde(rename = "question")]
    pub text: String,
    /// The sub-run that asks, when it is not this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What the model said around its question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The answers that the model offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The pattern that the agent is stuck in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
}

impl From<&Pause> for Question {
    fn from(pause: &Pause) -> Self {
        Self {
            kind: pause.kind,
            text: pause.question.clone(),
            run_id: pause.asks.as_ref().map(|asks| asks.run_id.clone()),
            context: pause.context.clone(),
            options: pause.options.clone(),
            stuck: pause.stuck.clone(),
        }
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

/// The calls that wait for a human's decision, in their order: those of the run, or of the sub-run that asks. The
/// model's own question is not one of them: [`Question`] holds it.
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
