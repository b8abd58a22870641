//! The decision of a human about a pause.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CallId;

/// What a human decided about a pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The pause that is meant, from 1; `None` is the one that the run is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<u32>,
    /// Which of several waiting calls; `None` is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The address of the step of a workflow; `None` is the only one that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The hash of the call as it was shown; the decision is refused when the call is another one now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The decision.
    pub decision: Decision,
    /// Who decided: the name of a token, or a user of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Other names under which the same person may have approved the call before: [`Decided::known_as`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// What they said about it, for the record. The model does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What who decides may decide about.
    #[serde(default, skip_serializing_if = "DecisionRights::is_all")]
    pub rights: DecisionRights,
    /// When the event from outside came that decides, in milliseconds since 1970: one that came in time is in time, whenever its
    /// run is driven. None for a human.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_at_ms: Option<i64>,
}

/// Who decides with the token of a posted pause, where nobody knows who started the run; in older journals also where that
/// is known.
pub const CALLBACK: &str = "callback";
/// The other name of somebody who may be any person.
pub const ANYBODY: &str = "*";

/// Who decides with the token of a pause that was posted for the run of this person: the token carries their rights.
pub fn callback_of(starter: &str) -> String {
    format!("{CALLBACK} of {starter}")
}

impl Decided {
    /// The same with all names of who decides, in a run of this starter. Who started a run gets its answer tokens, so that
    /// their own decisions and those by such a token are of one person. Where nobody knows who started a run that is posted,
    /// who answers may be anybody. They are part of the event, because the fold of older events must not change.
    #[must_use]
    pub fn known_as(mut self, starter: Option<&str>, is_posted: bool) -> Self {
        let Some(by) = self.by.as_deref() else { return self };
        let Some(starter) = starter else {
            if is_posted && matches!(self.decision, Decision::Approve | Decision::Edit(_)) {
                self.also = vec![if by == CALLBACK { ANYBODY } else { CALLBACK }.to_owned()];
            }
            return self;
        };
        let posted = callback_of(starter);
        if by == starter {
            self.also = vec![posted, CALLBACK.to_owned()];
        } else if by == posted {
            self.also = vec![starter.to_owned(), CALLBACK.to_owned()];
        }
        self
    }

    /// Whether who decides may be the person who answered before with the token of a posted pause, which is not known: then
    /// one of the two counts.
    pub fn may_have_answered(&self) -> bool {
        self.by.as_deref() != Some(CALLBACK) && self.also == [CALLBACK]
    }

    /// Whether an event from outside decides, and no human. No token and no user of a machine has such a name.
    pub fn is_of_event(&self) -> bool {
        self.by.as_deref().is_some_and(|by| by.starts_with("event "))
    }

    /// All names of who decides.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by.iter().chain(&self.also).map(String::as_str)
    }
}

/// What a decision may be about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionRights {
    /// Everything: a user of the machine, or a token with all scopes.
    #[default]
    All,
    /// Everything but approvals that were escalated.
    Ordinary,
    /// Approvals that were escalated.
    Escalated,
}

impl DecisionRights {
    /// What both of them are about; none if that is nothing.
    pub fn within(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::All, rights) | (rights, Self::All) => Some(rights),
            (one, other) => (one == other).then_some(one),
        }
    }

    /// Whether it may be about everything.
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }
}

impl From<Decision> for Decided {
    /// A decision about all that waits in the pause that the run is in.
    fn from(decision: Decision) -> Self {
        Self {
            pause: None,
            call: None,
            at: None,
            hash: None,
            decision,
            by: None,
            also: Vec::new(),
            comment: None,
            rights: DecisionRights::All,
            came_at_ms: None,
        }
    }
}

/// A human's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// An answer to a question, or guidance for a stuck run.
    Answer(String),
    /// Make the waiting call.
    Approve,
    /// Do not make the waiting call.
    Deny(Option<String>),
    /// Make the waiting call with this input.
    Edit(Value),
    /// The uncertain call did happen, with this result.
    Happened(Value),
    /// The uncertain call failed, for this reason.
    Failed(String),
    /// Make the uncertain call again.
    Retry,
}

/// The kind of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// [`Decision::Answer`].
    Answer,
    /// [`Decision::Approve`].
    Approve,
    /// [`Decision::Deny`].
    Deny,
    /// [`Decision::Edit`].
    Edit,
    /// [`Decision::Happened`].
    Happened,
    /// [`Decision::Failed`].
    Fail,
    /// [`Decision::Retry`].
    Retry,
    /// Nobody decided in time; see `EventKind::ApprovalExpired`.
    Expired,
}

impl Decision {
    /// Its kind.
    pub fn kind(&self) -> DecisionKind {
        match self {
            Self::Answer(_) => DecisionKind::Answer,
            Self::Approve => DecisionKind::Approve,
            Self::Deny(_) => DecisionKind::Deny,
            Self::Edit(_) => DecisionKind::Edit,
            Self::Happened(_) => DecisionKind::Happened,
            Self::Failed(_) => DecisionKind::Fail,
            Self::Retry => DecisionKind::Retry,
        }
    }
}

impl DecisionKind {
    /// As requests, flags and records name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Edit => "edit",
            Self::Happened => "happened",
            Self::Fail => "fail",
            Self::Retry => "retry",
            Self::Expired => "expired",
        }
    }
}
