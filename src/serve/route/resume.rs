//! `POST /agents/{id}/resume`: the decision of a human about a run that waits.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::status::answer;
use crate::engine::event::Decided;
use crate::engine::outcome::Status;
use crate::engine::written_decision::{DecisionSyntax, WrittenDecision};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, RunId, WaitQuery};

/// A human's decision: exactly one of `answer`, `approve`, `deny`, `edit`, `happened`, `retry` and `resume`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResumeRequest {
    /// The answer to its question, or guidance for a run that repeats itself.
    pub answer: Option<String>,
    /// `true`: the waiting call may be made.
    pub approve: Option<bool>,
    /// `true`: the waiting call may not be made.
    pub deny: Option<bool>,
    /// Why not; the model reads it.
    pub reason: Option<String>,
    /// The waiting call may be made with this input.
    #[serde(deserialize_with = "given")]
    pub edit: Option<Value>,
    /// The call of unknown outcome happened, with this result.
    #[serde(deserialize_with = "given")]
    pub happened: Option<Value>,
    /// `true`: the call of unknown outcome, or the model that could not be reached, is retried.
    pub retry: Option<bool>,
    /// `true`: a quarantined run is resumed.
    pub resume: Option<bool>,
    /// Which pause is decided, from 1: the decision is refused when there is a newer one.
    pub pause: Option<u32>,
    /// Which of several waiting calls: the iteration and the place in the turn, like `2.0`.
    pub call: Option<String>,
    /// The hash of the call as it was shown: the decision is refused when the call is another one now.
    pub hash: Option<String>,
    /// What is recorded with the decision, at most 2,000 characters; the model does not read it.
    pub comment: Option<String>,
}

/// `null` is a value like any other.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl ResumeRequest {
    /// The decision; none for a quarantined run, which only waits for its resumption.
    fn decided(self, by: Option<String>) -> Result<Option<Decided>, ProblemDetails> {
        let is_true = |field: Option<bool>| field == Some(true);
        let call = self.call.as_deref().map(str::parse).transpose();
        let written = WrittenDecision {
            answer: self.answer,
            approve: is_true(self.approve),
            deny: is_true(self.deny),
            reason: self.reason,
            edit: self.edit,
            happened: self.happened,
            retry: is_true(self.retry),
            resume: is_true(self.resume),
            pause: self.pause,
            call: call.map_err(|why| ProblemDetails::bad_request(format!("`call`: {why}")))?,
            hash: self.hash,
            comment: self.comment,
            by,
        };
        written.read(DecisionSyntax::Fields).map_err(ProblemDetails::bad_request)
    }
}

/// Resumes a run with a decision, and waits for its end unless the query says otherwise.
pub async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let waiting = WaitQuery::of(&uri)?;
    let run = app.runs.find(&caller, &run_id).await?;
    let decided = request::body::<ResumeRequest>(&body)?.decided(caller.name.clone())?;
    if app.scheduler.is_draining() {
        let detail = "the server is stopping: retry in a moment";
        return Err(ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, "draining", detail));
    }
    if decided.is_none() && run.status != Status::Quarantined {
        let detail = format!("`resume` is for a run that is quarantined; this one is {}", run.status.word());
        return Err(ProblemDetails::conflict("refused", detail));
    }
    let decision = decided.as_ref().map_or("resume", |decided| decided.decision.word());
    let active = app.scheduler.decide(&run, decided, &Owner::from(&caller)).await?;
    tracing::info!(run_id, decision, by = caller.name.as_deref(), "decided");
    answer(&app, &run_id, Some(active), &waiting).await
}
