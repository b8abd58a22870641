//! `GET /agents/{id}/answer?token=...`: the page of a token, and what its forms send. A `GET` decides nothing: programs that
//! look at the links of mails open them too.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::answer::{AnswerRequest, AwaitedAnswer, MAX_BODY_BYTES, known};
use crate::program::form::MAX_LONG_TEXT_CHARS;
use crate::serve::answer_page::{
    AskedDecision, LinkEnd, RefusedInput, SentForm, asked_page, content_security_policy, end_page, refused_page,
    taken_page,
};
use crate::serve::app::App;
use crate::serve::authorizer::hash_text;
use crate::serve::middleware::{ShownCaller, has_kind, whole_body};
use crate::serve::problem::{ProblemDetails, STARTER_IS_GONE, ShownCode};
use crate::serve::request::RunId;
use crate::trace::Redaction;

/// The longest form with the token in it, in bytes: a form writes a character as up to 12 bytes, and a long text is taken whole.
const MAX_FORM_BYTES: usize = MAX_BODY_BYTES + 12 * MAX_LONG_TEXT_CHARS;

/// What a link holds. Mail systems add names of their own to links: those are passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct LinkQuery {
    token: String,
}

/// A form, and who sent it as the log is to name them.
struct SubmittedForm {
    form: SentForm,
    sender: ShownCaller,
}

/// A refused request, and the form that was sent with it if the link still takes a decision.
struct RefusedForm {
    problem: ProblemDetails,
    form: Option<Box<(AskedDecision, SentForm)>>,
}

impl From<ProblemDetails> for RefusedForm {
    fn from(problem: ProblemDetails) -> Self {
        Self { problem, form: None }
    }
}

/// Whether a body is that of a form.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    has_kind(headers, "application/x-www-form-urlencoded")
}

/// Shows what waits, and the forms that decide about it.
pub async fn shown(State(app): State<Arc<App>>, run_id: Result<RunId, ProblemDetails>, uri: Uri) -> Response {
    let token = Query::<LinkQuery>::try_from_uri(&uri).map(|Query(query)| query.token).unwrap_or_default();
    let run_id = run_id.map(|RunId(id)| id).unwrap_or_default();
    match read(&app, &run_id, &token).await {
        Ok((waiting, asked)) => {
            let page = asked_page(&asked, &token, None);
            app.quotas.sent(&waiting.owner(), page.len());
            answered(StatusCode::OK, page)
        }
        Err(problem) => refused(&app, (&run_id, &token), problem.into()).await,
    }
}

/// Takes the decision of a form, and says what came of it.
pub(super) async fn submitted(app: &Arc<App>, run_id: Result<RunId, ProblemDetails>, mut request: Request) -> Response {
    let run_id = run_id.map(|RunId(id)| id).unwrap_or_default();
    let form = match whole_body(app, &mut request, app.body.bytes.min(MAX_FORM_BYTES)).await {
        Ok(body) => SentForm::read(&body),
        Err(problem) => return refused(app, (&run_id, ""), problem.into()).await,
    };
    let token = form.text("token").to_owned();
    let kind = form.text("decision").to_owned();
    let sender = ShownCaller::of(&request);
    match take(app, &run_id, &token, SubmittedForm { form, sender }).await {
        Ok(approvers) => {
            // One no is enough.
            let approvers = if matches!(kind.as_str(), "approve" | "edit") { approvers } else { 1 };
            answered(StatusCode::OK, taken_page(said(&kind), approvers))
        }
        Err(refusal) => refused(app, (&run_id, &token), refusal).await,
    }
}

/// What was decided.
fn said(kind: &str) -> &'static str {
    match kind {
        "approve" => "Approved",
        "deny" => "Denied",
        "edit" => "Approved with the changed input",
        "retry" => "It is tried again",
        "happened" | "fail" => "Recorded",
        _ => "Sent",
    }
}

/// What a token asks.
async fn read(app: &App, run_id: &str, token: &str) -> Result<(AwaitedAnswer, AskedDecision), ProblemDetails> {
    let known = known(app, run_id, token).await?;
    let mut waiting = AwaitedAnswer::find(app, run_id, known).await?;
    app.quotas.check_bytes(&waiting.owner())?;
    let AwaitedAnswer { run, token, subject, .. } = &mut waiting;
    let read = app.runs.read(run).await?;
    let redact = Redaction::new(&read.program.program.project.redact);
    let asked = AskedDecision::find(&read.run.state, &redact, subject, token);
    asked.map(|asked| (waiting, asked)).ok_or_else(ProblemDetails::answer_is_over)
}

/// Takes a decision, and gives how many different people must approve what it is about.
async fn take(app: &Arc<App>, run_id: &str, token: &str, sent: SubmittedForm) -> Result<u32, RefusedForm> {
    let SubmittedForm { form, sender } = sent;
    let (waiting, asked) = read(app, run_id, token).await?;
    waiting.show(&sender);
    let length = form.length();
    let sent = match form.decision(&asked) {
        Ok(sent) => sent,
        Err(why) => {
            let problem = ProblemDetails::bad_request(why);
            return Err(RefusedForm { problem, form: Some(Box::new((asked, form))) });
        }
    };
    let written = AnswerRequest { token: None, data: sent.data, decision: sent.decision };
    let taken = waiting.take(app, written, length).await;
    match taken {
        Ok(()) => Ok(asked.approvers()),
        Err(problem) => Err(RefusedForm { problem, form: Some(Box::new((asked, form))) }),
    }
}

/// The page that says why nothing was decided: with the forms, if another try may be taken.
async fn refused(app: &App, link: (&str, &str), refusal: RefusedForm) -> Response {
    let RefusedForm { problem, form } = refusal;
    let problem = app.hidden_paths.problem(problem);
    let page = match (problem.status, form) {
        (StatusCode::FORBIDDEN, _) => end_page(LinkEnd::Unknown),
        (StatusCode::GONE, _) if problem.code == STARTER_IS_GONE => end_page(LinkEnd::StarterIsGone),
        (StatusCode::GONE, _) => end_page(link_end(app, link).await),
        (_, Some(form)) => {
            let refused = RefusedInput { form: &form.1, why: &problem.detail, faults: &problem.fields };
            asked_page(&form.0, link.1, Some(&refused))
        }
        (_, None) => refused_page(&problem.detail),
    };
    let mut response = answered(problem.status, page);
    let (status, code) = (problem.status, problem.code);
    // What else a problem says to a client: when to ask again, and that the connection ends.
    let plain = problem.into_response();
    for name in [header::RETRY_AFTER, header::CONNECTION] {
        if let Some(value) = plain.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    *response.status_mut() = status;
    response.extensions_mut().insert(ShownCode(code));
    response
}

/// Why a link is over.
async fn link_end(app: &App, link: (&str, &str)) -> LinkEnd {
    let (run_id, token) = link;
    match app.runs.journal.answer_token(run_id, &hash_text(token)).await {
        Ok(Some(token)) if token.used => LinkEnd::Used,
        Ok(Some(token)) if token.expires_at_ms <= crate::drive::clock::wall_ms() => {
            LinkEnd::Expired(token.expires_at_ms)
        }
        _ => LinkEnd::Decided,
    }
}

fn answered(status: StatusCode, page: String) -> Response {
    let mut response = (status, page).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, content_security_policy());
    // The address of the page holds the token. Only the origin is sent: without it, browsers send no `Origin` with a form.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex, nofollow"));
    response
}
