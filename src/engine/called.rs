//! Calls that are runs of another loop: they wait for a human as that run does, and what the human
//! decides is kept with the call until the run has it.

use super::budget;
use super::effect::{Effect, Effects};
use super::event::{CallId, Decided, Decision, SubrunCall, SubrunQuestion, Tokens, ToolPaused};
use super::human::{self, OTHER, SEVERAL};
use super::outcome::Pause;
use super::state::{Call, CallProgress, Phase, State, Turn, Waits};
use super::step::Refused;
use super::turn;
use crate::program::Program;

#[cfg(test)]
mod tests;

/// The run that a call is waits for a human.
pub(super) fn paused(program: &Program, state: &mut State, mut turn: Turn, paused: ToolPaused) -> Effects {
    if let Some(call) = turn.calls.iter_mut().find(|call| call.id == paused.call) {
        count(program, state, &call.progress, (paused.tokens, paused.cost_usd));
        let counted = (paused.tokens.unwrap_or_default(), paused.cost_usd.unwrap_or_default());
        call.run_id = Some(paused.run_id.into_boxed_str());
        call.progress =
            CallProgress::Waits(Box::new(Waits { asks: paused.asks, decided: None, again: false, counted }));
    }
    turn::settle(program, state, turn)
}

/// The first call whose run waits for a human who has not decided.
pub(super) fn waits(turn: &Turn) -> Option<CallId> {
    let undecided = |call: &&Call| matches!(&call.progress, CallProgress::Waits(waits) if waits.decided.is_none());
    turn.calls.iter().find(undecided).map(|call| call.id)
}

/// The run waits as the run does that the call is.
pub(super) fn pause(state: &mut State, turn: Turn, id: CallId) -> Effects {
    let waits = turn.calls.iter().find(|call| call.id == id).map(|call| &call.progress);
    let Some(CallProgress::Waits(waits)) = waits else { return Vec::new() };
    let asks = waits.asks.clone();
    turn::pause(state, asks.kind, asks.question.clone(), (Some(turn), vec![id]));
    if let Phase::Paused { pause, .. } = &mut state.phase {
        pause.context = asks.context.clone();
        pause.options = asks.options.clone();
        pause.stuck = asks.stuck.clone();
        pause.asks = Some(Box::new(asks));
    }
    Vec::new()
}

/// Whether a decision is of the kind that the run waits for. Whether it fits in all else, only that run
/// can tell.
///
/// # Errors
/// Why it is not, and what would be.
pub(super) fn fits(asks: &SubrunQuestion, decided: &Decided) -> Result<(), Refused> {
    if let Some(id) = decided.call
        && !asks.calls.iter().any(|asked| asked.call == id)
    {
        return Err(Refused::new(format!("call {id} of run {} does not wait", asks.run_id)));
    }
    let only = meant(asks, decided);
    if decided.hash.is_some() && only.is_none() {
        return Err(Refused::new(OTHER));
    }
    let yes = !matches!(decided.decision, Decision::Answer(_) | Decision::Deny(_));
    if yes && asks.calls.len() > 1 && only.is_none() {
        return Err(Refused::new(SEVERAL));
    }
    human::of_kind(asks.kind, &decided.decision)
}

/// The one call of the run that asks which the decision names, by its place or by its hash.
fn meant(asks: &SubrunQuestion, decided: &Decided) -> Option<CallId> {
    let Some(hash) = &decided.hash else { return decided.call };
    let named = |asked: &&SubrunCall| asked.hash == *hash && decided.call.is_none_or(|id| id == asked.call);
    asks.calls.iter().find(named).map(|asked| asked.call)
}

/// Has the runs asked again that wait for a human: what they asked may no longer be so.
pub(super) fn asked_again(mut turn: Turn, state: &mut State) -> Effects {
    let mut effects = Vec::new();
    for call in &mut turn.calls {
        if let CallProgress::Waits(waits) = &mut call.progress {
            waits.again = waits.decided.is_none();
            effects.push(Effect::CallTool(call.id));
        }
    }
    state.phase = Phase::Acting { turn };
    effects
}

/// Keeps what the human decided with the call, and has it handed on.
pub(super) fn decided(
    program: &Program,
    state: &mut State,
    (pause, mut turn): (Pause, Turn),
    decided: &Decided,
) -> Effects {
    let mut effects = Vec::new();
    for call in turn.calls.iter_mut().filter(|call| pause.calls.contains(&call.id)) {
        if let CallProgress::Waits(waits) = &mut call.progress {
            let pause = Some(waits.asks.pause);
            waits.decided = Some(Decided { pause, call: meant(&waits.asks, decided), ..decided.clone() });
            effects.push(Effect::CallTool(call.id));
        }
    }
    effects.extend(turn::settle(program, state, turn));
    effects
}

/// Counts what a call used, without what was counted when it waited.
pub(super) fn count(
    program: &Program,
    state: &mut State,
    before: &CallProgress,
    (tokens, cost_usd): (Option<Tokens>, Option<f64>),
) {
    let counted = match before {
        CallProgress::Waits(waits) => waits.counted,
        _ => (Tokens::default(), 0.0),
    };
    let Some(tokens) = tokens else { return };
    let tokens = Tokens {
        input: tokens.input.saturating_sub(counted.0.input),
        output: tokens.output.saturating_sub(counted.0.output),
    };
    budget::charge(program, state, tokens, cost_usd.map(|cost| cost - counted.1));
}
