//! `GET /metrics`: what was counted, for Prometheus.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::drive::clock;
use crate::engine::outcome::{Status, Termination};
use crate::journal::RunFilter;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::metrics::{GaugeValues, WaitingRun};
use crate::serve::problem::ProblemDetails;

/// The text format that Prometheus reads.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// So many waiting runs are counted, the oldest first.
const MOST_WAITING: usize = 10_000;

/// The metrics since the start of the server. They count the runs of all organisations, so a token of one
/// organisation may not read them.
pub async fn metrics(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ProblemDetails> {
    if caller.name.is_some() && caller.org.is_some() {
        let detail = "the metrics count the runs of all organisations: use a token without `org`";
        return Err(ProblemDetails::new(StatusCode::FORBIDDEN, "forbidden", detail));
    }
    let filter = RunFilter { status: Some(Status::Quarantined), ..RunFilter::default() };
    let quarantined = app.runs.journal.list(filter).await?.len();
    let waiting = waiting(&app).await?;
    let (driven, queued) = (app.scheduler.driven(), app.scheduler.queued().await?);
    let (unknown_connections, known_connections) = app.connections.count();
    let (event_streams, workers) = (app.quotas.event_streams(), app.runs.journal.workers().await?);
    let now = GaugeValues {
        driven,
        queued,
        quarantined,
        waiting,
        workers,
        event_streams,
        unknown_connections,
        known_connections,
    };
    let text = app.metrics.text(&now).map_err(|error| {
        let detail = format!("the answer can't be written: {error}");
        ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "not_written", detail)
    })?;
    Ok(([(header::CONTENT_TYPE, KIND)], text).into_response())
}

/// The runs that wait for a human; a sub-run waits as its caller.
async fn waiting(app: &App) -> Result<Vec<WaitingRun>, ProblemDetails> {
    let now_ms = clock::wall_ms();
    let filter =
        RunFilter { status: Some(Status::Paused), oldest_first: true, limit: MOST_WAITING, ..RunFilter::default() };
    let runs = app.runs.journal.list(filter).await?.into_iter();
    // A model that can't be reached is asked again without a human.
    let runs = runs.filter(|run| run.termination != Some(Termination::ModelError));
    let age_ms = |since_ms: i64| u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or_default();
    Ok(runs.map(|run| WaitingRun { age_ms: age_ms(run.updated_at_ms), loop_name: run.loop_name }).collect())
}
