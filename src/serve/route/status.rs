//! `GET /agents/{id}/status`: the status of a run; and the answer to every request that waits for a run.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::engine::outcome::Status;
use crate::journal::set_aside;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::questions_below::questions_below;
use crate::serve::request::{RunId, WaitQuery, json, query};
use crate::serve::run_store::{FoldedRun, RunRow};
use crate::serve::scheduler::{ActiveRun, SettledRun};
use crate::serve::view::{Accepted, AgentStatus};
use crate::trace::Redaction;

/// What is shown of a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatusQuery {
    /// Whether the answer holds the trace.
    pub include_trace: bool,
}

/// The status of a run.
pub async fn status(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let (_, status) = read(&app, &caller, &run_id, &uri).await?;
    Ok(json(StatusCode::OK, &status))
}

/// A run that the caller may see, and its status as the query asks for it.
pub(super) async fn read(
    app: &App,
    caller: &Caller,
    run_id: &str,
    uri: &Uri,
) -> Result<(Arc<FoldedRun>, AgentStatus), ProblemDetails> {
    let StatusQuery { include_trace } = query(uri)?;
    let summary = set_aside::shown(&*app.runs.journal, app.runs.find(caller, run_id).await?).await?;
    let run = app.runs.folded_of(&summary).await?;
    let mut status = AgentStatus::new(&run, &RunRow::from(&summary), include_trace);
    status.result.waiting.extend(questions_below(&app.runs, &run).await?);
    let redact = Redaction::new(&run.program.project.redact);
    // Another server may drive it.
    let wait = app.scheduler.model_wait(run_id).or(summary.model_wait.map(|wait| *wait));
    let status = status.with_wait(wait, &redact);
    Ok((run, status))
}

/// The answer to a request that waits for a run: 200 when it has ended or waits for a human, else 202.
///
/// # Errors
/// When the run can't be read.
pub async fn answer(
    app: &App,
    run_id: &str,
    active: Option<Arc<ActiveRun>>,
    waiting: &WaitQuery,
) -> Result<Response, ProblemDetails> {
    match app.scheduler.wait(run_id, active, waiting.at_most()).await? {
        Some(settled) if !waiting.is_async => settled_answer(app, run_id, settled, waiting.include_trace).await,
        _ => accepted_answer(app, run_id).await,
    }
}

/// 200 with a run that has ended or waits for a human.
///
/// # Errors
/// When the run can't be read.
pub async fn settled_answer(
    app: &App,
    run_id: &str,
    settled: SettledRun,
    include_trace: bool,
) -> Result<Response, ProblemDetails> {
    let SettledRun { row, run } = settled;
    // The state of a run that was driven here is in memory: its journal is not read again.
    let run = match run {
        Some(run) => run,
        None => app.runs.looked_at(run_id).await?,
    };
    Ok(with_location(json(StatusCode::OK, &AgentStatus::new(&run, &row, include_trace)), run_id))
}

/// 202 with the id of a run that continues.
///
/// # Errors
/// When the store fails.
pub async fn accepted_answer(app: &App, run_id: &str) -> Result<Response, ProblemDetails> {
    let status = app.runs.journal.find(run_id).await?.map_or(Status::Running, |run| run.status);
    let accepted = Accepted { agent_run_id: run_id.to_owned(), status };
    Ok(with_location(json(StatusCode::ACCEPTED, &accepted), run_id))
}

pub(super) fn with_location(mut response: Response, run_id: &str) -> Response {
    if let Ok(location) = HeaderValue::from_str(&format!("/agents/{run_id}/status")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}
