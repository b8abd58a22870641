//! The lines of the log about a run and its sub-runs: that it started, paused, was decided about, continued, was cancelled
//! and ended. They follow the journal: a line is written once the event is durable.

use std::fmt::Display;

use crate::drive::model::RetriedAttempt;
use loopctl_engine::continuation_record::ContinuationRecord;
use loopctl_engine::decision::decision_record::DecisionRecord;
use loopctl_engine::event::{Cancelled, EventKind, ToolFault};
use loopctl_engine::outcome::{Ending, Status};
use loopctl_engine::state::{Phase, RunHeader, State};
use loopctl_lang::policy::redact::Redaction;
use loopctl_lang::policy::word::written;
use loopctl_lang::program::Program;
use tracing::level_filters::LevelFilter;

/// What a state had before an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoggedState {
    decisions: usize,
    continuations: usize,
    pauses: u32,
    had_ended: bool,
}

/// What an event did to a run that the log has a line about.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoggedChange {
    before: LoggedState,
    is_interruption: bool,
}

impl LoggedState {
    /// That of this state; none while nobody reads such lines.
    pub fn of(state: &State) -> Option<Self> {
        // Not `tracing::enabled!`: a subscriber with a filter for each layer would take its answer for that about the next line.
        (LevelFilter::current() >= LevelFilter::INFO).then(|| Self {
            decisions: state.decisions.len(),
            continuations: state.continuations.len(),
            pauses: state.pauses,
            had_ended: matches!(state.phase, Phase::Ended(_)),
        })
    }

    /// What an event did to a run, as its state is after it; none for nearly all events.
    pub fn changed(self, state: &State, is_interruption: bool) -> Option<LoggedChange> {
        let is_logged = is_interruption
            || state.decisions.len() > self.decisions
            || state.continuations.len() > self.continuations
            || state.pauses > self.pauses
            || matches!(state.phase, Phase::Ended(_)) && !self.had_ended;
        is_logged.then_some(LoggedChange { before: self, is_interruption })
    }
}

/// Whether an event only leaves a run, so that it can be resumed.
pub(super) fn is_interruption(what: &EventKind) -> bool {
    matches!(what, EventKind::Interrupted)
}

/// A line for a run that started.
pub(super) fn started(state: &State) {
    let header = &state.header;
    let called_by = header.caller.as_ref().map(|caller| caller.run_id.as_str());
    let (run_id, rerun_of) = (header.run_id.as_str(), header.rerun_of.as_deref());
    tracing::info!(run_id, "loop" = header.loop_name, called_by, rerun_of, "started");
}

/// The lines for a run that started: its first event may end it, or leave it waiting.
pub(in crate::drive) fn first_event(program: &Program, state: &State) {
    started(state);
    let before = LoggedState { decisions: 0, continuations: 0, pauses: 0, had_ended: false };
    if state.header.fork.is_none()
        && let Some(change) = before.changed(state, false)
    {
        changed(change, program, state);
    }
}

/// The lines for what an event did to a run.
pub(super) fn changed(change: LoggedChange, program: &Program, state: &State) {
    let LoggedChange { before, is_interruption } = change;
    state.decisions.iter().skip(before.decisions).for_each(|decision| decided(state, decision));
    state.continuations.iter().skip(before.continuations).for_each(|continuation| continued(state, continuation));
    let (run_id, loop_name) = (state.header.run_id.as_str(), state.header.loop_name.as_str());
    match &state.phase {
        Phase::Ended(ending) if !before.had_ended => ended(program, state, ending),
        Phase::Paused { pause, .. } if state.pauses > before.pauses => {
            let kind = written(&pause.question.kind).unwrap_or_default();
            tracing::info!(run_id, "loop" = loop_name, pause = pause.number, kind, "paused");
        }
        _ if is_interruption => tracing::info!(run_id, "loop" = loop_name, "interrupted; it can be resumed"),
        _ => {}
    }
}

fn decided(state: &State, decision: &DecisionRecord) {
    let header = &state.header;
    let (run_id, at, by) = (header.run_id.as_str(), decision.step.as_deref(), decision.by.as_deref());
    let call = decision.call.map(|call| call.to_string());
    let word = decision.decision.word();
    tracing::info!(run_id, "loop" = header.loop_name, at, call, decision = word, by, "decided");
}

fn continued(state: &State, continuation: &ContinuationRecord) {
    let header = &state.header;
    let (run_id, by) = (header.run_id.as_str(), continuation.by.as_deref());
    match continuation.limits {
        None => tracing::info!(run_id, "loop" = header.loop_name, by, "retried"),
        Some(_) => tracing::info!(run_id, "loop" = header.loop_name, by, "its limits were raised"),
    }
}

/// A line for a run that ended: a warning if it failed.
fn ended(program: &Program, state: &State, ending: &Ending) {
    let header = &state.header;
    let (run_id, loop_name) = (header.run_id.as_str(), header.loop_name.as_str());
    let (status, termination) = (ending.status.word(), written(&ending.termination).unwrap_or_default());
    let (iterations, cost_usd) = (state.counters.iterations, state.cost_usd());
    let tokens = state.counters.tokens.input.saturating_add(state.counters.tokens.output);
    let active_ms = state.now.active_ms;
    match ending.error.as_ref().filter(|_| ending.status == Status::Failed) {
        Some(error) => {
            let redact = Redaction::new(&program.project.redact);
            let (code, step) = (error.code.as_str(), error.step.as_deref());
            tracing::warn!(
                run_id,
                "loop" = loop_name,
                status,
                termination,
                code,
                step,
                iterations,
                tokens,
                cost_usd,
                active_ms,
                "the run failed: {}",
                redact.text(&error.message)
            );
        }
        // `cancelled` says who did that.
        None if ending.status == Status::Cancelled => {}
        None => tracing::info!(
            run_id,
            "loop" = loop_name,
            status,
            termination,
            iterations,
            tokens,
            cost_usd,
            active_ms,
            "ended"
        ),
    }
}

/// A line for a run that was cancelled, by whichever process that was asked for. Without the reason: it is in the trace.
pub(in crate::drive) fn cancelled(state: &State, cancelled: &Cancelled) {
    let (run_id, loop_name) = (state.header.run_id.as_str(), state.header.loop_name.as_str());
    let termination = match &state.phase {
        Phase::Ended(ending) => written(&ending.termination),
        _ => None,
    };
    tracing::info!(run_id, "loop" = loop_name, by = cancelled.by.as_deref(), termination, "cancelled");
}

/// An attempt at a call that failed, and after which the call is made again.
pub(in crate::drive) struct RepeatedCall<'a> {
    pub run_id: &'a str,
    pub loop_name: &'a str,
    /// The tool.
    pub action: &'a str,
    /// The address of the call, or of the step.
    pub at: &'a dyn Display,
    pub attempt: u32,
    pub error: &'a ToolFault,
    pub delay_ms: u64,
}

impl RepeatedCall<'_> {
    /// A line for it. Of the failure its kind alone: the rest is what the tool answered.
    pub fn log(&self) {
        let Self { run_id, loop_name, action, at, attempt, error, delay_ms } = *self;
        tracing::warn!(
            run_id,
            "loop" = loop_name,
            action,
            at = tracing::field::display(at),
            attempt,
            delay_ms,
            "the call failed and is made again: {}",
            error.class
        );
    }
}

/// A line for a model that failed and is asked again. Of the failure its kind alone: the rest is what the provider answered.
pub(super) fn model_failed(run: &RunHeader, model: &str, attempt: &RetriedAttempt) {
    let RetriedAttempt { number, class, delay_ms, .. } = attempt;
    tracing::warn!(
        run_id = run.run_id,
        "loop" = run.loop_name,
        model,
        attempt = number,
        delay_ms,
        "the model failed and is asked again: {class}"
    );
}
