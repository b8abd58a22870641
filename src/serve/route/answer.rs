//! `POST /agents/{id}/answer`: one decision about a run that waits, by the holder of a token that was posted with the
//! pause. The token is the only credential, and decides about its own call only.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::resume::ResumeRequest;
use super::status::accepted_answer;
use crate::drive::clock;
use crate::drive::engine::Resume;
use crate::engine::event::{Decided, DecisionRights, EventKind};
use crate::engine::outcome::Status;
use crate::journal::AnswerToken;
use crate::serve::app::App;
use crate::serve::authorizer::{bearer_token, hash_text};
use crate::serve::callback::pause_of;
use crate::serve::middleware::json_body;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, RunId};

/// Who decided, in the record: whoever holds such a token is one person.
const BY: &str = "callback";
/// The longest body with the token in it, in bytes: nobody has shown a token before it is read.
const UNKNOWN_BYTES: usize = 64 * 1_024;

/// One decision: one of `answer`, `approve`, `deny`, `edit`, `happened` and `retry`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerRequest {
    /// The token, unless it is in `Authorization: Bearer`.
    pub token: Option<String>,
    /// The answer to the question, or guidance for a run that repeats itself.
    pub answer: Option<String>,
    /// `true`: the call may be made.
    pub approve: Option<bool>,
    /// `true`: the call may not be made.
    pub deny: Option<bool>,
    /// Why not; the model reads it.
    pub reason: Option<String>,
    /// The call may be made with this input.
    #[serde(deserialize_with = "given")]
    pub edit: Option<Value>,
    /// The call of unknown outcome happened, with this result.
    #[serde(deserialize_with = "given")]
    pub happened: Option<Value>,
    /// `true`: the call of unknown outcome is retried.
    pub retry: Option<bool>,
    /// The pause; the decision is refused when the token is for another one.
    pub pause: Option<u32>,
    /// The call; the decision is refused when the token is for another one.
    pub call: Option<String>,
    /// The hash of the call as it was shown; the decision is refused when the token is for another one.
    pub hash: Option<String>,
    /// What is recorded with the decision, at most 2,000 characters; the model does not read it.
    pub comment: Option<String>,
}

/// The one field that is read before it is known whether the rest may be.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenInBody {
    token: Option<String>,
}

/// `null` is a value like any other.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl AnswerRequest {
    /// The decision about what the token is for.
    fn decided(self, token: &AnswerToken, rights: DecisionRights) -> Result<Option<Decided>, ProblemDetails> {
        let of_token = token.call.as_deref().and_then(|call| call.split_once(' '));
        let (call, hash) = of_token.map_or((None, None), |(call, hash)| (Some(call.to_owned()), Some(hash.to_owned())));
        let is_other = self.pause.is_some_and(|pause| pause != token.pause)
            || (self.call.is_some() && self.call != call)
            || (self.hash.is_some() && self.hash != hash);
        if is_other {
            let what = call.map_or_else(|| "the question".to_owned(), |call| format!("call {call}"));
            let detail =
                format!("this token is for {what} in pause {}, as it was posted, and for nothing else", token.pause);
            return Err(ProblemDetails::conflict("refused", detail));
        }
        let Self { answer, approve, deny, reason, edit, happened, retry, comment, .. } = self;
        let pause = Some(token.pause);
        let written = ResumeRequest {
            answer,
            approve,
            deny,
            reason,
            edit,
            happened,
            retry,
            pause,
            call,
            hash,
            comment,
            ..ResumeRequest::default()
        };
        written.decided(Some(BY.to_owned()), rights)
    }
}

/// 403: the same for every token that is not one of the run, and for every run that does not exist.
fn unknown() -> ProblemDetails {
    ProblemDetails::new(
        StatusCode::FORBIDDEN,
        "unknown_token",
        "the token of an answer is needed, which this one is not",
    )
}

/// Takes a decision, and does not wait for what follows.
pub async fn answer(
    State(app): State<Arc<App>>,
    run_id: Result<RunId, ProblemDetails>,
    mut request: Request,
) -> Result<Response, ProblemDetails> {
    let Ok(RunId(run_id)) = run_id else { return Err(unknown()) };
    if request.uri().query().is_some() {
        let detail = "an answer takes no query: the token goes into the body or `Authorization: Bearer`";
        return Err(ProblemDetails::bad_request(detail));
    }
    let in_header = bearer_token(request.headers()).map_err(|_| unknown())?.map(str::to_owned);
    let (token, body) = match &in_header {
        Some(given) => {
            let token = known(&app, &run_id, given).await?;
            (token, json_body(&app, &mut request, app.body.bytes).await?)
        }
        None => {
            let body = json_body(&app, &mut request, app.body.bytes.min(UNKNOWN_BYTES)).await?;
            let TokenInBody { token } = request::body(&body)?;
            (known(&app, &run_id, &token.ok_or_else(unknown)?).await?, body)
        }
    };
    let decided = decision(&app, &run_id, &token, &body).await?;
    app.scheduler.accepts_runs()?;
    let run = app.runs.journal.find(&run_id).await?.ok_or_else(unknown)?;
    if run.status != Status::Paused {
        return Err(ProblemDetails::answer_is_over());
    }
    let owner = Owner { org: run.org.clone(), token: None };
    app.quotas.check_bytes(&owner)?;
    app.quotas.sent(&owner, body.len());
    let word = decided.decision.kind().word();
    let resume = Resume { decided: Some(decided), answer_token: Some(token.hash.clone()), ..Resume::default() };
    // The token is for the call as it was shown, under the recorded document.
    if let Err(problem) = app.scheduler.decide(&run, resume, Some(false), &owner).await {
        return Err(over_or(&app, &run_id, &token, problem).await);
    }
    tracing::info!(run_id, decision = word, by = BY, "decided");
    accepted_answer(&app, &run_id).await
}

/// The token of the run that was given, if it is still good.
///
/// # Errors
/// 403 when the run has no such token, 410 when it was used or has expired.
async fn known(app: &App, run_id: &str, given: &str) -> Result<AnswerToken, ProblemDetails> {
    let token = app.runs.journal.answer_token(run_id, &hash_text(given)).await?.ok_or_else(unknown)?;
    if token.used || token.expires_at_ms <= clock::wall_ms() {
        return Err(ProblemDetails::answer_is_over());
    }
    Ok(token)
}

/// The decision in a body, with the rights that the run passes on.
async fn decision(app: &App, run_id: &str, token: &AnswerToken, body: &Bytes) -> Result<Decided, ProblemDetails> {
    let first = app.runs.events_from(run_id, 0, 1).await?.into_iter().next();
    let rights = match first.map(|event| event.kind) {
        Some(EventKind::Started(started)) => started.callback_rights,
        _ => None,
    };
    let written = request::body::<AnswerRequest>(body)?;
    // Without rights, no token was issued.
    let decided = written.decided(token, rights.ok_or_else(unknown)?)?;
    decided.ok_or_else(|| ProblemDetails::bad_request("give a decision"))
}

/// 410 when the reason of a refusal is that another decision came first; else the refusal itself.
async fn over_or(app: &App, run_id: &str, token: &AnswerToken, problem: ProblemDetails) -> ProblemDetails {
    if problem.status != StatusCode::CONFLICT {
        return problem;
    }
    let used = app.runs.journal.answer_token(run_id, &token.hash).await.ok().flatten().is_none_or(|token| token.used);
    let is_over = used
        || match app.runs.folded(run_id).await {
            Ok(folded) => pause_of(&folded.state) != Some(token.pause),
            Err(_) => false,
        };
    if is_over { ProblemDetails::answer_is_over() } else { problem }
}
