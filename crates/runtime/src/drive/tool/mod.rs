//! Tools: performs calls. A kind of tool is a file.

mod asking_tool;
mod call;
mod charset;
mod command;
mod db;
mod embedded;
mod http;
mod llm;
mod mail;
mod matcher;
mod mcp;
mod offline_calls;
mod output;
mod runner;
mod scripted;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_compiled;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use self::call::{CallOutcome, Spent, ToolCall};
pub use self::command::{AllowedPrograms, NamedProgram, enter_group};
#[cfg(feature = "probe")]
pub use self::db::probe::ConnectedDatabases;
pub use self::embedded::interface::{DynTool, EmbeddedTool, RenamedTool, ToolError};
pub(super) use self::llm::model_of;
pub use self::mcp::{DriftClass, McpServers, SurveyedServer, compare_tools, servers_ended};
pub use self::offline_calls::NOT_PLAYED;
pub use self::runner::OpenedRun;

use self::command::CommandRunner;
use self::db::DbRunner;
use self::embedded::EmbeddedRunner;
use self::http::HttpRunner;
use self::llm::LlmRunner;
use self::mail::MailRunner;
use self::matcher::MatcherRunner;
use self::mcp::McpRunner;
use self::output::fault;
use self::runner::{RawFault, RawOutcome, ToolRunner, not_available};
use self::scripted::ScriptedRunner;
use super::egress::Egress;
use super::future::BoxFuture;
use super::model::{Models, ScriptPlayer};
use super::pending_model_call::PendingModelCall;
use super::retry::Transient;
use super::secret::Vault;
use super::stage::Stage;
use loopctl_engine::event::{ToolFault, ToolResult};
use loopctl_engine::storable;
use loopctl_lang::compile::ToolSignature;
use loopctl_lang::language::action::OnUncertain;
use loopctl_lang::language::notify::NOTIFY;
use loopctl_lang::language::{Action, Project};
use loopctl_lang::program::flow::MAX_OUTPUT_BYTES;
use loopctl_lang::program::json_length::json_bytes;
use loopctl_lang::program::mcp::ToolOrigin;
use loopctl_lang::program::{Tool, ToolKind};

/// Makes the calls of tools: has a runner for each kind.
pub struct Toolbox {
    project: Arc<Project>,
    vault: Arc<Vault>,
    /// Answers for the tools that the script names.
    script: Option<ScriptedRunner>,
    /// What is played in place of the world.
    stage: Option<Arc<Stage>>,
    http: HttpRunner,
    mail: MailRunner,
    llm: LlmRunner,
    db: DbRunner,
    command: CommandRunner,
    matcher: MatcherRunner,
    embedded: EmbeddedRunner,
    mcp: McpRunner,
}

/// While this is held, the tools of a run may be called.
pub struct RunTools<'a> {
    toolbox: &'a Toolbox,
    run_id: String,
}

impl Drop for RunTools<'_> {
    fn drop(&mut self) {
        self.toolbox.runners().for_each(|runner| runner.close(&self.run_id));
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolbox")
            .field("vault", &self.vault)
            .field("embedded", &self.embedded.names())
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
        embedded: BTreeMap<String, Arc<dyn DynTool>>,
    ) -> Self {
        Self {
            project: Arc::clone(project),
            vault: Arc::clone(vault),
            script: None,
            stage: None,
            http: HttpRunner::new(Egress::new(&project.allow), vault),
            mail: MailRunner::new(Egress::new(&project.allow), vault),
            llm: LlmRunner::new(models, vault),
            db: DbRunner::new(project, root, vault),
            command: CommandRunner::new(project, root, vault),
            matcher: MatcherRunner,
            embedded: EmbeddedRunner::new(embedded),
            mcp: McpRunner::new(project, root, vault),
        }
    }

    /// The same, with a script that answers for the tools that it names.
    #[must_use]
    pub fn with_script(mut self, script: Arc<ScriptPlayer>) -> Self {
        self.llm.refuse_calls();
        self.script = Some(ScriptedRunner::new(script));
        self
    }

    /// The same on a stage: no tool is really called.
    #[must_use]
    pub fn with_stage(mut self, stage: Arc<Stage>) -> Self {
        self.stage = Some(stage);
        self
    }

    /// The project of the tools.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Whether no tool is really called, so that no secret of one is needed.
    pub fn is_offline(&self) -> bool {
        self.stage.is_some()
    }

    /// Whether the posts of questions are played, and nothing is sent: on a stage, and where a script answers for `notify`.
    pub fn plays_posts(&self) -> bool {
        self.is_offline() || self.script.as_ref().is_some_and(|script| script.names(NOTIFY))
    }

    /// The runner of a kind; none for the kinds that the engine and the driver perform themselves.
    fn runner(&self, kind: &ToolKind) -> Option<&dyn ToolRunner> {
        Some(match kind {
            ToolKind::Http(_) => &self.http,
            ToolKind::Mail(_) => &self.mail,
            ToolKind::Action(tool) => return self.action_runner(&tool.action),
            ToolKind::Db(_) => &self.db,
            ToolKind::Command(_) => &self.command,
            ToolKind::Matcher(_) => &self.matcher,
            ToolKind::Embedded(ToolOrigin::Program) => &self.embedded,
            ToolKind::Embedded(ToolOrigin::Server(_)) => &self.mcp,
            ToolKind::Loop(_) | ToolKind::Launch(_) | ToolKind::Builtin(_) => return None,
        })
    }

    /// The runner of an action whose compiled form is its templates; [`Self::runner`] has those of the other kinds.
    fn action_runner(&self, action: &Action) -> Option<&dyn ToolRunner> {
        Some(match action {
            Action::Llm(_) => &self.llm,
            Action::CustomTable(_) => &self.db,
            Action::Http(_) | Action::Db(_) | Action::Command(_) | Action::Matcher(_) => return None,
        })
    }

    /// Every runner.
    fn runners(&self) -> impl Iterator<Item = &dyn ToolRunner> {
        let kinds: [&dyn ToolRunner; 8] =
            [&self.http, &self.mail, &self.llm, &self.db, &self.command, &self.matcher, &self.embedded, &self.mcp];
        kinds.into_iter().chain(self.script.iter().map(|script| -> &dyn ToolRunner { script }))
    }

    /// Opens the tools for a run; the driver of the run holds the result.
    pub fn open(&self, run: OpenedRun) -> RunTools<'_> {
        self.runners().for_each(|runner| runner.open(&run));
        RunTools { toolbox: self, run_id: run.run_id }
    }

    /// The number of runs whose calls are counted.
    #[cfg(test)]
    pub fn runs_counted(&self) -> usize {
        self.script.as_ref().map_or(0, ScriptedRunner::runs_counted)
    }

    /// Makes a call. It ends by its deadline, whatever the tool does, unless an embedded tool blocks its
    /// thread.
    pub async fn call(&self, tool: &Tool, call: &ToolCall<'_>) -> CallOutcome {
        let limit = call.deadline.saturating_add(self.waiting(tool));
        let outcome = match tokio::time::timeout(limit, self.perform(tool, call)).await {
            Ok(outcome) => outcome,
            // The questions to a model that were made until then are counted.
            Err(_) => {
                let spent = call.wait.map(PendingModelCall::spent).unwrap_or_default();
                let mut cut = cut_off(tool, call.deadline);
                if let Some(waited) = call.wait.and_then(PendingModelCall::line_in_words) {
                    cut.fault.class.push_str(&format!(": {waited}"));
                }
                RawOutcome { spent, ..Err(cut).into() }
            }
        };
        // An answer of a script may say that it was cut, as a database's may.
        let result = outcome.result.and_then(|value| match db::cut_result(tool, call, &value) {
            Some(cut) => Err(cut.into()),
            None => kept_by_step(tool, call, value),
        });
        let mut asks = None;
        let result = result.map_err(|mut raw| match raw.asks.take().map(|asked| asked.asked(&self.vault)) {
            Some(Ok(question)) => {
                asks = Some(Box::new(question));
                raw
            }
            Some(Err(refused)) => refused,
            None => raw,
        });
        let (result, transient, is_lost) = match result {
            // A value that a journal could not read back is kept as its text.
            Ok(value) => (ToolResult::Ok(storable::kept(self.vault.scrub_value(value))), None, false),
            Err(RawFault { fault, answer, transient, is_uncertain, .. }) => {
                let fault = ToolFault {
                    class: self.vault.scrub(fault.class),
                    detail: output::shortened(self.vault.scrub_cut(fault.detail)),
                    answer: answer.map(|answer| self.answer(*answer)).unwrap_or_default(),
                };
                (ToolResult::Failed(fault), transient, is_uncertain && !tool.idempotent)
            }
        };
        if let Some(stage) = self.stage.as_ref().filter(|_| is_lost && tool.after_lost_answer() == OnUncertain::Pause) {
            stage.answer_lost(&call.key());
        }
        CallOutcome { result, spent: outcome.spent, transient, is_lost, asks }
    }

    /// What a server answered to a call that failed, as the model reads it: JSON without secrets, cut to a bound. A text
    /// is quoted: it is data.
    fn answer(&self, answer: Value) -> String {
        match answer {
            Value::String(text) => Value::String(output::shortened(self.vault.scrub_cut(text))).to_string(),
            answer => output::shortened(self.vault.scrub_value(answer).to_string()),
        }
    }

    /// How long a call may wait before its time begins.
    fn waiting(&self, tool: &Tool) -> Duration {
        if self.stage.is_some() || self.is_scripted(tool) {
            return Duration::ZERO;
        }
        self.runner(&tool.kind).map_or(Duration::ZERO, |runner| runner.waiting(tool))
    }

    fn perform<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        if let Some(stage) = &self.stage {
            return Box::pin(self.perform_on(stage, tool, call));
        }
        if let Some(script) = self.script.as_ref().filter(|script| script.answers_for(tool)) {
            return script.call(tool, call);
        }
        match self.runner(&tool.kind) {
            Some(runner) => match self.keys(tool) {
                keys if keys.is_empty() => runner.call(tool, call),
                keys => Box::pin(async move {
                    match self.vault.freshen(&keys).await {
                        Ok(()) => runner.call(tool, call).await,
                        // The secret lies outside of the run: later it may be there.
                        Err(why) => Err(transient(fault("secret not available", why))).into(),
                    }
                }),
            },
            None => not_available("the engine performs it itself"),
        }
    }

    /// The keys of the secrets that a call uses, with those of its datasource.
    fn keys(&self, tool: &Tool) -> Vec<String> {
        if self.project.orgconfig.is_empty() {
            return Vec::new();
        }
        let datasource = tool.datasource().and_then(|name| self.project.datasources.get(name));
        let held = datasource.into_iter().flat_map(|datasource| [Some(&datasource.url), datasource.password.as_ref()]);
        let held = held.flatten().filter_map(|source| source.strip_prefix("orgconfig:")).map(str::to_owned);
        tool.secrets().into_iter().chain(held).collect()
    }

    /// The embedder's tools, as the compiler knows them.
    pub fn signatures(&self) -> Vec<ToolSignature> {
        self.embedded.signatures()
    }

    /// Whether there is an embedder's tool of a name.
    pub fn has_embedded(&self, name: &str) -> bool {
        self.embedded.has(name)
    }

    /// Whether a script answers for the tool.
    pub fn is_scripted(&self, tool: &Tool) -> bool {
        self.script.as_ref().is_some_and(|script| script.answers_for(tool))
            || self.stage.as_ref().is_some_and(|stage| stage.answers_for(&tool.name))
    }
}

/// The failure of a call that took too long.
fn timed_out(limit: Duration) -> RawFault {
    transient(fault(format!("timed out after {}", seconds(limit)), ""))
}

/// A failure after which the same call may succeed.
fn transient(fault: ToolFault) -> RawFault {
    RawFault { transient: Some(Transient::default()), ..RawFault::from(fault) }
}

/// The same for a call that was given up whatever it was at.
fn cut_off(tool: &Tool, limit: Duration) -> RawFault {
    RawFault { is_uncertain: may_have_effect(tool), ..timed_out(limit) }
}

/// Whether a call has an effect that stays when nobody takes its answer. A database ends its calls itself, and undoes them.
fn may_have_effect(tool: &Tool) -> bool {
    matches!(tool.kind, ToolKind::Http(_) | ToolKind::Mail(_) | ToolKind::Command(_) | ToolKind::Embedded(_))
}

/// The answer to a call, unless it is one of a step that can't give it and has had its effect: made again, it would have that twice.
/// Any other is refused by the step's end.
fn kept_by_step(tool: &Tool, call: &ToolCall<'_>, answer: Value) -> Result<Value, RawFault> {
    if call.at.is_none() || tool.idempotent || !may_have_effect(tool) {
        return Ok(answer);
    }
    let bytes = json_bytes(&answer);
    if bytes <= MAX_OUTPUT_BYTES {
        return Ok(answer);
    }
    let most = MAX_OUTPUT_BYTES >> 20;
    let class = format!("its output has {bytes} bytes, and a step gives at most {most} MiB");
    Err(RawFault::from(fault(class, "")).sent())
}

/// A duration for people: `30 s`, `1.5 s`, `250 ms`.
fn seconds(time: Duration) -> String {
    match time.as_millis() {
        ms if ms < 1000 => format!("{ms} ms"),
        ms if ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
