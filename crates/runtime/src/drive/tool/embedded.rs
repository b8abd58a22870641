//! Embedded tools: functions of the program that embeds loopctl.

pub(super) mod interface;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::DynTool;
use super::output::fault;
use super::runner::{RawFault, RawOutcome, ToolRunner, not_available};
use crate::drive::future::BoxFuture;
use crate::drive::future::Caught;
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::ToolFault;
use loopctl_lang::compile::ToolSignature;
use loopctl_lang::program::Tool;

/// The deepest nesting of a result, which is also the limit for parsed text.
const MAX_DEPTH: usize = 128;

/// Makes the calls of the embedder's tools.
pub(super) struct EmbeddedRunner {
    tools: BTreeMap<String, Arc<dyn DynTool>>,
}

impl EmbeddedRunner {
    pub(super) fn new(tools: BTreeMap<String, Arc<dyn DynTool>>) -> Self {
        Self { tools }
    }

    /// The names of the tools.
    pub(super) fn names(&self) -> Vec<&String> {
        self.tools.keys().collect()
    }

    /// Whether there is one of a name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// The tools, as the compiler knows them.
    pub(super) fn signatures(&self) -> Vec<ToolSignature> {
        self.tools.values().map(|tool| tool.signature()).collect()
    }
}

impl ToolRunner for EmbeddedRunner {
    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match self.tools.get(&tool.name) {
            Some(embedded) => Box::pin(async move { make(embedded.as_ref(), call).await.into() }),
            None => not_available(format!("no function is registered as `{}`", tool.name)),
        }
    }
}

/// Makes a call. A panic in the tool is a failure of the call, not of the run.
async fn make(tool: &dyn DynTool, call: &ToolCall<'_>) -> Result<Value, RawFault> {
    // The tool is called inside the future, so that a panic before the first await is caught too.
    let outcome: BoxFuture<'_, Result<Value, ToolFault>> = Box::pin(async move { tool.call(call).await });
    let value = Caught(outcome).await.map_err(|message| RawFault::from(fault("tool panicked", message)).sent())??;
    if is_too_deep(&value) {
        dismantle(value);
        return Err(RawFault::from(fault("result nested too deep", format!("more than {MAX_DEPTH} levels"))).sent());
    }
    Ok(value)
}

fn is_too_deep(value: &Value) -> bool {
    is_deeper(value, MAX_DEPTH)
}

/// Whether a value is nested deeper than `levels`. Recurses no deeper than that.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, below)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, below)),
        _ => false,
    }
}

/// Drops a value level by level: a plain drop would recurse as deep as the value is nested.
fn dismantle(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.into_iter().map(|(_, field)| field)),
            _ => {}
        }
    }
}
