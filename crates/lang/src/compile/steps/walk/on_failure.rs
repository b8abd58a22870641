//! The steps that run when a list of steps has failed.

use serde_json::Value;

use super::Walk;
use crate::compile::context::Context;
use crate::compile::steps::output;
use crate::program::flow::{ERROR_KEY, ON_FAILURE};

/// The JSON pointer of those of a workflow.
pub(super) const OF_WORKFLOW: &str = "/definition/on_failure";

impl<'a> Walk<'_, 'a, '_> {
    /// They may read what the steps before them wrote, and the failure; nothing reads what they write but they.
    pub(super) fn on_failure(&mut self, at: &str, steps: Option<&'a Value>, context: &Context) {
        let Some(steps) = steps else { return };
        let mut inside = context.clone();
        inside.add_value(ERROR_KEY, output::error());
        self.list(at, Some(steps), &mut inside);
    }

    /// Whether the list that a step is in has such steps, by the JSON pointer of something in the step.
    pub(super) fn has_failure_steps(&self, at: &str) -> bool {
        let first = at.split("/onFalse").next().unwrap_or(at).trim_end_matches("/id");
        let list = first.rsplit_once('/').and_then(|(list, _)| list.rsplit_once('/'));
        list.is_some_and(|(owner, _)| self.main.value.pointer(&format!("{owner}/{ON_FAILURE}")).is_some())
    }
}
