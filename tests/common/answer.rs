//! The answers of a test's server.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How a body is sent.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// With its length, then the connection is kept.
    Sized(Vec<u8>),
    /// With a length that is longer than the body; then the connection is closed.
    Cut(Vec<u8>, usize),
    /// In chunks, one write for each piece.
    Chunked(Vec<Vec<u8>>),
    /// In chunks without the last one; then the connection is closed.
    ChunkedCut(Vec<Vec<u8>>),
    /// In chunks without the last one; then nothing comes, and the connection stays open.
    ChunkedStall(Vec<Vec<u8>>),
    /// This piece again and again, in chunks, until the other side closes.
    Endless(Vec<u8>),
    /// No answer: the connection is reset before the request's body is read.
    Reset,
    /// No answer: the connection is closed after the request was read.
    Closed,
    /// These bytes instead of an answer; then the connection is closed.
    Raw(Vec<u8>),
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
    pub(super) gate: Option<Gate>,
    /// The gates before pieces of the body, by their number from 0.
    pub(super) gates: Vec<(usize, Gate)>,
    pub(super) pause: Option<Duration>,
    pub(super) close: bool,
}

impl Answer {
    fn of(kind: &str, body: Body) -> Self {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Self { status: 200, headers, body, gate: None, gates: Vec::new(), pause: None, close: false }
    }

    /// A body of this type.
    pub fn new(kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::of(kind, Body::Sized(body.into()))
    }

    /// JSON, written unchanged.
    pub fn json(body: &(impl ToString + ?Sized)) -> Self {
        Self::new("application/json", body.to_string())
    }

    /// A reply of OpenAI's chat completions, with a usage of 10 and 5 tokens.
    pub fn openai(text: &str) -> Self {
        Self::json(&serde_json::json!({
            "id": "chatcmpl-1", "object": "chat.completion", "model": "test",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }))
    }

    /// A reply of Anthropic's messages, with a usage of 10 and 5 tokens.
    pub fn anthropic(text: &str) -> Self {
        Self::json(&serde_json::json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "test",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }))
    }

    /// A stream of events, one write for each; each text is the data of one.
    pub fn events<T: AsRef<str>>(data: impl IntoIterator<Item = T>) -> Self {
        let pieces = data.into_iter().map(|data| format!("data: {}\n\n", data.as_ref()).into_bytes()).collect();
        Self::of("text/event-stream", Body::Chunked(pieces))
    }

    /// A body in these chunks.
    pub fn chunked(kind: &str, pieces: Vec<Vec<u8>>) -> Self {
        Self::of(kind, Body::Chunked(pieces))
    }

    /// The same answer, cut off before its end.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.body = match self.body {
            Body::Sized(body) => {
                let whole = body.len();
                Body::Cut(body.into_iter().take(whole / 2).collect(), whole)
            }
            Body::Chunked(pieces) => Body::ChunkedCut(pieces),
            other => other,
        };
        self
    }

    /// The same pieces, and then silence.
    #[must_use]
    pub fn stalling(mut self) -> Self {
        self.body = match self.body {
            Body::Sized(body) => Body::ChunkedStall(vec![body]),
            Body::Chunked(pieces) => Body::ChunkedStall(pieces),
            other => other,
        };
        self
    }

    /// Declares a length that is longer than the body by so many bytes.
    #[must_use]
    pub fn longer_by(mut self, bytes: usize) -> Self {
        if let Body::Sized(body) = self.body {
            let whole = body.len() + bytes;
            self.body = Body::Cut(body, whole);
        }
        self
    }

    /// A body that never ends: the piece again and again.
    pub fn endless(kind: &str, piece: impl Into<Vec<u8>>) -> Self {
        Self::of(kind, Body::Endless(piece.into()))
    }

    /// The connection is reset before the request was read.
    pub fn reset() -> Self {
        Self::of("", Body::Reset)
    }

    /// The connection is closed without an answer.
    pub fn closed() -> Self {
        Self::of("", Body::Closed)
    }

    /// Bytes instead of an answer; the connection is closed after them.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of("", Body::Raw(bytes.into()))
    }

    /// Sets the status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sets a header, replacing one with the same name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Delays the answer until the gate is opened.
    #[must_use]
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Waits before this piece of the body, from 0, until the gate is opened.
    #[must_use]
    pub fn held_at(mut self, piece: usize, gate: &Gate) -> Self {
        self.gates.push((piece, gate.clone()));
        self
    }

    /// Waits before each piece of the body.
    #[must_use]
    pub fn slow(mut self, pause: Duration) -> Self {
        self.pause = Some(pause);
        self
    }

    /// Closes the connection after the answer.
    #[must_use]
    pub fn close(mut self) -> Self {
        self.close = true;
        self
    }
}

/// A gate that a test opens.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Opens it permanently.
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(super) fn wait(&self) {
        let guard = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(guard, |open| !*open).unwrap());
    }
}
