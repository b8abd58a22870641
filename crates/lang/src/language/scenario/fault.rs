//! What goes wrong in a scenario: each fault has a place and a kind, and nothing is left to chance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What goes wrong.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FaultPlan {
    /// Faults at their places, all in one run.
    Listed(Vec<ScenarioFault>),
    /// One run for each tool that is called and each way in which it can fail.
    Each(EachFault),
}

/// Faults that are not listed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EachFault {
    /// Each tool, each way to fail.
    Each,
}

/// A fault of a call (`action`, `nth`, with `fails` or `says`) or of a reply (`reply`, with `fails` or `reply_is`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScenarioFault {
    /// The tool whose call fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Which attempt at a call of it, from 1. Default: each.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub nth: Option<u32>,
    /// Which reply of the model, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub reply: Option<u32>,
    /// How the call, or the request to the model, fails: `timeout`, `refused` (no connection), `reset` (the connection
    /// breaks), `http 503` or another status, `not_json`, `too_long` or `empty` (the answer).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fails: Option<String>,
    /// What the call gives instead: a text, for example one with orders for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// What the reply is instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_is: Option<ReplyFault>,
}

/// What a reply is instead of what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFault {
    /// Its first half: `max_tokens` cut it off.
    Cut,
    /// A text that is no reply of the dialect.
    NotJson,
    /// A call of a tool that there is not.
    UnknownTool,
    /// The same as the reply before.
    Repeated,
    /// The reply twice, one after the other.
    TwoAnswers,
}

/// A way in which a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolFailure {
    /// It takes longer than it may.
    Timeout,
    /// There is no connection.
    Refused,
    /// The connection breaks.
    Reset,
    /// The server answers with this status.
    Http(u16),
    /// The answer is not JSON.
    NotJson,
    /// The answer is too long to be read.
    TooLong,
    /// The answer is empty.
    Empty,
}

impl ToolFailure {
    /// The words, with a status as an example of all.
    pub const WORDS: [&str; 7] = ["timeout", "refused", "reset", "http 503", "not_json", "too_long", "empty"];

    /// The failure of a word.
    pub fn of(word: &str) -> Option<Self> {
        Some(match word {
            "timeout" => Self::Timeout,
            "refused" => Self::Refused,
            "reset" => Self::Reset,
            "not_json" => Self::NotJson,
            "too_long" => Self::TooLong,
            "empty" => Self::Empty,
            other => {
                let status = other.strip_prefix("http ")?.parse().ok()?;
                return (400..=599).contains(&status).then_some(Self::Http(status));
            }
        })
    }
}
