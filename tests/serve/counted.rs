//! What readers of events cost the store: served in this process, over a store that counts what it reads.

use std::collections::BTreeMap;
use std::future::pending;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::engine::blob::Blob;
use loopctl::engine::outcome::Status;
use loopctl::journal::memory::MemoryJournal;
use loopctl::journal::{
    AnswerToken, Append, CallbackProgress, CancelRequest, ClaimedRun, Created, Journal, Lease, NewRun, PruneQuery,
    QueueQuery, QueueShare, QueuedDecision, QueuedRuns, Queueing, RunExtras, RunFilter, RunHead, RunSummary,
    SettledDecision, StoreFault, Ticket, Worker,
};
use loopctl::serve::feed::{Feed, WantedEvents};
use loopctl::serve::folder::Folder;
use loopctl::serve::{Server, ServerOptions};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::client::{ask_for_events, parse, place, served, stream};
use crate::common::{Place, complete, think};

/// A store that counts.
#[derive(Default)]
pub struct Counting {
    inner: Arc<MemoryJournal>,
    /// So often a journal can't be read.
    pub unreadable: AtomicUsize,
    /// How often a journal was read whole.
    whole: AtomicUsize,
    /// The events that were read from a place on.
    from: AtomicUsize,
    /// What it was asked, in that order.
    asked: Mutex<Vec<&'static str>>,
    /// Whether a request to cancel is answered when the run's driver has ended the run.
    answers_cancels_late: AtomicBool,
}

impl Counting {
    /// What it was asked since the last time, in that order.
    pub fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn note(&self, asked: &'static str) {
        self.asked.lock().unwrap().push(asked);
    }
}

/// A server in this process, over this store.
pub fn listening(place: &Place, journal: &Arc<Counting>) -> (Runtime, SocketAddr) {
    let options = ServerOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        max_concurrent_runs: 4,
        grace: Duration::ZERO,
        ..ServerOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let journal: Arc<dyn Journal> = Arc::clone(journal) as Arc<dyn Journal>;
    let folder = Folder::read(place.path()).unwrap_or_else(|_| panic!("it is sound"));
    let server = runtime.block_on(Server::bind(folder, journal, &options)).unwrap();
    let address = server.address();
    runtime.spawn(server.serve(pending()));
    (runtime, address)
}

impl Journal for Counting {
    fn create(&self, run: NewRun) -> Ticket<Created> {
        self.note("create");
        self.inner.create(run)
    }

    fn append(&self, entry: Append) -> Ticket<()> {
        self.note("append");
        self.inner.append(entry)
    }

    fn read(&self, run_id: &str) -> Ticket<Vec<String>> {
        self.note("read");
        self.whole.fetch_add(1, Ordering::SeqCst);
        let fails = self.unreadable.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if fails.is_ok() { Ticket::ready(Err(StoreFault::Locked)) } else { self.inner.read(run_id) }
    }

    fn read_from(&self, run_id: &str, from: u64, most: usize) -> Ticket<Vec<String>> {
        self.note("read_from");
        let Ticket::Ready(Some(events)) = self.inner.read_from(run_id, from, most) else { panic!("it comes at once") };
        self.from.fetch_add(events.as_ref().map_or(0, Vec::len), Ordering::SeqCst);
        Ticket::ready(events)
    }

    fn texts(&self, run_id: &str) -> Ticket<Vec<Blob>> {
        self.note("texts");
        self.inner.texts(run_id)
    }

    fn find(&self, run_id: &str) -> Ticket<Option<RunSummary>> {
        self.note("find");
        self.inner.find(run_id)
    }

    fn find_of(&self, org: Option<&str>, run_id: &str) -> Ticket<Option<RunSummary>> {
        self.note("find_of");
        self.inner.find_of(org, run_id)
    }

    fn list(&self, filter: RunFilter) -> Ticket<Vec<RunSummary>> {
        self.note("list");
        self.inner.list(filter)
    }

    fn called_under(&self, run_id: &str) -> Ticket<u64> {
        self.note("called_under");
        self.inner.called_under(run_id)
    }

    fn lease(&self, run_id: &str) -> Ticket<Lease> {
        self.note("lease");
        self.inner.lease(run_id)
    }

    fn release(&self, run_id: &str, fence: u64) -> Ticket<()> {
        self.note("release");
        self.inner.release(run_id, fence)
    }

    fn confirm(&self, run_id: &str, fence: u64) -> Ticket<()> {
        self.note("confirm");
        self.inner.confirm(run_id, fence)
    }

    fn request_cancel(&self, run_id: &str, reason: Option<String>) -> Ticket<()> {
        self.note("request_cancel");
        let requested = self.inner.request_cancel(run_id, reason);
        if !self.answers_cancels_late.load(Ordering::SeqCst) {
            return requested;
        }
        let (answer, ticket) = tokio::sync::oneshot::channel();
        let (inner, run_id) = (Arc::clone(&self.inner), run_id.to_owned());
        std::thread::spawn(move || {
            let is_running = || {
                let Ticket::Ready(Some(Ok(Some(run)))) = inner.find(&run_id) else { panic!("it is there at once") };
                run.status == Status::Running
            };
            while is_running() {
                std::thread::yield_now();
            }
            answer.send(Ok(())).unwrap();
        });
        Ticket::Coming(ticket)
    }

    fn queue_decision(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing> {
        self.note("queue_decision");
        self.inner.queue_decision(run_id, decision)
    }

    fn queued_decisions(&self, run_id: &str) -> Ticket<Vec<QueuedDecision>> {
        self.note("queued_decisions");
        self.inner.queued_decisions(run_id)
    }

    fn settle_decision(&self, run_id: &str, id: &str, settled: SettledDecision) -> Ticket<()> {
        self.note("settle_decision");
        self.inner.settle_decision(run_id, id, settled)
    }

    fn cancel_requested(&self, run_id: &str) -> Ticket<Option<CancelRequest>> {
        self.note("cancel_requested");
        self.inner.cancel_requested(run_id)
    }

    fn heads(&self, run_ids: Vec<String>) -> Ticket<Vec<RunHead>> {
        self.note("heads");
        self.inner.heads(run_ids)
    }

    fn queue(&self, waiting: QueueQuery) -> Ticket<Vec<QueuedRuns>> {
        self.note("queue");
        self.inner.queue(waiting)
    }

    fn claim(&self, waiting: QueueQuery, shares: Vec<QueueShare>) -> Ticket<Vec<ClaimedRun>> {
        self.note("claim");
        self.inner.claim(waiting, shares)
    }

    fn retry_at(&self, run_id: &str, at_ms: i64) -> Ticket<()> {
        self.note("retry_at");
        self.inner.retry_at(run_id, at_ms)
    }

    fn claim_callbacks(&self, most: usize) -> Ticket<Vec<String>> {
        self.note("claim_callbacks");
        self.inner.claim_callbacks(most)
    }

    fn note_callback(&self, run_id: &str, progress: CallbackProgress, again_in: Option<Duration>) -> Ticket<()> {
        self.note("note_callback");
        self.inner.note_callback(run_id, progress, again_in)
    }

    fn note_posted_pause(&self, run_id: &str, pause: u32) -> Ticket<()> {
        self.note("note_posted_pause");
        self.inner.note_posted_pause(run_id, pause)
    }

    fn put_answer_tokens(&self, run_id: &str, tokens: Vec<AnswerToken>) -> Ticket<()> {
        self.note("put_answer_tokens");
        self.inner.put_answer_tokens(run_id, tokens)
    }

    fn answer_token(&self, run_id: &str, hash: &str) -> Ticket<Option<AnswerToken>> {
        self.note("answer_token");
        self.inner.answer_token(run_id, hash)
    }

    fn extras(&self, run_id: &str) -> Ticket<RunExtras> {
        self.note("extras");
        self.inner.extras(run_id)
    }

    fn prune(&self, which: PruneQuery) -> Ticket<u64> {
        self.note("prune");
        self.inner.prune(which)
    }

    fn introduce(&self, folder: &str) -> Ticket<()> {
        self.note("introduce");
        self.inner.introduce(folder)
    }

    fn workers(&self) -> Ticket<Vec<Worker>> {
        self.note("workers");
        self.inner.workers()
    }

    fn recall(&self, session: &str) -> Ticket<BTreeMap<String, Value>> {
        self.note("recall");
        self.inner.recall(session)
    }
}

/// Asks; all that is answered.
fn ask(address: SocketAddr, method: &str, target: &str, body: &Value) -> Vec<u8> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut answer = Vec::new();
    let mut asking = TcpStream::connect(address).unwrap();
    write!(
        asking,
        "{method} {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    asking.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn each_of_many_readers_reads_an_event_once_however_often_it_is_woken() {
    const STEPS: usize = 40;
    const READERS: usize = 3;
    let mut replies = vec![think("__pause_for_human__", json!({ "question": "Go on?" }))];
    replies.extend((0..STEPS).map(|step| think("__log_progress__", json!({ "message": format!("step {step}") }))));
    replies.push(complete(json!("ok")));
    let place = place(json!({ "max_iterations": 100 }), &replies);
    let counting = Arc::new(Counting::default());
    let (runtime, address) = listening(&place, &counting);

    let run = parse(&ask(address, "POST", "/agents/execute", &json!({ "loop": "test" }))).unwrap().json();
    assert_eq!(run["status"], "paused", "{run}");
    let id = run["agent_run_id"].as_str().unwrap();
    let events = || runtime.block_on(counting.inner.read(id)).unwrap().len();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = TcpStream::connect(address).unwrap();
        ask_for_events(&mut reader, address, id);
        let mut received = vec![0; 1];
        // It has read what there is.
        reader.read_exact(&mut received).unwrap();
        readers.push((reader, received));
    }
    let whole = counting.whole.load(Ordering::SeqCst);
    assert_eq!(whole, 0, "a run that was driven here is answered from its state");
    let answer = ask(address, "POST", &format!("/agents/{id}/resume"), &json!({ "answer": "yes" }));
    for (mut reader, mut received) in readers {
        reader.read_to_end(&mut received).unwrap();
        let seen = stream(&String::from_utf8(parse(&received).unwrap().body).unwrap());
        assert_eq!(seen.iter().filter(|(_, data)| data["event"] == "progress").count(), STEPS);
        assert_eq!(seen.last().unwrap().1["result"]["answer"], "ok");
    }
    // The first event twice: for the document, and for the stream.
    assert_eq!(counting.from.load(Ordering::SeqCst), (events() + 1) * READERS);
    // The driver that goes on reads it whole, once for the decision and the answer; readers do not.
    let whole = counting.whole.load(Ordering::SeqCst) - whole;
    assert_eq!(whole, 1);
    // What the driver left is what the journal folds to.
    let read = ask(address, "GET", &format!("/agents/{id}/status"), &json!({}));
    assert_eq!(parse(&answer).unwrap().json(), parse(&read).unwrap().json());
}

#[test]
fn of_a_long_run_no_more_is_read_ahead_of_a_reader_than_a_piece_and_he_gets_all_in_order() {
    const STEPS: usize = 30;
    // As many events of this length make more than a piece.
    const AHEAD: usize = 4;
    let text = "x".repeat(20_000);
    let message = |step: usize| format!("step {step} {text}");
    let mut replies: Vec<Value> =
        (0..STEPS).map(|step| think("__log_progress__", json!({ "message": message(step) }))).collect();
    replies.push(complete(json!("ok")));
    let place = place(json!({ "max_iterations": 100 }), &replies);
    let counting = Arc::new(Counting::default());
    let served = served(&place, Arc::clone(&counting) as Arc<dyn Journal>);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let received = runtime.block_on(async {
        let offered = &served.folder.loops["test"];
        let engine = served.runs.engine(&offered.root).unwrap();
        let finished = engine.run(&offered.program, Start::default(), Watch::default()).await.unwrap();
        let opened = Feed::new(Arc::clone(&served), finished.run_id(), WantedEvents::default()).await;
        let mut feed = opened.unwrap_or_else(|_| panic!("it can be read")).expect("the run has events");
        let mut received = String::new();
        while let Some(Ok(piece)) = feed.next().await {
            received.push_str(&piece);
            let event: usize = piece["id: ".len()..].split('.').next().unwrap().parse().unwrap();
            // He may stop reading here. The first event was read twice.
            let read = counting.from.load(Ordering::SeqCst) - 1;
            assert!(read - event <= AHEAD, "{read} events were read when number {event} was sent");
        }
        received
    });
    let events = stream(&received);
    let steps: Vec<&str> = events
        .iter()
        .filter(|(_, data)| data["event"] == "progress")
        .filter_map(|(_, data)| data["message"].as_str())
        .collect();
    assert_eq!(steps, (0..STEPS).map(message).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap().1["result"]["answer"], "ok");
    assert_eq!(counting.whole.load(Ordering::SeqCst), 0, "no journal was read whole");
}

#[test]
fn a_run_that_is_cancelled_is_leased_and_read_once() {
    let place = place(json!({}), &[think("__pause_for_human__", json!({ "question": "Go on?" }))]);
    let counting = Arc::new(Counting::default());
    let (_runtime, address) = listening(&place, &counting);
    let send = |request: &str, body: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        let headers = format!("host: {address}\r\nconnection: close\r\ncontent-type: application/json");
        write!(stream, "{request} HTTP/1.1\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        parse(&answer).expect("an answer").json()
    };
    let run = send("POST /agents/execute", r#"{"loop":"test"}"#);
    assert_eq!(run["status"], "paused");
    counting.asked();
    let cancelled = send(&format!("DELETE /agents/{}?reason=no", run["agent_run_id"].as_str().unwrap()), "");
    assert_eq!(cancelled["status"], "cancelled");
    let asked: Vec<&str> = counting.asked().into_iter().filter(|asked| !asked.starts_with("find")).collect();
    assert_eq!(asked, ["lease", "read", "texts", "append", "release"]);
}

#[test]
fn a_cancel_is_answered_as_such_though_the_driver_ends_the_run_before_its_request_is_answered() {
    let place = place(json!({}), &[json!({ "delay_ms": 600_000, "text": "too late" })]);
    let counting = Arc::new(Counting::default());
    counting.answers_cancels_late.store(true, Ordering::SeqCst);
    let (_runtime, address) = listening(&place, &counting);
    let run = parse(&ask(address, "POST", "/agents/execute?async=true", &json!({ "loop": "test" }))).unwrap().json();
    let mut events = TcpStream::connect(address).unwrap();
    let id = run["agent_run_id"].as_str().unwrap();
    ask_for_events(&mut events, address, id);
    let mut first = [0; 1];
    // The run is driven.
    events.read_exact(&mut first).unwrap();
    let cancelled = parse(&ask(address, "DELETE", &format!("/agents/{id}"), &Value::Null)).unwrap();
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (202, &json!("cancelled")), "{cancelled:?}");
}

#[test]
fn a_run_that_ends_here_is_answered_without_a_look_up_and_as_its_status_says() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let counting = Arc::new(Counting::default());
    let (_runtime, address) = listening(&place, &counting);
    let answer = ask(address, "POST", "/agents/execute", &json!({ "loop": "test", "session": "s" }));
    let answer = parse(&answer).unwrap().json();
    assert_eq!((&answer["status"], &answer["session"]), (&json!("completed"), &json!("s")));
    let asked = counting.asked();
    assert!(!asked.iter().any(|asked| matches!(*asked, "find" | "find_of" | "read" | "read_from")), "{asked:?}");
    let status = format!("/agents/{}/status", answer["agent_run_id"].as_str().unwrap());
    assert_eq!(parse(&ask(address, "GET", &status, &Value::Null)).unwrap().json(), answer);
}
