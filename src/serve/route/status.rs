//! `GET /agents/{id}/status`: a run as it stands; and the answer of every request that waits for one.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::engine::outcome::Status;
use crate::serve::gate::Caller;
use crate::serve::problem::Problem;
use crate::serve::request::{RunId, Waiting, json, query};
use crate::serve::state::Served;
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
    State(served): State<Arc<Served>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
) -> Result<Response, Problem> {
    let StatusQuery { include_trace } = query(&uri)?;
    let run = served.find(&caller, &run_id).await?;
    let found = served.recorded(&run_id).await?;
    let program = Arc::clone(&found.program);
    let state = found.state()?;
    Ok(json(StatusCode::OK, &AgentStatus::new(&program, &state, Some(&run), include_trace)))
}

/// The answer to a request that waits for a run: 200 when it has ended or waits for a human, 202 when it
/// goes on.
///
/// # Errors
/// When the run can't be read.
pub async fn answer(served: &Arc<Served>, run_id: &str, waiting: &Waiting) -> Result<Response, Problem> {
    let settled = served.wait(run_id, waiting.at_most()).await?;
    let mut response = if settled && !waiting.is_async {
        let run = served.journal.find(run_id).await?;
        let found = served.recorded(run_id).await?;
        let program = Arc::clone(&found.program);
        let state = found.state()?;
        json(StatusCode::OK, &AgentStatus::new(&program, &state, run.as_ref(), waiting.include_trace))
    } else {
        let status = served.journal.find(run_id).await?.map_or(Status::Running, |run| run.status);
        json(StatusCode::ACCEPTED, &Accepted { agent_run_id: run_id.to_owned(), status })
    };
    if let Ok(place) = HeaderValue::from_str(&format!("/agents/{run_id}/status")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}
