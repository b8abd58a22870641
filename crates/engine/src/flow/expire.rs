//! Nobody decided in time about steps that wait, or their wait is over: also while other steps are under way.

use super::advanced;
use super::end::StepEnd;
use super::outcome::{StepTarget, at_step};
use super::progress::{Current, StepFault};
use super::wait;
use crate::address::StepAddress;
use crate::decision::decision_record::DecisionRecord;
use crate::effect::{Effect, Effects, Refused};
use crate::operation::{Address as _, AskedFor, AwaitedKind, AwaitedThing, OpenStep, Progress};
use crate::question::SubrunQuestion;
use crate::state::{FlowState, Phase};
use loopctl_lang::language::approval::OnExpiry;
use loopctl_lang::program::flow::FlowProgram;

/// Nobody decided in time: about a call, a form, or what the run of a step asks. Or a wait is over. Such a run is resumed, and what it asks
/// expires there.
///
/// # Errors
/// When nothing has expired.
pub(super) fn expired(program: &FlowProgram, state: &mut FlowState) -> Result<Effects, Refused> {
    let now_ms = state.now.wall_ms;
    let is_paused = matches!(state.phase, Phase::Paused { .. });
    let is_due = |open: &&OpenStep| open.progress.is_expired(now_ms);
    let open = state.progress.open();
    let is_escalated = |open: &OpenStep| {
        let Progress::Asks(AskedFor::Approval(awaited)) = &open.progress else { return false };
        awaited.on_expiry == Some(OnExpiry::Escalate)
    };
    let asks_anew =
        state.header.escalates_in_a_new_pause() && open.iter().any(|open| is_due(open) && is_escalated(open));
    // While the run is paused, its driver resumes it for the runs below.
    let is_due_below = |open: &&OpenStep| {
        let asks = open.progress.subrun().filter(|wait| !is_paused && wait.is_open()).map(|wait| &wait.asks);
        asks.and_then(SubrunQuestion::due_at_ms).is_some_and(|at_ms| at_ms <= now_ms)
    };
    let below: Vec<StepAddress> = open.iter().copied().filter(is_due_below).map(|open| open.address.clone()).collect();
    let due: Vec<StepAddress> = open.into_iter().filter(is_due).map(|open| open.address.clone()).collect();
    if due.is_empty() && below.is_empty() {
        return Err(Refused::new("no approval and no form of the run has expired, and no wait of it is over"));
    }
    let pause = state.pauses;
    let has_own_code = state.header.names_expired_approvals();
    if let Phase::Paused { pause, .. } = &mut state.phase
        && asks_anew
    {
        // It is not the pause of the same questions: others may answer.
        pause.steps.clear();
    }
    state.interrupted = false;
    let mut records = Vec::new();
    let effects = advanced(program, state, |advance, progress| {
        for at in &below {
            progress.open_at_mut(at).map(OpenStep::ask_again);
        }
        advance.effects.extend(below.iter().cloned().map(Effect::RunStep));
        for at in &due {
            at_step(advance, progress, StepTarget::at(at), &mut |advance, list, step, frame| {
                let Current::Open(open) = &mut frame.current else { return };
                if let Progress::Waits(AwaitedThing { what, .. }) = &open.progress {
                    if let AwaitedKind::Event(awaited) = what {
                        let message = format!("the event `{}` did not come in time", awaited.event);
                        let fault = StepFault::new("event_expired", message, open.address.as_str());
                        let end = StepEnd::of(open, Err(fault));
                        return advance.ended(list, step, frame, end);
                    }
                    if let AwaitedKind::Room(_) = what {
                        return open.hold();
                    }
                    let end = StepEnd::of(open, Ok(wait::output(&open.input, false).into()));
                    advance.ended(list, step, frame, end);
                    frame.rests = list.of.is_some();
                    return;
                }
                let Some(on_expiry) = open.expire(now_ms) else { return };
                let record = DecisionRecord::of_expiry(now_ms, pause, on_expiry);
                records.push(open.address.in_record(record));
                if on_expiry == OnExpiry::Escalate {
                    return;
                }
                let is_form = matches!(open.progress, Progress::Asks(AskedFor::Form { .. }));
                let (code, message) = if is_form {
                    ("form_expired", "nobody filled in the form in time")
                } else if on_expiry == OnExpiry::Fail && has_own_code {
                    ("approval_expired", "nobody approved it in time")
                } else {
                    ("rejected", "nobody approved it in time")
                };
                let fault = StepFault::new(code, message, open.address.as_str());
                let end = StepEnd::of(open, Err(fault));
                advance.ended(list, step, frame, end);
            });
        }
    });
    state.decisions.append(&mut records);
    Ok(effects)
}
