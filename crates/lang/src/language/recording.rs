//! Recordings: what the models, the tools and the humans of a run that really happened said, to be played in scenarios.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::react::Dialect;
use super::scenario::ScenarioDecision;

/// The recording of a run: `loopctl record` writes it, and a scenario plays it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The JSON Schema of this document, for editors. It is never fetched.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The version of this format.
    #[schemars(range(min = 1, max = 1))]
    pub recording: u32,
    /// The digest of the documents that the run had.
    pub document: String,
    /// The name of the loop or workflow.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// The id of the run. It is played under this id, so that values with `@__run_id` are those of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub run_id: Option<String>,
    /// The dialect of the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// The moment at which the run started, RFC 3339.
    pub now: String,
    /// The run's input.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// What was asked and answered: in the order of each run, those of a sub-run before the call that it is.
    #[schemars(length(max = 1_000_000))]
    pub entries: Vec<RecordingEntry>,
    /// The lines of the messages that models were sent, by their digest. Those of the model itself are its replies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, Vec<String>>,
}

/// An entry of a recording.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RecordingEntry {
    /// A model was asked.
    Ask(RecordedAsk),
    /// A tool was called.
    Call(RecordedCall),
    /// A human decided.
    Decision(RecordedDecision),
}

/// A request to a model, and its reply or its failure. With neither, the model did not answer in the time of the run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedAsk {
    /// What it was sent.
    pub ask: AskDigest,
    /// What it replied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<RecordedReply>,
    /// How the request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<RecordedFailure>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took_ms: u64,
}

/// The digests of what a model was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AskDigest {
    /// The sub-run that asked, by its calls and steps; none for the run itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The loop that asked.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// The number of the request in its run, from 1.
    pub request: u32,
    /// How many messages of the request before it begins with.
    #[serde(skip_serializing_if = "is_none")]
    pub keeps: u32,
    /// The digests of the messages behind them.
    pub messages: Vec<String>,
    /// The digest of the tools that the model may call.
    pub tools: String,
    /// The digest of the settings: temperature, the most tokens of the reply, and the texts at which it stops.
    pub sampling: String,
}

/// A reply of a model, as its provider gave it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedReply {
    /// Its text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Its native tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RecordedSaidCall>,
    /// What can be read of its reasoning.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The reasoning as the provider wants it back (`--raw`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawReasoning>,
    /// Why the model stopped, when it was not at the end: `length` or `filtered`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// What the provider said of its refusal, when it is `filtered`: mostly a category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The tokens that the provider counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<RecordedTokens>,
}

/// The reasoning of a reply as its provider wants it back.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawReasoning {
    /// Who wrote it: the provider, the host and the model.
    pub origin: String,
    /// What is sent back.
    pub sealed: String,
}

/// A native tool call, as the provider wrote it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedSaidCall {
    /// The provider's id of the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The tool's name, as the provider knows it.
    pub name: String,
    /// The input: JSON text.
    pub arguments: String,
}

/// The tokens of a reply.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedTokens {
    /// Those that were read.
    #[serde(skip_serializing_if = "is_zero")]
    pub input: u64,
    /// Those that were written.
    #[serde(skip_serializing_if = "is_zero")]
    pub output: u64,
    /// Those of `input` that the provider had in its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input: u64,
    /// Those of `input` that it put into its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Those of `output` that are reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
    /// What they cost in US dollars, when a tool used them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// The failure of a request to a model.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedFailure {
    /// Its kind, as in traces.
    pub code: String,
    /// What happened.
    pub message: String,
    /// Whether the same request may succeed later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
    /// The window of the model, when the request was longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The tokens that the server counted in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// The tokens that the provider counted all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<RecordedTokens>,
}

/// A call of a tool, and what it gave or how it failed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// The call.
    pub call: CalledTool,
    /// What it gave.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub gave: Option<Value>,
    /// How it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedCall>,
    /// What it used of models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<RecordedTokens>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took_ms: u64,
}

/// A call of a tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CalledTool {
    /// The sub-run that made it; none for the run itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The iteration and the place in the turn, like `2.0`, or the address of the step.
    #[schemars(regex(pattern = r"^\S+$"))]
    pub at: String,
    /// The tool.
    pub action: String,
    /// Its input.
    #[serde(default)]
    pub input: Value,
}

/// Why a call failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FailedCall {
    /// What the model reads, like `http 503`.
    pub class: String,
    /// What the operator reads beside it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// What the server answered, which the model reads too.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer: String,
}

/// A decision of a human, for the next pause.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedDecision {
    /// The decision.
    pub decision: ScenarioDecision,
}

impl Recording {
    /// The version of the format.
    pub const VERSION: u32 = 1;

    /// The decisions, in their order.
    pub fn decisions(&self) -> Vec<ScenarioDecision> {
        let decision = |entry: &RecordingEntry| match entry {
            RecordingEntry::Decision(decided) => Some(decided.decision.clone()),
            _ => None,
        };
        self.entries.iter().filter_map(decision).collect()
    }

    /// The requests, in their order.
    pub fn asks(&self) -> impl Iterator<Item = &RecordedAsk> {
        self.entries.iter().filter_map(|entry| match entry {
            RecordingEntry::Ask(ask) => Some(ask),
            _ => None,
        })
    }
}

/// A value that may be null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_none(number: &u32) -> bool {
    *number == 0
}
