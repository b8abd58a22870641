//! How a failed call is made again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a failed call is made again: after a fault of the connection, a timeout, or an answer with one of these
/// statuses, with full jitter; `Retry-After` is obeyed up to `max_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallRetry {
    /// The most attempts, the first one too.
    #[schemars(range(min = 1, max = 10))]
    pub attempts: u32,
    /// The first wait in milliseconds, before jitter.
    #[schemars(range(max = 3_600_000))]
    pub base_ms: u64,
    /// The longest wait in milliseconds, also when the server asks for a longer one.
    #[schemars(range(max = 3_600_000))]
    pub max_ms: u64,
    /// The statuses after which a call is made again. Default: 408, 425, 429, and 500 to 599.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), inner(range(min = 400, max = 599)))]
    pub on: Option<Vec<u16>>,
}

impl Default for CallRetry {
    fn default() -> Self {
        Self { attempts: 3, base_ms: 500, max_ms: 30_000, on: None }
    }
}

impl CallRetry {
    /// Whether a call is made again after an answer with this status.
    pub fn is_on(&self, status: u16) -> bool {
        match &self.on {
            Some(statuses) => statuses.contains(&status),
            None => matches!(status, 408 | 425 | 429 | 500..=599),
        }
    }
}
