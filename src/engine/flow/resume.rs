//! A driver resumes a workflow: steps that were requested and have no outcome are requested again, or are uncertain.

use super::advance::Advance;
use super::advanced;
use super::end::StepEnd;
use super::outcome::{StepTarget, at_step};
use super::state::{Current, FlowState, OpenStep, StepFault, StepProgress, Stopping};
use crate::engine::call::Doubt;
use crate::engine::effect::{Effect, Effects};
use crate::engine::state::{Phase, State};
use crate::language::action::OnUncertain;
use crate::program::Program;
use crate::program::flow::{Flow, StepAction};

/// What is done with a step that was under way when the process stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// It is requested again.
    Request,
    /// A human decides.
    Ask,
    /// It fails.
    Fail,
}

/// A driver resumes the run.
pub(super) fn resumed(program: &Program, flow: &Flow, state: &mut State) -> Effects {
    state.interrupted = false;
    let is_paused = matches!(state.phase, Phase::Paused { .. });
    advanced(program, flow, state, |advance, flow_state| {
        if flow_state.stopping == Some(Stopping::Interrupt) {
            flow_state.stopping = None;
        }
        let now_ms = advance.now.wall_ms;
        let (mut requested, mut failed) = (Vec::new(), Vec::new());
        flow_state.each_open(&mut |open| {
            if is_paused {
                // The questions of the runs below may have changed.
                ask_again(open, &mut requested);
            } else if open.progress.is_under_way() {
                match rule(flow, open) {
                    Again::Request => {
                        open.called_at_ms = Some(now_ms);
                        requested.push(open.at.clone());
                    }
                    Again::Ask => open.progress = StepProgress::Uncertain(Doubt::Stopped),
                    Again::Fail => failed.push(open.at.clone()),
                }
            }
        });
        advance.effects.extend(requested.into_iter().map(Effect::RunStep));
        for at in failed {
            fail(advance, flow_state, &at);
        }
    })
}

/// Nobody drove the run since it started: the steps that its start requested were not made.
pub(super) fn left(state: &mut State) {
    let Some(flow_state) = &mut state.flow else { return };
    flow_state.each_open(&mut |open| {
        if open.progress == StepProgress::Asked {
            hold(open);
        }
    });
}

/// Nothing of a step is under way, although it was requested.
pub(super) fn step_left(state: &mut State, at: &str) {
    let Some(flow_state) = &mut state.flow else { return };
    flow_state.each_open(&mut |open| {
        if open.at == at {
            hold(open);
        }
    });
}

fn hold(open: &mut OpenStep) {
    open.progress = StepProgress::Held;
    open.called_at_ms = None;
}

fn ask_again(open: &mut OpenStep, requested: &mut Vec<String>) {
    if let StepProgress::Waits(waits) = &mut open.progress {
        waits.again = waits.decided.is_none();
        requested.push(open.at.clone());
    }
}

fn rule(flow: &Flow, open: &OpenStep) -> Again {
    match flow.step_at(&open.at).map(|step| &step.action) {
        Some(StepAction::Call(call)) => match call.tool.after_crash() {
            OnUncertain::Retry => Again::Request,
            OnUncertain::Fail => Again::Fail,
            OnUncertain::Pause => Again::Ask,
        },
        // A run of its own continues where it stopped.
        Some(_) => Again::Request,
        None => Again::Ask,
    }
}

fn fail(advance: &mut Advance<'_>, flow_state: &mut FlowState, at: &str) {
    at_step(advance, flow_state, StepTarget::at(at), &mut |advance, list, step, frame| {
        let Current::Open(open) = &frame.current else { return };
        let message = "the outcome is not known: the process stopped during the call".to_owned();
        let fault = StepFault::new("uncertain", message, open.at.as_str());
        let end = StepEnd::of(open, Err(fault));
        advance.ended(list, step, frame, end);
    });
}
