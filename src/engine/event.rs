//! Events: everything that comes from outside. A run's journal is a list of them, and its state is
//! their fold.

mod model;
mod tool;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::Blob;
use super::digest::Digest;
use crate::language::project::Price;

pub use model::{FailedAttempt, Finish, ModelFault, ModelFaultCode, Reply, SaidCall, Tokens};
pub use tool::{CallId, SubrunCall, SubrunQuestion, ToolFault, ToolPaused, ToolResult, ToolReturned};

/// Something that came from outside, with its moment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "super::machine::WrittenEvent")]
pub struct Event {
    /// When it came.
    pub at: Moment,
    /// What came.
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

/// What came from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The run began.
    Started(Box<Started>),
    /// The model said something.
    ModelReplied(Reply),
    /// The model summed up what goes from the conversation.
    Summarized(Reply),
    /// Attempts at asking the model failed before the call was cut off by the run's time or its end.
    AttemptsFailed(Vec<FailedAttempt>),
    /// The model could not be asked, with all retries and fallbacks spent.
    ModelFailed(ModelFault),
    /// A tool call ended.
    ToolReturned(ToolReturned),
    /// A call that is a run of another loop waits for a human.
    ToolPaused(Box<ToolPaused>),
    /// The run's active time is over.
    DeadlinePassed,
    /// A human decided about a pause.
    Human(Decided),
    /// A driver took up a run that was cut off or interrupted.
    Resumed,
    /// The driver stopped between two steps; the run can be resumed.
    Interrupted,
    /// The run was ended by hand.
    Cancelled(Cancelled),
    /// The run goes on with these texts in place of those that it began with. All its events, those
    /// before too, fit the program that they make: a driver makes sure of it before.
    NewDocument(Vec<RunDocument>),
}

/// How a run began: all that it will ever need from its surroundings.
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
    /// What the session remembered when the run began, and what it takes over of the earlier run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<String, Value>,
    /// The earlier run that it is told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// The active time that the run may take, in milliseconds, when it is not the document's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The run and the call that it is, when another run began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<ParentCall>,
    /// What that run had left to spend: it bounds this one beside the document's `budget`.
    #[serde(default, skip_serializing_if = "Allowance::is_none")]
    pub bound: Allowance,
    /// The texts that gave the program its meaning, by file name; the document first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<RunDocument>,
}

/// An earlier run that a new one is told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// The run's id.
    pub run_id: String,
    /// What is told of it: a fact a line, each as JSON. Under 12,000 characters.
    pub account: String,
}

/// A run that called another one.
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

/// A text that gave the program its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDocument {
    /// The file's name as it was opened.
    pub file: String,
    /// Its text.
    pub text: Blob,
}

impl EventKind {
    /// The long texts in it, which a journal keeps beside the events.
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

    /// Gives the long texts in it back what they say.
    ///
    /// # Errors
    /// The digest of the first one that is not among `texts`.
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
}

/// A human's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// An answer to a question, or guidance for a stuck run.
    Answer(String),
    /// The waiting call may be made.
    Approve,
    /// The waiting call may not be made.
    Deny(Option<String>),
    /// The waiting call may be made with this input.
    Edit(Value),
    /// The call of unknown outcome did happen, and gave this.
    Happened(Value),
    /// The call of unknown outcome is to be made again.
    Retry,
}

/// How a run was ended by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
