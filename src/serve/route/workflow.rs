//! `POST /workflows/{name}/execute`: starts a workflow; and `GET /runs/{run}/status`: a run as Hyphen's workflows show it.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::execute::{StartOrder, admitted, started};
use super::status::{self, with_location};
use crate::diagnostic::nearest;
use crate::drive::start::Start;
use crate::engine::flow;
use crate::engine::outcome::Status;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{self, RunId, WaitQuery, json};
use crate::serve::run_store::FoldedRun;
use crate::serve::scheduler::ActiveRun;
use crate::serve::start_key::{StartKey, StartRequest};
use crate::serve::view::AgentStatus;
use crate::trace::Redaction;

/// What a workflow is started with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowRequest {
    /// Its input.
    pub input: Option<Map<String, Value>>,
    /// The limit for its active time in milliseconds, instead of the document's.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// Where its pauses and its result are posted.
    pub callback_url: Option<String>,
}

/// A run of a workflow: the status of a run, by the field names of Hyphen's workflows too.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowStatus {
    /// The run's id.
    pub run_id: String,
    /// The input, and the keys that its steps have written so far; left out for a run of a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// The status.
    #[serde(flatten)]
    pub status: AgentStatus,
}

/// A run that continues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AcceptedRun {
    /// The run's id.
    pub run_id: String,
    /// The same.
    pub agent_run_id: String,
    /// Where the run is.
    #[schemars(with = "String")]
    pub status: Status,
}

/// Starts a workflow, and waits for its end unless the query says otherwise.
pub async fn execute(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    parts: Parts,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    caller.may_run(&name)?;
    let waiting = WaitQuery::of(&parts.uri)?;
    let key = StartKey::of(&parts.headers, caller.org.as_deref())?;
    app.scheduler.accepts_runs()?;
    let WorkflowRequest { input, timeout_ms, callback_url } = request::body(&body)?;
    let input = input.map_or(Value::Null, Value::Object);
    let mut start = Start { input, timeout_ms, callback_url, ..Start::default() };
    let request = StartRequest::Named(name.clone());
    if let Some(run_id) = StartKey::applied(key, &app, &caller, &request, &mut start).await? {
        return answer(&app, &run_id, None, &waiting).await;
    }
    let order = order(&app, &name, start)?;
    app.switches.refuse(&*app.runs.journal, &name).await?;
    let (order, admission) = admitted(&app, caller, order, &parts.headers)?;
    let (run_id, active) = started(&app, order, admission, &waiting).await?;
    answer(&app, &run_id, active, &waiting).await
}

fn order(app: &App, name: &str, start: Start) -> Result<StartOrder, ProblemDetails> {
    let no_such = |detail| Err(ProblemDetails::new(StatusCode::NOT_FOUND, "no_such_workflow", detail));
    let folder = app.folder();
    let Some(offered) = folder.loops.get(name) else {
        let flows = folder.loops.iter().filter(|(_, offered)| offered.program.is_flow());
        let near = nearest(name, flows.map(|(name, _)| name.as_str()));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return no_such(format!("there is no workflow `{name}`{near}"));
    };
    if !offered.program.is_flow() {
        let body = r#"{"loop": NAME, "input": {...}}"#;
        return no_such(format!("`{name}` is a loop and no workflow: start it with POST /agents/execute, {body}"));
    }
    Ok(StartOrder { program: Arc::clone(&offered.program), root: offered.root.clone(), start })
}

/// The status of a run, with the context of a workflow.
pub async fn status(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let (run, status) = status::read(&app, &caller, &run_id, &uri).await?;
    Ok(json(StatusCode::OK, &shown(&run, status)))
}

/// The answer to a request that waits for a run: 200 when it has ended or waits for a human, else 202.
///
/// # Errors
/// When the run can't be read.
pub(super) async fn answer(
    app: &App,
    run_id: &str,
    active: Option<Arc<ActiveRun>>,
    waiting: &WaitQuery,
) -> Result<Response, ProblemDetails> {
    let settled = app.scheduler.wait(run_id, active, waiting.at_most()).await?;
    let Some(settled) = settled.filter(|_| !waiting.is_async) else {
        let status = app.runs.journal.find(run_id).await?.map_or(Status::Running, |run| run.status);
        let accepted = AcceptedRun { run_id: run_id.to_owned(), agent_run_id: run_id.to_owned(), status };
        return Ok(with_location(json(StatusCode::ACCEPTED, &accepted), run_id));
    };
    let run = match settled.run {
        Some(run) => run,
        None => app.runs.looked_at(run_id).await?,
    };
    let status = AgentStatus::new(&run, &settled.row, waiting.include_trace);
    Ok(with_location(json(StatusCode::OK, &shown(&run, status)), run_id))
}

fn shown(run: &FoldedRun, status: AgentStatus) -> WorkflowStatus {
    let redact = Redaction::new(&run.program.project.redact);
    let context = flow::context(&run.state).map(|context| redact.value(&context));
    WorkflowStatus { run_id: status.agent_run_id.clone(), context, status }
}
