//! The end of a server, orderly and not: no run is lost, none is doubled.

use std::collections::BTreeMap;
use std::process::Stdio;

use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::common::server::{Answer, Gate, Server};
use crate::common::{complete, think};
use crate::serve::client::acting;
use crate::serve::client::{Serving, place};

pub fn terminate(server: &Serving) {
    server.terminate();
}

#[test]
fn a_signal_lets_the_step_end_and_the_next_server_goes_on() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = acting(&tools.url(), 2, 0);
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    let key = [("idempotency-key", "one")];
    let body = br#"{"loop":"test","input":{"n":1}}"#;
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| server.send("POST", "/agents/execute", &key, body));
        tools.wait_for(1);
        // Two more wait for their turn, and somebody for one of them.
        let queued = scope.spawn(|| server.execute("", json!({ "loop": "test", "input": { "n": 4 } })));
        while server.get("/readyz").json()["queued"] != 1 {
            crate::common::wait_poll_interval();
        }
        assert_eq!(server.execute("?async=true", json!({ "loop": "test", "input": { "n": 2 } })).status, 202);
        terminate(&server);
        while server.get("/readyz").status == 200 {
            crate::common::wait_poll_interval();
        }
        assert_eq!(server.execute("", json!({ "loop": "test", "input": { "n": 3 } })).code(), "draining");
        gate.open();
        let reply = waits.join().unwrap();
        assert_eq!((reply.status, &reply.json()["status"]), (202, &json!("running")), "{reply:?}");
        assert_eq!(queued.join().unwrap().status, 202);
    });
    assert_eq!(server.ended(), Some(0));
    assert_eq!(tools.requests().len(), 1, "the step ended, and no other began");
    let next = Serving::start(&place, &[]);
    let run = next.send("POST", "/agents/execute", &key, body);
    assert_eq!((run.status, &run.json()["status"]), (200, &json!("completed")), "{run:?}");
    for run in next.get("/agents").json()["agents"].as_array().unwrap() {
        let events = next.events(run["agent_run_id"].as_str().unwrap(), &[]);
        assert_eq!(events.last().unwrap().1["status"], "completed");
    }
    let mut paths: Vec<String> = tools.requests().into_iter().map(|request| request.path).collect();
    paths.sort();
    assert_eq!(paths, ["/1/0", "/1/1", "/2/0", "/2/1", "/4/0", "/4/1"]);
}

#[test]
fn what_waits_for_a_human_still_waits_after_a_restart() {
    let place =
        place(json!({}), &[think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    drop(server);
    let next = Serving::start(&place, &[]);
    assert_eq!(next.get(&format!("/agents/{id}/status")).json()["status"], "paused");
    let done = next.post(&format!("/agents/{id}/resume"), &json!({ "answer": "yes" }));
    assert_eq!(done.json()["status"], "completed", "{done:?}");
}

/// Kills a server with so many runs in flight, so many times; every run ends once.
fn killed(runs: usize, kills: usize) {
    const CALLS: usize = 3;
    let tools = Server::with(|_, _| Answer::json(&json!({})));
    let place = acting(&tools.url(), CALLS, 10);
    let body = |n: usize| json!({ "loop": "test", "input": { "n": n } }).to_string();
    let send = |server: &Serving, n: usize, query: &str| {
        let key = format!("job {n}");
        server.try_send("POST", &format!("/agents/execute{query}"), &[("idempotency-key", &key)], body(n).as_bytes())
    };
    let mut server = Serving::start(&place, &["--max-concurrent-runs", "20"]);
    for n in 0..runs {
        assert_eq!(send(&server, n, "?async=true").unwrap().status, 202);
    }
    let step = (runs * CALLS).saturating_sub(10) / kills.max(1);
    for round in 1..=kills {
        tools.wait_for(round * step);
        drop(server);
        server = Serving::start(&place, &["--max-concurrent-runs", "20"]);
    }
    for n in 0..runs {
        let run = send(&server, n, "").unwrap();
        assert_eq!((run.status, &run.json()["status"]), (200, &json!("completed")), "{n}: {run:?}");
        assert_eq!(run.json()["iterations"], CALLS + 1);
    }
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for request in tools.requests() {
        let key = request.header("idempotency-key").unwrap().to_owned();
        keys.entry(request.path).or_default().push(key);
    }
    assert_eq!(keys.len(), runs * CALLS, "none is lost");
    for (path, mut keys) in keys {
        keys.dedup();
        assert_eq!(keys.len(), 1, "{path}: a repeated call has the key of the first");
    }
    assert_eq!(server.get("/agents?limit=500").json()["agents"].as_array().unwrap().len(), runs, "none is doubled");
}

#[test]
fn fifty_runs_end_once_though_their_server_is_killed() {
    killed(50, 4);
}

#[test]
#[ignore = "nightly: 20 kills of a server with 50 runs"]
fn fifty_runs_end_once_though_their_server_is_killed_twenty_times() {
    killed(50, 20);
}

#[test]
fn the_end_of_its_terminal_lets_a_server_end_in_order() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = acting(&tools.url(), 1, 0);
    let OpenptyResult { master: _terminal, slave } = openpty(None, None).unwrap();
    let mut command = place.command(&["serve", ".", "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::from(slave));
    let server = Serving::started_unread(command);
    assert_eq!(server.execute("?async=true", json!({ "loop": "test", "input": { "n": 1 } })).status, 202);
    tools.wait_for(1);
    kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Signal::SIGHUP).unwrap();
    while server.get("/readyz").status == 200 {
        crate::common::wait_poll_interval();
    }
    gate.open();
    assert_eq!(server.ended(), Some(0));
    let next = Serving::start(&place, &[]);
    let run = next.get("/agents").json()["agents"][0]["agent_run_id"].as_str().unwrap().to_owned();
    assert_eq!(next.settled(&run)["status"], "completed");
    assert_eq!(tools.requests().len(), 1, "the step ended, and is not made again");
}

#[test]
fn a_signal_right_after_the_address_ends_a_server_in_order() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    for _ in 0..12 {
        let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
        terminate(&server);
        assert_eq!(server.ended(), Some(0));
    }
}

#[test]
fn a_server_whose_model_is_away_ends_while_its_runs_wait_for_the_next_attempt() {
    let away = Server::with(|_, _| Answer::json(&json!({})).status(503).header("retry-after", "30"));
    let place = place(json!({ "retry": {} }), &[]);
    let model = json!({ "provider": "openai", "base_url": format!("{}/v1", away.url()), "model": "m-1" });
    let project = json!({ "allow": { "private_addresses": true }, "model": "m", "models": { "m": model } });
    place.json("loopctl.json", &project);
    let server = Serving::start(&place, &[]);
    assert_eq!(server.execute("?async=true", json!({ "loop": "test" })).status, 202);
    away.wait_for(1);
    terminate(&server);
    assert_eq!(server.ended(), Some(0));
    assert_eq!(away.requests().len(), 1, "no other attempt was made");
}
