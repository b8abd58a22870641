//! The record of a human's decision: who decided what, when, and what it changed. What it changed is also said to the
//! model, which would report its own input otherwise.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::awaited_approval::AwaitedApproval;
use crate::call_attempt::CallAttempt;
use crate::event::{CallId, Decided, Decision, DecisionKind};
use crate::timestamp::{as_rfc3339, as_rfc3339_if_any};
use loopctl_lang::language::approval::OnExpiry;

/// A human's decision about a pause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DecisionRecord {
    /// The pause, from 1. For a step of a workflow that was decided while other steps ran: the last pause before, 0 for
    /// none.
    pub pause: u32,
    /// The call that it is about; none for a run that is stuck, and for a sub-run's call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The address of the step that it is about, in a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its kind: `answer`, `approve`, `deny`, `edit`, `happened` or `retry`; `expired` when nobody decided in time.
    #[schemars(with = "String")]
    pub decision: DecisionKind,
    /// Who decided: the name of a token, or a user of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When, RFC 3339.
    #[serde(rename = "at", serialize_with = "as_rfc3339")]
    #[schemars(with = "String")]
    pub at_ms: i64,
    /// When the call was made after it, RFC 3339.
    #[serde(rename = "called_at", skip_serializing_if = "Option::is_none", serialize_with = "as_rfc3339_if_any")]
    #[schemars(with = "Option<String>")]
    pub called_at_ms: Option<i64>,
    /// What they said about it. The model does not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The hash of the call as it was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The model's input, when the decision replaced it; the entry of the trace has the new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_before: Option<Value>,
    /// The sub-run that asked, when it was not this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// How many have approved the call with this decision, when several must.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalCount>,
    /// For `expired`: what followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
}

/// How many have approved a call that several must approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApprovalCount {
    /// The number that have.
    pub given: u32,
    /// The number that must.
    pub needed: u32,
}

impl ApprovalCount {
    /// The count of a call that several must approve.
    pub(crate) fn of(awaited: &AwaitedApproval) -> Option<Self> {
        (awaited.approvers > 1).then(|| Self { given: awaited.approved(), needed: awaited.approvers })
    }
}

impl DecisionRecord {
    /// Nobody decided in time.
    pub(crate) fn of_expiry(at_ms: i64, pause: u32, on_expiry: OnExpiry) -> Self {
        let nobody = Self::new(at_ms, pause, &Decided::from(Decision::Deny(None)));
        Self { decision: DecisionKind::Expired, on_expiry: Some(on_expiry), ..nobody }
    }

    /// A decision about a pause, and not about a call of this run.
    pub(crate) fn new(at_ms: i64, pause: u32, decided: &Decided) -> Self {
        Self {
            pause,
            call: None,
            step: None,
            decision: decided.decision.kind(),
            by: decided.by.clone(),
            at_ms,
            called_at_ms: None,
            comment: decided.comment.clone(),
            hash: None,
            input_before: None,
            run_id: None,
            approvals: None,
            on_expiry: None,
        }
    }

    /// The same about a call, as the call was before the decision.
    pub(crate) fn about(self, hash: String, input: &Value) -> Self {
        let is_edit = self.decision == DecisionKind::Edit;
        Self { hash: Some(hash), input_before: is_edit.then(|| input.clone()), ..self }
    }
}

/// Records when a call was made after the decisions about it.
pub(crate) fn called(decisions: &mut [DecisionRecord], call: CallId, at_ms: i64) {
    // The newest decisions are at the end, and calls of older iterations are over.
    let newer = |record: &&mut DecisionRecord| record.call.is_none_or(|id| id.iteration >= call.iteration);
    for record in decisions.iter_mut().rev().take_while(newer) {
        if record.call == Some(call) && record.called_at_ms.is_none() {
            record.called_at_ms = Some(at_ms);
        }
    }
}

/// What the model must know of a call that a human changed or answered for, before the observation: without it, the
/// model would report its own input, or a call that was not made. `attempts`: those of the call that failed.
pub(crate) fn note(
    decisions: &[DecisionRecord],
    call: CallId,
    input: &Value,
    attempts: &[CallAttempt],
) -> Option<String> {
    let mut about = decisions.iter().rev().filter(|record| record.call == Some(call));
    let last = about.next()?;
    // A call whose answer was lost may have been made again, and the process may have stopped then.
    let is_newest = |lost: &CallAttempt| about.next().is_none_or(|before| before.at_ms <= lost.at_ms);
    let doubt = match attempts.last().filter(|attempt| attempt.lost).is_some_and(is_newest) {
        true => "The answer to this call was lost",
        false => "The process stopped during this call",
    };
    let edited = decisions.iter().any(|record| record.call == Some(call) && record.decision == DecisionKind::Edit);
    let mut note = String::new();
    if edited {
        note =
            format!("[A human changed the input of this call before it was made. It was called with {}]\n", cut(input));
    }
    match last.decision {
        DecisionKind::Happened => note.push_str(&format!(
            "[{doubt}. A human says that it happened, and gave this result; it was not called again]\n"
        )),
        DecisionKind::Fail => {
            note.push_str(&format!("[{doubt}. A human says that it failed; it was not called again]\n"));
        }
        DecisionKind::Retry => note.push_str(&format!(
            "[{doubt}, and it may have happened then. A human decided to make it again; this is the result of the \
             second call]\n"
        )),
        DecisionKind::Answer
        | DecisionKind::Approve
        | DecisionKind::Deny
        | DecisionKind::Edit
        | DecisionKind::Expired => {}
    }
    (!note.is_empty()).then_some(note)
}

/// The most characters of an input in a note.
const NOTE_CHARS: usize = 2_000;

fn cut(input: &Value) -> String {
    let text = input.to_string();
    match text.char_indices().nth(NOTE_CHARS) {
        Some((at, _)) => format!("{}... (cut)", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
