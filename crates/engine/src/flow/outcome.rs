//! Outcomes of steps: a call returned, or a run waits for a human.

use serde_json::Value;

use super::advance::{Advance, StepList};
use super::advanced;
use super::end::{StepEnd, StepOutput};
use super::progress::{Current, FailedRun, FlowProgress, StepChange, StepFault, StepFrame, Stopping, chosen};
use super::record::StepStatus;
use super::root;
use crate::address::StepAddress;
use crate::budget;
use crate::call_attempt::CallAttempt;
use crate::effect::{Effect, Effects, Refused};
use crate::event::{
    StepAsks, StepLeft, StepPaused, StepRetried, StepReturned, StepWaits, Tokens, ToolFault, ToolResult,
};
use crate::limit;
use crate::operation::{OpenStep, Progress, SettledCost};
use crate::outcome::{Answer, Limit};
use crate::state::FlowState;
use loopctl_lang::program::flow::{FlowProgram, FlowStep, StepAction};

/// The most characters of an operator's detail in a fault.
const DETAIL_CHARS: usize = 300;

/// A step returned.
pub(super) fn returned(
    program: &FlowProgram,
    state: &mut FlowState,
    returned: StepReturned,
) -> Result<Effects, Refused> {
    let StepReturned {
        at,
        kind,
        result,
        waited_ms,
        tokens,
        cost_usd,
        estimated,
        at_most,
        run_id,
        mut attempts,
        partly,
        retryable,
        outage,
        limited,
        ..
    } = returned;
    let at = StepAddress::new(&at);
    let open = under_way(state, &at)?;
    if open.name != kind {
        return Err(Refused::new(format!("the step `{at}` was `{kind}`, and is `{}`", open.name)));
    }
    let before = open.settled;
    // What its run used so far is counted: it continues from there.
    let settled = SettledCost::of(tokens, cost_usd);
    let failed = FailedRun { round: open.repetition.round, settled };
    // What a workflow has done is not done again.
    let continues = outage || program.step_at(&at).and_then(FlowStep::subrun).is_some_and(|run| run.is_flow());
    state.counters.estimated |= estimated;
    state.counters.at_most |= at_most;
    state.counters.tool_calls_made = state.counters.tool_calls_made.saturating_add(1);
    let calls = state.counters.calls.entry(kind).or_default();
    *calls = calls.saturating_add(1);
    let spent = charge(program, state, before, tokens, cost_usd);
    if let Some(stopping) = limit_of_the_run(program, state).filter(|_| limited) {
        return Ok(advanced(program, state, |advance, progress| {
            progress.stopping = progress.stopping.or(Some(stopping));
            at_step(advance, progress, StepTarget::spent(&at, spent), &mut |_, _, _, frame| {
                let Current::Open(open) = &mut frame.current else { return };
                (open.progress, open.settled, open.repetition.continues) = (Progress::Held, settled, true);
            });
        }));
    }
    // One step is at the address: its result, which may be large, is moved.
    let mut result = Some(result);
    Ok(advanced(program, state, |advance, progress| {
        at_step(advance, progress, StepTarget::spent(&at, spent), &mut |advance, list, step, frame| {
            let (Current::Open(open), Some(result)) = (&mut frame.current, result.take()) else { return };
            open.run_id = run_id.clone().map(String::into_boxed_str);
            open.waited_ms = open.waited_ms.saturating_add(waited_ms);
            attempts.drain(..).for_each(|attempt| open.failed(attempt.into()));
            let (outcome, answer) = match result {
                ToolResult::Ok(value) => (Ok(StepOutput::from(value)), String::new()),
                ToolResult::Failed(fault) => {
                    let fault_of_step = StepFault { retryable, ..fault_of(step, &at, &fault) };
                    (Err(fault_of_step), fault.answer)
                }
            };
            let partly = Some(failed).filter(|_| partly);
            let end = StepEnd { tokens, answer, partly, ..StepEnd::of(open, outcome) };
            advance.ended(list, step, frame, end);
        });
        let has_failed = advance.changes.iter().any(|change| {
            matches!(change, StepChange::Ended(record) if *record.at == *at && record.status == StepStatus::Failed)
        });
        if has_failed && continues {
            progress.outages.insert(at.to_string(), failed);
        } else {
            progress.outages.remove(at.as_str());
        }
    }))
}

/// The limit of the run itself because of which a run below it has ended: that one had what was left of it.
fn limit_of_the_run(program: &FlowProgram, state: &FlowState) -> Option<Stopping> {
    match (state.progress.stopping, limit::spent(program, state)) {
        (Some(stopping @ (Stopping::Timeout | Stopping::Budget)), _) => Some(stopping),
        (_, Some(Limit::Timeout)) => Some(Stopping::Timeout),
        (_, Some(Limit::Budget)) => Some(Stopping::Budget),
        _ => None,
    }
}

/// An attempt at the call of a step failed: it is requested again.
pub(super) fn retried(program: &FlowProgram, state: &mut FlowState, retried: StepRetried) -> Result<Effects, Refused> {
    let StepRetried { at, attempt, error, duration_ms, waited_ms, delay_ms, lost } = retried;
    let at = StepAddress::new(&at);
    let open = under_way(state, &at)?;
    open.takes_attempt(attempt)?;
    let kind = open.name.clone();
    let failed = CallAttempt { at_ms: state.now.wall_ms, error, duration_ms, delay_ms, lost };
    if !lost {
        let retries = state.counters.tool_retries.entry(kind.clone()).or_default();
        *retries = retries.saturating_add(1);
    }
    Ok(advanced(program, state, |advance, progress| {
        let Some(open) = progress.open_at_mut(&at) else { return };
        open.waited_ms = open.waited_ms.saturating_add(waited_ms);
        open.failed(failed.clone());
        if lost {
            return;
        }
        let change = StepChange::Retried { at: at.to_string(), kind, number: attempt, attempt: Box::new(failed) };
        advance.changes.push(change);
        advance.effects.push(Effect::RunStep(at.clone()));
    }))
}

/// There is no room for the model that a step asks in a spending limit of the project.
pub(super) fn waits(program: &FlowProgram, state: &mut FlowState, waits: StepWaits) -> Result<Effects, Refused> {
    let StepWaits { at, why, until_ms, tokens, cost_usd } = waits;
    let at = StepAddress::new(&at);
    under_way(state, &at)?;
    let spent = charge(program, state, SettledCost::default(), tokens, cost_usd);
    Ok(advanced(program, state, |advance, progress| {
        at_step(advance, progress, StepTarget::spent(&at, spent), &mut |_, _, _, frame| {
            let Current::Open(open) = &mut frame.current else { return };
            open.waits_for_room(until_ms, &why);
        });
    }))
}

/// The run of a step waits for a human.
pub(super) fn paused(program: &FlowProgram, state: &mut FlowState, paused: StepPaused) -> Result<Effects, Refused> {
    let StepPaused { at, run_id, asks, tokens, cost_usd } = paused;
    let at = StepAddress::new(&at);
    let before = under_way(state, &at)?.settled;
    let spent = charge(program, state, before, tokens, cost_usd);
    Ok(advanced(program, state, |advance, progress| {
        at_step(advance, progress, StepTarget::spent(&at, spent), &mut |_, _, _, frame| {
            let Current::Open(open) = &mut frame.current else { return };
            open.waits(&run_id, asks.clone(), SettledCost::of(tokens, cost_usd));
        });
    }))
}

/// The server of a tool asks a human before it continues with the call of a step.
pub(super) fn asks(program: &FlowProgram, state: &mut FlowState, asked: StepAsks) -> Result<Effects, Refused> {
    let StepAsks { at, asks } = asked;
    let at = StepAddress::new(&at);
    let tool = under_way(state, &at)?.name.clone();
    let asked = state.counters.server_questions.entry(tool).or_default();
    *asked = asked.saturating_add(1);
    Ok(advanced(program, state, |advance, progress| {
        at_step(advance, progress, StepTarget::at(&at), &mut |_, _, _, frame| {
            let Current::Open(open) = &mut frame.current else { return };
            open.is_asked(asks.clone());
        });
    }))
}

/// The driver left a step between two attempts of its model: what those used is counted, and the step has yet to be made.
pub(super) fn left(
    program: &FlowProgram,
    state: &mut FlowState,
    at: &StepAddress,
    left: &StepLeft,
) -> Result<(), Refused> {
    under_way(state, at)?;
    let spent = charge(program, state, SettledCost::default(), left.tokens, left.cost_usd);
    spend(&mut state.progress.root, at, spent);
    Ok(())
}

/// The step at an address, which must be under way.
pub(super) fn under_way<'s>(state: &'s FlowState, at: &StepAddress) -> Result<&'s OpenStep, Refused> {
    match state.progress.open_at(at) {
        Some(open) if open.progress.is_under_way() => Ok(open),
        Some(_) => Err(Refused::new(format!("the step `{at}` is not under way"))),
        None => Err(Refused::new(format!("no step is open at `{at}`"))),
    }
}

/// Counts what a step used, without the part that was counted before. Returns what is new.
fn charge(
    program: &FlowProgram,
    state: &mut FlowState,
    before: SettledCost,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
) -> SettledCost {
    let Some(tokens) = tokens else { return SettledCost::default() };
    let tokens = tokens.minus(before.tokens);
    let cost_usd = cost_usd.map(|cost| cost - before.cost_usd);
    budget::charge(program, state, tokens, cost_usd);
    SettledCost { tokens, cost_usd: cost_usd.unwrap_or_default() }
}

/// A call's failure, as the workflow has it.
fn fault_of(step: &FlowStep, at: &str, fault: &ToolFault) -> StepFault {
    let code = if step.subrun().is_some() { "run_failed" } else { "call_failed" };
    let mut message = fault.class.clone();
    if !fault.detail.is_empty() {
        let cut = fault.detail.char_indices().nth(DETAIL_CHARS).map(|(end, _)| end);
        let detail = fault.detail.get(..cut.unwrap_or(fault.detail.len())).unwrap_or_default();
        message.push_str(&format!(" ({detail}{})", if cut.is_some() { "..." } else { "" }));
    }
    StepFault::new(code, message, at)
}

/// What is done with the open step at an address.
pub(super) type AtStep<'w, 'p> = &'w mut dyn FnMut(&mut Advance<'p>, &StepList<'p>, &'p FlowStep, &mut StepFrame);

/// An open step, and what it has spent just now: that counts for the items around it too.
#[derive(Clone, Copy)]
pub(super) struct StepTarget<'t> {
    /// Its address.
    pub at: &'t StepAddress,
    /// What is new.
    pub spent: SettledCost,
}

impl<'t> StepTarget<'t> {
    /// A step that spent nothing.
    pub fn at(at: &'t StepAddress) -> Self {
        Self::spent(at, SettledCost::default())
    }

    /// A step that spent this.
    pub fn spent(at: &'t StepAddress, spent: SettledCost) -> Self {
        Self { at, spent }
    }
}

/// Works on an open step.
pub(super) fn at_step<'p>(
    advance: &mut Advance<'p>,
    state: &mut FlowProgress,
    target: StepTarget<'_>,
    work: AtStep<'_, 'p>,
) {
    let program = advance.program;
    spend(&mut state.root, target.at, target.spent);
    find(advance, &root(program), &mut state.root, target.at, work);
}

/// Counts what a step has spent for the lists around it.
fn spend(root: &mut StepFrame, at: &StepAddress, spent: SettledCost) {
    let mut frame = root;
    loop {
        frame.spent.tokens = frame.spent.tokens.plus(spent.tokens);
        frame.spent.cost_usd += spent.cost_usd;
        let Current::Items(items) = &mut frame.current else { return };
        let Some(inside) = at.item_of(&items.at).and_then(|index| items.open.get_mut(&index)) else { return };
        frame = inside;
    }
}

/// Loops are at most three deep: the recursion ends.
fn find<'p>(
    advance: &mut Advance<'p>,
    list: &StepList<'p>,
    frame: &mut StepFrame,
    at: &StepAddress,
    work: AtStep<'_, 'p>,
) {
    let Some(step) = list.steps.get(frame.next) else { return };
    match &mut frame.current {
        Current::Open(open) if open.address == *at => {
            if let Some(step) = chosen(step, at) {
                work(advance, list, step, frame);
            }
        }
        Current::Items(items) => {
            let Some((index, step)) = at.item_of(&items.at).zip(chosen(step, &items.at)) else { return };
            let StepAction::Foreach(foreach) = &step.action else { return };
            if let Some(frame) = items.open.get_mut(&index) {
                let list = StepList::of_item(foreach, &items.at, index, frame);
                find(advance, &list, frame, at, work);
            }
        }
        _ => {}
    }
}

/// What a react step writes: its answer, as [`StepReturned`] brings it. `is_forced`: it was asked for because a limit was reached.
pub fn react_output(answer: &Answer, is_forced: bool) -> Value {
    let Answer { answer, confidence, summary } = answer;
    let mut output = serde_json::json!({ "answer": answer });
    if let Some(members) = output.as_object_mut() {
        members.extend(confidence.iter().map(|confidence| ("confidence".to_owned(), confidence.clone().into())));
        members.extend(summary.iter().map(|summary| ("summary".to_owned(), summary.as_str().into())));
        members.extend(is_forced.then(|| ("forced".to_owned(), true.into())));
    }
    output
}
