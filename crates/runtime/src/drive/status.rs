//! A run's row in lists, made from its state.

use std::borrow::Cow;

use super::outside_events::awaited;
use super::search_text::DescribedRun;
use crate::journal::outside_event::awaits_column;
use crate::journal::{Journal, RowCompletion, RowText, RunSummary, StatusRecord};
use loopctl_engine::event::Tokens;
use loopctl_engine::flow::first_question;
use loopctl_engine::outcome::{Status, Termination};
use loopctl_engine::state::{Phase, State};
use loopctl_engine::wait_deadline::{away_model, due_at_ms, missing_room, waits_beside_since_ms};
use loopctl_lang::policy::redact::Redaction;
use loopctl_lang::program::Program;

/// The record of a state for lists.
pub(super) fn status_record(program: &Program, state: &State) -> StatusRecord {
    // What a fork copied was spent by the run that it was copied from.
    let copied = state.header.copied;
    let tokens = state.counters.tokens.minus(copied.tokens);
    StatusRecord {
        status: state.status(),
        termination: match &state.phase {
            Phase::Ended(ending) => Some(ending.termination),
            // A run that was stopped by a signal has not ended: lists distinguish it from a cancelled one.
            _ if state.interrupted => None,
            Phase::Paused { pause, .. } => Some(pause.question.kind),
            _ => None,
        },
        iterations: state.counters.iterations,
        at_ms: state.now.wall_ms,
        due_at_ms: due_at_ms(state),
        waits_since_ms: waits_beside_since_ms(state).filter(|_| state.status() == Status::Running),
        tokens: Some(tokens.input.saturating_add(tokens.output)),
        cost_usd: state.cost_usd().map(|cost_usd| (cost_usd - copied.cost_usd).max(0.0)),
        error: error(state).and_then(|text| shown(program, &text)),
        question: question(state).and_then(|text| shown(program, &text)),
        awaits: awaits_column(&awaited(state)),
    }
}

/// What of the record changes while a run is under way: what a reply, or the end of a step, adds.
pub(super) fn progress(state: &State) -> (u32, Tokens, Option<f64>) {
    (state.counters.iterations, state.counters.tokens, state.cost_usd())
}

/// Why a run failed, or why its model can't be reached. Beside a question for a human also why there is no room in a spending limit: by it,
/// the store knows that the run waits for its model as well.
fn error(state: &State) -> Option<Cow<'_, str>> {
    match &state.phase {
        Phase::Ended(ending) => ending.error.as_ref().map(|error| error.message.as_str().into()),
        Phase::Paused { pause, .. } if pause.question.kind == Termination::ModelError => {
            Some(pause.question.text.as_str().into())
        }
        Phase::Paused { pause, .. } if !pause.question.kind.needs_no_human() => {
            away_model(state).map(Cow::from).or_else(|| missing_room(state).map(Cow::from))
        }
        _ => None,
    }
}

/// The first question that waits for a human.
fn question(state: &State) -> Option<String> {
    match &state.phase {
        _ if state.interrupted => None,
        // None asks a human; what lacks room beside them is asked again when a limit is raised.
        Phase::Paused { pause, .. } if pause.question.kind == Termination::ModelError => missing_room(state),
        Phase::Paused { pause, .. } => first_question(state).or_else(|| Some(pause.question.text.clone())),
        Phase::Stepping => first_question(state),
        _ => None,
    }
}

/// A text as a row shows it. Who lists runs may not know the project of each.
fn shown(program: &Program, text: &str) -> Option<RowText> {
    RowText::new(&Redaction::new(&program.project.redact).text(text))
}

/// Completes the row of a run that an older version wrote, by the state that its events come to.
pub async fn complete_row(journal: &dyn Journal, run: &RunSummary, program: &Program, state: &State) {
    if run.is_complete || run.damaged.is_some() {
        return;
    }
    let DescribedRun { search_text, title } = DescribedRun::of(program, &state.header);
    let record = status_record(program, state);
    let completed = journal.complete_row(&run.run_id, RowCompletion { record, search_text, title });
    if let Err(fault) = completed.await {
        // The next reader tries again.
        tracing::debug!(run_id = run.run_id, "the row of the run stays as it is: {fault}");
    }
}
