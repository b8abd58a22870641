//! `POST /events`: an event from outside, which runs wait for.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::drive::clock;
use crate::drive::outside_events::{EventDelivery, MAX_DATA_BYTES, MAX_ID_BYTES, deliver};
use crate::journal::outside_event::MOST_EVENTS;
use crate::journal::{EventPut, OutsideEvent};
use crate::program::awaited_event::{MAX_NAME_CHARS, is_name};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{self, json};

/// An event from outside.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventRequest {
    /// Its id, at most 200 bytes: an event that is sent again under its id is the same one.
    pub id: String,
    /// Its name: ASCII letters, digits, `.`, `_`, `-`, `:` and `/`, at most 100.
    pub event: String,
    /// What it brings, at most 64 KiB as JSON: what the step that waits for it gives.
    #[serde(default)]
    pub data: Value,
}

/// What became of an event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TakenEvent {
    /// Its id.
    pub id: String,
    /// How many runs get it. 0: it is kept for those that begin to wait for it.
    pub runs: usize,
    /// Whether it was sent before.
    pub known: bool,
    /// Until when it is kept, RFC 3339.
    pub kept_until: String,
}

/// Takes an event. The answer comes once it is durable, and each run that gets it is in the queue of the store.
pub async fn event(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let EventRequest { id, event, data } = request::body(&body)?;
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        let detail = format!("`id` has 1 to {MAX_ID_BYTES} bytes, and no control characters");
        return Err(ProblemDetails::bad_request(detail));
    }
    if !is_name(&event) {
        let detail = format!("`event` has 1 to {MAX_NAME_CHARS} ASCII letters, digits, `.`, `_`, `-`, `:` and `/`");
        return Err(ProblemDetails::bad_request(detail));
    }
    let data = data.to_string();
    if data.len() > MAX_DATA_BYTES {
        let detail = format!("`data` has {} bytes as JSON, and an event has at most {MAX_DATA_BYTES}", data.len());
        return Err(ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
    }
    app.scheduler.accepts_runs()?;
    let at_ms = clock::wall_ms();
    let keep_until_ms = app.folder().project.events.until_ms(at_ms);
    let taken =
        OutsideEvent { org: caller.org.clone(), id: id.clone(), event: event.clone(), data, at_ms, keep_until_ms };
    let EventDelivery { put, runs, keep_until_ms } = deliver(&*app.runs.journal, taken).await?;
    match put {
        EventPut::New | EventPut::Same { .. } => {}
        EventPut::Conflict => {
            let detail = format!("another event has the id `{id}`: an id is for one event");
            return Err(ProblemDetails::new(StatusCode::CONFLICT, "event_id_taken", detail));
        }
        EventPut::Full => {
            let detail = format!(
                "{MOST_EVENTS} events of the organisation are kept already: send it again later, or let `events.keep_seconds` of \
                 the project be less"
            );
            return Err(ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, "too_many_events", detail));
        }
    }
    let (org, by) = (caller.org.as_deref(), caller.name.as_deref());
    tracing::info!(event_id = id, name = event, runs, org, by, "event");
    let known = put != EventPut::New;
    let kept_until = crate::trace::units::rfc3339(keep_until_ms);
    Ok(json(StatusCode::ACCEPTED, &TakenEvent { id, runs, known, kept_until }))
}
