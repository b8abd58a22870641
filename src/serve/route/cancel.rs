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
use crate::serve::gate::Caller;
use crate::serve::problem::Problem;
use crate::serve::request::{RunId, Waiting, query};
use crate::serve::state::Served;

/// Why a run is ended.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CancelQuery {
    /// Why; the trace keeps it.
    pub reason: Option<String>,
}

/// Ends a run: at once when nobody drives it, else it is asked to end (202).
pub async fn cancel(
    State(served): State<Arc<Served>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
) -> Result<Response, Problem> {
    let CancelQuery { reason } = query(&uri)?;
    served.find(&caller, &run_id).await?;
    let found = served.recorded(&run_id).await?;
    let status = found.engine.cancel(&found.program, &run_id, reason).await?;
    let ended = status != Status::Running;
    if ended {
        served.metrics.cancelled();
        served.desk.forget(&run_id);
        served.callbacks.look(&served, &run_id);
    }
    answer(&served, &run_id, &Waiting { is_async: !ended, ..Waiting::default() }).await
}
