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

use crate::drive::notices::NoticePosition;
use crate::engine::flow::record::StepStatus;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::feed::{Feed, FeedError, WantedEvents};
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::{Owner, QuotaItem};
use crate::serve::request::{self, RunId};
use crate::serve::step_reader::{StepReader, StepsQuery};

/// Which events are sent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EventsQuery {
    /// Whether replies are sent while they arrive, as `model_delta`.
    pub deltas: bool,
    /// For a run of a workflow: an address, or empty for all steps. The stream then has an event `steps` with the steps at
    /// this address whenever they changed, in place of `step_started`, `step_ended` and `item_ended`.
    pub at: Option<String>,
    /// At the address of a loop: the first item, from 0.
    pub from: u32,
    /// At the address of a loop: the most items, 1 to 1,000; 200 by default.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// At the address of a loop: only the items of this status.
    pub status: Option<StepStatus>,
}

impl EventsQuery {
    /// What a reader sees of the steps of a workflow.
    fn steps(self) -> Result<Option<StepReader>, ProblemDetails> {
        let Self { at, from, limit, status, .. } = self;
        let is_asked_for = at.is_some();
        let reader = StepReader::new(&StepsQuery { at, from, limit, status })?;
        Ok(is_asked_for.then_some(reader))
    }
}

/// The events of a run: from the start, or after `Last-Event-ID`.
pub async fn events(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let asked: EventsQuery = request::query(&uri)?;
    let deltas = asked.deltas;
    let steps = asked.steps()?;
    app.runs.find(&caller, &run_id).await?;
    let permit = app.quotas.take(&Owner::from(&caller), QuotaItem::EventStream)?;
    let wrong =
        || ProblemDetails::new(StatusCode::BAD_REQUEST, "bad_event_id", "the run has no event of this `Last-Event-ID`");
    let seen: Option<NoticePosition> = match headers.get("last-event-id") {
        Some(id) => Some(id.to_str().ok().and_then(|id| id.parse().ok()).ok_or_else(wrong)?),
        None => None,
    };
    let wanted = WantedEvents { caller, seen, deltas, steps };
    let feed = Feed::new(Arc::clone(&app), &run_id, wanted).await.map_err(|fault| match fault {
        FeedError::Fault(fault) => fault.into(),
        FeedError::NoSuchPlace => wrong(),
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
