//! `GET /healthz` and `GET /readyz`: whether the server lives, and whether it takes work.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::serve::app::App;
use crate::serve::{request, worker_folders};

/// The longest time for each of two questions to the store: who asks gives up after some seconds.
const STORE_TIMEOUT: Duration = Duration::from_millis(750);

/// The process lives.
pub async fn alive() -> Response {
    request::json(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Whether runs are accepted: not while the server stops, when its store can't be read, or when
/// something that its loops need is missing: the names of secrets and models, never their values. A server of another
/// folder is reported, and hinders nothing: folders differ while servers are being replaced.
pub async fn ready(State(app): State<Arc<App>>) -> Response {
    let driven = app.scheduler.driven();
    let queued = tokio::time::timeout(STORE_TIMEOUT, app.scheduler.queued()).await;
    let (store, queued) = match queued {
        Ok(Ok(queued)) => (true, queued),
        Ok(Err(_)) | Err(_) => (false, 0),
    };
    let missing = app.runs.missing().into_iter().chain(app.runs.not_given().await).map(|missing| missing.name);
    let mut missing: Vec<String> = missing.chain(app.callbacks.missing_key()).collect();
    missing.dedup();
    let ready = store && missing.is_empty() && !app.scheduler.is_draining();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if ready {
        "ready"
    } else if !store {
        "store"
    } else if app.scheduler.is_draining() {
        "draining"
    } else {
        "missing"
    };
    let folder = &app.folder.digest;
    let mut body = json!({ "status": word, "driven": driven, "queued": queued,
        "version": env!("CARGO_PKG_VERSION"), "folder": worker_folders::short(folder) });
    let workers = async { app.runs.journal.workers().await.unwrap_or_default() };
    let workers =
        if store { tokio::time::timeout(STORE_TIMEOUT, workers).await.unwrap_or_default() } else { Vec::new() };
    if let (Some(body), Some(sentence)) = (body.as_object_mut(), worker_folders::differing(&workers, folder)) {
        body.insert("other_folders".to_owned(), json!(sentence));
    }
    if let (Some(body), false) = (body.as_object_mut(), missing.is_empty()) {
        body.insert("missing".to_owned(), json!(missing));
    }
    request::json(status, &body)
}
