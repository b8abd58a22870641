//! Steps whose type is a tool of an MCP server, or of the program around the engine.

use std::sync::Arc;

use serde_json::Value;

use super::output;
use crate::compile::tool::StepInput;
use crate::program::Tool;
use crate::program::mcp::ServedTool;
use crate::program::reference::as_path;

/// What is known of the steps that call one such tool.
#[derive(Debug)]
pub(crate) struct ProvidedStep {
    /// What they take.
    pub input: Arc<StepInput>,
    /// The key of their output, where they name none; none where no path can name the tool.
    pub key: Option<String>,
    /// Whether a call may be made again.
    pub idempotent: bool,
    /// Whether it is one of a server.
    pub is_served: bool,
    /// The schema of what they give.
    gives: Value,
}

impl ProvidedStep {
    /// That of a tool, by its name (that after the server's) and the schema of what it gives.
    pub(in crate::compile) fn of(tool: &Tool, name: &str, gives: Option<&Value>) -> Self {
        let is_name = as_path(&format!("@{name}")).is_some_and(|path| path.len() == 1);
        Self {
            input: Arc::new(StepInput { schema: tool.parameters.clone(), sends_all: false }),
            key: is_name.then(|| name.to_owned()),
            idempotent: tool.idempotent,
            is_served: tool.served().is_some(),
            gives: output::part(gives.map(ServedTool::plain_schema).as_ref()),
        }
    }

    /// The schema of what they give.
    pub(super) fn gives(&self) -> Value {
        self.gives.clone()
    }
}
