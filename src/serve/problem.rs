//! Errors as `application/problem+json`: a code, a sentence, and the diagnostics of a document.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::shown_faults;
use crate::diagnostic::Diagnostic;
use crate::drive::fault::{BUSY, Fault};
use crate::engine::decision::form::FormRefusal;
use crate::journal::StoreError;
use crate::program::form::FieldFault;
use crate::project::load::DocumentError;
use crate::trace::escape;

/// The quota of connections is used up; this connection is closed after the response.
pub const TOO_MANY_CONNECTIONS: &str = "too_many_connections";
/// The token that a run was started with is not taken any more.
pub const STARTER_IS_GONE: &str = "starter_is_gone";
/// The folder has changed the document of the run, and it is not said which text counts.
pub const DOCUMENT_CHANGED: &str = "document_changed";
/// The server has no connection left; this connection is closed after the response.
pub const NO_CONNECTION_LEFT: &str = "no_connection_left";

/// Why a request failed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemDetails {
    /// The HTTP status.
    #[serde(skip)]
    #[schemars(skip)]
    pub status: StatusCode,
    /// Always `about:blank`: the code says what happened.
    #[serde(rename = "type")]
    #[schemars(with = "String")]
    kind: BlankType,
    /// The HTTP status in words.
    title: &'static str,
    /// The HTTP status as a number.
    #[serde(rename = "status")]
    number: u16,
    /// A stable word for what happened.
    pub code: &'static str,
    /// What happened, in a sentence.
    pub detail: String,
    /// What is wrong with a document or an input, as `loopctl check --format json` prints it.
    #[serde(skip_serializing_if = "<[Diagnostic]>::is_empty")]
    #[schemars(default, with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>")]
    pub diagnostics: Box<[Diagnostic]>,
    /// What is wrong with the answer to a form, at each field.
    #[serde(skip_serializing_if = "<[FieldFault]>::is_empty")]
    #[schemars(default)]
    pub fields: Box<[FieldFault]>,
    /// The run that has the key or the id already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_run_id: Option<Box<str>>,
    /// After how many seconds a retry may succeed.
    #[serde(skip)]
    #[schemars(skip)]
    pub retry_after: Option<u32>,
}

/// A response that says what was done with each of many things: its route stops by itself when the caller's token ends.
#[derive(Debug, Clone, Copy)]
pub struct ItemizedResult;

/// The type of every problem: it takes no room in what is returned.
#[derive(Debug, Clone, Copy)]
struct BlankType;

impl Serialize for BlankType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("about:blank")
    }
}

/// The code of a problem that a response shows as a page, for the log and the metrics.
#[derive(Debug, Clone, Copy)]
pub struct ShownCode(pub &'static str);

/// How the lines of a list of reasons begin.
const LIST_ITEM: &str = "\n- ";
/// The most reasons that a problem lists.
const MAX_REASONS: usize = 50;

/// A sentence, and the lines of its list if it has one. Nothing else begins a line.
fn lines(detail: &str) -> String {
    let mut reasons = detail.split(LIST_ITEM);
    // The sentence comes before the reasons.
    let mut shown: Vec<String> = reasons.by_ref().take(1 + MAX_REASONS).map(crate::diagnostic::shown).collect();
    let left = reasons.count();
    if left > 0 {
        shown.push(format!("and {left} more"));
    }
    shown.join(LIST_ITEM)
}

impl ProblemDetails {
    /// Whether another driver than the asked one has the run.
    pub fn is_driven_elsewhere(&self) -> bool {
        self.code == StoreError::Driven(String::new()).code()
    }

    /// Whether a step of the run is under way, which may ask again.
    pub fn is_busy(&self) -> bool {
        self.code == BUSY
    }

    /// A problem of this status and code.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or_default();
        let detail = lines(&detail.into());
        Self {
            status,
            kind: BlankType,
            title,
            number: status.as_u16(),
            code,
            detail,
            diagnostics: Box::default(),
            fields: Box::default(),
            agent_run_id: None,
            retry_after: None,
        }
    }

    /// 400: the request can't be read.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    /// 400: the answer to a form does not fit, and the form stays open.
    pub fn bad_answer(refusal: FormRefusal) -> Self {
        let FormRefusal { why, faults } = refusal;
        Self { fields: faults.into(), ..Self::new(StatusCode::BAD_REQUEST, "bad_answer", why) }
    }

    /// 404: there is no such run, or it belongs to another organisation.
    pub fn no_such_run() -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_such_run", "there is no such run")
    }

    /// 409: another request has the run, or the id belongs to a run of another document.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// 409: the run is set aside, and what was asked for would have the server execute it.
    pub fn quarantined(run_id: &str) -> Self {
        let detail = format!(
            "run {run_id} is quarantined: its process died again and again while it was executed, and only somebody who means \
             that takes it up. Find out why, then send {{\"resume\": true}} to its `resume` route: higher limits may be sent with \
             it, and a decision after it"
        );
        Self::conflict("quarantined", detail)
    }

    /// 410: the token of an answer was used, or has expired, or what it answers is over.
    pub fn answer_is_over() -> Self {
        let detail = "this token was used, or has expired, or the run does not wait for this decision any more";
        Self::new(StatusCode::GONE, "answer_is_over", detail)
    }

    /// 410 for an answer to a run whose starter has no token any more.
    pub fn starter_is_gone() -> Self {
        let detail = "the token that started the run has expired or was revoked, and what was posted of the run decides no \
                      longer than that: decide with a token that may";
        Self::new(StatusCode::GONE, STARTER_IS_GONE, detail)
    }

    /// 422 with the faults of a document.
    pub fn diagnosed(diagnostics: Vec<Diagnostic>) -> Self {
        let faults = diagnostics.iter().filter(|fault| fault.is_error()).count();
        let detail = match (faults, diagnostics.first()) {
            (0 | 1, Some(only)) => only.message.clone(),
            _ => format!("the document has {faults} errors"),
        };
        Self { diagnostics: diagnostics.into(), ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "document", detail) }
    }
}

impl From<DocumentError> for ProblemDetails {
    fn from(unsound: DocumentError) -> Self {
        Self::diagnosed(unsound.diagnostics)
    }
}

impl From<StoreError> for ProblemDetails {
    fn from(fault: StoreError) -> Self {
        let status = match &fault {
            StoreError::NoSuchRun(_) => return Self::no_such_run(),
            StoreError::Driven(_)
            | StoreError::Fenced(_)
            | StoreError::ReadOnlyCopy(_)
            | StoreError::Imported(_)
            | StoreError::Unfinished(_) => StatusCode::CONFLICT,
            StoreError::TokenUsed(_) => return Self::answer_is_over(),
            StoreError::Corrupt(_) => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, fault.code(), fault.to_string())
    }
}

/// A fault in the words of HTTP, with what helps against it.
fn said(fault: &Fault) -> String {
    match fault.remedy() {
        Some(remedy) => format!("{fault}; {}", shown_faults::words(&remedy)),
        None => fault.to_string(),
    }
}

impl From<Fault> for ProblemDetails {
    fn from(fault: Fault) -> Self {
        let (code, said) = (fault.code(), said(&fault));
        match fault {
            Fault::Diagnostics(diagnostics) => Self::diagnosed(diagnostics),
            Fault::Store(fault) | Fault::Cut(fault) => fault.into(),
            Fault::Missing(_) | Fault::NoModel | Fault::NoScript(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, said)
            }
            Fault::Refused(_) | Fault::Busy(_) | Fault::Unseen | Fault::FailureHandled | Fault::Changed { .. } => {
                Self::conflict(code, said)
            }
            Fault::Conflict(ref run_id) => {
                // Ids are not chosen over HTTP: the key made this one.
                let said = format!(
                    "there is a run {run_id} with this `Idempotency-Key`, of another request: take another key"
                );
                Self { agent_run_id: Some(run_id.as_str().into()), ..Self::conflict(code, said) }
            }
            Fault::LineFull { ref by } => Self { agent_run_id: Some(by.as_str().into()), ..Self::conflict(code, said) },
            Fault::NoPrevious(_) => Self::new(StatusCode::NOT_FOUND, code, said),
            // A journal that can't be read, and what has no other status.
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, said),
        }
    }
}

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (self.status, escape::json(&text).into_owned()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let unavailable = (self.status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        if let Some(seconds) = self.retry_after.or(unavailable) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if matches!(
            self.status,
            StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::REQUEST_TIMEOUT
                | StatusCode::URI_TOO_LONG
                | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
                | StatusCode::UNSUPPORTED_MEDIA_TYPE
        ) || matches!(self.code, TOO_MANY_CONNECTIONS | NO_CONNECTION_LEFT)
        {
            // The rest of the body is not read, so the connection can't be used again.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        // `middleware::outer` reads it.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::super::shown_faults::HiddenPaths;
    use super::*;
    use crate::diagnostic::{Remedy, Source, codes};
    use crate::engine::effect::Refused;

    #[test]
    fn reasons_that_are_left_out_are_counted() {
        let listed = |reasons: usize| lines(&format!("no{}", "\n- why\nso".repeat(reasons)));
        assert_eq!(listed(2), "no\n- why\\u{A}so\n- why\\u{A}so");
        assert_eq!(listed(MAX_REASONS).lines().count(), 1 + MAX_REASONS);
        assert!(listed(MAX_REASONS + 7).ends_with("\n- and 7 more"));
    }

    /// One of each fault.
    fn all() -> Vec<Fault> {
        let place = || Source::new("loop.json", "{}").whole();
        let diagnosed = |remedy: Remedy| Diagnostic::error(codes::BAD_INPUT, "no", "", place()).help(remedy);
        let next = |fault: Option<&Fault>| match fault {
            None => Some(Fault::Diagnostics(Remedy::all().into_iter().map(diagnosed).collect())),
            Some(Fault::Diagnostics(_)) => Some(Fault::Missing(Vec::new())),
            Some(Fault::Missing(_)) => Some(Fault::NoModel),
            Some(Fault::NoModel) => Some(Fault::NoScript("no model is named".to_owned())),
            Some(Fault::NoScript(_)) => Some(Fault::Unseen),
            Some(Fault::Unseen) => Some(Fault::FailureHandled),
            Some(Fault::FailureHandled) => Some(Fault::Changed { file: "loop.json".to_owned() }),
            Some(Fault::Changed { .. }) => Some(Fault::Store(StoreError::Driven("r".to_owned()))),
            Some(Fault::Store(_)) => Some(Fault::Cut(StoreError::Driven("r".to_owned()))),
            Some(Fault::Cut(_)) => Some(Fault::Refused(Refused::NotAsked)),
            Some(Fault::Refused(_)) => Some(Fault::Busy(Refused::Busy("each.4".to_owned()))),
            Some(Fault::Busy(_)) => Some(Fault::Conflict("r".to_owned())),
            Some(Fault::Conflict(_)) => Some(Fault::NoPrevious("r".to_owned())),
            Some(Fault::NoPrevious(_)) => Some(Fault::LineFull { by: "r".to_owned() }),
            Some(Fault::LineFull { .. }) => Some(Fault::Journal { run: "r".to_owned(), reason: "no".to_owned() }),
            Some(_) => None,
        };
        let mut faults: Vec<Fault> = Vec::new();
        while let Some(fault) = next(faults.last()) {
            faults.push(fault);
        }
        faults
    }

    #[test]
    fn no_fault_is_answered_with_a_flag_of_the_command_line() {
        let faults = all();
        assert_eq!(faults.len(), 15);
        for fault in faults {
            let code = fault.code();
            let problem = HiddenPaths::default().problem(fault.into());
            let text = serde_json::to_string(&problem).unwrap();
            assert!(!text.contains("--") && !text.contains("`loopctl "), "{code}: {text}");
        }
    }
}
