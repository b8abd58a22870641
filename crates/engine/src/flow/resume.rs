//! A driver resumes a workflow: steps that were requested and have no outcome are requested again, or are uncertain.

use super::advance::Advance;
use super::advanced;
use super::end::StepEnd;
use super::outcome::{StepTarget, at_step};
use super::progress::{Current, FlowProgress, StepFault, Stopping};
use crate::address::StepAddress;
use crate::effect::{Effect, Effects};
use crate::operation::{Doubt, LOST, OpenStep, Progress};
use crate::state::{FlowState, Phase};
use loopctl_lang::language::action::OnUncertain;
use loopctl_lang::program::flow::{FlowProgram, StepAction};

/// A driver resumes the run.
pub(super) fn resumed(program: &FlowProgram, state: &mut FlowState) -> Effects {
    state.interrupted = false;
    let is_paused = matches!(state.phase, Phase::Paused { .. });
    advanced(program, state, |advance, progress| {
        if progress.stopping == Some(Stopping::Interrupt) {
            progress.stopping = None;
        }
        let now_ms = advance.now.wall_ms;
        let (mut requested, mut failed) = (Vec::new(), Vec::new());
        progress.each_open(&mut |open| {
            if open.lacks_room() {
                // There may be some, or the limit was raised.
                open.hold();
            } else if is_paused {
                // The questions of the runs below may have changed.
                if open.ask_again() {
                    requested.push(open.address.clone());
                }
            } else if open.progress.is_under_way() {
                let rule = if rests(open, now_ms) { OnUncertain::Retry } else { after_crash(program, open) };
                match rule {
                    OnUncertain::Retry => {
                        open.requested_at_ms = Some(now_ms);
                        requested.push(open.address.clone());
                    }
                    OnUncertain::Pause => open.progress = Progress::Uncertain(Doubt::Stopped),
                    OnUncertain::Fail => failed.push(open.address.clone()),
                }
            }
        });
        advance.effects.extend(requested.into_iter().map(Effect::RunStep));
        for at in failed {
            fail(advance, progress, &at);
        }
    })
}

/// A human has a run that waits ask the models again that it waits for, alone: what waits for a human beside them stays.
pub(super) fn models_asked(program: &FlowProgram, state: &mut FlowState) -> Effects {
    state.interrupted = false;
    advanced(program, state, |advance, progress| {
        progress.each_open(&mut |open| {
            if open.lacks_room() {
                open.hold();
            } else if open.progress.waits_for_model() && open.ask_again() {
                advance.effects.push(Effect::RunStep(open.address.clone()));
            }
        });
    })
}

/// Nobody drove the run since it started: the steps that its start requested were not made.
pub(super) fn left(state: &mut FlowState) {
    state.progress.each_open(&mut |open| {
        if open.progress == Progress::Requested || open.lacks_room() {
            open.hold();
        }
    });
}

/// Nothing of a step is under way, although it was requested.
pub(super) fn step_left(state: &mut FlowState, at: &StepAddress) {
    if let Some(open) = state.progress.open_at_mut(at) {
        open.hold();
    }
}

/// Whether the last attempt of a step failed and the next one is not due yet: nothing of it is under way.
fn rests(open: &OpenStep, now_ms: i64) -> bool {
    open.attempts.last().is_some_and(|last| !last.lost && last.at_ms.saturating_add_unsigned(last.delay_ms) > now_ms)
}

fn after_crash(program: &FlowProgram, open: &OpenStep) -> OnUncertain {
    match program.step_at(&open.address).map(|step| &step.action) {
        Some(StepAction::Call(call)) => call.tool.after_crash(),
        // A run of its own continues where it stopped.
        Some(_) => OnUncertain::Retry,
        None => OnUncertain::Pause,
    }
}

fn fail(advance: &mut Advance<'_>, progress: &mut FlowProgress, at: &StepAddress) {
    at_step(advance, progress, StepTarget::at(at), &mut |advance, list, step, frame| {
        let Current::Open(open) = &frame.current else { return };
        let fault = StepFault::new("uncertain", LOST, open.address.as_str());
        let end = StepEnd::of(open, Err(fault));
        advance.ended(list, step, frame, end);
    });
}
