//! The properties of a loop of mode `foreach`, Hyphen's table whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;

/// What a loop of mode `foreach` does: the same steps for each item of an array.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForeachProperties {
    /// The `@path` of the array.
    #[schemars(length(min = 1))]
    pub items_path: String,
    /// The name of the current item: `@name.field` in the steps.
    #[schemars(length(min = 1))]
    pub item_variable_name: String,
    /// The steps for each item.
    pub actions_to_execute: Vec<Step>,
    /// How many items are worked on at a time.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub max_concurrency: u32,
    /// What a failing item does to the others.
    #[serde(default)]
    pub failure_strategy: FailureStrategy,
    /// Whether what each item gave is gathered.
    #[serde(default)]
    pub collect_results: bool,
    /// The context key of what was gathered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_key: Option<String>,
}

/// What a failing item does to the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureStrategy {
    /// It stops the loop and fails the run.
    #[default]
    StopOnError,
    /// It is noted, and the others go on.
    ContinueOnError,
}

fn one() -> u32 {
    1
}
