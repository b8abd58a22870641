//! The approval that a waiting call needs: who has given it so far, and until when it can be given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{ANYBODY, CALLBACK, Decided, Decision, DecisionRights};
use crate::refused::Refused;
use crate::timestamp::{as_rfc3339_if_any, from_rfc3339_if_any, rfc3339};
pub use loopctl_lang::language::approval::OnExpiry;
use loopctl_lang::program::approval::{ApprovalNeed, ApprovalPolicy, CallRules};

/// What the approval of a waiting call needs, and what it has. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitedApproval {
    /// Why the condition of `requires_approval` can't be evaluated; the call asks for approval then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many different people must approve it; left out when one is enough.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub approvers: u32,
    /// Who has approved it so far, when several must.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved_by: Vec<String>,
    /// Until when it can be approved, RFC 3339.
    #[serde(
        rename = "expires_at",
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_rfc3339_if_any",
        deserialize_with = "from_rfc3339_if_any"
    )]
    #[schemars(with = "Option<String>")]
    pub expires_at_ms: Option<i64>,
    /// What happens then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_expiry: Option<OnExpiry>,
    /// Whether nobody decided in time, so that only holders of the scope `decide:escalated` may decide now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalated: bool,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_one(approvers: &u32) -> bool {
    *approvers == 1
}

impl Default for AwaitedApproval {
    /// One approval of anybody is enough.
    fn default() -> Self {
        Self {
            why: None,
            approvers: 1,
            approved_by: Vec::new(),
            expires_at_ms: None,
            on_expiry: None,
            escalated: false,
        }
    }
}

impl AwaitedApproval {
    /// The approval that a call with this input needs before it is made; none when it needs none.
    pub(crate) fn of(policy: &ApprovalPolicy, input: &Value, by: &CallRules<'_>) -> Option<Self> {
        let why = match policy.of_call(input, by) {
            ApprovalNeed::NotNeeded => return None,
            ApprovalNeed::Needed => None,
            ApprovalNeed::Unknown { why } => Some(why),
        };
        Some(Self { why, approvers: policy.approvers, ..Self::default() })
    }

    /// Whether there is nothing to say about it.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The run waits for it from now on.
    pub(crate) fn begin(&mut self, policy: &ApprovalPolicy, now_ms: i64) {
        if let (None, false, Some(after_ms)) = (self.expires_at_ms, self.escalated, policy.expires_after_ms) {
            self.expires_at_ms = Some(now_ms.saturating_add_unsigned(after_ms));
            self.on_expiry = Some(policy.on_expiry);
        }
    }

    /// Whether nobody decided in time.
    pub(crate) fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// From now on, only holders of the scope `decide:escalated` may decide.
    pub(crate) fn escalate(&mut self) {
        (self.expires_at_ms, self.on_expiry, self.escalated) = (None, None, true);
    }

    /// What a question about a call says beside whether it may be made: each sentence begins with a blank.
    pub(crate) fn remarks(&self, name: &str) -> String {
        let escalated = self.escalated.then(|| format!(" Nobody approved {name} in time: it was escalated."));
        let unknown =
            self.why.as_ref().map(|why| format!(" Whether {name} needs an approval can't be decided: {why}."));
        escalated.into_iter().chain(unknown).collect()
    }

    /// Adds an approval; whether it is the last one that is needed. That of a person who is known takes the place of one of
    /// somebody who may be the same.
    pub(crate) fn approve(&mut self, decided: &Decided) -> bool {
        if self.approvers <= 1 {
            return true;
        }
        if decided.may_have_answered() {
            self.approved_by.retain(|known| known != CALLBACK);
        }
        self.approved_by.extend(decided.by.clone());
        self.approved() >= self.approvers
    }

    /// How many have approved it.
    pub(crate) fn approved(&self) -> u32 {
        u32::try_from(self.approved_by.len()).unwrap_or(u32::MAX)
    }

    /// The name under which who decides has approved it already.
    pub fn approval_of(&self, decided: &Decided) -> Option<&str> {
        if decided.names().any(|name| name == ANYBODY) {
            return self.approved_by.first().map(String::as_str);
        }
        let replaces = decided.may_have_answered();
        let is_same = |known: &&String| {
            decided.names().any(|name| name == known.as_str()) && !(replaces && known.as_str() == CALLBACK)
        };
        self.approved_by.iter().find(is_same).map(String::as_str)
    }
}

/// Whether a decision about a waiting call may be taken.
///
/// # Errors
/// A sentence that says why not.
pub(crate) fn may_take(awaited: &AwaitedApproval, tool: &str, decided: &Decided, now_ms: i64) -> Result<(), Refused> {
    if awaited.is_expired(now_ms) {
        let at = rfc3339(awaited.expires_at_ms.unwrap_or_default());
        let then = match awaited.on_expiry.unwrap_or_default() {
            OnExpiry::Deny => "the run continues without the call when it is resumed",
            OnExpiry::Fail => "the run fails when it is resumed",
            OnExpiry::Escalate => "the question is escalated when the run is resumed",
        };
        return Err(Refused::expired(format!("nobody approved the call of {tool} in time (until {at}): {then}")));
    }
    match (decided.rights, awaited.escalated) {
        (DecisionRights::Ordinary, true) => {
            return Err(Refused::rights(format!(
                "nobody approved the call of {tool} in time, so it was escalated: a decision needs the scope \
                 `decide:escalated`"
            )));
        }
        (DecisionRights::Escalated, false) => return Err(Refused::rights(NOT_ESCALATED)),
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
pub(crate) const NOT_ESCALATED: &str =
    "the scope `decide:escalated` decides about escalated approvals only: this decision needs `decide`";
