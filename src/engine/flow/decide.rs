//! The decisions of humans about the steps that wait.

use serde_json::Value;

use super::advance::Advance;
use super::advanced;
use super::end::{StepEnd, StepOutput};
use super::outcome::{StepTarget, at_step};
use super::question::{meant, split_address};
use super::state::{Current, FlowState, OpenStep, StepFault, StepProgress};
use super::waiting::{form_shape, form_values, hash, waiting_steps};
use crate::engine::approval::{NOT_ESCALATED, may_take};
use crate::engine::decision::{self, OTHER_CALL, reported_failure};
use crate::engine::decision_record::{ApprovalCount, DecisionRecord};
use crate::engine::effect::{Effect, Effects, Refused};
use crate::engine::event::{Decided, Decision, DecisionRights};
use crate::engine::outcome::Termination;
use crate::engine::state::{Phase, State};
use crate::engine::subrun;
use crate::engine::validate;
use crate::language::step::OnRejected;
use crate::program::Program;
use crate::program::flow::{APPROVAL_KEYS, Flow, StepAction};

/// Applies a decision to the step that it is about.
///
/// # Errors
/// Why it does not fit; the state is untouched then.
pub(super) fn decided(
    program: &Program,
    flow: &Flow,
    state: &mut State,
    decided: &Decided,
) -> Result<Effects, Refused> {
    let pause = pause(state, decided)?;
    let about = about(state, decided)?;
    for at in &about {
        fits(flow, state, at, decided)?;
    }
    state.interrupted = false;
    let now_ms = state.now.wall_ms;
    let mut records = Vec::new();
    let header = std::sync::Arc::clone(&state.header);
    let effects = advanced(program, flow, state, |advance, flow_state| {
        for at in &about {
            let mut record = DecisionRecord { step: Some(at.clone()), ..DecisionRecord::new(now_ms, pause, decided) };
            if let Some(open) = flow_state.open_at(at) {
                record.hash = Some(hash(open, &header));
                record.input_before = matches!(decided.decision, Decision::Edit(_)).then(|| Value::clone(&open.input));
                record.run_id = match &open.progress {
                    StepProgress::Waits(waits) => Some(waits.asks.run_id.clone()),
                    _ => None,
                };
            }
            record.approvals = apply(advance, flow_state, at, decided);
            records.push(record);
        }
    });
    state.decisions.append(&mut records);
    Ok(effects)
}

/// The pause that a decision is about: the present one, or the last one while other steps run.
///
/// # Errors
/// When it is for another pause, or does not say which step it is about while other steps run.
fn pause(state: &State, decided: &Decided) -> Result<u32, Refused> {
    let (last, is_paused) = (state.watch.pauses, matches!(state.phase, Phase::Paused { .. }));
    if !is_paused {
        let is_stopping = state.flow.as_ref().is_some_and(|flow| flow.stopping.is_some());
        if is_stopping {
            return Err(Refused::new(
                "the run stops, and no further step of it begins: decide when it waits or goes on",
            ));
        }
        if waiting_steps(state).is_empty() {
            return Err(Refused::new("the run waits for no human"));
        }
        if decided.at.is_none() && decided.hash.is_none() {
            // Which step waits may change between the look and the decision.
            return Err(Refused::new("other steps of the run are under way: name the step that is decided with `at`"));
        }
    }
    match decided.pause {
        // The step may ask something else than in the pause; the hash says that it does not.
        Some(number) if !is_paused && number <= last && decided.hash.is_none() => {
            Err(Refused::new(format!("pause {number} is over; the run goes on")))
        }
        Some(number) if number > last || is_paused && number != last => {
            let how = if number < last { "is over" } else { "has not come yet" };
            let now = if is_paused { format!("in pause {last}") } else { "not paused".to_owned() };
            Err(Refused::new(format!("pause {number} {how}; the run is {now}")))
        }
        _ => Ok(last),
    }
}

/// The addresses of the steps that a decision is about: each the workflow's own.
fn about(state: &State, decided: &Decided) -> Result<Vec<String>, Refused> {
    let waiting = waiting_steps(state);
    let mut about: Vec<String> = Vec::new();
    for question in meant(&waiting, decided)? {
        let (own, _) = split_address(&question.at);
        if !about.iter().any(|known| known == own) {
            about.push(own.to_owned());
        }
    }
    Ok(about)
}

/// Whether a decision fits a step that waits.
fn fits(flow: &Flow, state: &State, at: &str, decided: &Decided) -> Result<(), Refused> {
    let open = state.flow.as_ref().and_then(|flow| flow.open_at(at)).ok_or_else(|| Refused::new("no such step"))?;
    if let StepProgress::Waits(waits) = &open.progress {
        return subrun::fits(&waits.asks, &to_run(decided), state.now.wall_ms);
    }
    if decided.hash.as_ref().is_some_and(|shown| *shown != hash(open, &state.header)) {
        return Err(Refused::new(OTHER_CALL));
    }
    let kind = match &open.progress {
        StepProgress::AwaitsApproval(_) | StepProgress::AsksApproval { .. } => Termination::Approval,
        StepProgress::AsksForm { .. } => Termination::Human,
        _ => Termination::Uncertain,
    };
    if let (StepProgress::AsksForm { .. }, false) = (&open.progress, matches!(decided.decision, Decision::Answer(_))) {
        return Err(Refused::new(format!(
            "the step `{at}` is a form, and takes no approval: {}",
            form_shape(&keys_of(open))
        )));
    }
    decision::is_of_kind(kind, &decided.decision)?;
    match (&open.progress, &decided.decision) {
        (StepProgress::AwaitsApproval(awaited), _) => {
            may_take(awaited, &open.kind, decided, state.now.wall_ms)?;
            accepts(flow, open, &decided.decision)
        }
        (_, _) if decided.rights == DecisionRights::Escalated => Err(Refused::new(NOT_ESCALATED)),
        (StepProgress::AsksApproval { .. }, Decision::Edit(value)) if !value.is_object() => {
            Err(Refused::new("the payload of an approval is a JSON object"))
        }
        (StepProgress::AsksForm { expires_at_ms }, Decision::Answer(answer)) => {
            if expires_at_ms.is_some_and(|at_ms| at_ms <= state.now.wall_ms) {
                return Err(Refused::new("nobody filled in the form in time: the run fails when it is resumed"));
            }
            form_values(&keys_of(open), answer).map(drop).map_err(Refused::new)
        }
        _ => Ok(()),
    }
}

/// A decision as the run of a step reads it.
fn to_run(decided: &Decided) -> Decided {
    // The pause is the workflow's own; the run below has another number, and other addresses.
    let at = decided.at.as_deref().and_then(|at| split_address(at).1).map(str::to_owned);
    Decided { at, pause: None, ..decided.clone() }
}

/// Whether an edited input matches the schema of the action.
fn accepts(flow: &Flow, open: &OpenStep, decision: &Decision) -> Result<(), Refused> {
    let (Decision::Edit(input), Some(StepAction::Call(call))) =
        (decision, flow.step_at(&open.at).map(|step| &step.action))
    else {
        return Ok(());
    };
    let faults = call.tool.parameters.faults(input);
    if faults.is_empty() {
        return Ok(());
    }
    Err(Refused::new(format!("the edited input is not accepted:{}", validate::list(&faults))))
}

fn keys_of(open: &OpenStep) -> Vec<String> {
    open.input.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Applies a decision that fits. Returns how many have approved a call that several must approve.
fn apply(advance: &mut Advance<'_>, state: &mut FlowState, at: &str, decided: &Decided) -> Option<ApprovalCount> {
    let mut count = None;
    at_step(advance, state, StepTarget::at(at), &mut |advance, list, step, frame| {
        let Current::Open(open) = &mut frame.current else { return };
        match decide(open, decided, &mut count) {
            DecisionEffect::Request => {
                if !matches!(open.progress, StepProgress::Waits(_)) {
                    open.progress = StepProgress::Asked;
                }
                open.called_at_ms = Some(advance.now.wall_ms);
                advance.effects.push(Effect::RunStep(open.at.clone()));
            }
            DecisionEffect::Waits => {}
            DecisionEffect::Fails(message) => {
                let fault = StepFault::new("call_failed", message, open.at.as_str());
                let end = StepEnd::of(open, Err(fault));
                advance.ended(list, step, frame, end);
            }
            DecisionEffect::Ends(outcome) => {
                let outcome = match outcome {
                    Ok(output) => Ok(output),
                    // A no that does not stop the run is an outcome like any other.
                    Err(Rejection { output: Some(output), .. }) => Ok(output),
                    Err(Rejection { message, output: None }) => {
                        Err(StepFault::new("rejected", message, open.at.as_str()))
                    }
                };
                let end = StepEnd::of(open, outcome);
                advance.ended(list, step, frame, end);
            }
        }
    });
    count
}

/// What follows a decision.
enum DecisionEffect {
    /// The driver performs the step.
    Request,
    /// The step waits on: until it may be requested, or for another human.
    Waits,
    /// The step ends.
    Ends(Result<StepOutput, Rejection>),
    /// The call of the step failed.
    Fails(String),
}

/// A no.
struct Rejection {
    message: String,
    /// What the step gives when the no does not stop it.
    output: Option<StepOutput>,
}

fn decide(open: &mut OpenStep, decided: &Decided, count: &mut Option<ApprovalCount>) -> DecisionEffect {
    let OpenStep { input, progress, .. } = open;
    match (&mut *progress, &decided.decision) {
        (StepProgress::Waits(waits), _) => {
            let pause = Some(waits.asks.pause);
            let call = subrun::meant(&waits.asks, decided);
            waits.decided = Some(Decided { pause, call, ..to_run(decided) });
            // It stays what it is: the run of the step takes the decision.
            DecisionEffect::Request
        }
        (StepProgress::AwaitsApproval(awaited), Decision::Approve | Decision::Edit(_)) => {
            if let Decision::Edit(edited) = &decided.decision {
                // The approvals so far were for the other input.
                awaited.approved_by.clear();
                *input = std::sync::Arc::new(edited.clone());
            }
            let is_last = awaited.approve(decided);
            *count = ApprovalCount::of(awaited);
            if is_last {
                *progress = StepProgress::Held;
            }
            DecisionEffect::Waits
        }
        (StepProgress::AwaitsApproval(_), Decision::Deny(reason)) => {
            DecisionEffect::Ends(Err(Rejection { message: rejected(reason.as_deref()), output: None }))
        }
        (StepProgress::AsksApproval { on_rejected, .. }, decision) => {
            let goes_on = *on_rejected == OnRejected::GoOn;
            let (approved, reason) = match decision {
                Decision::Deny(reason) => (false, reason.clone()),
                Decision::Edit(edited) => {
                    *input = std::sync::Arc::new(edited.clone());
                    (true, None)
                }
                _ => (true, None),
            };
            let comment = decided.comment.clone().or_else(|| reason.clone());
            let output = approval_output(approved, comment, input);
            DecisionEffect::Ends(if approved {
                Ok(output)
            } else {
                Err(Rejection { message: rejected(reason.as_deref()), output: goes_on.then_some(output) })
            })
        }
        (StepProgress::AsksForm { .. }, Decision::Answer(answer)) => {
            let keys: Vec<String> =
                input.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            let values = form_values(&keys, answer).unwrap_or_default();
            let value = Value::Object(values.iter().cloned().collect());
            DecisionEffect::Ends(Ok(StepOutput { value, keys: values }))
        }
        (StepProgress::Uncertain(_), Decision::Happened(value)) => {
            DecisionEffect::Ends(Ok(StepOutput::from(value.clone())))
        }
        (StepProgress::Uncertain(_), Decision::Failed(reason)) => DecisionEffect::Fails(reported_failure(reason)),
        (StepProgress::Uncertain(_), Decision::Retry) => DecisionEffect::Request,
        _ => DecisionEffect::Waits,
    }
}

fn rejected(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("a human did not approve it: {reason}"),
        None => "a human did not approve it".to_owned(),
    }
}

/// What an approval writes.
fn approval_output(approved: bool, comment: Option<String>, payload: &Value) -> StepOutput {
    let comment = comment.map_or(Value::Null, Value::String);
    let values = [Value::Bool(approved), comment.clone(), payload.clone()];
    let keys = APPROVAL_KEYS.into_iter().map(str::to_owned).zip(values).collect();
    let value = serde_json::json!({ "approved": approved, "comment": comment, "data": payload });
    StepOutput { value, keys }
}
