//! Events: everything that comes from outside. The journal of a run is a list of events, and its state is
//! their fold.

mod asked;
mod continuation;
mod decided;
mod fork;
mod input_file;
mod input_list;
mod model;
mod posted;
mod reasoning;
mod step;
mod tool;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::{Blob, KnownTexts, TextFault, TextRole};
use super::digest::Sha256;
use super::machine::Machine;
use loopctl_lang::language::document_file::TableForm;
use loopctl_lang::language::project::Price;
use loopctl_lang::language::react::CallOrder;

pub use super::address::CallId;
pub use asked::{StepAsks, ToolAsks};
pub use continuation::{FailedParts, LimitsRaised, RaisedLimits, Retried};
pub use decided::{ANYBODY, CALLBACK, Decided, Decision, DecisionKind, DecisionRights, callback_of};
pub use fork::{CopiedUsage, Fork, ForkPoint};
pub use input_file::{InputFile, InputFileContent, account_at};
pub use input_list::{InputList, spell_input};
pub(crate) use model::is_no_time;
pub use model::{FailedAttempt, Finish, ModelFault, ModelFaultCode, ReachedLimit, Reply, SaidCall, Tokens};
pub use posted::QuestionPosted;
pub use reasoning::Reasoning;
pub use step::{StepLeft, StepPaused, StepRetried, StepReturned, StepWaits};
pub use tool::{
    AskedAttempt, MAY_HAVE_HAPPENED, ToolFault, ToolLeft, ToolPaused, ToolResult, ToolRetried, ToolReturned,
};

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
    /// Milliseconds since 1970 by the machine's clock: for people, and for approvals, which expire while no process
    /// runs. Never for deadlines of work.
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
    /// An attempt at a tool call failed, and another one follows.
    ToolRetried(ToolRetried),
    /// The driver stopped while a call waited for the next attempt of its model.
    ToolLeft(ToolLeft),
    /// A sub-run waits for a human.
    ToolPaused(Box<ToolPaused>),
    /// The server of a tool asks a human before it continues with a call.
    ToolAsks(Box<ToolAsks>),
    /// A step of a workflow ended.
    StepReturned(Box<StepReturned>),
    /// An attempt at the call of a step failed, and another one follows.
    StepRetried(Box<StepRetried>),
    /// The driver stopped while a step waited for the next attempt of its model.
    StepLeft(StepLeft),
    /// A step waits for room in a spending limit of the project.
    StepWaits(Box<StepWaits>),
    /// The run of a step of a workflow waits for a human.
    StepPaused(Box<StepPaused>),
    /// The server of a tool asks a human before it continues with the call of a step.
    StepAsks(Box<StepAsks>),
    /// The run has its place in the line of its `concurrency`: its first steps begin, or its model is asked.
    Admitted,
    /// Nobody drove the run since it started: what its start requested was not done, and waits for the first driver.
    Left,
    /// The driver was asked to stop: no further step of the workflow begins.
    Stopping,
    /// The active time of the run is spent.
    DeadlinePassed,
    /// A human decided.
    Human(Decided),
    /// A question was posted to a target of `ask`, or could not be.
    QuestionPosted(Box<QuestionPosted>),
    /// Nobody decided about a waiting call in time.
    ApprovalExpired,
    /// A driver resumed a run that was cut off or interrupted.
    Resumed,
    /// A human had the run continue whose model could not be reached.
    Retried(Retried),
    /// A human raised limits of the run. If one of them had ended the run, it continues.
    LimitsRaised(LimitsRaised),
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
    /// The machine that folds the events of the run; in a journal it stands beside the event.
    #[serde(skip)]
    pub machine: Machine,
    /// The run's id.
    pub run_id: String,
    /// The session whose memory it shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The loop's name.
    pub loop_name: String,
    /// The run's input, with `null` in the place of each long list.
    pub input: Value,
    /// The long lists of the input of a workflow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<InputList>,
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
    /// The run and the call that started it, when it is a run of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<ParentCall>,
    /// The delivery that started it, when a webhook did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<WebhookDelivery>,
    /// What that run had left to spend: a second bound besides the `budget` of the document.
    #[serde(default, skip_serializing_if = "Allowance::is_none")]
    pub bound: Allowance,
    /// The order of the calls of a turn. It stays the same for the whole run, whatever a new document says: which calls
    /// were under way at a crash depends on it. Without it, all calls of a turn are made at the same time.
    #[serde(default = "CallOrder::of_older_journals")]
    pub order: CallOrder,
    /// The earlier run whose input it has, when it is a rerun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<String>,
    /// The run whose first steps it begins with, when it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// What the receiver of its callbacks may decide about; none when it may not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_rights: Option<DecisionRights>,
    /// Whether its first steps wait for its place in a line: see [`EventKind::Admitted`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_line: bool,
    /// Whether a script took the place of its models.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scripted: bool,
    /// The edition of the engine's decisions that the run is folded by, see [`EDITION`].
    #[serde(default, skip_serializing_if = "is_first")]
    pub edition: u32,
    /// The documents that the program was compiled from, by file name; the main one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<RunDocument>,
    /// The SHA-256 of those documents, compared each time that they are read: what was approved is what is executed. None in
    /// older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_sha256: Option<String>,
    /// The files of the project that it reads as values, as they were at the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ReadFile>,
    /// The files in its input, whose accounts stand in `input`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<InputFile>,
}

/// The present edition of those decisions of the engine that a later version took otherwise, where the events of older
/// journals would give another state by the later ones. 1: what a reply and an observation take of a known window. 2: a loop
/// goes through a text that is the JSON of a list; CSV and JSON of the project's documents are read without a loss, and a path
/// into a text reads the JSON in its fence; and what a no to a `PbotApproval` does follows from the filters of the steps after
/// it, and not from their letters. 3: a filter that may hold after a no for another reason holds no step; a call as text is known by the
/// marks of calls and the names of tools, and native calls count in every dialect; inputs and answers are read where they have one
/// reading; one thought over different calls is a batch; a count of zero tokens is none; and a call that
/// the end of the run's time cuts off may have happened. 4: the orders compare two times, too, a text with blanks around is no
/// number, a text in the input of a step is read as the number or boolean that its schema wants, an answer that has a key twice
/// is none, today in a form is that of the time zone, and a wait until a date begins with the day, and counts days, in the time
/// zone of the workflow. 5: a step whose approval expired, where that fails the run, has failed with `approval_expired`. 6: `length` and
/// `in` of a condition read a text that is JSON, as paths do, and a path into a text that should be JSON and is none can't be judged; a
/// call that a human did not allow counts for `require_tool_before_answer`; and the model reads that notes of its history were cut off
/// or are missing. 7: a text that begins as JSON does and can't be read has no missing values: what asks for a part of it fails, also in
/// `output` and `collect`, in `hasKey`, `length` and `@x.y?`, and in the blocks of a text; the templates and paths of a step are bounded
/// together, by what they read, too; and thoughts and calls are no notes of a history. 8: a step whose approval is escalated asks in a
/// new pause; JSON is read out of fences of all forms, half of a surrogate pair in the JSON of a text is U+FFFD, and a condition that
/// needs a part of a text which is no JSON fails. 9: with a spent budget, a workflow or an item begins no further step, also none that
/// asks no model; a step whose input was edited, and that more people must approve, asks in a new pause; JSON is read behind a byte
/// order mark, and behind the block in which a model thinks; and a workflow has no `max_iterations` to raise. 10: steps that
/// run again after those for their failure read the keys as they were before these.
pub const EDITION: u32 = 10;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_first(edition: &u32) -> bool {
    *edition == 0
}

/// What a new run receives of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// The run's id.
    pub run_id: String,
    /// The account: one fact on each line, as JSON. Under 12,000 characters.
    pub account: String,
}

/// A file of the project that a run reads as a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFile {
    /// Its name in the project's `documents`.
    pub name: String,
    /// Its path, as the project file writes it.
    pub file: String,
    /// How the values of a table are read, where the project file says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<TableForm>,
    /// Its text.
    pub text: Blob,
}

/// A delivery of another service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookDelivery {
    /// The name of the webhook.
    pub name: String,
    /// The id of the delivery, as the service gave it; the digest of what it signed, where it gave none.
    pub delivery: String,
}

impl WebhookDelivery {
    /// What started the run, in a sentence without a final stop.
    pub fn sentence(&self) -> String {
        format!("started by the webhook {}, delivery {}", self.name, self.delivery)
    }
}

/// The call that started a sub-run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentCall {
    /// The run's id.
    pub run_id: String,
    /// Its call.
    pub call: CallId,
    /// The address of its step, when it is a workflow: `call` means nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether the step runs a document by its name: the documents of the run are its own, and not those of the workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_name: bool,
}

/// What a run may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

    /// The least of both, where both have a bound.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.into_iter().chain(other.tokens).min(),
            cost_usd: self.cost_usd.into_iter().chain(other.cost_usd).reduce(f64::min),
        }
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
                let read = started.read.iter().map(|file| file.text.clone());
                let fork = started.fork.iter().map(|fork| fork.events.clone());
                let lists = started.lists.iter().flat_map(|list| list.pieces.iter().cloned());
                let files = started.files.iter().filter_map(|file| file.blob().cloned());
                let own = std::iter::once(started.system.clone()).chain(documents).chain(read);
                own.chain(fork).chain(lists).chain(files).collect()
            }
            Self::NewDocument(documents) => documents.iter().map(|document| document.text.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Restores its long texts.
    ///
    /// # Errors
    /// Why the first of them can't be restored; and when the documents are not those of which the start has the SHA-256.
    pub fn put_back(&mut self, texts: &[Blob]) -> Result<(), TextFault> {
        match self {
            Self::Started(started) => started.put_back(&KnownTexts::of(texts)),
            Self::NewDocument(documents) => put_back_documents(documents, &KnownTexts::of(texts)),
            _ => Ok(()),
        }
    }
}

impl Started {
    fn put_back(&mut self, texts: &KnownTexts<'_>) -> Result<(), TextFault> {
        self.system.put_back(texts, TextRole::Other)?;
        self.fork.iter_mut().try_for_each(|fork| fork.events.put_back(texts, TextRole::Other))?;
        self.read.iter_mut().try_for_each(|file| file.text.put_back(texts, TextRole::Other))?;
        self.lists.iter_mut().try_for_each(|list| list.put_back(texts))?;
        for file in &mut self.files {
            if let InputFileContent::Data { base64, .. } = &mut file.content {
                base64.put_back(texts, TextRole::Other)?;
            }
        }
        put_back_documents(&mut self.documents, texts)?;
        match self.documents_sha256.as_deref().map(str::parse::<Sha256>) {
            Some(written) if written != Ok(documents_sha256(&self.documents)) => Err(TextFault::OtherDocuments),
            _ => Ok(()),
        }
    }
}

fn put_back_documents(documents: &mut [RunDocument], texts: &KnownTexts<'_>) -> Result<(), TextFault> {
    documents.iter_mut().try_for_each(|document| document.text.put_back(texts, TextRole::Document))
}

/// The SHA-256 of the documents of a run, for [`Started::documents_sha256`].
pub fn documents_sha256(documents: &[RunDocument]) -> Sha256 {
    // The texts, and not their names, which do not protect against forgery in older journals.
    Sha256::of_list(documents.iter().map(|document| &*document.text))
}

/// What is known of the model of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// Its name in the project, or the provider's own id.
    pub name: String,
    /// Its window in tokens, as the project says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Its window in tokens, as its server has shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_tokens: Option<u64>,
    /// What a million tokens cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// How a run was cancelled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who cancelled it: the name of a token, or a user of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}
