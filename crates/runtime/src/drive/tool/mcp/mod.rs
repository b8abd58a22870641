//! Tools of MCP servers. A server is started at the first call of a run, is shared by the run and those that it calls, and ends
//! with it. What it says of its tools is only compared with the lock file: the lock decides.

mod answer_bytes;
mod drift;
mod era;
mod fault;
mod frame;
mod http;
mod leaving;
mod list;
mod oauth;
mod progress;
mod result;
mod rounds;
mod session;
mod stdio;
mod survey;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use self::drift::{compare, is_stricter};
use self::fault::{McpFault, Unanswered};
use self::oauth::AccessTokens;
use self::result::ResultForm;
use self::rounds::{BAD_PARAMETERS, CallRounds, NextRound};
use self::session::{CallExtras, McpReach, McpSession};
use super::runner::{OpenedRun, RawFault, RawOutcome, ToolRunner, wrong_kind};
use super::seconds;
use crate::drive::clock;
use crate::drive::egress::Egress;
use crate::drive::future::BoxFuture;
use crate::drive::notices;
use crate::drive::secret::Vault;
use crate::drive::tool::asking_tool::{RawQuestion, is_question};
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::CallId;
use loopctl_engine::notice::Notice;
use loopctl_engine::server_question::AskingServer;
use loopctl_lang::language::Project;
use loopctl_lang::language::mcp::{McpServer, OnDrift};
use loopctl_lang::program::Tool;
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::program::mcp::ServedTool;
use loopctl_lang::program::reference::{Scope, Secrets};

pub use self::drift::{DriftClass, compare as compare_tools};
pub use self::leaving::servers_ended;
pub use self::survey::{McpServers, SurveyedServer};

/// How many calls a server gets at once.
const CALLS_AT_ONCE: usize = 8;
/// How many processes of one server may be starting at once.
const STARTS_AT_ONCE: usize = 2;
/// How often a server is started for one run without an answer to a call between, and how long it is left alone then.
const MAX_STARTS: u32 = 6;
const REST: Duration = Duration::from_secs(60);
/// How much longer a call may be waited for than it takes to end by itself.
const GRACE: Duration = Duration::from_millis(200);

/// Makes the calls of tools of MCP servers.
pub(super) struct McpRunner {
    project: Arc<Project>,
    reach: McpReach,
    /// The starts of each server: one that hangs keeps no other from its start.
    starting: Mutex<HashMap<String, Arc<Semaphore>>>,
    open: Mutex<OpenRuns>,
}

/// The runs that are driven here.
#[derive(Default)]
struct OpenRuns {
    /// The outermost run of each.
    outermost: HashMap<String, String>,
    /// The servers of each outermost run, and how many of its runs are open.
    servers: HashMap<String, (usize, BTreeMap<String, Arc<ServerSlot>>)>,
}

/// A server of a run.
struct ServerSlot {
    held: AsyncMutex<HeldSession>,
    calls: Semaphore,
    /// How often it was started since it answered a call.
    starts: AtomicU32,
    /// How many of its starts have failed.
    failures: AtomicU32,
}

#[derive(Default)]
struct HeldSession {
    session: Option<Arc<McpSession>>,
    /// Why the last start failed.
    failure: Option<McpFault>,
    /// When the last start began.
    started: Option<Instant>,
}

/// A scope without values: what a server gets is the same for all runs.
pub(super) fn no_values(secrets: &dyn Secrets) -> Scope<'_> {
    Scope { secrets: Some(secrets), ..Scope::of_input(&Value::Null, JsonRule::Plain.into()) }
}

impl McpRunner {
    pub(super) fn new(project: &Arc<Project>, root: &Path, vault: &Arc<Vault>) -> Self {
        let reach = McpReach {
            allow: project.allow.clone(),
            root: root.into(),
            vault: Arc::clone(vault),
            egress: Egress::new(&project.allow),
            tokens: AccessTokens::default(),
        };
        Self { project: Arc::clone(project), reach, starting: Mutex::default(), open: Mutex::default() }
    }

    fn runs(&self) -> MutexGuard<'_, OpenRuns> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server of a run. A run that is not open has one of its own.
    fn slot(&self, run_id: &str, server: &str) -> Arc<ServerSlot> {
        let mut runs = self.runs();
        let outermost = runs.outermost.get(run_id).cloned().unwrap_or_else(|| run_id.to_owned());
        let servers = runs.servers.entry(outermost).or_default();
        Arc::clone(servers.1.entry(server.to_owned()).or_insert_with(|| Arc::new(ServerSlot::new())))
    }

    /// The server, started and asked for its tools if it must be. One that does not answer in time is not there. Calls that wait
    /// for the same start have its outcome.
    async fn session(
        &self,
        slot: &ServerSlot,
        server: &McpServer,
        tool: &ServedTool,
    ) -> Result<Arc<McpSession>, McpFault> {
        let failures = slot.failures.load(Ordering::SeqCst);
        let mut held = slot.held.lock().await;
        if let Some(session) = held.session.as_ref().filter(|session| !session.has_ended()) {
            return Ok(Arc::clone(session));
        }
        if let Some(failure) = held.failure.clone().filter(|_| slot.failures.load(Ordering::SeqCst) != failures) {
            return Err(failure);
        }
        held.session = None;
        let starts = slot.starts.load(Ordering::SeqCst);
        if starts >= MAX_STARTS && held.started.is_some_and(|since| clock::elapsed(since) < REST) {
            let why = format!(
                "it was started {starts} times and answered no call; it is started again {} after the last time",
                seconds(REST)
            );
            return Err(McpFault::NotStarted(why));
        }
        let connected = self.started(&mut held, slot, server, tool).await;
        if let Err(why) = &connected {
            held.failure = Some(why.clone());
            slot.failures.fetch_add(1, Ordering::SeqCst);
        }
        let session = Arc::new(connected?);
        held.session = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn started(
        &self,
        held: &mut HeldSession,
        slot: &ServerSlot,
        server: &McpServer,
        tool: &ServedTool,
    ) -> Result<McpSession, McpFault> {
        let turns = {
            let mut starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
            let turns = starting.entry(tool.server.clone()).or_insert_with(|| Arc::new(Semaphore::new(STARTS_AT_ONCE)));
            Arc::clone(turns)
        };
        let limit = Duration::from_millis(server.start_ms());
        let Ok(_turn) = tokio::time::timeout(limit, turns.acquire()).await else {
            let why = format!("{STARTS_AT_ONCE} of it were starting, for other runs, for {}", seconds(limit));
            return Err(McpFault::NotStarted(why));
        };
        slot.starts.fetch_add(1, Ordering::SeqCst);
        held.started = Some(clock::instant());
        self.reach.begin(server, Some(tool.protocol)).await
    }

    async fn make(&self, tool: &Tool, served: &ServedTool, call: &ToolCall<'_>) -> Result<Value, RawFault> {
        let Some(server) = self.project.mcp.get(&served.server) else {
            let why = McpFault::NotStarted("loopctl.json names no server of this name".to_owned());
            return Err(Unanswered::unsent(why).raw(&served.server));
        };
        let slot = self.slot(call.run_id, &served.server);
        let mut is_first = true;
        let mut rounds = CallRounds::of(call.answered);
        loop {
            let called = McpToolCall { tool, served, call };
            match self.attempt(&slot, server, &called, rounds.params()).await {
                // A call that may be repeated is made once more, by a fresh server.
                Err(Unanswered { why: McpFault::Ended(_) | McpFault::SessionGone, was_sent })
                    if is_first && (tool.idempotent || !was_sent) =>
                {
                    is_first = false;
                }
                // One that has forgotten what it asked refuses the answer: nothing of the call has happened.
                Err(Unanswered { why: McpFault::Refused(error), .. })
                    if error.code == BAD_PARAMETERS && rounds.begin_afresh() => {}
                Err(unanswered) => return Err(unanswered.raw(&served.server)),
                Ok(answer) if served.protocol.is_modern() && is_question(&answer) => {
                    match rounds.take(&answer, &self.reach.vault) {
                        NextRound::Request => {}
                        NextRound::Ask(after) => {
                            let by = AskingServer { mcp_server: served.server.clone(), tool: served.name.clone() };
                            let failed = result::asks(&served.server, &served.name, &answer);
                            let asks = Some(Box::new(RawQuestion { by, result: answer, after }));
                            return Err(RawFault { asks, ..failed });
                        }
                    }
                }
                Ok(answer) => {
                    let all = ResultForm::All { is_step: call.at.is_some() };
                    let form = served.output.as_ref().map_or(all, ResultForm::Structure);
                    return result::read(&served.server, &served.name, form, &answer);
                }
            }
        }
    }

    async fn attempt(
        &self,
        slot: &ServerSlot,
        server: &McpServer,
        called: &McpToolCall<'_>,
        params: &Map<String, Value>,
    ) -> Result<Value, Unanswered> {
        let McpToolCall { served, call, .. } = *called;
        let hears = |report: &Value| called.reports(report, &self.reach.vault);
        let hears: Option<&(dyn Fn(&Value) + Sync)> = call.listener.is_some().then_some(&hears);
        let session = self.session(slot, server, served).await.map_err(Unanswered::unsent)?;
        let (sent, mark) = (AtomicBool::new(false), session.mark());
        let made = tokio::time::timeout(call.deadline, async {
            let _turn = slot.calls.acquire().await;
            let now = session.tool_now(&served.name).await.map_err(Unanswered::unsent)?;
            refuse_changed(server, called, now.as_ref()).map_err(Unanswered::unsent)?;
            let mirrored = http::mirrored(&served.name, &served.headers, call.input);
            session.call(&served.name, call.input, &CallExtras { params, hears }, &mirrored, &sent).await
        });
        let outcome = made.await.unwrap_or_else(|_| {
            let was_sent = sent.load(Ordering::SeqCst);
            Err(Unanswered { why: session.late(mark, call.deadline), was_sent })
        });
        if matches!(outcome, Ok(_) | Err(Unanswered { why: McpFault::Refused(_), .. })) {
            slot.starts.store(0, Ordering::SeqCst);
        }
        outcome
    }
}

impl ServerSlot {
    fn new() -> Self {
        Self {
            held: AsyncMutex::default(),
            calls: Semaphore::new(CALLS_AT_ONCE),
            starts: AtomicU32::new(0),
            failures: AtomicU32::new(0),
        }
    }
}

/// A call of a tool of a server.
struct McpToolCall<'c> {
    tool: &'c Tool,
    served: &'c ServedTool,
    call: &'c ToolCall<'c>,
}

/// The most characters of the words of a report.
const MAX_REPORT_CHARS: usize = 300;

impl McpToolCall<'_> {
    /// The call by its id, or the step that it is by its address.
    fn place(&self) -> (Option<CallId>, Option<String>) {
        match self.call.at {
            Some(at) => (None, Some(at.to_owned())),
            None => (Some(self.call.id), None),
        }
    }

    /// The server says how far the call is.
    fn reports(&self, report: &Value, vault: &Vault) {
        let (Some(listener), Some(progress)) = (self.call.listener, report.get("progress").and_then(Value::as_f64))
        else {
            return;
        };
        let said = report.get("message").and_then(Value::as_str);
        let message = said.map(|text| vault.scrub(text.chars().take(MAX_REPORT_CHARS).collect::<String>()));
        let (call, at) = self.place();
        let (action, total) = (self.tool.name.clone(), report.get("total").and_then(Value::as_f64));
        notices::report(listener, Notice::McpProgress { call, at, action, progress, total, message });
    }

    /// The tool has changed since it was pinned.
    fn drifts(&self, drift: &BTreeSet<DriftClass>, is_called: bool) {
        let Some(listener) = self.call.listener else { return };
        let (call, at) = self.place();
        let changes = drift.iter().map(|class| class.word().to_owned()).collect();
        notices::report(listener, Notice::McpDrift { call, at, action: self.tool.name.clone(), changes, is_called });
    }
}

/// Refuses a call by a schema that is not the server's any more.
fn refuse_changed(
    server: &McpServer,
    called: &McpToolCall<'_>,
    now: Option<&loopctl_lang::language::mcp::LockedTool>,
) -> Result<(), McpFault> {
    let served = called.served;
    let drift = compare(&served.locked, now);
    if drift.is_empty() {
        return Ok(());
    }
    let words = drift.iter().map(|class| class.word()).collect::<Vec<_>>().join(", ");
    let is_gone = drift.contains(&DriftClass::Gone);
    // Who approves a call has read what was pinned.
    let is_other = drift.iter().any(|class| class.stops_calls())
        || served.may_ask
        || now.is_some_and(|now| is_stricter(&served.locked, now, served.trusts_annotations));
    let stops = is_other && (is_gone || server.on_drift == OnDrift::Refuse);
    called.drifts(&drift, !stops);
    if stops {
        return Err(McpFault::Changed(words));
    }
    tracing::warn!(server = served.server, tool = served.name, "an MCP tool has changed since it was pinned: {words}");
    Ok(())
}

impl ToolRunner for McpRunner {
    fn open(&self, run: &OpenedRun) {
        let mut runs = self.runs();
        let caller = run.caller.as_ref().and_then(|caller| runs.outermost.get(caller).cloned());
        let outermost = caller.unwrap_or_else(|| run.run_id.clone());
        runs.outermost.insert(run.run_id.clone(), outermost.clone());
        let servers = runs.servers.entry(outermost).or_default();
        servers.0 = servers.0.saturating_add(1);
    }

    fn waiting(&self, tool: &Tool) -> Duration {
        let server = tool.served().and_then(|served| self.project.mcp.get(&served.server));
        // It may be started twice, and wait for each start as long as that may take.
        server.map_or(Duration::ZERO, |server| {
            let start = Duration::from_millis(server.start_ms());
            start.saturating_mul(4).saturating_add(Duration::from_millis(tool.timeout_ms)).saturating_add(GRACE)
        })
    }

    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match tool.served() {
            Some(served) => Box::pin(async move { self.make(tool, served, call).await.into() }),
            None => wrong_kind(tool),
        }
    }

    fn close(&self, run_id: &str) {
        let mut runs = self.runs();
        let Some(outermost) = runs.outermost.remove(run_id) else { return };
        let Some(servers) = runs.servers.get_mut(&outermost) else { return };
        servers.0 = servers.0.saturating_sub(1);
        if servers.0 == 0 {
            // Each server ends when nobody holds it.
            runs.servers.remove(&outermost);
        }
    }
}
