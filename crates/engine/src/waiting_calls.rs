//! The calls that wait for a human.

use serde_json::Value;

use super::flow;
use super::operation::Progress;
use super::outcome::Termination;
use super::question::WaitingCall;
use super::state::{Phase, State};

/// The calls that wait for a human's decision, in their order: those of the run, or of the sub-run that asks. The
/// model's own question is not one of them: `Question` holds it.
pub fn waiting_calls(state: &State) -> Vec<WaitingCall> {
    let Phase::Paused { pause, .. } = &state.phase else { return Vec::new() };
    let steps = flow::waiting_steps(state);
    if matches!(state, State::Flow(_)) || !steps.is_empty() {
        return flow::calls(&steps);
    }
    if !matches!(pause.question.kind, Termination::Approval | Termination::Uncertain) {
        return Vec::new();
    }
    if let Some(asks) = &pause.asks {
        return asks.calls.clone();
    }
    let calls = pause.calls.iter().filter_map(|id| state.call(*id));
    calls
        .filter(|call| !matches!(call.progress, Progress::Done { .. } | Progress::Held | Progress::Requested))
        .map(|call| WaitingCall {
            id: call.address.to_string(),
            call: call.address,
            action: call.name.clone(),
            action_input: Value::clone(&call.input),
            hash: call.hash(&state.header),
            approval: call.progress.approval().filter(|awaited| !awaited.is_plain()).cloned(),
            ask: call.targets(),
        })
        .collect()
}
