//! What a run does next, as far as it can differ between two documents: the calls of its last turn, and where it is.

use serde_json::Value;

use crate::event::{ToolFault, ToolResult};
use crate::operation::{AskedFor, Progress};
use crate::outcome::{Limit, Status, Termination};
use crate::state::{Phase, State, StateHead};
use crate::stuck::Stuck;

/// A call that a model asked for, or the step of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedCall {
    /// The iteration; 0 in a workflow.
    pub iteration: u32,
    /// The address of the step, in a workflow.
    pub at: Option<String>,
    /// The tool; none for a reply that could not be read.
    pub action: Option<String>,
    /// Its input.
    pub input: Value,
    /// Whether it is made.
    pub fate: CallFate,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallFate {
    /// It is made, or it is a built-in tool that did what was asked.
    Made,
    /// It waits for a human to approve it.
    AwaitsApproval,
    /// It is not made; why, for people.
    Refused(String),
}

/// Where a run is after an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Position {
    /// The model is asked; with a limit, for its last answer.
    AsksModel(Option<Limit>),
    /// The model is asked for a summary.
    AsksSummary,
    /// Calls or steps are under way.
    Calls,
    /// It waits for a human.
    Waits(Termination),
    /// It has ended.
    Ended(RunEnd),
}

/// How a run ended, as far as two runs are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// Completed, failed or cancelled.
    pub status: Status,
    /// Why.
    pub termination: Termination,
    /// The limit.
    pub limit: Option<Limit>,
    /// The pattern.
    pub stuck: Option<Stuck>,
    /// The answer.
    pub answer: Option<Value>,
}

/// Where a run is.
pub fn position(state: &StateHead) -> Position {
    match &state.phase {
        Phase::Thinking { forced } => Position::AsksModel(*forced),
        Phase::Summarizing { .. } => Position::AsksSummary,
        Phase::New | Phase::Acting { .. } | Phase::Stepping => Position::Calls,
        Phase::Paused { pause, .. } => Position::Waits(pause.question.kind),
        Phase::Ended(ending) => Position::Ended(RunEnd {
            status: ending.status,
            termination: ending.termination,
            limit: ending.limit,
            stuck: ending.stuck.clone(),
            answer: ending.answer.as_ref().map(|answer| answer.answer.clone()),
        }),
    }
}

/// The calls after the first `known` entries of the trace: those that ended, and those of the turn that is under way. In a
/// workflow, the steps that are open.
pub fn calls(state: &State, known: usize) -> Vec<AskedCall> {
    let ended = state.entries().iter().skip(known).map(|entry| AskedCall {
        iteration: entry.iteration,
        at: None,
        action: entry.action.as_deref().map(str::to_owned),
        input: if entry.action.is_some() { entry.action_input.value() } else { Value::Null },
        fate: match &entry.error {
            // A call that was made and failed was made.
            Some(fault) if entry.called_at_ms.is_none() => CallFate::Refused(reason(fault)),
            _ => CallFate::Made,
        },
    });
    let open = state.open_turn().map(|turn| turn.calls.as_slice()).unwrap_or_default();
    let open = open.iter().map(|call| AskedCall {
        iteration: call.address.iteration,
        at: None,
        action: Some(call.name.clone()),
        input: Value::clone(&call.input),
        fate: match &call.progress {
            Progress::Asks(AskedFor::Approval(_)) => CallFate::AwaitsApproval,
            Progress::Done { result: ToolResult::Failed(fault), .. } if call.requested_at_ms.is_none() => {
                CallFate::Refused(reason(fault))
            }
            _ => CallFate::Made,
        },
    });
    let steps = state.open_steps().into_iter().map(|step| AskedCall {
        iteration: 0,
        at: Some(step.address.to_string()),
        action: Some(step.name.clone()),
        input: serde_json::Value::clone(&step.input),
        fate: if step.progress.is_approval() { CallFate::AwaitsApproval } else { CallFate::Made },
    });
    ended.chain(open).chain(steps).collect()
}

fn reason(fault: &ToolFault) -> String {
    if fault.detail.is_empty() { fault.class.clone() } else { fault.detail.clone() }
}
