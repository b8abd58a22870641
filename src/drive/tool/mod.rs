//! Tools: what a call does. A kind a file.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::model::{Models, Script};
use super::secret::Vault;
use crate::compile::Tool;
use crate::engine::event::{CallId, Tokens, ToolFault, ToolResult};
use crate::language::Project;

/// A call to be made.
pub struct ToolCall<'a> {
    /// Which one.
    pub id: CallId,
    /// Its input, valid by the tool's schema.
    pub input: &'a Value,
    /// The run's input.
    pub run_input: &'a Value,
    /// The run.
    pub run_id: &'a str,
    /// The moment, RFC 3339.
    pub now: &'a str,
    /// The run's model, for `llm` actions that name none.
    pub model: &'a str,
    /// How long it may take.
    pub deadline: Duration,
}

impl ToolCall<'_> {
    /// The call's idempotency key: run, iteration, call. The same for every attempt at the call.
    pub fn key(&self) -> String {
        format!("{}-{}-{}", self.run_id, self.id.iteration, self.id.index)
    }
}

/// What a call gave.
#[derive(Debug)]
pub struct Called {
    /// Its result, without any resolved secret.
    pub result: ToolResult,
    /// Tokens that it used itself (`llm`).
    pub tokens: Option<Tokens>,
}

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool written in Rust, registered by name beside the declared ones.
pub trait EmbeddedTool: Send + Sync {
    /// What the model is told about it.
    fn description(&self) -> &str;

    /// The JSON Schema of its input.
    fn parameters(&self) -> Value;

    /// Whether a call may be made again without harm.
    fn idempotent(&self) -> bool {
        false
    }

    /// Makes a call.
    ///
    /// # Errors
    /// A failure is an observation, never the end of the run.
    fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>>;
}

/// All that calls need of the world.
pub struct Toolbox {
    // the helper who owns this room decides
}

impl Toolbox {
    /// The tools of a project in its folder `root`.
    pub fn new(
        _project: &Arc<Project>,
        _root: &Path,
        _vault: &Arc<Vault>,
        _models: &Arc<Models>,
        _embedded: BTreeMap<String, Arc<dyn EmbeddedTool>>,
    ) -> Self {
        Self {}
    }

    /// The same, with a script that answers for the tools that it names.
    #[must_use]
    pub fn with_script(self, _script: Arc<Script>) -> Self {
        self
    }

    /// Makes a call. It ends by its deadline, whatever the tool does.
    pub async fn call(&self, _tool: &Tool, _call: &ToolCall<'_>) -> Called {
        Called { result: ToolResult::Ok(Value::Null), tokens: None }
    }
}
