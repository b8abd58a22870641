//! `GET /agents/{id}/status`: a run as it stands; and the answer of every request that waits for one.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::engine::outcome::Status;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{RunId, WaitQuery, json, query};
use crate::serve::scheduler::{ActiveRun, SettledRun};
use crate::serve::view::{Accepted, AgentStatus};

/// What is shown of a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatusQuery {
    /// Whether the answer holds the trace.
    pub include_trace: bool,
}

/// A run as it stands.
pub async fn status(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let StatusQuery { include_trace } = query(&uri)?;
    let summary = app.runs.find(&caller, &run_id).await?;
    let run = app.runs.folded(&run_id).await?;
    Ok(json(StatusCode::OK, &AgentStatus::new(&run, Some(&summary), include_trace)))
}

/// The answer to a request that waits for a run: 200 when it has ended or waits for a human, 202 when it
/// goes on.
///
/// # Errors
/// When the run can't be read.
pub async fn answer(
    app: &App,
    run_id: &str,
    active: Option<Arc<ActiveRun>>,
    waiting: &WaitQuery,
) -> Result<Response, ProblemDetails> {
    let settled = app.scheduler.wait(run_id, active, waiting.at_most()).await?;
    let mut response = match settled {
        Some(SettledRun { summary, run }) if !waiting.is_async => {
            // A run that was driven here is answered with the state that its driver left: its journal is not read.
            let run = match run {
                Some(run) => run,
                None => Arc::new(app.runs.folded(run_id).await?),
            };
            json(StatusCode::OK, &AgentStatus::new(&run, summary.as_ref(), waiting.include_trace))
        }
        _ => {
            let status = app.runs.journal.find(run_id).await?.map_or(Status::Running, |run| run.status);
            json(StatusCode::ACCEPTED, &Accepted { agent_run_id: run_id.to_owned(), status })
        }
    };
    if let Ok(place) = HeaderValue::from_str(&format!("/agents/{run_id}/status")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}
