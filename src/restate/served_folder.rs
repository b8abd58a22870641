//! The served folder: which loop a request starts, the program of a run, and the timeouts that Restate must have.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::attempt_journal::AttemptJournal;
use crate::diagnostic::Source;
use crate::drive::engine::Engine;
use crate::drive::fault::Fault;
use crate::drive::fold;
use crate::drive::run_meter::RunMeters;
use crate::drive::start::Start;
use crate::engine::event::Event;
use crate::journal::Journal;
use crate::language::Project;
use crate::language::approval::OnExpiry;
use crate::language::mcp::McpServer;
use crate::language::project::Datasource;
use crate::program::{Program, Tool};
use crate::serve::Folder;
use crate::serve::folder::ServedLoop;
use crate::serve::route::LoopRequest;
use crate::serve::view::is_session;

/// What a run may take beyond its own limit before Restate takes it for dead: the last call, and the end of tools.
const EXTRA_RUN_TIME: Duration = Duration::from_secs(120);

/// The loops of a folder.
pub struct ServedFolder {
    folder: Folder,
    /// What counts the runs.
    meters: Option<Arc<dyn RunMeters>>,
}

/// What starts a run.
pub struct OrderedRun {
    pub program: Arc<Program>,
    /// Its input.
    pub start: Start,
}

impl ServedFolder {
    /// The loops of a folder.
    ///
    /// # Errors
    /// When one of them can't be run here, in a sentence.
    pub fn new(folder: Folder, meters: Option<Arc<dyn RunMeters>>) -> Result<Self, String> {
        let launches = |offered: &&ServedLoop| launches(&offered.program, 0);
        if let Some(offered) = folder.loops.values().find(launches) {
            return Err(format!(
                "`{}` starts workflows without waiting for them (`\"wait\": false`), which Restate mode can't do yet",
                offered.program.name
            ));
        }
        for offered in folder.loops.values() {
            if !offered.program.project.limits.is_empty() {
                return Err(format!(
                    "`{}`: the `limits` of its project are held by a store, and the runs of a Restate server are not in one",
                    offered.program.name
                ));
            }
            if offered.program.project.models.values().any(|model| model.rate.is_some()) {
                return Err(format!(
                    "`{}`: the `rate` of a model of its project is held by a store, and the runs of a Restate server are not in one",
                    offered.program.name
                ));
            }
            if limits_calls(&offered.program.project) {
                return Err(format!(
                    "`{}`: a `rate` and a `max_concurrency` of calls of its project are held by a store, and the runs of a Restate server \
                     are not in one",
                    offered.program.name
                ));
            }
            if let Some(why) = unkept_approval(&offered.program, 0) {
                return Err(format!("`{}`: {why}", offered.program.name));
            }
        }
        Ok(Self { folder, meters })
    }

    /// How many loops and workflows there are.
    pub fn count(&self) -> usize {
        self.folder.loops.len()
    }

    /// How long an invocation may be silent: no step of a run takes longer than a run may.
    pub fn longest_silence(&self) -> Duration {
        let longest = self.folder.loops.values().map(|offered| offered.program.timeout_ms).max();
        Duration::from_millis(longest.unwrap_or(0)).saturating_add(EXTRA_RUN_TIME)
    }

    /// The run that a request asks for.
    ///
    /// # Errors
    /// Why it can't be started, in a sentence.
    pub fn order(&self, request: Value, run_id: &str) -> Result<OrderedRun, String> {
        let request: LoopRequest = serde_json::from_value(request)
            .map_err(|why| format!("the input is {{\"loop\": NAME, \"input\": {{...}}}}: {why}"))?;
        let Some(offered) = self.folder.loops.get(&request.name) else {
            return Err(format!("there is no loop `{}`", request.name));
        };
        if request.callback_url.is_some() || request.previous_run_id.is_some() {
            return Err("`callback_url` and `previous_run_id` are not in Restate mode yet".to_owned());
        }
        if request.session.as_deref().is_some_and(|session| !is_session(session)) {
            return Err("`session` takes 1 to 128 letters, digits and _-.~@+=".to_owned());
        }
        let limit_ms = u64::try_from(self.longest_silence().saturating_sub(EXTRA_RUN_TIME).as_millis());
        if request
            .timeout_ms
            .is_some_and(|timeout_ms| timeout_ms == 0 || limit_ms.is_ok_and(|limit| timeout_ms > limit))
        {
            return Err(
                "`timeout_ms` is at least 1, and at most the longest one of the folder's loops: the timeouts of \
                        the deployment follow from it"
                    .to_owned(),
            );
        }
        let start = Start {
            input: request.input.map_or(Value::Null, Value::Object),
            timeout_ms: request.timeout_ms,
            session: request.session,
            run_id: Some(run_id.to_owned()),
            ..Start::default()
        };
        Ok(OrderedRun { program: Arc::clone(&offered.program), start })
    }

    /// An engine for one attempt: what an earlier attempt still does can't reach the journal of this one.
    pub fn engine(&self, program: &Program, journal: Arc<AttemptJournal>) -> Engine {
        let served = self.folder.loops.get(&program.name);
        let (project, root) = match served {
            Some(offered) => (&offered.program.project, &offered.root),
            None => (&self.folder.project, &self.folder.root),
        };
        let journal: Arc<dyn Journal> = journal;
        let builder = Engine::builder(Arc::clone(project), root).journal(journal);
        match &self.meters {
            Some(meters) => builder.meters(Arc::clone(meters)).build(),
            None => builder.build(),
        }
    }

    /// The program of a run that was started: that of the folder, or the recorded one when the folder has changed.
    ///
    /// # Errors
    /// When the recorded documents can't be read.
    pub fn program(&self, run_id: &str, events: &[Event]) -> Result<Arc<Program>, Fault> {
        let file = fold::documents(events).and_then(|documents| documents.first()).map(|main| main.file.as_str());
        let is_of_run = |offered: &&ServedLoop| offered.program.sources.first().map(|source| &*source.name) == file;
        let offered = self.folder.loops.values().find(is_of_run);
        if let Some(offered) = offered.filter(|offered| fold::same_document(&offered.program, events).is_ok()) {
            return Ok(Arc::clone(&offered.program));
        }
        let project: Option<Source> =
            offered.map_or_else(|| self.folder.source.clone(), |offered| offered.source.clone());
        fold::recorded(&fold::texts(run_id, events, project)?)
    }
}

/// An approval that Restate mode can't keep: it knows nobody by a token, so who reaches the ingress decides.
fn unkept_approval(program: &Program, level: usize) -> Option<String> {
    let unkept = |tool: &Tool| {
        let policy = &tool.approval;
        let who = "Restate mode knows nobody by a token: who reaches the ingress of the Restate server decides";
        if policy.may_ask() && policy.approvers > 1 {
            let (name, count) = (&tool.name, policy.approvers);
            return Some(format!("`{name}` needs the approval of {count} people (`approvers`), and {who}"));
        }
        let escalates = policy.expires_after_ms.is_some() && policy.on_expiry == OnExpiry::Escalate;
        (policy.may_ask() && escalates).then(|| {
            format!(
                "the approval of `{}` is escalated to holders of a scope (`\"on_expiry\": \"escalate\"`), and {who}",
                tool.name
            )
        })
    };
    let own = program.all_tools().into_iter().find_map(unkept);
    own.or_else(|| {
        let called = || program.called_loops().into_iter().find_map(|called| unkept_approval(called, level + 1));
        if level < crate::compile::MAX_LEVELS { called() } else { None }
    })
}

/// Whether a run of this program may start runs without waiting for them.
fn launches(program: &Program, level: usize) -> bool {
    level < crate::compile::MAX_LEVELS
        && (program.tools().iter().any(|tool| tool.launched().is_some())
            || program.called_loops().into_iter().any(|called| launches(called, level + 1)))
}

/// Whether a store holds limits of calls.
fn limits_calls(project: &Project) -> bool {
    let of_actions = project.action_limits.values().copied();
    let of_datasources = project.datasources.values().map(Datasource::call_limits);
    let of_servers = project.mcp.values().map(McpServer::call_limits);
    of_actions.chain(of_datasources).chain(of_servers).any(|limits| limits.are_of_store())
}
