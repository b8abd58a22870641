//! Whether a decision fits what a sub-run asks.

use super::awaited_approval::{AwaitedApproval, NOT_ESCALATED, may_take};
use super::form;
use crate::decision;
use crate::effect::Refused;
use crate::event::{CallId, Decided, Decision, DecisionRights};
use crate::flow::question::meant as meant_steps;
use crate::outcome::Termination;
use crate::question::{SubrunQuestion, WaitingCall};

/// Whether a decision is of the kind that the sub-run waits for. Only the sub-run can check the rest.
///
/// # Errors
/// Why it is not, and which kinds are.
pub(crate) fn fits(asks: &SubrunQuestion, decided: &Decided, now_ms: i64) -> Result<(), Refused> {
    if !asks.steps.is_empty() {
        return fits_steps(asks, decided, now_ms);
    }
    if let Some(id) = decided.call
        && !asks.calls.iter().any(|asked| asked.call == id)
    {
        return Err(Refused::new(format!("call {id} of run {} does not wait", asks.run_id())));
    }
    let only = meant(asks, decided);
    if decided.hash.is_some() && only.is_none() {
        return Err(Refused::Unseen);
    }
    let yes = !matches!(decided.decision, Decision::Answer(_) | Decision::Deny(_));
    if yes && asks.calls.len() > 1 && only.is_none() {
        return Err(Refused::SeveralCalls);
    }
    decision::is_of_kind(asks.question.kind, &decided.decision)?;
    if decided.rights == DecisionRights::Escalated && asks.question.kind != Termination::Approval {
        return Err(Refused::rights(NOT_ESCALATED));
    }
    let plain = AwaitedApproval::default();
    let is_meant =
        |asked: &&WaitingCall| asks.question.kind == Termination::Approval && only.is_none_or(|id| id == asked.call);
    asks.calls
        .iter()
        .filter(is_meant)
        .try_for_each(|asked| may_take(asked.approval.as_ref().unwrap_or(&plain), &asked.action, decided, now_ms))
}

/// The same for the steps of a workflow. Only it can check what is asked in the runs of its steps.
fn fits_steps(asks: &SubrunQuestion, decided: &Decided, now_ms: i64) -> Result<(), Refused> {
    for question in meant_steps(&asks.steps, decided)? {
        // A no declines what a server asks.
        if !(question.asked_by.is_some() && matches!(decided.decision, Decision::Deny(_))) {
            decision::is_of_kind(question.question.kind, &decided.decision)?;
        }
        if decided.rights == DecisionRights::Escalated && question.question.kind != Termination::Approval {
            return Err(Refused::rights(NOT_ESCALATED));
        }
        if let Decision::Answer(answer) = &decided.decision {
            form::judge(question, answer).map_err(|refusal| Refused::new(refusal.why))?;
        }
        if let Some(awaited) = &question.approval {
            may_take(awaited, &question.action, decided, now_ms)?;
        }
    }
    Ok(())
}

/// The one call of the sub-run that the decision names, by its id or by its hash.
pub(crate) fn meant(asks: &SubrunQuestion, decided: &Decided) -> Option<CallId> {
    let Some(hash) = &decided.hash else { return decided.call };
    if !asks.steps.is_empty() {
        // The workflow finds its step by the address or the hash, and the run of the step its call.
        return decided.call;
    }
    let named = |asked: &&WaitingCall| asked.hash == *hash && decided.call.is_none_or(|id| id == asked.call);
    asks.calls.iter().find(named).map(|asked| asked.call)
}
