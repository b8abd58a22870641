//! A server at an address: each message is a request of HTTP, whose answer is JSON or a stream of events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
    WWW_AUTHENTICATE,
};
use ::http::{Method, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use url::Url;

use super::answer_bytes::bytes;
use super::fault::{McpFault, Unanswered};
use super::frame::{self, Incoming, MAX_MESSAGE, RpcError};
use super::leaving::{LeavingServer, TIME_TO_END};
use super::oauth::challenge::BearerChallenge;
use super::oauth::{AccessTokens, TokenReach, TokenSource};
use super::progress::{PROGRESS, ProgressBoard};
use crate::drive::egress::Egress;
use crate::drive::future::BoxFuture;
use crate::drive::http_client::{Client, Request, Response};
use crate::drive::model::sse::SseDecoder;
use crate::drive::secret::{HeldSecret, Vault};
use crate::drive::tool::http::{egress_fault, is_lost, network, server};
use crate::drive::tool::output::fault;
use crate::drive::tool::runner::RawFault;
use loopctl_lang::language::mcp::{McpProtocol, McpServer};
use loopctl_lang::program::mcp::sent_texts;
use loopctl_lang::program::template::Template;

/// The most bytes of a stream of events: notifications come before the answer.
pub(super) const MAX_STREAM: usize = 16 << 20;
/// The most bytes of an answer that says what is wrong with a request.
const MAX_REFUSAL: usize = 64 << 10;
/// How long a connection may take, and how many are kept.
const DIAL: Duration = Duration::from_secs(10);
const IDLE: usize = 8;
/// How often a stream that ended before its answer is taken up again, and after how many milliseconds.
const MAX_RESUMPTIONS: usize = 5;
const FIRST_RETRY_MS: u64 = 1_000;
const MAX_RETRY_MS: u64 = 10_000;
/// The most bytes of a mark of a stream.
const MAX_MARK: usize = 512;
/// The greatest id of a first request. Ids begin anywhere, because a call that asked a human may be made again by another
/// process, and must then have another id.
const LAST_FIRST_ID: u64 = 1 << 48;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// A server that is spoken to over HTTP.
pub(super) struct HttpPeer {
    client: Client,
    egress: Egress,
    url: Url,
    headers: Vec<(HeaderName, Template)>,
    keys: Vec<String>,
    vault: Arc<Vault>,
    /// Where its access tokens come from, if it is sent some.
    tokens: Option<TokenSource>,
    /// The headers that were sent last: the end of a session is sent with them.
    last_headers: Mutex<HeaderMap>,
    /// The revision that each request names; none before it is known.
    protocol: Mutex<Option<McpProtocol>>,
    /// The session that an older server keeps for us.
    session: Mutex<Option<String>>,
    /// Whether it does not know that session any more.
    is_gone: AtomicBool,
    next: AtomicU64,
    has_changed: AtomicBool,
    /// Who waits for reports of how far a call is.
    progress: Arc<ProgressBoard>,
}

/// What a request says in its headers beside its body.
#[derive(Debug, Default)]
pub(super) struct MirroredHeaders {
    /// The tool that is called.
    pub name: Option<String>,
    /// Members of its input.
    pub members: Vec<(String, Value)>,
}

/// An answer that came.
enum HttpAnswer {
    /// To our request.
    Message(Result<Value, McpFault>),
    /// A notification was taken.
    Nothing,
}

impl HttpPeer {
    /// Speaks to the server of these settings.
    ///
    /// # Errors
    /// When its address or a header can't be used.
    pub(super) fn new(
        server: &McpServer,
        egress: &Egress,
        vault: &Arc<Vault>,
        tokens: &AccessTokens,
    ) -> Result<Self, McpFault> {
        let not_started = |why: String| McpFault::NotStarted(why);
        let url = server.url.as_deref().unwrap_or_default();
        let url = Url::parse(url).map_err(|error| not_started(format!("its address is not valid: {error}")))?;
        let client = egress.client(IDLE, DIAL).map_err(not_started)?;
        let texts = sent_texts(&server.headers).map_err(not_started)?;
        let keys = texts.iter().flat_map(|(_, text)| text.secrets().to_vec()).collect();
        let named = |(name, text): (String, Template)| {
            let bytes = HeaderName::from_bytes(name.as_bytes());
            bytes.map(|name| (name, text)).map_err(|_| not_started(format!("`{}` is no header", name.escape_default())))
        };
        let reach = TokenReach { tokens, http: &client, egress, vault };
        let tokens = TokenSource::of(server, &url, &reach).map_err(not_started)?;
        Ok(Self {
            client,
            tokens,
            last_headers: Mutex::default(),
            egress: egress.clone(),
            url,
            headers: texts.into_iter().map(named).collect::<Result<_, _>>()?,
            keys,
            vault: Arc::clone(vault),
            protocol: Mutex::default(),
            session: Mutex::default(),
            is_gone: AtomicBool::new(false),
            next: AtomicU64::new(fastrand::u64(1..=LAST_FIRST_ID)),
            has_changed: AtomicBool::new(false),
            progress: Arc::default(),
        })
    }

    /// From now on each request names this revision.
    pub(super) fn speaks(&self, protocol: McpProtocol) {
        *self.protocol.lock().unwrap_or_else(PoisonError::into_inner) = Some(protocol);
    }

    /// Who waits for its reports.
    pub(super) fn progress(&self) -> &Arc<ProgressBoard> {
        &self.progress
    }

    /// Whether it said that its tools are other ones now; it is asked once.
    pub(super) fn take_change(&self) -> bool {
        self.has_changed.swap(false, Ordering::Relaxed)
    }

    /// Whether it knows nothing of our session any more: a new one is to be made.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::SeqCst)
    }

    /// Sends a request and waits for its answer. Dropping this future closes the connection, by which a server of the newest
    /// revision knows that nobody waits any more; an older one hears it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: &Value,
        mirrored: &MirroredHeaders,
        sent: &AtomicBool,
    ) -> Result<Value, Unanswered> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut is_first = true;
        loop {
            let token = self.token().await.map_err(Unanswered::from)?;
            let mut headers = self.header_map(token.as_ref()).await.map_err(Unanswered::from)?;
            let held = self.vault.hold(&self.keys);
            if self.is_gone() {
                return Err(Unanswered::unsent(McpFault::SessionGone));
            }
            if self.is_modern() {
                mirror(&mut headers, method, mirrored);
            }
            // The beginning of a session is not taken back.
            let hears_of_end = !self.is_modern() && method != "initialize";
            let mut open = OpenPost { peer: self, headers: hears_of_end.then(|| headers.clone()), id, sent };
            let posted = self.post(headers, frame::request(id, method, params), Some(id), sent).await;
            open.headers = None;
            return match posted {
                // The secret, or the token, may have changed since it was read; what was refused has not happened.
                Err(unanswered) => {
                    if std::mem::take(&mut is_first) && self.is_renewed(&unanswered.why, &held, token.as_ref()).await? {
                        continue;
                    }
                    Err(unanswered)
                }
                Ok(HttpAnswer::Message(outcome)) => outcome.map_err(Unanswered::after_answer),
                Ok(HttpAnswer::Nothing) => {
                    Err(Unanswered { why: McpFault::Malformed("it has no content".to_owned()), was_sent: true })
                }
            };
        }
    }

    /// Sends a notification, or what a request of the server is answered with.
    pub(super) fn send<'a>(&'a self, message: Vec<u8>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Ok(headers) = self.all_headers().await {
                let sent = AtomicBool::new(false);
                let _ = self.post(headers, message, None, &sent).await;
            }
        })
    }

    fn is_modern(&self) -> bool {
        self.protocol.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(McpProtocol::is_modern)
    }

    fn session_id(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The access token of a request; none for a server that is sent none.
    async fn token(&self) -> Result<Option<SecretString>, RawFault> {
        match &self.tokens {
            Some(tokens) => tokens.token().await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether what a request was refused for is another one now.
    async fn is_renewed(
        &self,
        why: &McpFault,
        held: &[HeldSecret],
        token: Option<&SecretString>,
    ) -> Result<bool, Unanswered> {
        let McpFault::NotAuthorised { status, wants, .. } = why else { return Ok(false) };
        if let (Some(tokens), Some(token)) = (&self.tokens, token) {
            return tokens.renew(token, *status, wants).await.map_err(Unanswered::from);
        }
        Ok(*status == 401 && self.vault.renewed(held).await.unwrap_or(false))
    }

    /// The headers of a request, with its access token.
    async fn all_headers(&self) -> Result<HeaderMap, RawFault> {
        let token = self.token().await?;
        self.header_map(token.as_ref()).await
    }

    /// The headers of a request. Secrets are read again: they may have changed.
    async fn header_map(&self, token: Option<&SecretString>) -> Result<HeaderMap, RawFault> {
        self.vault.freshen(&self.keys).await.map_err(|why| fault("secret not available", why))?;
        let mut headers = HeaderMap::new();
        for (name, text) in &self.headers {
            let text = text.render(&super::no_values(&*self.vault));
            let text = text.map_err(|why| fault("a value is missing or can't be used", why.why))?;
            let value = HeaderValue::from_str(&text);
            let value = value.map_err(|_| fault("header not allowed", format!("the value of `{name}`")))?;
            headers.insert(name.clone(), sensitive(value));
        }
        if let Some(token) = token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
            let value = value.map_err(|_| fault("header not allowed", "the access token"))?;
            headers.insert(AUTHORIZATION, sensitive(value));
        }
        *self.last_headers.lock().unwrap_or_else(PoisonError::into_inner) = headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(protocol) = *self.protocol.lock().unwrap_or_else(PoisonError::into_inner) {
            headers.insert("mcp-protocol-version", HeaderValue::from_static(protocol.word()));
        }
        if let Some(Ok(session)) = self.session_id().map(|id| HeaderValue::from_str(&id)) {
            headers.insert(SESSION, sensitive(session));
        }
        Ok(headers)
    }

    async fn post(
        &self,
        headers: HeaderMap,
        body: Vec<u8>,
        id: Option<u64>,
        sent: &AtomicBool,
    ) -> Result<HttpAnswer, Unanswered> {
        self.egress.check(&self.url).map_err(|error| Unanswered::from(egress_fault(&error)))?;
        let had_session = headers.contains_key(SESSION);
        let mut request = Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = headers;
        *request.body_mut() = Some(body.into());
        sent.store(true, Ordering::SeqCst);
        let response = match self.client.execute(request).await {
            Ok(response) => response,
            Err(error) => {
                let raw = network(error, &server(&self.url));
                sent.store(raw.is_uncertain, Ordering::SeqCst);
                return Err(raw.into());
            }
        };
        let status = response.status();
        if status == StatusCode::NOT_FOUND && had_session {
            self.is_gone.store(true, Ordering::SeqCst);
            return Err(Unanswered::unsent(McpFault::SessionGone));
        }
        // The newest revision has no sessions, whatever a server says.
        if !self.is_modern()
            && let Some(session) = response.headers().get(SESSION).and_then(|id| id.to_str().ok())
        {
            let mut held = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            held.get_or_insert_with(|| session.to_owned());
        }
        match id {
            _ if !status.is_success() => {
                let refused = refused(response, id, &self.url, had_session).await;
                if matches!(refused, Err(Unanswered { why: McpFault::SessionGone, .. })) {
                    self.is_gone.store(true, Ordering::SeqCst);
                }
                refused
            }
            None => Ok(HttpAnswer::Nothing),
            Some(id) if is_stream(&response) => self.stream(response, id).await.map(HttpAnswer::Message),
            Some(id) => whole(response, id).await.map(HttpAnswer::Message),
        }
    }

    /// Reads a stream of events until the answer. A stream of an older server that ended before it is taken up again, where the
    /// server has given its place a name.
    async fn stream(&self, mut response: Response, id: u64) -> Result<Result<Value, McpFault>, Unanswered> {
        let mut reading = StreamReading::default();
        for _ in 0..=MAX_RESUMPTIONS {
            if let Some(outcome) = self.until_answer(&mut response, id, &mut reading).await? {
                return Ok(outcome);
            }
            let Some(next) = self.resumed(&mut reading).await else { break };
            response = next;
        }
        Err(Unanswered { why: McpFault::Ended("the stream ended before the answer".to_owned()), was_sent: true })
    }

    /// Reads a stream to its end or to the answer.
    async fn until_answer(
        &self,
        response: &mut Response,
        id: u64,
        reading: &mut StreamReading,
    ) -> Result<Option<Result<Value, McpFault>>, Unanswered> {
        let lost = |why| Unanswered { why, was_sent: true };
        loop {
            // A stream that breaks off ends as one that is closed.
            let chunk = response.chunk().await.unwrap_or_default();
            reading.read = reading.read.saturating_add(chunk.as_ref().map_or(0, bytes::Bytes::len));
            if reading.read > MAX_STREAM {
                return Err(lost(McpFault::TooMuchBefore));
            }
            let (mut answer, mut replies, mut is_large) = (None, Vec::new(), false);
            let mut take = |data: &[u8]| {
                is_large |= data.len() > MAX_MESSAGE;
                match frame::read(data) {
                    Some(Incoming::Answer { id: of, outcome }) if of == id => {
                        answer = Some(outcome.map_err(McpFault::Refused));
                    }
                    Some(Incoming::Unreadable { id: of, why }) if of == id => {
                        answer = Some(Err(McpFault::Malformed(why)));
                    }
                    Some(Incoming::Request { reply }) => replies.push(reply),
                    Some(Incoming::Notification { method, params }) if method == PROGRESS => self.progress.take(params),
                    Some(Incoming::Notification { method, .. }) if method == "notifications/tools/list_changed" => {
                        self.has_changed.store(true, Ordering::Relaxed);
                    }
                    Some(Incoming::Noise(first)) => tracing::warn!("an MCP server sends what is no message: {first}"),
                    _ => {}
                }
                Ok::<(), ()>(())
            };
            let taken = match &chunk {
                Some(chunk) => reading.decoder.push(chunk, &mut take),
                None => std::mem::take(&mut reading.decoder).finish(&mut take),
            };
            if is_large || taken.is_err() {
                return Err(lost(McpFault::TooLarge));
            }
            if let Some(outcome) = answer {
                return Ok(Some(outcome));
            }
            for reply in replies {
                self.send(frame::written(&reply)).await;
            }
            match chunk {
                Some(chunk) => reading.marks.push(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// Takes up a stream where it ended; none where that can't be done.
    async fn resumed(&self, reading: &mut StreamReading) -> Option<Response> {
        let last = reading.marks.last_id.clone().filter(|_| !self.is_modern())?;
        tokio::time::sleep(Duration::from_millis(reading.marks.retry_ms.unwrap_or(FIRST_RETRY_MS).min(MAX_RETRY_MS)))
            .await;
        let mut headers = self.all_headers().await.ok()?;
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert("last-event-id", HeaderValue::from_str(&last).ok()?);
        self.egress.check(&self.url).ok()?;
        let mut request = Request::new(Method::GET, self.url.clone());
        *request.headers_mut() = headers;
        let response = self.client.execute(request).await.ok()?;
        (response.status().is_success() && is_stream(&response)).then_some(response)
    }
}

/// How far a stream was read.
#[derive(Default)]
struct StreamReading {
    decoder: SseDecoder,
    marks: EventMarks,
    read: usize,
}

/// What the events of a stream say of the stream itself.
#[derive(Default)]
struct EventMarks {
    line: Vec<u8>,
    /// The name of the last event.
    last_id: Option<String>,
    /// How long to wait before the stream is taken up again.
    retry_ms: Option<u64>,
}

impl EventMarks {
    /// Takes a piece. Of a long line only the beginning is kept: these marks are short.
    fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            match byte {
                b'\n' | b'\r' => self.end_line(),
                _ if self.line.len() < MAX_MARK => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let Ok(text) = std::str::from_utf8(&line) else { return };
        if let Some(id) = text.strip_prefix("id:") {
            self.last_id = Some(id.trim().to_owned()).filter(|id| !id.is_empty());
        } else if let Some(wait) = text.strip_prefix("retry:") {
            self.retry_ms = wait.trim().parse().ok().or(self.retry_ms);
        }
    }
}

impl Drop for HttpPeer {
    /// An older server keeps a session: it hears that it is over.
    fn drop(&mut self) {
        let (Some(session), Ok(runtime)) = (self.session_id(), tokio::runtime::Handle::try_current()) else { return };
        if self.is_gone() {
            return;
        }
        let Ok(session) = HeaderValue::from_str(&session) else { return };
        let mut request = Request::new(Method::DELETE, self.url.clone());
        *request.headers_mut() = std::mem::take(&mut *self.last_headers.lock().unwrap_or_else(PoisonError::into_inner));
        request.headers_mut().insert(SESSION, sensitive(session));
        let protocol = *self.protocol.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(protocol) = protocol {
            request.headers_mut().insert("mcp-protocol-version", HeaderValue::from_static(protocol.word()));
        }
        self.send_behind(&runtime, request);
    }
}

/// A request whose answer is waited for. When this is dropped before, an older server hears that nobody waits any more: the end of
/// a connection says nothing to it.
struct OpenPost<'a> {
    peer: &'a HttpPeer,
    /// The headers that the request was sent with; none once nobody has to hear anything.
    headers: Option<HeaderMap>,
    id: u64,
    sent: &'a AtomicBool,
}

impl Drop for OpenPost<'_> {
    fn drop(&mut self) {
        let Some(headers) = self.headers.take().filter(|_| self.sent.load(Ordering::SeqCst)) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut request = Request::new(Method::POST, self.peer.url.clone());
        *request.headers_mut() = headers;
        *request.body_mut() = Some(frame::cancellation(self.id).into());
        self.peer.send_behind(&runtime, request);
    }
}

impl HttpPeer {
    /// Sends a request whose answer nobody needs, to the address that was looked at before.
    fn send_behind(&self, runtime: &tokio::runtime::Handle, request: Request) {
        let (client, leaving) = (self.client.clone(), LeavingServer::new());
        runtime.spawn(async move {
            let _ = tokio::time::timeout(TIME_TO_END, client.execute(request)).await;
            drop(leaving);
        });
    }
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

/// An answer that is one message.
async fn whole(response: Response, id: u64) -> Result<Result<Value, McpFault>, Unanswered> {
    let lost = |why| Unanswered { why, was_sent: true };
    let (bytes, is_whole) = bytes(response, MAX_MESSAGE).await.map_err(|error| lost(McpFault::Ended(error)))?;
    if !is_whole {
        return Err(lost(McpFault::TooLarge));
    }
    match frame::read(&bytes) {
        Some(Incoming::Answer { id: of, outcome }) if of == id => Ok(outcome.map_err(McpFault::Refused)),
        other => Err(lost(McpFault::Malformed(match other {
            Some(Incoming::Noise(first)) => first,
            Some(Incoming::Unreadable { why, .. }) => why,
            _ => "it is not the answer to this request".to_owned(),
        }))),
    }
}

/// An answer with a status that is no success. It may hold an error of the protocol.
async fn refused(response: Response, id: Option<u64>, url: &Url, had_session: bool) -> Result<HttpAnswer, Unanswered> {
    let status = response.status().as_u16();
    let location = response.headers().get(LOCATION).and_then(|text| text.to_str().ok()).map(frame::quoted);
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|text| text.to_str().ok()).map(frame::quoted);
    let wants = BearerChallenge::of(response.headers());
    let (bytes, _) = bytes(response, MAX_REFUSAL).await.unwrap_or_default();
    let error = match frame::read(&bytes) {
        Some(Incoming::Answer { id: of, outcome: Err(error) }) if Some(of) == id => Some(error),
        _ => None,
    };
    if status == 400 && had_session && forgets_session(&bytes, error.as_deref()) {
        return Err(Unanswered::unsent(McpFault::SessionGone));
    }
    if let Some(error) = error {
        if status == 401 {
            let says = Some(challenge.unwrap_or_else(|| error.line()));
            return Err(Unanswered::known(McpFault::NotAuthorised { status, says, wants: Box::new(wants) }));
        }
        return Ok(HttpAnswer::Message(Err(McpFault::Refused(error))));
    }
    if matches!(status, 401 | 403) {
        return Err(Unanswered::known(McpFault::NotAuthorised { status, says: challenge, wants: Box::new(wants) }));
    }
    let detail = frame::quoted(&String::from_utf8_lossy(&bytes));
    let (class, detail) = match (status, location) {
        (300..400, Some(location)) => {
            (format!("http {status}: it sends elsewhere, which is not followed"), format!("it sends to {location}"))
        }
        (300..400, None) => (format!("http {status}: it sends elsewhere, which is not followed"), detail),
        // The servers of the first transport, with a stream of its own, refuse each POST so.
        (404 | 405, _) => {
            let why = format!("{} is not the address of a server with streamable HTTP; look at its path", server(url));
            (format!("http {status}"), if detail.is_empty() { why } else { format!("{why}: {detail}") })
        }
        _ => (format!("http {status}"), detail),
    };
    let raw = RawFault::from(fault(class, detail));
    Err(Unanswered::from(if status >= 500 || is_lost(status) { raw.sent() } else { raw }))
}

/// Whether a refusal says that a server knows nothing of our session: many say so with 400, and not with the 404 of the protocol. What
/// was refused so has not happened.
fn forgets_session(bytes: &[u8], error: Option<&RpcError>) -> bool {
    let said = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    // An error of the call itself has another code.
    error.is_none_or(|error| error.code == "-32000") && (said.contains("session") || said.contains("not initialized"))
}

/// Says in the headers what the body says, as newer servers want it.
fn mirror(headers: &mut HeaderMap, method: &str, mirrored: &MirroredHeaders) {
    if let Ok(value) = HeaderValue::from_str(method) {
        headers.insert("mcp-method", value);
    }
    if let Some(name) = &mirrored.name {
        headers.insert("mcp-name", encoded(name));
    }
    for (name, value) in &mirrored.members {
        let Ok(name) = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()) else { continue };
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        headers.insert(name, encoded(&text));
    }
}

/// A text as the value of a header: in base64 where it can't stand there as it is.
fn encoded(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let text = if is_plain { text.to_owned() } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(text)) };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The members of an input that are sent as headers too.
pub(super) fn mirrored(name: &str, headers: &[(Vec<String>, String)], input: &Value) -> MirroredHeaders {
    let member = |(path, header): &(Vec<String>, String)| {
        let value = path.iter().try_fold(input, |value, name| value.get(name))?;
        (!value.is_null()).then(|| (header.clone(), value.clone()))
    };
    let members: BTreeMap<String, Value> = headers.iter().filter_map(member).collect();
    MirroredHeaders { name: Some(name.to_owned()), members: members.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_says_where_it_was_and_when_it_is_taken_up() {
        let mut marks = EventMarks::default();
        marks.push(b"id: 7\nretry: 50");
        marks.push(b"0\r\ndata: {\"id\": 9}\n\n: id: 8\n");
        assert_eq!((marks.last_id.as_deref(), marks.retry_ms), (Some("7"), Some(500)));
        marks.push(b"id:\nretry: soon\n");
        assert_eq!((marks.last_id, marks.retry_ms), (None, Some(500)));
    }

    #[test]
    fn a_text_that_is_no_header_is_sent_in_base64() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(text), header);
        }
    }
}
