//! What a program gives to a loop: documents in memory, secrets by value, tools and models by pointer, and models that stream.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loopctl::{
    BoxFuture, DynModel, DynTool, EmbeddedModel, EmbeddedTool, Engine, Listener, Loop, ModelError, ModelReply,
    ModelRequest, Notice, Status, ToolCall, ToolError, ToolFault,
};
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Part {
    /// Its number
    part: String,
}

/// How many of a part a shop has.
struct Stock(u32);

/// An error that is none of `std`, as `anyhow::Error` is none.
struct Report(&'static str);

impl From<Report> for Box<dyn Error + Send + Sync> {
    fn from(report: Report) -> Self {
        report.0.into()
    }
}

impl EmbeddedTool for Stock {
    type Input = Part;
    type Output = u32;
    const NAME: &'static str = "stock";
    const DESCRIPTION: &'static str = "Returns how many of a part there are.";
    const IDEMPOTENT: bool = true;

    async fn call(&self, Part { part }: Part, _: &ToolCall<'_>) -> Result<u32, ToolError> {
        let boxed = || -> Result<u32, Box<dyn Error + Send + Sync>> { Err("of a box".into()) };
        match part.as_str() {
            "boxed" => Ok(boxed()?),
            "report" => Err(Report("of a report"))?,
            _ => Ok(self.0),
        }
    }
}

fn turn(action: &str, input: &Value) -> Value {
    json!({ "thought": "t", "action": action, "action_input": input })
}

fn done() -> Value {
    turn("__complete__", &json!({ "answer": "done" }))
}

fn react(tools: &[Value]) -> Value {
    json!({ "type": "loop", "name": "parts", "properties": { "mode": "react", "objective": "Count.", "tools": tools } })
}

fn tool(name: &str) -> Value {
    json!({ "type": "action", "name": name })
}

fn script(replies: &[Value]) -> loopctl::language::Script {
    serde_json::from_value(json!({ "replies": replies })).unwrap()
}

#[tokio::test]
async fn one_type_is_two_tools_and_a_pointer_is_a_tool() {
    let shared: Arc<dyn DynTool> = Arc::new(Stock(3));
    let replies = [
        turn("stock_north", &json!({ "part": "P-7" })),
        turn("stock_south", &json!({ "part": "P-7" })),
        turn("stock", &json!({ "part": "P-7" })),
        turn("stock", &json!({ "part": "boxed" })),
        turn("stock", &json!({ "part": "report" })),
        done(),
    ];
    let document = react(&[tool("stock_north"), tool("stock_south"), tool("stock")]).to_string();
    let parts = Loop::load_text("parts.json", document)
        .tool(Stock(1).named("stock_north"))
        .tool(Stock(2).named("stock_south"))
        .tool(Arc::clone(&shared))
        .script(script(&replies))
        .build()
        .unwrap();
    let ended = parts.start(Value::Null).await.unwrap();
    assert_eq!(ended.status(), Status::Completed);
    let observed: Vec<String> = ended.state.entries().iter().map(|entry| format!("{:?}", entry.observation)).collect();
    for (observed, count) in observed.iter().zip(["1", "2", "3"]) {
        assert!(observed.contains(count), "{observed}");
    }
    assert!(observed[3..5].iter().all(|observed| observed.contains("failed")), "{observed:?}");
    let stored = parts.engine().journal().read(ended.run_id()).await.unwrap().join("\n");
    assert!(stored.contains("of a box") && stored.contains("of a report"), "{stored}");
    let names: Vec<String> = parts.engine().signatures().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["stock", "stock_north", "stock_south"]);
}

#[tokio::test]
async fn a_project_with_a_loop_that_another_calls_needs_no_file() {
    let main = json!({ "type": "loop", "name": "main", "properties": { "mode": "react", "objective": "Ask.", "model": "own",
        "tools": [{ "type": "loop", "name": "below" }] } });
    let below = json!({ "type": "loop", "name": "below", "description": "Counts.",
        "properties": { "mode": "react", "objective": "Count.", "tools": [tool("stock"), tool("price")] } });
    let actions = json!([{ "action_name": "price", "kind": "command", "description": "Prints a price.",
        "program": "echo", "args": ["5"] }]);
    let replies = json!({ "replies": [turn("below", &json!({})), done()], "loops": { "below": [
        turn("stock", &json!({ "part": "P-7" })), turn("__complete__", &json!({ "answer": "seven" }))] } });
    let main = Loop::load_text("main.json", main.to_string())
        .document("below.json", below.to_string())
        .document("prices.json", actions.to_string())
        .document("loopctl.json", json!({ "allow": { "commands": ["echo"] }, "redact": ["iban"] }).to_string())
        .tool(Stock(7))
        .script(serde_json::from_value(replies).unwrap())
        .build()
        .unwrap();
    assert_eq!(main.program().project.redact, ["iban"]);
    let ended = main.start(Value::Null).await.unwrap();
    assert!(format!("{:?}", ended.state.entries()[0].observation).contains("seven"), "{ended:?}");
}

#[tokio::test]
async fn a_secret_by_value_is_sent_and_shown_nowhere() {
    let server = Server::with(|_, request| {
        let sent = request.header("authorization").unwrap_or_default().to_owned();
        Answer::json(&json!({ "said": sent }))
    });
    let actions = json!([{ "action_name": "ask", "kind": "http", "description": "Asks.", "url": server.url(),
        "http_method": "GET", "headers": { "Authorization": "Bearer orgconfig:shop_key" } }]);
    let replies = [turn("ask", &json!({})), done()];
    let load = |with: bool| {
        let builder = Loop::load_text("ask.json", react(&[tool("ask")]).to_string())
            .document("actions.json", actions.to_string())
            .document("loopctl.json", json!({ "allow": { "private_addresses": true } }).to_string())
            .script(script(&replies));
        if with { builder.secret("shop_key", "k3y-of-the-shop") } else { builder }
    };
    assert!(!format!("{:?}", load(true)).contains("k3y"));
    let refused = load(false).build().unwrap_err().to_string();
    assert!(refused.contains("shop_key"), "{refused}");
    let asks = load(true).build().unwrap();
    let ended = asks.start(Value::Null).id("r").await.unwrap();
    assert_eq!(ended.status(), Status::Completed);
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer k3y-of-the-shop"));
    let stored = asks.engine().journal().read("r").await.unwrap().join("\n");
    assert!(stored.contains("[secret shop_key]") && !stored.contains("k3y-of-the-shop"), "{stored}");
}

/// A model that sends its reply in two pieces, and says what tools it was shown.
struct Typist(Arc<Mutex<Vec<String>>>);

impl EmbeddedModel for Typist {
    async fn reply(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let shown = request.tools().into_iter().map(|tool| format!("{} {}", tool.name, tool.parameters["properties"]));
        self.0.lock().unwrap().extend(shown);
        assert!(request.wants_partial());
        let reply = done().to_string();
        let (first, _) = reply.split_at(20);
        request.partial(first);
        tokio::time::sleep(Duration::from_millis(150)).await;
        request.partial(&reply);
        Ok(reply.into())
    }
}

/// Counts the pieces of replies.
#[derive(Clone, Default)]
struct Pieces(Arc<AtomicU32>);

impl Listener for Pieces {
    fn on(&self, notice: Notice) {
        if matches!(notice, Notice::ModelDelta { .. }) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn wants_deltas(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_model_of_the_program_is_shown_its_tools_and_streams() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let model: Arc<dyn DynModel> = Arc::new(Typist(Arc::clone(&shown)));
    let document = react(&[tool("stock")]).to_string();
    let parts = Loop::load_text("parts.json", document).tool(Stock(1)).model("own", model).build().unwrap();
    let pieces = Pieces::default();
    let ended = parts.start(Value::Null).listener(pieces.clone()).await.unwrap();
    assert_eq!(ended.status(), Status::Completed);
    let heard = pieces.0.load(Ordering::SeqCst);
    assert!(heard >= 2, "{heard}");
    let shown = shown.lock().unwrap();
    assert!(shown.iter().any(|tool| tool.starts_with("stock ") && tool.contains("Its number")), "{shown:?}");
}

#[tokio::test]
async fn loops_that_name_one_store_share_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("runs.db").display());
    let load = |store: &str| {
        let loaded = Loop::load_text("parts.json", react(&[tool("stock")]).to_string()).tool(Stock(1));
        loaded.script(script(&[done()])).store(store).build().unwrap()
    };
    let (one, other) = (load(&store), load(&store));
    assert!(Arc::ptr_eq(one.engine().journal(), other.engine().journal()));
    assert!(!Arc::ptr_eq(load("memory").engine().journal(), load("memory").engine().journal()));
    one.start(Value::Null).id("r").await.unwrap();
    assert_eq!(other.engine().find("r").await.unwrap().unwrap().status, Status::Completed);
    drop((one, other));
    let again = load(&store);
    assert!(again.engine().find("r").await.unwrap().is_some(), "it is opened again after the last one is gone");
}

/// A tool whose name is known at run time only.
struct Fixed;

impl DynTool for Fixed {
    fn name(&self) -> &str {
        "fixed"
    }
    fn description(&self) -> &str {
        "Is fixed."
    }
    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }
    fn call<'a>(&'a self, _: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        Box::pin(async { Ok(json!(1)) })
    }
}

#[test]
fn an_engine_takes_tools_and_models_by_pointer_and_shows_no_secret() {
    let model: Arc<dyn DynModel> = Arc::new(Typist(Arc::default()));
    let builder = Engine::builder(Arc::default(), std::path::Path::new("."));
    let fixed: Arc<dyn DynTool> = Arc::new(Fixed);
    let engine = builder.tool(fixed).model("own", model).secret("key", "hunter2-hunter2".to_owned()).build();
    assert_eq!(engine.signatures().len(), 1);
}
