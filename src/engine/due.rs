//! When a run that waits for a human stops waiting by itself.

use super::flow;
use super::outcome::Termination;
use super::state::{CallProgress, Phase, State};

/// When the earliest approval expires that a run waits for, in milliseconds since 1970.
pub fn due_at_ms(state: &State) -> Option<i64> {
    let Phase::Paused { pause, turn } = &state.phase else { return None };
    if let Some(of_flow) = &state.flow {
        return flow::due_at_ms(of_flow);
    }
    if pause.kind != Termination::Approval {
        return None;
    }
    if let Some(asks) = &pause.asks {
        return asks.calls.iter().filter_map(|call| call.approval.as_ref()?.expires_at_ms).min();
    }
    let calls = turn.iter().flat_map(|turn| &turn.calls).filter(|call| pause.calls.contains(&call.id));
    calls
        .filter_map(|call| match &call.progress {
            CallProgress::AwaitsApproval(awaited) => awaited.expires_at_ms,
            _ => None,
        })
        .min()
}
