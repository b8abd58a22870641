//! What became of the post of a question.

use serde::{Deserialize, Serialize};

/// A question was posted to a target of `ask`, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionPosted {
    /// Names the question among those of its run.
    pub question: String,
    /// The address of the step that asks, or the id of the call.
    pub at: String,
    /// The target.
    pub to: String,
    /// How often it was tried, with this time.
    pub tries: u32,
    /// Why it failed; none when it was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it is tried again, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_at_ms: Option<i64>,
    /// Why it was posted without a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_link: Option<String>,
    /// Which reminder it is, from 1; 0 for the question itself.
    #[serde(default, skip_serializing_if = "is_first")]
    pub reminder: u32,
    /// Whether the question was asked again because nobody decided in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalated: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_first(reminder: &u32) -> bool {
    *reminder == 0
}
