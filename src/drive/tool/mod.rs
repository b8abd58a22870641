//! Tools: what a call does. A kind a file.

mod command;
mod db;
mod embedded;
mod http;
mod llm;
mod output;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_compiled;
mod twice;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

pub use self::command::enter_group;
use self::http::Http;
use self::output::fault;
use super::descriptors;
use super::egress::Egress;
use super::model::{Models, ScriptPlayer};
use super::secret::Vault;
use crate::compile::Embedded;
use crate::engine::event::{Allowance, CallId, Tokens, ToolFault, ToolResult};
use crate::engine::storable;
use crate::language::Project;
use crate::program::reference::Scope;
use crate::program::{CommandTool, DbTool, HttpTool, LlmTool};
use crate::program::{Tool, ToolKind};

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
    /// What the run may still spend: an `llm` action makes no other attempt when its failed ones used that.
    pub left: Allowance,
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
    /// What it used itself (`llm`).
    pub spent: Spent,
}

/// What a call used of models.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// The tokens; nothing when no model was asked.
    pub tokens: Option<Tokens>,
    /// What they cost in US dollars, when the model's price is known.
    pub cost_usd: Option<f64>,
    /// Whether some of them are an estimate, because a provider did not say.
    pub estimated: bool,
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

    /// Makes a call. It is dropped at its deadline: it must not block its thread.
    ///
    /// # Errors
    /// A failure is an observation, never the end of the run.
    fn call<'a>(&'a self, call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>>;
}

/// All that calls need of the world.
pub struct Toolbox {
    project: Arc<Project>,
    root: PathBuf,
    vault: Arc<Vault>,
    models: Arc<Models>,
    embedded: BTreeMap<String, Arc<dyn EmbeddedTool>>,
    http: Http,
    script: Option<Arc<ScriptPlayer>>,
    /// How many calls a script answered, by run and tool.
    answered: Mutex<HashMap<String, BTreeMap<String, usize>>>,
}

/// For as long as this is held, the calls of a run are counted that a script answers.
#[derive(Debug)]
pub struct Counted<'a> {
    toolbox: &'a Toolbox,
    run_id: String,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.toolbox.counters().remove(&self.run_id);
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox")
            .field("root", &self.root)
            .field("vault", &self.vault)
            .field("embedded", &self.embedded.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Toolbox {
    /// The tools of a project in its folder `root`.
    pub fn new(
        project: &Arc<Project>,
        root: &Path,
        vault: &Arc<Vault>,
        models: &Arc<Models>,
        embedded: BTreeMap<String, Arc<dyn EmbeddedTool>>,
    ) -> Self {
        Self {
            project: Arc::clone(project),
            root: root.to_owned(),
            vault: Arc::clone(vault),
            models: Arc::clone(models),
            embedded,
            http: Http::new(Egress::new(&project.allow)),
            script: None,
            answered: Mutex::default(),
        }
    }

    /// The same, with a script that answers for the tools that it names.
    #[must_use]
    pub fn with_script(self, script: Arc<ScriptPlayer>) -> Self {
        Self { script: Some(script), ..self }
    }

    /// To be held by whoever drives a run. `made` tells how many calls of each tool it has made already, so
    /// that a script goes on where the run stopped. None where there is no script.
    pub fn counted(&self, run_id: &str, made: impl Iterator<Item = (String, usize)>) -> Option<Counted<'_>> {
        self.script.as_ref()?;
        self.counters().insert(run_id.to_owned(), made.collect());
        Some(Counted { toolbox: self, run_id: run_id.to_owned() })
    }

    fn counters(&self) -> std::sync::MutexGuard<'_, HashMap<String, BTreeMap<String, usize>>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of how many runs calls are counted.
    #[cfg(test)]
    pub fn runs_counted(&self) -> usize {
        self.counters().len()
    }

    /// Makes a call. It ends by its deadline, whatever the tool does, but for an embedded tool that
    /// blocks its thread.
    pub async fn call(&self, tool: &Tool, call: &ToolCall<'_>) -> Called {
        let (result, spent) = match tokio::time::timeout(call.deadline, self.perform(tool, call)).await {
            Ok(made) => made,
            Err(_) => (Err(fault(format!("timed out after {}", seconds(call.deadline)), "")), Spent::default()),
        };
        let result = match result {
            // What a journal could not give back is kept as its text.
            Ok(value) => ToolResult::Ok(storable::kept(self.vault.scrub_value(value))),
            Err(fault) => ToolResult::Failed(ToolFault {
                class: self.vault.scrub(fault.class),
                detail: output::shortened(self.vault.scrub_cut(fault.detail)),
            }),
        };
        Called { result, spent }
    }

    async fn perform(&self, tool: &Tool, call: &ToolCall<'_>) -> (Result<Value, ToolFault>, Spent) {
        if let Some(result) = self.scripted(tool, call) {
            return (result, Spent::default());
        }
        let result = match &tool.kind {
            ToolKind::Http(http) => self.http(http, call).await,
            ToolKind::Llm(llm) => return self.llm(llm, call).await,
            ToolKind::Db(query) => self.db(query, tool.parameters.source(), call).await,
            ToolKind::Command(command) => self.command(command, call).await,
            ToolKind::Embedded => match self.embedded.get(&tool.name) {
                Some(embedded) => embedded::call(embedded.as_ref(), call).await,
                None => Err(fault("tool not available", format!("no function is registered as `{}`", tool.name))),
            },
            ToolKind::Loop(_) => Err(fault("tool not available", "a loop is called as a run of its own")),
            ToolKind::Builtin(_) => Err(fault("tool not available", "a built-in tool is the engine's own")),
        };
        (result, Spent::default())
    }

    // A scope can't go from thread to thread: each kind is prepared with it at once, and waits
    // without it.

    async fn http(&self, tool: &HttpTool, call: &ToolCall<'_>) -> Result<Value, ToolFault> {
        let request = http::prepare(tool, call, &self.scope(call))?;
        self.http.perform(request, tool.action.ok_status.as_deref()).await
    }

    async fn llm(&self, tool: &LlmTool, call: &ToolCall<'_>) -> (Result<Value, ToolFault>, Spent) {
        if self.script.is_some() {
            // A script's replies are the run's own: a tool that took one would play another run.
            let why = "name the tool under `tools` in the script".to_owned();
            return (Err(output::fault("the script does not answer for this tool", why)), Spent::default());
        }
        let prepared = llm::prepare(tool, &self.scope(call));
        match prepared {
            Ok(conversation) => llm::ask(tool, (call.model, call.left), &conversation, &self.models).await,
            Err(fault) => (Err(fault), Spent::default()),
        }
    }

    async fn db(&self, tool: &DbTool, schema: &Value, call: &ToolCall<'_>) -> Result<Value, ToolFault> {
        let world = db::World { project: &self.project, root: &self.root, vault: &self.vault };
        let (source, query) = db::prepare(tool, schema, &world, &self.scope(call))?;
        // What can't be opened does not say why.
        descriptors::available().await;
        db::run(source, query).await
    }

    async fn command(&self, tool: &CommandTool, call: &ToolCall<'_>) -> Result<Value, ToolFault> {
        let prepared = command::prepare(tool, &self.project.allow, &self.root, &self.scope(call))?;
        command::run(&prepared).await
    }

    fn scope<'a>(&'a self, call: &ToolCall<'a>) -> Scope<'a> {
        Scope {
            arguments: call.input,
            input: call.run_input,
            now: call.now,
            run_id: call.run_id,
            extra: &[],
            secrets: Some(self.vault.as_ref()),
        }
    }

    /// The embedder's tools, as the compiler knows them.
    pub fn signatures(&self) -> Vec<Embedded> {
        let tools = self.embedded.iter();
        tools
            .map(|(name, tool)| (name.clone(), tool.description().to_owned(), tool.parameters(), tool.idempotent()))
            .collect()
    }

    /// Whether a script answers for the tool.
    pub fn is_scripted(&self, tool: &Tool) -> bool {
        self.script.as_ref().is_some_and(|script| script.names_tool(&tool.name))
    }

    /// What the script says, when it names the tool.
    fn scripted(&self, tool: &Tool, call: &ToolCall<'_>) -> Option<Result<Value, ToolFault>> {
        let script = self.script.as_ref().filter(|script| script.names_tool(&tool.name))?;
        let nth = {
            let mut counters = self.counters();
            let run = counters.entry(call.run_id.to_owned()).or_default();
            let made = run.entry(tool.name.clone()).or_default();
            let nth = *made;
            *made = made.saturating_add(1);
            nth
        };
        match script.tool(&tool.name, nth)? {
            ToolResult::Ok(value) => Some(Ok(value)),
            ToolResult::Failed(fault) => Some(Err(fault)),
        }
    }
}

/// A time as people say it: `30 s`, `1.5 s`, `250 ms`.
fn seconds(time: Duration) -> String {
    match time.as_millis() {
        ms if ms < 1000 => format!("{ms} ms"),
        ms if ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
