//! A server that is a program: a message a line, over its standard streams.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;
use tokio::sync::{Notify, mpsc, oneshot};

use super::fault::{McpFault, Unanswered};
use super::frame::{self, Incoming, MAX_MESSAGE};
use crate::drive::tool::command::{ServerProcess, ServerStreams};

/// How many messages may wait to be written.
const QUEUED: usize = 64;
/// How long a server may take to end after its input was closed.
const TIME_TO_END: Duration = Duration::from_secs(2);
/// How long the rest of its output is read after its end.
const DRAIN: Duration = Duration::from_millis(500);
/// How many lines may be no messages: one that writes without end is no server.
const MAX_NOISE: usize = 10_000;
/// What is kept of its error output: lines, and bytes of each.
const STDERR_LINES: usize = 20;
const STDERR_LINE_BYTES: u64 = 500;

/// A message is waiting, is being written, or was taken back before.
const WAITING: u8 = 0;
const WRITING: u8 = 1;
const TAKEN_BACK: u8 = 2;

/// A server that runs. It ends when this is dropped.
pub(super) struct StdioPeer {
    seen: Arc<SeenOfServer>,
    outgoing: mpsc::Sender<OutgoingLine>,
    closing: Arc<Notify>,
    next: AtomicU64,
}

/// A line to be written.
struct OutgoingLine {
    line: Vec<u8>,
    state: Arc<AtomicU8>,
}

/// What is known of a server that runs.
#[derive(Default)]
struct SeenOfServer {
    /// Who waits for the answer to a request.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, McpFault>>>>,
    /// Why it answers no more.
    closed: Mutex<Option<McpFault>>,
    /// How much it wrote that is no message, and the first of it.
    noise: Mutex<(usize, Option<String>)>,
    stderr: Mutex<VecDeque<String>>,
    /// Whether it said that its list of tools is another one now.
    has_changed: AtomicBool,
}

impl StdioPeer {
    /// Speaks to a server that was started.
    pub(super) fn new(process: ServerProcess, streams: ServerStreams) -> Self {
        let ServerStreams { stdin, stdout, stderr } = streams;
        let seen = Arc::new(SeenOfServer::default());
        let (outgoing, lines) = mpsc::channel(QUEUED);
        let closing = Arc::new(Notify::new());
        tokio::spawn(write(stdin, lines, Arc::clone(&seen)));
        let reader = tokio::spawn(read(stdout, Arc::clone(&seen), outgoing.downgrade()));
        tokio::spawn(keep_errors(stderr, Arc::clone(&seen)));
        tokio::spawn(attend(process, reader, Arc::clone(&seen), Arc::clone(&closing)));
        Self { seen, outgoing, closing, next: AtomicU64::new(1) }
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
        let mut open = OpenRequest { peer: self, id, state: Arc::clone(&state), sent, is_answered: false };
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

    /// What it wrote that is no message.
    pub(super) fn noise(&self) -> Option<String> {
        let noise = self.seen.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.1.as_ref().map(|first| match noise.0 {
            1 => first.clone(),
            lines => format!("{first} ({lines} lines)"),
        })
    }

    /// Whether it answers no more.
    pub(super) fn has_ended(&self) -> bool {
        self.seen.closed().is_some()
    }

    /// Whether it said that its tools are other ones now; it is asked once.
    pub(super) fn take_change(&self) -> bool {
        self.seen.has_changed.swap(false, Ordering::Relaxed)
    }
}

impl Drop for StdioPeer {
    fn drop(&mut self) {
        self.closing.notify_one();
    }
}

/// A request that is under way.
struct OpenRequest<'a> {
    peer: &'a StdioPeer,
    id: u64,
    state: Arc<AtomicU8>,
    /// Set when the request leaves us without an answer.
    sent: &'a AtomicBool,
    is_answered: bool,
}

impl OpenRequest<'_> {
    /// Whether its line was begun to be written; one that was not is taken back.
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
        if self.is_answered || !self.was_sent() {
            return;
        }
        let params = json!({ "requestId": self.id, "reason": "nobody waits for it any more" });
        let line = frame::notification("notifications/cancelled", &params);
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

    fn is_noise(&self, first: String) {
        let lines = self.count_noise(first);
        if lines > MAX_NOISE {
            self.close(McpFault::Malformed(format!("it wrote more than {MAX_NOISE} lines that are no messages")));
        }
    }

    /// How many lines it wrote that are no messages.
    fn count_noise(&self, first: String) -> usize {
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.0 = noise.0.saturating_add(1);
        if noise.1.is_none() {
            tracing::warn!("an MCP server writes what is no message: {first}");
            noise.1 = Some(first);
        }
        noise.0
    }

    fn stderr_text(&self) -> String {
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// Takes a line of the server. Returns the reply to a request.
    fn take(&self, line: &[u8]) -> Option<Value> {
        match frame::read(line)? {
            Incoming::Answer { id, outcome } => match self.waiting().remove(&id) {
                Some(waiting) => drop(waiting.send(outcome.map_err(McpFault::Refused))),
                // It may be the answer to one that nobody waits for any more.
                None => tracing::debug!(id, "an MCP server answers what was not asked, or is not waited for"),
            },
            Incoming::Request { reply } => return Some(reply),
            Incoming::Notification { method } => {
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
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr).take(STDERR_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let mut lines = seen.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
}

/// Waits for the end of the server, or of who needs it; then nothing of it is left.
async fn attend(
    mut process: ServerProcess,
    mut reader: tokio::task::JoinHandle<()>,
    seen: Arc<SeenOfServer>,
    closing: Arc<Notify>,
) {
    let how = tokio::select! {
        how = process.wait() => how,
        _ = &mut reader => {
            // It has closed its output, or wrote too much.
            let ended = tokio::time::timeout(DRAIN, process.wait()).await;
            ended.unwrap_or_else(|_| "it closed its output".to_owned())
        }
        () = closing.notified() => {
            // Its input is closed: it may end by itself.
            let _ = tokio::time::timeout(TIME_TO_END, process.wait()).await;
            process.kill();
            return;
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
