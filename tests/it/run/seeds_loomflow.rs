//! loomflow: budgets that warn, replies that come in pieces, calls side by side, and a journal of every step.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::journal::memory::MemoryJournal;
use loopctl::{Engine, Listener, Notice};
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, look, observed, think, web};
use crate::run::events::lines;

fn used(reply: &Value, input: u64) -> Value {
    json!({ "text": reply.to_string(), "usage": { "input": input, "output": 50 } })
}

fn act(what: &str) -> Value {
    think("act", json!({ "what": what }))
}

#[test]
fn loomflow_warns_of_its_budget_once_and_ends_when_it_is_spent() {
    let place = Place::new();
    let replies: Vec<Value> = (0..9).map(|at| used(&look(&at.to_string()), 250)).collect();
    place.looped(&json!({ "max_iterations": 50, "budget": { "tokens": 1_500 } })).script(&replies);
    let args = ["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--store", "memory"];
    let ran = place.call(&args);
    let lines = lines(&ran.stdout);
    let warned: Vec<&Value> = lines.iter().filter(|line| line["event"] == "budget_warning").collect();
    assert_eq!((warned.len(), &warned[0]["iterations"], &warned[0]["tokens"]), (1, &json!(4), &json!(1_200)));
    let result = lines.last().expect("a result");
    assert_eq!((ran.code, &result["termination"], &result["iterations"]), (1, &json!("budget"), &json!(5)));
    let ended = lines.iter().find(|line| line["event"] == "run_ended").expect("its end");
    assert_eq!(ended["termination"], "budget");
}

/// Keeps the pieces of replies.
#[derive(Default)]
struct Pieces(Mutex<Vec<String>>);

impl Listener for Pieces {
    fn on(&self, notice: Notice) {
        if let Notice::ModelDelta { text, .. } = notice {
            self.0.lock().expect("the lock").push(text);
        }
    }

    fn wants_deltas(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn loomflow_streams_tokens_and_puts_them_together() {
    let said = complete(json!("It is the cable, ü and all.")).to_string();
    let characters: Vec<char> = said.chars().collect();
    let deltas: Vec<String> = characters
        .chunks(7)
        .map(|piece| {
            json!({ "choices": [{ "index": 0, "delta": { "content": String::from_iter(piece) } }] }).to_string()
        })
        .collect();
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string();
    let count = deltas.len();
    let stream: Vec<String> = deltas.into_iter().chain([end, "[DONE]".to_owned()]).collect();
    let server = Server::with(move |_, _| Answer::events(&stream));
    let place = Place::new();
    place.looped(&json!({ "model": "m", "max_iterations": 50 }));
    let model = json!({ "provider": "openai", "base_url": server.url() });
    place.json("loopctl.json", &json!({ "models": { "m": model } }));
    let loaded = loopctl::load(&place.path().join("loop.json"), &[]).expect("it is sound");
    let engine = Engine::builder(Arc::clone(&loaded.program.project), &loaded.root)
        .journal(Arc::new(MemoryJournal::new()))
        .build();
    let pieces = Pieces::default();
    let watch = Watch { listener: Some(&pieces), stop: None };
    let ended = engine.run(&loaded.program, Start::default(), watch).await.expect("it runs");
    let pieces = pieces.0.into_inner().expect("the lock");
    // At most ten come in a second, however many the provider sends.
    assert!((1..=count).contains(&pieces.len()));
    assert_eq!(pieces.concat(), said, "each piece once");
    assert_eq!(ended.answer().map(|answer| &answer.answer), Some(&json!("It is the cable, ü and all.")));
    assert_eq!(server.requests()[0].json()["stream"], true);
}

/// A loop that may call `look` at the server.
fn served(server: &Server, allow: &Value, replies: &[Value]) -> Place {
    let place = Place::new();
    let parameters =
        json!({ "parameters": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } });
    let action = web("look", &format!("{}/look/{{{{n}}}}", server.url()), parameters);
    let properties = json!({ "mode": "react", "objective": "Look.", "dialect": "tool_calls", "max_iterations": 50,
        "tools": [{ "type": "action", "name": "look" }] });
    place.json("loop.json", &json!({ "type": "loop", "name": "loom", "actions": [action], "properties": properties }));
    place.json("loopctl.json", &json!({ "allow": allow }));
    place.json("script.json", &json!({ "replies": replies }));
    place
}

fn looks(count: u64) -> Value {
    let calls: Vec<Value> = (0..count).map(|n| json!({ "action": "look", "action_input": { "n": n } })).collect();
    json!({ "thought": "All at once.", "calls": calls })
}

#[test]
fn loomflow_makes_the_calls_of_a_turn_side_by_side_and_one_that_fails_touches_no_other() {
    let (came, changed) = (Mutex::new(0_usize), Condvar::new());
    let server = Server::with(move |_, request| {
        // No call is answered before all three have come. The bound is for a run that is wrong.
        let mut count = came.lock().expect("the lock");
        *count += 1;
        changed.notify_all();
        let wait = changed.wait_timeout_while(count, Duration::from_secs(20), |count| *count < 3);
        let alone = wait.expect("the lock").1.timed_out();
        let answer = Answer::json(&json!({ "path": request.path }));
        if alone || request.path == "/look/1" { answer.status(503) } else { answer }
    });
    let place = served(&server, &json!({ "private_addresses": true }), &[looks(3), json!({ "answer": "done" })]);
    let (ran, result) = place.run(&["--store", "memory"]);
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("done")), "{ran:#?}");
    let outcomes: Vec<(&Value, &Value)> =
        (0..3).map(|at| (&result["trace"][at]["iteration"], &result["trace"][at]["success"])).collect();
    let (one, yes, no) = (json!(1), json!(true), json!(false));
    assert_eq!(outcomes, [(&one, &yes), (&one, &no), (&one, &yes)], "{result:#}");
    assert_eq!(result["trace"][2]["observation"], json!({ "path": "/look/2" }));
}

#[test]
fn loomflow_asks_before_a_tool_and_calls_it_no_more_often_than_it_may() {
    let place = Place::new();
    let tool = json!({ "type": "action", "name": "act", "requires_approval": true, "max_calls": 1 });
    place.looped(&json!({ "max_iterations": 50, "tools": [tool] }));
    place.script(&[act("first"), act("second"), complete(json!("done"))]);
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!((ran.code, &result["metadata"]["tool_calls_made"]), (3, &json!(0)), "{ran:#?}");
    let ran = place.call(&["resume", "r", "--approve", "--script", "script.json", "--output", "json"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["metadata"]["tool_calls_made"]), (0, &json!(1)), "the second one is no question");
    assert_eq!(result["trace"][0]["observation"], json!({ "done": true }));
    assert!(observed(&result["trace"][1]).contains("may be called 1 times"), "{result:#}");
}

#[test]
fn loomflow_reaches_only_what_is_allowed() {
    let server = Server::with(|_, _| Answer::json("{\"ok\": true}"));
    let replies = [looks(1), json!({ "answer": "done" })];
    let ran = served(&server, &json!({}), &replies).call(&["run", "loop.json", "--script", "script.json"]);
    assert_eq!((ran.code, server.connections()), (2, 0), "{ran:#?}");
    assert!(ran.stderr.contains("L109") && ran.stderr.contains("private_addresses"), "{}", ran.stderr);
    let (_, result) = served(&server, &json!({ "private_addresses": true }), &replies).run(&["--store", "memory"]);
    assert_eq!((&result["trace"][0]["success"], server.requests().len()), (&json!(true), 1), "{result:#}");
}

/// The events of the only run of a store, in their order.
fn events(place: &Place, store: &str) -> Vec<(i64, String)> {
    let store = rusqlite::Connection::open(place.path().join(store)).expect("a store");
    let mut query = store.prepare("SELECT seq, event FROM events ORDER BY seq").expect("a query");
    let rows = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).expect("it reads");
    rows.collect::<Result<_, _>>().expect("rows")
}

#[test]
#[cfg(all(unix, debug_assertions))]
fn loomflow_journals_each_model_and_tool_call_by_its_step_and_a_crashed_run_goes_on() {
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 50 })).script(&[look("a"), look("b"), complete(json!("done"))]);
    let start = ["run", "loop.json", "--script", "script.json", "--run-id", "r", "--session", "s"];
    let killed = place.command(&start).env("LOOPCTL_FAIL", "journal:3:after-sync").output().expect("it starts");
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let before = events(&place, ".loopctl/runs.db");
    assert_eq!(before.len(), 4, "the start, a reply, its call, a reply: {before:#?}");
    let ran = place.call(&["resume", "r", "--script", "script.json", "--output", "json"]);
    assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!("done")), "{ran:#?}");
    let after = events(&place, ".loopctl/runs.db");
    assert_eq!(after[..4], before[..], "what was kept is not made again");
    assert!(after.iter().zip(0..).all(|((seq, _), at)| *seq == at), "each step has its number: {after:#?}");
    let count = |kind: &str| after.iter().filter(|(_, event)| event.contains(&format!("{{\"{kind}\":"))).count();
    assert_eq!((count("model_replied"), count("tool_returned")), (3, 2), "{after:#?}");
}

#[test]
fn loomflow_keeps_its_runs_in_the_sqlite_file_that_is_named() {
    let place = Place::new();
    place.looped(&json!({ "max_iterations": 50 })).script(&[look("a"), complete(json!("done"))]);
    let (ran, result) = place.run(&["--store", "sqlite:kept/loom.db", "--run-id", "r"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let shown = place.call(&["trace", "r", "--store", "sqlite:kept/loom.db", "--format", "json"]);
    assert_eq!((shown.code, &shown.json()["trace"]), (0, &result["trace"]), "{shown:#?}");
    assert!(events(&place, "kept/loom.db").len() >= 4, "the start, a reply, its call, a reply");
    assert!(!place.path().join(".loopctl/runs.db").exists());
}
