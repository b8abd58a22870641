//! The record of how a human made a run continue: who, when, and how the run had ended.

use schemars::JsonSchema;
use serde::Serialize;

use super::event::RaisedLimits;
use super::outcome::Termination;
use super::timestamp::as_rfc3339;

/// How a human made a run continue.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ContinuationRecord {
    /// Who: the name of a token, or a user of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When, RFC 3339.
    #[serde(rename = "at", serialize_with = "as_rfc3339")]
    #[schemars(with = "String")]
    pub at_ms: i64,
    /// The iterations before.
    pub iterations: u32,
    /// How the run had ended; none for one that had not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    /// The error that it had ended with, or paused for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The new limits; none for a retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RaisedLimits>,
}
