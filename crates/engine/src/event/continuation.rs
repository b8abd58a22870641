//! Events with which a human makes a run continue: a retry after a failure, and raised limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Allowance;

/// A human had a run continue whose model could not be reached, or of which a step or an item failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// Who: the name of a token, or a user of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether the run had ended by its earlier document, and has not by the one that it continues with: what is under way
    /// by this one was never requested.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// The addresses of the steps that failed and whose request the new document changed: a call of such a step is another
    /// one, with a key of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// What had failed by the earlier document. By the new one, a failure may be handled first, or stop nothing: what failed is opened
    /// again before all that. Absent where only what is under way continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedParts>,
}

/// What had failed of a run when it ended by its earlier document, beside the step that ended it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedParts {
    /// The addresses of the loops with failed items.
    pub loops: Vec<String>,
    /// Whether the run had completed although these items failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completed: bool,
}

impl Retried {
    /// A retry by somebody.
    pub fn by(by: Option<String>) -> Self {
        Self { by, ..Self::default() }
    }
}

/// A human raised limits of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitsRaised {
    /// The new limits.
    pub limits: RaisedLimits,
    /// Who: the name of a token, or a user of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What the run may spend of the budget of the run that calls it, all in all: that one had its step run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Allowance>,
}

/// Limits that replace those of the document. They have the names of the document's fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RaisedLimits {
    /// The most iterations of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// The active time of the whole run, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What the whole run may spend.
    #[serde(skip_serializing_if = "Allowance::is_none")]
    pub budget: Allowance,
}

impl RaisedLimits {
    /// Whether no limit is given.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// These limits, and the earlier ones that they do not replace.
    #[must_use]
    pub(crate) fn over(self, earlier: Self) -> Self {
        Self {
            max_iterations: self.max_iterations.or(earlier.max_iterations),
            timeout_ms: self.timeout_ms.or(earlier.timeout_ms),
            budget: Allowance {
                tokens: self.budget.tokens.or(earlier.budget.tokens),
                cost_usd: self.budget.cost_usd.or(earlier.budget.cost_usd),
            },
        }
    }
}
