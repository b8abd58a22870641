//! The checks before a route: the name in `Host`, no page of another site, a token with the scope, and a JSON body
//! within its limits.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, NestedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::app::App;
use super::authorizer::{Caller, NotIdentified};
use super::connections::{PeerAddress, Requests};
use super::problem::{ItemizedResult, ProblemDetails, ShownCode};
use super::quotas::Owner;
use crate::drive::clock;
use crate::language::serving::TokenScope;

/// The longest path with its query, in bytes.
const MAX_TARGET_BYTES: usize = 8 * 1024;
/// The longest headers together, in bytes.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// The header with the id of a request in the log.
const REQUEST_ID: &str = "x-request-id";
/// The content security policy of responses: a browser may load nothing.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The names that `Host` may have. Another name there comes from a page of another site (DNS rebinding).
#[derive(Debug)]
pub struct HostNames {
    names: BTreeSet<String>,
    any_address: bool,
}

impl HostNames {
    /// The names of this machine, the address that is listened on, and `more`.
    pub fn new(ip: IpAddr, more: &[String]) -> Self {
        let own = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), ip.to_string()];
        let names = own.into_iter().chain(more.iter().map(|name| tidy(name)));
        // An address always means this machine, unlike a name.
        Self { names: names.collect(), any_address: ip.is_unspecified() }
    }

    fn knows(&self, host: &str) -> bool {
        let host = tidy(host);
        self.names.contains(&host) || (self.any_address && host.parse::<IpAddr>().is_ok())
    }
}

/// A host in one spelling: lower case, without brackets and a trailing dot.
fn tidy(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Who sent the request, once that is known: for the log.
#[derive(Clone, Default)]
pub(super) struct ShownCaller(Arc<OnceLock<Caller>>);

impl ShownCaller {
    /// That of a request; one that nobody sees where it came past the middleware.
    pub(super) fn of(request: &Request) -> Self {
        request.extensions().get::<Self>().cloned().unwrap_or_default()
    }

    pub(super) fn set(&self, caller: Caller) {
        // Set once: each request is admitted once.
        drop(self.0.set(caller));
    }
}

/// Checks every request; adds headers to every response, and logs it.
pub async fn outer(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let started_at = clock::instant();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let path = request.uri().path().chars().take(200).collect::<String>();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let prefix = request.extensions().get::<NestedPath>().cloned();
    let peer = request.extensions().get::<PeerAddress>().map(|PeerAddress(address)| address.to_string());
    let shown = ShownCaller::default();
    request.extensions_mut().insert(shown.clone());
    let mut response = match check(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let mut code = None;
    if let Some(problem) = response.extensions_mut().remove::<ProblemDetails>() {
        app.metrics.refused(problem.status, problem.code);
        code = Some(problem.code);
        let pattern = route.as_ref().map(MatchedPath::as_str);
        app.refusals.count(shown.0.get(), problem.status, problem.code, pattern);
        // The texts of a problem never show the path of the folder.
        response = app.hidden_paths.problem(problem).into_response();
    } else if let Some(ShownCode(shown)) = response.extensions_mut().remove() {
        app.metrics.refused(response.status(), shown);
        code = Some(shown);
    }
    let status = response.status();
    let pattern = route.as_ref().map(MatchedPath::as_str);
    app.metrics.answered(pattern, &method, status, clock::elapsed(started_at));
    let answered = AnsweredRequest { id: &id, method: &method, path: &path, address: peer.as_deref(), started_at };
    answered.log(RequestOutcome { status, code }, run_of(response.headers()).as_deref(), shown.0.get());
    let headers = response.headers_mut();
    if let Some(prefix) = prefix {
        put_prefix(headers, prefix.as_str());
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    response
}

/// The run that a response names as its own.
fn run_of(headers: &HeaderMap) -> Option<String> {
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    Some(location.strip_prefix("/agents/")?.strip_suffix("/status")?.to_owned())
}

/// The most of a request's method that the log shows, in bytes.
const MAX_METHOD_BYTES: usize = 20;

/// A request as the log shows it: never its query, its headers and its body, which may hold a token.
struct AnsweredRequest<'r> {
    id: &'r str,
    method: &'r Method,
    path: &'r str,
    address: Option<&'r str>,
    started_at: Instant,
}

impl AnsweredRequest<'_> {
    /// One line for the request, with the name of the token and never its text: a warning if it was refused. Who only reads
    /// has one from `debug` on: pages and probes read several times a second.
    fn log(&self, answer: RequestOutcome, run_id: Option<&str>, caller: Option<&Caller>) {
        let AnsweredRequest { id: request_id, method, path, address, started_at } = *self;
        // Anybody may send any word as one.
        let (method, ms) =
            (method.as_str().get(..MAX_METHOD_BYTES).unwrap_or(method.as_str()), clock::elapsed_ms(started_at));
        let RequestOutcome { status, code } = answer;
        let (token, org) =
            (caller.and_then(|caller| caller.name.as_deref()), caller.and_then(|caller| caller.org.as_deref()));
        let status_number = status.as_u16();
        if status.is_client_error() || status.is_server_error() {
            tracing::warn!(
                request_id,
                method,
                path,
                status = status_number,
                code,
                ms,
                run_id,
                token,
                org,
                address,
                "refused"
            );
        } else if matches!(*self.method, Method::GET | Method::HEAD) || path.ends_with("/check") {
            tracing::debug!(
                request_id,
                method,
                path,
                status = status_number,
                ms,
                run_id,
                token,
                org,
                address,
                "answered"
            );
        } else {
            tracing::info!(
                request_id,
                method,
                path,
                status = status_number,
                ms,
                run_id,
                token,
                org,
                address,
                "answered"
            );
        }
    }
}

/// How a request was answered.
#[derive(Clone, Copy)]
struct RequestOutcome {
    status: StatusCode,
    /// The code of the problem, if it was refused.
    code: Option<&'static str>,
}

/// Where the router is mounted under a prefix, `Location` starts with it: the routes do not know the prefix.
fn put_prefix(headers: &mut HeaderMap, prefix: &str) {
    let Some(path) = headers.get(header::LOCATION).and_then(|path| path.to_str().ok()) else { return };
    if let Ok(location) = HeaderValue::from_str(&format!("{}{path}", prefix.trim_end_matches('/'))) {
        headers.insert(header::LOCATION, location);
    }
}

/// The caller's own id for the request when it is a plain word, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let plain = |id: &&str| {
        (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
    };
    given.filter(plain).map_or_else(|| uuid::Uuid::now_v7().to_string(), str::to_owned)
}

fn check(app: &App, request: &Request) -> Result<(), ProblemDetails> {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > MAX_TARGET_BYTES {
        let detail = format!("the address is longer than {MAX_TARGET_BYTES} bytes");
        return Err(ProblemDetails::new(StatusCode::URI_TOO_LONG, "uri_too_long", detail));
    }
    let head: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if head > MAX_HEAD_BYTES {
        let detail = format!("the headers are longer than {MAX_HEAD_BYTES} bytes");
        return Err(ProblemDetails::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", detail));
    }
    let host = host(request)?;
    if !app.names.knows(&host.0) {
        let detail = "the server does not accept this name in `Host`; who runs it adds the names that it has";
        return Err(ProblemDetails::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host", detail));
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && is_foreign(request.headers(), &host.1) {
        let detail = "a page of another site may not do this";
        return Err(ProblemDetails::new(StatusCode::FORBIDDEN, "foreign_origin", detail));
    }
    let encoded = request.headers().get_all(header::CONTENT_ENCODING).iter();
    if encoded.into_iter().any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let detail = "a compressed body is not read: send it as it is";
        return Err(ProblemDetails::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded_body", detail));
    }
    Ok(())
}

/// The host of a request, and the host with its port as written.
fn host(request: &Request) -> Result<(String, String), ProblemDetails> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(ProblemDetails::bad_request("a request has one `Host`"));
    };
    let authority: Option<axum::http::uri::Authority> =
        host.to_str().ok().filter(|host| !host.contains('@')).and_then(|host| host.parse().ok());
    let Some(authority) = authority else { return Err(ProblemDetails::bad_request("`Host` is no name")) };
    if let Some(other) = request.uri().authority()
        && !other.as_str().eq_ignore_ascii_case(authority.as_str())
    {
        return Err(ProblemDetails::bad_request("the address names another host than `Host`"));
    }
    Ok((authority.host().to_owned(), authority.as_str().to_ascii_lowercase()))
}

/// Whether the browser reports that a page of another site sent the request.
fn is_foreign(headers: &HeaderMap, host: &str) -> bool {
    let origin = headers.get_all(header::ORIGIN).iter().any(|origin| {
        let own = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        !own.is_some_and(|(scheme, at)| matches!(scheme, "http" | "https") && at.eq_ignore_ascii_case(host))
    });
    let site = headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    origin || site
}

/// Admits a request with one of these scopes, and reads its body.
///
/// # Errors
/// 401, 403, 408, 413 or 415.
pub async fn admitted(
    State((app, scopes)): State<(Arc<App>, &'static [TokenScope])>,
    request: Request,
    next: Next,
) -> Result<Response, ProblemDetails> {
    let shown = ShownCaller::of(&request);
    // The log names the holder of a token that is not taken, too.
    let (parts, body) = request.into_parts();
    let identified = app.served().authorizer.identify(&parts, clock::wall_ms());
    let mut request = Request::from_parts(parts, body);
    let caller = match identified {
        Ok(caller) => caller,
        Err(NotIdentified { problem, holder }) => {
            if let Some(holder) = holder {
                shown.set(*holder);
            }
            return Err(*problem);
        }
    };
    shown.set(caller.clone());
    caller.needs_one(scopes)?;
    let owner = Owner::from(&caller);
    if let Some(connection) = request.extensions().get::<Requests>() {
        connection.show(&owner)?;
    }
    app.quotas.check_bytes(&owner)?;
    request.extensions_mut().insert(caller.clone());
    if request.method() == Method::POST {
        let bytes = json_body(&app, &mut request, app.body.bytes).await?;
        *request.body_mut() = Body::from(bytes);
        let length = request.body().size_hint().lower();
        app.quotas.sent(&owner, usize::try_from(length).unwrap_or(usize::MAX));
    }
    let response = next.run(request).await;
    // The token may have ended while the answer waited for a run: it then shows nothing of it. What was asked for is done. Who
    // decided about many things learns with which it was done.
    let is_itemized = response.extensions().get::<ItemizedResult>().is_some();
    if let Err(mut problem) = app.served().authorizer.check_again(&caller, scopes, clock::wall_ms())
        && !is_itemized
    {
        if response.status().is_success() {
            problem.detail =
                format!("{}. The request was carried out before: ask for its run with another token", problem.detail);
        }
        return Err(problem);
    }
    Ok(if app.quotas.counts_bytes() { counted(&app, owner, response) } else { response })
}

/// Counts the bytes of an answer in its owner's quota; those of a stream as they are sent.
fn counted(app: &Arc<App>, owner: Owner, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        app.quotas.sent(&owner, usize::try_from(length).unwrap_or(usize::MAX));
        return Response::from_parts(parts, body);
    }
    let shares = Arc::clone(&app.quotas);
    let body = body.map_frame(move |frame| {
        shares.sent(&owner, frame.data_ref().map_or(0, Bytes::len));
        frame
    });
    Response::from_parts(parts, Body::new(body))
}

/// Whether a body is of this kind, and of no other one.
pub fn has_kind(headers: &HeaderMap, expected: &str) -> bool {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (kinds.next(), kinds.next()) else { return false };
    let kind = kind.to_str().unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(expected))
}

/// Takes the JSON body of a request: of a bounded number of bytes, and within its time.
///
/// # Errors
/// 400, 408, 413 or 415.
pub async fn json_body(app: &App, request: &mut Request, most: usize) -> Result<Bytes, ProblemDetails> {
    if !has_kind(request.headers(), "application/json") {
        let detail = "the body is to be `Content-Type: application/json`";
        return Err(ProblemDetails::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
    }
    whole_body(app, request, most).await
}

/// Takes the body of a request, of any kind: of a bounded number of bytes, and within its time.
///
/// # Errors
/// 400, 408 or 413.
pub async fn whole_body(app: &App, request: &mut Request, most: usize) -> Result<Bytes, ProblemDetails> {
    let too_large = || {
        let detail = format!("the body is longer than {most} bytes");
        ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    };
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if length.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let body = std::mem::take(request.body_mut());
    let collected = tokio::time::timeout(app.body.time, Limited::new(body, most).collect()).await;
    let late = |_| ProblemDetails::new(StatusCode::REQUEST_TIMEOUT, "body_too_late", "the body did not arrive in time");
    match collected.map_err(late)? {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(ProblemDetails::bad_request("the body broke off")),
    }
}
