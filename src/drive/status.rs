//! A run's row in lists, made from its state.

use crate::engine::due::{due_at_ms, waits_beside_since_ms};
use crate::engine::event::Cancelled;
use crate::engine::outcome::Status;
use crate::engine::state::{Phase, State};
use crate::journal::StatusRecord;

/// The record of a state for lists.
pub(super) fn status_record(state: &State) -> StatusRecord {
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
    }
}

/// A line of the log for a run that was cancelled, by whichever process that was asked for. Without the reason: what a project
/// hides in its traces is not known here.
pub(super) fn log_cancelled(run_id: &str, cancelled: &Cancelled) {
    tracing::info!(run_id, by = cancelled.by.as_deref(), "cancelled");
}
