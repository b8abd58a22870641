//! Records: what happened in a run, in the form that programs read. Notices, results, traces and HTTP share them, so
//! that a field has one name, one type and one description everywhere. Values are as the run has them; `trace` hides
//! secrets.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::call_attempt::CallAttempt;
use super::event::{CallId, FailedAttempt, ToolFault, ToolResult, is_no_time};
use super::observation::cut_to;
use super::operation::{AskedFor, Call, Progress};
use super::state::{LoopState, Phase, State, StateHead, StoredEntry, Turn};
use super::timestamp::{as_rfc3339, as_rfc3339_if_any};
pub use super::token_usage::{TokenDetails, TokenUsage};

/// What happened in one call, or in one reply that could not be read. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TraceEntry {
    /// The iteration, from 1; several calls of a turn share it.
    pub iteration: u32,
    /// When the reply came, RFC 3339.
    #[serde(rename = "timestamp", serialize_with = "as_rfc3339")]
    #[schemars(with = "String")]
    pub at_ms: i64,
    /// When a human decided about the call, RFC 3339; the last time, if several did.
    #[serde(rename = "decided_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub decided_at_ms: Option<i64>,
    /// When the call was made, RFC 3339; the last time, if it was made again after a crash. None for a call that was
    /// not made, and for a built-in tool.
    #[serde(rename = "called_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub called_at_ms: Option<i64>,
    /// The place of the call in its turn, from 0.
    #[serde(skip)]
    pub index: u32,
    /// How far a call without an outcome is; left out when there is an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_status: Option<CallStatus>,
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
    /// How long the call waited for its turn before that, in milliseconds; left out when it did not wait.
    #[serde(skip_serializing_if = "is_no_time")]
    pub waited_ms: u64,
    /// The tokens of the reply, on the first entry of a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The sub-run, when the call was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Why it failed, for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFault>,
    /// The hint of `on_stuck` that the model read behind this observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The attempts at the call that failed before the last one, when it was made again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<CallAttempt>,
}

/// How far a call without an outcome is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It was under way when its run was killed, stopped or cancelled: it may have happened.
    Uncertain,
    /// It is under way.
    UnderWay,
    /// Its sub-run was stopped together with its caller, and continues with it.
    Interrupted,
    /// Its sub-run waits for a human.
    Waiting,
}

impl CallStatus {
    /// The status in a word, for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Uncertain => "uncertain",
            Self::UnderWay => "under way",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting",
        }
    }
}

impl TraceEntry {
    /// The entry at this place of a run's record.
    pub fn recorded(state: &LoopState, at: usize, entry: &StoredEntry) -> Self {
        let before = state.entries.iter().take(at).rev().take_while(|other| other.iteration == entry.iteration).count();
        let index = u32::try_from(before).unwrap_or(u32::MAX);
        Self {
            iteration: entry.iteration,
            at_ms: entry.at_ms,
            decided_at_ms: decided_at(state, CallId { iteration: entry.iteration, index }),
            called_at_ms: entry.called_at_ms,
            index,
            call_status: None,
            thought: entry.thought.to_string(),
            action: entry.action.as_deref().map(str::to_owned),
            action_input: entry.action.as_ref().map(|_| entry.action_input.value()),
            observation: entry.observation.value(),
            success: entry.success,
            duration_ms: entry.duration_ms,
            waited_ms: entry.waited_ms,
            usage: entry.usage.map(TokenUsage::from),
            run_id: entry.run_id.as_deref().map(str::to_owned),
            error: entry.error.as_deref().cloned(),
            attempts: entry.attempts.to_vec(),
            hint: state.hints.iter().find(|hint| hint.entry == at).map(|hint| hint.text.to_string()),
        }
    }

    /// A call of the turn that is not over; none if it was neither made nor refused yet.
    fn open(state: &LoopState, turn: &Turn, call: &Call, driven: bool) -> Option<Self> {
        let first = call.address.index == 0;
        let (call_status, observation, error, duration_ms) = match &call.progress {
            Progress::Done { result: ToolResult::Ok(value), duration_ms } => {
                (None, cut_to(value, OPEN_CHARS).unwrap_or_else(|| value.clone()), None, *duration_ms)
            }
            Progress::Done { result: ToolResult::Failed(fault), duration_ms } => {
                (None, Value::from(fault.observation()), Some(fault.clone()), *duration_ms)
            }
            Progress::Asks(AskedFor::Subrun(_) | AskedFor::Server(_)) => {
                (Some(CallStatus::Waiting), Value::Null, None, 0)
            }
            Progress::Requested | Progress::Uncertain(_) => {
                call.requested_at_ms?;
                let status = match call.progress {
                    Progress::Requested if driven => CallStatus::UnderWay,
                    _ if call.is_subrun => CallStatus::Interrupted,
                    _ => CallStatus::Uncertain,
                };
                (Some(status), Value::Null, None, 0)
            }
            Progress::Asks(_) | Progress::Waits(_) | Progress::Held => return None,
        };
        Some(Self {
            iteration: turn.iteration,
            at_ms: turn.at_ms,
            decided_at_ms: decided_at(state, call.address),
            called_at_ms: call.requested_at_ms,
            index: call.address.index,
            thought: if first { turn.thought.clone() } else { String::new() },
            action: Some(call.name.clone()),
            action_input: Some(Value::clone(&call.input)),
            observation,
            success: call_status.is_none() && error.is_none(),
            duration_ms,
            waited_ms: call.waited_ms,
            usage: turn.usage.filter(|_| first).map(TokenUsage::from),
            run_id: call.run_id.as_deref().map(str::to_owned),
            error,
            call_status,
            attempts: call.attempts.clone(),
            hint: None,
        })
    }
}

/// The most characters of an observation that no model has read yet.
const OPEN_CHARS: usize = 12_000;

fn decided_at(state: &StateHead, call: CallId) -> Option<i64> {
    state.decisions.iter().rev().find(|record| record.call == Some(call)).map(|record| record.at_ms)
}

/// All entries of a run in their order: those of its record, and the calls of the turn that is not over, once one of
/// them was made. `driven`: whether a driver has the run now; if none has, it is not known whether calls without an
/// outcome happened.
pub fn trace(state: &State, driven: bool) -> Vec<TraceEntry> {
    let Some(state) = state.as_loop() else { return Vec::new() };
    let recorded = state.entries.iter().enumerate().map(|(at, entry)| TraceEntry::recorded(state, at, entry));
    // The driver of a run that has ended may still hold its lease for a moment.
    let driven = driven && !matches!(state.phase, Phase::Ended(_));
    let made = |turn: &&Turn| turn.calls.iter().any(|call| call.requested_at_ms.is_some());
    let open = state
        .open_turn()
        .filter(made)
        .into_iter()
        .flat_map(|turn| turn.calls.iter().filter_map(move |call| TraceEntry::open(state, turn, call, driven)));
    recorded.chain(open).collect()
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
    /// The tokens that it counts: what the provider counted all the same, or the most that it may have used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Whether `usage` is the most that it may have used: it was sent, and nobody knows what became of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
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
            at_most: attempt.at_most,
        }
    }
}
