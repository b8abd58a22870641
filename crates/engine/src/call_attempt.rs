//! A failed attempt at a call, as the state keeps it and the trace shows it.

use schemars::JsonSchema;
use serde::Serialize;

use super::event::{AskedAttempt, ToolFault};
use super::timestamp::as_rfc3339;

/// A failed attempt at a call that was made again, or whose answer was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallAttempt {
    /// When it failed, RFC 3339.
    #[serde(rename = "at", serialize_with = "as_rfc3339")]
    #[schemars(with = "String")]
    pub at_ms: i64,
    /// Why it failed.
    pub error: ToolFault,
    /// The time of the attempt in milliseconds.
    pub duration_ms: u64,
    /// The wait after it in milliseconds.
    pub delay_ms: u64,
    /// Whether its answer was lost, so that a human was asked whether the call happened; left out when it was not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

impl From<AskedAttempt> for CallAttempt {
    fn from(asked: AskedAttempt) -> Self {
        let AskedAttempt { at_ms, reason, duration_ms, delay_ms } = asked;
        Self { at_ms, error: ToolFault::new(reason, ""), duration_ms, delay_ms, lost: false }
    }
}

/// What a human is asked of a call whose answer was lost in its last attempt.
pub(super) fn lost_answer(tool: &str, attempts: &[CallAttempt]) -> String {
    let class = attempts.last().map(|attempt| attempt.error.class.as_str()).unwrap_or_default();
    format!("called {tool}, and its answer was lost: {class}. Did it happen?")
}

/// The time of failed attempts, with the waits after them, in milliseconds.
pub(super) fn time_of(attempts: &[CallAttempt]) -> u64 {
    let of_one = |attempt: &CallAttempt| attempt.duration_ms.saturating_add(attempt.delay_ms);
    attempts.iter().map(of_one).fold(0, u64::saturating_add)
}
