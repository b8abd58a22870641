//! The connection to a model's server: one pool for all models, limits on what is read, and no
//! credentials to anyone but the declared host.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::Method;
use ::http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use bytes::{Bytes, BytesMut};
use url::Url;

use super::STALL;
use super::credentials::{Credentials, SentHeaders};
use super::failure::{AttemptFailure, Peer};
use super::first_contact::FirstContact;
use super::reply_progress::StreamState;
use super::sse::{self, PieceSource, read_events};
use crate::drive::http_client::{Client, Request, Response, of_models};
use crate::drive::{clock, descriptors, retry};
use loopctl_engine::event::ModelFaultCode;

/// The most bytes of an answer.
pub(super) const MAX_ANSWER: usize = 64 << 20;
/// The most bytes that are read of an answer that is an error.
const MAX_ERROR: usize = 64 << 10;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the end of a stream is waited for after its last event, to keep the connection.
const LAST_BYTES: Duration = Duration::from_millis(100);

/// The clients, made when they are first needed: a scripted run pays for none, and a server that is
/// spoken to in plain HTTP does not pay for reading the machine's certificates.
#[derive(Default)]
pub(super) struct HttpClients {
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

impl HttpClients {
    /// Whether there is a client already.
    fn is_made(&self, secure: bool) -> bool {
        if secure { &self.secure } else { &self.plain }.get().is_some()
    }

    pub(super) fn client(&self, secure: bool) -> Result<&Client, String> {
        let cell = if secure { &self.secure } else { &self.plain };
        cell.get_or_init(|| of_models(secure, CONNECT).map_err(|error| format!("no HTTP client can be made: {error}")))
            .as_ref()
            .map_err(Clone::clone)
    }
}

/// The headers of every request, beside the credentials.
pub(super) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("loopctl/", env!("CARGO_PKG_VERSION"))));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

/// Where a model is asked.
pub(super) struct Endpoint {
    /// The address, whole.
    pub(super) url: Url,
    /// Where it is asked for a stream, when that is another address.
    pub(super) stream_url: Option<Url>,
    /// What makes the headers, with the key.
    pub(super) credentials: Credentials,
    /// The server as it is named in messages.
    pub(super) peer: Peer,
    /// The connections.
    pub(super) http: Arc<HttpClients>,
    /// Whether a server was reached.
    pub(super) first_contact: Arc<FirstContact>,
}

impl Endpoint {
    /// Sends a request and waits for the head of a success.
    pub(super) async fn post(
        &self,
        body: Bytes,
        streams: bool,
        stall: Option<Duration>,
    ) -> Result<Response, AttemptFailure> {
        let url = self.stream_url.as_ref().filter(|_| streams).unwrap_or(&self.url);
        let secure = self.url.scheme() == "https";
        if !self.http.is_made(secure) {
            // It is kept: one that could not read the certificates would never know any.
            Box::pin(descriptors::available()).await;
        }
        let client = self
            .http
            .client(secure)
            .map_err(|message| AttemptFailure::lasting(ModelFaultCode::ModelUnreachable, message))?;
        let sent = self.credentials.headers(url, &body).await.map_err(|why| self.unread_key(&why))?;
        let answer = self.within(stall, client.execute(request(url, &sent, &body))).await?;
        let mut response = answer.map_err(|error| self.peer.connection(&error))?;
        if !response.status().is_success() {
            // What is rare has its place on the heap: every run that waits holds the common path only.
            let failure = Box::pin(self.refusal(response, &sent)).await;
            if !failure.wants_a_key() {
                return Err(failure);
            }
            self.renew(&sent, failure).await?;
            let sent = self.credentials.headers(url, &body).await.map_err(|why| self.unread_key(&why))?;
            let answer = self.within(stall, client.execute(request(url, &sent, &body))).await?;
            response = answer.map_err(|error| self.peer.connection(&error))?;
            if !response.status().is_success() {
                return Err(Box::pin(self.refusal(response, &sent)).await);
            }
        }
        match response.headers().get(CONTENT_ENCODING) {
            Some(encoding) if encoding != "identity" => {
                let encoding = self.peer.clean(&String::from_utf8_lossy(encoding.as_bytes()));
                Err(AttemptFailure::protocol(format!(
                    "{} sent an answer in the encoding {encoding}, which was not asked for",
                    self.peer.name
                )))
            }
            _ => Ok(response),
        }
    }

    /// Reads the key again that was refused.
    ///
    /// # Errors
    /// The refusal, when there is no other key.
    async fn renew(&self, sent: &SentHeaders, failure: AttemptFailure) -> Result<(), AttemptFailure> {
        match Box::pin(self.credentials.renewed(sent)).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(failure),
            Err(why) => {
                let message = format!("{}; no other key: {}", failure.message, self.peer.clean(&why));
                Err(AttemptFailure { message, ..failure })
            }
        }
    }

    fn unread_key(&self, why: &str) -> AttemptFailure {
        AttemptFailure::unread_key(self.peer.clean(why))
    }

    async fn refusal(&self, mut response: Response, sent: &SentHeaders) -> AttemptFailure {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let after = retry::asked(status, header, clock::wall_ms());
        let mut body = BytesMut::new();
        // What can't be read of an error's text is not missed.
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() > MAX_ERROR {
                break;
            }
        }
        match sent.without_signature(&body) {
            Some(text) => self.peer.status(status, after, text.as_bytes()),
            None => self.peer.status(status, after, &body),
        }
    }

    /// Reads the rest of a whole answer that begins so, at most [`MAX_ANSWER`] bytes of it.
    pub(super) async fn body(
        &self,
        begun: Bytes,
        response: &mut Response,
        stall: Option<Duration>,
    ) -> Result<Bytes, AttemptFailure> {
        let declared = response.content_length().unwrap_or(0);
        if usize::try_from(declared).map_or(true, |length| length > MAX_ANSWER) {
            return Err(self.too_large());
        }
        let mut body = begun;
        while let Some(piece) = self.piece(response, stall).await? {
            if body.len() + piece.len() > MAX_ANSWER {
                return Err(self.too_large());
            }
            // Most answers are one piece, which is not copied.
            body = if body.is_empty() {
                piece
            } else {
                let mut grown = BytesMut::from(body);
                grown.extend_from_slice(&piece);
                grown.freeze()
            };
        }
        Ok(body)
    }

    /// Reads the beginning of an answer, until it is known whether it is a stream of events, whatever its label says.
    /// Returns whether it is one, and what was read.
    pub(super) async fn begin(
        &self,
        response: &mut Response,
        stall: Option<Duration>,
    ) -> Result<(bool, Bytes), AttemptFailure> {
        let labelled = is_event_stream(response);
        let mut begun = Bytes::new();
        loop {
            if let Some(is_stream) = sse::is_stream(&begun, labelled) {
                return Ok((is_stream, begun));
            }
            let piece = self.piece(response, stall).await;
            let piece = if begun.is_empty() { piece.map_err(AttemptFailure::before_the_first_byte)? } else { piece? };
            let Some(piece) = piece else { return Ok((labelled, begun)) };
            begun = if begun.is_empty() { piece } else { [begun, piece].concat().into() };
        }
    }

    /// Reads a stream of events that begins so, until `event` says that it is over, or it ends.
    pub(super) async fn events(
        &self,
        begun: Bytes,
        response: Response,
        stall: Option<Duration>,
        event: impl FnMut(&[u8]) -> Result<StreamState, AttemptFailure>,
    ) -> Result<(), AttemptFailure> {
        let mut source = ResponsePieces { endpoint: self, begun: Some(begun), response, stall, read: 0 };
        if read_events(&mut source, event).await? {
            // Only a body that was read to its end leaves a connection that can be used again.
            let _ = tokio::time::timeout(LAST_BYTES, source.response.chunk()).await;
        }
        Ok(())
    }

    async fn piece(&self, response: &mut Response, stall: Option<Duration>) -> Result<Option<Bytes>, AttemptFailure> {
        self.within(stall, response.chunk()).await?.map_err(|error| self.peer.connection(&error))
    }

    /// Waits for the server, as long as it may send nothing.
    async fn within<T>(&self, stall: Option<Duration>, work: impl Future<Output = T>) -> Result<T, AttemptFailure> {
        let Some(stall) = stall else { return Ok(work.await) };
        tokio::time::timeout(stall, work).await.map_err(|_| {
            let message = format!("timed out: {} sent nothing for {} ms", self.peer.name, stall.as_millis());
            AttemptFailure::unreachable(message)
        })
    }

    fn too_large(&self) -> AttemptFailure {
        AttemptFailure::protocol(format!("the answer of {} is larger than {} MiB", self.peer.name, MAX_ANSWER >> 20))
    }
}

fn request(url: &Url, sent: &SentHeaders, body: &Bytes) -> Request {
    let mut request = Request::new(Method::POST, url.clone());
    request.headers_mut().clone_from(&sent.headers);
    *request.body_mut() = Some(body.clone().into());
    request
}

/// The pieces of a streamed answer.
struct ResponsePieces<'a> {
    endpoint: &'a Endpoint,
    /// What was read already.
    begun: Option<Bytes>,
    response: Response,
    stall: Option<Duration>,
    read: usize,
}

impl PieceSource for ResponsePieces<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>, AttemptFailure> {
        let piece = match self.begun.take().filter(|begun| !begun.is_empty()) {
            Some(begun) => Some(begun),
            None => {
                let has_begun = self.read > 0;
                let stall = self.stall.or(has_begun.then_some(STALL));
                let piece = self.endpoint.piece(&mut self.response, stall).await;
                if has_begun { piece? } else { piece.map_err(AttemptFailure::before_the_first_byte)? }
            }
        };
        self.read = self.read.saturating_add(piece.as_ref().map_or(0, Bytes::len));
        if self.read > MAX_ANSWER { Err(self.endpoint.too_large()) } else { Ok(piece) }
    }
}

/// Whether an answer is labelled as a stream of events.
pub(super) fn is_event_stream(response: &Response) -> bool {
    content_type(response).is_some_and(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
    })
}

/// An answer's declared type.
pub(super) fn content_type(response: &Response) -> Option<&str> {
    response.headers().get(CONTENT_TYPE)?.to_str().ok()
}
