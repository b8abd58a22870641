//! A server that is a program: a message a line, over its standard streams.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};

use super::fault::{McpFault, Unanswered};
use super::frame::{self, Incoming, MAX_MESSAGE};
use super::leaving::{LeavingServer, TIME_AFTER_ASKED, TIME_TO_END};
use super::progress::{PROGRESS, ProgressBoard};
use crate::drive::tool::command::{ServerProcess, ServerStreams};

/// How many messages may wait to be written.
const QUEUED: usize = 64;
/// How long the rest of its output is read after its end.
const DRAIN: Duration = Duration::from_millis(500);
/// How many lines may be no messages: one that writes without end is no server.
const MAX_NOISE: usize = 10_000;
/// What is kept of its error output: lines, and bytes of each.
const STDERR_LINES: usize = 20;
const STDERR_LINE_BYTES: usize = 500;

/// A message is waiting, is being written, or was taken back before.
const WAITING: u8 = 0;
const WRITING: u8 = 1;
const TAKEN_BACK: u8 = 2;

/// A server that runs. It ends when this is dropped.
pub(super) struct StdioPeer {
    seen: Arc<SeenOfServer>,
    outgoing: mpsc::Sender<OutgoingLine>,
    closing: Option<oneshot::Sender<LeavingServer>>,
    next: AtomicU64,
}

/// A line to be written.
struct OutgoingLine {
    line: Vec<u8>,
    state: Arc<AtomicU8>,
}

/// What is known of a server that runs.
#[derive(Default)]
pub(super) struct SeenOfServer {
    /// Who waits for the answer to a request.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, McpFault>>>>,
    /// Why it answers no more.
    closed: Mutex<Option<McpFault>>,
    noise: Mutex<ServerNoise>,
    stderr: Mutex<ErrorOutput>,
    /// How many messages it sent.
    messages: AtomicU64,
    /// How many these were when a call was given up last.
    messages_when_late: Mutex<Option<u64>>,
    /// Whether it said that its list of tools is another one now.
    has_changed: AtomicBool,
    /// Who waits for reports of how far a call is.
    progress: Arc<ProgressBoard>,
}

/// What a server wrote that is no message: how many lines, the first and the last.
#[derive(Default)]
struct ServerNoise {
    lines: usize,
    first: String,
    last: String,
}

/// The last lines of the error output, and whether the last one is not at its end yet: a question waits there.
#[derive(Default)]
struct ErrorOutput {
    lines: VecDeque<String>,
    is_open: bool,
}

/// What a server had said when a call began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ServerMark {
    noise: usize,
    messages: u64,
    /// Whether it had been silent since another call was given up.
    is_silent: bool,
}

impl StdioPeer {
    /// Speaks to a server that was started.
    pub(super) fn new(process: ServerProcess, streams: ServerStreams) -> Self {
        let ServerStreams { stdin, stdout, stderr } = streams;
        let seen = Arc::new(SeenOfServer::default());
        let (outgoing, lines) = mpsc::channel(QUEUED);
        let (closing, closed) = oneshot::channel();
        tokio::spawn(write(stdin, lines, Arc::clone(&seen)));
        let reader = tokio::spawn(read(stdout, Arc::clone(&seen), outgoing.downgrade()));
        tokio::spawn(keep_errors(stderr, Arc::clone(&seen)));
        tokio::spawn(attend(process, reader, Arc::clone(&seen), closed));
        Self { seen, outgoing, closing: Some(closing), next: AtomicU64::new(1) }
    }

    /// Sends a request and waits for its answer. When this future is dropped, the server hears that nobody waits any more.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) async fn ask(&self, method: &str, params: &Value, sent: &AtomicBool) -> Result<Value, Unanswered> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let closed = self.seen.closed();
            if let Some(why) = closed.as_ref() {
                return Err(Unanswered::unsent(why.clone()));
            }
            self.seen.waiting().insert(id, answer);
        }
        let state = Arc::new(AtomicU8::new(WAITING));
        let is_cancelled = method != "initialize";
        let mut open =
            OpenRequest { peer: self, id, state: Arc::clone(&state), sent, is_cancelled, is_answered: false };
        let line = OutgoingLine { line: frame::request(id, method, params), state };
        if self.outgoing.send(line).await.is_err() {
            open.is_answered = true;
            return Err(Unanswered::unsent(self.seen.why()));
        }
        let outcome = answered.await.unwrap_or_else(|_| Err(self.seen.why()));
        open.is_answered = true;
        let is_known = matches!(outcome, Ok(_) | Err(McpFault::Refused(_)));
        let was_sent = !is_known && open.was_sent();
        outcome.map_err(|why| Unanswered { why, was_sent })
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, method: &str, params: &Value) {
        let state = Arc::new(AtomicU8::new(WAITING));
        // One that has ended needs none.
        let _ = self.outgoing.send(OutgoingLine { line: frame::notification(method, params), state }).await;
    }

    /// What is known of it, also after its end.
    pub(super) fn seen(&self) -> Arc<SeenOfServer> {
        Arc::clone(&self.seen)
    }

    /// What it has said up to now.
    pub(super) fn mark(&self) -> ServerMark {
        let messages = self.seen.messages.load(Ordering::SeqCst);
        let when_late = *self.seen.messages_when_late.lock().unwrap_or_else(PoisonError::into_inner);
        ServerMark { noise: self.seen.noise().lines, messages, is_silent: when_late == Some(messages) }
    }

    /// A call that began at a mark is given up. A server that has sent nothing since an earlier call was given up does not hear
    /// us: it is left. One that works on something answers in between.
    pub(super) fn is_late(&self, since: ServerMark) {
        let messages = self.seen.messages.load(Ordering::SeqCst);
        if since.is_silent && since.messages == messages {
            return self.seen.close(McpFault::Ended("it answered nothing since an earlier call".to_owned()));
        }
        *self.seen.messages_when_late.lock().unwrap_or_else(PoisonError::into_inner) = Some(messages);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line = frame::request(id, "ping", &Value::Object(serde_json::Map::new()));
        let _ = self.outgoing.try_send(OutgoingLine { line, state: Arc::new(AtomicU8::new(WAITING)) });
    }

    /// Whether it answers no more.
    pub(super) fn has_ended(&self) -> bool {
        self.seen.closed().is_some()
    }

    /// Who waits for its reports.
    pub(super) fn progress(&self) -> &Arc<ProgressBoard> {
        &self.seen.progress
    }

    /// Whether it said that its tools are other ones now; it is asked once.
    pub(super) fn take_change(&self) -> bool {
        self.seen.has_changed.swap(false, Ordering::Relaxed)
    }
}

impl Drop for StdioPeer {
    fn drop(&mut self) {
        // One that has ended already hears nothing.
        let _ = self.closing.take().map(|closing| closing.send(LeavingServer::new()));
    }
}

/// A request that is under way.
struct OpenRequest<'a> {
    peer: &'a StdioPeer,
    id: u64,
    state: Arc<AtomicU8>,
    /// Set when the request leaves us without an answer.
    sent: &'a AtomicBool,
    /// Whether the server hears when nobody waits any more: the beginning of a session is not taken back.
    is_cancelled: bool,
    is_answered: bool,
}

impl OpenRequest<'_> {
    /// Whether the writing of its line has started; a line that waits is taken back.
    fn was_sent(&self) -> bool {
        let taken_back = self.state.compare_exchange(WAITING, TAKEN_BACK, Ordering::SeqCst, Ordering::SeqCst);
        let was_sent = taken_back.is_err();
        self.sent.store(was_sent, Ordering::SeqCst);
        was_sent
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.peer.seen.waiting().remove(&self.id);
        if self.is_answered || !self.was_sent() || !self.is_cancelled {
            return;
        }
        let line = frame::cancellation(self.id);
        let _ = self.peer.outgoing.try_send(OutgoingLine { line, state: Arc::new(AtomicU8::new(WAITING)) });
    }
}

impl SeenOfServer {
    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Value, McpFault>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed(&self) -> MutexGuard<'_, Option<McpFault>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn why(&self) -> McpFault {
        self.closed().clone().unwrap_or_else(|| McpFault::Ended("its input was closed".to_owned()))
    }

    /// It answers no more: all who wait hear why. The first reason counts.
    fn close(&self, why: McpFault) {
        let why = self.closed().get_or_insert(why).clone();
        for (_, waiting) in self.waiting().drain() {
            let _ = waiting.send(Err(why.clone()));
        }
    }

    fn noise(&self) -> MutexGuard<'_, ServerNoise> {
        self.noise.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_noise(&self, line: String) {
        let lines = self.count_noise(line);
        if lines > MAX_NOISE {
            self.close(McpFault::Malformed(format!("it wrote more than {MAX_NOISE} lines that are no messages")));
        }
    }

    /// How many lines it wrote that are no messages.
    fn count_noise(&self, line: String) -> usize {
        let mut noise = self.noise();
        if noise.lines == 0 {
            tracing::warn!("an MCP server writes what is no message: {line}");
            noise.first.clone_from(&line);
        }
        noise.lines = noise.lines.saturating_add(1);
        noise.last = line;
        noise.lines
    }

    /// What it wrote since a mark that is no message.
    pub(super) fn noise_since(&self, mark: ServerMark) -> Option<String> {
        let noise = self.noise();
        let shown = if mark.noise == 0 { &noise.first } else { &noise.last };
        match noise.lines.saturating_sub(mark.noise) {
            0 => None,
            1 => Some(shown.clone()),
            lines => Some(format!("{shown} ({lines} lines)")),
        }
    }

    /// The end of its error output.
    pub(super) fn stderr_text(&self) -> String {
        let output = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        output.lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }

    /// Takes a line of the server. Returns the reply to a request.
    fn take(&self, line: &[u8]) -> Option<Value> {
        let incoming = frame::read(line)?;
        if !matches!(incoming, Incoming::Noise(_)) {
            self.messages.fetch_add(1, Ordering::SeqCst);
        }
        match incoming {
            Incoming::Answer { id, outcome } => match self.waiting().remove(&id) {
                Some(waiting) => drop(waiting.send(outcome.map_err(McpFault::Refused))),
                // It may be the answer to one that nobody waits for any more.
                None => tracing::debug!(id, "an MCP server answers what was not asked, or is not waited for"),
            },
            Incoming::Unreadable { id, why } => {
                let waiting = self.waiting().remove(&id);
                drop(waiting.map(|waiting| waiting.send(Err(McpFault::Malformed(why)))));
            }
            Incoming::Request { reply } => return Some(reply),
            Incoming::Notification { method, params } if method == PROGRESS => self.progress.take(params),
            Incoming::Notification { method, .. } => {
                if method == "notifications/tools/list_changed" {
                    self.has_changed.store(true, Ordering::Relaxed);
                }
            }
            Incoming::Noise(first) => self.is_noise(first),
        }
        None
    }
}

/// Writes lines until nobody has one any more, then closes the input of the server.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<OutgoingLine>, seen: Arc<SeenOfServer>) {
    while let Some(OutgoingLine { line, state }) = lines.recv().await {
        if state.compare_exchange(WAITING, WRITING, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            continue;
        }
        let written = async {
            stdin.write_all(&line).await?;
            stdin.flush().await
        };
        if let Err(error) = written.await {
            // How it ended says more; its end is seen in a moment.
            tokio::time::sleep(DRAIN).await;
            seen.close(McpFault::Ended(format!("its input is closed: {error}")));
            return;
        }
    }
}

/// Reads lines until the end, or one that is too long.
async fn read(stdout: impl AsyncRead + Unpin, seen: Arc<SeenOfServer>, replies: mpsc::WeakSender<OutgoingLine>) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_MESSAGE).unwrap_or(u64::MAX).saturating_add(1);
    loop {
        line.clear();
        match (&mut stdout).take(limit).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() > MAX_MESSAGE => return seen.close(McpFault::TooLarge),
            Ok(_) => {}
        }
        if let (Some(reply), Some(replies)) = (seen.take(&line), replies.upgrade()) {
            // A server that asks without end, and does not read the answers, waits for them.
            let state = Arc::new(AtomicU8::new(WAITING));
            let _ = replies.try_send(OutgoingLine { line: frame::written(&reply), state });
        }
        if seen.closed().is_some() {
            return;
        }
    }
}

/// Keeps the last lines of the error output.
async fn keep_errors(stderr: impl AsyncRead + Unpin, seen: Arc<SeenOfServer>) {
    let mut stderr = BufReader::new(stderr);
    loop {
        let length = match stderr.fill_buf().await {
            Ok([]) | Err(_) => return,
            Ok(bytes) => {
                seen.stderr.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
                bytes.len()
            }
        };
        stderr.consume(length);
    }
}

impl ErrorOutput {
    /// Takes a piece, whose last line may not be at its end.
    fn push(&mut self, piece: &[u8]) {
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line);
            match self.lines.back_mut().filter(|_| self.is_open) {
                Some(last) => last.push_str(&text),
                None => self.lines.push_back(text.into_owned()),
            }
            if let Some(last) = self.lines.back_mut() {
                last.truncate(last.floor_char_boundary(STDERR_LINE_BYTES));
            }
            if self.lines.len() > STDERR_LINES {
                self.lines.pop_front();
            }
            self.is_open = !line.ends_with(b"\n");
        }
    }
}

/// Waits for the end of the server, or of who needs it; then nothing of it is left.
async fn attend(
    mut process: ServerProcess,
    mut reader: tokio::task::JoinHandle<()>,
    seen: Arc<SeenOfServer>,
    closing: oneshot::Receiver<LeavingServer>,
) {
    let how = tokio::select! {
        how = process.wait() => how,
        _ = &mut reader => {
            // It has closed its output, or wrote too much.
            let ended = tokio::time::timeout(DRAIN, process.wait()).await;
            ended.unwrap_or_else(|_| "it closed its output".to_owned())
        }
        leaving = closing => {
            // Its input is closed: it may end by itself, and is asked to before it is killed.
            if tokio::time::timeout(TIME_TO_END, process.wait()).await.is_err() {
                process.terminate();
                let _ = tokio::time::timeout(TIME_AFTER_ASKED, process.wait()).await;
            }
            process.kill();
            return drop(leaving);
        }
    };
    // Processes that it left running would hold the pipes open.
    process.kill();
    if !reader.is_finished() {
        let _ = tokio::time::timeout(DRAIN, reader).await;
    }
    let stderr = seen.stderr_text();
    seen.close(McpFault::Ended(if stderr.is_empty() { how } else { format!("{how}\n{stderr}") }));
}
