//! The rate of a model: how much it may be asked in a minute.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a model may be asked in a minute, by all processes of the store together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelRate {
    /// Requests in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests_per_minute: Option<u64>,
    /// Tokens in a minute: those of what the model reads and of its reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens_per_minute: Option<u64>,
}
