//! The workflow document: Hyphen's `definition` with its steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::concurrency::Concurrency;
use super::mcp_offer::McpOffer;
use super::react::Budget;
use super::webhook::Trigger;
use super::{Condition, Step};

/// A workflow document.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowDocument {
    /// The JSON Schema of this document, for editors. It is never fetched.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The workflow's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The workflow's name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What the workflow is for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the input that the workflow takes. Without it any JSON object is taken.
    #[serde(default, deserialize_with = "super::react::read_schema", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::react::json_schema")]
    pub input: Option<Value>,
    /// What it is as a tool of `loopctl mcp serve` and of `POST /mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpOffer>,
    /// Its steps.
    pub definition: Definition,
}

/// A workflow's steps.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The workflow runs only when this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// The steps, in order.
    pub actions: Vec<Step>,
    /// The steps that run when a step has failed, with `@__error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<Vec<Step>>,
    /// Whether these steps run after a cancel, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_cancel: bool,
    /// What a run answers: an `@path`, or values made of them. Default: all keys that its steps wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The active time of a run in milliseconds. Waiting for a human does not count. Default: 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// What a whole run may use, the runs of its steps included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How many runs of the workflow are under way at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The IANA name of the time zone in which a date alone begins at midnight, and whose days are counted. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// When the platform starts it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// What starts it from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
}

/// When the platform starts a workflow by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// How often: `30m`, `1h`, `6h`, `1d`, `7d`.
    #[schemars(length(min = 1))]
    pub every: String,
    /// The time of the day, `HH:MM` of 24 hours. It counts where `every` is a day or longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The time zone's IANA name. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The input of a run that is started so. Default: an empty object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
}
