//! The loop document: one `"type": "loop"` step that is a document of its own.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::concurrency::Concurrency;
use super::fields::{choice, read_without};
use super::mcp_offer::McpOffer;
use super::{Action, Filter, ForeachProperties, ReactProperties, Step};

/// A loop document: one loop step, with what it takes and the actions that it carries along.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopDocument {
    /// The JSON Schema of this document, for editors. It is never fetched.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Always `"loop"`.
    #[serde(rename = "type")]
    pub kind: LoopType,
    /// The loop's name: what other documents call it by, and what lists and traces show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the loop is for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of the input that the loop takes. Without it any JSON object is taken.
    #[serde(default, deserialize_with = "super::react::read_schema", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::react::json_schema")]
    pub input: Option<Value>,
    /// How many runs of the loop are under way at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// What it is as a tool of `loopctl mcp serve` and of `POST /mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpOffer>,
    /// Registered actions that the document carries along; they are looked up before all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// What the loop does.
    pub properties: LoopProperties,
    /// The step runs only when this condition holds. It has a meaning inside a workflow only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// The step that runs instead when `filter` does not hold.
    #[serde(rename = "onFalse", default, skip_serializing_if = "Option::is_none")]
    pub on_false: Option<Box<Step>>,
    /// The context key of the step's output. It has a meaning inside a workflow only.
    #[serde(rename = "outputKey", default, skip_serializing_if = "Option::is_none")]
    pub output_key: Option<String>,
}

/// The word that marks a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LoopType {
    /// The only one.
    #[serde(rename = "loop")]
    Loop,
}

/// What the loop does, by its `mode`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum LoopProperties {
    /// The model thinks, picks a declared tool, and reads what it gave, until it completes.
    React(ReactProperties),
    /// The same steps for each item of an array.
    Foreach(ForeachProperties),
}

impl<'de> Deserialize<'de> for LoopProperties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = choice(&value, "mode").and_then(|mode| match mode {
            "react" => read_without(&value, "mode").map(Self::React),
            "foreach" => read_without(&value, "mode").map(Self::Foreach),
            unknown => Err(serde_json::Error::unknown_variant(unknown, &["react", "foreach"])),
        });
        read.map_err(D::Error::custom)
    }
}
