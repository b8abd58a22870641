//! The properties of a loop of mode `foreach`, Hyphen's table whole.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Step;
use super::react::Budget;

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
    /// What an item is called wherever it is shown: a template, or an `@path`. At most 80 characters of it are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub item_label: Option<String>,
    /// The steps for each item.
    pub actions_to_execute: Vec<Step>,
    /// The steps that run when a step of an item has failed, with `@__error` and the keys of the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<Vec<Step>>,
    /// How many items are worked on at a time, 1 to 256.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 256))]
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
    /// What is gathered of each item: an `@path`, or an object or a list of them. Default: what its last step gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "collect_schema")]
    pub collect: Option<Value>,
    /// The context key of the counts: how many items completed, failed, were skipped or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_key: Option<String>,
    /// The most items, those of loops inside included; a longer list fails the step. Default: 10,000.
    #[serde(default = "most_items")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_items: u32,
    /// With `continue_on_error`: how many items may fail before no further item begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// The time of one item in milliseconds. Waiting for a human does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub item_timeout_ms: Option<u64>,
    /// What one item may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_budget: Option<Budget>,
    /// What an item does to the others while it waits for a human.
    #[serde(default)]
    pub on_pause: OnItemPause,
}

/// What an item does to the others while it waits for a human.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnItemPause {
    /// It keeps its place among the `max_concurrency` items.
    #[default]
    Wait,
    /// It gives its place to the next item.
    GoOn,
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

fn collect_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "minLength": 1 },
            { "type": "object" },
            { "type": "array" },
            { "type": "null" },
        ],
    })
}

fn one() -> u32 {
    1
}

fn most_items() -> u32 {
    10_000
}
