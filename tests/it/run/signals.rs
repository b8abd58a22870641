//! Signals: once stops after the step, twice stops now; the run can be resumed; no process is left.

use std::io::{BufRead, BufReader};
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, gone, look, ran, think};

pub fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).expect("a pid")), signal).expect("it is there");
}

/// Waits until the program has said so on stderr; gives back the rest of the pipe.
pub fn wait_for_line(child: &mut Child, words: &str) -> std::thread::JoinHandle<String> {
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut seen = String::new();
    while !seen.contains(words) {
        assert_ne!(lines.read_line(&mut seen).expect("it reads"), 0, "{words:?} never came: {seen}");
    }
    std::thread::spawn(move || {
        std::io::copy(&mut lines, &mut std::io::sink()).expect("it reads");
        seen
    })
}

/// A loop whose one call of `act` is held by the gate, and completes with this answer behind it.
pub fn held_in_a_call(answer: &str) -> (Place, Server, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |_, _| Answer::json(&json!({ "did": 1 })).behind(&held));
    let place = Place::new();
    let mut document = crate::common::document(&json!({}));
    document["actions"][1]["url"] = json!(format!("{}/act", server.url()));
    place.json("loop.json", &document);
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let replies = [think("act", json!({ "what": "x" })), complete(json!(answer))];
    place.json("script.json", &json!({ "replies": replies }));
    (place, server, gate)
}

#[test]
fn a_signal_while_a_tool_is_called_lets_the_step_end_and_the_run_resumes() {
    for which in [Signal::SIGINT, Signal::SIGTERM] {
        let (place, server, gate) = held_in_a_call("ok");
        let child =
            place.start(&["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"], &[]);
        server.wait_for(1);
        signal(&child, which);
        let mut child = child;
        let rest = wait_for_line(&mut child, "after this step");
        gate.open();
        let output = child.wait_with_output().expect("it ends");
        rest.join().expect("it ends");
        let stopped = ran(&output);
        assert_eq!(stopped.code, 130, "{stopped:#?}");
        assert_eq!(stopped.json()["status"], "cancelled");
        let resumed = place.call(&["resume", "r", "--script", "script.json", "--output", "json"]);
        assert_eq!(resumed.code, 0, "{resumed:#?}");
        assert_eq!(resumed.json()["result"]["answer"], "ok");
        assert_eq!(server.requests().len(), 1, "the finished call is not made again");
    }
}

#[test]
fn a_second_signal_stops_at_once_and_leaves_no_process() {
    let place = Place::new();
    let mark = place.path().join("pid");
    let program = format!("echo $$ > {}; sleep 1000 & echo $! >> {}; wait", mark.display(), mark.display());
    place.file("slow.sh", format!("#!/bin/sh\n{program}\n"));
    let script = place.path().join("slow.sh");
    std::process::Command::new("chmod").arg("+x").arg(&script).status().expect("chmod");
    let script = script.display().to_string();
    place.json("loopctl.json", &json!({ "allow": { "commands": [script] } }));
    place.json(
        "loop.json",
        &json!({ "type": "loop", "actions": [{ "action_name": "slow", "kind": "command", "description": "Is slow.",
            "program": script, "timeout_ms": 600_000 }],
            "properties": { "mode": "react", "objective": "x", "tools": [{ "type": "action", "name": "slow" }] } }),
    );
    place.json("script.json", &json!({ "replies": [think("slow", json!({})), complete(json!("ok"))] }));
    let mut child =
        place.start(&["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"], &[]);
    while std::fs::read_to_string(&mark).unwrap_or_default().lines().count() < 2 {
        assert!(child.try_wait().expect("it is there").is_none(), "it ended early");
        crate::common::wait_poll_interval();
    }
    signal(&child, Signal::SIGINT);
    let rest = wait_for_line(&mut child, "after this step");
    signal(&child, Signal::SIGINT);
    let output = child.wait_with_output().expect("it ends");
    rest.join().expect("it ends");
    assert_eq!(ran(&output).code, 130);
    for pid in std::fs::read_to_string(&mark).expect("pids").lines() {
        assert!(gone(pid), "process {pid} is left");
    }
    let resumed = place.call(&["resume", "r", "--script", "script.json", "--output", "json"]);
    assert_eq!((resumed.code, &resumed.json()["termination"]), (3, &json!("uncertain")), "{resumed:#?}");
}

#[test]
fn a_signal_while_the_model_thinks_twice_is_resumed_as_if_nothing_was() {
    let place = Place::new();
    let slow = json!({ "delay_ms": 600_000, "text": look("a") });
    place.looped(&json!({ "timeout_ms": 3_600_000 })).script(&[look("b"), slow, complete(json!("ok"))]);
    let mut child = place.start(&["run", "loop.json", "--script", "script.json", "--run-id", "r"], &[]);
    let rest = wait_for_line(&mut child, "seen");
    signal(&child, Signal::SIGTERM);
    signal(&child, Signal::SIGTERM);
    // The two may arrive as one: a third makes sure.
    while child.try_wait().expect("it is there").is_none() {
        let _ = kill(Pid::from_raw(i32::try_from(child.id()).expect("a pid")), Signal::SIGTERM);
        crate::common::wait_poll_interval();
    }
    assert_eq!(child.wait().expect("it ended").code(), Some(130));
    rest.join().expect("it ends");
    place.script(&[look("b"), complete(json!("ok"))]);
    let resumed = place.call(&["resume", "r", "--script", "script.json", "--output", "json"]);
    assert_eq!(resumed.code, 0, "{resumed:#?}");
}

/// A server whose model is away for good, and says that it comes back in half a minute; every other path answers.
fn away() -> Server {
    Server::with(|_, request| match request.path.as_str() {
        "/v1/chat/completions" => Answer::json(&json!({})).status(503).header("retry-after", "30"),
        _ => Answer::json(&json!({ "did": 1 })),
    })
}

fn asking(server: &Server, document: &serde_json::Value) -> Place {
    let place = Place::new();
    let model = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()), "model": "m-1" });
    let project = json!({ "allow": { "private_addresses": true }, "model": "m", "models": { "m": model } });
    place.json("loopctl.json", &project);
    place.json("w.json", document);
    place
}

#[test]
fn a_signal_ends_the_wait_between_two_attempts_of_a_model() {
    let agent = json!({ "mode": "react", "objective": "Do it.", "tools": [] });
    let prompt = json!({ "action_name": "say", "kind": "llm", "template": "Say it." });
    let lone = json!({ "type": "loop", "properties": agent });
    let step = json!({ "id": "one", "type": "loop", "properties": agent });
    let of_agent = json!({ "name": "w", "definition": { "actions": [step] } });
    let of_prompt = json!({ "name": "w", "definition": { "actions": [{ "id": "one", "type": "say" }] } });
    for (kind, document) in [("loop", lone), ("agent", of_agent), ("llm", of_prompt)] {
        for which in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            let server = away();
            let place = asking(&server, &document);
            place.json("actions/say.json", &prompt);
            let mut child = place.start(&["run", "w.json", "--run-id", "r", "--store", "sqlite:r.db"], &[]);
            server.wait_for(1);
            signal(&child, which);
            let output = child.wait().expect("it ends");
            assert_eq!(output.code(), Some(130), "{kind}");
            assert_eq!(server.requests().len(), 1, "{kind}: no other attempt is made");
            let listed = place.call(&["runs", "--store", "sqlite:r.db"]);
            assert!(listed.stdout.contains("resumable"), "{kind}: {listed:#?}");
        }
    }
}

#[test]
fn a_run_that_was_stopped_while_it_waited_for_its_model_asks_it_again() {
    let server = away();
    let document = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Do it.", "tools": [] } });
    let place = asking(&server, &document);
    let mut child = place.start(&["run", "w.json", "--run-id", "r"], &[]);
    server.wait_for(1);
    signal(&child, Signal::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let model = json!({ "provider": "script", "script": "script.json" });
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "model": "m", "models": { "m": model } }),
    );
    // The attempt that failed took the first reply.
    place.json("script.json", &json!({ "replies": [complete(json!("no")), complete(json!("ok"))] }));
    let resumed = place.call(&["resume", "r", "--script", "script.json", "--output", "json"]);
    assert_eq!((resumed.code, &resumed.json()["result"]["answer"]), (0, &json!("ok")), "{resumed:#?}");
}

/// A server whose model is away at its request of this number, from 0, and calls `say` at the others until its result came.
fn away_at(number: usize) -> Server {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    Server::reading(move |_, request| {
        if asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == number {
            return Answer::json(&json!({})).status(503).header("retry-after", "3000");
        }
        let body = request.json().to_string();
        if body.contains("Say it.") && !body.contains("Do it.") {
            return Answer::openai("said");
        }
        let reply = if body.contains("said") { complete(json!("ok")) } else { think("say", json!({})) };
        Answer::openai(&reply.to_string())
    })
}

#[test]
fn a_call_that_was_stopped_between_two_attempts_of_its_model_is_made_again_and_is_not_uncertain() {
    let prompt = json!({ "action_name": "say", "kind": "llm", "description": "Says.", "template": "Say it." });
    let tools = json!([{ "type": "action", "name": "say" }]);
    let lone = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Do it.", "tools": tools } });
    let say = json!({ "id": "one", "type": "say" });
    let one = json!({ "name": "w", "definition": { "actions": [say] } });
    let each = json!({ "mode": "foreach", "items_path": "@input.l", "item_variable_name": "x",
        "actions_to_execute": [say] });
    let items = json!({ "name": "w",
        "input": { "type": "object", "properties": { "l": { "type": "array" } }, "required": ["l"] },
        "definition": { "actions": [{ "id": "each", "type": "loop", "properties": each }] } });
    let no_input = "{}".to_owned();
    for (kind, document, input, at) in [
        ("loop", lone, no_input.clone(), 1),
        ("step", one, no_input, 0),
        ("item", items, json!({ "l": [1] }).to_string(), 0),
    ] {
        for which in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            let server = away_at(at);
            let place = asking(&server, &document);
            place.json("actions/say.json", &prompt);
            let args = ["run", "w.json", "--run-id", "r", "--input", &input, "--store", "sqlite:r.db"];
            let mut child = place.start(&args, &[]);
            server.wait_for(at + 1);
            signal(&child, which);
            let rest = wait_for_line(&mut child, "resume r");
            assert_eq!(child.wait().expect("it ends").code(), Some(130), "{kind} {which}");
            rest.join().expect("it ends");
            let trace = place.call(&["trace", "r", "--store", "sqlite:r.db"]);
            assert!(!trace.stdout.contains("uncertain"), "{kind} {which}: {trace:#?}");
            let resumed = place.call(&["resume", "r", "--store", "sqlite:r.db", "--output", "json"]);
            assert_eq!(
                (resumed.code, &resumed.json()["status"]),
                (0, &json!("completed")),
                "{kind} {which}: {resumed:#?}"
            );
        }
    }
}

#[test]
fn what_failed_attempts_used_counts_although_a_stop_ended_the_call() {
    let retry = json!({ "base_ms": 600_000, "max_ms": 600_000 });
    let prompt = json!({ "action_name": "say", "kind": "llm", "description": "Says.", "template": "Say it.",
        "retry": retry });
    let tools = json!([{ "type": "action", "name": "say" }]);
    let lone = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Do it.", "tools": tools } });
    let say = json!({ "id": "one", "type": "say" });
    let one = json!({ "name": "w", "definition": { "actions": [say] } });
    let each = json!({ "mode": "foreach", "items_path": "@input.l", "item_variable_name": "x",
        "actions_to_execute": [say] });
    let items = json!({ "name": "w",
        "input": { "type": "object", "properties": { "l": { "type": "array" } }, "required": ["l"] },
        "definition": { "actions": [{ "id": "each", "type": "loop", "properties": each }] } });
    // The loop asks its own model twice.
    for (kind, document, input, at, tokens) in
        [("loop", lone, json!({}), 1, 40), ("step", one, json!({}), 0, 20), ("item", items, json!({ "l": [1] }), 0, 20)]
    {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let server = Server::reading(move |_, request| {
            let body = request.json().to_string();
            if asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == at {
                // An answer that says nothing, and is paid for.
                return Answer::openai("");
            }
            if body.contains("Say it.") && !body.contains("Do it.") {
                return Answer::openai("said");
            }
            let reply = if body.contains("said") { complete(json!("ok")) } else { think("say", json!({})) };
            Answer::openai(&reply.to_string())
        });
        let place = asking(&server, &document);
        place.json("actions/say.json", &prompt);
        let args = ["run", "w.json", "--run-id", "r", "--input", &input.to_string(), "--store", "sqlite:r.db"];
        let mut child = place.start(&args, &[]);
        server.wait_for(at + 1);
        signal(&child, Signal::SIGTERM);
        let rest = wait_for_line(&mut child, "resume r");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{kind}");
        rest.join().expect("it ends");
        let resumed = place.call(&["resume", "r", "--store", "sqlite:r.db", "--output", "json"]);
        let result = resumed.json();
        assert_eq!((resumed.code, &result["usage"]["input_tokens"]), (0, &json!(tokens)), "{kind}: {resumed:#?}");
    }
}

#[test]
fn a_terminal_that_is_closed_stops_a_run_once_however_often_it_says_so() {
    let (place, server, gate) = held_in_a_call("ok");
    let mut child =
        place.start(&["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"], &[]);
    server.wait_for(1);
    signal(&child, Signal::SIGHUP);
    let rest = wait_for_line(&mut child, "after this step");
    for _ in 0..5 {
        signal(&child, Signal::SIGHUP);
    }
    gate.open();
    let stopped = ran(&child.wait_with_output().expect("it ends"));
    rest.join().expect("it ends");
    assert_eq!((stopped.code, &stopped.json()["status"]), (130, &json!("cancelled")), "{stopped:#?}");
    let resumed = place.call(&["resume", "r", "--script", "script.json", "--output", "json"]);
    assert_eq!((resumed.code, &resumed.json()["result"]["answer"]), (0, &json!("ok")), "{resumed:#?}");
    assert_eq!(server.requests().len(), 1, "the finished call is not made again");
}
