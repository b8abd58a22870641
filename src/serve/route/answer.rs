//! `POST /agents/{id}/answer`: one decision about a run that waits, by the holder of a token that was posted with the
//! pause. The token is the only credential, and decides about its own call only.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer_page;
use super::status::accepted_answer;
use crate::drive::clock;
use crate::drive::engine::Resume;
use crate::engine::decision::written_decision::{DecisionSyntax, WrittenDecision};
use crate::engine::event::{CALLBACK, Decided, DecisionRights, callback_of};
use crate::engine::flow::waiting_steps;
use crate::engine::outcome::Status;
use crate::journal::answer_token::NO_PAUSE;
use crate::journal::{AnswerToken, RunSummary, StoreError};
use crate::serve::answer_subject::{AnswerSubject, StepSubject};
use crate::serve::app::App;
use crate::serve::authorizer::{Caller, OrgReach, bearer_token, hash_text};
use crate::serve::callback::pause_of;
use crate::serve::middleware::{ShownCaller, json_body};
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, RunId};
use crate::serve::run_store::DecidedRun;
use crate::serve::starter_rights::starter_rights;

/// The longest body with the token in it, in bytes: nobody has shown a token before it is read.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1_024;
/// How often a decision about a step is tried while decisions about other steps of its run come between.
const MAX_TRIES: u32 = 8;
/// How long one try waits for the step that continues.
const TRY_TIMEOUT: Duration = Duration::from_secs(2);

/// One decision: one of `answer`, `data`, `approve`, `deny`, `edit`, `happened`, `fail` and `retry`. It is refused when a
/// `pause`, `call`, `at` or `hash` beside it is not what the token is for.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerRequest {
    /// The token, unless it is in `Authorization: Bearer`.
    pub token: Option<String>,
    /// The keys of a form.
    pub data: Option<Map<String, Value>>,
    /// The decision.
    #[serde(flatten)]
    pub decision: WrittenDecision,
}

/// The one field that is read before it is known whether the rest may be.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenInBody {
    token: Option<String>,
}

impl AnswerRequest {
    /// The decision about what the token is for.
    fn decided(
        self,
        token: &AnswerToken,
        subject: &AnswerSubject,
        by: Option<String>,
        rights: DecisionRights,
    ) -> Result<Option<Decided>, ProblemDetails> {
        let (at, call, hash) = match subject.clone() {
            AnswerSubject::Question => (None, None, None),
            AnswerSubject::Call { id, hash } => (None, Some(id), Some(hash)),
            AnswerSubject::Step(StepSubject { at, call, hash, .. }) => (Some(at), call, hash),
        };
        let Self { data, decision: written, .. } = self;
        // A token that no pause is named for decides in whatever pause the run is.
        let pause = Some(token.pause).filter(|pause| *pause != NO_PAUSE);
        let is_other = written.pause.zip(pause).is_some_and(|(written, pause)| written != pause)
            || written.call.is_some_and(|own| call.as_deref() != Some(own.to_string().as_str()))
            || (written.at.is_some() && written.at != at)
            || (written.hash.is_some() && written.hash != hash);
        if is_other {
            let pause = pause.map(|pause| format!(" in pause {pause}")).unwrap_or_default();
            let detail = format!("this token is for {}{pause}, as it was posted, and for nothing else", subject.said());
            return Err(ProblemDetails::conflict("refused", detail));
        }
        if written.answer.is_some() && data.is_some() {
            return Err(ProblemDetails::bad_request("`data` is the answer to a form: leave `answer` out"));
        }
        let answer = data.map(|data| Value::Object(data).to_string()).or(written.answer);
        // The store keeps the call as it was posted.
        let call = call.map(|call| call.parse()).transpose().map_err(|_| unknown())?;
        let decision = WrittenDecision { answer, pause: Some(token.pause), call, at, hash, ..written };
        decision.read(DecisionSyntax::Fields, by, rights).map_err(ProblemDetails::bad_request)
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
    if answer_page::is_form(request.headers()) {
        return Ok(answer_page::submitted(&app, run_id, request).await);
    }
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
            let body = json_body(&app, &mut request, app.body.bytes.min(MAX_BODY_BYTES)).await?;
            let TokenInBody { token } = request::body(&body)?;
            (known(&app, &run_id, &token.ok_or_else(unknown)?).await?, body)
        }
    };
    let mut waiting = AwaitedAnswer::find(&app, &run_id, token).await?;
    waiting.show(&ShownCaller::of(&request));
    // The events of a run that takes no answer are not read.
    app.runs.read(&mut waiting.run).await?;
    let written = request::decision_body::<AnswerRequest>(&body)?;
    if written.data.is_some() {
        request::has_no_key_twice(&body)?;
    }
    waiting.take(&app, written, body.len()).await?;
    accepted_answer(&app, &run_id).await
}

/// What a good token is for, in a run that takes answers.
pub(super) struct AwaitedAnswer {
    /// The run.
    pub run: DecidedRun,
    /// The token.
    pub token: AnswerToken,
    /// What it is for.
    pub subject: AnswerSubject,
    /// What the tokens of the one who started the run may decide about now.
    held: DecisionRights,
}

impl AwaitedAnswer {
    /// What a token of the run is for. No event of the run is read.
    ///
    /// # Errors
    /// 403 when there is no such run, 409 when it is quarantined, 410 when it takes no answer now, or nobody is left who could
    /// give one with a token of the one who started it.
    pub(super) async fn find(app: &App, run_id: &str, token: AnswerToken) -> Result<Self, ProblemDetails> {
        let subject = AnswerSubject::read(token.call.as_deref()).ok_or_else(unknown)?;
        let run = DecidedRun::new(app.runs.journal.find(run_id).await?.ok_or_else(unknown)?);
        if run.row.status == Status::Quarantined {
            return Err(ProblemDetails::quarantined(run_id));
        }
        // Another step of a workflow may be going on after a decision of its own.
        let status = run.row.status;
        if status != Status::Paused && !(status == Status::Running && matches!(subject, AnswerSubject::Step(_))) {
            return Err(ProblemDetails::answer_is_over());
        }
        let held = starter_rights(&app.served().authorizer, &run.row).ok_or_else(ProblemDetails::starter_is_gone)?;
        Ok(Self { run, token, subject, held: held.rights })
    }

    /// Names the holder of the token, and the organisation of the run, in the log: nobody where no token started the run.
    pub(super) fn show(&self, shown: &ShownCaller) {
        let (name, org) = (self.run.row.token.as_deref().map(callback_of), self.run.row.org.clone());
        shown.set(Caller { name, org, reach: OrgReach::Own, scopes: Vec::new(), hash: None });
    }

    /// Who the bytes count for that the holder of the token sends and reads.
    pub(super) fn owner(&self) -> Owner {
        Owner { org: self.run.row.org.clone(), token: None }
    }

    /// Takes a decision that came in a body of this length.
    ///
    /// # Errors
    /// 400, 409, 410 or 429; nothing has changed then.
    pub(super) async fn take(
        mut self,
        app: &Arc<App>,
        written: AnswerRequest,
        bytes: usize,
    ) -> Result<(), ProblemDetails> {
        let by = holder(app, &self.run.row);
        let state = &app.runs.read(&mut self.run).await?.run.state;
        if self.token.pause == NO_PAUSE && matches!(self.subject, AnswerSubject::Call { .. }) {
            self.token.pause = pause_of(state).unwrap_or(NO_PAUSE);
        }
        let rights = state.header.callback_rights;
        // Without rights, no token was issued.
        let rights = rights.ok_or_else(unknown)?.within(self.held).ok_or_else(ProblemDetails::starter_is_gone)?;
        let decided = written.decided(&self.token, &self.subject, by, rights)?;
        let decided = decided.ok_or_else(|| ProblemDetails::bad_request("give a decision"))?;
        app.scheduler.accepts_runs()?;
        let owner = self.owner();
        app.quotas.check_bytes(&owner)?;
        app.quotas.sent(&owner, bytes);
        let Self { mut run, token, subject, .. } = self;
        match &subject {
            AnswerSubject::Step(step) => decide_step(app, &mut run, &token, (step, decided), &owner).await,
            AnswerSubject::Question | AnswerSubject::Call { .. } => {
                match take(app, &mut run, (&token, decided), &owner).await {
                    Ok(()) => Ok(()),
                    Err(problem) => Err(over_or(app, &mut run, &token, problem).await),
                }
            }
        }
    }
}

/// Resumes a run with a decision, which uses its token up.
async fn take(
    app: &Arc<App>,
    run: &mut DecidedRun,
    decision: (&AnswerToken, Decided),
    owner: &Owner,
) -> Result<(), ProblemDetails> {
    let (token, decided) = decision;
    let resume = Resume { decided: Some(decided), answer_token: Some(token.hash.clone()), ..Resume::default() };
    // The token is for the call as it was shown, under the recorded document.
    app.scheduler.decide(run, resume, Some(false), owner).await.map(drop)
}

/// Takes a decision about a step that still asks what was posted, in whatever pause the run is by now: decisions about
/// other steps end a pause, and this token stays good.
async fn decide_step(
    app: &Arc<App>,
    run: &mut DecidedRun,
    token: &AnswerToken,
    decision: (&StepSubject, Decided),
    owner: &Owner,
) -> Result<(), ProblemDetails> {
    let (step, decided) = decision;
    let run_id = run.row.run_id.clone();
    let run_id = run_id.as_str();
    let mut refused = ProblemDetails::from(StoreError::Driven(run_id.to_owned()));
    for _ in 0..MAX_TRIES {
        let state = &app.runs.read(run).await?.run.state;
        if !waiting_steps(state).iter().any(|question| step.is(question)) {
            return Err(ProblemDetails::answer_is_over());
        }
        // None while other steps are under way: the driver takes the decision.
        let pause = pause_of(state);
        // What was read is what is decided: in another pause, the decision is refused, and read again.
        let decided = Decided { pause, ..decided.clone() };
        refused = match take(app, run, (token, decided), owner).await {
            Ok(()) => return Ok(()),
            Err(problem) if problem.status != StatusCode::CONFLICT => return Err(problem),
            Err(problem) => problem,
        };
        let now = pause_of(&app.runs.read_on(run).await?.run.state);
        let is_driven = refused.is_driven_elsewhere();
        if now == pause && !is_driven {
            break;
        }
        if is_driven {
            // By another server of the store, or about to be released.
            app.scheduler.wait(run_id, None, Some(TRY_TIMEOUT)).await?;
            app.runs.read_on(run).await?;
        }
    }
    let token = app.runs.journal.answer_token(run_id, &token.hash).await?;
    if token.is_none_or(|token| token.used) { Err(ProblemDetails::answer_is_over()) } else { Err(refused) }
}

/// The token of the run that was given, if it is still good.
///
/// # Errors
/// 403 when the run has no such token, 410 when it was used or has expired.
pub(super) async fn known(app: &App, run_id: &str, given: &str) -> Result<AnswerToken, ProblemDetails> {
    let token = app.runs.journal.answer_token(run_id, &hash_text(given)).await?.ok_or_else(unknown)?;
    if token.used || token.expires_at_ms <= clock::wall_ms() {
        return Err(ProblemDetails::answer_is_over());
    }
    Ok(token)
}

/// Who decides with a token of this run, in the record: it counts as the holder of the token that started the run. Nobody
/// is known to be another person than a starter that the store does not name; only where there are no tokens at all, all
/// runs are of the machine's users.
fn holder(app: &App, run: &RunSummary) -> Option<String> {
    match &run.token {
        Some(starter) => Some(callback_of(starter)),
        None => app.served().authorizer.is_open().then(|| CALLBACK.to_owned()),
    }
}

/// 410 when the reason of a refusal is that another decision came first; else the refusal itself.
async fn over_or(app: &App, run: &mut DecidedRun, token: &AnswerToken, problem: ProblemDetails) -> ProblemDetails {
    if problem.status != StatusCode::CONFLICT {
        return problem;
    }
    let known = app.runs.journal.answer_token(&run.row.run_id, &token.hash).await.ok().flatten();
    let used = known.is_none_or(|token| token.used);
    let is_over = used
        || match app.runs.read_on(run).await {
            Ok(read) => pause_of(&read.run.state) != Some(token.pause),
            Err(_) => false,
        };
    if is_over { ProblemDetails::answer_is_over() } else { problem }
}
