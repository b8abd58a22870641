//! `POST /loops/{name}/disable` and `POST /loops/{name}/enable`: switch a loop off without a deployment, and on again.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnostic::nearest;
use crate::drive::clock;
use crate::journal::LoopSwitch;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{self, json};
use crate::trace::units::rfc3339;

/// The most characters of a reason.
const MAX_REASON_CHARACTERS: usize = 500;

/// Why a loop is switched off.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchRequest {
    /// Why: everybody who may start or list the loop sees it.
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
}

/// A loop that was switched.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SwitchedLoop {
    /// Its name.
    pub name: String,
    /// Whether it is switched off.
    pub disabled: bool,
    /// Since when, RFC 3339.
    pub since: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Switches a loop off: runs under way continue.
pub async fn disable(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    switch(&app, caller, name, true, &body).await
}

/// Switches it on again.
pub async fn enable(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    switch(&app, caller, name, false, &body).await
}

async fn switch(
    app: &App,
    caller: Caller,
    name: String,
    is_off: bool,
    body: &[u8],
) -> Result<Response, ProblemDetails> {
    let SwitchRequest { reason } =
        if body.is_empty() { SwitchRequest::default() } else { request::body::<SwitchRequest>(body)? };
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON_CHARACTERS) {
        return Err(ProblemDetails::bad_request(format!("`reason` has at most {MAX_REASON_CHARACTERS} characters")));
    }
    let folder = app.folder();
    if !folder.loops.contains_key(&name) {
        let near = nearest(&name, folder.loops.keys().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let detail = format!("there is no loop `{name}`{near}");
        return Err(ProblemDetails::new(StatusCode::NOT_FOUND, "no_such_loop", detail));
    }
    let switch = LoopSwitch { name, is_off, at_ms: clock::wall_ms(), actor: caller.name, reason };
    app.switches.switch(&*app.runs.journal, switch.clone()).await?;
    app.runs.current.announce();
    let LoopSwitch { name, at_ms, reason, actor, .. } = switch;
    tracing::info!(loop_name = name, is_off, by = actor, "a loop was switched");
    Ok(json(StatusCode::OK, &SwitchedLoop { name, disabled: is_off, since: rfc3339(at_ms), reason }))
}
