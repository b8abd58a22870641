//! Reads requests: the query, the body, and the options of an agent request.

use std::time::Duration;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::problem::ProblemDetails;
use crate::diagnostic::Source;
use crate::drive::run_meter::TraceContext;
use crate::engine::json::from_bytes;
use crate::program::file_value;
use crate::syntax::Span;
use crate::syntax::document::{Document, DocumentKind};
use crate::trace::escape;

/// The longest time that an answer is waited for by `wait_ms`.
const MAX_WAIT_MS: u64 = 24 * 60 * 60 * 1_000;

/// The run's id in an address.
pub struct RunId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for RunId {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemDetails> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            // No run has an id that is not UTF-8.
            Err(_) => Err(ProblemDetails::no_such_run()),
        }
    }
}

/// The trace that a request is a step of, by W3C's headers.
pub fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Some(TraceContext { parent: text("traceparent")?, state: text("tracestate") })
}

/// How long a request waits for its run.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WaitQuery {
    /// Do not wait: 202 with the run's id at once.
    #[serde(rename = "async")]
    pub is_async: bool,
    /// The longest wait in milliseconds, then the answer is 202. Default: until the run ends or waits itself.
    #[schemars(range(max = 86_400_000))]
    pub wait_ms: Option<u64>,
    /// Whether the answer holds the trace.
    pub include_trace: bool,
    /// Whether models stream their replies from the first one on, for readers of the events who connect with `deltas`
    /// once they know the run's id.
    pub deltas: bool,
}

impl WaitQuery {
    /// The longest time to wait; none without a limit.
    pub fn at_most(&self) -> Option<Duration> {
        if self.is_async { Some(Duration::ZERO) } else { self.wait_ms.map(Duration::from_millis) }
    }

    /// Reads it from a query.
    ///
    /// # Errors
    /// 400 for an unknown or contradictory option.
    pub fn of(uri: &Uri) -> Result<Self, ProblemDetails> {
        let waiting: Self = query(uri)?;
        if waiting.is_async && waiting.wait_ms.is_some() {
            return Err(ProblemDetails::bad_request("`async` does not wait: leave `wait_ms` out"));
        }
        if waiting.wait_ms.is_some_and(|wait| wait > MAX_WAIT_MS) {
            return Err(ProblemDetails::bad_request(format!("`wait_ms` is at most {MAX_WAIT_MS}")));
        }
        Ok(waiting)
    }
}

/// Reads a query; unknown names are refused.
///
/// # Errors
/// 400.
pub fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ProblemDetails> {
    let Query(query) = Query::<T>::try_from_uri(uri)
        .map_err(|error| error.body_text())
        .map_err(|why| why.strip_prefix("Failed to deserialize query string: ").map(str::to_owned).unwrap_or(why))
        .map_err(|why| ProblemDetails::bad_request(format!("the query can't be read: {}", in_json_words(&why))))?;
    Ok(query)
}

/// Reads a body.
///
/// # Errors
/// 400.
pub fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ProblemDetails> {
    read(bytes, |fault| fault)
}

/// Checks that no object of a body has a key twice: JSON would keep one of the two.
///
/// # Errors
/// 400 with the key.
pub fn has_no_key_twice(bytes: &[u8]) -> Result<(), ProblemDetails> {
    let text = std::str::from_utf8(bytes).ok();
    if let Some(key) = text.and_then(file_value::reserved_key) {
        return Err(ProblemDetails::bad_request(file_value::reserved(&key)));
    }
    let twice = text.and_then(file_value::key_twice_in);
    twice.map_or(Ok(()), |key| {
        let detail = format!("the key {key:?} is twice in an object of the body, and JSON keeps one of the two");
        Err(ProblemDetails::bad_request(detail))
    })
}

/// Reads a body that has the fields of a decision beside its own.
///
/// # Errors
/// 400, with all its fields when it has an unknown one.
pub fn decision_body<T: DeserializeOwned + JsonSchema>(bytes: &[u8]) -> Result<T, ProblemDetails> {
    read(bytes, with_fields::<T>)
}

/// serde lists the fields of a body only where none of its parts is flattened.
fn with_fields<T: JsonSchema>(fault: String) -> String {
    let (what, place) = fault.rsplit_once(" at line ").unwrap_or((&fault, ""));
    if !what.starts_with("unknown field `") || what.contains("`, expected ") {
        return fault;
    }
    let schema = schemars::schema_for!(T);
    let fields = schema.get("properties").and_then(serde_json::Value::as_object);
    let names: Vec<String> =
        fields.into_iter().flat_map(|fields| fields.keys()).map(|name| format!("`{name}`")).collect();
    format!("{what}, expected one of {} at line {place}", names.join(", "))
}

fn read<T: DeserializeOwned>(bytes: &[u8], said: impl FnOnce(String) -> String) -> Result<T, ProblemDetails> {
    let body = from_bytes(bytes).map_err(|error| {
        let why = said(in_json_words(&error.to_string()));
        ProblemDetails::bad_request(format!("the body can't be read: {why}"))
    })?;
    let text = str::from_utf8(bytes).ok();
    if let Some(key) = text.and_then(file_value::reserved_key) {
        let why = file_value::reserved(&key);
        return Err(ProblemDetails::bad_request(format!("the body can't be read: {why}")));
    }
    match text.and_then(file_value::key_twice_in) {
        Some(key) => Err(ProblemDetails::bad_request(format!(
            "the body can't be read: the key {key:?} stands twice in an object, and JSON keeps one of the two"
        ))),
        None => Ok(body),
    }
}

/// What the reader of types says, in the words of JSON: callers know no types of Rust.
fn in_json_words(why: &str) -> String {
    const WORDS: [(&str, &str); 8] = [
        ("invalid type: map", "invalid type: object"),
        ("invalid type: sequence", "invalid type: array"),
        ("invalid type: floating point", "invalid type: number"),
        ("expected a map", "expected an object"),
        ("expected a sequence", "expected an array"),
        ("expected u32", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected f64", "expected a number"),
    ];
    let words = WORDS.iter().fold(why.to_owned(), |why, (rust, json)| why.replace(rust, json));
    match words.split_once("expected struct ") {
        Some((before, named)) => {
            let behind = named.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
            format!("{before}expected an object{behind}")
        }
        None => words,
    }
}

/// A JSON response without characters that control a terminal.
pub fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => {
            let mut response = (status, escape::json(&text).into_owned()).into_response();
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(error) => {
            let detail = format!("the answer can't be written: {error}");
            ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "not_written", detail).into_response()
        }
    }
}

/// Fields of the body that are not part of the agent request.
#[derive(Debug, Default, PartialEq)]
pub struct RequestOptions {
    /// Where the result is to be posted.
    pub callback_url: Option<String>,
    /// The session whose memory the run shares.
    pub session: Option<String>,
}

/// Separates an agent request from the options in the same body. The options are replaced by blanks, so the
/// positions in the document stay correct.
///
/// # Errors
/// 400 when an option is not a string.
pub fn split_options(text: &str) -> Result<(String, RequestOptions), ProblemDetails> {
    let (tree, _) = crate::syntax::parse(&Source::new("request", text));
    let mut options = RequestOptions::default();
    let mut bytes = text.as_bytes().to_vec();
    let members = tree.root.members().unwrap_or_default();
    for (at, member) in members.iter().enumerate() {
        let to = match &*member.key {
            "callback_url" => &mut options.callback_url,
            "session" => &mut options.session,
            _ => continue,
        };
        let value = member.value.as_str();
        *to = Some(value.ok_or_else(|| ProblemDetails::bad_request(format!("`{}` is a text", member.key)))?.to_owned());
        // The comma after it goes too; after the last one, the comma before.
        let end = members.get(at + 1).map_or(member.value.span.end, |next| next.key_span.start);
        blank(&mut bytes, Span { start: member.key_span.start, end });
        if at + 1 == members.len() {
            let before = text.get(..member.key_span.start).unwrap_or_default();
            let comma = bytes.get(..before.len()).and_then(|head| head.iter().rposition(|byte| *byte == b','));
            let gap = comma.and_then(|comma| bytes.get(comma + 1..before.len()));
            if let Some(comma) = comma.filter(|_| gap.is_some_and(|gap| gap.iter().all(u8::is_ascii_whitespace))) {
                blank(&mut bytes, Span { start: comma, end: comma + 1 });
            }
        }
    }
    // Only whole members were blanked, so it is text as before.
    Ok((String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned()), options))
}

fn blank(bytes: &mut [u8], span: Span) {
    for byte in bytes.get_mut(span.start..span.end).unwrap_or_default() {
        if !byte.is_ascii_whitespace() {
            *byte = b' ';
        }
    }
}

/// Whether a document that came over HTTP may be run: only an agent request whose own actions use no programs,
/// databases or secrets of this machine. The owner of the machine can offer those as registered actions.
///
/// # Errors
/// 422 that says what is not allowed.
pub fn check_allowed(document: &Document) -> Result<(), ProblemDetails> {
    let refuse =
        |code: &'static str, detail: String| Err(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail));
    // Diagnostics report a document that can't be read.
    if document.kind.is_some_and(|kind| kind != DocumentKind::AgentRequest) {
        let detail =
            "the body is to be an agent request, or {\"loop\": NAME, \"input\": {...}} for a loop of the folder";
        return refuse("no_agent_request", detail.to_owned());
    }
    let actions = document.value.get("actions").and_then(serde_json::Value::as_array);
    for action in actions.into_iter().flatten() {
        let kind = action.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default();
        if !matches!(kind, "http" | "llm" | "") {
            return refuse(
                "own_action",
                format!("a request may not bring actions of kind `{kind}`: register it instead"),
            );
        }
        if action.to_string().contains("orgconfig:") {
            return refuse("own_action", "a request's own actions may not use secrets: register it instead".to_owned());
        }
    }
    Ok(())
}
