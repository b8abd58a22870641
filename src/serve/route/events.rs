//! `GET /agents/{id}/events`: the events of a run from its start, as server-sent events.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::feed::{EventPosition, Feed, FeedFault};
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::{Owner, QuotaItem};
use crate::serve::request::{self, RunId};

/// Which events are sent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EventsQuery {
    /// Whether replies are sent while they arrive, as `model_delta`.
    pub deltas: bool,
}

/// The events of a run: from the start, or after `Last-Event-ID`.
pub async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let EventsQuery { deltas } = request::query(&uri)?;
    app.runs.find(&caller, &run_id).await?;
    let permit = app.quotas.take(&Owner::from(&caller), QuotaItem::EventStream)?;
    let wrong =
        || ProblemDetails::new(StatusCode::BAD_REQUEST, "bad_event_id", "the run has no event of this `Last-Event-ID`");
    let seen: Option<EventPosition> = match headers.get("last-event-id") {
        Some(id) => Some(id.to_str().ok().and_then(|id| id.parse().ok()).ok_or_else(wrong)?),
        None => None,
    };
    let feed = Feed::new(Arc::clone(&app), &run_id, seen, deltas).await.map_err(|fault| match fault {
        FeedFault::Fault(fault) => fault.into(),
        FeedFault::NoSuchPlace => wrong(),
    })?;
    // 204 keeps a browser from connecting again.
    let Some(feed) = feed else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    // The stream counts in the quota of its reader until it is closed.
    let pieces = stream::unfold((feed, permit), |(mut feed, permit)| async move {
        let piece = feed.next().await?;
        Some((piece, (feed, permit)))
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that buffer responses would delay the events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
