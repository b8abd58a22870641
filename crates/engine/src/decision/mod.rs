//! Checks that apply to every decision, about the run's own pause or that of a sub-run.

pub mod approval;
pub mod awaited_approval;
pub mod consent;
pub mod decision_record;
pub(crate) mod expiry;
pub mod form;
pub(crate) mod human;
pub(crate) mod subrun_decision;
pub mod written_decision;

use super::effect::Refused;
use super::event::Decision;
use super::outcome::Termination;

/// What is known of a call of which a human says that it failed.
pub fn reported_failure(reason: &str) -> String {
    format!("a human says that the call failed: {reason}")
}

/// Whether a decision is of the kind that a pause waits for.
pub fn takes(kind: Termination, decision: &Decision) -> bool {
    is_of_kind(kind, decision).is_ok()
}

/// Checks that a decision is of the kind that a pause waits for.
///
/// # Errors
/// Why it is not, and which kinds are.
pub(super) fn is_of_kind(kind: Termination, decision: &Decision) -> Result<(), Refused> {
    match (kind, decision) {
        (Termination::Human | Termination::Stuck, Decision::Answer(_))
        | (Termination::Approval, Decision::Approve | Decision::Deny(_) | Decision::Edit(_))
        | (Termination::Uncertain, Decision::Retry | Decision::Happened(_) | Decision::Failed(_))
        | (Termination::Waiting, Decision::Approve)
        | (Termination::WaitingEvent, Decision::Answer(_) | Decision::Deny(_))
        | (Termination::ModelError | Termination::SpendingLimit, Decision::Retry) => Ok(()),
        (Termination::Human | Termination::Stuck, _) => Err(Refused::new("the run waits for an answer")),
        (Termination::Approval, _) => Err(Refused::new("the run waits for an approval: approve, deny or edit")),
        (Termination::Uncertain, _) => {
            let why = "the run waits to hear whether a call happened: say what it gave, that it failed, or repeat it";
            Err(Refused::new(why))
        }
        (Termination::Waiting, _) => Err(Refused::new("the step waits for a time: approve ends the wait")),
        (Termination::WaitingEvent, _) => {
            Err(Refused::new("the step waits for an event: an answer is its data as JSON, and deny fails the step"))
        }
        (Termination::ModelError, _) => Err(Refused::new("the run waits for its model: retry")),
        (Termination::SpendingLimit, _) => Err(Refused::new("the run waits for room in a spending limit: retry")),
        _ => Err(Refused::NotAsked),
    }
}
