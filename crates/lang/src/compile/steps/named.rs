//! Steps that run a loop or a workflow beside the document, by its name.

use std::sync::Arc;

use serde_json::Value;

use super::output;
use crate::compile::tool::{self, StepInput};
use crate::language::step::NAMED;
use crate::language::tool::LoopTool;
use crate::program::{Program, Tool};
use crate::syntax::document::Document;

/// The kind and the name of the document that a step runs.
pub(crate) fn named_document(step: &Value) -> Option<(&str, &str)> {
    let kind = step.get("type")?.as_str().filter(|kind| NAMED.contains(kind))?;
    Some((kind, step.get("name")?.as_str()?))
}

/// A step that runs a document by its name.
#[derive(Debug)]
pub(crate) struct NamedStep {
    /// The loop or the workflow; none when it is not found or has an error.
    pub program: Option<Arc<Program>>,
    /// What it takes.
    pub input: Option<Arc<StepInput>>,
    /// The key of its output, where the step names none.
    pub key: String,
    /// What of its declaration a step may say.
    declaration: LoopTool,
    /// Whether the step lasts until the end of its run.
    waits: bool,
}

impl NamedStep {
    /// A step as it is written.
    pub(super) fn of(step: &Value, name: &str) -> Self {
        let timeout_ms = step.get("timeout_ms").and_then(Value::as_u64);
        Self {
            program: None,
            input: None,
            key: name.to_owned(),
            declaration: LoopTool { name: name.to_owned(), timeout_ms, ..LoopTool::default() },
            waits: step.get("wait") != Some(&Value::Bool(false)),
        }
    }

    /// The same with what its document means. `document`: as it is written.
    pub(super) fn with(self, program: Arc<Program>, document: Option<&Document>) -> Self {
        let result_key = document.and_then(|document| document.value.pointer("/properties/result_key")?.as_str());
        let key = result_key.unwrap_or(&self.key).trim_start_matches('@').to_owned();
        let mut step = Self { program: Some(program), key, ..self };
        let tool = step.tool();
        step.input = tool.map(|tool| Arc::new(StepInput { schema: tool.parameters, sends_all: false }));
        step
    }

    /// Whether the step lasts until the end of its run.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// What of the declaration of a tool the step may say.
    pub(super) fn declaration(&self) -> LoopTool {
        self.declaration.clone()
    }

    /// What the step calls.
    pub(in crate::compile) fn tool(&self) -> Option<Tool> {
        tool::looped(&self.declaration, Arc::clone(self.program.as_ref()?), self.waits).ok()
    }

    /// The schema of what the step gives. `answer`: that of a run of a workflow.
    pub(super) fn gives(&self, answer: Option<&Value>) -> Value {
        match self.program.as_deref() {
            Some(_) if !self.waits => output::launched(),
            Some(Program::Loop(program)) => output::result(program.answer.as_ref().map(|schema| schema.source())),
            Some(Program::Flow(_)) => answer.cloned().unwrap_or(output::ANY),
            None => output::ANY,
        }
    }
}
