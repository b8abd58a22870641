//! A process without descriptors: what needs one waits, and nobody is blamed for it.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think, web};

/// Lets a process open files whose numbers are below this.
fn limit(pid: i32, most: u64) {
    let pid = Pid::from_raw(pid).expect("a process");
    let maximum = prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(most), maximum: Some(4096) });
    maximum.expect("it is ours");
}

#[test]
fn a_process_without_descriptors_waits_and_spends_no_attempt() {
    let pid = Arc::new(AtomicI32::new(0));
    let shop = Server::with(|_, _| Answer::json("{\"ok\":true}"));
    let replies: Vec<Value> = vec![
        think("fetch", json!({})),
        think("start", json!({})),
        think("query", json!({})),
        // After this one the model itself has to be reached again.
        think("__log_progress__", json!({ "message": "still here" })),
        complete(json!("done")),
    ];
    let known = Arc::clone(&pid);
    let model = Server::with(move |number, _| {
        while known.load(Ordering::SeqCst) == 0 {
            crate::common::wait_poll_interval();
        }
        // From now on nothing can be opened, and the connection that is open is closed.
        limit(known.load(Ordering::SeqCst), 0);
        Answer::openai(&replies[number].to_string()).close()
    });
    let place = Place::new();
    place.file("init.sql", "CREATE TABLE t (a); INSERT INTO t VALUES (41);");
    let actions = [
        web("fetch", &shop.url(), json!({})),
        json!({ "action_name": "start", "kind": "command", "description": "Starts.", "program": "echo", "args": ["hi"] }),
        json!({ "action_name": "query", "kind": "db", "description": "Asks.", "datasource": "d", "query": "SELECT a FROM t" }),
    ];
    let project = json!({
        "model": "m", "models": { "m": { "provider": "openai", "base_url": model.url() } },
        "allow": { "private_addresses": true, "commands": ["echo"] },
        "datasources": { "d": { "url": "sqlite:d.db", "init": "init.sql" } }
    });
    place.actions(&actions, &project);
    let mut command = place.command(&["run", "loop.json", "--output", "json", "--store", "memory"]);
    command.env("LOOPCTL_LOG", "warn").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let number = i32::try_from(child.id()).expect("a number");
    pid.store(number, Ordering::SeqCst);
    let mut waits = 0;
    let mut stderr = String::new();
    for line in BufReader::new(child.stderr.take().expect("piped")).lines() {
        let line = line.expect("text");
        if line.contains("no descriptor is left") {
            waits += 1;
            limit(number, 1024);
        }
        stderr += &line;
    }
    let out = child.wait_with_output().expect("it ends");
    let result: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    assert_eq!((out.status.code(), &result["result"]["answer"]), (Some(0), &json!("done")), "{result:#}\n{stderr}");
    assert!(waits >= 4, "each of the four was kept waiting: {stderr}");
    assert_eq!(result["metadata"]["model_retries"], 0, "{result:#}");
    let entries = result["trace"].as_array().expect("a trace");
    assert!(entries.iter().all(|entry| entry["success"] != false), "{result:#}");
    assert_eq!((shop.requests().len(), model.requests().len()), (1, 5));
}

#[test]
fn a_process_that_never_gets_one_ends_by_its_own_deadline_and_not_by_the_models_fault() {
    let pid = Arc::new(AtomicI32::new(0));
    let known = Arc::clone(&pid);
    let model = Server::with(move |_, _| {
        while known.load(Ordering::SeqCst) == 0 {
            crate::common::wait_poll_interval();
        }
        limit(known.load(Ordering::SeqCst), 0);
        Answer::openai(&think("__log_progress__", json!({ "message": "x" })).to_string()).close()
    });
    let place = Place::new();
    let project = json!({ "model": "m", "models": { "m": { "provider": "openai", "base_url": model.url() } } });
    place.actions(&[], &project);
    let mut document: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).expect("it is there")).expect("JSON");
    document["properties"]["timeout_ms"] = json!(1500);
    place.json("loop.json", &document);
    let mut command = place.command(&["run", "loop.json", "--output", "json", "--store", "memory"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    pid.store(i32::try_from(child.id()).expect("a number"), Ordering::SeqCst);
    let out = child.wait_with_output().expect("it ends");
    let result: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(
        (&result["termination"], &result["metadata"]["model_retries"]),
        (&json!("timeout"), &json!(0)),
        "{result:#}"
    );
}
