//! Sub-runs: calls that are runs of another loop. Such a call waits for a human while its sub-run does, and
//! keeps the decision until the sub-run has it.

use super::budget;
use super::effect::{Effect, Effects};
use super::event::{CallId, Decided, Tokens, ToolPaused};
use super::next::Next;
use super::operation::{Call, SettledCost};
use super::outcome::Pause;
use super::question::SubrunQuestion;
use super::state::{LoopState, Phase, Turn};
use loopctl_lang::program::LoopProgram;

#[cfg(test)]
mod tests;

/// A sub-run waits for a human.
pub(super) fn paused(program: &LoopProgram, state: &mut LoopState, mut turn: Turn, paused: ToolPaused) -> Next {
    let call = match turn.call_under_way(paused.call) {
        Ok(call) => call,
        Err(refused) => return Next::Refuse { phase: Phase::Acting { turn }, refused },
    };
    let ToolPaused { run_id, asks, tokens, cost_usd, .. } = paused;
    count(program, state, call.settled, tokens, cost_usd);
    call.waits(&run_id, asks, SettledCost::of(tokens, cost_usd));
    Next::Settle(turn)
}

/// The first call whose sub-run waits for a human who has not decided.
fn undecided(turn: &Turn) -> Option<(CallId, SubrunQuestion)> {
    let mut open = turn.calls.iter().filter_map(|call| Some((call.address, call.progress.subrun()?)));
    open.find(|(_, wait)| wait.decided.is_none()).map(|(id, wait)| (id, wait.asks.clone()))
}

/// The pause for the first sub-run that waits for a human, with that sub-run's question.
pub(super) fn pause(state: &mut LoopState, turn: &Turn) -> Option<Box<Pause>> {
    let (id, asks) = undecided(turn)?;
    let pause = state.new_pause(asks.question.clone(), vec![id]);
    Some(Box::new(Pause { asks: Some(Box::new(asks)), ..*pause }))
}

/// Asks the sub-runs again that wait for a human, because their questions may have changed.
pub(super) fn ask_again(mut turn: Turn, effects: &mut Effects) -> Next {
    for call in &mut turn.calls {
        if call.ask_again() {
            effects.push(Effect::CallTool(call.address));
        }
    }
    Next::Wait(Phase::Acting { turn })
}

/// Keeps the decision with the call, and requests that it is passed on.
pub(super) fn decided(pause: &Pause, mut turn: Turn, decided: &Decided, effects: &mut Effects) -> Next {
    let waiting = |call: &&mut Call| pause.calls.contains(&call.address) && call.progress.subrun().is_some();
    for call in turn.calls.iter_mut().filter(waiting) {
        call.decide(decided);
        effects.push(Effect::CallTool(call.address));
    }
    Next::Settle(turn)
}

/// Counts what a call used, without the part that was counted when it paused.
pub(super) fn count(
    program: &LoopProgram,
    state: &mut LoopState,
    settled: SettledCost,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
) {
    let Some(tokens) = tokens else { return };
    let tokens = tokens.minus(settled.tokens);
    budget::charge(program, state, tokens, cost_usd.map(|cost| cost - settled.cost_usd));
}
