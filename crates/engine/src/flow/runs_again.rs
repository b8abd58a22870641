//! The runs of steps that continue when a run continues that had ended.

use super::progress::{Current, StepFrame};
use crate::address::StepAddress;
use crate::operation::subrun_id;
use crate::state::State;

/// A run of a step that had ended and continues with its caller.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAgain {
    /// The address of the step.
    pub at: StepAddress,
    /// The id of the run.
    pub run_id: String,
}

/// The runs below a run that has ended which continue with it: those that failed, or completed in part, of steps that run again. Those of
/// the steps for a failure do not.
pub fn runs_again(state: &State) -> Vec<RunAgain> {
    let Some(state) = state.as_flow() else { return Vec::new() };
    let failed = state.progress.outages.iter().map(|(at, failed)| (at.clone(), failed.round));
    let mut of_steps: Vec<(String, u32)> = failed.collect();
    kept_runs(&state.progress.root, &mut of_steps);
    let again = of_steps.into_iter().map(|(at, round)| {
        let at = StepAddress::new(&at);
        let run_id = subrun_id(&state.header.run_id, &at, round);
        RunAgain { at, run_id }
    });
    again.filter(|run| !run.at.is_for_failure()).collect()
}

/// The steps in a list whose runs completed in part. Loops are at most three deep: the recursion ends.
fn kept_runs(frame: &StepFrame, runs: &mut Vec<(String, u32)>) {
    runs.extend(frame.kept_runs.values().map(|kept| (kept.at.clone(), kept.run.round)));
    let present = match &frame.current {
        Current::Items(items) => Some(items),
        _ => None,
    };
    for items in present.into_iter().chain(frame.kept.values()) {
        let frames = items.unfinished.values().chain(items.partly.values()).chain(items.open.values());
        frames.for_each(|frame| kept_runs(frame, runs));
    }
}
