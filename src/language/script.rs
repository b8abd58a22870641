//! The script: what a scripted model says, and what scripted tools answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A script: it takes the place of every model, and of the tools that it names.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The JSON Schema of this document, for editors. It is never fetched.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// What the model says, one entry a call: `{"thought", "action", "action_input"}`,
    /// `{"thought", "calls": [{"action", "action_input"}]}` and `{"thought", "answer"}` are said in the
    /// words of the loop's dialect; a string is said as it stands; `{"http": 429, "headers": {}}` is a server's
    /// refusal; `{"delay_ms": 50, "text": "..."}` waits first.
    pub replies: Vec<Value>,
    /// What the model says in the loops that are called, by their names, as in `replies`; each run of
    /// such a loop begins at the first entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loops: BTreeMap<String, Vec<Value>>,
    /// What tools answer, by name, one entry a call and the last one again and again:
    /// `{"error": "..."}` is a failure, anything else the result. Tools without an entry really run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Vec<Value>>,
}
