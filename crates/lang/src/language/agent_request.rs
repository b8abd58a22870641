//! The agent request: what Hyphen's `POST /agents/execute` takes.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Action, ReactProperties, ToolDeclaration};

/// The file name of a document that came with a request.
pub const REQUEST: &str = "request.json";

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
    #[schemars(schema_with = "config_schema")]
    pub config: Map<String, Value>,
    /// The input of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// Registered actions that the request carries along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// The id of an earlier run. Its outcome is given to the model of the new run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_run_id: Option<String>,
}

/// The schema of `config`: a react loop's properties without those of the top level. `mode`
/// may be written, and can only be `react`.
fn config_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = ReactProperties::json_schema(generator);
    schema.remove("required");
    schema.insert("description".to_owned(), Value::from("Any other property of a loop of mode `react`."));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_remove("objective");
        properties.shift_remove("tools");
        let mode = serde_json::json!({ "type": "string", "const": "react", "description": "Always `react`." });
        properties.insert("mode".to_owned(), mode);
    }
    schema
}
