//! The seam between the toolbox and the kinds of tools: what every kind does for a run.

use std::collections::BTreeMap;
use std::future::ready;

use serde_json::Value;

use super::output::fault;
use crate::drive::future::BoxFuture;
use crate::drive::tool::call::{Spent, ToolCall};
use crate::engine::event::ToolFault;
use crate::program::Tool;

/// Performs the calls of one kind of tool. There is one runner a kind for each engine, so it may keep connections:
/// of all runs, or of one between [`open`](Self::open) and [`close`](Self::close).
pub(super) trait ToolRunner: Send + Sync {
    /// A driver takes a run up. Nothing slow happens here: what a call needs is connected by the call.
    fn open(&self, _run: &OpenedRun) {}

    /// Makes a call. When the future is dropped, at its deadline or because the run stops, the call is given up.
    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome>;

    /// The driver leaves the run: what was kept for it is given up.
    fn close(&self, _run_id: &str) {}
}

/// A run that a driver takes up.
#[derive(Debug, Clone, Default)]
pub struct OpenedRun {
    /// Its id.
    pub run_id: String,
    /// How many calls of each tool have returned in it already.
    pub returned: BTreeMap<String, usize>,
}

/// What a runner returns; secrets may be in it still.
pub(super) struct RawOutcome {
    /// The result.
    pub result: Result<Value, ToolFault>,
    /// What the call used of models.
    pub spent: Spent,
}

impl From<Result<Value, ToolFault>> for RawOutcome {
    /// The outcome of a call that used no model.
    fn from(result: Result<Value, ToolFault>) -> Self {
        Self { result, spent: Spent::default() }
    }
}

/// The outcome of a call that no runner can make, and why.
pub(super) fn not_available<'a>(why: impl Into<String>) -> BoxFuture<'a, RawOutcome> {
    Box::pin(ready(RawOutcome::from(Err(fault("tool not available", why)))))
}

/// The outcome of a call that came to the runner of another kind.
pub(super) fn wrong_kind<'a>(tool: &Tool) -> BoxFuture<'a, RawOutcome> {
    not_available(format!("`{}` is a tool of another kind", tool.name))
}
