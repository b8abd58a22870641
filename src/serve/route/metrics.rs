//! `GET /metrics`: what was counted, for Prometheus.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::engine::outcome::Status;
use crate::journal::RunFilter;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::metrics::GaugeValues;
use crate::serve::problem::ProblemDetails;

/// The text format that Prometheus reads.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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
    let (driven, queued) = app.scheduler.load();
    let (unknown_connections, known_connections) = app.connections.count();
    let event_streams = app.quotas.event_streams();
    let now = GaugeValues { driven, queued, quarantined, event_streams, unknown_connections, known_connections };
    let text = app.metrics.text(&now).map_err(|error| {
        let detail = format!("the answer can't be written: {error}");
        ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "not_written", detail)
    })?;
    Ok(([(header::CONTENT_TYPE, KIND)], text).into_response())
}
