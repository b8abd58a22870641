//! A failed workflow goes on: what failed or was cancelled runs again, and what completed never does.

use super::advanced;
use super::state::{Current, ItemStatus, ItemsState, StepFrame};
use crate::engine::continuation;
use crate::engine::effect::{Effects, Refused};
use crate::engine::event::{LimitsRaised, Retried};
use crate::engine::next::Next;
use crate::engine::outcome::{Ending, Status, Termination};
use crate::engine::state::{Phase, State};
use crate::program::Program;
use crate::program::flow::Flow;

/// A human has the failed steps run again.
///
/// # Errors
/// When no step failed; the state is untouched then.
pub(super) fn retried(program: &Program, flow: &Flow, state: &mut State, retried: Retried) -> Result<Effects, Refused> {
    let Phase::Ended(ending) = &state.phase else {
        return Err(Refused::new("the run has not failed: resume it"));
    };
    may_retry(ending)?;
    let record = continuation::entry(state, retried.by, Some(ending));
    state.continuations.push(record);
    state.phase = Phase::Stepping;
    Ok(advanced(program, flow, state, |_, flow_state| {
        flow_state.rounds = flow_state.rounds.saturating_add(1);
        // The record of the failed step is replaced by that of its next end.
        flow_state.records.pop();
        flow_state.stopping = None;
        revive(&mut flow_state.root);
    }))
}

fn may_retry(ending: &Ending) -> Result<(), Refused> {
    match (ending.status, ending.termination) {
        (Status::Failed, Termination::StepFailed | Termination::Rejected | Termination::FormExpired) => Ok(()),
        (Status::Failed, Termination::Timeout | Termination::Budget) => {
            Err(Refused::new("no step failed: a limit ended the run. Raise it when you resume the run"))
        }
        (Status::Completed, _) => Err(Refused::new(
            "the run has completed: there is nothing to retry. A rerun starts a new run with its input",
        )),
        _ => Err(Refused::new(
            "the run was cancelled, and did not fail: there is nothing to retry. A rerun starts a new run with its input",
        )),
    }
}

/// A human raises the limit that ended the run: it goes on where it was.
///
/// # Errors
/// When another limit ended it, or it would end again at once.
pub(super) fn limits_raised(
    program: &Program,
    flow: &Flow,
    state: &mut State,
    raised: LimitsRaised,
) -> Result<Effects, Refused> {
    let Phase::Ended(ending) = std::mem::take(&mut state.phase) else { return Ok(Effects::new()) };
    if let Next::Refuse { phase, refused } = continuation::raise_ended(program, state, ending, raised) {
        state.phase = phase;
        return Err(refused);
    }
    state.phase = Phase::Stepping;
    Ok(advanced(program, flow, state, |_, flow_state| flow_state.stopping = None))
}

/// Has what failed in a list of steps begin again. Loops are at most three deep: the recursion ends.
fn revive(frame: &mut StepFrame) {
    frame.fault = None;
    if let Current::Items(items) = &mut frame.current {
        revive_items(items);
    }
}

fn revive_items(items: &mut ItemsState) {
    items.stopped = false;
    items.over = None;
    items.faults.clear();
    items.ended.retain(|_, status| matches!(status, ItemStatus::Completed | ItemStatus::Skipped));
    (items.counts.failed, items.counts.cancelled) = (0, 0);
    for (index, mut frame) in std::mem::take(&mut items.unfinished) {
        revive(&mut frame);
        items.again.insert(index, frame);
    }
}
