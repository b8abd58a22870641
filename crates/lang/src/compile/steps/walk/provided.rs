//! A step whose type is a tool of an MCP server, or of the program around the engine.

use std::sync::Arc;

use serde_json::Value;

use super::Walk;
use crate::compile::context::Context;
use crate::compile::declare::ProvidedTool;
use crate::compile::steps::output;

impl Walk<'_, '_, '_> {
    /// A call of the tool that the type of the step at `at` names. Returns the schema of its output.
    pub(super) fn provided(&mut self, tool: ProvidedTool<'_>, at: &str, step: &Value, context: &mut Context) -> Value {
        let kind = step.get("type").and_then(Value::as_str).unwrap_or_default();
        if !self.steps.provided.contains_key(kind) {
            let found = self.declare.provided_step(tool, at);
            self.faults.append(&mut self.declare.faults);
            if let Some(provided) = found {
                self.steps.inputs.insert(kind.to_owned(), Some(Arc::clone(&provided.input)));
                self.steps.provided.insert(kind.to_owned(), provided);
            }
        }
        let Some(provided) = self.steps.provided.get(kind) else {
            context.open();
            return output::ANY;
        };
        let has_key = step.get("outputKey").is_some_and(Value::is_string);
        if let Some(key) = provided.key.as_ref().filter(|_| !has_key) {
            context.add_value(key, provided.gives());
        }
        provided.gives()
    }
}
