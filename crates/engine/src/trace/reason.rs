//! Why a run ended or stopped, in words.

use super::result::Metadata;
use crate::outcome::Termination;

/// What is wrong with the notes of the history, in a sentence.
pub(super) fn notes_sentence(metadata: &Metadata) -> Option<String> {
    let parts = [(metadata.notes_cut_off, "cut off"), (metadata.notes_missing, "missing")];
    let known: Vec<String> =
        parts.iter().filter(|(times, _)| *times > 0).map(|(times, what)| format!("{times} {what}")).collect();
    (!known.is_empty()).then(|| format!("notes of the trimmed history: {}", known.join(", ")))
}

/// Why a run ended or stopped, in words.
pub fn reason(termination: Termination) -> &'static str {
    match termination {
        Termination::Complete => "complete",
        Termination::ForcedAnswer => "a limit was reached, and the answer was forced",
        Termination::MaxIterations => "the iterations are spent",
        Termination::Timeout => "the time is spent",
        Termination::Context => "the model's window is full",
        Termination::Budget => "the budget is spent",
        Termination::SpendingLimit => "a spending limit of the project is reached",
        Termination::Stuck => "the agent is stuck",
        Termination::ModelError => "the model could not be asked, or refused",
        Termination::InvalidReplies => "the model's replies could not be used",
        Termination::Human => "a question for a human",
        Termination::Approval => "a call needs approval",
        Termination::Uncertain => "a call of unknown outcome",
        Termination::Waiting => "a step waits for a time",
        Termination::WaitingEvent => "a step waits for an event",
        Termination::Cancelled => "cancelled",
        Termination::StepFailed => "a step failed",
        Termination::Rejected => "a human did not approve",
        Termination::FormExpired => "a form was not filled in in time",
        Termination::ConditionNotMet => "its condition does not hold, and nothing ran",
    }
}
