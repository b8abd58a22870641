//! The properties of a loop of mode `react`.

use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::ToolDeclaration;
use super::fallback::FallbackModel;

/// The schema of a field that holds a JSON Schema.
pub(crate) fn json_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "description": "A JSON Schema.", "x-schema": true })
}

/// Reads a field that holds a JSON Schema: an object and nothing else, as [`json_schema`] says.
pub(crate) fn read_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let schema = Value::deserialize(deserializer)?;
    if schema.is_object() { Ok(Some(schema)) } else { Err(D::Error::custom("a JSON Schema is an object here")) }
}

/// The same for a schema that many share.
pub(crate) fn read_shared_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
    Ok(read_schema(deserializer)?.map(Arc::new))
}

/// What a loop of mode `react` does: how it is asked, with what it may work, and when it ends.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReactProperties {
    /// What the agent is to reach. A template: `{{input.name}}`.
    #[schemars(length(min = 1))]
    pub objective: String,
    /// The tools that the model may call, and no others. The built-in ones are always there.
    pub tools: Vec<ToolDeclaration>,
    /// The model: a name of the project's `models`, or a provider's own model id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many times the model may think, 1 to 1000.
    #[serde(default = "defaults::max_iterations")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_iterations: u32,
    /// The run's active time in milliseconds. Waiting for a human does not count.
    #[serde(default = "defaults::timeout_ms")]
    #[schemars(range(min = 1))]
    pub timeout_ms: u64,
    /// The model's temperature, 0 to 2. Default: none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// What to do when the agent goes in circles.
    #[serde(default)]
    pub on_stuck: OnStuck,
    /// Whether the result holds the reasoning trace. It is stored either way.
    #[serde(default = "defaults::yes")]
    pub include_reasoning_trace: bool,
    /// The context key that the answer is kept under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_key: Option<String>,
    /// The built-in tools that the model may call beside `__complete__`, which is always there. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtins: Option<Vec<BuiltinTool>>,
    /// Which of the tools a request offers. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<ToolSelection>,
    /// The tools that must be called before an answer is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_tool_before_answer: Option<RequiredTools>,
    /// The most tokens that one reply may have. Default: a quarter of the model's window, 256 to 4096; 4096 where the
    /// window is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// How the model says what it wants.
    #[serde(default)]
    pub dialect: Dialect,
    /// Our system prompt's replacement. A template over `objective`, `tools`, `today`, `input`
    /// and `dialect_instructions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The JSON Schema that the answer must match.
    #[serde(default, deserialize_with = "read_schema", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "json_schema")]
    pub answer_schema: Option<Value>,
    /// What happens when iterations, time, context or budget run out.
    #[serde(default)]
    pub on_limit: OnLimit,
    /// What the whole run may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What goes when the history grows too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// The deadline of one tool call in milliseconds.
    #[serde(default = "defaults::tool_timeout_ms")]
    #[schemars(range(min = 1))]
    pub tool_timeout_ms: u64,
    /// The most characters of one observation that the model reads.
    #[serde(default = "defaults::max_observation_chars")]
    #[schemars(range(min = 1))]
    pub max_observation_chars: usize,
    /// The most tool calls in one turn, in the dialects that allow several.
    #[serde(default = "defaults::max_tool_calls_per_turn")]
    #[schemars(range(min = 1))]
    pub max_tool_calls_per_turn: u32,
    /// In which order the tool calls of one turn are made, in the dialects that allow several.
    #[serde(default)]
    pub order: CallOrder,
    /// How a failed model call is tried again.
    #[serde(default)]
    pub retry: Retry,
    /// Models that are tried in this order when the retries are spent; one with `when` is asked first while that holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback_models: Vec<FallbackModel>,
    /// What happens when the models stay unreachable after all retries and fallbacks.
    #[serde(default)]
    pub on_model_outage: OnModelOutage,
    /// How long a model's server may send no byte, in milliseconds. Without it: 60000 between two pieces of a
    /// streamed reply, and as long as `reply_timeout_ms` before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub stall_timeout_ms: Option<u64>,
    /// How long one whole reply of the model may take, in milliseconds.
    #[serde(default = "defaults::reply_timeout_ms")]
    #[schemars(range(min = 1))]
    pub reply_timeout_ms: u64,
    /// How long the last call of `on_limit: answer` may take with its retries, in milliseconds, when the run's time
    /// is over.
    #[serde(default = "defaults::last_call_timeout_ms")]
    #[schemars(range(min = 1))]
    pub last_call_timeout_ms: u64,
}

/// A built-in tool, by the name that the model calls it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BuiltinTool {
    /// Ends the run.
    #[serde(rename = "__complete__")]
    Complete,
    /// Asks a human.
    #[serde(rename = "__pause_for_human__")]
    PauseForHuman,
    /// Keeps a value.
    #[serde(rename = "__store_memory__")]
    StoreMemory,
    /// Gives a kept value.
    #[serde(rename = "__retrieve_memory__")]
    RetrieveMemory,
    /// Reports progress.
    #[serde(rename = "__log_progress__")]
    LogProgress,
}

/// Which of its tools a loop with many offers to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSelection {
    /// How they are chosen.
    pub by: SelectedBy,
    /// The most tools that are offered at the start, 1 to 64; the model finds the others with `__find_tool__`.
    #[serde(default = "defaults::most_selected")]
    #[schemars(range(min = 1, max = 64))]
    pub most: u32,
}

/// How tools are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SelectedBy {
    /// By the words that their names and descriptions have in common with the objective.
    Search,
}

/// In which order the tool calls of one turn are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOrder {
    /// One after the other, as the model wrote them.
    AsWritten,
    /// Calls that only read, and stand beside each other, at the same time; every other call alone, in its place.
    #[default]
    ReadsTogether,
    /// All at the same time.
    Together,
}

impl CallOrder {
    /// That of a run whose journal names none.
    pub fn of_older_journals() -> Self {
        Self::Together
    }
}

/// The tools that must be called before an answer is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RequiredTools {
    /// One declared tool, whichever.
    Any(AnyTool),
    /// Each of these.
    All(Vec<String>),
}

/// The word for any declared tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnyTool {
    /// The only one.
    Any,
}

/// What happens when the models of a run stay unreachable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnModelOutage {
    /// The run fails.
    #[default]
    Fail,
    /// The run pauses, and asks the models again when it is resumed.
    Pause,
}

/// What to do when the agent goes in circles.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OnStuck {
    /// How often a pattern must repeat before it counts, 2 and up.
    #[schemars(range(min = 2))]
    pub iterations: u32,
    /// What happens then.
    pub action: StuckAction,
    /// The hint that `retry_with_hint` sends to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Default for OnStuck {
    fn default() -> Self {
        Self { iterations: 3, action: StuckAction::Fail, hint: None }
    }
}

/// What happens to an agent that goes in circles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StuckAction {
    /// The run ends as failed.
    #[default]
    Fail,
    /// The run pauses for a human.
    Escalate,
    /// The model gets a hint, at most twice; then the run fails.
    RetryWithHint,
}

/// How the model says what it wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// One JSON object a turn: `thought`, `action`, `action_input`.
    #[default]
    Json,
    /// The provider's own tool calls, several a turn.
    ToolCalls,
    /// `<think>`, `<tool_call>`, `<answer>`.
    Tags,
    /// The provider's own tool calls, and `FINAL_ANSWER:` at the end.
    FinalAnswer,
}

/// What happens when a limit is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The run fails.
    #[default]
    Fail,
    /// One last model call must answer with what is known.
    Answer,
}

/// What the whole run may use.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens, those read and those written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// US dollars, by the model's `price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cost_usd: Option<f64>,
    /// The share of the budget at which a warning is given, 0 to 1.
    #[serde(default = "defaults::warn_at")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub warn_at: f64,
}

/// What goes when the history grows too long.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// With more messages than this, all but the system prompt and the last `keep_last` go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub max_messages: Option<u32>,
    /// How many of the last messages stay.
    #[serde(default = "defaults::keep_last")]
    #[schemars(range(min = 1))]
    pub keep_last: u32,
    /// The most tokens of a request. Default: the model's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context_tokens: Option<u64>,
    /// Whether the model sums up what goes. Default: by `context_tokens` and the model's window yes, by
    /// `max_messages` no. Without it, `on_limit: answer` makes a full window a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarize: Option<bool>,
}

/// How a failed model call is retried: 408, 409, 424, 425, 429, 498, 5xx and connection faults, with full
/// jitter; `Retry-After` is obeyed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// The most attempts, the first one too. Without it, `for_ms` decides alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub attempts: Option<u32>,
    /// How long a model is retried after its first failure, in milliseconds. Default: 120000, without a bound where
    /// `attempts` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 86_400_000))]
    pub for_ms: Option<u64>,
    /// The first wait in milliseconds, before jitter.
    pub base_ms: u64,
    /// The longest wait in milliseconds.
    pub max_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: None, for_ms: None, base_ms: 500, max_ms: 30_000 }
    }
}

impl Retry {
    /// The attempts where something else can be done than to wait, and those that are paid for, where `attempts` says nothing.
    pub const FEW_ATTEMPTS: u32 = 4;

    /// The most attempts at one model that are paid for: time bounds only those that cost nothing.
    pub fn most_paid(&self) -> u32 {
        self.attempts.unwrap_or(Self::FEW_ATTEMPTS).max(1)
    }
}

/// The defaults, each in one place.
pub mod defaults {
    /// `max_iterations`.
    pub fn max_iterations() -> u32 {
        10
    }
    /// `timeout_ms`, in milliseconds.
    pub fn timeout_ms() -> u64 {
        300_000
    }
    /// A field that is on unless a document says `false`.
    pub fn yes() -> bool {
        true
    }
    /// `tool_timeout_ms`, in milliseconds.
    pub fn tool_timeout_ms() -> u64 {
        30_000
    }
    /// `max_observation_chars`, in characters.
    pub fn max_observation_chars() -> usize {
        12_000
    }
    /// `max_tool_calls_per_turn`.
    pub fn max_tool_calls_per_turn() -> u32 {
        32
    }
    /// The time for a whole reply, in milliseconds.
    pub fn reply_timeout_ms() -> u64 {
        600_000
    }
    /// The time for the last reply of a run at its limit, in milliseconds.
    pub fn last_call_timeout_ms() -> u64 {
        60_000
    }
    /// `warn_at`, as a part of the budget.
    pub fn warn_at() -> f64 {
        0.8
    }
    /// `select.most`.
    pub fn most_selected() -> u32 {
        12
    }
    /// `keep_last`, in turns.
    pub fn keep_last() -> u32 {
        10
    }
}
