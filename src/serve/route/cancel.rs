//! `DELETE /agents/{id}`: ends a run. What happened in it stays.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::status::answer;
use crate::engine::outcome::Status;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{RunId, WaitQuery, query};
use crate::serve::run_store::ProgramOfRun;

/// Why a run is ended.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CancelQuery {
    /// Why; the trace keeps it.
    pub reason: Option<String>,
}

/// Ends a run: at once when nobody drives it, else it is asked to end (202).
pub async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let CancelQuery { reason } = query(&uri)?;
    app.runs.find(&caller, &run_id).await?;
    let events = app.runs.events(&run_id).await?;
    let ProgramOfRun { program, engine } = app.runs.program(&run_id, &events).await?;
    let status = engine.cancel(&program, &run_id, reason).await?;
    let ended = status != Status::Running;
    if ended {
        app.scheduler.cancelled(&run_id);
    }
    answer(&app, &run_id, None, &WaitQuery { is_async: !ended, ..WaitQuery::default() }).await
}
