//! `GET /agents/{id}/trace`: all that happened in a run.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::serve::gate::Caller;
use crate::serve::problem::Problem;
use crate::serve::request::{RunId, json};
use crate::serve::state::Served;
use crate::trace::{Redaction, Shown, result};

/// The result with its trace, as `loopctl trace --format json` prints it.
pub async fn trace(
    State(served): State<Arc<Served>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
) -> Result<Response, Problem> {
    served.find(&caller, &run_id).await?;
    let found = served.recorded(&run_id).await?;
    let program = Arc::clone(&found.program);
    let state = found.state()?;
    let shown = Shown { result_key: program.properties.result_key.as_deref(), trace: true };
    Ok(json(StatusCode::OK, &result(shown, &state, &Redaction::new(&program.project.redact))))
}
