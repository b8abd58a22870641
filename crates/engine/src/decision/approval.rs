//! Approvals and the decisions about them: whether a decision may be taken, and when an approval expires.

use super::awaited_approval::OnExpiry;
use crate::event::{Decided, Decision};
use crate::operation::{AskedFor, Call, Progress};
use crate::state::{Phase, State};

/// Whether an approval has expired whose expiry fails the run.
pub fn fails_by(state: &State, now_ms: i64) -> bool {
    let Phase::Paused { pause, turn: Some(turn) } = &state.phase else { return false };
    turn.calls.iter().filter(|call| pause.calls.contains(&call.address)).any(|call| match &call.progress {
        Progress::Asks(AskedFor::Approval(awaited)) => {
            awaited.is_expired(now_ms) && awaited.on_expiry == Some(OnExpiry::Fail)
        }
        _ => false,
    })
}

/// Whether who decides has approved the waiting call already that the decision is about.
pub fn is_approved_by(state: &State, decided: &Decided) -> bool {
    let (Phase::Paused { pause, turn: Some(turn) }, Decision::Approve) = (&state.phase, &decided.decision) else {
        return false;
    };
    let is_meant =
        |call: &&Call| pause.calls.contains(&call.address) && decided.call.is_none_or(|id| id == call.address);
    turn.calls.iter().filter(is_meant).any(|call| match &call.progress {
        Progress::Asks(AskedFor::Approval(awaited)) => awaited.approval_of(decided).is_some(),
        _ => false,
    })
}
