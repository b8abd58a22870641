//! `POST /agents/{id}/retry`: retries a run that failed because its model could not be reached.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::status::answer;
use crate::drive::engine::Resume;
use crate::engine::event::Retried;
use crate::engine::outcome::Status;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, RunId, WaitQuery};
use crate::serve::run_store::DecidedRun;

/// A retry needs no field, unless the document has changed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryRequest {
    /// If the document has changed since: `true` continues with the new one, `false` with the recorded one.
    pub new_document: Option<bool>,
    /// `true`: it continues although the steps of its `on_failure` have run.
    pub after_on_failure: bool,
}

/// Retries a run, and waits for its end unless the query says otherwise.
pub async fn retry(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let waiting = WaitQuery::of(&uri)?;
    let run = app.runs.find(&caller, &run_id).await?;
    caller.may_resume(&run.loop_name)?;
    let RetryRequest { new_document, after_on_failure } =
        if body.is_empty() { RetryRequest::default() } else { request::body::<RetryRequest>(&body)? };
    app.scheduler.accepts_runs()?;
    if run.status == Status::Quarantined {
        return Err(ProblemDetails::quarantined(&run_id));
    }
    let retried = Some(Retried::by(caller.name.clone()));
    let resume = Resume { retried, after_on_failure, ..Resume::default() };
    let (mut run, owner) = (DecidedRun::new(run), Owner::from(&caller));
    let (active, waiting) = app.scheduler.decide_for(&mut run, resume, new_document, &owner, waiting).await?;
    answer(&app, &run_id, active, &waiting).await
}
