//! The agent request: what Hyphen's `POST /agents/execute` takes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Action, ToolDeclaration};

/// An agent request: an objective and its tools, and under `config` any other loop property.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRequest {
    /// The JSON Schema of this document, for editors. It is never fetched.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// What the agent is to reach. A template: `{{input.name}}`.
    #[schemars(length(min = 1))]
    pub objective: String,
    /// The tools that the model may call, and no others.
    pub tools: Vec<ToolDeclaration>,
    /// Any other property of a loop of mode `react`: `model`, `max_iterations`, `on_stuck`, ...
    #[serde(default)]
    pub config: Map<String, Value>,
    /// The input of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// Registered actions that the request carries along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// A run whose outcome the new one is told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_run_id: Option<String>,
}
