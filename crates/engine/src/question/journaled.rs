//! The calls and steps of a sub-run's question as journals hold them: times are numbers, and a call has no text of its id.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{EndedPart, Question, StepQuestion, WaitingCall};
use crate::asked_targets::AskedTargets;
use crate::decision::awaited_approval::AwaitedApproval;
use crate::event::CallId;
use crate::server_question::AskingServer;
use crate::stuck::Stuck;
use loopctl_lang::language::step::OnRejected;
use loopctl_lang::program::awaited_event::EventMatch;
use loopctl_lang::program::form::AskedField;

#[derive(Serialize, Deserialize)]
struct JournaledCall {
    call: CallId,
    action: String,
    action_input: Value,
    hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<AwaitedApproval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<Box<AskedTargets>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StepQuestion")]
struct JournaledStep {
    at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item_label: Option<String>,
    #[serde(flatten)]
    question: Question,
    action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action_input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    expected_keys: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    show: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<AskedField>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<AwaitedApproval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_rejected: Option<OnRejected>,
    #[serde(skip)]
    ends: Option<EndedPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_pause: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "calls")]
    calls: Vec<WaitingCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    awaits: Option<Box<EventMatch>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<Box<AskedTargets>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_by: Option<AskingServer>,
}

impl From<JournaledCall> for WaitingCall {
    fn from(written: JournaledCall) -> Self {
        let JournaledCall { call, action, action_input, hash, approval, ask } = written;
        Self { id: call.to_string(), call, action, action_input, hash, approval, ask }
    }
}

impl From<WaitingCall> for JournaledCall {
    fn from(waiting: WaitingCall) -> Self {
        let WaitingCall { call, action, action_input, hash, approval, ask, .. } = waiting;
        Self { call, action, action_input, hash, approval, ask }
    }
}

#[derive(Serialize, Deserialize)]
struct StepInJournal(#[serde(with = "JournaledStep")] StepQuestion);

impl From<StepInJournal> for StepQuestion {
    fn from(written: StepInJournal) -> Self {
        written.0
    }
}

impl From<StepQuestion> for StepInJournal {
    fn from(step: StepQuestion) -> Self {
        Self(step)
    }
}

/// The pattern that an agent is stuck in. A flattened field is read from a buffer, in which a number of arbitrary precision is
/// no number of serde.
pub(super) fn pattern<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Stuck>, D::Error> {
    serde_json::from_value(Value::deserialize(from)?).map_err(D::Error::custom)
}

/// A list in the journal's form.
macro_rules! in_journal {
    ($name:ident, $item:ty, $written:ty) => {
        pub(super) mod $name {
            use serde::{Deserialize as _, Deserializer, Serializer};

            pub fn serialize<S: Serializer>(items: &[$item], to: S) -> Result<S::Ok, S::Error> {
                to.collect_seq(items.iter().cloned().map(<$written>::from))
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<$item>, D::Error> {
                let written = Vec::<$written>::deserialize(from)?;
                Ok(written.into_iter().map(<$item>::from).collect())
            }
        }
    };
}
in_journal!(calls, super::WaitingCall, super::JournaledCall);
in_journal!(steps, super::StepQuestion, super::StepInJournal);
