//! A run that kills whoever drives it: after three servers in a row it is set aside, and stops no other one.
#![cfg(all(unix, debug_assertions))]

use std::os::unix::process::ExitStatusExt as _;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, look, think, wait_poll_interval, web};
use crate::serve::client::{Serving, place};

/// Serves the place until the server kills itself at this point.
fn die(place: &Place, at: &str) {
    let mut command = place.command(&["serve", ".", "--listen", "127.0.0.1:0"]);
    let ended = command.env("LOOPCTL_FAIL", at).output().unwrap();
    assert_eq!(ended.status.signal(), Some(9), "{at}: {ended:?}");
}

fn note(n: u32) -> Value {
    think("__log_progress__", json!({ "message": n.to_string() }))
}

/// A place with a run that was cut off in the middle of its first iteration.
fn cut_off() -> Place {
    let replies: Vec<Value> = (0..9).map(note).chain([complete(json!("ok"))]).collect();
    let place = place(json!({ "max_iterations": 20 }), &replies);
    let killed =
        place.command(&["run", "loop.json", "--run-id", "r"]).env("LOOPCTL_FAIL", "journal:1:after-sync").output();
    assert_eq!(killed.unwrap().status.signal(), Some(9));
    place
}

fn quarantined(server: &Serving) -> String {
    let text = String::from_utf8(server.get("/metrics").body).unwrap();
    text.lines().find_map(|line| line.strip_prefix("loopctl_runs_quarantined ")).unwrap().to_owned()
}

#[test]
fn a_run_that_was_taken_up_three_times_in_vain_is_set_aside_until_somebody_resumes_it() {
    let place = cut_off();
    for at in ["journal:0:before-write", "journal:0:after-sync", "journal:0:before-effect"] {
        die(&place, at);
    }
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "quarantined");
    let listed = server.get("/agents?status=quarantined").json();
    assert_eq!((&listed["agents"][0]["agent_run_id"], &listed["agents"][1]), (&json!("r"), &Value::Null));
    assert_eq!(server.get("/agents?status=running").json()["agents"], json!([]));
    assert_eq!(quarantined(&server), "1");
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed", "it stops no other run");
    drop(server);
    let shown = place.command(&["runs", "--status", "quarantined"]).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("its process died 3 times"), "{shown:?}");

    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "quarantined", "the next server leaves it alone too");
    let other = server.post("/agents/r/resume", &json!({ "answer": "x" }));
    assert_eq!(other.status, 409, "it asks nothing: {other:?}");
    let resumed = server.post("/agents/r/resume", &json!({ "resume": true })).json();
    assert_eq!(resumed["status"], "completed", "{resumed:#}");
    assert_eq!(quarantined(&server), "0");
    let again = server.post("/agents/r/resume", &json!({ "resume": true }));
    assert_eq!((again.status, again.code()), (409, "refused".to_owned()));
}

#[test]
fn a_driver_that_panics_gives_its_place_back_and_the_next_server_takes_its_run_up() {
    let place = place(json!({}), &[note(1), complete(json!("ok"))]);
    let fail = [("LOOPCTL_FAIL", "journal:1:before-effect-panic")];
    let server = Serving::start_with(&place, &["--max-concurrent-runs", "1"], &fail);
    let first = server.execute("", json!({ "loop": "test" }));
    assert_eq!((first.status, &first.json()["status"]), (202, &json!("running")), "{first:?}");
    let second = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(second["status"], "completed", "the only place is free again: {second:#}");
    drop(server);
    let id = first.json()["agent_run_id"].as_str().unwrap().to_owned();
    assert_eq!(Serving::start(&place, &[]).settled(&id)["status"], "completed");
}

#[test]
fn a_run_that_two_servers_died_of_goes_on_with_the_third() {
    let place = cut_off();
    for _ in 0..2 {
        die(&place, "journal:0:after-sync");
    }
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "completed");
}

#[test]
fn servers_that_die_one_step_further_each_time_set_nothing_aside() {
    let place = cut_off();
    for _ in 0..5 {
        die(&place, "journal:1:after-sync");
    }
    for _ in 0..2 {
        die(&place, "journal:0:after-sync");
    }
    die(&place, "journal:1:after-sync");
    for _ in 0..2 {
        die(&place, "journal:0:after-sync");
    }
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "completed");
}

#[test]
fn a_run_that_is_set_aside_is_resumed_and_cancelled_from_the_command_line() {
    for (command, status) in [("resume", Some(0)), ("cancel", Some(0))] {
        let place = cut_off();
        for _ in 0..3 {
            die(&place, "journal:0:after-sync");
        }
        assert_eq!(Serving::start(&place, &[]).settled("r")["status"], "quarantined");
        for decision in [&["resume", "r", "--approve"][..], &["resume", "r", "--answer", "x"], &["retry", "r"]] {
            let refused = place.call(decision);
            assert!(refused.code == 2 && refused.stderr.contains("run r is quarantined"), "{decision:?}: {refused:?}");
            assert!(refused.stderr.contains("`loopctl resume r` continues it"), "{refused:?}");
        }
        let done = place.command(&[command, "r"]).output().unwrap();
        assert_eq!(done.status.code(), status, "{done:?}");
        let server = Serving::start(&place, &[]);
        assert_ne!(server.settled("r")["status"], "quarantined");
        assert_eq!(quarantined(&server), "0");
    }
}

/// Kills a server at once.
fn kill(server: Serving) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(server.pid()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert_eq!(server.ended(), None);
}

fn modelled(server: &Server) -> Value {
    let model = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()), "model": "m-1" });
    json!({ "allow": { "private_addresses": true, "commands": ["sh"] }, "model": "m", "models": { "m": model } })
}

#[test]
fn runs_that_wait_for_their_models_are_not_what_a_process_died_of() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = Server::with(move |_, _| Answer::openai(&complete(json!("ok")).to_string()).behind(&held));
    let place = place(json!({}), &[]);
    place.json("loopctl.json", &modelled(&model));
    let mut ids = Vec::new();
    for round in 0..6 {
        let server = Serving::start(&place, &[]);
        if round == 0 {
            for _ in 0..3 {
                let started = server.execute("?async=true", json!({ "loop": "test" })).json();
                ids.push(started["agent_run_id"].as_str().unwrap().to_owned());
            }
        }
        model.wait_for(3 * (round + 1));
        kill(server);
    }
    gate.open();
    let server = Serving::start(&place, &[]);
    for id in ids {
        assert_eq!(server.settled(&id)["status"], "completed");
    }
}

#[test]
fn a_run_that_waits_for_the_next_attempt_at_a_call_is_not_what_a_process_died_of() {
    let tools = Server::with(|number, _| match number {
        0 => Answer::json("{}").status(503).header("retry-after", "300"),
        _ => Answer::json("{}"),
    });
    let place = Place::new();
    let retry = json!({ "http_method": "GET", "retry": { "attempts": 3, "max_ms": 600_000 } });
    place.json("actions/read.json", &json!([web("read", &tools.url(), retry)]));
    place.json("workflows/flow.json", &json!({ "name": "flow", "definition": { "actions": [{ "type": "read" }] } }));
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    // The answer is stored behind its request: a server that is killed between the two makes the call again.
    let in_vain = || -> Option<u32> {
        let store = rusqlite::Connection::open(place.path().join("runs.db")).ok()?;
        let sql = "SELECT failed_take_ups FROM runs WHERE driver IS NOT NULL AND
            EXISTS (SELECT 1 FROM events WHERE event LIKE '%step_retried%')";
        store.query_row(sql, [], |row| row.get(0)).ok()
    };
    for round in 0..5 {
        let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
        if round == 0 {
            let started = server.post("/workflows/flow/execute?async=true", &json!({ "input": {} }));
            assert_eq!(started.status, 202, "{started:?}");
            tools.wait_for(1);
        }
        while server.get("/readyz").json()["driven"] != 1 || in_vain() != Some(0) {
            wait_poll_interval();
        }
        kill(server);
    }
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    while server.get("/readyz").json()["driven"] != 1 {
        wait_poll_interval();
    }
    assert_eq!((quarantined(&server), tools.requests().len()), ("0".to_owned(), 1));
}

/// A place with a loop whose tool kills the process that calls it, and the loop `test`, whose tool is of this server.
fn deadly(tools: &Server) -> Place {
    let place = place(json!({}), &[look("a"), complete(json!("ok"))]);
    let mut document = crate::common::document(&json!({}));
    document["actions"][0]["url"] = json!(format!("{}/look/{{{{at}}}}", tools.url()));
    place.json("loop.json", &document);
    let boom = json!({ "action_name": "boom", "kind": "command", "description": "b", "program": "sh",
        "args": ["-c", "kill -9 $PPID"], "idempotent": true });
    let properties = json!({ "mode": "react", "objective": "Do it.", "tools": [{ "type": "action", "name": "boom" }],
        "model": "deadly" });
    place
        .json("deadly.json", &json!({ "type": "loop", "name": "deadly", "actions": [boom], "properties": properties }));
    place.json("deadly-script.json", &json!({ "replies": [think("boom", json!({})), complete(json!("x"))] }));
    let script = |file: &str| json!({ "provider": "script", "script": file });
    let project = json!({ "model": "m", "allow": { "private_addresses": true, "commands": ["sh"] },
        "models": { "m": script("script.json"), "deadly": script("deadly-script.json") } });
    place.json("loopctl.json", &project);
    let killed = place.command(&["run", "deadly.json", "--run-id", "bad"]).output().unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    place
}

/// Serves the place again and again until a server has set the run `bad` aside; returns how many died.
fn until_it_lives(place: &Place) -> (Serving, u32) {
    for died in 0..8 {
        let server = Serving::start(place, &[]);
        loop {
            match server.try_send("GET", "/agents?status=quarantined", &[], b"") {
                None => break,
                Some(reply) if reply.json()["agents"][0]["agent_run_id"] == "bad" => return (server, died),
                Some(_) => crate::common::wait_poll_interval(),
            }
        }
        assert_eq!(server.ended(), None, "the tool kills it");
    }
    panic!("no server lives");
}

#[test]
fn a_run_whose_own_tool_ends_the_process_is_set_aside_and_all_surfaces_say_so() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let place = deadly(&tools);
    let (server, died) = until_it_lives(&place);
    assert!(died <= 4, "{died}");
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
    let status = server.get("/agents/bad/status").json();
    assert_eq!((&status["status"], &status["result"]["status"]), (&json!("quarantined"), &json!("quarantined")));
    assert_eq!(status["result"]["error"]["code"], "quarantined", "{status:#}");
    let trace = server.get("/agents/bad/trace").json();
    assert_eq!((&trace["status"], &trace["error"]["code"]), (&json!("quarantined"), &json!("quarantined")));
    drop(server);
    let explained = place.call(&["explain", "bad"]);
    let words = ["died again and again", "while it called boom", "loopctl resume bad"];
    assert!(words.iter().all(|words| explained.stdout.contains(words)), "{explained:#?}");
    let traced = place.call(&["trace", "bad"]);
    assert!(traced.stdout.contains("quarantined") && traced.stderr.contains("resume bad"), "{traced:#?}");
    let released = place.call(&["store", "release"]);
    assert_eq!((released.code, released.stdout.as_str()), (0, "bad\n"), "{released:#?}");
    assert!(!place.call(&["runs", "--status", "quarantined"]).stdout.contains("bad"));
}

#[test]
fn the_steps_of_a_quarantined_workflow_are_shown_as_those_of_a_quarantined_run() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let script = json!({ "provider": "script", "script": "script.json" });
    place.json("loopctl.json", &json!({ "model": "m", "models": { "m": script }, "allow": { "commands": ["sh"] } }));
    let boom = json!({ "action_name": "boom", "kind": "command", "description": "b", "program": "sh",
        "args": ["-c", "kill -9 $PPID"], "idempotent": true, "parameters": { "type": "object" } });
    place.json("actions/boom.json", &json!([boom]));
    let steps = json!([{ "id": "b", "type": "boom", "properties": {} }]);
    place.json("flow.json", &json!({ "name": "flow", "definition": { "actions": steps } }));
    let killed = place.command(&["run", "flow.json", "--run-id", "bad"]).output().unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    let (server, _) = until_it_lives(&place);
    for at in ["b", ""] {
        let shown = server.get(&format!("/agents/bad/trace?at={at}")).json();
        assert_eq!(shown["status"], "quarantined", "{shown:#}");
    }
    drop(server);
    for at in ["b", ""] {
        let shown = place.call(&["trace", "bad", "--at", at, "--format", "json"]).json();
        assert_eq!(shown["status"], "quarantined", "{shown:#}");
    }
}

#[test]
fn runs_that_were_beside_the_one_that_ended_the_processes_go_on() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "seen": 1 })).behind(&held));
    let place = deadly(&tools);
    for (number, id) in ["calm", "still"].into_iter().enumerate() {
        let mut child = place.start(&["run", "loop.json", "--run-id", id], &[]);
        tools.wait_for(number + 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (server, _) = until_it_lives(&place);
    gate.open();
    for id in ["calm", "still"] {
        assert_eq!(server.settled(id)["status"], "completed");
    }
    assert_eq!(server.settled("bad")["status"], "quarantined");
}

#[test]
fn only_who_means_it_takes_a_run_out_of_quarantine() {
    let place = cut_off();
    for at in ["journal:0:before-write", "journal:0:after-sync", "journal:0:before-effect"] {
        die(&place, at);
    }
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "quarantined");
    for (route, body) in [
        ("resume", json!({ "max_iterations": 30 })),
        ("resume", json!({ "timeout_ms": 900_000 })),
        ("resume", json!({ "budget": { "tokens": 1_000_000 } })),
        ("resume", json!({ "answer": "x" })),
        ("resume", json!({ "approve": true, "at": "ok" })),
        ("retry", json!({})),
    ] {
        let refused = server.post(&format!("/agents/r/{route}"), &body);
        assert_eq!((refused.status, refused.code()), (409, "quarantined".to_owned()), "{route} {body} {refused:?}");
        assert!(refused.json()["detail"].as_str().unwrap().contains(r#"{"resume": true}"#), "{refused:?}");
        assert_eq!(server.settled("r")["status"], "quarantined", "{route} {body}");
    }
    let resumed = server.post("/agents/r/resume", &json!({ "resume": true, "max_iterations": 30 })).json();
    assert_eq!(resumed["status"], "completed", "{resumed:#}");
    assert_eq!(resumed["result"]["continuations"][0]["limits"]["max_iterations"], 30, "{resumed:#}");
}

#[test]
fn quarantined_runs_are_released_together_over_http() {
    let place = cut_off();
    for at in ["journal:0:before-write", "journal:0:after-sync", "journal:0:before-effect"] {
        die(&place, at);
    }
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "quarantined");
    let other = server.post("/agents/release", &json!({ "loop": "other" }));
    assert_eq!((other.status, other.json()), (200, json!({ "released": [] })));
    assert_eq!(server.post("/agents/release", &json!({ "run": "r" })).status, 400);
    let released = server.post("/agents/release", &json!({}));
    assert_eq!((released.status, released.json()), (200, json!({ "released": ["r"] })), "{released:?}");
    assert_eq!(server.settled("r")["status"], "completed", "the server takes it up");
    assert_eq!(server.post("/agents/release", &json!({})).json(), json!({ "released": [] }));
}

#[test]
fn a_run_below_one_that_is_set_aside_is_shown_so_too() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let boom = json!({ "action_name": "boom", "kind": "command", "description": "b", "program": "sh",
        "args": ["-c", "kill -9 $PPID"], "idempotent": true });
    place.json("actions/boom.json", &json!([boom]));
    let step =
        |kind: &str, more: Value| crate::common::with(json!({ "type": kind, "id": "s", "properties": {} }), more);
    let flow =
        |name: &str, step: Value| json!({ "name": name, "description": "d", "definition": { "actions": [step] } });
    place.json("workflows/inner.json", &flow("inner", step("boom", json!({}))));
    place.json("workflows/outer.json", &flow("outer", step("workflow", json!({ "name": "inner" }))));
    let mut project: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    project["allow"]["commands"] = json!(["sh"]);
    place.json("loopctl.json", &project);
    let killed = place.command(&["run", "workflows/outer.json", "--run-id", "bad"]).output().unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    let (server, _) = until_it_lives(&place);
    let status = server.get("/agents/bad.s/status").json();
    assert_eq!((&status["status"], &status["result"]["status"]), (&json!("quarantined"), &json!("quarantined")));
    let trace = server.get("/agents/bad.s/trace").json();
    assert_eq!(trace["status"], "quarantined", "{trace:#}");
    let listed = server.get("/agents?called=true").json();
    let below = listed["agents"].as_array().unwrap().iter().find(|row| row["agent_run_id"] == "bad.s").cloned();
    assert_eq!(below.map(|row| row["status"].clone()), Some(json!("quarantined")), "{listed:#}");
    drop(server);
    let explained = place.call(&["explain", "bad.s"]);
    assert!(explained.stdout.contains("loopctl resume bad`"), "{explained:#?}");
    let traced = place.call(&["trace", "bad.s"]);
    assert!(traced.stdout.contains("quarantined"), "{traced:#?}");
    let runs = place.call(&["runs", "--called", "--output", "json"]).json();
    let below = runs.as_array().unwrap().iter().find(|row| row["run_id"] == "bad.s").cloned();
    assert_eq!(below.map(|row| row["status"].clone()), Some(json!("quarantined")), "{runs:#}");
    let recorded = place.call(&["record", "bad.s", "--output", "recorded.json"]);
    assert!(recorded.code == 2 && recorded.stderr.contains("it is quarantined"), "{recorded:#?}");
}
