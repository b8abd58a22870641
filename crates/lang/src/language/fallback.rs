//! The models that a loop asks in place of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A model that is asked in place of the loop's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FallbackModel {
    /// When those before it have failed.
    Named(String),
    /// Before the loop's own, while a condition holds.
    Routed(RoutedModel),
}

/// A model that is asked before the loop's own, while a condition holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutedModel {
    /// The model: a name of the project's `models`, or a provider's own id.
    #[schemars(length(min = 1))]
    pub model: String,
    /// When it is asked first. While that does not hold, it is not asked.
    pub when: RoutingCondition,
}

/// When a model is asked before the loop's own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingCondition {
    /// When less than this share of the run's budget is left, 0 to 1: of its tokens or of its US dollars, whichever is less.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub budget_left_below: f64,
}

impl FallbackModel {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Routed(routed) => &routed.model,
        }
    }

    /// When it is asked before the loop's own; none for one that is asked after failures.
    pub fn when(&self) -> Option<RoutingCondition> {
        match self {
            Self::Named(_) => None,
            Self::Routed(routed) => Some(routed.when),
        }
    }
}
