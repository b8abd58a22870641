//! The project file's `serve.retention`: how long runs are kept that ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long runs are kept that ended, in days, by how they ended. What is left out has the days of `keep_days`; without it, such
/// runs are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Those that ended with an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub completed_days: Option<u32>,
    /// Those that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub failed_days: Option<u32>,
    /// Those that were cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub cancelled_days: Option<u32>,
    /// Other days for the runs of these loops and workflows, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub loops: BTreeMap<String, LoopRetention>,
}

/// How long the runs of one loop are kept that ended, in days. What is left out is as for the other loops.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoopRetention {
    /// Those that ended with an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub completed_days: Option<u32>,
    /// Those that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub failed_days: Option<u32>,
    /// Those that were cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36500))]
    pub cancelled_days: Option<u32>,
}

impl Retention {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
