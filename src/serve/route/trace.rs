//! `GET /agents/{id}/trace`: the result of a run with its trace.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{RunId, json};
use crate::serve::run_store::FoldedRun;
use crate::trace::{Redaction, Shown, result};

/// The result with its trace, as `loopctl trace --format json` prints it.
pub async fn trace(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
) -> Result<Response, ProblemDetails> {
    let summary = app.runs.find(&caller, &run_id).await?;
    let FoldedRun { program, state } = app.runs.folded(&run_id).await?;
    let result_key = program.properties.result_key.as_deref();
    let shown = Shown { result_key, trace: true, driven: summary.driven };
    Ok(json(StatusCode::OK, &result(shown, &state, &Redaction::new(&program.project.redact))))
}
