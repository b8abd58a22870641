//! The real process is killed at every boundary of its journal, and resumed: every run ends the same,
//! no finished call is made again, and what may have happened is asked about.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, dead_code, missing_docs)]
#![allow(clippy::needless_pass_by_value)]

mod common;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use common::server::{Answer, Server};
use common::{Place, Ran, complete, think};
use serde_json::{Value, json};

const BOUNDARIES: [&str; 4] = ["before-write", "after-write", "after-sync", "before-effect"];

/// The reference run: an idempotent GET, a POST that is idempotent by its key, one that is not, memory,
/// a question to a human.
struct Reference {
    place: Place,
    server: Server,
}

impl Reference {
    fn new() -> Self {
        let server = Server::with(|_, request| {
            let name = request.path.trim_start_matches('/').to_owned();
            Answer::json(&json!({ "did": name }))
        });
        let place = Place::new();
        let tool = |name: &str, method: &str, more: Value| {
            let mut action = json!({
                "action_name": name, "kind": "http", "description": format!("Calls {name}."),
                "url": format!("{}/{name}", server.url()), "http_method": method,
                "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } }
            });
            for (key, value) in more.as_object().expect("an object") {
                action[key] = value.clone();
            }
            action
        };
        let actions = [
            tool("read", "GET", json!({})),
            tool("put", "POST", json!({ "idempotent": true })),
            tool("post", "POST", json!({})),
        ];
        let names = ["read", "put", "post"].map(|name| json!({ "type": "action", "name": name }));
        place.json(
            "loop.json",
            &json!({ "type": "loop", "name": "reference", "actions": actions,
                "properties": { "mode": "react", "objective": "Do it.", "tools": names } }),
        );
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        let replies = [
            think("read", json!({ "n": 1 })),
            think("put", json!({ "n": 2 })),
            think("post", json!({ "n": 3 })),
            think("__store_memory__", json!({ "key": "k", "value": [1, 2] })),
            think("__pause_for_human__", json!({ "question": "Go on?" })),
            think("__retrieve_memory__", json!({ "key": "k" })),
            complete(json!({ "all": "done" })),
        ];
        place.json("script.json", &json!({ "replies": replies }));
        Self { place, server }
    }

    fn start(&self, fail: &str) -> Ran {
        self.call(&["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"], fail)
    }

    fn resume(&self, how: &[&str], fail: &str) -> Ran {
        let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
        args.extend(how);
        self.call(&args, fail)
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        let mut command = self.place.command(args);
        if !fail.is_empty() {
            command.env("LOOPCTL_FAIL", fail);
        }
        let output = command.output().expect("it starts");
        let mut ran = common::ran(&output);
        if output.status.signal() == Some(9) {
            ran.code = -9;
        }
        ran
    }

    fn calls_of(&self, name: &str) -> Vec<String> {
        let path = format!("/{name}");
        self.server
            .requests()
            .iter()
            .filter(|request| request.path.split('?').next() == Some(path.as_str()))
            .map(|request| request.header("idempotency-key").unwrap_or_default().to_owned())
            .collect()
    }

    /// Brings the run to its end as an operator would, who knows what the server saw.
    fn finish(&self) -> (Value, u32) {
        let mut uncertain = 0;
        let mut ran = self.start("");
        for _ in 0..10 {
            match ran.code {
                0 => return (ran.json(), uncertain),
                3 => {
                    let result = ran.json();
                    ran = match result["termination"].as_str() {
                        Some("human") => self.resume(&["--answer", "yes"], ""),
                        Some("uncertain") => {
                            uncertain += 1;
                            if self.calls_of("post").is_empty() {
                                self.resume(&["--retry"], "")
                            } else {
                                self.resume(&["--happened", r#"{"did":"post"}"#], "")
                            }
                        }
                        other => panic!("paused for {other:?}: {ran:#?}"),
                    };
                }
                _ => panic!("{ran:#?}"),
            }
        }
        panic!("the run does not end: {ran:#?}");
    }

    fn holds(&self, at: &str) {
        for name in ["read", "put", "post"] {
            let calls = self.calls_of(name);
            let most = if name == "post" { 1 } else { 2 };
            assert!((1..=most).contains(&calls.len()), "{at}: {} calls of {name}", calls.len());
            assert!(calls.iter().all(|key| *key == calls[0]), "{at}: {name} was called with two keys: {calls:?}");
        }
        let extra: usize = ["read", "put", "post"].iter().map(|name| self.calls_of(name).len() - 1).sum();
        assert!(extra <= 1, "{at}: one kill repeats one call at most, and {extra} were");
    }
}

/// A result without what differs from run to run: times.
fn timeless(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for name in ["timestamp", "duration_ms", "started_at", "finished_at"] {
                    fields.remove(name);
                }
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    // How often a call was made is the one thing that a repeated call changes.
    value["metadata"]["tool_calls_made"] = Value::Null;
    value
}

fn untouched() -> Value {
    timeless(Reference::new().finish().0)
}

#[test]
fn a_kill_at_every_boundary_before_the_pause_ends_in_the_same_result() {
    let expected = untouched();
    let mut kills = BTreeMap::new();
    let mut uncertain = Vec::new();
    for boundary in BOUNDARIES {
        for event in 0.. {
            let reference = Reference::new();
            let at = format!("journal:{event}:{boundary}");
            if reference.start(&at).code != -9 {
                break;
            }
            *kills.entry(boundary).or_insert(0) += 1;
            let (result, asked) = reference.finish();
            assert_eq!(timeless(result), expected, "{at}");
            reference.holds(&at);
            if asked > 0 {
                uncertain.push(at);
            }
        }
    }
    // Started; read, its result; put, its result; post, its result; memory; the question.
    for boundary in ["before-write", "after-write", "after-sync"] {
        assert_eq!(kills.get(boundary), Some(&9), "{boundary}: {kills:?}");
    }
    assert!(kills.get("before-effect").is_some_and(|kills| *kills >= 8), "{kills:?}");
    // The intent of the POST without a key is event 5, its outcome event 6.
    let expected =
        ["journal:6:before-write", "journal:6:after-write", "journal:5:after-sync", "journal:5:before-effect"];
    assert_eq!(uncertain, expected);
}

#[test]
fn a_kill_at_every_boundary_after_the_pause_ends_in_the_same_result() {
    let expected = untouched();
    let mut kills = 0;
    for boundary in BOUNDARIES {
        for event in 0.. {
            let reference = Reference::new();
            assert_eq!(reference.start("").code, 3);
            let at = format!("journal:{event}:{boundary}");
            if reference.resume(&["--answer", "yes"], &at).code != -9 {
                break;
            }
            kills += 1;
            assert_eq!(timeless(reference.finish().0), expected, "{at}");
            reference.holds(&at);
        }
    }
    assert!(kills >= 11, "{kills} kills tested too little");
}

#[test]
fn two_kills_in_a_row_end_in_the_same_result() {
    let expected = untouched();
    let mut pairs = 0;
    for first in 0..9 {
        for second in
            ["journal:0:before-write", "journal:0:after-sync", "journal:1:after-write", "journal:1:after-sync"]
        {
            let reference = Reference::new();
            let at = format!("journal:{first}:after-sync, then {second}");
            if reference.start(&format!("journal:{first}:after-sync")).code != -9 {
                continue;
            }
            if reference.start(second).code == -9 {
                pairs += 1;
            }
            assert_eq!(timeless(reference.finish().0), expected, "{at}");
            assert!(reference.calls_of("post").len() <= 1, "{at}");
        }
    }
    assert!(pairs >= 20, "{pairs} pairs tested too little");
}

#[test]
fn a_process_that_dies_after_every_event_still_ends_the_same() {
    let expected = untouched();
    let reference = Reference::new();
    let mut ran = reference.start("journal:1:after-sync");
    let mut lives = 1;
    while ran.code == -9 {
        lives += 1;
        assert!(lives < 60, "the run makes no way");
        ran = reference.start("journal:1:after-sync");
        if ran.code == 3 {
            ran = match ran.json()["termination"].as_str() {
                Some("human") => reference.resume(&["--answer", "yes"], "journal:1:after-sync"),
                _ if reference.calls_of("post").is_empty() => reference.resume(&["--retry"], "journal:1:after-sync"),
                _ => reference.resume(&["--happened", r#"{"did":"post"}"#], "journal:1:after-sync"),
            };
        }
    }
    assert!(lives > 6, "{lives} lives tested too little");
    assert_eq!(timeless(reference.finish().0), expected);
    reference.holds("always");
}

#[test]
fn on_uncertain_retry_calls_again_and_fail_tells_the_model() {
    for (rule, calls, told) in [("retry", 2, "did"), ("fail", 1, "not known")] {
        let reference = Reference::new();
        let path = reference.place.path().join("loop.json");
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("JSON");
        document["actions"][2]["on_uncertain"] = json!(rule);
        reference.place.json("loop.json", &document);
        assert_eq!(reference.start("journal:6:before-write").code, -9);
        let (result, asked) = reference.finish();
        assert_eq!((asked, reference.calls_of("post").len()), (0, calls), "{rule}");
        let observation = result["trace"][2]["observation"].to_string();
        assert!(observation.contains(told), "{rule}: {observation}");
    }
}

#[test]
fn the_n_th_failing_store_call_is_a_clear_error_and_the_run_can_be_resumed() {
    let expected = untouched();
    let mut faults = 0;
    for kind in ["busy", "full", "ioerr", "readonly"] {
        for call in 0..60 {
            let reference = Reference::new();
            let ran = reference.start(&format!("store:{call}:{kind}"));
            assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
            if ran.code == 3 {
                break;
            }
            faults += 1;
            assert!([1, 2].contains(&ran.code), "store:{call}:{kind}: {ran:#?}");
            assert!(ran.stderr.contains("store"), "store:{call}:{kind}: {ran:#?}");
            let (result, _) = reference.finish();
            assert_eq!(timeless(result), expected, "store:{call}:{kind}");
            assert!(reference.calls_of("post").len() <= 1);
        }
    }
    assert!(faults >= 20, "{faults} faults tested too little");
}

#[test]
fn fifty_processes_that_resume_one_run_at_once_are_one_driver() {
    let reference = Reference::new();
    assert_eq!(reference.start("journal:2:after-sync").code, -9);
    let args = ["resume", "r", "--script", "script.json", "--output", "json"];
    let children: Vec<_> = (0..50).map(|_| reference.place.start(&args, &[])).collect();
    let mut paused = 0;
    for child in children {
        let ran = common::ran(&child.wait_with_output().expect("it ends"));
        assert!(ran.code == 3 || (ran.code == 2 && ran.stderr.contains("driven")), "{ran:#?}");
        paused += usize::from(ran.code == 3);
    }
    assert!(paused >= 1);
    for name in ["read", "put", "post"] {
        assert_eq!(reference.calls_of(name).len(), 1, "{name}");
    }
}

#[test]
fn a_disk_that_is_full_is_a_clear_error_and_the_run_goes_on_when_there_is_room() {
    let expected = untouched();
    let mut faults = 0;
    for blocks in (16..200).step_by(24) {
        let reference = Reference::new();
        let program = env!("CARGO_BIN_EXE_loopctl");
        let line =
            format!("ulimit -f {blocks}; exec '{program}' run loop.json --run-id r --script script.json --output json");
        let output = std::process::Command::new("sh")
            .args(["-c", &line])
            .current_dir(reference.place.path())
            .output()
            .expect("it starts");
        let ran = common::ran(&output);
        assert!(!ran.stderr.contains("panicked"), "{ran:#?}");
        if ran.code != 3 {
            faults += 1;
            assert!([1, 2].contains(&ran.code), "{blocks}: {ran:#?} {:?}", output.status);
            assert!(ran.stderr.contains("store"), "{blocks}: {ran:#?}");
        }
        assert_eq!(timeless(reference.finish().0), expected, "{blocks}");
        assert!(reference.calls_of("post").len() <= 1);
    }
    assert!(faults >= 3, "{faults} faults tested too little");
}
