//! Loops with tools of MCP servers: sound servers of both revisions, and servers that misbehave in each way.
#![cfg(unix)]

mod commands;
mod http;
mod oauth;
pub mod questions;
mod reports;
mod settings;
pub mod steps;

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, gone, observed, think};

/// A project with a server of `server.sh` that begins in this way.
pub fn notes(how: &str) -> Place {
    let place = Place::new();
    place.file("server.sh", include_str!("server.sh"));
    project(&place, how, json!({}));
    place
}

/// Writes the project file; `more` are settings of the server.
pub fn project(place: &Place, how: &str, more: Value) {
    let mut server = json!({ "command": "sh", "args": ["server.sh", how], "env": { "LOG": "off" } });
    for (name, value) in more.as_object().unwrap() {
        server[name] = value.clone();
    }
    place.json("loopctl.json", &json!({ "mcp": { "notes": server }, "allow": { "commands": ["sh"] } }));
}

/// Pins the server.
pub fn pin(place: &Place) -> Ran {
    let ran = place.call(&["mcp", "pin", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran
}

/// The same lock for a server that begins in another way: as if it had changed since.
pub fn relocked(place: &Place, how: &str) {
    let path = place.path().join("mcp.lock.json");
    let mut lock: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    lock["servers"]["notes"]["connection"]["args"][1] = json!(how);
    std::fs::write(path, lock.to_string()).unwrap();
}

/// Writes a loop that may call tools of the server, with settings of the declaration.
pub fn looped(place: &Place, tools: &[&str], more: Value) {
    let mut declared = json!({ "type": "mcp", "server": "notes", "tools": tools });
    for (name, value) in more.as_object().unwrap() {
        declared[name] = value.clone();
    }
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "reader", "properties": { "mode": "react", "objective": "Read.",
            "tools": [declared], "max_iterations": 50, "on_stuck": { "iterations": 100 } } }),
    );
}

/// The observations of these calls, and the run.
pub fn calls(place: &Place, names: &[&str]) -> Vec<String> {
    let replies: Vec<Value> =
        names.iter().map(|name| think(&format!("notes.{name}"), json!({ "path": "a" }))).collect();
    place.calls(&replies).iter().map(observed).collect()
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap_or_default()
}

#[test]
fn each_fault_of_a_server_is_its_own_and_the_run_goes_on() {
    let place = notes("noisy");
    pin(&place);
    let tools = [
        "read",
        "numbers",
        "twice",
        "asks",
        "refuses",
        "errs",
        "odd",
        "questions",
        "large",
        "dies",
        "sleeps",
        "nan",
        "half",
    ];
    looped(&place, &tools, json!({ "timeout_ms": 1500 }));
    let order = [
        "read",
        "numbers",
        "twice",
        "read",
        "asks",
        "refuses",
        "errs",
        "odd",
        "questions",
        "nan",
        "half",
        "large",
        "read",
        "dies",
        "read",
        "sleeps",
        "read",
    ];
    let seen = calls(&place, &order);
    let expected = [
        "a note",
        "{\"n\":12345678901234567890.10}",
        "one",
        "a note",
        "asked",
        "notes: -32602 Unknown note",
        "no such note",
        "[image, type image/png, 5 bytes, sha256 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824]",
        "Which account?",
        "it answered what is no answer: the call may have happened",
        "<\u{fffd}>",
        "the answer was larger than 4 MiB",
        "a note",
        "it ended during the call: the call may have happened",
        "a note",
        "timed out after 1.5 s; it wrote something that is no message",
        "a note",
    ];
    for ((name, seen), expected) in order.iter().zip(&seen).zip(expected) {
        assert!(seen.contains(expected), "{name}: {seen}");
    }
    assert!(seen[6].contains("\"code\"") && !seen[7].contains("aGVsbG8"), "{seen:#?}");
    // Once pinned, then for the run: anew after what was too large, and after its end.
    let starts: Vec<String> = read(&place, "starts.txt").lines().map(str::to_owned).collect();
    assert!(starts.len() >= 4, "{starts:?}");
    // Its input is closed, and it may end by itself.
    assert_eq!(read(&place, "saved.txt").lines().last(), starts.last().map(String::as_str));
    for pid in &starts {
        while !gone(pid) {
            crate::common::wait_poll_interval();
        }
    }
    assert!(read(&place, "replies.txt").contains("\"action\":\"cancel\""), "{}", read(&place, "replies.txt"));
    assert!(read(&place, "replies.txt").contains("-32601"), "{}", read(&place, "replies.txt"));
    assert!(read(&place, "cancelled.txt").contains("requestId"), "{}", read(&place, "cancelled.txt"));
    // Nothing of ours but the names that each server gets.
    let environ = read(&place, "environ.txt");
    let mut names: Vec<&str> = environ.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.sort_unstable();
    let ours = ["HOME", "LANG", "LOG", "LOOPCTL_CALL", "PATH"];
    assert!(names.is_empty() || names == ours, "{environ}");
}

#[test]
fn a_hint_makes_stricter_by_itself_and_laxer_where_the_server_is_trusted() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["flaky", "wipes"], json!({}));
    assert!(calls(&place, &["flaky"])[0].contains("it ended during the call: the call may have happened"));
    std::fs::remove_file(place.path().join("flaky.txt")).unwrap();
    project(&place, "legacy", json!({ "trust_annotations": true }));
    assert_eq!(calls(&place, &["flaky"])[0], "recovered");
    let destroys = [think("notes.wipes", json!({})), complete(json!("ok"))];
    place.json("script.json", &json!({ "replies": destroys }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json"]);
    assert_eq!((ran.code, ran.json()["termination"].as_str()), (3, Some("approval")), "{ran:#?}");
    let ran = place.call(&["resume", "r", "--approve", "--script", "script.json", "--output", "json"]);
    assert_eq!((ran.code, observed(&ran.json()["trace"][0]).as_str()), (0, "wiped"), "{ran:#?}");
}

#[test]
fn a_server_that_writes_without_end_is_stopped() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["floods", "read"], json!({}));
    let seen = calls(&place, &["floods", "read"]);
    assert!(seen[0].contains("it answered what is no answer"), "{seen:?}");
    assert_eq!(seen[1], "a note");
}

#[test]
fn a_run_and_those_that_it_calls_share_one_process() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["read"], json!({}));
    let inner = std::fs::read_to_string(place.path().join("loop.json")).unwrap();
    let mut inner: Value = serde_json::from_str(&inner).unwrap();
    inner["name"] = json!("inner");
    inner["description"] = json!("Counts.");
    inner["properties"]["tools"] = json!([{ "type": "mcp", "server": "notes", "tools": ["numbers"] }]);
    place.json("loops/inner.json", &inner);
    let outer = std::fs::read_to_string(place.path().join("loop.json")).unwrap();
    let mut outer: Value = serde_json::from_str(&outer).unwrap();
    outer["properties"]["tools"].as_array_mut().unwrap().push(json!({ "type": "loop", "name": "inner" }));
    place.json("loop.json", &outer);
    let inner = [think("notes.numbers", json!({})), complete(json!("counted"))];
    let outer = [think("notes.read", json!({ "path": "a" })), think("inner", json!({})), complete(json!("ok"))];
    let cases = json!({ "replies": outer, "loops": { "inner": inner } });
    place.json("script.json", &cases);
    let starts = read(&place, "starts.txt").lines().count();
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "json"]);
    assert_eq!((ran.code, ran.json()["result"]["answer"].as_str()), (0, Some("ok")), "{ran:#?}");
    assert_eq!(read(&place, "calls.txt").lines().count(), 2);
    assert_eq!(read(&place, "starts.txt").lines().count(), starts + 1);
}

#[test]
fn a_server_of_the_newest_revision_is_spoken_to_without_a_handshake() {
    let place = notes("newest");
    pin(&place);
    assert!(read(&place, "mcp.lock.json").contains("\"protocol\": \"2026-07-28\""));
    looped(&place, &["read"], json!({}));
    assert_eq!(calls(&place, &["read"])[0], "a note");
    let call: Value = serde_json::from_str(read(&place, "calls.txt").lines().next().unwrap()).unwrap();
    assert_eq!(call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(call["params"]["arguments"], json!({ "path": "a" }));
}

#[test]
fn nothing_is_sent_to_a_tool_that_has_changed_or_by_an_input_that_does_not_fit() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["read"], json!({}));
    for (how, expected) in [
        ("changed", "changed since it was pinned: input"),
        ("gone", "changed since it was pinned: gone"),
        ("destroys", "changed since it was pinned: annotations"),
        ("exits", "could not be started"),
        ("endless", "changed since it was pinned: gone"),
    ] {
        relocked(&place, how);
        project(&place, how, json!({}));
        let seen = calls(&place, &["read"]);
        let all = format!("{seen:?}");
        assert!(all.contains(expected), "{how}: {all}");
    }
    // The twin: what only reads otherwise is called, and what has changed is called where the project says so.
    for (how, more) in [("reworded", json!({})), ("changed", json!({ "on_drift": "warn" }))] {
        assert_eq!(read(&place, "calls.txt").lines().count(), usize::from(how == "changed"), "{how}");
        relocked(&place, how);
        project(&place, how, more);
        assert_eq!(calls(&place, &["read"])[0], "a note", "{how}");
    }
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["read"], json!({}));
    let seen = place.calls(&[think("notes.read", json!({ "path": [7] }))]);
    assert!(observed(&seen[0]).contains("path"), "{seen:?}");
    assert_eq!(read(&place, "calls.txt"), "");
    // Only the process that was pinned ran: the server is started by the first call.
    assert_eq!(read(&place, "starts.txt").lines().count(), 2, "{}", read(&place, "starts.txt"));
}

#[test]
fn a_server_that_never_answers_is_given_up_in_its_time() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["read"], json!({}));
    relocked(&place, "silent");
    project(&place, "silent", json!({ "start_timeout_ms": 100 }));
    let seen = calls(&place, &["read"]);
    assert!(seen[0].contains("could not be started"), "{seen:?}");
    assert_eq!(read(&place, "calls.txt"), "");
    // It is said what it waits for.
    project(&place, "silent", json!({ "start_timeout_ms": 2000 }));
    let pinned = place.call(&["mcp", "pin"]);
    assert!(pinned.stderr.contains("within 2 s") && pinned.stderr.contains("Which key?"), "{pinned:#?}");
}

/// The observations of calls that are made at once, in the order of the calls.
fn at_once(place: &Place, servers: &[&str], calls: &[&str]) -> Vec<String> {
    let declared: Vec<Value> = servers.iter().map(|server| json!({ "type": "mcp", "server": server })).collect();
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "reader", "properties": { "mode": "react", "objective": "Read.",
            "dialect": "tool_calls", "tools": declared } }),
    );
    let calls: Vec<Value> =
        calls.iter().map(|call| json!({ "action": call, "action_input": { "path": "a" } })).collect();
    let replies = json!([{ "thought": "All.", "calls": calls }, { "thought": "Done.", "answer": "done" }]);
    place.json("script.json", &json!({ "replies": replies }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "json", "--store", "memory"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()["trace"].as_array().unwrap().iter().take(calls.len()).map(observed).collect()
}

#[test]
fn a_server_that_hangs_at_its_start_keeps_no_other_from_its_own() {
    let place = notes("waits");
    place.file("calls.txt", "");
    // Calls that only read are made at once.
    let of = |how: &str| json!({ "command": "sh", "args": ["server.sh", how], "trust_annotations": true });
    let (server, sound) = (of("waits"), of("legacy"));
    place.json(
        "loopctl.json",
        &json!({ "mcp": { "one": server, "two": server, "sound": sound }, "allow": { "commands": ["sh"] } }),
    );
    pin(&place);
    // Two of them list their tools once the third was called.
    std::fs::remove_file(place.path().join("calls.txt")).unwrap();
    let seen = at_once(&place, &["one", "two", "sound"], &["one.numbers", "two.numbers", "sound.numbers"]);
    assert_eq!(seen, ["{\"n\":12345678901234567890.10}"; 3]);
}

#[test]
fn calls_whose_server_ends_share_the_next_one() {
    let place = notes("legacy");
    project(&place, "legacy", json!({ "trust_annotations": true }));
    pin(&place);
    let before = read(&place, "starts.txt").lines().count();
    let seen = at_once(&place, &["notes"], &["notes.once"; 5]);
    assert_eq!(seen, ["again"; 5]);
    assert_eq!(read(&place, "starts.txt").lines().count(), before + 2, "{}", read(&place, "starts.txt"));
}

#[test]
fn what_a_run_began_with_counts_and_no_other_tool() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["read"], json!({ "requires_approval": true }));
    place.json(
        "script.json",
        &json!({ "replies": [think("notes.read", json!({ "path": "a" })), complete(json!("ok"))] }),
    );
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let path = place.path().join("mcp.lock.json");
    let lock: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // Another tool has changed: the run goes on.
    let mut other = lock.clone();
    other["servers"]["notes"]["tools"]["numbers"]["description"] = json!("Counts.");
    std::fs::write(&path, other.to_string()).unwrap();
    let shown = place.call(&["trace", "r", "--output", "json"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    // Its own has changed: a yes was for what was shown.
    let mut own = lock;
    own["servers"]["notes"]["tools"]["read"]["description"] = json!("Reads everything.");
    std::fs::write(&path, own.to_string()).unwrap();
    let ran = place.call(&["resume", "r", "--approve", "--script", "script.json", "--output", "json"]);
    assert!(ran.code == 2 || ran.json()["result"]["answer"] == "ok", "{ran:#?}");
    std::fs::write(&path, other.to_string()).unwrap();
    if ran.code == 2 {
        let ran = place.call(&["resume", "r", "--approve", "--script", "script.json", "--output", "json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    assert_eq!(read(&place, "calls.txt").lines().count(), 1);
}

#[test]
fn a_scenario_plays_a_server_s_tool_without_the_server() {
    let place = notes("legacy");
    pin(&place);
    let before = read(&place, "starts.txt");
    looped(&place, &["read"], json!({}));
    place.json(
        "loop.test.json",
        &json!({ "document": "loop.json", "scenarios": [{ "name": "reads", "replies": [
            think("notes.read", json!({ "path": "a" })), complete(json!("ok"))],
            "tools": { "notes.read": ["played"] }, "expect": { "status": "completed" } }] }),
    );
    let ran = place.call(&["test", "loop.test.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(read(&place, "starts.txt"), before);
}
