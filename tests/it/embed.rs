//! What an embedder writes: typed tools, errors by `?`, answers as types, and what a loop that can't be loaded says.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use loopctl::engine::event::Decided;
use loopctl::{
    AnswerError, Decision, EmbeddedModel, EmbeddedTool, Fault, Finished, Listener, LoadError, Loop, Missing,
    ModelError, ModelReasoning, ModelReply, ModelRequest, Notice, Refused, Status, Stop, ToolCall, ToolError,
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, schemars::JsonSchema)]
struct Parcel {
    /// Its weight in grams
    grams: u8,
}

/// Divides 100 by the weight; a weight of 0 is a parse error, and 1 an error with a class.
struct Shares;

impl EmbeddedTool for Shares {
    type Input = Parcel;
    type Output = u8;
    const NAME: &'static str = "shares";
    const DESCRIPTION: &'static str = "Divides.";

    async fn call(&self, parcel: Parcel, _: &ToolCall<'_>) -> Result<u8, ToolError> {
        match parcel.grams {
            0 => Ok("not a number".parse()?),
            1 => Err(ToolError::new("too light").detail("the scale says 1 g")),
            grams => Ok(100 / grams),
        }
    }
}

const DOCUMENT: &str = r#"{"type": "loop", "properties": {"mode": "react", "objective": "Share.",
    "tools": [{"type": "action", "name": "shares"}]}}"#;

fn shares(grams: &[u32], end: &Value) -> Loop {
    let call = |grams: &u32| json!({"thought": "t", "action": "shares", "action_input": {"grams": grams}});
    let replies: Vec<Value> = grams.iter().map(call).chain([end.clone()]).collect();
    let script = serde_json::from_value(json!({ "replies": replies })).unwrap();
    Loop::load_text("shares.json", DOCUMENT).tool(Shares).script(script).build().unwrap()
}

fn answer(value: &Value) -> Value {
    json!({"thought": "t", "action": "__complete__", "action_input": {"answer": value}})
}

fn prompt(finished: &Finished) -> String {
    format!("{:?}", finished.state.as_loop().unwrap().conversation)
}

#[tokio::test]
async fn a_typed_tool_takes_its_type_and_gives_its_value() {
    let run = shares(&[50], &answer(&json!({"grams": 2}))).start(Value::Null).await.unwrap();
    assert!(prompt(&run).contains("Its weight in grams"), "the model reads the doc comment of a field");
    assert_eq!(run.answer_as::<Parcel>().unwrap().grams, 2);
    let wrong = run.answer_as::<u8>().unwrap_err();
    assert!(matches!(&wrong, AnswerError::Type(_)), "{wrong}");
}

#[tokio::test]
async fn an_error_by_the_question_mark_is_an_observation_without_its_text() {
    let run = shares(&[0, 1, 300], &answer(&json!("done"))).start(Value::Null).await.unwrap();
    let prompt = prompt(&run);
    assert!(prompt.contains("failed") && prompt.contains("too light"), "{prompt}");
    assert!(!prompt.contains("invalid digit") && !prompt.contains("scale"), "details are for the trace: {prompt}");
    // 300 is no u8: the schema has its maximum, so the call was refused before it was made.
    assert!(prompt.contains("255"), "{prompt}");
    assert_eq!(run.status(), Status::Completed);
}

#[tokio::test]
async fn a_run_without_an_answer_says_where_it_is() {
    let ask = json!({"thought": "t", "action": "__pause_for_human__", "action_input": {"question": "Which one?"}});
    let run = shares(&[], &ask).start(Value::Null).await.unwrap();
    assert_eq!(run.answer_as::<String>().unwrap_err().to_string(), "the run has no answer: it is paused: Which one?");
}

#[test]
fn a_document_with_errors_is_refused_with_a_line_for_each() {
    let text = DOCUMENT.replace("\"shares\"", "\"share\"").replace("objective", "objectiv");
    let error = Loop::load_text("shares.json", text).tool(Shares).build().unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines[0], "the document has errors");
    assert!(lines.len() > 2 && lines[1..].iter().all(|line| line.starts_with("shares.json:")), "{error}");
    let missing = Loop::load("no/such/loop.json").build().unwrap_err().to_string();
    assert!(missing.contains("no/such/loop.json"), "{missing}");
}

#[tokio::test]
async fn a_loop_keeps_its_runs_in_the_store_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("runs.db").display());
    let script = || serde_json::from_value(json!({"replies": [answer(&json!("done"))]})).unwrap();
    let load = || Loop::load_text("shares.json", DOCUMENT).tool(Shares).store(&store).script(script()).build();
    let first = load().unwrap().start(Value::Null).await.unwrap();
    let again = load().unwrap();
    assert_eq!(again.engine().find(first.run_id()).await.unwrap().unwrap().status, Status::Completed);
    let wrong = Loop::load_text("shares.json", DOCUMENT).tool(Shares).store("nowhere:x").build().unwrap_err();
    assert!(matches!(wrong, LoadError::Store(_)), "{wrong}");
}

/// Fails once, then calls the tool, then completes with what it read last.
struct Scripted(AtomicU32);

impl EmbeddedModel for Scripted {
    async fn reply(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let call = |action: &str, input: Value| json!({"thought": "t", "action": action, "action_input": input});
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Err("not a number".parse::<u8>().unwrap_err().into()),
            1 => Ok(call("shares", json!({"grams": 50})).to_string().into()),
            2 => {
                let body: Value = serde_json::from_slice(&request.openai_body())?;
                let last = request.messages().last().map(|message| message.text.to_string());
                assert_eq!(body["messages"].as_array().unwrap().len(), request.messages().len());
                Ok(call("__complete__", json!({ "answer": last })).to_string().into())
            }
            _ => panic!("asked once too often"),
        }
    }
}

fn with_model(model: impl EmbeddedModel) -> Loop {
    let text = DOCUMENT.replace(r#""mode""#, r#""retry": {"attempts": 2, "base_ms": 1, "max_ms": 1}, "mode""#);
    Loop::load_text("shares.json", text).tool(Shares).model("own", model).build().unwrap()
}

#[tokio::test]
async fn a_model_of_the_embedder_is_asked_with_retries_and_needs_no_name() {
    let run = with_model(Scripted(AtomicU32::new(0))).start(Value::Null).await.unwrap();
    assert!(run.answer_as::<String>().unwrap().contains('2'), "the observation of the call was its last message");
    assert_eq!((run.status(), run.state.counters.model_retries), (Status::Completed, 1));
}

/// Fails for good, or panics.
struct Broken {
    panics: bool,
}

impl EmbeddedModel for Broken {
    async fn reply(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        assert!(!self.panics, "out of order");
        Err(ModelError::lasting("no such model"))
    }
}

#[tokio::test]
async fn a_model_that_panics_or_refuses_fails_the_run_and_not_the_program() {
    for (panics, why) in [(true, "the model \"own\" panicked: out of order"), (false, "no such model")] {
        let run = with_model(Broken { panics }).start(Value::Null).await.unwrap();
        let error = run.answer_as::<String>().unwrap_err().to_string();
        assert!(run.status() == Status::Failed && error.contains(why), "{error}");
        assert_eq!(run.state.counters.model_retries, 0);
    }
}

/// What a model was sent for each request: the texts of the conversation, and what came back of its reasoning.
type Sent = Arc<Mutex<Vec<(Vec<String>, Vec<String>)>>>;

/// Calls the tool twice and completes, and gives each reply a reasoning.
struct Thinker(Sent);

impl EmbeddedModel for Thinker {
    async fn reply(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let texts = request.messages().iter().map(|message| message.text.to_string()).collect();
        let returned = request.messages().iter().filter_map(|message| request.reasoning(message));
        let returned: Vec<String> = returned.map(str::to_owned).collect();
        let number = returned.len();
        self.0.lock().unwrap().push((texts, returned));
        let turn = match number {
            0 | 1 => json!({"action": "shares", "action_input": {"grams": 10 + number}}),
            _ => json!({"action": "__complete__", "action_input": {"answer": "done"}}),
        };
        let opaque = format!("blob {number} \u{0} \"\u{1f600}\" \\u0021");
        let reasoning = ModelReasoning { opaque, text: format!("I think {number} times.") };
        Ok(ModelReply { text: turn.to_string(), reasoning: Some(reasoning), ..ModelReply::default() })
    }
}

/// Stops the run at a notice, as a process that ends does.
struct Leaver {
    stop: Stop,
    left: AtomicU32,
    how: fn(&Stop),
}

impl Listener for Leaver {
    fn on(&self, _: Notice) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            (self.how)(&self.stop);
        }
    }
}

fn thinker(sent: &Sent, store: &str) -> Loop {
    let model = Thinker(Arc::clone(sent));
    Loop::load_text("shares.json", DOCUMENT).tool(Shares).model("own", model).store(store).build().unwrap()
}

#[tokio::test]
async fn the_reasoning_of_an_embedders_model_comes_back_the_same_after_a_resume_at_any_step() {
    let whole = Sent::default();
    let run = thinker(&whole, "memory").start(Value::Null).await.unwrap();
    let thoughts: Vec<&str> = run.state.entries().iter().map(|entry| &*entry.thought).collect();
    assert_eq!(thoughts, ["I think 0 times.", "I think 1 times.", "I think 2 times."]);
    let whole = whole.lock().unwrap().clone();
    assert_eq!(whole[2].1, ["blob 0 \u{0} \"\u{1f600}\" \\u0021", "blob 1 \u{0} \"\u{1f600}\" \\u0021"]);
    let mut resumed = 0;
    for step in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("runs.db").display());
        let sent = Sent::default();
        let leaver = Leaver { stop: Stop::new(), left: AtomicU32::new(step), how: Stop::leave };
        let (loaded, stop) = (thinker(&sent, &store), leaver.stop.clone());
        let first = loaded.start(Value::Null).id("r").listener(leaver).stop(&stop).await.unwrap();
        if first.status() != Status::Completed {
            resumed += 1;
            let ended = thinker(&sent, &store).resume("r").await.unwrap();
            assert_eq!(ended.status(), Status::Completed, "step {step}");
        }
        let mut sent = sent.lock().unwrap().clone();
        sent.dedup();
        assert_eq!(sent, whole, "step {step}");
    }
    assert!(resumed > 3, "{resumed}");
}

#[tokio::test]
async fn a_restart_finds_what_was_left_or_interrupted_and_nothing_that_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("runs.db").display());
    let sent = Sent::default();
    for id in ["left", "interrupted", "cancelled"] {
        let how = if id == "left" { Stop::leave } else { Stop::after_step };
        let stopper = Leaver { stop: Stop::new(), left: AtomicU32::new(3), how };
        let (loaded, stop) = (thinker(&sent, &store), stopper.stop.clone());
        let run = loaded.start(Value::Null).id(id).listener(stopper).stop(&stop).await.unwrap();
        let status = if id == "left" { Status::Running } else { Status::Cancelled };
        assert_eq!(run.status(), status, "{id}");
    }
    let next = thinker(&sent, &store);
    assert_eq!(next.handle("cancelled").cancel("").await.unwrap(), Status::Cancelled);
    next.start(Value::Null).id("done").await.unwrap();
    let found = next.unfinished().await.unwrap();
    assert_eq!(found, ["left", "interrupted"]);
    for id in found {
        assert_eq!(next.resume(&id).await.unwrap().status(), Status::Completed);
    }
    assert!(next.unfinished().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_embedder_waits_for_the_runs_that_its_runs_started() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("workflows")).unwrap();
    let write = |name: &str, value: Value| std::fs::write(place.path().join(name), value.to_string()).unwrap();
    write(
        "loop.json",
        json!({ "type": "loop", "properties": { "mode": "react", "objective": "Start it.",
            "tools": [{ "type": "workflow", "name": "later", "wait": false }] } }),
    );
    let step = json!({ "type": "loop", "properties": { "mode": "react", "objective": "x", "tools": [],
        "result_key": "found" } });
    write(
        "workflows/later.json",
        json!({ "name": "later", "description": "Later.", "definition": { "actions": [step] } }),
    );
    let call = json!({"thought": "t", "action": "later", "action_input": {}});
    let found = json!({ "found": [answer(&json!("it"))] });
    let script = serde_json::from_value(json!({ "replies": [call, answer(&json!("ok"))], "loops": found })).unwrap();
    let looped = Loop::load(place.path().join("loop.json")).script(script).build().unwrap();
    let run = looped.start(Value::Null).await.unwrap();
    looped.engine().started_runs_ended().await;
    let own = looped.engine().find(&format!("{}.1.0", run.run_id())).await.unwrap().unwrap();
    assert_eq!((own.status, own.parent_run_id), (Status::Completed, None));
}

/// A listener of a host that has a fault.
struct Faulty;

impl Listener for Faulty {
    fn on(&self, _: Notice) {
        panic!("a fault of the host");
    }
}

#[tokio::test]
async fn a_listener_that_panics_ends_no_run() {
    let shares = shares(&[50], &answer(&json!("2 each")));
    let ended = shares.start(Value::Null).listener(Faulty).await.unwrap();
    assert_eq!(ended.answer_as::<String>().unwrap(), "2 each");
}

#[tokio::test]
async fn a_loop_of_a_file_keeps_its_runs_in_the_store_of_its_project() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("loopctl.json", r#"{"store": "sqlite:runs.db"}"#);
    write("loop.json", DOCUMENT);
    let load = |said: &str| {
        let script = serde_json::from_value(json!({ "replies": [answer(&json!(said))] })).unwrap();
        Loop::load(folder.path().join("loop.json")).tool(Shares).script(script)
    };
    // A run whose id is taken is the one that is there.
    let run = async |shares: Loop| shares.start(Value::Null).id("kept").await.unwrap().answer_as::<String>().unwrap();
    assert_eq!(run(load("first").build().unwrap()).await, "first");
    assert_eq!(run(load("second").build().unwrap()).await, "first");
    assert_eq!(run(load("third").store("memory").build().unwrap()).await, "third");
}

#[tokio::test]
async fn what_is_refused_and_what_is_missing_has_a_variant_of_its_own() {
    let ended = shares(&[50], &answer(&json!("done")));
    let run = ended.start(Value::Null).await.unwrap();
    let fault = ended.resume(run.run_id()).decide(Decision::Approve).await.unwrap_err();
    assert!(matches!(fault, Fault::Refused(Refused::Ended { status: Status::Completed })), "{fault:?}");

    let asks = DOCUMENT.replace("\"name\": \"shares\"", "\"name\": \"shares\", \"requires_approval\": true");
    let script = json!({ "replies": [
        { "thought": "t", "action": "shares", "action_input": { "grams": 50 } }, answer(&json!("done"))] });
    let script = serde_json::from_value(script).unwrap();
    let waits = Loop::load_text("shares.json", asks).tool(Shares).script(script).build().unwrap();
    let run = waits.start(Value::Null).await.unwrap();
    assert_eq!(run.status(), Status::Paused);
    let other = Decided { hash: Some(format!("sha256:{}", "0".repeat(64))), ..Decided::from(Decision::Approve) };
    let fault = waits.resume(run.run_id()).decide(other).await.unwrap_err();
    assert!(matches!(fault, Fault::Refused(Refused::Unseen)), "{fault:?}");
    assert_eq!(waits.resume(run.run_id()).decide(Decision::Approve).await.unwrap().status(), Status::Completed);

    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, value: Value| std::fs::write(place.path().join(name), value.to_string()).unwrap();
    write("loopctl.json", json!({ "orgconfig": { "key": "env:LOOPCTL_TEST_ABSENT" } }));
    let action = json!({ "action_name": "ask", "kind": "http", "description": "Asks.", "url": "https://shop.example.com",
        "http_method": "GET", "headers": { "Authorization": "orgconfig:key" } });
    write(
        "loop.json",
        json!({ "type": "loop", "properties": { "mode": "react", "objective": "Ask.", "model": "gpt-x",
            "tools": [{ "type": "action", "name": "ask" }] }, "actions": [action] }),
    );
    let needs = Loop::load(place.path().join("loop.json")).store("memory").build().unwrap();
    let fault = needs.start(Value::Null).await.unwrap_err();
    let Fault::Missing(missing) = &fault else { panic!("{fault:?}") };
    let what: Vec<Missing> = missing.iter().map(|missing| missing.what.clone()).collect();
    let (model, secret) = (Missing::Model { name: "gpt-x".into() }, Missing::Secret { name: "key".into() });
    assert!(what.contains(&model) && what.contains(&secret), "{what:?}");
    let error: &dyn std::error::Error = &missing[0];
    assert_eq!((error.to_string(), missing[0].pointer.as_str()), (missing[0].why.clone(), "/models/gpt-x"));
}
