//! The project file's `events`: how long events from outside are kept for runs that begin to wait for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// For how long an event is kept when the project says nothing, in seconds.
const KEEP_SECONDS: u64 = 86_400;

/// How events from outside are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EventKeeping {
    /// For how many seconds an event is kept for runs that begin to wait after it came, and its id is known. Default: 86,400.
    #[schemars(range(min = 1, max = 2_592_000))]
    pub keep_seconds: u64,
}

impl Default for EventKeeping {
    fn default() -> Self {
        Self { keep_seconds: KEEP_SECONDS }
    }
}

impl EventKeeping {
    /// Whether nothing is said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Until when an event is kept that comes at this moment, in milliseconds since 1970.
    pub fn until_ms(self, at_ms: i64) -> i64 {
        at_ms.saturating_add_unsigned(self.keep_seconds.saturating_mul(1_000))
    }
}
