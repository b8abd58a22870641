//! The schema of what a run of a workflow answers: its `output`, or else all keys that its steps write.

use serde_json::Value;

use super::Walk;
use crate::compile::context::{Context, STEP};
use crate::compile::steps::output;
use crate::program::file_value::PREFIX;
use crate::program::reference::as_path;

impl Walk<'_, '_, '_> {
    pub(super) fn answer(&self, context: &Context) -> Value {
        let answer = match self.main.value.pointer("/definition/output") {
            Some(written) => self.of_output(written, context),
            None if context.is_open() || context.is_full() => output::ANY,
            None => {
                let names = context.names().filter(|name| *name != STEP && !name.starts_with(PREFIX));
                let schema = |name: &str| context.schema(name).cloned().unwrap_or(output::ANY);
                output::of_keys(names.map(|name| (name.to_owned(), schema(name))))
            }
        };
        match self.main.value.pointer("/definition/condition") {
            Some(_) => {
                let why = "a workflow whose `condition` does not hold answers its `status` alone";
                output::partly_there(output::either(answer, output::not_met()), &["status"], why)
            }
            None => answer,
        }
    }

    /// A document is never deeper than its reader allows: the recursion ends.
    pub(super) fn of_output(&self, written: &Value, context: &Context) -> Value {
        match written {
            Value::Object(members) => {
                output::of_keys(members.iter().map(|(name, member)| (name.clone(), self.of_output(member, context))))
            }
            Value::Array(_) => output::list(output::ANY),
            Value::String(text) => match as_path(text) {
                Some(path) => output::part(self.schema(&path, context)),
                None if text.starts_with(['@', '\\']) || text.contains(PREFIX) => output::ANY,
                None => output::text(),
            },
            _ => output::ANY,
        }
    }
}
