//! `GET /healthz` and `GET /readyz`: whether the server lives, and whether it takes work.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::FutureExt as _;
use serde_json::json;

use crate::drive::clock;
use crate::serve::app::{App, StoreReadiness};
use crate::serve::{request, worker_folders};
use crate::trace::units::rfc3339;

/// The longest time for an answer of the store: who asks gives up after a second.
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
    let look = || {
        let app = Arc::clone(&app);
        async move {
            let queued = app.scheduler.queued().await?;
            Ok(StoreReadiness { queued, workers: app.runs.journal.workers().await.unwrap_or_default() })
        }
        .boxed()
    };
    // Anybody may ask, as often as they want: all that ask at once share one look.
    let known = app.readiness.within(STORE_TIMEOUT, look).await.and_then(Result::ok);
    let (store, known) = (known.is_some(), known.unwrap_or_default());
    let queued = known.queued;
    let missing =
        app.runs.missing().into_iter().chain(app.runs.not_given().await).map(|missing| missing.what.name().to_owned());
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
    let served = app.served();
    let folder = &served.folder.digest;
    let mut body = json!({ "status": word, "driven": driven, "queued": queued,
        "version": env!("CARGO_PKG_VERSION"), "folder": worker_folders::short(folder) });
    if let (Some(body), Some(sentence)) = (body.as_object_mut(), worker_folders::differing(&known.workers, folder)) {
        body.insert("other_folders".to_owned(), json!(sentence));
    }
    let expiring = served.authorizer.expiring(clock::wall_ms()).len();
    if let (Some(body), Some(fault)) = (body.as_object_mut(), app.runs.current.fault()) {
        // Anybody may read this: the log and the metrics' readers know why.
        body.insert("reload_failed_since".to_owned(), json!(rfc3339(fault.since_ms)));
    }
    if let (Some(body), true) = (body.as_object_mut(), expiring > 0) {
        body.insert("tokens_expiring".to_owned(), json!(expiring));
    }
    if let (Some(body), false) = (body.as_object_mut(), missing.is_empty()) {
        body.insert("missing".to_owned(), json!(missing));
    }
    request::json(status, &body)
}
