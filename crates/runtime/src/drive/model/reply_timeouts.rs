//! The times that a reply may take.

use std::time::Duration;

use loopctl_lang::language::react::{self, ReactProperties};

/// How long a reply is waited for.
#[derive(Debug, Clone, Copy)]
pub struct ReplyTimeouts {
    /// How long a server may send nothing. By default `STALL` within a streamed reply that has started: models think
    /// long before the first byte.
    pub stall: Option<Duration>,
    /// How long the whole reply may take.
    pub reply: Duration,
}

/// How long a server may send nothing within a streamed reply, unless the loop says otherwise.
pub(super) const STALL: Duration = Duration::from_secs(60);

impl ReplyTimeouts {
    /// Those of a loop.
    pub fn of(properties: &ReactProperties) -> Self {
        Self {
            stall: properties.stall_timeout_ms.map(Duration::from_millis),
            reply: Duration::from_millis(properties.reply_timeout_ms),
        }
    }
}

impl Default for ReplyTimeouts {
    fn default() -> Self {
        Self { stall: None, reply: Duration::from_millis(react::defaults::reply_timeout_ms()) }
    }
}
