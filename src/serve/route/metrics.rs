//! `GET /metrics`: what was counted, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;

use crate::drive::clock;
use crate::drive::run_stats::{LimitsQuery, limit_uses};
use crate::journal::{QueueQuery, StoreError};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::metrics::{GaugeValues, StoreValues, age_ms, wait_moments};
use crate::serve::problem::ProblemDetails;

/// The text format that Prometheus reads.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The longest time for an answer of the store: who scrapes gives up after some seconds, and needs the series of the process most
/// while the store is away.
const STORE_TIMEOUT: Duration = Duration::from_millis(900);

/// The metrics since the start of the server. They count the runs of all organisations.
pub async fn metrics(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ProblemDetails> {
    app.served().authorizer.may_see_all(&caller)?;
    let look = || {
        let app = Arc::clone(&app);
        async move { values(&app).await }.boxed()
    };
    let store = match app.store_values.within(STORE_TIMEOUT, look).await {
        Some(Ok(store)) => Some(store),
        Some(Err(fault)) => {
            tracing::warn!(code = fault.code(), "the metrics lack what the store knows: {fault}");
            None
        }
        None => None,
    };
    let (unknown_connections, known_connections) = app.connections.count();
    let (driven, event_streams) = (app.scheduler.driven(), app.quotas.event_streams());
    let tokens_expiring = app.served().authorizer.expiring(clock::wall_ms()).len();
    let (store, reload_failed) = (store.as_deref(), app.runs.current.fault().is_some());
    let now = GaugeValues {
        driven,
        store,
        event_streams,
        queues: app.engine_parts.gates.queues(),
        circuits: app.engine_parts.gates.circuits(),
        tokens_expiring,
        reload_failed,
        unknown_connections,
        known_connections,
    };
    let text = app.metrics.text(&now).map_err(|error| {
        let detail = format!("the answer can't be written: {error}");
        ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "not_written", detail)
    })?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

/// What the store knows.
async fn values(app: &App) -> Result<StoreValues, StoreError> {
    let began = clock::instant();
    let journal = &app.runs.journal;
    let now_ms = clock::wall_ms();
    let runs = journal.run_counts(wait_moments(now_ms)).await?;
    let queue = journal.queue(QueueQuery { now_ms, except: Vec::new() }).await?;
    let queued = usize::try_from(queue.iter().map(|of| of.runs).sum::<u64>()).unwrap_or(usize::MAX);
    let oldest_ms = queue.iter().map(|of| age_ms(of.since_ms)).max().unwrap_or_default();
    let workers = journal.workers().await?;
    let folder = app.folder();
    let limits = LimitsQuery { org: None, limits: &folder.project.limits };
    let limits = limit_uses(&**journal, now_ms, limits).await?;
    app.metrics.store_answered("look", clock::elapsed(began));
    let queue_age = Duration::from_millis(oldest_ms);
    Ok(StoreValues { queued, queue_age, runs, workers, limits })
}
