//! The driver with a script for the model: leases, resumption, cancellation, and what a journal holds.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::engine::{Engine, Resume, Watch};
use super::fault::Fault;
use super::fold;
use super::start::Start;
use super::stop::Stop;
use super::tool::DynTool;
use super::tool::ToolCall;
use crate::drive::future::BoxFuture;
use crate::journal::memory::MemoryJournal;
use crate::journal::{CancelRequest, Journal, StoreError};
use loopctl_engine::event::{Decision, ToolFault};
use loopctl_engine::notice::{Listener, Notice};
use loopctl_engine::outcome::{Status, Termination};
use loopctl_lang::compile::{Texts, compile};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::program::Program;

/// A listener that keeps what it hears.
#[derive(Default)]
pub(super) struct Heard(std::sync::Mutex<Vec<Notice>>);

impl Heard {
    pub(super) fn all(&self) -> Vec<Notice> {
        self.0.lock().unwrap().clone()
    }
}

impl Listener for Heard {
    fn on(&self, notice: Notice) {
        self.0.lock().unwrap().push(notice);
    }
}

/// A tool that signals when it is called, and never returns.
pub(super) struct Hangs(pub(super) Arc<Notify>);

impl DynTool for Hangs {
    fn name(&self) -> &str {
        "hangs"
    }
    fn description(&self) -> &str {
        "Hangs."
    }
    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }
    fn call<'a>(&'a self, _: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

pub(super) fn compiled(properties: &Value, actions: &[&str]) -> Arc<Program> {
    let mut all = json!({ "mode": "react", "objective": "Do it.", "tools": [{ "type": "action", "name": "hangs" }] });
    for (name, value) in properties.as_object().unwrap() {
        all[name] = value.clone();
    }
    let registered: Vec<Value> = actions
        .iter()
        .map(|name| {
            json!({ "action_name": name, "kind": "http", "description": "Does it.", "url": "https://x.example/",
                "http_method": "POST", "parameters": { "type": "object" } })
        })
        .collect();
    let document = json!({ "type": "loop", "actions": registered, "properties": all });
    let mut texts = Texts::new(Source::new("loop.json", document.to_string()));
    texts.embedded = vec![Hangs(Arc::default()).signature()];
    let compiled = compile(&texts);
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

#[allow(clippy::needless_pass_by_value, reason = "what is handed in is made for it")]
pub(super) fn think(action: &str, input: Value) -> Value {
    json!({ "thought": "t", "action": action, "action_input": input })
}

pub(super) fn complete() -> Value {
    think("__complete__", json!({ "answer": "done" }))
}

pub(super) struct Place {
    pub engine: Engine,
    pub called: Arc<Notify>,
}

fn place_in(journal: Arc<dyn Journal>, program: &Program, replies: &[Value], tools: &Value) -> Place {
    let called = Arc::new(Notify::new());
    let script = serde_json::from_str(&json!({ "replies": replies, "tools": tools }).to_string()).unwrap();
    let engine = Engine::builder(program.project.clone(), std::path::Path::new("."))
        .journal(journal)
        .tool(Hangs(Arc::clone(&called)))
        .script(script)
        .build();
    Place { engine, called }
}

pub(super) fn place(program: &Program, replies: &[Value], tools: &Value) -> Place {
    place_in(Arc::new(MemoryJournal::new()), program, replies, tools)
}

pub(super) fn start() -> Start {
    Start { run_id: Some("r".to_owned()), ..Start::default() }
}

/// Only checks that it compiles.
fn is_send<T: Send>(_: &T) {}

#[tokio::test]
async fn a_run_can_be_spawned_on_any_thread() {
    let program = compiled(&json!({}), &[]);
    let Place { engine, .. } = place(&program, &[], &json!({}));
    is_send(&engine.run(&program, start(), Watch::default()));
    is_send(&engine.resume(&program, "r", Resume::default(), Watch::default()));
    is_send(&engine.cancel(&program, "r", CancelRequest::default()));
    fn is_static<T: Send + Sync + 'static>(_: &T) {}
    is_static(&engine);
}

#[tokio::test]
async fn a_run_that_is_dropped_gives_its_lease_back() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = crate::journal::open("sqlite:runs.db", folder.path()).unwrap();
    let memory: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    for journal in [memory, sqlite] {
        let program = compiled(&json!({}), &[]);
        let Place { engine, called } =
            place_in(journal, &program, &[think("hangs", json!({})), complete()], &json!({}));
        tokio::select! {
            ended = engine.run(&program, start(), Watch::default()) => panic!("{ended:?}"),
            () = called.notified() => {}
        }
        let resumed = engine.resume(&program, "r", Resume::default(), Watch::default()).await.unwrap();
        assert_eq!(resumed.pause().map(|pause| pause.question.kind), Some(Termination::Uncertain));
        tokio::select! {
            ended = engine.resume(&program, "r", Resume::with(Decision::Retry), Watch::default()) => panic!("{ended:?}"),
            () = called.notified() => {}
        }
        assert_eq!(engine.cancel(&program, "r", CancelRequest::default()).await.unwrap(), Status::Cancelled);
    }
}

struct Panics;

impl Listener for Panics {
    fn on(&self, notice: Notice) {
        assert!(!matches!(notice, Notice::ModelReplied { .. }), "the listener's own fault");
    }
}

#[tokio::test]
async fn a_listener_that_panics_ends_no_run() {
    let program = compiled(&json!({}), &[]);
    let Place { engine, .. } =
        place(&program, &[think("__log_progress__", json!({ "message": "m" })), complete()], &json!({}));
    let watch = Watch { listener: Some(&Panics), stop: None };
    let finished = engine.run(&program, start(), watch).await.unwrap();
    assert_eq!(finished.status(), Status::Completed);
}

#[tokio::test]
async fn a_refused_decision_leaves_the_run_free() {
    let program = compiled(&json!({}), &[]);
    let replies = [think("__pause_for_human__", json!({ "question": "q" })), complete()];
    let Place { engine, .. } = place(&program, &replies, &json!({}));
    engine.run(&program, start(), Watch::default()).await.unwrap();
    for wrong in [Decision::Approve, Decision::Retry] {
        let refused = engine.resume(&program, "r", Resume::with(wrong), Watch::default()).await;
        assert!(matches!(refused, Err(Fault::Refused(_))));
    }
    let other = compiled(&json!({ "max_iterations": 3 }), &[]);
    let changed = engine.resume(&other, "r", Resume::default(), Watch::default()).await;
    assert!(matches!(changed, Err(Fault::Changed { .. })));
    let answer = Resume::with(Decision::Answer("a".to_owned()));
    assert_eq!(engine.resume(&program, "r", answer, Watch::default()).await.unwrap().status(), Status::Completed);
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!([]), |inner, _| json!([inner]))
}

#[tokio::test]
async fn no_result_of_a_tool_makes_a_journal_unreadable() {
    let program = compiled(&json!({ "tools": [{ "type": "action", "name": "post" }] }), &["post"]);
    // As a text in the script's JSON: a tool may return what a parser makes of it.
    let inner = nested(126).to_string();
    let raw = json!({ "$serde_json::private::RawValue": format!("[{inner}]") }).to_string();
    let results = format!("[{}, {raw}]", nested(124));
    let script = format!(
        "{{\"replies\": {}, \"tools\": {{\"post\": {results}}}}}",
        json!([think("post", json!({})), think("post", json!({ "n": 2 })), complete()])
    );
    let script: Result<loopctl_lang::language::Script, _> = serde_json::from_str(&script);
    let Ok(script) = script else { panic!("{script:?}") };
    let engine = Engine::builder(program.project.clone(), std::path::Path::new(".")).script(script).build();
    let ended = engine.run(&program, start(), Watch::default()).await.unwrap();
    assert_eq!(ended.status(), Status::Completed);
    assert_eq!(engine.state(&program, "r").await.unwrap(), ended.state, "the journal is read back");
}

#[tokio::test]
async fn an_input_that_could_not_be_read_back_begins_no_run() {
    let program = compiled(&json!({}), &[]);
    let Place { engine, .. } = place(&program, &[complete()], &json!({}));
    let start = Start { input: json!({ "deep": nested(126) }), ..start() };
    let refused = engine.run(&program, start, Watch::default()).await;
    assert!(matches!(refused, Err(Fault::Refused(_))), "{refused:?}");
    assert_eq!(engine.find("r").await.unwrap(), None);
}

#[tokio::test]
async fn what_a_session_remembers_makes_no_journal_unreadable() {
    let program = compiled(&json!({}), &[]);
    let folder = tempfile::tempdir().unwrap();
    let journal = crate::journal::open("sqlite:runs.db", folder.path()).unwrap();
    let replies = [121, 124, 100].map(|depth| {
        let value = nested(depth);
        json!(think("__store_memory__", json!({ "key": depth.to_string(), "value": value })).to_string())
    });
    let replies = [replies.as_slice(), &[complete()]].concat();
    let Place { engine, .. } = place_in(journal, &program, &replies, &json!({}));
    let start = |id: &str| Start { run_id: Some(id.to_owned()), session: Some("s".to_owned()), ..Start::default() };
    for id in ["a", "b"] {
        let ended = engine.run(&program, start(id), Watch::default()).await.unwrap();
        assert_eq!(ended.status(), Status::Completed);
        assert_eq!(ended.state.as_loop().unwrap().memory.keys().collect::<Vec<_>>(), ["100"]);
        assert_eq!(engine.state(&program, id).await.unwrap(), ended.state, "the journal is read back");
    }
}

#[tokio::test]
async fn a_script_answers_a_call_that_was_approved_late_with_its_first_entry() {
    let tools = json!([{ "type": "action", "name": "post", "requires_approval": true }]);
    let program = compiled(&json!({ "tools": tools }), &["post"]);
    let replies = [think("post", json!({ "n": 1 })), think("post", json!({ "n": 2 })), complete()];
    let Place { engine, .. } = place(&program, &replies, &json!({ "post": ["first", "second"] }));
    engine.run(&program, start(), Watch::default()).await.unwrap();
    for _ in 0..2 {
        engine.resume(&program, "r", Resume::with(Decision::Approve), Watch::default()).await.unwrap();
    }
    let state = engine.state(&program, "r").await.unwrap();
    let seen: Vec<_> = state.entries().iter().take(2).map(|entry| entry.observation.value()).collect();
    assert_eq!(seen, [json!("first"), json!("second")]);
}

#[tokio::test]
async fn a_run_goes_on_with_a_new_document_and_can_be_read_ever_after() {
    let asks = think("__pause_for_human__", json!({ "question": "q" }));
    let replies =
        [asks, think("post", json!({})), think("__pause_for_human__", json!({ "question": "more?" })), complete()];
    let old = compiled(&json!({}), &[]);
    let tools = json!([{ "type": "action", "name": "post" }]);
    let new = compiled(&json!({ "tools": tools }), &["post"]);
    let Place { engine, .. } = place(&old, &replies, &json!({ "post": ["posted"] }));
    engine.run(&old, start(), Watch::default()).await.unwrap();
    let answer = |new_document| Resume { new_document, ..Resume::with(Decision::Answer("a".to_owned())) };
    let changed = engine.resume(&new, "r", answer(false), Watch::default()).await;
    assert!(matches!(changed, Err(Fault::Changed { .. })));
    let paused = engine.resume(&new, "r", answer(true), Watch::default()).await.unwrap();
    assert_eq!(paused.state.entries()[1].observation.value(), json!("posted"));
    // From now on the run has the new document.
    assert_eq!(engine.state(&new, "r").await.unwrap(), paused.state);
    let events = engine.events("r").await.unwrap();
    assert_eq!(fold::texts("run", &events, None).unwrap().main.text, new.sources[0].text);
    let changed = engine.resume(&old, "r", answer(false), Watch::default()).await;
    assert!(matches!(changed, Err(Fault::Changed { .. })));
    // A document that the earlier events do not fit is refused before anything is written.
    for unfit in [old.clone(), compiled(&json!({ "tools": tools, "max_iterations": 1 }), &["post"])] {
        let refused = engine.resume(&unfit, "r", answer(true), Watch::default()).await;
        assert!(matches!(refused, Err(Fault::Refused(_))), "{refused:?}");
    }
    assert_eq!(engine.events("r").await.unwrap().len(), events.len());
    let ended = engine.resume(&new, "r", answer(false), Watch::default()).await.unwrap();
    assert_eq!(ended.status(), Status::Completed);
}

/// Requests the end of the run at the moment when its driver is about to leave.
struct AsksForTheEnd(Arc<dyn Journal>);

impl Listener for AsksForTheEnd {
    fn on(&self, notice: Notice) {
        if matches!(notice, Notice::Paused { .. }) {
            drop(self.0.request_cancel("r", CancelRequest { reason: Some("enough".to_owned()), by: None }));
        }
    }
}

#[tokio::test]
async fn events_name_the_documents_and_the_prompt_and_a_run_without_them_is_unreadable() {
    let program = compiled(&json!({}), &[]);
    let Place { engine, .. } = place(&program, &[complete()], &json!({}));
    engine.run(&program, start(), Watch::default()).await.unwrap();
    let events = engine.journal().read("r").await.unwrap();
    assert!(!events[0].contains("You are an agent") && !events[0].contains("\"mode\""), "{}", events[0]);
    let texts = engine.journal().texts("r").await.unwrap();
    let read = fold::events("r", &events, &texts).unwrap();
    assert_eq!(fold::documents(&read).unwrap()[0].text.shared(), &program.sources[0].text);
    let fault = fold::events("r", &events, &texts[..1]).unwrap_err();
    assert!(fault.to_string().contains("event 0: its text") && fault.code() == "journal_unreadable", "{fault}");
}

#[tokio::test]
async fn an_end_that_is_asked_for_while_the_driver_leaves_is_not_lost() {
    let program = compiled(&json!({}), &[]);
    let replies = [think("__pause_for_human__", json!({ "question": "q" })), complete()];
    let Place { engine, .. } = place(&program, &replies, &json!({}));
    let listener = AsksForTheEnd(Arc::clone(engine.journal()));
    let watch = Watch { listener: Some(&listener), stop: None };
    let ended = engine.run(&program, start(), watch).await.unwrap();
    assert_eq!(ended.status(), Status::Cancelled);
    assert_eq!(engine.find("r").await.unwrap().unwrap().status, Status::Cancelled);
}

#[tokio::test]
async fn an_end_that_was_asked_for_before_the_run_is_taken_up_comes_before_the_next_call() {
    let program = compiled(&json!({}), &[]);
    let replies = [think("__pause_for_human__", json!({ "question": "q" })), complete()];
    let Place { engine, .. } = place(&program, &replies, &json!({}));
    engine.run(&program, start(), Watch::default()).await.unwrap();
    engine.journal().request_cancel("r", CancelRequest::default()).await.unwrap();
    let answer = Resume::with(Decision::Answer("a".to_owned()));
    let ended = engine.resume(&program, "r", answer, Watch::default()).await.unwrap();
    assert_eq!((ended.status(), ended.state.counters.iterations), (Status::Cancelled, 1));
}

#[tokio::test]
async fn the_same_start_again_is_the_same_run_and_another_one_a_conflict() {
    let program = compiled(&json!({}), &[]);
    let Place { engine, .. } = place(&program, &[complete()], &json!({}));
    let with = |input: Value| Start { input, ..start() };
    let first = engine.run(&program, with(json!({ "a": 1, "b": 2 })), Watch::default()).await.unwrap();
    let again = engine.run(&program, with(json!({ "b": 2, "a": 1 })), Watch::default()).await.unwrap();
    assert_eq!(first.state, again.state);
    for other in [
        with(json!({ "a": 1, "b": 3 })),
        Start { timeout_ms: Some(5), ..with(json!({ "a": 1, "b": 2 })) },
        Start { model: Some("other".to_owned()), ..with(json!({ "a": 1, "b": 2 })) },
        Start { session: Some("s".to_owned()), ..with(json!({ "a": 1, "b": 2 })) },
    ] {
        assert!(matches!(engine.run(&program, other, Watch::default()).await, Err(Fault::Conflict(_))));
    }
}

#[tokio::test]
async fn an_interrupted_run_is_listed_as_cancelled_and_goes_on_by_the_same_start() {
    let program = compiled(&json!({}), &[]);
    let Place { engine, called } = place(&program, &[think("hangs", json!({})), complete()], &json!({}));
    let stop = Stop::new();
    stop.after_step();
    let watch = Watch { listener: None, stop: Some(stop) };
    engine.run(&program, start(), watch).await.unwrap();
    let listed = engine.find("r").await.unwrap().unwrap();
    assert_eq!((listed.status, listed.termination), (Status::Cancelled, None), "it has not ended");

    // Now during the call: it may have happened.
    let stop = Stop::new();
    let watch = Watch { listener: None, stop: Some(stop.clone()) };
    let stops = async {
        called.notified().await;
        stop.now();
    };
    let (stopped, ()) = tokio::join!(engine.run(&program, start(), watch), stops);
    assert_eq!(stopped.unwrap().status(), Status::Cancelled);
    let again = engine.run(&program, start(), Watch::default()).await.unwrap();
    assert_eq!(again.pause().map(|pause| pause.question.kind), Some(Termination::Uncertain));
    let happened = Resume::with(Decision::Happened(json!("did")));
    let ended = engine.resume(&program, "r", happened, Watch::default()).await.unwrap();
    assert_eq!((ended.status(), ended.state.counters.tool_calls_made), (Status::Completed, 1));
}

#[tokio::test]
async fn a_driven_run_is_not_driven_twice() {
    let program = compiled(&json!({}), &[]);
    let Place { engine, called } = place(&program, &[think("hangs", json!({})), complete()], &json!({}));
    let stop = Stop::new();
    let watch = Watch { listener: None, stop: Some(stop.clone()) };
    let others = async {
        called.notified().await;
        let second = engine.resume(&program, "r", Resume::default(), Watch::default()).await;
        assert!(matches!(second, Err(Fault::Store(StoreError::Driven(_)))), "{second:?}");
        assert_eq!(
            engine.cancel(&program, "r", CancelRequest { reason: Some("enough".to_owned()), by: None }).await.unwrap(),
            Status::Running
        );
    };
    let (ended, ()) = tokio::join!(engine.run(&program, start(), watch), others);
    assert_eq!(ended.unwrap().status(), Status::Cancelled);
}

#[tokio::test]
async fn a_listener_hears_all_notices_in_order() {
    let program = compiled(&json!({}), &[]);
    let replies = [think("__log_progress__", json!({ "message": "m" })), complete()];
    let Place { engine, .. } = place(&program, &replies, &json!({}));
    let listener = Heard::default();
    engine.run(&program, start(), Watch { listener: Some(&listener), stop: None }).await.unwrap();
    let name = |notice: &Notice| serde_json::to_value(notice).unwrap()["event"].as_str().unwrap().to_owned();
    let names: Vec<String> = listener.all().iter().map(name).collect();
    let expected =
        "run_started model_asked model_replied observed progress model_asked model_replied observed run_ended";
    assert_eq!(names.join(" "), expected);
}
