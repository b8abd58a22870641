//! Runs that exist already: started again, and listed.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::engine::{Engine, Resume, Watch};
use super::start::Start;
use super::tool::DynTool;
use super::tool::ToolCall;
use crate::drive::future::BoxFuture;
use crate::journal::memory::MemoryJournal;
use crate::journal::{Journal, RunFilter};
use loopctl_engine::event::{Decision, ToolFault};
use loopctl_engine::outcome::Status;
use loopctl_lang::compile::{Texts, compile};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::program::Program;

fn program(objective: &str) -> Arc<Program> {
    let document = json!({ "type": "loop", "properties": { "mode": "react", "objective": objective, "tools": [],
        "model": "gpt-4o-mini", "budget": { "cost_usd": 1 } } });
    let project = json!({ "models": { "gpt-4o-mini": { "provider": "openai", "model": "gpt-4o-mini",
        "api_key": "env:LOOPCTL_TEST_NO_SUCH_KEY", "price": { "input": 1, "output": 1 } } } });
    let texts = Texts {
        project: Some(Source::new("loopctl.json", project.to_string())),
        ..Texts::new(Source::new("loop.json", document.to_string()))
    };
    let compiled = compile(&texts);
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

fn engine(program: &Program, journal: &Arc<dyn Journal>, replies: Option<serde_json::Value>) -> Engine {
    let builder = Engine::builder(program.project.clone(), Path::new(".")).journal(Arc::clone(journal));
    match replies {
        Some(replies) => {
            builder.script(serde_json::from_str(&json!({ "replies": replies }).to_string()).unwrap()).build()
        }
        None => builder.build(),
    }
}

fn start() -> Start {
    Start { run_id: Some("r".to_owned()), ..Start::default() }
}

#[tokio::test]
async fn an_ended_run_is_shown_again_without_the_key_of_its_model() {
    let (journal, program): (Arc<dyn Journal>, _) = (Arc::new(MemoryJournal::new()), program("Do it."));
    let complete = json!([{ "thought": "t", "action": "__complete__", "action_input": { "answer": "done" } }]);
    let scripted = engine(&program, &journal, Some(complete));
    let keyless = engine(&program, &journal, None);
    let fault = keyless.run(&program, start(), Watch::default()).await.unwrap_err();
    assert_eq!(fault.code(), "missing", "nothing is there yet: {fault}");
    scripted.run(&program, start(), Watch::default()).await.unwrap();
    let again = keyless.run(&program, start(), Watch::default()).await.unwrap();
    assert_eq!(again.answer().unwrap().answer, json!("done"));
    let other = self::program("Do something else.");
    let fault = keyless.run(&other, start(), Watch::default()).await.unwrap_err();
    assert_eq!(fault.code(), "run_id_conflict", "{fault}");
    let fault = keyless.run(&program, Start::default(), Watch::default()).await.unwrap_err();
    assert_eq!(fault.code(), "missing", "a new run needs it: {fault}");
}

#[tokio::test]
async fn a_run_that_a_run_starts_has_the_organisation_and_the_turns_of_the_token_of_that_one() {
    let document = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Do it.",
        "tools": [{ "type": "workflow", "name": "later", "wait": false }] } });
    let later = json!({ "name": "later", "description": "Asks.", "definition": { "actions": [
        { "type": "PbotForm", "properties": { "expected_keys": ["x"] } }] } });
    let mut texts = Texts::new(Source::new("loop.json", document.to_string()));
    texts.workflows.push(Source::new("workflows/later.json", later.to_string()));
    let program = compile(&texts).program.unwrap();
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let reply = |action: &str, input: Value| json!({ "thought": "t", "action": action, "action_input": input });
    let replies = json!([reply("later", json!({})), reply("__complete__", json!({ "answer": "done" }))]);
    let engine = engine(&program, &journal, Some(replies));
    let (org, token) = (Some("acme".to_owned()), Some("night".to_owned()));
    let start = Start { org: org.clone(), token: token.clone(), ..start() };
    engine.run(&program, start, Watch::default()).await.unwrap();
    let started = journal.find("r.1.0").await.unwrap().unwrap();
    assert_eq!((started.org, started.token.map(String::from), started.parent_run_id), (org, token, None));
}

#[tokio::test]
async fn a_run_that_was_cut_off_is_listed_with_the_iterations_that_it_made() {
    let (journal, program): (Arc<dyn Journal>, _) = (Arc::new(MemoryJournal::new()), program("Do it."));
    let note = json!({ "thought": "t", "action": "__log_progress__", "action_input": { "message": "m" } });
    let slow = json!({ "text": note.to_string(), "delay_ms": 60_000 });
    let engine = engine(&program, &journal, Some(json!([note, note, slow])));
    let driven = async {
        while journal.read("r").await.map_or(true, |events| events.len() < 3) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = engine.run(&program, start(), Watch::default()) => panic!("{ended:?}"),
        () = driven => {}
    }
    let shown = journal.list(RunFilter::default()).await.unwrap();
    assert_eq!((shown[0].status, shown[0].iterations, shown[0].driven), (Status::Running, 2, false));
    let tokens = shown[0].tokens.unwrap_or_default();
    assert!(tokens > 0 && shown[0].updated_at_ms >= shown[0].started_at_ms && shown[0].is_complete, "{shown:?}");
}

#[test]
fn the_future_of_a_run_that_waits_is_small() {
    let (journal, program): (Arc<dyn Journal>, _) = (Arc::new(MemoryJournal::new()), program("Do it."));
    let engine = engine(&program, &journal, Some(json!([])));
    let run = size_of_val(&engine.run(&program, start(), Watch::default()));
    // A thousand waiting runs are a thousand of these, each with its driver on the heap.
    assert!(run <= 2_560, "{run} bytes");
}

/// A tool of the embedder's.
struct Looks;

impl DynTool for Looks {
    fn name(&self) -> &str {
        "looks"
    }
    fn description(&self) -> &str {
        "Looks."
    }
    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }
    fn call<'a>(&'a self, _: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        Box::pin(async { Ok(json!("seen")) })
    }
}

#[tokio::test]
async fn a_previous_run_may_have_an_embedded_tool_and_another_document_but_not_another_organisation() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let document = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Look.",
        "tools": [{ "type": "action", "name": "looks" }] } });
    let mut texts = Texts::new(Source::new("look.json", document.to_string()));
    texts.embedded = vec![Looks.signature()];
    let (looks, next) = (compile(&texts).program.unwrap(), program("Go on."));
    let say = |action: &str, input: Value| json!({ "thought": "t", "action": action, "action_input": input });
    let replies = json!([say("looks", json!({})), say("__complete__", json!({ "answer": "done" }))]);
    let script = serde_json::from_str(&json!({ "replies": replies }).to_string()).unwrap();
    let project = Arc::clone(&looks.project);
    let builder = Engine::builder(project, Path::new(".")).journal(Arc::clone(&journal)).tool(Looks);
    let org = |org: &str| Start { org: Some(org.to_owned()), ..Start::default() };
    let first = builder.script(script).build().run(&looks, org("a"), Watch::default()).await.unwrap();
    let earlier = Some(first.run_id().to_owned());
    let answer = json!([say("__complete__", json!({ "answer": "told" }))]);
    let script = serde_json::from_str(&json!({ "replies": answer }).to_string()).unwrap();
    let builder = Engine::builder(next.project.clone(), Path::new(".")).journal(journal).tool(Looks);
    let engine = builder.script(script).build();
    let after_earlier = |org: Start| Start { previous_run_id: earlier.clone(), ..org };
    let run = engine.run(&next, after_earlier(org("a")), Watch::default()).await.unwrap();
    assert_eq!(run.state.header.previous_run_id.as_deref(), earlier.as_deref());
    assert!(run.state.as_loop().unwrap().conversation.messages[1].text.contains("- answer = \"done\""));
    for other in [org("b"), Start::default()] {
        let fault = engine.run(&next, after_earlier(other), Watch::default()).await.unwrap_err();
        assert_eq!(fault.code(), "no_previous_run", "{fault}");
    }
}

#[tokio::test]
async fn nothing_of_a_run_is_counted_for_a_script_when_its_driver_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let say = |action: &str, input: Value| json!({ "thought": "t", "action": action, "action_input": input });
    let script = json!({ "replies": [say("looks", json!({})), say("__complete__", json!({ "answer": "done" }))] });
    std::fs::write(folder.path().join("script.json"), script.to_string()).unwrap();
    let project = json!({ "model": "s", "models": { "s": { "provider": "script", "script": "script.json" } } });
    let document = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Look.",
        "tools": [{ "type": "action", "name": "looks", "requires_approval": true }] } });
    let texts = Texts {
        project: Some(Source::new("loopctl.json", project.to_string())),
        embedded: vec![Looks.signature()],
        ..Texts::new(Source::new("loop.json", document.to_string()))
    };
    let program = compile(&texts).program.unwrap();
    let builder = || Engine::builder(Arc::clone(&program.project), folder.path()).tool(Looks);
    let answers = json!({ "replies": script["replies"], "tools": { "looks": ["said"] } });
    let scripted = builder().script(serde_json::from_str(&answers.to_string()).unwrap());
    for (engine, seen) in [(builder().build(), "seen"), (scripted.build(), "said")] {
        assert_eq!(engine.run(&program, start(), Watch::default()).await.unwrap().state.status(), Status::Paused);
        let run = engine.resume(&program, "r", Resume::with(Decision::Approve), Watch::default()).await.unwrap();
        assert_eq!(run.state.entries()[0].observation.value(), json!(seen));
        assert_eq!(engine.world.toolbox.runs_counted(), 0, "{seen}");
    }
}
