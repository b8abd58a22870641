//! The calls that wait for a human.

use super::consent;
use super::flow;
use super::outcome::Termination;
use super::record::WaitingCall;
use super::state::{CallProgress, Phase, State};

/// The calls that wait for a human's decision, in their order: those of the run, or of the sub-run that asks. The
/// model's own question is not one of them: [`Question`] holds it.
pub fn waiting_calls(state: &State) -> Vec<WaitingCall> {
    let Phase::Paused { pause, .. } = &state.phase else { return Vec::new() };
    let steps = flow::waiting_steps(state);
    if state.flow.is_some() || !steps.is_empty() {
        return flow::calls(&steps);
    }
    if !matches!(pause.kind, Termination::Approval | Termination::Uncertain) {
        return Vec::new();
    }
    if let Some(asks) = &pause.asks {
        return asks.calls.iter().map(WaitingCall::from).collect();
    }
    let calls = pause.calls.iter().filter_map(|id| state.call(*id));
    calls
        .filter(|call| !matches!(call.progress, CallProgress::Done { .. } | CallProgress::Held | CallProgress::Asked))
        .map(|call| WaitingCall {
            id: call.id.to_string(),
            iteration: call.id.iteration,
            index: call.id.index,
            action: call.tool.clone(),
            action_input: call.input.clone(),
            hash: consent::hash(&state.header, call),
            approval: match &call.progress {
                CallProgress::AwaitsApproval(awaited) if !awaited.is_plain() => Some((**awaited).clone()),
                _ => None,
            },
        })
        .collect()
}
