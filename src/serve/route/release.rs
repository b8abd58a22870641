//! `POST /agents/release`: lets servers take up the quarantined runs again.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::drive::clock;
use crate::journal::{AuditAction, AuditLine, ListedStatus, RunFilter, RunSummary};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{self, json};

/// Which runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReleaseRequest {
    /// Those of this loop or workflow only.
    #[serde(rename = "loop")]
    pub loop_name: Option<String>,
}

/// What was released.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReleasedRuns {
    /// The ids of the runs, the newest first.
    pub released: Vec<String>,
}

/// Releases the quarantined runs that the caller may resume: the count of their deaths begins anew.
pub async fn release(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let ReleaseRequest { loop_name } =
        if body.is_empty() { ReleaseRequest::default() } else { request::body::<ReleaseRequest>(&body)? };
    app.scheduler.accepts_runs()?;
    let filter = RunFilter {
        statuses: vec![ListedStatus::Quarantined],
        org: caller.seen_org(),
        loop_name,
        called: true,
        ..RunFilter::default()
    };
    let runs = app.runs.journal.list(filter).await?.into_iter();
    let runs = runs.filter(|run| run.damaged.is_none() && caller.may_resume(&run.loop_name).is_ok());
    let runs: Vec<RunSummary> = runs.collect();
    released(&app, &caller, &runs).await?;
    tracing::info!(runs = runs.len(), by = caller.name.as_deref(), "released");
    Ok(json(StatusCode::OK, &ReleasedRuns { released: runs.into_iter().map(|run| run.run_id).collect() }))
}

/// Releases runs that the caller may release.
///
/// # Errors
/// When the store fails.
pub(super) async fn released(app: &App, caller: &Caller, runs: &[RunSummary]) -> Result<(), ProblemDetails> {
    app.runs.journal.absolve(runs.iter().map(|run| run.run_id.clone()).collect()).await?;
    let (at_ms, actor) = (clock::wall_ms(), caller.name.as_deref());
    let lines = runs.iter().map(|run| AuditLine::of_run(run, at_ms, AuditAction::Released, actor));
    app.runs.journal.note_audit(lines.collect()).await?;
    Ok(())
}
