//! What a loop or workflow is as a tool of `loopctl mcp serve` and of `POST /mcp`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What clients of the Model Context Protocol hear of a loop or workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpOffer {
    /// What it says of the effects of its calls. Nothing is said unless it is written here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<OfferedHints>,
}

/// Hints of a tool, by the names of the protocol. They are listed as they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OfferedHints {
    /// The name that people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub title: Option<String>,
    /// Whether a call changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether a call may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether the same call again changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether a call reaches what is outside of the server's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}
