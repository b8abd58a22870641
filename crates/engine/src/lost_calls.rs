//! Calls of a run of which nobody knows whether they happened: whoever made the run as a call must not take its failure for their
//! failure, and make it again.

use super::event::MAY_HAVE_HAPPENED;
use super::flow::progress::{Current, ItemsState, StepFault, StepFrame};
use super::flow::record::StepError;
use super::state::State;

/// Whether a call of a run, or of a run below it, failed and may have happened.
pub fn has_call_that_may_have_happened(state: &State) -> bool {
    let is_lost = |text: &str| text.contains(MAY_HAVE_HAPPENED);
    match state {
        State::Loop(state) => {
            state.entries.iter().filter_map(|entry| entry.error.as_ref()).any(|error| is_lost(&error.class))
        }
        State::Flow(state) => {
            let of_record = |error: &StepError| is_lost(&error.message);
            state.progress.records.iter().filter_map(|record| record.error.as_ref()).any(of_record)
                || in_list(&state.progress.root)
        }
    }
}

/// Loops are at most three deep: the recursion ends.
fn in_list(frame: &StepFrame) -> bool {
    let is_lost = |fault: &StepFault| fault.message.contains(MAY_HAVE_HAPPENED);
    let in_items = |items: &ItemsState| {
        items.faults.values().any(is_lost)
            || items.open.values().chain(items.unfinished.values()).chain(items.partly.values()).any(in_list)
    };
    let is_current = match &frame.current {
        Current::Items(items) => in_items(items),
        Current::Idle | Current::Open(_) => false,
    };
    is_current || frame.fault.as_ref().is_some_and(is_lost) || frame.kept.values().any(|items| in_items(items))
}
