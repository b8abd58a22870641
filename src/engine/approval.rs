//! Approvals and the decisions about them: whether a decision may be taken, and when an approval expires.

use super::awaited_approval::{AwaitedApproval, OnExpiry};
use super::effect::Refused;
use super::event::{CALLBACK, Decided, Decision, DecisionRights};
use super::state::{Call, CallProgress, Phase, State};
use super::timestamp::rfc3339;

/// Whether a decision about a waiting call may be taken.
///
/// # Errors
/// A sentence that says why not.
pub(super) fn may_take(awaited: &AwaitedApproval, tool: &str, decided: &Decided, now_ms: i64) -> Result<(), Refused> {
    if awaited.is_expired(now_ms) {
        let at = rfc3339(awaited.expires_at_ms.unwrap_or_default());
        let then = match awaited.on_expiry.unwrap_or_default() {
            OnExpiry::Deny => "the run continues without the call when it is resumed",
            OnExpiry::Fail => "the run fails when it is resumed",
            OnExpiry::Escalate => "the question is escalated when the run is resumed",
        };
        return Err(Refused::new(format!("nobody approved the call of {tool} in time (until {at}): {then}")));
    }
    match (decided.rights, awaited.escalated) {
        (DecisionRights::Ordinary, true) => {
            return Err(Refused::new(format!(
                "nobody approved the call of {tool} in time, so it was escalated: a decision needs the scope \
                 `decide:escalated`"
            )));
        }
        (DecisionRights::Escalated, false) => return Err(Refused::new(NOT_ESCALATED)),
        _ => {}
    }
    if awaited.approvers <= 1 || !matches!(decided.decision, Decision::Approve | Decision::Edit(_)) {
        return Ok(());
    }
    let Some(by) = &decided.by else {
        return Err(Refused::new(format!(
            "{} different people must approve the call of {tool}, and nobody knows who decides here: decide with a \
             token, or on the command line",
            awaited.approvers
        )));
    };
    let known = awaited.approval_of(decided).filter(|_| matches!(decided.decision, Decision::Approve));
    let Some(known) = known else { return Ok(()) };
    let same = match by.as_str() {
        by if known == by => String::new(),
        CALLBACK => ", and nobody knows whether who answers a posted pause is another person".to_owned(),
        by => format!(", and {by} is the same person"),
    };
    Err(Refused::new(format!(
        "{known} has approved the call of {tool} already ({} of {}){same}: another person must approve it too",
        awaited.approved(),
        awaited.approvers
    )))
}

/// A holder of the scope `decide:escalated` alone decides about something else.
pub(super) const NOT_ESCALATED: &str =
    "the scope `decide:escalated` decides about escalated approvals only: this decision needs `decide`";

/// Whether an approval has expired whose expiry fails the run.
pub fn fails_by(state: &State, now_ms: i64) -> bool {
    let Phase::Paused { pause, turn: Some(turn) } = &state.phase else { return false };
    turn.calls.iter().filter(|call| pause.calls.contains(&call.id)).any(|call| match &call.progress {
        CallProgress::AwaitsApproval(awaited) => {
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
    let is_meant = |call: &&Call| pause.calls.contains(&call.id) && decided.call.is_none_or(|id| id == call.id);
    turn.calls.iter().filter(is_meant).any(|call| match &call.progress {
        CallProgress::AwaitsApproval(awaited) => awaited.approval_of(decided).is_some(),
        _ => false,
    })
}
