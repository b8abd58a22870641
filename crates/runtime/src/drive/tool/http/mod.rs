//! `http` actions: one request; redirects are followed by hand, and only inside one origin.

mod notice;
mod query_pairs;
mod request;
mod response;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_answers;
#[cfg(test)]
mod tests_request;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ::http::header::{CONTENT_TYPE, LOCATION};
use ::http::{Method, StatusCode};
use serde_json::Value;
use url::Url;

use self::request::HttpRequest;
use self::response::AnswerPolicy;
pub(super) use self::response::is_lost;
use super::output::fault;
use super::runner::{RawFault, RawOutcome, ToolRunner, wrong_kind};
use super::timed_out;
use crate::drive::descriptors::{self, Patience};
use crate::drive::egress::{Egress, EgressFault};
use crate::drive::future::BoxFuture;
use crate::drive::http_client::{self, Client, Response, is_tls_fault};
use crate::drive::retry::Transient;
use crate::drive::secret::Vault;
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::ToolFault;
use loopctl_lang::program::{Body, HttpTool, Tool, ToolKind};

/// The most redirects that are followed.
const MAX_HOPS: usize = 5;
/// The number of idle connections for a host: the default number of calls in a turn find one open.
const IDLE: usize = 32;

/// The most clients. Tools whose times differ more share some.
const MAX_CLIENTS: usize = 16;
/// How much longer the deadline of a call may be waited for than it takes to end the call by itself.
const GRACE: Duration = Duration::from_millis(200);

/// Makes the calls of `http` actions, over connections that all runs share.
pub(super) struct HttpRunner {
    egress: Egress,
    vault: Arc<Vault>,
    /// The clients, by how many milliseconds they dial: less than the calls that use them may take, so that a call that was
    /// never sent is known from one whose answer was lost.
    clients: Mutex<BTreeMap<u64, Client>>,
}

/// How far a call is.
#[derive(Default)]
struct HttpProgress {
    /// How many milliseconds each connection may take.
    dials_for_ms: u64,
    /// Whether a request may have reached the server.
    is_sent: AtomicBool,
    /// The server that a request was sent to first.
    server: OnceLock<String>,
}

impl HttpProgress {
    fn within(deadline: Duration) -> Self {
        let dials_for = deadline.saturating_sub(deadline / 16).as_millis();
        Self { dials_for_ms: u64::try_from(dials_for).unwrap_or(u64::MAX), ..Self::default() }
    }
}

impl ToolRunner for HttpRunner {
    fn waiting(&self, tool: &Tool) -> Duration {
        if matches!(tool.kind, ToolKind::Http(_)) { GRACE } else { Duration::ZERO }
    }

    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match &tool.kind {
            ToolKind::Http(http) => Box::pin(async move {
                let progress = HttpProgress::within(call.deadline);
                let keys = tool.secrets();
                // A client reads the certificates of the machine when it is made, which can take longer than is left between
                // the end of the dial and that of the call.
                if tokio::time::timeout(call.deadline, self.prepare(&progress)).await.is_err() {
                    return Err::<Value, _>(timed_out(call.deadline)).into();
                }
                let made = self.make(http, &keys, call, &progress);
                let made = tokio::time::timeout(call.deadline, made).await.unwrap_or_else(|_| {
                    let is_uncertain = progress.is_sent.load(Ordering::Relaxed);
                    let mut late = RawFault { is_uncertain, ..timed_out(call.deadline) };
                    if let Some(server) = progress.server.get() {
                        late.fault.detail = format!("no answer from {server}");
                    }
                    Err(late)
                });
                match &http.body {
                    Some(Body::Notice(kind)) => made.and_then(|answer| notice::delivered(*kind, answer)).into(),
                    _ => made.into(),
                }
            }),
            _ => wrong_kind(tool),
        }
    }
}

impl HttpRunner {
    pub(super) fn new(egress: Egress, vault: &Arc<Vault>) -> Self {
        Self { egress, vault: Arc::clone(vault), clients: Mutex::default() }
    }

    /// Makes a call. `keys`: the secrets that it sends. If the server refuses them (401) and one of them is another one now, it
    /// is sent once more.
    async fn make(
        &self,
        tool: &HttpTool,
        keys: &[String],
        call: &ToolCall<'_>,
        progress: &HttpProgress,
    ) -> Result<Value, RawFault> {
        let sent = self.vault.hold(keys);
        let request = request::build(tool, call, &call.scope(&self.vault))?;
        let action = &tool.action;
        let policy = AnswerPolicy {
            ok_status: action.ok_status.as_deref(),
            error_body: action.error_body,
            is_notice: matches!(tool.body, Some(Body::Notice(_))),
            is_step: call.at.is_some(),
        };
        let refused = match self.perform(request, policy, progress).await {
            Err(fault) if !sent.is_empty() && is_unauthorized(&fault) => fault,
            outcome => return outcome,
        };
        // Why there is no other secret does not matter to the model: the refusal does.
        if !self.vault.renewed(&sent).await.unwrap_or(false) {
            return Err(refused);
        }
        let request = request::build(tool, call, &call.scope(&self.vault))?;
        self.perform(request, policy, progress).await
    }

    /// Sends a request, and follows redirects inside its origin.
    ///
    /// # Errors
    /// When the address is not allowed, the server can't be reached, or its answer is no success, too large, or
    /// neither JSON nor text.
    async fn perform(
        &self,
        mut request: HttpRequest,
        policy: AnswerPolicy<'_>,
        progress: &HttpProgress,
    ) -> Result<Value, RawFault> {
        // Whether a request was answered with the address of what came of it.
        let mut is_made = false;
        let made = |is_made: bool, raw: RawFault| RawFault { is_uncertain: raw.is_uncertain || is_made, ..raw };
        for _ in 0..=MAX_HOPS {
            self.egress.check(&request.url).map_err(|error| made(is_made, egress_fault(&error)))?;
            let response = self.send(&request, progress).await.map_err(|raw| made(is_made, raw))?;
            let status = response.status();
            let ok = match policy.ok_status {
                Some(statuses) => statuses.contains(&status.as_u16()),
                None => status.is_success(),
            };
            if ok {
                // The server has done what was asked, whatever is wrong with its answer.
                let read = response::read(response, &request.method, policy).await;
                return if policy.is_notice { Ok(read.unwrap_or_default()) } else { read.map_err(RawFault::sent) };
            }
            let location = response.headers().get(LOCATION).and_then(|at| at.to_str().ok());
            match location.filter(|_| is_redirect(status)) {
                Some(location) => {
                    is_made |= status == StatusCode::SEE_OTHER;
                    redirect(&mut request, status, location, policy).map_err(|fault| made(is_made, fault.into()))?;
                }
                None => return Err(made(is_made, response::refused(response, policy.error_body).await)),
            }
        }
        let detail = format!("more than {MAX_HOPS}, the last one to {}", place(&request.url));
        Err(made(is_made, fault("too many redirects", detail).into()))
    }

    /// Sends a request; waits if there is no descriptor for its connection.
    async fn send(&self, request: &HttpRequest, progress: &HttpProgress) -> Result<Response, RawFault> {
        let mut patience = Patience::default();
        loop {
            let client = self.client(progress.dials_for_ms)?;
            progress.is_sent.store(true, Ordering::Relaxed);
            progress.server.get_or_init(|| server(&request.url));
            match client.execute(request.to_wire()).await {
                Err(error) if error.is_connect() && descriptors::none_left(&error) => {
                    progress.is_sent.store(false, Ordering::Relaxed);
                    patience.wait().await;
                }
                sent => return sent.map_err(|error| network(error, &server(&request.url))),
            }
        }
    }

    /// Makes the client of a call. If that fails, the call says why.
    async fn prepare(&self, progress: &HttpProgress) {
        if self.clients().is_empty() {
            // The client is kept: one that could not read the certificates would never have any.
            descriptors::available().await;
        }
        let _ = self.client(progress.dials_for_ms);
    }

    /// The client that dials for so long, or, once there are many, a little shorter.
    fn client(&self, dials_for_ms: u64) -> Result<Client, ToolFault> {
        let mut clients = self.clients();
        let known = match clients.get(&dials_for_ms) {
            None if clients.len() >= MAX_CLIENTS => clients.range(..dials_for_ms).next_back().map(|(_, client)| client),
            known => known,
        };
        if let Some(client) = known.or_else(|| clients.values().next().filter(|_| clients.len() >= MAX_CLIENTS)) {
            return Ok(client.clone());
        }
        let client = self.egress.client(IDLE, Duration::from_millis(dials_for_ms));
        let client = client.map_err(|error| fault("http not available", error))?;
        clients.insert(dials_for_ms, client.clone());
        Ok(client)
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a server refused who asks.
fn is_unauthorized(fault: &RawFault) -> bool {
    fault.transient.is_some_and(|failure| failure.status == Some(401))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Changes the request to the redirect's target, when that has the same origin.
fn redirect(
    request: &mut HttpRequest,
    status: StatusCode,
    location: &str,
    policy: AnswerPolicy<'_>,
) -> Result<(), ToolFault> {
    let target = request
        .url
        .join(location)
        .map_err(|error| fault("redirected to an address that is not valid", error.to_string()))?;
    if origin(&target) != origin(&request.url) || !target.username().is_empty() || target.password().is_some() {
        return Err(fault(
            format!("redirected to {}, not followed", place(&target)),
            format!("http {}: only redirects to the same scheme, host and port are followed", status.as_u16()),
        ));
    }
    let becomes_get = match status.as_u16() {
        303 => request.method != Method::HEAD,
        301 | 302 => request.method == Method::POST,
        _ => false,
    };
    if becomes_get && policy.is_notice {
        return Err(fault(
            format!("redirected to {}, not followed", place(&target)),
            format!("http {}: nothing would be sent there; give the address that it leads to", status.as_u16()),
        ));
    }
    if becomes_get {
        request.method = Method::GET;
        request.body = None;
        request.headers.remove(CONTENT_TYPE);
    }
    request.url = target;
    Ok(())
}

fn origin(url: &Url) -> (&str, Option<&str>, Option<u16>) {
    (url.scheme(), url.host_str(), url.port_or_known_default())
}

/// Scheme, host and port: the only parts of a server's redirect target that are shown.
fn place(url: &Url) -> String {
    let host: String = url.host_str().unwrap_or("nowhere").chars().take(100).collect();
    match url.port() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    }
}

pub(super) fn egress_fault(error: &EgressFault) -> RawFault {
    match error {
        EgressFault::NotAllowed(why) => fault("address not allowed", why).into(),
        EgressFault::NotFound(why) => transient(fault("name not found", why)),
    }
}

/// A failure without an answer, after which the same request may succeed.
fn transient(fault: ToolFault) -> RawFault {
    RawFault { transient: Some(Transient::default()), ..RawFault::from(fault) }
}

/// The server of an address, as messages name it: `api.example.com:443`.
pub(super) fn server(url: &Url) -> String {
    let host: String = url.host_str().unwrap_or("nowhere").chars().take(100).collect();
    url.port_or_known_default().map_or_else(|| host.clone(), |port| format!("{host}:{port}"))
}

/// The class of a network error, and the chain of its causes for the operator. Of the URL only the server is named: its
/// query may contain a secret.
pub(super) fn network(error: http_client::Error, server: &str) -> RawFault {
    let error = error.without_url();
    let mut detail = error.to_string();
    let mut class = None;
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(egress) = error.downcast_ref::<EgressFault>() {
            return egress_fault(egress);
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            class = io_class(error.kind()).or(class);
        }
        if is_tls_fault(error) {
            class = Some("tls failed");
        }
        detail.push_str(": ");
        detail.push_str(&error.to_string());
        cause = error.source();
    }
    let class = class.unwrap_or(if error.is_builder() {
        "request not valid"
    } else if error.is_connect() && error.is_timeout() {
        "connection timed out"
    } else if error.is_connect() {
        "connection failed"
    } else if error.is_body() || error.is_decode() {
        "response cut off"
    } else {
        "no valid http answer"
    });
    // Another attempt does not change a certificate, or what a client refuses to send.
    let stays = matches!(class, "tls failed" | "request not valid");
    let class = match class {
        "connection refused" | "connection reset" => format!("{class} by {server}"),
        "connection failed" | "connection timed out" | "host not reachable" => format!("{class}: {server}"),
        class => {
            detail = format!("{server}: {detail}");
            class.to_owned()
        }
    };
    let fault = fault(class, detail);
    let is_uncertain = !error.is_connect() && !error.is_builder();
    RawFault { is_uncertain, ..if stays { RawFault::from(fault) } else { transient(fault) } }
}

fn io_class(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::ConnectionRefused => Some("connection refused"),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            Some("connection reset")
        }
        io::ErrorKind::UnexpectedEof => Some("response cut off"),
        io::ErrorKind::TimedOut => Some("connection timed out"),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some("host not reachable"),
        _ => None,
    }
}
