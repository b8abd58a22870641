//! The limits of calls: how often they are made, how many at once, and when a failing tool is left alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the calls of an action are held to, in all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallLimits {
    /// How often it may be called, by all processes of the store together. Calls over it wait for their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<CallRate>,
    /// The most calls at once, of all processes of the store together. More wait for their turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u32>,
    /// When it is left alone, because its calls fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit: Option<Circuit>,
}

/// How often something may be called, by all processes of the store together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallRate {
    /// Calls in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub per_second: Option<u32>,
    /// Calls in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub per_minute: Option<u32>,
}

/// When calls that fail are no longer made, and when one is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Circuit {
    /// How many calls fail until it opens: then none is made.
    #[schemars(range(min = 1, max = 1000))]
    pub failures: u32,
    /// The time in which they fail, in milliseconds.
    #[serde(default = "within_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub within_ms: u64,
    /// How long it stays open, in milliseconds. Then one call is made: it closes the circuit, or opens it again.
    #[serde(default = "open_ms")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub open_ms: u64,
    /// How long a call waits while it is open, in milliseconds. Default: as long as the `retry` of a loop waits for its model, and two
    /// minutes for a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 86_400_000))]
    pub for_ms: Option<u64>,
}

fn within_ms() -> u64 {
    60_000
}

fn open_ms() -> u64 {
    30_000
}

impl CallLimits {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a store holds them, because they are for all processes together.
    pub fn are_of_store(&self) -> bool {
        self.rate.is_some() || self.max_concurrency.is_some()
    }
}
