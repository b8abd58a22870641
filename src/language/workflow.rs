//! The workflow document: Hyphen's `definition` with its steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// When the platform starts it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
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
}
