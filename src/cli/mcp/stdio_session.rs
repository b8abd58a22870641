//! A client that speaks over the standard streams: a message a line. Each call is a run, which is driven here.

mod tasks;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::outgoing_lines::{OutgoingLines, TIME_TO_READ};
use crate::cli::foreground_wait;
use crate::cli::next_commands::NextCommands;
use crate::cli::output::shown;
use crate::cli::process::{acting_user, local_user};
use crate::cli::remedies;
use crate::cli::signals::SignalCounter;
use crate::cli::store::StorePlace;
use crate::drive::broken_message::OutermostMembers;
use crate::drive::engine::{Engine, Finished, Resume, Watch};
use crate::drive::fault::Fault;
use crate::drive::start::Start;
use crate::drive::stop::Stop;
use crate::engine::event::DecisionRights;
use crate::engine::notice::{Listener, Notice};
use crate::engine::state::Phase;
use crate::journal::StoreError;
use crate::language::mcp::McpProtocol;
use crate::program::Program;
use crate::serve::Folder;
use crate::serve::mcp::answer_notes::{self, AnswerNotes};
use crate::serve::mcp::client_message::{self, ClientMessage, ClientRequest, McpRefusal, answer, notification};
use crate::serve::mcp::offered_tools::McpTools;
use crate::serve::mcp::protocol::{self, AnsweredCall, ClientEra, McpWork, ToolRequest};
use crate::serve::mcp::put_question::{self, Decider, GivenAnswer, GivenAnswers};
use crate::serve::mcp::request_state::{AskedPause, StateScope};
use crate::serve::mcp::{MAX_MESSAGE_BYTES, call_result, progress};
use crate::trace::{Redaction, RunResult, escape, result};

/// The most requests under way, with those that wait for a run's turn.
const MAX_REQUESTS: usize = 256;
/// How much is written at a time, in bytes: a client that reads slowly reads all the same.
const PIECE_BYTES: usize = 64 << 10;
/// How long runs may take to end after they were asked to stop at once.
const TIME_TO_STOP: Duration = Duration::from_millis(900);

/// The code of a start whose id another run has.
const RUN_ID_CONFLICT: &str = "run_id_conflict";
/// Why a key is not taken.
const OTHER_CALL: &str =
    "there is a run with this `loopctl/idempotency-key`, of another input or an older document: take another key";

/// Why nobody decides.
const IN_MEMORY: &str = "the run is in memory, and ends with this process: nobody can decide it";

/// What a session serves.
pub struct SessionParts {
    pub folder: Folder,
    /// By the folders of their projects.
    pub engines: HashMap<PathBuf, Engine>,
    pub place: StorePlace,
    pub runs_at_once: usize,
}

/// A session with a client.
struct StdioSession {
    parts: SessionParts,
    /// The revision that `initialize` settled.
    settled: Mutex<Option<McpProtocol>>,
    under_way: Mutex<HashMap<String, Arc<RequestUnderWay>>>,
    turns: Semaphore,
    lines: OutgoingLines,
}

/// A request that takes time.
#[derive(Default)]
struct RequestUnderWay {
    stop: Stop,
    is_cancelled: AtomicBool,
    cancelled: tokio::sync::Notify,
}

/// What came from the client.
enum FrameRead {
    Line(Vec<u8>),
    TooLong(OutermostMembers),
}

/// Serves a client until its messages end, or a signal comes; then each run finishes its step.
pub async fn serve_session(
    parts: SessionParts,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    signals: SignalCounter,
) {
    let (lines, unwritten) = OutgoingLines::new();
    let (frames, mut incoming) = mpsc::channel(1);
    let session = Arc::new(StdioSession {
        turns: Semaphore::new(parts.runs_at_once),
        parts,
        settled: Mutex::default(),
        under_way: Mutex::default(),
        lines,
    });
    let writer = tokio::spawn(write(output, unwritten, session.lines.taken()));
    let ending = session.lines.ending();
    let reader = tokio::spawn(async move {
        read(BufReader::new(input), frames).await;
        // What is being answered now may never be read.
        ending.send_replace(true);
    });
    let mut requests = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = signals.reach(1) => break,
            // Nobody reads any more.
            () = session.lines.unread() => break,
            Some(_) = requests.join_next(), if !requests.is_empty() => {}
            frame = incoming.recv() => match frame {
                Some(frame) => tokio::select! {
                    biased;
                    () = signals.reach(1) => break,
                    () = session.take(frame, &mut requests) => {}
                },
                None => break,
            }
        }
    }
    session.lines.end();
    reader.abort();
    session.end(&mut requests, &signals).await;
    drop(session);
    let _ = tokio::time::timeout(TIME_TO_READ, writer).await;
}

impl StdioSession {
    fn under_way(&self) -> MutexGuard<'_, HashMap<String, Arc<RequestUnderWay>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a message. In a session that ends it is lost if nobody reads.
    async fn write(&self, message: &Value) {
        let line = escape::json(&message.to_string()).into_owned() + "\n";
        self.lines.write(line).await;
    }

    async fn take(self: &Arc<Self>, frame: FrameRead, requests: &mut JoinSet<()>) {
        let line = match frame {
            FrameRead::Line(line) => line,
            FrameRead::TooLong(members) => return self.write(&client_message::too_long(&members)).await,
        };
        match client_message::read(&line) {
            Err(refusal) => self.write(&refusal).await,
            Ok(ClientMessage::Request(request)) => self.take_request(request, requests).await,
            Ok(ClientMessage::Notification { method, params }) if method == "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                let cancelled = self.under_way().get(&id).cloned();
                if let Some(request) = cancelled {
                    request.cancel();
                }
            }
            Ok(ClientMessage::Notification { .. } | ClientMessage::Response) => {}
        }
    }

    async fn take_request(self: &Arc<Self>, request: ClientRequest, requests: &mut JoinSet<()>) {
        let id = request.id.clone();
        if protocol::opens(&request) {
            return match protocol::initialize(&request) {
                Ok((settled, result)) => {
                    *self.settled.lock().unwrap_or_else(PoisonError::into_inner) = Some(settled);
                    self.write(&answer(&id, &result)).await;
                }
                Err(refusal) => self.write(&refusal.answer(&id)).await,
            };
        }
        let settled = *self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        let era = ClientEra::of(&request, settled);
        let tools = self.tools();
        let asked = era.and_then(|era| Ok((era, era.asked(&request, false, || tools.listed())?)));
        match asked {
            Err(refusal) => self.write(&refusal.answer(&id)).await,
            Ok((_, McpWork::Result(result))) => self.write(&answer(&id, &result)).await,
            Ok((_, McpWork::Call(call))) if !tools.by_name.contains_key(&call.name) => {
                let refusal = protocol::no_such_tool(&call.name, tools.by_name.keys().map(String::as_str));
                self.write(&refusal.answer(&id)).await;
            }
            Ok((era, asked)) => match self.admit(&id) {
                Err(refusal) => self.write(&refusal.answer(&id)).await,
                Ok(None) => {
                    let why = format!("{MAX_REQUESTS} requests are under way: ask again when one of them has ended");
                    let busy = era.result(call_result::failure("busy", &why, None));
                    self.write(&answer(&id, &busy)).await;
                }
                Ok(Some(under_way)) => {
                    let session = Arc::clone(self);
                    requests.spawn(async move { session.perform(era, id, asked, under_way).await }.boxed());
                }
            },
        }
    }

    fn tools(&self) -> McpTools<'_> {
        McpTools::of(&self.parts.folder.loops, |_| true)
    }

    /// Counts a request as under way; none when there are too many.
    fn admit(&self, id: &Value) -> Result<Option<Arc<RequestUnderWay>>, McpRefusal> {
        let mut all = self.under_way();
        if all.contains_key(&id.to_string()) {
            return Err(protocol::id_in_use());
        }
        if all.len() >= MAX_REQUESTS {
            return Ok(None);
        }
        let under_way = Arc::new(RequestUnderWay::default());
        all.insert(id.to_string(), Arc::clone(&under_way));
        Ok(Some(under_way))
    }

    async fn perform(&self, era: ClientEra, id: Value, asked: McpWork, under_way: Arc<RequestUnderWay>) {
        let result = match asked {
            McpWork::Result(result) => Ok(result),
            McpWork::Call(call) if era.tasks && call.answered.is_none() => {
                return self.run_as_task(era, &id, &call, &under_way).await;
            }
            McpWork::Task(request) => return self.perform_on_task(era, &id, request, &under_way).await,
            McpWork::Call(call) => self.run(era, &call, &under_way).await,
            McpWork::Listen { tools } => {
                self.write(&protocol::listening(&id, tools)).await;
                self.until_over(&under_way).await;
                Ok(protocol::listened(&id))
            }
        };
        self.finish(era, &id, result, &under_way).await;
    }

    /// Answers a request, unless it was cancelled.
    async fn finish(&self, era: ClientEra, id: &Value, result: Result<Value, McpRefusal>, under_way: &RequestUnderWay) {
        let is_cancelled = under_way.is_cancelled.load(Ordering::SeqCst);
        // The id is free before the client can know it.
        self.under_way().remove(&id.to_string());
        if !is_cancelled {
            let message = match result {
                Ok(result) => answer(id, &era.result(result)),
                Err(refusal) => refusal.answer(id),
            };
            self.write(&message).await;
        }
    }

    async fn until_over(&self, under_way: &RequestUnderWay) {
        tokio::select! {
            () = under_way.cancelled() => {}
            () = self.lines.ended() => {}
        }
    }

    /// Carries out a call: the run is in the store before its first step.
    async fn run(
        &self,
        era: ClientEra,
        call: &ToolRequest,
        under_way: &Arc<RequestUnderWay>,
    ) -> Result<Value, McpRefusal> {
        let turn = tokio::select! {
            biased;
            () = self.until_over(under_way) => None,
            turn = self.turns.acquire() => turn.ok(),
        };
        let offered = self.tools().by_name.get(&call.name).copied();
        let engine = offered.and_then(|offered| self.parts.engines.get(&offered.root));
        let (Some(offered), Some(engine), Some(_turn)) = (offered, engine, turn) else {
            return Ok(call_result::failure("stopped", "the server stops: nothing was started", None));
        };
        let program = &offered.program;
        let listener = call.progress_token.as_ref().map(|token| ProgressListener {
            token: token.clone(),
            count: AtomicU64::new(0),
            written: self.lines.sender(),
            under_way: Arc::clone(under_way),
            redact: Redaction::new(&program.project.redact),
        });
        let watch = Watch {
            listener: listener.as_ref().map(|listener| -> &dyn Listener { listener }),
            stop: Some(under_way.stop.clone()),
        };
        let left = match &call.answered {
            Some(answered) => answer_run(engine, program, AnsweredRun { call, answered }, watch.clone()).await?,
            None => {
                let start = Start { by: acting_user(), ..call.start(&program.name) };
                LeftRun::from(engine.run(program, start, watch.clone()).await)
            }
        };
        let finished = self.after_waits(engine, program, left.finished, watch, under_way).await;
        let finished = match finished {
            Ok(finished) => finished,
            Err(fault) => return Ok(failed(call, &fault)),
        };
        let result = result(shown(program), &finished.state, &Redaction::new(&program.project.redact));
        let is_put = era.elicits && !left.notes.is_declined;
        if is_put && let Some(put) = put(engine, call, &result, &left.notes).await {
            return Ok(put);
        }
        let next = self.next_commands(&result.run_id);
        Ok(call_result::of_run(&result, left.notes.note(std::iter::empty()), || match next.lasts {
            true => next.deciding(&result),
            false => Some(IN_MEMORY.to_owned()),
        }))
    }

    /// Waits with a run that waits for a time, as long as that is near, and has it continue then, as `loopctl run` does.
    async fn after_waits(
        &self,
        engine: &Engine,
        program: &Arc<Program>,
        mut finished: Result<Finished, Fault>,
        watch: Watch<'_>,
        under_way: &RequestUnderWay,
    ) -> Result<Finished, Fault> {
        loop {
            let Ok(Finished { state }) = &finished else { return finished };
            let Some(left) = foreground_wait::left_until(state) else { return finished };
            let run_id = state.header.run_id.clone();
            tokio::select! {
                biased;
                () = self.until_over(under_way) => return finished,
                () = tokio::time::sleep(left) => {}
            }
            finished = match engine.resume(program, &run_id, Resume::default(), watch.clone()).await {
                // Another process has it continue.
                Err(Fault::Store(StoreError::Driven(_))) => engine.join(program, &run_id, watch.clone()).await,
                resumed => resumed,
            };
        }
    }

    /// The commands for a run. They name the store: nobody knows the folder that the host started this process in.
    fn next_commands(&self, run_id: &str) -> NextCommands {
        let place = &self.parts.place;
        let file = place.file().and_then(|file| std::fs::canonicalize(file).ok());
        let store = file.map(|file| format!("sqlite:{}", file.display()));
        let next = NextCommands::new(run_id, place);
        NextCommands { store: store.or_else(|| next.store.clone()), ..next }
    }

    /// Has each run finish its step; a signal has them stop at once.
    async fn end(&self, requests: &mut JoinSet<()>, signals: &SignalCounter) {
        let stop_all = |stop: &dyn Fn(&Stop)| self.under_way().values().for_each(|request| stop(&request.stop));
        stop_all(&|stop| stop.after_step());
        let all_ended = async {
            while requests.join_next().await.is_some() {}
            for run in self.parts.engines.values().flat_map(Engine::spawned) {
                let _ = run.task.await;
            }
        };
        let mut all_ended = std::pin::pin!(all_ended);
        let before = signals.count();
        tokio::select! {
            () = &mut all_ended => return,
            () = signals.reach(before.saturating_add(1)) => {}
        }
        stop_all(&|stop| stop.now());
        let _ = tokio::time::timeout(TIME_TO_STOP, all_ended).await;
    }
}

impl RequestUnderWay {
    /// Has the run end after its step. Nothing more is sent of the request.
    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        self.stop.after_step();
        self.cancelled.notify_waiters();
    }

    async fn cancelled(&self) {
        let cancelled = self.cancelled.notified();
        if !self.is_cancelled.load(Ordering::SeqCst) {
            cancelled.await;
        }
    }
}

/// A run that this process does not drive any more.
struct LeftRun {
    finished: Result<Finished, Fault>,
    /// What became of the answers.
    notes: AnswerNotes,
}

impl From<Result<Finished, Fault>> for LeftRun {
    fn from(finished: Result<Finished, Fault>) -> Self {
        Self { finished, notes: AnswerNotes::default() }
    }
}

/// A call whose run was asked about something before.
struct AnsweredRun<'c> {
    call: &'c ToolRequest,
    answered: &'c AnsweredCall,
}

/// Has the run of an earlier call go on with what the client's user answered.
async fn answer_run(
    engine: &Engine,
    program: &Arc<Program>,
    run: AnsweredRun<'_>,
    watch: Watch<'_>,
) -> Result<LeftRun, McpRefusal> {
    let asked = StateScope::of_process(run.call).open(&**engine.journal(), &run.answered.state).await?;
    let state = match engine.state(program, &asked.run_id).await {
        Ok(state) => state,
        Err(fault) => return Ok(LeftRun::from(Err(fault))),
    };
    let result = result(shown(program), &state, &Redaction::new(&program.project.redact));
    // One that is answered already continues, or has ended.
    let is_asked = result.pause.as_ref().is_some_and(|pause| pause.number == asked.pause);
    let questions = if is_asked { put_question::of_run(&result) } else { Vec::new() };
    let decider = Decider { pause: asked.pause, by: local_user(), rights: DecisionRights::All };
    let responses = &run.answered.responses;
    let GivenAnswers { answers, mut notes } = put_question::given(&questions, responses, &decider)?;
    let mut finished = Ok(Finished { state });
    let mut is_taken = false;
    for GivenAnswer { key, decided } in answers {
        let resume = Resume { decided: Some(decided), ..Resume::default() };
        match engine.resume(program, &asked.run_id, resume, watch.clone()).await {
            Err(Fault::Refused(why)) if is_taken || waits_so(engine, program, &asked).await => {
                notes.fault(&key, why.to_string());
            }
            // Another answer came first.
            Err(Fault::Refused(_)) => notes.late(&key),
            other => {
                answer_notes::taken(&asked, &key, responses);
                (finished, is_taken) = (other, true);
            }
        }
    }
    let waits = is_taken || (is_asked && waits_so(engine, program, &asked).await);
    if !waits {
        // Its driver may be of an earlier call: this one waits for the run.
        finished = engine.join(program, &asked.run_id, watch).await;
    }
    notes.settle(&asked, responses);
    Ok(LeftRun { finished, notes })
}

/// Whether a run still waits in the pause that a client was asked about.
async fn waits_so(engine: &Engine, program: &Program, asked: &AskedPause) -> bool {
    let state = engine.state(program, &asked.run_id).await;
    state.is_ok_and(|state| matches!(&state.phase, Phase::Paused { pause, .. } if pause.number == asked.pause))
}

/// The questions of a run, as a client puts them to its user.
async fn put(engine: &Engine, call: &ToolRequest, result: &RunResult, notes: &AnswerNotes) -> Option<Value> {
    let questions = put_question::of_run(result);
    let pause = result.pause.as_ref().filter(|_| !questions.is_empty())?;
    let asked = AskedPause { run_id: result.run_id.clone(), pause: pause.number };
    let state = StateScope::of_process(call).issue(&**engine.journal(), &asked).await?;
    Some(put_question::result(&result.run_id, &questions, &state, notes))
}

/// What a call gives whose run could not be started or driven. A client knows its key, and no id of a run.
fn failed(call: &ToolRequest, fault: &Fault) -> Value {
    if call.idempotency_key.is_some() && fault.code() == RUN_ID_CONFLICT {
        return call_result::failure(RUN_ID_CONFLICT, OTHER_CALL, None);
    }
    // As over HTTP.
    let code = if matches!(fault, Fault::Diagnostics(_)) { "document" } else { fault.code() };
    call_result::failure(code, &said(fault), None)
}

/// A fault, with what helps against it: all that is wrong with an input.
fn said(fault: &Fault) -> String {
    if let Fault::Diagnostics(all) = fault {
        return call_result::all_said(all);
    }
    match fault.remedy() {
        Some(remedy) => format!("{fault}; {}", remedies::words(&remedy)),
        None => fault.to_string(),
    }
}

/// Sends notifications of the progress of a run. A client that is behind misses some of them.
struct ProgressListener {
    token: Value,
    count: AtomicU64,
    written: mpsc::Sender<String>,
    under_way: Arc<RequestUnderWay>,
    redact: Redaction,
}

impl Listener for ProgressListener {
    fn on(&self, notice: Notice) {
        let Some(message) = progress::message(&notice, &self.redact) else { return };
        if self.under_way.is_cancelled.load(Ordering::SeqCst) {
            return;
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let params = json!({ "progressToken": self.token, "progress": count, "message": message });
        let line = escape::json(&notification("notifications/progress", &params).to_string()).into_owned() + "\n";
        let _ = self.written.try_send(line);
    }
}

/// Reads lines to their end. A line that is too long is passed over.
async fn read(mut input: impl tokio::io::AsyncBufRead + Unpin, frames: mpsc::Sender<FrameRead>) {
    let limit = u64::try_from(MAX_MESSAGE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    loop {
        let mut line = Vec::new();
        let frame = match (&mut input).take(limit).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() > MAX_MESSAGE_BYTES && line.last() != Some(&b'\n') => {
                let mut members = OutermostMembers::default();
                members.take(&line);
                if !pass_over(&mut input, &mut members).await {
                    return;
                }
                FrameRead::TooLong(members)
            }
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => FrameRead::Line(line),
        };
        if frames.send(frame).await.is_err() {
            return;
        }
    }
}

/// Reads the rest of a line; returns whether it has an end.
async fn pass_over(input: &mut (impl tokio::io::AsyncBufRead + Unpin), members: &mut OutermostMembers) -> bool {
    loop {
        let (length, is_end) = match input.fill_buf().await {
            Ok([]) | Err(_) => return false,
            Ok(bytes) => {
                let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
                members.take(line);
                match line.len() < bytes.len() {
                    true => (line.len().saturating_add(1), true),
                    false => (line.len(), false),
                }
            }
        };
        input.consume(length);
        if is_end {
            return true;
        }
    }
}

/// Writes lines until there are no more, or nobody reads them. Each piece that was read is said.
async fn write(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<String>, taken: watch::Sender<()>) {
    while let Some(line) = lines.recv().await {
        for piece in line.as_bytes().chunks(PIECE_BYTES) {
            let written = async {
                output.write_all(piece).await?;
                output.flush().await
            };
            if written.await.is_err() {
                return;
            }
            taken.send_replace(());
        }
    }
}
