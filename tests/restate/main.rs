//! Runs as workflows of a Restate server. Without `restate-server` on the PATH, these tests are skipped.
#![cfg(all(unix, feature = "restate"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, dead_code, missing_docs)]
#![allow(
    clippy::needless_pass_by_value,
    clippy::as_conversions,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::print_stdout
)]

#[path = "../common/mod.rs"]
mod common;

#[path = "../it/serve/client.rs"]
mod client;
mod copies;
mod harness;
mod parts;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use common::server::{Answer, Gate, Server};
use common::{Place, complete, think};
use harness::Restate;

/// How often each call arrived, by its path.
type Calls = Arc<Mutex<BTreeMap<String, usize>>>;

/// A folder with the loop `test`, which makes these replies, and a server that counts the calls of its tools.
fn world(replies: &[Value], tool: Duration) -> (Place, Server, Calls) {
    let calls = Calls::default();
    let counted = Arc::clone(&calls);
    let tools = Server::with(move |_, request| {
        *counted.lock().unwrap().entry(request.path.clone()).or_default() += 1;
        Answer::json(&json!({ "done": true })).slow(tool)
    });
    let place = Place::new();
    acting(&place, &tools, json!({}));
    client::scripted(&place, replies, json!({}));
    (place, tools, calls)
}

/// The loop `test`, whose tools are on this server; `once` has these members too.
fn acting(place: &Place, tools: &Server, more: Value) {
    let action = |name: &str, idempotent: bool| {
        json!({ "action_name": name, "kind": "http", "description": "Acts.", "http_method": "POST",
            "url": format!("{}/{name}/{{{{input.n}}}}/{{{{at}}}}", tools.url()), "idempotent": idempotent,
            "parameters": { "type": "object", "properties": { "at": { "type": "integer" } }, "required": ["at"] } })
    };
    let once = common::with(json!({ "type": "action", "name": "once" }), more);
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "actions": [action("again", true), action("once", false)],
            "input": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] },
            "properties": { "mode": "react", "objective": "Act for {{input.n}}.", "max_iterations": 100, "on_stuck": { "iterations": 100 },
                "tools": [{ "type": "action", "name": "again" }, once] } }),
    );
}

fn ask() -> Value {
    think("__pause_for_human__", json!({ "question": "Go on?" }))
}

#[test]
fn a_run_asks_a_human_and_completes_with_each_call_made_once() {
    asks_and_completes(&[]);
}

fn asks_and_completes(options: &[&str]) {
    let Some(program) = harness::program() else { return };
    let replies = [think("again", json!({ "at": 0 })), ask(), think("once", json!({ "at": 1 })), complete(json!("ok"))];
    let (place, _tools, calls) = world(&replies, Duration::ZERO);
    let restate = Restate::with_options(program, &place, options);
    restate.begin("r", &json!({ "n": 7 }));

    let waiting = restate.settled("r");
    assert_eq!(waiting["status"], "paused", "{waiting}");
    let refused = restate.call("r", "answer", &json!({ "approve": true }));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(restate.settled("r")["status"], "paused");
    let taken = restate.call("r", "answer", &json!({ "answer": "Yes." }));
    assert_eq!((taken.status, &taken.json()["agent_run_id"]), (200, &json!("r")), "{taken:?}");

    let ended = restate.settled("r");
    assert_eq!((&ended["status"], &ended["final_answer"]), (&json!("completed"), &json!("ok")), "{ended}");
    assert_eq!(restate.call("r", "answer", &json!({ "answer": "Yes." })).status, 409);
    let once = |path: &str| (path.to_owned(), 1);
    assert_eq!(*calls.lock().unwrap(), BTreeMap::from([once("/again/7/0"), once("/once/7/1")]));
}

#[test]
fn a_request_that_starts_no_run_is_refused_and_the_status_of_its_key_says_why() {
    let Some(program) = harness::program() else { return };
    let (place, _tools, _) = world(&[complete(json!("ok"))], Duration::ZERO);
    let mut restate = Restate::start(program, &place);
    let refused = restate.call("wrong", "run", &json!({ "loop": "test", "input": { "m": 7 } }));
    assert_eq!(refused.status, 422, "{refused:?}");
    restate.kill_service();
    restate.start_service(&place);
    let why = refused.json()["message"].clone();
    for (handler, body) in [("status", Value::Null), ("answer", json!({ "answer": "Yes." }))] {
        let reply = restate.call("wrong", handler, &body);
        assert_eq!((reply.status, &reply.json()["message"]), (422, &why), "{handler}: {reply:?}");
    }
}

/// The status of a run, once it is another one than `running` and `paused`.
fn ended(restate: &Restate, run_id: &str) -> Value {
    loop {
        let status = restate.settled(run_id);
        if status["status"] != "paused" {
            return status;
        }
        crate::common::wait_poll_interval();
    }
}

#[test]
fn a_run_that_restate_itself_ends_is_shown_as_cancelled_and_takes_no_answer() {
    let Some(program) = harness::program() else { return };
    let replies = [ask(), complete(json!("ok"))];
    let (place, _tools, _) = world(&replies, Duration::ZERO);
    let restate = Restate::with_options(program, &place, &["--store", "sqlite:copies.db"]);
    for how in ["cancel", "kill"] {
        let invocation = restate.begin_invocation(how, &json!({ "n": 1 }));
        assert_eq!(restate.settled(how)["status"], "paused");
        restate.end_invocation(&invocation, how);
        assert_eq!(ended(&restate, how)["status"], "cancelled", "{how}");
        let refused = restate.call(how, "answer", &json!({ "answer": "Yes." }));
        assert_eq!(refused.status, 409, "{how}: {refused:?}");
    }
    // The copy of the one that was cancelled has its end.
    for at in 0.. {
        let runs = place.call(&["runs", "--store", "sqlite:copies.db", "--output", "json"]);
        let runs: Vec<Value> = runs.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let all: Vec<&Value> =
            runs.iter().flat_map(|runs| runs.as_array().map_or(vec![runs], |all| all.iter().collect())).collect();
        if all.iter().any(|run| run["run_id"] == "cancel" && run["status"] == "cancelled") {
            break;
        }
        assert!(at < 200, "{all:#?}");
        harness::pause();
    }
}

#[test]
fn a_run_that_works_is_ended_by_restate_itself() {
    let Some(program) = harness::program() else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "done": true })).behind(&held));
    let place = Place::new();
    acting(&place, &tools, json!({}));
    client::scripted(&place, &[think("again", json!({ "at": 0 })), complete(json!("ok"))], json!({}));
    let restate = Restate::start(program, &place);
    let invocation = restate.begin_invocation("r", &json!({ "n": 1 }));
    tools.wait_for(1);
    restate.end_invocation(&invocation, "cancel");
    assert_eq!(restate.settled("r")["status"], "cancelled");
    gate.open();
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_makes_no_call() {
    let Some(program) = harness::program() else { return };
    let (place, _tools, calls) = world(&[think("again", json!({ "at": 0 })), complete(json!("ok"))], Duration::ZERO);
    let restate = Restate::start(program, &place);
    assert!(restate.call("r", "cancel", &json!({ "reason": "not needed" })).status < 300);
    restate.begin("r", &json!({ "n": 1 }));
    let status = restate.settled("r");
    assert_eq!((&status["status"], &status["reason"]), (&json!("cancelled"), &json!("not needed")), "{status}");
    assert!(calls.lock().unwrap().is_empty());
}

/// Without a Restate server: the program ends before it listens.
#[test]
fn an_approval_that_needs_known_people_is_refused_at_the_start() {
    let (place, tools, _) = world(&[complete(json!("ok"))], Duration::ZERO);
    for (approval, word) in [
        (json!({ "approvers": 2 }), "`approvers`"),
        (json!({ "expires_after_ms": 1000, "on_expiry": "escalate" }), "escalate"),
    ] {
        acting(&place, &tools, json!({ "requires_approval": true, "approval": approval }));
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_loopctl-restate"));
        let output =
            command.args(["serve", ".", "--listen", "127.0.0.1:0"]).current_dir(place.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && said.contains("who reaches the ingress"), "{said}");
    }
}

#[test]
fn a_run_that_waits_is_cancelled() {
    let Some(program) = harness::program() else { return };
    let replies = [ask(), complete(json!("ok"))];
    let (place, _tools, _) = world(&replies, Duration::ZERO);
    let restate = Restate::start(program, &place);
    restate.begin("r", &json!({ "n": 1 }));
    assert_eq!(restate.settled("r")["status"], "paused");
    assert!(restate.call("r", "cancel", &json!({ "reason": "not needed" })).status < 300);
    assert_eq!(ended(&restate, "r")["status"], "cancelled");
}

#[test]
fn a_run_that_works_is_cancelled_during_its_call() {
    let Some(program) = harness::program() else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "done": true })).behind(&held));
    let place = Place::new();
    acting(&place, &tools, json!({}));
    client::scripted(&place, &[think("again", json!({ "at": 0 })), complete(json!("ok"))], json!({}));
    let restate = Restate::start(program, &place);
    restate.begin("r", &json!({ "n": 1 }));
    tools.wait_for(1);
    assert_eq!(restate.status("r")["status"], "running");
    assert!(restate.call("r", "cancel", &json!({ "reason": "not needed" })).status < 300);
    // The call gets no answer before the run has ended.
    let ended = ended(&restate, "r");
    gate.open();
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended.to_string().contains("not needed"), "{ended}");
}

#[test]
fn a_run_is_cancelled_before_a_new_process_goes_on_with_it() {
    is_cancelled_after_a_kill(&[]);
}

fn is_cancelled_after_a_kill(options: &[&str]) {
    let Some(program) = harness::program() else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "done": true })).behind(&held));
    let place = Place::new();
    acting(&place, &tools, json!({}));
    client::scripted(&place, &[think("again", json!({ "at": 0 })), complete(json!("ok"))], json!({}));
    let mut restate = Restate::with_options(program, &place, options);
    restate.begin("r", &json!({ "n": 1 }));
    tools.wait_for(1);
    restate.kill_service();
    // The next attempt at the run is then some time away, and the cancel comes before it.
    restate.fail_attempts(4);
    restate.start_service(&place);
    assert!(restate.call("r", "cancel", &json!({ "reason": "not needed" })).status < 300);
    let ended = ended(&restate, "r");
    gate.open();
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended.to_string().contains("not needed"), "{ended}");
    assert_eq!(tools.requests().len(), 1, "the call was made again");
}

#[test]
fn an_approval_expires_by_a_timer_that_survives_a_kill_of_the_service() {
    let Some(program) = harness::program() else { return };
    let (place, tools, calls) = world(&[think("once", json!({ "at": 0 })), complete(json!("ok"))], Duration::ZERO);
    let approval = json!({ "requires_approval": true, "approval": { "expires_after_ms": 1_500, "on_expiry": "fail" } });
    acting(&place, &tools, approval);
    let mut restate = Restate::start(program, &place);
    restate.begin("r", &json!({ "n": 1 }));
    assert_ne!(restate.settled("r")["status"], "completed");
    restate.kill_service();
    restate.start_service(&place);
    let ended = ended(&restate, "r");
    assert_eq!(ended["status"], "failed", "{ended}");
    assert!(ended.to_string().contains("approval_expired"), "{ended}");
    assert!(calls.lock().unwrap().is_empty(), "the call was made");
}

#[test]
fn a_called_loop_asks_and_goes_on_in_the_workflow_of_its_caller() {
    called_loop_asks(&[]);
}

fn called_loop_asks(options: &[&str]) {
    let Some(program) = harness::program() else { return };
    let helper =
        [think("once", json!({ "at": 1 })), ask(), think("again", json!({ "at": 2 })), complete(json!("helped"))];
    let (place, tools, calls) = world(&helper, Duration::ZERO);
    let mut helper: Value = serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
    helper["name"] = json!("helper");
    helper["description"] = json!("Acts.");
    place.json("loops/helper.json", &helper);
    place.json("boss.script.json", &json!({ "replies": [think("helper", json!({ "n": 5 })), complete(json!("ok"))] }));
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "input": { "type": "object", "properties": { "n": { "type": "integer" } } },
            "properties": { "mode": "react", "model": "boss", "objective": "Delegate.",
                "tools": [{ "type": "loop", "name": "helper" }] } }),
    );
    place.json(
        "loopctl.json",
        &json!({ "model": "m", "allow": { "private_addresses": true }, "models": {
            "m": { "provider": "script", "script": "script.json" },
            "boss": { "provider": "script", "script": "boss.script.json" } } }),
    );
    let mut restate = Restate::with_options(program, &place, options);
    restate.begin("r", &json!({ "n": 1 }));
    let waiting = restate.settled("r");
    assert_eq!(waiting["status"], "paused", "{waiting}");
    restate.kill_service();
    restate.start_service(&place);
    let taken = restate.call("r", "answer", &json!({ "answer": "Yes." }));
    assert_eq!(taken.status, 200, "{taken:?}");
    let ended = ended(&restate, "r");
    assert_eq!((&ended["status"], &ended["final_answer"]), (&json!("completed"), &json!("ok")), "{ended}");
    let once = |path: &str| (path.to_owned(), 1);
    assert_eq!(*calls.lock().unwrap(), BTreeMap::from([once("/again/5/2"), once("/once/5/1")]));
    drop(tools);
}

#[test]
fn a_run_with_too_many_steps_is_cancelled_with_a_sentence_also_after_a_kill() {
    let Some(program) = harness::program() else { return };
    let call = |at: usize| think("again", json!({ "at": at }));
    let replies: Vec<Value> = (0..60).map(call).chain([complete(json!("ok"))]).collect();
    let (place, tools, calls) = world(&replies, Duration::from_millis(20));
    let mut restate = Restate::with_options(program, &place, &["--max-steps", "30", "--max-parts", "1"]);
    restate.begin("r", &json!({ "n": 1 }));
    tools.wait_for(5);
    restate.kill_service();
    restate.start_service(&place);
    let ended = ended(&restate, "r");
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended.to_string().contains("more than 30 steps in the journal of Restate"), "{ended}");
    let calls = calls.lock().unwrap();
    assert!(calls.len() < 60 && calls.values().all(|count| *count <= 2), "{calls:?}");
}

#[test]
fn a_run_with_too_many_bytes_ends_with_a_sentence() {
    let Some(program) = harness::program() else { return };
    let place = Place::new();
    // Beyond the bound in one step, or in several.
    let tools = Server::with(|_, request| {
        let bytes = if request.path.starts_with("/once") { 2 << 20 } else { 300 << 10 };
        Answer::json(&json!({ "text": "x".repeat(bytes) }))
    });
    acting(&place, &tools, json!({}));
    let replies = (0..20).map(|at| think("again", json!({ "at": at }))).chain([complete(json!("ok"))]);
    client::scripted(&place, &replies.collect::<Vec<_>>(), json!({}));
    let mut restate = Restate::with_options(program, &place, &["--max-bytes", "1000000"]);
    restate.begin("several", &json!({ "n": 1 }));
    let ended = ended(&restate, "several");
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended.to_string().contains("more than 1000000 bytes in the journal of Restate"), "{ended}");

    restate.kill_service();
    client::scripted(&place, &[think("once", json!({ "at": 0 })), complete(json!("ok"))], json!({}));
    restate.start_service(&place);
    for handler in ["run", "status"] {
        let body = json!({ "loop": "test", "input": { "n": 1 } });
        let refused = restate.call("one", handler, if handler == "run" { &body } else { &Value::Null });
        assert_eq!(refused.status, 422, "{refused:?}");
        let why = refused.json()["message"].to_string();
        assert!(why.contains("Restate stores at most 1000000"), "{why}");
    }
}

/// Whether the run waited for a decision about a call that is not idempotent, and whose outcome is not known. The human
/// says that it happened.
fn decided(restate: &Restate, run_id: &str) -> bool {
    let status = restate.status(run_id);
    if status["status"] != "paused" {
        return false;
    }
    assert_eq!(status["result"]["termination"], "uncertain", "{status}");
    let taken = restate.call(run_id, "answer", &json!({ "happened": { "done": true } }));
    assert_eq!(taken.status, 200, "{taken:?}");
    true
}

/// Runs of so many calls, during which the service and the server are killed by turns.
fn killed(runs: usize, calls_of_run: usize, kills: usize, options: &[&str]) {
    let Some(program) = harness::program() else { return };
    let call = |at: usize| think(if at.is_multiple_of(2) { "again" } else { "once" }, json!({ "at": at }));
    let replies: Vec<Value> = (0..calls_of_run).map(call).chain([complete(json!("ok"))]).collect();
    let (place, _tools, calls) = world(&replies, Duration::from_millis(300));
    let mut restate = Restate::with_options(program, &place, options);
    let id = |n: usize| format!("run-{n}");
    for n in 0..runs {
        restate.begin(&id(n), &json!({ "n": n }));
    }
    // The calls of a kind that arrived, and how many different ones these are.
    let made = |kind: &str| {
        let calls = calls.lock().unwrap();
        let of_kind = calls.iter().filter(|(path, _)| path.starts_with(kind));
        of_kind.fold((0, 0), |(all, different), (_, count)| (all + count, different + 1))
    };
    let mut uncertain = 0;
    for kill in 0..kills {
        // By turns a call is under way that may be repeated, and one that may not.
        let kind = if kill / 2 % 2 == 0 { "/once" } else { "/again" };
        let (before, mut looks) = (made(kind).0, 0);
        while made(kind).0 == before {
            if looks % 500 == 0 {
                uncertain += (0..runs).filter(|n| decided(&restate, &id(*n))).count();
            }
            looks += 1;
            assert!(made(kind).1 < runs * calls_of_run / 2, "the runs were over before kill {kill}");
            std::thread::sleep(Duration::from_millis(1));
        }
        if kill % 2 == 0 {
            restate.kill_service();
            restate.start_service(&place);
        } else {
            restate.kill_server();
            restate.start_server();
        }
    }
    for n in 0..runs {
        while restate.settled(&id(n))["status"] == "paused" {
            uncertain += usize::from(decided(&restate, &id(n)));
        }
        let status = restate.settled(&id(n));
        assert_eq!(status["status"], "completed", "{status}");
    }
    let calls = calls.lock().unwrap();
    let again: usize = calls.iter().filter(|(path, _)| path.starts_with("/again")).map(|(_, count)| count - 1).sum();
    println!("{runs} runs ended, {kills} kills: {uncertain} uncertain, {again} idempotent calls repeated");
    for (path, count) in calls.iter() {
        assert!(*count <= 1 + kills, "{path}: {count}");
        assert!(!path.starts_with("/once") || *count == 1, "{path} was made {count} times");
    }
    assert!(uncertain > 0 && again > 0, "no kill met a call: this shows nothing");
}

#[test]
fn kills_of_the_service_and_of_the_server_lose_nothing_and_repeat_no_finished_call() {
    killed(6, 6, 4, &[]);
}

#[test]
#[ignore = "minutes: part of the nightly tests"]
fn fifty_runs_survive_twenty_kills() {
    killed(50, 90, 20, &[]);
}
