//! A step whose type is a tool of an MCP server.

use std::sync::Arc;

use serde_json::Value;

use super::Walk;
use crate::compile::context::Context;
use crate::compile::declare::ServedName;
use crate::compile::steps::output;

impl Walk<'_, '_, '_> {
    /// A call of the tool that the type of the step at `at` names. Returns the schema of its output.
    pub(super) fn served(&mut self, name: ServedName<'_>, at: &str, step: &Value, context: &mut Context) -> Value {
        let kind = step.get("type").and_then(Value::as_str).unwrap_or_default();
        if !self.steps.served.contains_key(kind) {
            let found = self.declare.served_step(name, at);
            self.faults.append(&mut self.declare.faults);
            if let Some(served) = found {
                self.steps.inputs.insert(kind.to_owned(), Some(Arc::clone(&served.input)));
                self.steps.served.insert(kind.to_owned(), served);
            }
        }
        let Some(served) = self.steps.served.get(kind) else {
            context.open();
            return output::ANY;
        };
        let has_key = step.get("outputKey").is_some_and(Value::is_string);
        if let Some(key) = served.key.as_ref().filter(|_| !has_key) {
            context.add_value(key, served.gives());
        }
        served.gives()
    }
}
