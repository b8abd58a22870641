//! Sub-runs: calls that are runs of another loop. Such a call waits for a human while its sub-run does, and
//! keeps the decision until the sub-run has it.

use super::approval::{NOT_ESCALATED, may_take};
use super::awaited_approval::AwaitedApproval;
use super::budget;
use super::decision::{self, OTHER_CALL, SEVERAL_CALLS};
use super::effect::{Effect, Effects, Refused};
use super::event::{CallId, Decided, Decision, DecisionRights, SubrunCall, SubrunQuestion, Tokens, ToolPaused};
use super::flow::question::{StepQuestion, meant as meant_steps};
use super::next::Next;
use super::outcome::{Pause, Termination};
use super::state::{Call, CallProgress, Phase, SettledCost, State, Turn, Waits};
use crate::program::Program;

#[cfg(test)]
mod tests;

/// A sub-run waits for a human.
pub(super) fn paused(program: &Program, state: &mut State, mut turn: Turn, paused: ToolPaused) -> Next {
    let call = match turn.call_under_way(paused.call) {
        Ok(call) => call,
        Err(refused) => return Next::Refuse { phase: Phase::Acting { turn }, refused },
    };
    count(program, state, &call.progress, paused.tokens, paused.cost_usd);
    let settled =
        SettledCost { tokens: paused.tokens.unwrap_or_default(), cost_usd: paused.cost_usd.unwrap_or_default() };
    call.run_id = Some(paused.run_id.into_boxed_str());
    call.progress = CallProgress::Waits(Box::new(Waits { asks: paused.asks, decided: None, again: false, settled }));
    Next::Settle(turn)
}

/// The first call whose sub-run waits for a human who has not decided.
fn undecided(turn: &Turn) -> Option<(CallId, SubrunQuestion)> {
    turn.calls.iter().find_map(|call| match &call.progress {
        CallProgress::Waits(waits) if waits.decided.is_none() => Some((call.id, waits.asks.clone())),
        _ => None,
    })
}

/// The pause for the first sub-run that waits for a human, with that sub-run's question.
pub(super) fn pause(state: &mut State, turn: &Turn) -> Option<Box<Pause>> {
    let (id, asks) = undecided(turn)?;
    let pause = state.new_pause(asks.kind, asks.question.clone(), vec![id]);
    Some(Box::new(Pause {
        context: asks.context.clone(),
        options: asks.options.clone(),
        stuck: asks.stuck.clone(),
        asks: Some(Box::new(asks)),
        ..*pause
    }))
}

/// Whether a decision is of the kind that the sub-run waits for. Only the sub-run can check the rest.
///
/// # Errors
/// Why it is not, and which kinds are.
pub(super) fn fits(asks: &SubrunQuestion, decided: &Decided, now_ms: i64) -> Result<(), Refused> {
    if !asks.steps.is_empty() {
        return fits_steps(asks, decided, now_ms);
    }
    if let Some(id) = decided.call
        && !asks.calls.iter().any(|asked| asked.call == id)
    {
        return Err(Refused::new(format!("call {id} of run {} does not wait", asks.run_id)));
    }
    let only = meant(asks, decided);
    if decided.hash.is_some() && only.is_none() {
        return Err(Refused::new(OTHER_CALL));
    }
    let yes = !matches!(decided.decision, Decision::Answer(_) | Decision::Deny(_));
    if yes && asks.calls.len() > 1 && only.is_none() {
        return Err(Refused::new(SEVERAL_CALLS));
    }
    decision::is_of_kind(asks.kind, &decided.decision)?;
    if decided.rights == DecisionRights::Escalated && asks.kind != Termination::Approval {
        return Err(Refused::new(NOT_ESCALATED));
    }
    let plain = AwaitedApproval::default();
    let is_meant = |asked: &&SubrunCall| asks.kind == Termination::Approval && only.is_none_or(|id| id == asked.call);
    asks.calls
        .iter()
        .filter(is_meant)
        .try_for_each(|asked| may_take(asked.approval.as_ref().unwrap_or(&plain), &asked.action, decided, now_ms))
}

/// The same for the steps of a workflow. Only it can check what is asked in the runs of its steps.
fn fits_steps(asks: &SubrunQuestion, decided: &Decided, now_ms: i64) -> Result<(), Refused> {
    let waiting: Vec<StepQuestion> = asks.steps.iter().map(StepQuestion::from).collect();
    for question in meant_steps(&waiting, decided)? {
        decision::is_of_kind(question.kind, &decided.decision)?;
        if decided.rights == DecisionRights::Escalated && question.kind != Termination::Approval {
            return Err(Refused::new(NOT_ESCALATED));
        }
        if let Some(awaited) = &question.approval {
            may_take(awaited, &question.action, decided, now_ms)?;
        }
    }
    Ok(())
}

/// The one call of the sub-run that the decision names, by its id or by its hash.
pub(super) fn meant(asks: &SubrunQuestion, decided: &Decided) -> Option<CallId> {
    let Some(hash) = &decided.hash else { return decided.call };
    if !asks.steps.is_empty() {
        // The workflow finds its step by the address or the hash, and the run of the step its call.
        return decided.call;
    }
    let named = |asked: &&SubrunCall| asked.hash == *hash && decided.call.is_none_or(|id| id == asked.call);
    asks.calls.iter().find(named).map(|asked| asked.call)
}

/// Asks the sub-runs again that wait for a human, because their questions may have changed.
pub(super) fn ask_again(mut turn: Turn, effects: &mut Effects) -> Next {
    for call in &mut turn.calls {
        if let CallProgress::Waits(waits) = &mut call.progress {
            waits.again = waits.decided.is_none();
            effects.push(Effect::CallTool(call.id));
        }
    }
    Next::Wait(Phase::Acting { turn })
}

/// Keeps the decision with the call, and requests that it is passed on.
pub(super) fn decided(pause: &Pause, mut turn: Turn, decided: &Decided, effects: &mut Effects) -> Next {
    let waiting = |call: &&mut Call| pause.calls.contains(&call.id);
    for call in turn.calls.iter_mut().filter(waiting) {
        if let CallProgress::Waits(waits) = &mut call.progress {
            let pause = Some(waits.asks.pause);
            waits.decided = Some(Decided { pause, call: meant(&waits.asks, decided), ..decided.clone() });
            effects.push(Effect::CallTool(call.id));
        }
    }
    Next::Settle(turn)
}

/// Counts what a call used, without the part that was counted when it paused.
pub(super) fn count(
    program: &Program,
    state: &mut State,
    before: &CallProgress,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
) {
    let settled = match before {
        CallProgress::Waits(waits) => waits.settled,
        _ => SettledCost::default(),
    };
    let Some(tokens) = tokens else { return };
    let tokens = tokens.minus(settled.tokens);
    budget::charge(program, state, tokens, cost_usd.map(|cost| cost - settled.cost_usd));
}
