//! `DELETE /agents/{id}`: cancels a run. Its trace stays.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::status::{accepted_answer, settled_answer};
use crate::journal::CancelRequest;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{RunId, query};
use crate::serve::run_store::RunRow;
use crate::serve::scheduler::SettledRun;

/// Why a run is cancelled.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CancelQuery {
    /// Why; the trace keeps it.
    pub reason: Option<String>,
}

/// Cancels a run: at once when nobody drives it, else its driver is asked to (202).
pub async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let CancelQuery { reason } = query(&uri)?;
    let run = app.runs.find(&caller, &run_id).await?;
    caller.may_cancel(&run.loop_name)?;
    let request = CancelRequest { reason, by: caller.name.clone() };
    let (by, reason) = (request.by.clone(), request.reason.clone());
    let owner = Owner { org: run.org, token: run.token.map(String::from) };
    match app.scheduler.cancel(&run_id, &owner, request).await? {
        Some(run) => {
            let row = app.runs.journal.find(&run_id).await?.as_ref().map(RunRow::from).unwrap_or_default();
            let settled = SettledRun { row, run: Some(Arc::new(run)) };
            settled_answer(&app, &run_id, settled, false).await
        }
        None => {
            tracing::info!(run_id, by, reason, "the driver of the run is asked to cancel it");
            accepted_answer(&app, &run_id).await
        }
    }
}
