//! The decisions of humans about the steps that wait.

use serde_json::Value;

use super::advance::Advance;
use super::advanced;
use super::end::{StepEnd, StepOutput};
use super::outcome::{StepTarget, at_step};
use super::progress::{Current, FlowProgress, StepFault};
use super::question::meant;
use super::wait;
use crate::address::{StepAddress, split_address};
use crate::decision::decision_record::{ApprovalCount, DecisionRecord};
use crate::effect::{Effect, Effects, Refused};
use crate::event::{Decided, Decision};
use crate::operation::{AfterDecision, AskedFor, Conclusion, OpenStep, Progress, Taken};
use crate::question::StepQuestion;
use crate::state::{FlowState, Phase};
use loopctl_lang::language::step::OnRejected;
use loopctl_lang::program::Tool;
use loopctl_lang::program::file_value::key_twice_in;
use loopctl_lang::program::flow::{APPROVAL_KEYS, FlowProgram, StepAction};

/// Applies a decision to the step that it is about.
///
/// # Errors
/// Why it does not fit; the state is untouched then.
pub(super) fn decided(program: &FlowProgram, state: &mut FlowState, decided: &Decided) -> Result<Effects, Refused> {
    let StepsMeant { pause, about } = StepsMeant::of(program, state, decided)?;
    state.interrupted = false;
    let now_ms = state.now.wall_ms;
    let mut records = Vec::new();
    let header = std::sync::Arc::clone(&state.header);
    if let (Phase::Paused { pause, .. }, Decision::Edit(_)) = (&mut state.phase, &decided.decision)
        && header.asks_an_edit_in_a_new_pause()
    {
        // If others must approve the step, too, it is not the pause of the same questions: what was posted of it is over.
        pause.steps.clear();
    }
    let effects = advanced(program, state, |advance, progress| {
        for at in &about {
            let new = DecisionRecord::new(now_ms, pause, decided);
            let record = progress.open_at(at).map(|open| open.record(&header, new));
            let approvals = apply(advance, progress, at, decided);
            records.extend(record.map(|record| DecisionRecord { approvals, ..record }));
        }
    });
    state.decisions.append(&mut records);
    Ok(effects)
}

/// Whether a decision fits: what [`decided`] would refuse is refused, and a decision about a call of a step that is no
/// run. A journal may hold such a decision, which was taken as one about the step.
///
/// # Errors
/// Why it does not fit.
pub(super) fn fits(program: &FlowProgram, state: &FlowState, decided: &Decided) -> Result<(), Refused> {
    let meant_steps = StepsMeant::of(program, state, decided)?;
    meant_steps.about.iter().try_for_each(|at| has_no_key_twice(state, at, decided))?;
    let Some(call) = decided.call else { return Ok(()) };
    let waiting = state.waiting_steps();
    match meant(&waiting, decided)?.iter().find(|step| step.question.run_id.is_none() && step.run_pause.is_none()) {
        Some(step) => Err(Refused::new(format!("call {call} does not wait; what waits: the step `{}`", step.at))),
        None => Ok(()),
    }
}

/// Whether the answer to a form of keys has each of them once: a journal may hold one of which the last value was taken.
fn has_no_key_twice(state: &FlowState, at: &StepAddress, decided: &Decided) -> Result<(), Refused> {
    let Decision::Answer(answer) = &decided.decision else { return Ok(()) };
    let is_form = |open: &OpenStep| matches!(open.progress, Progress::Asks(AskedFor::Form { .. }));
    match state.progress.open_at(at).filter(|open| is_form(open)).and_then(|_| key_twice_in(answer)) {
        Some(key) => Err(Refused::new(format!(
            "the form is not filled in: the key `{key}` is twice in the answer, and JSON keeps one of the two"
        ))),
        None => Ok(()),
    }
}

/// What a decision is about that fits.
struct StepsMeant {
    /// The pause.
    pause: u32,
    /// The addresses of the steps: each the workflow's own.
    about: Vec<StepAddress>,
}

impl StepsMeant {
    fn of(program: &FlowProgram, state: &FlowState, decided: &Decided) -> Result<Self, Refused> {
        let (pause, about) = (pause(state, decided)?, about(state, decided)?);
        let is_known = |record: &DecisionRecord| record.by == decided.by;
        if decided.is_of_event() && state.decisions.iter().any(is_known) {
            return Err(Refused::new("the run has taken this event"));
        }
        about.iter().try_for_each(|at| fits_step(program, state, at, decided))?;
        Ok(Self { pause, about })
    }
}

/// The pause that a decision is about: the present one, or the last one while other steps run.
///
/// # Errors
/// When it is for another pause, or does not say which step it is about while other steps run.
fn pause(state: &FlowState, decided: &Decided) -> Result<u32, Refused> {
    let (last, is_paused) = (state.pauses, matches!(state.phase, Phase::Paused { .. }));
    if let Some(busy) = busy(state, decided) {
        return Err(Refused::Busy(busy.to_owned()));
    }
    if !is_paused {
        if state.progress.stopping.is_some() {
            return Err(Refused::new(
                "the run stops, and no further step of it begins: decide when it waits or goes on",
            ));
        }
        if !state.has_waiting_step() {
            return Err(Refused::NotAsked);
        }
        if decided.at.is_none() && decided.hash.is_none() {
            // Which step waits may change between the look and the decision.
            return Err(Refused::new(
                "other steps of the run are under way: name the address of the step that is decided",
            ));
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

/// The step whose run is under way, and below which the step is that is decided: its questions come back when that run waits.
fn busy<'d>(state: &FlowState, decided: &'d Decided) -> Option<&'d str> {
    let (own, below) = split_address(decided.at.as_deref()?);
    below?;
    let open = state.progress.open_at(&StepAddress::new(own))?;
    (open.is_subrun && open.progress.is_under_way()).then_some(own)
}

/// The addresses of the steps that a decision is about: each the workflow's own.
fn about(state: &FlowState, decided: &Decided) -> Result<Vec<StepAddress>, Refused> {
    let named = state.named_questions(decided);
    if let Some(meant) = named.as_deref().and_then(|waiting| meant(waiting, decided).ok()) {
        return Ok(own_addresses(&meant));
    }
    // The message names what waits.
    let waiting = state.waiting_steps();
    meant(&waiting, decided).map(|meant| own_addresses(&meant))
}

/// The addresses of the workflow's own steps that ask.
fn own_addresses(meant: &[&StepQuestion]) -> Vec<StepAddress> {
    let mut about: Vec<StepAddress> = Vec::new();
    for question in meant {
        let (own, _) = split_address(&question.at);
        if !about.iter().any(|known| known.as_str() == own) {
            about.push(StepAddress::new(own));
        }
    }
    about
}

/// Whether a decision fits a step that waits.
fn fits_step(program: &FlowProgram, state: &FlowState, at: &StepAddress, decided: &Decided) -> Result<(), Refused> {
    let open = state.progress.open_at(at).ok_or_else(|| Refused::new("no such step"))?;
    open.accepts(decided, &state.header, tool_at(program, at), state.now.wall_ms)
}

/// The tool that the step at an address calls.
fn tool_at<'p>(program: &'p FlowProgram, at: &StepAddress) -> Option<&'p Tool> {
    match &program.step_at(at)?.action {
        StepAction::Call(call) => Some(&call.tool),
        _ => None,
    }
}

/// Applies a decision that fits. Returns how many have approved a call that several must approve.
fn apply(
    advance: &mut Advance<'_>,
    state: &mut FlowProgress,
    at: &StepAddress,
    decided: &Decided,
) -> Option<ApprovalCount> {
    let tool = tool_at(advance.program, at);
    let mut count = None;
    at_step(advance, state, StepTarget::at(at), &mut |advance, list, step, frame| {
        let Current::Open(open) = &mut frame.current else { return };
        let Taken { next, approvals } = open.decide(decided, tool);
        count = approvals;
        match next {
            AfterDecision::Request => {
                open.request(advance.now.wall_ms);
                advance.effects.push(Effect::RunStep(open.address.clone()));
            }
            AfterDecision::Wait => {}
            AfterDecision::End(conclusion) => {
                let is_wait = matches!(conclusion, Conclusion::Waited | Conclusion::Event(_));
                let rests = is_wait && list.of.is_some();
                let outcome = outcome_of(conclusion, &open.input, &open.address);
                let end = StepEnd::of(open, outcome);
                advance.ended(list, step, frame, end);
                frame.rests = rests;
            }
        }
    });
    count
}

/// What a step gives, or why it fails, when a human's decision ends it.
fn outcome_of(conclusion: Conclusion, input: &Value, at: &str) -> Result<StepOutput, StepFault> {
    match conclusion {
        Conclusion::Answer(text) => Ok(StepOutput::from(Value::String(text))),
        Conclusion::Form(values) => {
            let value = Value::Object(values.iter().cloned().collect());
            Ok(StepOutput { value, keys: values })
        }
        // A no that does not stop the run is an outcome like any other.
        Conclusion::Consent { approved, comment, reason, on_rejected } => match (approved, on_rejected) {
            (false, OnRejected::Stop) => Err(StepFault::new("rejected", rejected(reason.as_deref()), at)),
            _ => Ok(approval_output(approved, comment, input)),
        },
        Conclusion::Event(data) => Ok(data.into()),
        Conclusion::Waited => Ok(wait::output(input, true).into()),
        Conclusion::Denied { reason } => Err(StepFault::new("rejected", rejected(reason.as_deref()), at)),
        Conclusion::Happened(value) => Ok(StepOutput::from(value)),
        Conclusion::Failed(message) => Err(StepFault::new("call_failed", message, at)),
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
