//! A failed workflow continues: what failed or was cancelled runs again, and what completed never does.

use super::advanced;
use super::progress::{Current, FlowProgress, ItemStatus, ItemsState, StepFrame};
use super::record::{StepRecord, StepStatus};
use super::resume;
use crate::continuation;
use crate::continuation_record::ContinuationRecord;
use crate::effect::{Effects, Refused};
use crate::event::{FailedParts, LimitsRaised, Retried};
use crate::outcome::{Ending, Status, Termination};
use crate::state::{FlowState, Phase};
use loopctl_lang::program::flow::{FlowProgram, ON_FAILURE};

/// A human has the failed steps run again.
///
/// # Errors
/// When no step failed; the state is untouched then.
pub(super) fn retried(program: &FlowProgram, state: &mut FlowState, retried: Retried) -> Result<Effects, Refused> {
    let Phase::Ended(ending) = &state.phase else {
        return Err(Refused::new("the run has not failed: resume it"));
    };
    let completed = ending.status == Status::Completed;
    let has_failed_items = state.progress.root.has_kept();
    if !(completed && (has_failed_items || retried.anew)) {
        may_retry(ending)?;
    }
    let Retried { by, changed, .. } = retried;
    let record = continuation::entry(state, by, Some(ending));
    state.continuations.push(record);
    if completed && !has_failed_items {
        // By its new document, the run has nothing left to do.
        return Ok(Effects::new());
    }
    state.phase = Phase::Stepping;
    Ok(advanced(program, state, |advance, progress| {
        progress.rounds = progress.rounds.saturating_add(1);
        change(progress, &changed);
        progress.stopping = None;
        if completed {
            revive_ended(&mut progress.root, advance.now.active_ms);
        } else {
            forget_failure(progress);
            revive(&mut progress.root);
        }
    }))
}

/// A human has a run that waits for a model, or for room in a spending limit, ask it again.
///
/// # Errors
/// When no step of it does; the state is untouched then.
pub(super) fn retried_paused(
    program: &FlowProgram,
    state: &mut FlowState,
    retried: Retried,
) -> Result<Effects, Refused> {
    if !state.progress.open().iter().any(|open| open.progress.waits_for_model()) {
        return Err(Refused::new(continuation::WAITS_FOR_A_HUMAN));
    }
    let error = match &state.phase {
        Phase::Paused { pause, .. } => Some(pause.question.text.clone()),
        _ => None,
    };
    let record = ContinuationRecord { error, ..continuation::entry(state, retried.by, None) };
    state.continuations.push(record);
    Ok(resume::models_asked(program, state))
}

/// A human has the run continue with a document by which it has not ended: nothing that is under way by it was requested.
pub(super) fn anew(program: &FlowProgram, state: &mut FlowState, retried: Retried) -> Effects {
    let Retried { by, changed, failed, .. } = retried;
    let record = continuation::entry(state, by, None);
    state.continuations.push(record);
    resume::left(state);
    advanced(program, state, |advance, progress| {
        progress.stopping = None;
        change(progress, &changed);
        let Some(failed) = failed else { return };
        progress.rounds = progress.rounds.saturating_add(1);
        if progress.root.is_handling() {
            forget_failure(progress);
        }
        reopen(&mut progress.root, &failed, advance.now.active_ms);
    })
}

/// The addresses of the loops in a list that run again when it is retried: those that failed, or of a list that has completed, those
/// with failed items. Loops are at most three deep: the recursion ends.
pub(super) fn failed_loops(frame: &StepFrame, loops: &mut Vec<String>) {
    let current = frame.failed.as_ref().map_or(&frame.current, |failed| &failed.current);
    let (failed, partly) = match current {
        Current::Items(items) => (Some(items), None),
        _ => (None, Some(frame.kept.values())),
    };
    for items in failed.into_iter().chain(partly.into_iter().flatten()) {
        loops.push(items.at.clone());
        items.unfinished.values().chain(items.partly.values()).for_each(|frame| failed_loops(frame, loops));
    }
}

/// Has what failed in a list by another document begin again, before anything that follows a failure by this one: the steps for it, the
/// items behind it, and the steps behind its loop, none of which was requested.
fn reopen(frame: &mut StepFrame, failed: &FailedParts, active_ms: u64) {
    drop(frame.handled());
    frame.fault = None;
    (frame.rests, frame.handled) = (false, false);
    let has_failed = |items: &ItemsState| failed.loops.contains(&items.at);
    match &mut frame.current {
        Current::Items(items) if has_failed(items) => return reopen_items(items, failed, active_ms),
        _ => {}
    }
    let Some(number) = frame.kept.iter().find(|(_, items)| has_failed(items)).map(|(number, _)| *number) else {
        return;
    };
    frame.current = Current::Idle;
    if failed.completed {
        return revive_ended(frame, active_ms);
    }
    // The loop had failed: what ended behind it did so without a call.
    let done = frame.done;
    let Some(mut items) = frame.kept.remove(&number) else { return };
    frame.kept.retain(|other, _| *other < number.max(done));
    frame.kept_runs.retain(|other, _| *other < number.max(done));
    frame.next = number;
    reopen_items(&mut items, failed, active_ms);
    frame.current = Current::Items(items);
}

fn reopen_items(items: &mut ItemsState, failed: &FailedParts, active_ms: u64) {
    for (index, mut item) in std::mem::take(&mut items.partly) {
        revive_ended(&mut item, active_ms);
        item.began_active_ms = active_ms;
        items.ended.remove(&index);
        items.counts.completed = items.counts.completed.saturating_sub(1);
        items.again.insert(index, item);
    }
    revive_items(items);
    for (index, mut item) in std::mem::take(&mut items.open) {
        reopen(&mut item, failed, active_ms);
        items.again.insert(index, item);
    }
}

/// The record of the failed step is replaced by that of its next end; what its failure was handled with comes after it.
fn forget_failure(progress: &mut FlowProgress) {
    let is_main =
        |record: &StepRecord| record.status == StepStatus::Failed && record.at.split('.').next() != Some(ON_FAILURE);
    if let Some(at) = progress.records.iter().rposition(is_main) {
        progress.records.remove(at);
    }
}

/// Notes the steps whose next call is another one.
fn change(progress: &mut FlowProgress, changed: &[String]) {
    for at in changed {
        let count = progress.changed.entry(at.clone()).or_default();
        *count = count.saturating_add(1);
    }
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

/// A human raises the limit that ended the run: it continues where it was.
///
/// # Errors
/// When another limit ended it, or it would end again at once.
pub(super) fn limits_raised(
    program: &FlowProgram,
    state: &mut FlowState,
    raised: LimitsRaised,
) -> Result<Effects, Refused> {
    let Phase::Ended(ending) = std::mem::take(&mut state.phase) else { return Ok(Effects::new()) };
    if let Err(refused) = continuation::raise_spent(program, state, &ending, raised) {
        state.phase = Phase::Ended(ending);
        return Err(refused);
    }
    state.phase = Phase::Stepping;
    Ok(advanced(program, state, |_, progress| (progress.stopping, progress.root.handled) = (None, false)))
}

/// Has what failed in a list of steps begin again. Loops are at most three deep: the recursion ends.
fn revive(frame: &mut StepFrame) {
    frame.fault = None;
    (frame.rests, frame.handled) = (false, false);
    if let Current::Items(items) = &mut frame.current {
        revive_items(items);
    }
}

/// Has the failed items of the loops of a list that has ended begin again, and those of its runs. What ended behind these stays.
fn revive_ended(frame: &mut StepFrame, active_ms: u64) {
    let first = [frame.kept.keys().next(), frame.kept_runs.keys().next()].into_iter().flatten().min();
    let Some(first) = first.copied() else { return };
    frame.done = frame.done.max(frame.next);
    frame.next = first;
    for items in frame.kept.values_mut() {
        let partly = std::mem::take(&mut items.partly);
        revive_items(items);
        for (index, mut item) in partly {
            revive_ended(&mut item, active_ms);
            items.ended.remove(&index);
            items.counts.completed = items.counts.completed.saturating_sub(1);
            items.again.insert(index, item);
        }
        // The time of an item begins again.
        items.again.values_mut().for_each(|item| item.began_active_ms = active_ms);
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
