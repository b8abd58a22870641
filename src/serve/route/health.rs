//! `GET /healthz` and `GET /readyz`: whether the server lives, and whether it takes work.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::serve::app::App;
use crate::serve::request;

/// The process lives.
pub async fn alive() -> Response {
    request::json(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Whether runs are accepted: not while the server stops, or when its store can't be read.
pub async fn ready(State(app): State<Arc<App>>) -> Response {
    let (driven, queued) = app.scheduler.load();
    let store = app.runs.journal.find("").await.is_ok();
    let ready = store && !app.scheduler.is_draining();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if ready {
        "ready"
    } else if store {
        "draining"
    } else {
        "store"
    };
    request::json(status, &json!({ "status": word, "driven": driven, "queued": queued }))
}
