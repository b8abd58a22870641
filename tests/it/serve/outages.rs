//! An outage of a model is seen where one looks: in the status, the lists, the events and the commands, by every process, for as
//! long as the run waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete};
use crate::serve::client::{Serving, until};
use crate::serve::restart::terminate;
use crate::test_server::PostgresServer;

/// A model that is away until it is back, and its place with a loop `inner`, a workflow `outer` with a step that is one, and a workflow
/// `flow` with an action that asks the model. `asks_for`: the wait that the model asks for; otherwise it is asked again at once.
fn away(back: &Arc<AtomicBool>, asks_for: Option<&'static str>) -> (Server, Place) {
    let is_back = Arc::clone(back);
    let model = Server::with(move |_, _| {
        if is_back.load(Ordering::SeqCst) {
            let said = json!({ "choices": [{ "message": { "role": "assistant", "content": complete(json!("ok")).to_string() },
                "finish_reason": "stop" }] });
            return Answer::json(&said);
        }
        let away = Answer::json(&json!({ "error": { "message": "s3cret words\nof the server" } })).status(503);
        match asks_for {
            Some(seconds) => away.header("retry-after", seconds),
            None => away,
        }
    });
    let place = Place::new();
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "model": "main",
            "models": { "main": { "provider": "openai", "base_url": format!("{}/v1", model.url()), "model": "fake-1" } } }),
    );
    // Often enough, and with room for what is judged meanwhile.
    let retry = json!({ "attempts": 9_000, "base_ms": 200, "max_ms": 200 });
    let react = |more: Value| {
        crate::common::with(json!({ "mode": "react", "objective": "Do it.", "tools": [], "retry": retry }), more)
    };
    place.json(
        "loops/inner.json",
        &json!({ "type": "loop", "name": "inner", "description": "Does it.", "properties": react(json!({})) }),
    );
    let ask = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Why?", "retry": retry,
        "timeout_ms": 600_000 });
    place.json("actions/ask.json", &ask);
    let flow = |name: &str, step: Value| json!({ "name": name, "definition": { "actions": [step] } });
    place.json("workflows/flow.json", &flow("flow", json!({ "id": "asks", "type": "ask", "properties": {} })));
    let outer = flow("outer", json!({ "id": "calls", "type": "loop", "properties": react(json!({})) }));
    place.json("workflows/outer.json", &outer);
    (model, place)
}

fn begin(server: &Serving, name: &str) -> String {
    let started = server.post("/agents/execute?async=true", &json!({ "loop": name })).json();
    started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned()
}

/// Waits for the wait that this shows.
fn shown(look: impl Fn() -> Value) -> Value {
    loop {
        let wait = look();
        if !wait.is_null() {
            return wait;
        }
        crate::common::wait_poll_interval();
    }
}

/// What is said of the wait, whoever says it.
fn judge(wait: &Value, asker: &str, run: &str) {
    assert_eq!(wait["model"], "main", "{wait:#}");
    assert!(wait["attempts"].as_u64().is_some_and(|attempts| attempts > 0), "{wait:#}");
    assert!(wait["kind"].as_str().unwrap().contains("503"), "{wait:#}");
    assert!(wait["since"].is_string() && wait["again_at"].is_string(), "{wait:#}");
    let of = wait.get("agent_run_id").or_else(|| wait.get("run_id")).map_or(run, |of| of.as_str().unwrap());
    assert_eq!(of, asker, "{wait:#}");
}

#[test]
fn a_wait_for_a_model_is_shown_by_each_process_and_is_over_when_it_answers() {
    let test = "a_wait_for_a_model_is_shown_by_each_process_and_is_over_when_it_answers";
    let of_postgres = crate::test_server::server(test).map(PostgresServer::store);
    for store in ["sqlite:runs.db"].into_iter().map(str::to_owned).chain(of_postgres) {
        let back = Arc::new(AtomicBool::new(false));
        let (_model, place) = away(&back, None);
        let store = ["--store", store.as_str()];
        let (driver, other) = (Serving::start(&place, &store), Serving::start(&place, &store));
        let of_night: &[&str] = &["inner", "flow", "outer"];
        for name in if crate::common::is_nightly() { of_night } else { &["outer"] } {
            let run = begin(&driver, name);
            let asker = if *name == "outer" { format!("{run}.calls") } else { run.clone() };
            for server in [&driver, &other] {
                let status = shown(|| server.get(&format!("/agents/{run}/status")).json()["model_wait"].clone());
                judge(&status, &asker, &run);
                let listed = shown(|| {
                    let list = server.get("/agents?status=running").json();
                    list["agents"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .find(|row| row["agent_run_id"] == json!(run))
                        .map_or(Value::Null, |row| row["model_wait"].clone())
                });
                judge(&listed, &asker, &run);
                assert!(listed.get("reason").is_none(), "{listed:#}");
            }
            let call = |words: &[&str]| place.call(&[words, &store[..]].concat());
            let rows = shown(|| {
                let rows = call(&["runs", "--output", "json"]).json();
                rows.as_array().unwrap().iter().find(|row| row["run_id"] == json!(run)).unwrap()["model_wait"].clone()
            });
            judge(&rows, &asker, &run);
            let trace = shown(|| call(&["trace", &run, "--format", "json"]).json()["model_wait"].clone());
            judge(&trace, &asker, &run);
            let says = |words: &[&str], what: &str| {
                let mut said = call(words);
                while !format!("{}{}", said.stdout, said.stderr).contains(what) {
                    crate::common::wait_poll_interval();
                    said = call(words);
                }
                assert!(!said.stdout.contains("s3cret words") && !said.stderr.contains("s3cret words"), "{said:?}");
            };
            says(&["runs"], "the model main is away for");
            says(&["trace", &run], "the last one with");
            says(&["explain", &run], "is away since");
            let mut reader = driver.reader(&run);
            let events = until(&mut reader, "\"event\":\"model_away\"");
            assert!(!events.contains("s3cret words"), "{events}");
            drop(reader);
        }
        back.store(true, Ordering::SeqCst);
        for row in driver.get("/agents").json()["agents"].as_array().unwrap() {
            let run = row["agent_run_id"].as_str().unwrap();
            let settled = driver.settled(run);
            assert_eq!((&settled["status"], settled.get("model_wait")), (&json!("completed"), None), "{settled:#}");
            assert_eq!(other.get(&format!("/agents/{run}/status")).json().get("model_wait"), None);
        }
        let rows = place.call(&[&["runs", "--called", "--output", "json"], &store[..]].concat());
        assert!(!rows.stdout.contains("model_wait"), "{rows:?}");
    }
}

#[test]
fn a_process_that_dies_while_its_model_is_away_leaves_no_wait_behind() {
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let (model, place) = away(&Arc::default(), Some("300"));
        let store = ["--store", "sqlite:runs.db"];
        let server = Serving::start(&place, &store);
        let run = begin(&server, "inner");
        let row = || {
            let rows = place.call(&[&["runs", "--output", "json"], &store[..]].concat()).json();
            rows[0].clone()
        };
        shown(|| row()["model_wait"].clone());
        kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), signal).unwrap();
        server.ended();
        let left = row();
        assert_eq!((&left["driven"], left.get("model_wait")), (&json!(false), None), "{left:#}");
        // The next driver waits for its own failure.
        model.wait_for(1);
        let server = Serving::start(&place, &store);
        model.wait_for(2);
        let wait = shown(|| row()["model_wait"].clone());
        assert_eq!(wait["attempts"], 1, "{wait:#}");
        terminate(&server);
        let ran = place.call(&[&["cancel", &run], &store[..]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!((&row()["status"], row().get("model_wait")), (&json!("cancelled"), None));
    }
}
