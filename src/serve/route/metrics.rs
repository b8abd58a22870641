//! `GET /metrics`: what was counted, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::drive::clock;
use crate::engine::outcome::Status;
use crate::journal::{RunFilter, RunSummary, StoreError};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::metrics::{GaugeValues, StoreValues, WaitingRun};
use crate::serve::problem::ProblemDetails;

/// The text format that Prometheus reads.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The longest time for an answer of the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of waiting runs that are counted, the oldest first.
const MAX_COUNTED_RUNS: usize = 10_000;

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
    // Who scrapes gives up after some seconds, and needs the series of the process most while the store is away.
    let store = match tokio::time::timeout(STORE_TIMEOUT, values(&app)).await {
        Ok(Ok(store)) => Some(store),
        Ok(Err(fault)) => {
            tracing::warn!(code = fault.code(), "the metrics lack what the store knows: {fault}");
            None
        }
        Err(_) => None,
    };
    let (unknown_connections, known_connections) = app.connections.count();
    let (driven, event_streams) = (app.scheduler.driven(), app.quotas.event_streams());
    let now = GaugeValues { driven, store, event_streams, unknown_connections, known_connections };
    let text = app.metrics.text(&now).map_err(|error| {
        let detail = format!("the answer can't be written: {error}");
        ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "not_written", detail)
    })?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

/// What the store knows.
async fn values(app: &App) -> Result<StoreValues, StoreError> {
    let journal = &app.runs.journal;
    let filter = RunFilter { status: Some(Status::Quarantined), ..RunFilter::default() };
    let quarantined = journal.list(filter).await?.len();
    let (waiting, queued) = (waiting(app).await?, app.scheduler.queued().await?);
    Ok(StoreValues { queued, quarantined, waiting, workers: journal.workers().await? })
}

/// The runs that wait for a human; a sub-run waits as its caller.
async fn waiting(app: &App) -> Result<Vec<WaitingRun>, StoreError> {
    let now_ms = clock::wall_ms();
    let filter = RunFilter { waiting: true, oldest_first: true, limit: MAX_COUNTED_RUNS, ..RunFilter::default() };
    let runs = app.runs.journal.list(filter).await?.into_iter();
    // A model that can't be reached is asked again without a human.
    let runs = runs.filter(RunSummary::waits_for_human);
    let age_ms = |since_ms: i64| u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or_default();
    Ok(runs
        .map(|run| WaitingRun {
            age_ms: age_ms(run.waits_since_ms.unwrap_or(run.updated_at_ms)),
            loop_name: run.loop_name,
        })
        .collect())
}
