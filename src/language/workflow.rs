//! The workflow document: Hyphen's `definition` with its steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    pub condition: Option<Value>,
    /// The steps, in order.
    pub actions: Vec<Value>,
    /// When the platform starts it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Value>,
}
