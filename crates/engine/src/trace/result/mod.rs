//! The result of a run: what `--output json` prints and the API answers. What does not apply is left
//! out.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::continuation::hidden_continuation;
use super::decision::decisions;
use super::entries::{attempts, entries, hidden_question, hidden_stuck, shown_call};
use super::question_post::posts;
use super::redact::Redaction;
use super::steps::{shown_question, steps};
use super::units::rfc3339;
use crate::continuation_record::ContinuationRecord;
use crate::decision::decision_record::DecisionRecord;
use crate::event::{ForkPoint, WebhookDelivery};
use crate::flow::record::StepRecord;
use crate::flow::waiting_steps;
use crate::operation::Progress;
use crate::outcome::{Answer, Ending, Limit, Pause, RunError, Status, Termination};
use crate::question::{Question, StepQuestion, WaitingCall};
use crate::question_post::QuestionPost;
use crate::record::{TokenDetails, TraceAttempt, TraceEntry};
use crate::state::{Phase, State};
use crate::stuck::Stuck;
use crate::waiting_calls::waiting_calls;

/// A run's result, or how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunResult {
    /// The run's id.
    pub run_id: String,
    /// The earlier run whose account it received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_run_id: Option<String>,
    /// The earlier run whose input it has, when it is a rerun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<String>,
    /// The delivery that started it, when a webhook did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookDelivery>,
    /// The run whose first steps it begins with, when it is a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<ForkPoint>,
    /// The run that started it without waiting for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    /// Where the run is.
    pub status: Status,
    /// Why it ended or stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    /// The limit that a forced answer came of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// The pattern that a failed run was stuck in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// The context key that the answer is kept under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_key: Option<String>,
    /// What the run answered. It is the author's own answer: nothing in it is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Answer>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Who cancelled it: the name of a token, or a user of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseView>,
    /// The steps of a workflow that wait for a human while others are under way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<StepQuestion>,
    /// Replies read so far.
    pub iterations: u32,
    /// Tokens and cost.
    pub usage: Usage,
    /// What was counted.
    pub metadata: Metadata,
    /// What the model thought last, when there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_thought: Option<String>,
    /// What the agent kept, when there is no answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<String, Value>,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// When it ended, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<TraceEntry>>,
    /// The steps of a workflow that began or were skipped, in their order. Those of items are not among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// What humans decided, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionRecord>,
    /// To whom its questions were posted, in the order of their places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<QuestionPost>,
    /// How humans made it continue after an end, and the limits that they raised, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub continuations: Vec<ContinuationRecord>,
    /// The failed attempts at asking the model; with the trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<TraceAttempt>,
}

/// What a paused run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PauseView {
    /// The pause's number, from 1, as `resume --pause` takes it.
    pub number: u32,
    /// What it asks.
    #[serde(flatten)]
    pub question: Question,
    /// The call that waits, the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<WaitingCall>,
    /// All calls that wait, when there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<WaitingCall>,
    /// The steps of a workflow that wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepQuestion>,
}

/// Tokens and cost of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// Those that the model read.
    pub input_tokens: u64,
    /// Those that it wrote.
    pub output_tokens: u64,
    /// What of them was cached or reasoning.
    #[serde(flatten)]
    pub details: TokenDetails,
    /// US dollars, when the model's price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Whether tokens were estimated because the provider did not say; left out when none were.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Whether some of the tokens are the most that was used: nobody knows what became of a request that was sent; left out when
    /// none are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
}

impl Usage {
    /// The words before a figure that is not exact.
    pub(crate) fn about(&self) -> &'static str {
        match (self.at_most, self.estimated) {
            (true, _) => "at most ",
            (false, true) => "about ",
            (false, false) => "",
        }
    }
}

/// What was counted in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Metadata {
    /// Replies read, readable or not.
    pub rounds: u32,
    /// Tool calls made.
    pub tool_calls_made: u32,
    /// Replies that could not be read.
    pub invalid_replies: u32,
    /// Replies that `max_tokens` cut off.
    pub truncated_responses: u32,
    /// Observations that were cut.
    pub truncated_observations: u32,
    /// Messages that the history lost.
    pub messages_trimmed: u32,
    /// Summaries of them that were cut off; left out when none was.
    #[serde(skip_serializing_if = "is_zero")]
    pub notes_cut_off: u32,
    /// How often there was no summary of them, though one was asked for; left out when there always was one.
    #[serde(skip_serializing_if = "is_zero")]
    pub notes_missing: u32,
    /// Model calls that failed and were made again.
    pub model_retries: u32,
    /// Attempts at tool calls that failed and were made again; left out when there was none.
    #[serde(skip_serializing_if = "is_zero")]
    pub tool_retries: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What the author wants to be shown of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown<'a> {
    /// `result_key`: the context key that the answer is kept under.
    pub result_key: Option<&'a str>,
    /// `include_reasoning_trace`: whether the trace is in the result.
    pub trace: bool,
    /// Whether a driver has the run now.
    pub driven: bool,
    /// Whether it is set aside, because processes died of it.
    pub is_quarantined: bool,
}

/// The result of a run, from its state.
pub fn result(shown: Shown<'_>, state: &State, redact: &Redaction) -> RunResult {
    let (ending, pause) = match &state.phase {
        Phase::Ended(ending) => (Some(&**ending), None),
        Phase::Paused { pause, .. } => (None, Some(&**pause)),
        Phase::New | Phase::Thinking { .. } | Phase::Summarizing { .. } | Phase::Acting { .. } | Phase::Stepping => {
            (None, None)
        }
    };
    let is_set_aside = shown.is_quarantined && state.status() == Status::Running;
    let status = if is_set_aside { Status::Quarantined } else { state.status() };
    let open = status != Status::Completed;
    RunResult {
        run_id: state.header.run_id.clone(),
        previous_run_id: state.header.previous_run_id.as_deref().map(str::to_owned),
        rerun_of: state.header.rerun_of.as_deref().map(str::to_owned),
        webhook: state.header.delivery.as_deref().cloned(),
        fork_of: state.header.fork.clone(),
        started_by: state.header.started_by.as_deref().map(str::to_owned),
        status,
        termination: termination(ending, pause, state.interrupted),
        limit: ending.and_then(|ending| ending.limit),
        stuck: ending.and_then(|ending| ending.stuck.as_ref()).map(|stuck| hidden_stuck(stuck, redact)),
        result_key: shown.result_key.map(str::to_owned),
        result: ending.and_then(|ending| ending.answer.clone()),
        error: if is_set_aside { Some(set_aside(state)) } else { error(ending, state, redact) },
        cancelled_by: ending.and_then(|ending| ending.cancelled_by.as_deref()).map(|by| redact.text(by).into_owned()),
        pause: pause.map(|pause| waiting(pause, state, redact)),
        waiting: if matches!(state.phase, Phase::Stepping) { shown_questions(state, redact) } else { Vec::new() },
        iterations: state.counters.iterations,
        usage: usage(state),
        metadata: metadata(state),
        last_thought: open.then(|| last_thought(state, redact)).flatten(),
        memory: if open { memory(state, redact) } else { BTreeMap::new() },
        started_at: rfc3339(state.header.at_ms),
        finished_at: ending.map(|ending| rfc3339(ending.at_ms)),
        trace: shown.trace.then(|| entries(state, shown.driven, redact)),
        steps: steps(state, shown.driven, redact),
        decisions: decisions(&state.decisions, redact),
        asked: posts(&state.posts, redact),
        continuations: state.continuations.iter().map(|record| hidden_continuation(record, redact)).collect(),
        attempts: if shown.trace { attempts(state, redact) } else { Vec::new() },
    }
}

fn termination(ending: Option<&Ending>, pause: Option<&Pause>, interrupted: bool) -> Option<Termination> {
    match (ending, pause) {
        (Some(ending), _) => Some(ending.termination),
        (None, _) if interrupted => Some(Termination::Cancelled),
        (None, Some(pause)) => Some(pause.question.kind),
        (None, None) => None,
    }
}

fn error(ending: Option<&Ending>, state: &State, redact: &Redaction) -> Option<RunError> {
    if ending.is_none() && state.interrupted {
        return Some(RunError {
            code: "interrupted".to_owned(),
            message: format!("the run was stopped {} and can be resumed", redact.text(&stopped_at(state))),
            retryable: true,
            step: None,
        });
    }
    let error = ending?.error.as_ref()?;
    Some(RunError { message: redact.text(&error.message).into_owned(), ..error.clone() })
}

/// Why a run is quarantined.
fn set_aside(state: &State) -> RunError {
    let doing = match &state.phase {
        Phase::Acting { .. } => stopped_at(state),
        Phase::Stepping => "in a step".to_owned(),
        _ => "between two steps".to_owned(),
    };
    RunError {
        code: "quarantined".to_owned(),
        message: format!(
            "the processes that executed it died again and again, the last one while it executed this run alone ({doing}): no \
             server takes it up. Find out what ends the process, then resume the run"
        ),
        retryable: true,
        step: None,
    }
}

/// Where a run was stopped: a stop after the step waits for the calls of the turn, an immediate one does not.
fn stopped_at(state: &State) -> String {
    let Phase::Acting { turn } = &state.phase else { return "between two steps".to_owned() };
    let asked = turn.calls.iter().filter(|call| matches!(call.progress, Progress::Requested));
    let names: Vec<&str> = asked.map(|call| call.name.as_str()).collect();
    if names.is_empty() { "between two steps".to_owned() } else { format!("while it called {}", names.join(", ")) }
}

/// What a run waits for; none when it does not wait.
pub fn pause(state: &State, redact: &Redaction) -> Option<PauseView> {
    match &state.phase {
        Phase::Paused { pause, .. } if state.status() == Status::Paused => Some(waiting(pause, state, redact)),
        _ => None,
    }
}

fn waiting(pause: &Pause, state: &State, redact: &Redaction) -> PauseView {
    let mut calls: Vec<WaitingCall> = waiting_calls(state).into_iter().map(|call| shown_call(call, redact)).collect();
    let first = calls.first().cloned();
    if calls.len() < 2 {
        calls.clear();
    }
    let steps = shown_questions(state, redact);
    let question = hidden_question(pause.question.clone(), redact);
    PauseView { number: pause.number, question, call: first, calls, steps }
}

fn shown_questions(state: &State, redact: &Redaction) -> Vec<StepQuestion> {
    waiting_steps(state).into_iter().map(|question| shown_question(question, redact)).collect()
}

fn usage(state: &State) -> Usage {
    Usage {
        input_tokens: state.counters.tokens.input,
        output_tokens: state.counters.tokens.output,
        details: state.counters.tokens.into(),
        // Every price is above a billionth of a dollar; smaller digits are noise of the binary fraction.
        cost_usd: state.cost_usd().map(|cost| (cost * 1e9).round() / 1e9),
        estimated: state.counters.estimated,
        at_most: state.counters.at_most,
    }
}

fn metadata(state: &State) -> Metadata {
    let tally = &state.counters;
    Metadata {
        rounds: tally.iterations,
        tool_calls_made: tally.tool_calls_made,
        invalid_replies: tally.invalid_replies,
        truncated_responses: tally.truncated_responses,
        truncated_observations: tally.truncated_observations,
        messages_trimmed: tally.messages_trimmed,
        notes_cut_off: tally.notes.cut_off,
        notes_missing: tally.notes.missing,
        model_retries: tally.model_retries,
        tool_retries: tally.tool_retries.values().copied().fold(0, u32::saturating_add),
    }
}

fn last_thought(state: &State, redact: &Redaction) -> Option<String> {
    let under_way = match &state.phase {
        Phase::Acting { turn } | Phase::Paused { turn: Some(turn), .. } => Some(turn.thought.as_str()),
        _ => None,
    };
    let thought = under_way
        .into_iter()
        .chain(state.entries().iter().rev().map(|entry| &*entry.thought))
        .find(|thought| !thought.is_empty())?;
    Some(redact.text(thought).into_owned())
}

fn memory(state: &State, redact: &Redaction) -> BTreeMap<String, Value> {
    let hide = |(key, value): (&String, &Value)| {
        let shown = if redact.hides(key, value) {
            Value::String(super::redact::HIDDEN.to_owned())
        } else {
            redact.value(value)
        };
        (key.clone(), shown)
    };
    state.as_loop().map(|state| state.memory.iter().map(hide).collect()).unwrap_or_default()
}
