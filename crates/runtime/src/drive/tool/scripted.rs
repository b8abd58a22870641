//! Tools for which a script answers: the n-th call of a tool in its run gets the script's n-th answer.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::asking_tool::played;
use super::llm::scripted_answer;
use super::runner::{OpenedRun, RawFault, RawOutcome, ToolRunner, not_available};
use crate::drive::future::BoxFuture;
use crate::drive::model::ScriptPlayer;
use crate::drive::retry::Transient;
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::{ToolFault, ToolResult};
use loopctl_lang::program::Tool;

/// Answers from a script, whatever the kind of the tool.
pub(super) struct ScriptedRunner {
    script: Arc<ScriptPlayer>,
    /// How many calls it answered, by run and tool.
    answered: Mutex<HashMap<String, BTreeMap<String, usize>>>,
}

impl ScriptedRunner {
    pub(super) fn new(script: Arc<ScriptPlayer>) -> Self {
        Self { script, answered: Mutex::default() }
    }

    /// Whether the script answers for this tool.
    pub(super) fn answers_for(&self, tool: &Tool) -> bool {
        self.names(&tool.name)
    }

    /// Whether it answers for a tool of this name.
    pub(super) fn names(&self, tool: &str) -> bool {
        self.script.names_tool(tool)
    }

    fn counters(&self) -> MutexGuard<'_, HashMap<String, BTreeMap<String, usize>>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of how many runs calls are counted.
    #[cfg(test)]
    pub(super) fn runs_counted(&self) -> usize {
        self.counters().len()
    }
}

impl ToolRunner for ScriptedRunner {
    /// The script continues where the run stopped.
    fn open(&self, run: &OpenedRun) {
        self.counters().insert(run.run_id.clone(), run.returned.clone());
    }

    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        let nth = {
            let mut counters = self.counters();
            let run = counters.entry(call.run_id.to_owned()).or_default();
            let answered = run.entry(tool.name.clone()).or_default();
            let nth = *answered;
            *answered = answered.saturating_add(1);
            nth
        };
        match self.script.tool(&tool.name, nth) {
            Some(ToolResult::Ok(value)) => {
                let answer = scripted_answer(tool, value).map_err(RawFault::from);
                let answer = answer.and_then(|value| played(tool, value));
                Box::pin(ready(RawOutcome::from(answer)))
            }
            Some(ToolResult::Failed(fault)) => Box::pin(ready(RawOutcome::from(Err(failed(fault))))),
            None => not_available("the script does not name it"),
        }
    }

    fn close(&self, run_id: &str) {
        self.counters().remove(run_id);
    }
}

/// A failure of a script: that of a server with a status where its words are `http 503`, else one without an answer.
pub(super) fn failed(fault: ToolFault) -> RawFault {
    let status = fault.class.strip_prefix("http ").and_then(|status| status.parse().ok());
    RawFault { transient: Some(Transient { status, after: None }), ..RawFault::from(fault) }
}
