//! The interface between the toolbox and the kinds of tools.

use std::collections::BTreeMap;
use std::future::ready;
use std::time::Duration;

use serde_json::Value;

use super::asking_tool::RawQuestion;
use super::output::fault;
use crate::drive::future::BoxFuture;
use crate::drive::retry::Transient;
use crate::drive::tool::call::{Spent, ToolCall};
use loopctl_engine::event::ToolFault;
use loopctl_lang::program::Tool;

/// Performs the calls of one kind of tool. An engine has one runner of each kind, so it may keep connections:
/// for all runs, or for one run between [`open`](Self::open) and [`close`](Self::close).
pub(super) trait ToolRunner: Send + Sync {
    /// A driver starts or resumes a run. This must be fast: a call connects what it needs.
    fn open(&self, _run: &OpenedRun) {}

    /// How long a call of a tool may wait before its own time begins; the runner ends it within both.
    fn waiting(&self, _tool: &Tool) -> Duration {
        Duration::ZERO
    }

    /// Makes a call. When the future is dropped, at its deadline or because the run stops, the call is
    /// abandoned.
    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome>;

    /// The driver leaves the run: connections that were kept for it are closed.
    fn close(&self, _run_id: &str) {}
}

/// A run that a driver starts or resumes.
#[derive(Debug, Clone, Default)]
pub struct OpenedRun {
    /// Its id.
    pub run_id: String,
    /// How many calls of each tool have returned in it already.
    pub returned: BTreeMap<String, usize>,
    /// The run that called it, when it is a sub-run.
    pub caller: Option<String>,
}

/// The outcome of a runner; it may still contain secrets.
pub(super) struct RawOutcome {
    /// The result.
    pub result: Result<Value, RawFault>,
    /// What the call used of models.
    pub spent: Spent,
}

/// Why a call failed, as its runner knows it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct RawFault {
    /// What the model and the operator read.
    pub fault: ToolFault,
    /// What the server answered, for the model.
    pub answer: Option<Box<Value>>,
    /// Set when the same call may succeed when it is made again.
    pub transient: Option<Transient>,
    /// Whether its request was sent, and what came of it is not known: the call may have happened.
    pub is_uncertain: bool,
    /// What its server asks a human before it continues.
    pub asks: Option<Box<RawQuestion>>,
}

impl RawFault {
    /// The same failure of a call whose request was sent.
    pub fn sent(self) -> Self {
        Self { is_uncertain: true, ..self }
    }
}

impl From<ToolFault> for RawFault {
    /// A failure that stays when the same is tried again.
    fn from(fault: ToolFault) -> Self {
        Self { fault, ..Self::default() }
    }
}

impl<F: Into<RawFault>> From<Result<Value, F>> for RawOutcome {
    /// The outcome of a call that used no model.
    fn from(result: Result<Value, F>) -> Self {
        Self { result: result.map_err(Into::into), spent: Spent::default() }
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
