//! Tools of the program around the engine: as steps of workflows, under a service, and by the file that names them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use loopctl::serve::{ServeError, ServerOptions, Service};
use loopctl::testing::{Scenarios, ScenariosError};
use loopctl::{
    Decision, EmbeddedModel, EmbeddedTool, Engine, Fault, Loop, ModelError, ModelReply, ModelRequest, Status, ToolCall,
    ToolError,
};
use serde_json::{Value, json};

use crate::common::Place;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Part {
    /// Its number, like P-7
    part: String,
}

/// Counts its calls. P-0 panics, and P-1 is unknown.
#[derive(Clone, Default)]
struct Stock(Arc<AtomicU32>);

impl EmbeddedTool for Stock {
    type Input = Part;
    type Output = Value;
    const NAME: &'static str = "stock";
    const DESCRIPTION: &'static str = "Returns how many of a part are in stock.";

    async fn call(&self, Part { part }: Part, call: &ToolCall<'_>) -> Result<Value, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match part.as_str() {
            "P-0" => panic!("no such shelf"),
            "P-1" => Err(ToolError::new("unknown part")),
            part => Ok(json!({ "part": part, "in_stock": 12, "run": call.run_id })),
        }
    }
}

/// The tool of another version of the program: it takes more.
struct Recount;

impl EmbeddedTool for Recount {
    type Input = Value;
    type Output = Value;
    const NAME: &'static str = "stock";
    const DESCRIPTION: &'static str = "Returns how many of a part are in stock.";

    async fn call(&self, part: Value, _: &ToolCall<'_>) -> Result<Value, ToolError> {
        Ok(part)
    }
}

/// Completes with what it is.
struct Parrot;

impl EmbeddedModel for Parrot {
    async fn reply(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let reply = json!({ "thought": "t", "action": "__complete__", "action_input": { "answer": "a parrot" } });
        Ok(reply.to_string().into())
    }
}

fn engine(stock: &Stock) -> Engine {
    Engine::builder(Arc::default(), Path::new(".")).tool(stock.clone()).model("parrot", Parrot).build()
}

fn step(properties: &Value) -> Value {
    json!({ "type": "stock", "properties": properties })
}

/// A workflow that asks for a part, for each part of a list, and for another one when a step fails.
fn parts() -> Value {
    let each = json!({ "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.parts",
        "item_variable_name": "one", "failure_strategy": "stop_on_error", "collect_results": true, "result_key": "each",
        "actions_to_execute": [step(&json!({ "part": "@one" }))] } });
    json!({
        "name": "parts",
        "input": { "type": "object", "properties": { "parts": { "type": "array", "items": { "type": "string" } } },
            "required": ["parts"] },
        "definition": {
            "actions": [{ "type": "stock", "properties": { "part": "P-7" }, "outputKey": "first" }, each],
            "on_failure": [step(&json!({ "part": "P-9" }))],
            "output": { "first": "@first.in_stock", "each": "@each" },
        },
    })
}

/// The project file that names the tools, and their file.
fn named(place: &Place, stock: &Stock) {
    place.json("loopctl.json", &json!({ "embedded": "tools.json" }));
    place.json("tools.json", &serde_json::to_value(engine(stock).signatures()).unwrap());
}

#[tokio::test]
async fn a_tool_is_a_step_of_a_workflow_of_its_items_and_of_on_failure() {
    let stock = Stock::default();
    let flow = Loop::load_text("parts.json", parts().to_string()).engine(&engine(&stock)).build().unwrap();
    assert!(flow.warnings().is_empty(), "{:?}", flow.warnings());
    let run = flow.start(json!({ "parts": ["P-2", "P-3"] })).await.unwrap();
    let answer: Value = run.answer_as().unwrap();
    assert_eq!((&answer["first"], &answer["each"][1]["output"]["part"]), (&json!(12), &json!("P-3")), "{answer}");
    assert_eq!(answer["each"][0]["output"]["run"], run.run_id());
    assert_eq!(stock.0.load(Ordering::SeqCst), 3);
    for (part, class) in [("P-0", "tool panicked"), ("P-1", "unknown part")] {
        let run = flow.start(json!({ "parts": [part] })).await.unwrap();
        assert_eq!(run.status(), Status::Failed);
        assert!(format!("{:?}", run.state).contains(class), "{class}");
    }
    // The step, the item and that of `on_failure` of each.
    assert_eq!(stock.0.load(Ordering::SeqCst), 9);
}

#[test]
fn what_a_step_gives_a_tool_is_held_against_its_input() {
    for (properties, wanted) in [
        (json!({ "prat": "P-7" }), "has no input `prat`"),
        (json!({}), "needs the input `part`"),
        (json!({ "part": 7 }), "string"),
    ] {
        let flow = json!({ "name": "parts", "definition": { "actions": [step(&properties)] } });
        let refused = Loop::load_text("parts.json", flow.to_string()).tool(Stock::default()).build().unwrap_err();
        assert!(refused.to_string().contains(wanted), "{refused}");
    }
    let flow = json!({ "name": "parts", "definition": { "actions": [
        { "type": "stock", "properties": { "part": "P-7" }, "retry": { "attempts": 2 } }] } });
    let refused = Loop::load_text("parts.json", flow.to_string()).tool(Stock::default()).build().unwrap_err();
    assert!(refused.to_string().contains("the tool `stock` may not be repeated"), "{refused}");
}

#[test]
fn the_program_checks_and_tests_what_names_a_tool_and_runs_none_of_it() {
    let place = Place::new();
    place.json("parts.json", &parts());
    let input = r#"{"parts": ["P-2"]}"#;
    let unknown = place.call(&["check", "parts.json"]);
    assert_eq!(unknown.code, 1, "{unknown:#?}");
    named(&place, &Stock::default());
    let checked = place.call(&["check", "parts.json", "loopctl.json"]);
    assert_eq!(checked.code, 0, "{checked:#?}");
    assert!(checked.stderr.contains("no errors or warnings"), "{checked:#?}");

    let ran = place.call(&["run", "parts.json", "--input", input]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("the tool `stock` is one of a Rust program"), "{ran:#?}");
    let listed = place.call(&["runs", "--output", "json"]);
    assert!(!listed.stdout.contains("parts"), "nothing began: {listed:#?}");

    // A script answers in its place, and so does a scenario.
    let answers: Vec<Value> = (0..2).map(|_| json!({ "in_stock": 3 })).collect();
    place.json("script.json", &json!({ "replies": [], "tools": { "stock": answers } }));
    let ran = place.call(&["run", "parts.json", "--script", "script.json", "--output", "json", "--input", input]);
    assert_eq!(ran.json()["result"]["answer"]["first"], 3, "{ran:#?}");
    place.json(
        "parts.test.json",
        &json!({ "document": "parts.json", "scenarios": [{ "name": "two", "input": { "parts": ["P-2"] },
            "tools": { "stock": answers }, "expect": { "status": "completed" } }] }),
    );
    let tested = place.call(&["test", "--crash"]);
    assert_eq!(tested.code, 0, "{tested:#?}");
}

#[test]
fn a_file_of_tools_that_is_wrong_is_reported_where_it_is() {
    let place = Place::new();
    place.json("parts.json", &parts());
    named(&place, &Stock::default());
    for (text, wanted) in [
        ("[{]", "tools.json:1:3"),
        ("{}", "a list of tools was expected"),
        ("[7]", "this is no tool"),
        (r#"[{"name": "a b", "description": "x", "parameters": {}}]"#, "a space"),
    ] {
        place.file("tools.json", text);
        let checked = place.call(&["check", "parts.json"]);
        assert_eq!(checked.code, 1, "{checked:#?}");
        assert!(format!("{}{}", checked.stdout, checked.stderr).contains(wanted), "{wanted}: {checked:#?}");
    }
    let outside = Place::new();
    outside.file("tools.json", "[\"a key\"]");
    let path = outside.path().join("tools.json").display().to_string();
    for file in [path.as_str(), "none.json"] {
        place.json("loopctl.json", &json!({ "embedded": file }));
        let checked = place.call(&["check", "parts.json"]);
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(said.contains("loopctl.json:2:") && said.contains("can't be read"), "{said}");
        assert!(!said.contains("a key"), "{said}");
    }
}

#[tokio::test]
async fn a_run_keeps_the_tools_that_it_began_with() {
    let place = Place::new();
    let store = format!("sqlite:{}", place.path().join("runs.db").display());
    let flow = json!({ "name": "parts", "definition": { "actions": [
        step(&json!({ "part": "P-7" })),
        { "type": "PbotApproval", "properties": { "comment": "Order more?" } },
        step(&json!({ "part": "P-8" }))], "output": "@stock.part" } });
    let load = || Loop::load_text("parts.json", flow.to_string()).tool(Stock::default()).store(&store).build();
    let paused = load().unwrap().start(json!({})).await.unwrap();
    assert_eq!(paused.status(), Status::Paused);
    let id = paused.run_id().to_owned();
    // The program without the tool shows the run, and does not continue it.
    place.json("parts.json", &flow);
    named(&place, &Stock::default());
    let shown = place.call(&["trace", &id, "--store", "sqlite:runs.db"]);
    assert!(shown.code == 0 && shown.stdout.contains("stock"), "{shown:#?}");
    let resumed = place.call(&["resume", &id, "--approve", "--store", "sqlite:runs.db"]);
    assert!(resumed.stderr.contains("the tool `stock` is one of a Rust program"), "{resumed:#?}");
    // A program whose tool is another one now says so, as of a document.
    let other = Loop::load_text("parts.json", flow.to_string()).tool(Recount).store(&store).build().unwrap();
    let changed = other.resume(&id).decide(Decision::Approve).await.unwrap_err();
    assert!(matches!(&changed, Fault::Changed { file } if file == "embedded tool stock"), "{changed:?}");
    let ended = load().unwrap().resume(&id).decide(Decision::Approve).await.unwrap();
    assert_eq!(ended.answer_as::<String>().unwrap(), "P-8");
}

/// A folder with the workflow, and a loop that names a model.
fn folder(model: &str) -> Place {
    let place = Place::new();
    place.json("parts.json", &parts());
    place.json(
        "say.json",
        &json!({ "type": "loop", "name": "say", "properties": { "mode": "react", "objective": "Say what you are.",
            "model": model, "tools": [{ "type": "action", "name": "stock" }] } }),
    );
    place
}

async fn executed(service: &Service, name: &str, input: &Value) -> Value {
    posted(service, &json!({ "loop": name, "input": input })).await
}

async fn posted(service: &Service, body: &Value) -> Value {
    let body = body.to_string();
    let request = axum::http::Request::post("/agents/execute").header("host", "localhost");
    let request = request.header("content-type", "application/json").body(axum::body::Body::from(body)).unwrap();
    let reply = TowerToHyperService::new(service.router()).call(request).await.unwrap();
    let body = axum::body::to_bytes(reply.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_of_a_served_folder_have_the_tools_and_the_models_of_the_engine() {
    let (place, stock) = (folder("parrot"), Stock::default());
    let engine = engine(&stock);
    // One engine may be mounted twice: the services are two servers of one store.
    let service = Service::builder(place.path(), &engine).options(ServerOptions::default()).build().unwrap();
    let other = Service::builder(place.path(), &engine).build().unwrap();
    service.recover().await.unwrap();
    other.recover().await.unwrap();
    assert_eq!(service.loops(), ["parts", "say"]);
    let run = executed(&service, "parts", &json!({ "parts": ["P-2"] })).await;
    assert_eq!((&run["status"], &run["final_answer"]["first"]), (&json!("completed"), &json!(12)), "{run}");
    assert_eq!(stock.0.load(Ordering::SeqCst), 2);
    let run = executed(&other, "say", &json!({})).await;
    assert_eq!(run["final_answer"], "a parrot", "{run}");
    let runs = engine.journal().find(run["agent_run_id"].as_str().unwrap()).await.unwrap();
    assert_eq!(runs.unwrap().status, Status::Completed);
    // What the folder is read again with.
    place.json("more.json", &json!({ "name": "more", "definition": { "actions": [step(&json!({ "part": "P-2" }))] } }));
    service.reload().await.unwrap();
    assert_eq!(executed(&service, "more", &json!({})).await["status"], "completed");
    // A document that comes with a request has the tools as it has the folder's actions.
    let request = json!({ "objective": "Say what you are.",
        "tools": [{ "type": "action", "name": "stock" }] });
    assert_eq!(posted(&service, &request).await["final_answer"], "a parrot");
    place.json("loopctl.json", &json!({ "serve": { "agent_requests": "own_actions" } }));
    service.reload().await.unwrap();
    let refused = posted(&service, &request).await;
    assert!(refused.to_string().contains("the action `stock` is not found"), "{refused}");
    for service in [&service, &other] {
        service.drain(std::time::Duration::ZERO).await;
    }
}

#[tokio::test]
async fn a_folder_that_needs_what_neither_engine_nor_project_has_is_not_served() {
    let (place, stock) = (folder("parrott"), Stock::default());
    let error = Service::builder(place.path(), &engine(&stock)).build().err().unwrap();
    assert!(matches!(&error, ServeError::Missing { .. }) && error.to_string().contains("parrott"), "{error}");
    // A tool of the file that the program does not have.
    let place = folder("parrot");
    named(&place, &stock);
    let without = Engine::builder(Arc::default(), Path::new(".")).model("parrot", Parrot).build();
    let error = Service::builder(place.path(), &without).build().err().unwrap();
    assert!(matches!(&error, ServeError::Missing { .. }) && error.to_string().contains("`stock`"), "{error}");
    // One of which the file says something else.
    let mut signatures = serde_json::to_value(engine(&stock).signatures()).unwrap();
    signatures[0]["parameters"]["properties"]["part"]["type"] = json!("integer");
    place.json("tools.json", &signatures);
    let error = Service::builder(place.path(), &engine(&stock)).build().err().unwrap();
    let said = error.to_string();
    assert!(matches!(&error, ServeError::Folder(_)) && said.contains("another `parameters` than this"), "{said}");
    // And a name that an action has.
    place.json("tools.json", &serde_json::to_value(engine(&stock).signatures()).unwrap());
    place.json(
        "actions/a.json",
        &json!({ "action_name": "stock", "kind": "llm", "description": "Guesses.", "prompt": "Guess." }),
    );
    let said = Service::builder(place.path(), &engine(&stock)).build().err().unwrap().to_string();
    assert!(said.contains("L230") && said.contains("the action `stock` has the name of a tool"), "{said}");
}

#[tokio::test]
async fn scenarios_are_played_with_the_tools_of_the_program_and_with_a_crash_anywhere() {
    let (place, stock) = (folder("parrot"), Stock::default());
    let engine = engine(&stock);
    let say = json!({ "thought": "t", "action": "__complete__", "action_input": { "answer": "a parrot" } });
    let look = json!({ "thought": "t", "action": "stock", "action_input": { "part": "P-2" } });
    let scenario = |name: &str, more: Value| {
        let mut scenario = json!({ "name": name, "input": { "parts": ["P-2"] } });
        scenario.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        scenario
    };
    let holds = scenario("own", json!({ "expect": { "status": "completed", "answer": { "first": 12 } } }));
    let answers = json!([{ "in_stock": 3 }, { "in_stock": 3 }]);
    let played = scenario("played", json!({ "tools": { "stock": answers }, "expect": { "answer": { "first": 3 } } }));
    let file = place.json("parts.test.json", &json!({ "document": "parts.json", "scenarios": [holds, played] }));
    Scenarios::of(&file, &engine).hold().unwrap();
    assert_eq!(stock.0.load(Ordering::SeqCst), 2, "a scenario with answers calls nothing");
    let crashed = Scenarios::of(&file, &engine).crash().play().unwrap();
    assert!(crashed.iter().all(|one| one.failures.is_empty() && one.notes[0].contains("crash points")), "{crashed:?}");

    let file = place.json(
        "say.test.json",
        &json!({ "document": "say.json", "scenarios": [
            { "name": "looks", "replies": [look, say], "expect": { "calls": [{ "action": "stock", "success": true }] } },
            { "name": "wrong", "replies": [say], "expect": { "status": "failed", "answer": "a crow" } }] }),
    );
    let failed = Scenarios::of(&file, &engine).hold().unwrap_err();
    let ScenariosError::Failed(scenarios) = &failed else { panic!("{failed}") };
    assert_eq!((scenarios.len(), scenarios[0].name.as_str()), (1, "wrong"), "{failed}");
    assert!(failed.to_string().contains("wrong: /scenarios/1/expect/"), "{failed}");

    // Without the tools the document is unknown to it, and a file that is none is refused.
    let other = Engine::builder(Arc::default(), Path::new(".")).build();
    let refused = Scenarios::of(&file, &other).hold().unwrap_err();
    assert!(matches!(&refused, ScenariosError::Document(_)) && refused.to_string().contains("`stock`"), "{refused}");
    let refused = Scenarios::of(place.path().join("none.test.json"), &engine).play().unwrap_err();
    assert!(refused.to_string().contains("there is no such file"), "{refused}");
}

#[test]
fn the_file_of_the_tools_is_checked_as_what_it_is_when_it_is_named() {
    let place = Place::new();
    let stock = Stock::default();
    named(&place, &stock);
    let checked = place.call(&["check", "tools.json"]);
    assert_eq!(checked.code, 0, "{checked:#?}");
    let twice: Vec<_> = engine(&stock).signatures().into_iter().flat_map(|tool| [tool.clone(), tool]).collect();
    place.json("tools.json", &serde_json::to_value(twice).unwrap());
    let checked = place.call(&["check", "tools.json"]);
    assert!(checked.code == 1 && checked.stderr.contains("there are two tools of the name `stock`"), "{checked:#?}");
    // No project names this one.
    place.json("other.json", &serde_json::to_value(engine(&stock).signatures()).unwrap());
    let other = place.call(&["check", "other.json"]);
    assert!(other.stderr.contains("L020"), "{other:#?}");
}
