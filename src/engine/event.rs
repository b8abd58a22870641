//! Events: everything that comes from outside. A run's journal is a list of them, and its state is
//! their fold.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Digest;
use super::outcome::Termination;
use super::stuck::Stuck;
use super::text::Text;
use crate::language::project::Price;

/// Something that came from outside, with its moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When it came.
    pub at: Moment,
    /// What came.
    pub what: What,
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
pub enum What {
    /// The run began.
    Started(Box<Started>),
    /// The model said something.
    ModelReplied(Reply),
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
    NewDocument(Vec<Document>),
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
    pub system: Text,
    /// The model and what is known of it.
    pub model: ModelFacts,
    /// What the session remembered when the run began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<String, Value>,
    /// The active time that the run may take, in milliseconds, when it is not the document's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The run and the call that it is, when another run began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
    /// What that run had left to spend: it bounds this one beside the document's `budget`.
    #[serde(default, skip_serializing_if = "Bound::is_none")]
    pub bound: Bound,
    /// The texts that gave the program its meaning, by file name; the document first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Document>,
}

/// A run that called another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The run's id.
    pub run_id: String,
    /// Its call.
    pub call: CallId,
}

/// What a run may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Tokens, read and written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Bound {
    /// Whether nothing is bounded.
    pub fn is_none(&self) -> bool {
        self.tokens.is_none() && self.cost_usd.is_none()
    }
}

/// A text that gave the program its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// The file's name as it was opened.
    pub file: String,
    /// Its text.
    pub text: Text,
}

impl What {
    /// The long texts in it, which a journal keeps beside the events.
    pub fn texts(&self) -> Vec<Text> {
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
    pub fn put_back(&mut self, texts: &[Text]) -> Result<(), Digest> {
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

/// What the model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// The native tool calls beside it, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<SaidCall>,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Finish::is_stop")]
    pub finish: Finish,
    /// The tokens that the provider counted; without them the engine estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// The time of the call in milliseconds, with its retries.
    pub duration_ms: u64,
    /// How many attempts failed before this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// The fallback that answered, when it was not the run's own model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A native tool call, as the provider wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidCall {
    /// The provider's id of the call; empty when it gave none.
    pub id: String,
    /// The tool's name, as the provider knows it.
    pub name: String,
    /// The input: JSON text, as far as the model kept to it.
    pub arguments: String,
}

impl SaidCall {
    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.id.len().saturating_add(self.name.len()).saturating_add(self.arguments.len())
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It had said all.
    #[default]
    Stop,
    /// `max_tokens` cut it off.
    Length,
    /// The provider kept it back.
    Filtered,
}

impl Finish {
    fn is_stop(&self) -> bool {
        *self == Self::Stop
    }
}

/// Tokens that a provider counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Those that the model read.
    pub input: u64,
    /// Those that it wrote.
    pub output: u64,
}

/// Why the model could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFault {
    /// The kind of fault.
    pub code: ModelFaultCode,
    /// What happened, in a sentence without secrets.
    pub message: String,
    /// Whether the same run may succeed later as it is.
    pub retryable: bool,
    /// How many attempts were made.
    pub attempts: u32,
    /// The time spent in milliseconds.
    pub duration_ms: u64,
}

/// The kind of a model's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFaultCode {
    /// No connection, or the server failed.
    ModelUnreachable,
    /// The server said no: a wrong key, an unknown model, a bad request.
    ModelRefused,
    /// The request is longer than the model's window.
    ContextExceeded,
    /// The server's answer is not of its protocol.
    ModelProtocol,
    /// A script has no more replies.
    ScriptExhausted,
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolReturned {
    /// Which call.
    pub call: CallId,
    /// What came of it.
    pub result: ToolResult,
    /// The time of the call in milliseconds.
    pub duration_ms: u64,
    /// Tokens that the call used itself (`llm`, a loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars, when they have a price of their own; else they cost what those of
    /// the run's model do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The run that the call was, when it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// A call that is a run of another loop waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolPaused {
    /// Which call.
    pub call: CallId,
    /// The run that the call is.
    pub run_id: String,
    /// What it asks.
    pub asks: Asks,
    /// Tokens that it used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars; see [`ToolReturned`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// What a run asks that was called by another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asks {
    /// The run that asks: the call's, or one that it called in its turn.
    pub run_id: String,
    /// The number of the pause of the call's run.
    pub pause: u32,
    /// Human, stuck, approval or uncertain.
    pub kind: Termination,
    /// The question.
    pub question: String,
    /// What the model said around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The answers that the model offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The calls that wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<AsksFor>,
    /// The pattern that its agent is stuck in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
}

/// A call that waits in a run that was called by another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AsksFor {
    /// Which call of the run that asks.
    pub call: CallId,
    /// The tool.
    pub action: String,
    /// Its input.
    pub action_input: Value,
    /// What a decision about it is bound to: a hash of that run's own, which only that run checks.
    pub hash: String,
}

/// A call of a run: the iteration that it belongs to, from 1, and its place in the turn, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct CallId {
    /// The iteration, from 1.
    pub iteration: u32,
    /// The place in the turn, from 0.
    pub index: u32,
}

impl std::fmt::Display for CallId {
    /// `2.0`: the first call of the second iteration.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.iteration, self.index)
    }
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResult {
    /// What the tool gave.
    Ok(Value),
    /// Why it failed.
    Failed(ToolFault),
}

/// Why a tool call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFault {
    /// What the model reads: the class of the failure, like `timed out after 30 s` or `http 503`.
    pub class: String,
    /// What the operator reads, beside the class.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
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
