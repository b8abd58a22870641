//! What must hold of the run of a scenario.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::language::ending::{Limit, Status, StuckPattern, Termination};

/// What must hold of a run. All that is written must hold.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expectations {
    /// No run starts: `when` of the webhook does not hold for the `delivery`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// Where the run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Why it ended, or what it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    /// The limit that a forced answer came of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// The pattern that the agent was stuck in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<StuckPattern>,
    /// The answer; of a workflow, its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<ValueMatcher>,
    /// The summary beside the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<ValueMatcher>,
    /// Why the run failed: the sentence, or an object with its `code`, `message` and `step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ValueMatcher>,
    /// What the agent keeps in its memory, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<String, ValueMatcher>,
    /// Calls that are there in this order; others may be between them. Those of called loops are there too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<CallExpectation>>,
    /// There are no other calls than those of `calls`. Built-in tools that `calls` does not name do not count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only: bool,
    /// Calls that are never made, by the run or by a loop that it calls: names of tools, or calls with their inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<NeverEntry>,
    /// Tools that the model does not even ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never_asked: Vec<String>,
    /// Tools whose effect happens exactly once, whatever was stopped. Calls of an idempotent tool with the same key are one
    /// effect, and a call that fails is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<String>,
    /// All pauses of the run, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Vec<PauseExpectation>>,
    /// All that is posted to targets of `ask`: the targets, by the address of the step that asks, or the id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<BTreeMap<String, Vec<String>>>,
    /// Steps of a workflow by their addresses, as the result of a run lists them: `{"status": "skipped"}`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, ValueMatcher>,
    /// What the run may need at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Quantities>,
    /// What the run must need at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Quantities>,
    /// Texts that the model read: in the prompt, an observation or a hint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_reads: Vec<String>,
    /// Texts that the model never read, like a secret.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model_never_reads: Vec<String>,
    /// A file with the trace of the run: a path, relative to this file. `loopctl test --update` writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub snapshot: Option<String>,
}

impl Expectations {
    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        serde_json::to_value(self).is_ok_and(|value| value.as_object().is_some_and(Map::is_empty))
    }
}

/// What a value must be: an equal one, where an object needs the members that are named only; or `{"contains": ...}`,
/// `{"matches": PATTERN}`, `{"schema": {...}}` or `{"not": MATCHER}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueMatcher(pub Value);

impl JsonSchema for ValueMatcher {
    fn schema_name() -> Cow<'static, str> {
        "ValueMatcher".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// Any value: what a matcher is, `check` says.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

impl ValueMatcher {
    /// The words of matchers that are no plain values.
    pub const WORDS: [&str; 4] = ["contains", "matches", "schema", "not"];

    /// The word and what it is about, when it is no plain value: an object with one member of such a name.
    pub fn word(value: &Value) -> Option<(&'static str, &Value)> {
        let members = value.as_object().filter(|members| members.len() == 1)?;
        let (name, about) = members.iter().next()?;
        Self::WORDS.into_iter().find(|word| word == name).map(|word| (word, about))
    }
}

/// A call that must be there.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallExpectation {
    /// The tool; of a step of a workflow, its `type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The address of the step of a workflow, like `review.2.pay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\S+$"))]
    pub at: Option<String>,
    /// Its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<ValueMatcher>,
    /// What the model, or the workflow, gets of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<ValueMatcher>,
    /// Whether it does what was asked. A call that was refused or denied does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// How many such calls follow each other here. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub times: Option<u32>,
}

/// A tool, or a call of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum NeverEntry {
    /// All calls of a tool.
    Tool(String),
    /// The calls of a tool with an input.
    Call(Unwanted),
}

/// A call of a tool with an input.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unwanted {
    /// The tool.
    pub action: String,
    /// Its input.
    pub input: ValueMatcher,
}

impl NeverEntry {
    /// The tool.
    pub fn action(&self) -> &str {
        match self {
            Self::Tool(action) | Self::Call(Unwanted { action, .. }) => action,
        }
    }
}

/// A pause of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PauseExpectation {
    /// What the run waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Termination>,
    /// The tool whose call waits, or the address of the step.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<ValueMatcher>,
}

/// What a run needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quantities {
    /// Replies of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Calls that were made, those of called loops too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Tokens, read and written together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cost_usd: Option<f64>,
    /// Active seconds on the played clock, without the time that the run waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub seconds: Option<f64>,
}
