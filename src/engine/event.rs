//! Events: everything that comes from outside. The journal of a run is a list of events, and its state is
//! their fold.

mod model;
mod reasoning;
mod tool;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::Blob;
use super::digest::Digest;
use crate::language::project::Price;

pub use model::{FailedAttempt, Finish, ModelFault, ModelFaultCode, Reply, SaidCall, Tokens};
pub use reasoning::Reasoning;
pub use tool::{CallId, SubrunCall, SubrunQuestion, ToolFault, ToolPaused, ToolResult, ToolReturned};

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "super::machine::WrittenEvent")]
pub struct Event {
    /// When it happened.
    pub at: Moment,
    /// What happened.
    pub kind: EventKind,
}

/// A moment of a run, by two clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// Milliseconds since 1970 by the machine's clock: for people, never for deadlines.
    pub wall_ms: i64,
    /// Milliseconds that the run has been active: monotonic, and still while it waits for a human.
    pub active_ms: u64,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The run started.
    Started(Box<Started>),
    /// The model replied.
    ModelReplied(Reply),
    /// The model summarised the messages that leave the conversation.
    Summarized(Reply),
    /// Requests to the model failed before the deadline or a cancellation ended the call.
    AttemptsFailed(Vec<FailedAttempt>),
    /// The request to the model failed after all retries and fallbacks.
    ModelFailed(ModelFault),
    /// A tool call ended.
    ToolReturned(ToolReturned),
    /// A sub-run waits for a human.
    ToolPaused(Box<ToolPaused>),
    /// The active time of the run is spent.
    DeadlinePassed,
    /// A human decided.
    Human(Decided),
    /// A driver resumed a run that was cut off or interrupted.
    Resumed,
    /// The driver stopped between two steps; the run can be resumed.
    Interrupted,
    /// The run was cancelled.
    Cancelled(Cancelled),
    /// The run continues with these documents instead of its former ones. All events of the run, earlier ones too, fit
    /// the new program: the driver checks that first.
    NewDocument(Vec<RunDocument>),
}

/// The start of a run: everything that it will ever need from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The run's id.
    pub run_id: String,
    /// The session whose memory it shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The loop's name.
    pub loop_name: String,
    /// The run's input.
    pub input: Value,
    /// The objective, rendered.
    pub objective: String,
    /// The system prompt, rendered: the conversation's first message.
    pub system: Blob,
    /// The model and what is known of it.
    pub model: ModelFacts,
    /// The memory of the session when the run started, and that of the earlier run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<String, Value>,
    /// The account of an earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// The active time that the run may take, in milliseconds, when it is not the document's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The run and the call that started it, when it is a sub-run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<ParentCall>,
    /// What that run had left to spend: a second bound besides the `budget` of the document.
    #[serde(default, skip_serializing_if = "Allowance::is_none")]
    pub bound: Allowance,
    /// The documents that the program was compiled from, by file name; the main one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<RunDocument>,
}

/// What a new run receives of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// The run's id.
    pub run_id: String,
    /// The account: one fact on each line, as JSON. Under 12,000 characters.
    pub account: String,
}

/// The call that started a sub-run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentCall {
    /// The run's id.
    pub run_id: String,
    /// Its call.
    pub call: CallId,
}

/// What a run may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Allowance {
    /// Tokens, read and written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Allowance {
    /// Whether nothing is bounded.
    pub fn is_none(&self) -> bool {
        self.tokens.is_none() && self.cost_usd.is_none()
    }
}

/// A document that the program was compiled from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDocument {
    /// The file's name as it was opened.
    pub file: String,
    /// Its text.
    pub text: Blob,
}

impl EventKind {
    /// Its long texts, which a journal stores separately.
    pub fn texts(&self) -> Vec<Blob> {
        match self {
            Self::Started(started) => {
                let documents = started.documents.iter().map(|document| document.text.clone());
                std::iter::once(started.system.clone()).chain(documents).collect()
            }
            Self::NewDocument(documents) => documents.iter().map(|document| document.text.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Restores its long texts.
    ///
    /// # Errors
    /// The digest of the first text that is not in `texts`.
    pub fn put_back(&mut self, texts: &[Blob]) -> Result<(), Digest> {
        let documents = match self {
            Self::Started(started) => {
                started.system.put_back(texts)?;
                &mut started.documents
            }
            Self::NewDocument(documents) => documents,
            _ => return Ok(()),
        };
        documents.iter_mut().try_for_each(|document| document.text.put_back(texts))
    }
}

/// What is known of the model of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// Its name in the project, or the provider's own id.
    pub name: String,
    /// Its window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// What a million tokens cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// What a human decided about a pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The pause that is meant, from 1; `None` is the one that the run is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<u32>,
    /// Which of several waiting calls; `None` is all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The hash of the call as it was shown; the decision is refused when the call is another one now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The decision.
    pub decision: Decision,
    /// Who decided: the name of a token, or a user of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What they said about it, for the record. The model does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

impl From<Decision> for Decided {
    /// A decision about all that waits in the pause that the run is in.
    fn from(decision: Decision) -> Self {
        Self { pause: None, call: None, hash: None, decision, by: None, comment: None }
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
    /// Make the uncertain call again.
    Retry,
}

impl Decision {
    /// Its kind, as requests, flags and records name it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answer(_) => "answer",
            Self::Approve => "approve",
            Self::Deny(_) => "deny",
            Self::Edit(_) => "edit",
            Self::Happened(_) => "happened",
            Self::Retry => "retry",
        }
    }
}

/// How a run was cancelled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
