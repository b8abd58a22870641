//! Runs as the API shows them: the fields of Hyphen's status, with our result beside them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Number, Value};

use crate::drive::list;
use crate::engine::event::ForkPoint;
use crate::engine::outcome::{Status, Termination};
use crate::engine::state::Phase;
use crate::journal::{Callback, CallbackProgress, CallbackState, ListedStatus, ModelWait, RunSummary};
use crate::serve::run_store::{FoldedRun, RunRow};
use crate::trace::entries::entries;
use crate::trace::units::rfc3339;
use crate::trace::{Redaction, RunResult, Shown, TraceEntry, result};

/// The separator between an organisation and the name of its session in the store.
const CURSOR_SEPARATOR: char = ':';

/// A run, by Hyphen's field names. What does not apply is left out.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentStatus {
    /// The run's id.
    pub agent_run_id: String,
    /// Where the run is: running, queued, paused, completed, failed, cancelled, quarantined. A queued run is under way, and
    /// waits for a server with room for it.
    pub status: ListedStatus,
    /// The loop's name.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The objective, rendered.
    pub objective: String,
    /// Replies read so far.
    pub iterations: u32,
    /// What the run answered: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_answer: Option<Value>,
    /// How sure the model is, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub confidence: Option<Number>,
    /// The model's summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The earlier run that it got the result and the memory of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_run_id: Option<String>,
    /// The earlier run whose input it has, when it is a rerun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<String>,
    /// The run whose first steps it begins with, when it is a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<ForkPoint>,
    /// The run that called this one, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
    /// The name of the token that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Whether it is a copy that came in a file: nobody continues it here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub copy: bool,
    /// The runs that this one called, in their order.
    pub triggered_runs: Vec<String>,
    /// When it began, RFC 3339.
    pub created_at: String,
    /// When it ended, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// How far its callback is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback: Option<CallbackView>,
    /// The model that failed and is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_wait: Option<ModelWaitView>,
    /// The first run that it waits for, by the `concurrency` of its document: it begins when enough of those ahead have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// The pause that it is in, from 1: what `pause` of a decision names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<u32>,
    /// The result as `loopctl run --output json` prints it, without the trace.
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    pub result: RunResult,
    /// What happened, with `?include_trace=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<std::collections::BTreeMap<String, Value>>>")]
    pub trace: Option<Vec<TraceEntry>>,
}

/// A model that failed and is asked again, or something at which a call waits for its turn.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelWaitView {
    /// The run below that asks it, when it is not this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_run_id: Option<String>,
    /// What a call waits for its turn at, when it is no model: `action`, `datasource` or `mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<&'static str>,
    /// The name of the model, or of that.
    pub model: String,
    /// The attempts that failed so far; 0: none failed, and a request waits for its turn.
    pub attempts: u32,
    /// When the first of them failed, or the request began to wait, RFC 3339.
    pub since: String,
    /// What kind of failure the last one was, without the words of the server; or for what the request waits.
    pub kind: String,
    /// Why the last one failed, where that is known: by the server that asks, in the status of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it is asked again, RFC 3339; absent where nobody knows when the turn of a request comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_at: Option<String>,
}

impl ModelWaitView {
    /// The wait of this run.
    fn new(wait: ModelWait, of: &str, redact: &Redaction) -> Self {
        Self {
            agent_run_id: Some(wait.run_id).filter(|run_id| run_id != of),
            of: (!wait.of.is_model()).then(|| wait.of.word()),
            model: wait.model,
            attempts: wait.attempts,
            since: rfc3339(wait.since_ms),
            kind: redact.text(&wait.kind).into_owned(),
            reason: wait.reason.map(|reason| redact.text(&reason).into_owned()),
            again_at: wait.again_at_ms.map(rfc3339),
        }
    }
}

/// How far a callback is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CallbackView {
    /// Pending, delivered or given up.
    pub state: CallbackState,
    /// How often it was tried.
    pub tries: u32,
    /// The last pause that was posted or given up, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<u32>,
}

impl From<&Callback> for CallbackView {
    fn from(callback: &Callback) -> Self {
        let CallbackProgress { state, tries } = callback.progress;
        Self { state, tries, pause: Some(callback.posted_pause).filter(|pause| *pause > 0) }
    }
}

impl AgentStatus {
    /// The same with the wait of the run for a model that failed.
    #[must_use]
    pub fn with_wait(self, wait: Option<ModelWait>, redact: &Redaction) -> Self {
        // The events were read after the row: a wait that they have ended is over.
        let wait = wait.filter(|_| self.status == ListedStatus::Running);
        let model_wait = wait.map(|wait| ModelWaitView::new(wait, &self.agent_run_id, redact));
        Self { model_wait, ..self }
    }

    /// A run by its state and its row in the store.
    pub fn new(folded: &FoldedRun, row: &RunRow, trace: bool) -> Self {
        let FoldedRun { program, state } = folded;
        let redact = Redaction::new(&program.project.redact);
        let (driven, is_quarantined) = (row.is_driven, row.is_quarantined);
        let shown = Shown { result_key: program.result_key(), trace: false, driven, is_quarantined };
        let result = result(shown, state, &redact);
        let answer = match &state.phase {
            Phase::Ended(ending) => ending.answer.clone(),
            _ => None,
        };
        let (final_answer, confidence, summary) = match answer {
            Some(answer) => (Some(answer.answer), answer.confidence, answer.summary),
            None => (None, None, None),
        };
        let is_queued = row.is_queued && result.status == Status::Running;
        // A server would take it up.
        let is_taken_up = matches!(&state.phase, Phase::Paused { pause, .. }
            if matches!(pause.question.kind, Termination::ModelError | Termination::SpendingLimit));
        let pause = match &state.phase {
            Phase::Paused { pause, .. } => Some(pause.number),
            _ => None,
        };
        Self {
            agent_run_id: state.header.run_id.clone(),
            status: match result.status {
                _ if is_queued => ListedStatus::Queued,
                // As its row: it is under way elsewhere, and stopped here.
                Status::Running if row.is_imported => ListedStatus::Cancelled,
                Status::Paused if row.is_imported && is_taken_up => ListedStatus::Cancelled,
                status => status.into(),
            },
            loop_name: state.header.loop_name.clone(),
            session: session_of(row.org.as_deref(), state.header.session.as_deref()),
            objective: redact.text(&state.header.objective).into_owned(),
            iterations: state.counters.iterations,
            final_answer,
            confidence,
            summary,
            previous_run_id: result.previous_run_id.clone(),
            rerun_of: result.rerun_of.clone(),
            fork_of: result.fork_of.clone(),
            called_by: row.called_by.clone(),
            token: row.token.clone(),
            copy: row.is_imported,
            triggered_runs: list::called(program, state),
            created_at: result.started_at.clone(),
            completed_at: result.finished_at.clone(),
            callback: row.callback.as_ref().map(CallbackView::from),
            model_wait: None,
            behind: row.behind.clone().filter(|_| is_queued || pause.is_some()),
            pause,
            result,
            trace: trace.then(|| entries(state, row.is_driven, &redact)),
        }
    }
}

/// A run in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentRow {
    /// The run's id.
    pub agent_run_id: String,
    /// What it is about, in a line: its objective, or else the beginning of its input. Secrets are hidden in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the run is: `queued` is a run that is under way, and waits for a server with room for it.
    pub status: ListedStatus,
    /// Why it ended or stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub termination: Option<Termination>,
    /// The loop's name.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The run that called it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
    /// The name of the token that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Its organisation, for a caller who sees the runs of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Whether a human is waited for: by a run that is paused, or by a part of one that is under way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waiting: bool,
    /// Whether it waits for a server with room for it, or for other runs of its workflow, as its status says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
    /// Iterations so far.
    pub iterations: u32,
    /// Tokens so far. Left out for a run of an older version that nobody has read since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What they cost in US dollars; left out when the price of some is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Why it failed, or why its model can't be reached: the beginning, with secrets hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model that failed and is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_wait: Option<Box<ModelWaitView>>,
    /// The first question that waits for a human: the beginning, with secrets hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The first run that it waits for, by the `concurrency` of its document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// When it is looked at although nobody decides, RFC 3339: an approval expires, or its model is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// The schedule that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The time that the schedule started it for, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<String>,
    /// When it began, RFC 3339.
    pub created_at: String,
    /// When its status, its iterations or its cost last changed, RFC 3339.
    pub updated_at: String,
    /// The time from its start to its end in milliseconds, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Whether it is a copy that came in a file: nobody continues it here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub copy: bool,
    /// What is wrong with the store's record of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
}

impl From<RunSummary> for AgentRow {
    fn from(mut run: RunSummary) -> Self {
        let redact = Redaction::default();
        let model_wait = run.model_wait.take().map(|wait| Box::new(ModelWaitView::new(*wait, &run.run_id, &redact)));
        Self {
            session: session_of(run.org.as_deref(), run.session.as_deref()),
            called_by: run.parent_run_id.clone(),
            copy: run.is_imported(),
            waiting: run.waits_for_human(),
            queued: run.is_queued(),
            status: run.listed_status(),
            duration_ms: run.duration_ms(),
            title: run.title.map(String::from),
            tokens: run.tokens,
            cost_usd: run.cost_usd,
            error: run.error,
            model_wait,
            question: run.question,
            behind: run.behind.map(String::from),
            due_at: run.due_at_ms.map(rfc3339),
            schedule: run.schedule,
            scheduled_for: run.scheduled_for_ms.map(rfc3339),
            token: run.token.map(String::from),
            org: None,
            agent_run_id: run.run_id,
            termination: run.termination,
            loop_name: run.loop_name,
            iterations: run.iterations,
            created_at: rfc3339(run.started_at_ms),
            updated_at: rfc3339(run.updated_at_ms),
            damaged: run.damaged,
        }
    }
}

/// Runs of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentList {
    /// The runs, the newest first.
    pub agents: Vec<AgentRow>,
    /// What `?cursor=` takes for the next page; left out on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A run that continues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Accepted {
    /// The run's id.
    pub agent_run_id: String,
    /// Where the run is.
    #[schemars(with = "String")]
    pub status: Status,
}

/// The name of a session in the store: each organisation has its own sessions.
pub fn session_in_store(org: Option<&str>, session: &str) -> String {
    match org {
        Some(org) => format!("{org}{CURSOR_SEPARATOR}{session}"),
        None => session.to_owned(),
    }
}

/// Whether a text is a valid name of a session: letters, digits and `_-.~@+=`, 1 to 128 of them.
pub fn is_session(text: &str) -> bool {
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.~@+=".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(sign)
}

/// The name of a session of the store, as its organisation knows it.
pub fn session_of(org: Option<&str>, stored: Option<&str>) -> Option<String> {
    let stored = stored?;
    let own = org.and_then(|org| stored.strip_prefix(org)).and_then(|rest| rest.strip_prefix(CURSOR_SEPARATOR));
    Some(own.unwrap_or(stored).to_owned())
}
