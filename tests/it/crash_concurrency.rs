//! The real process is killed at the boundaries of the journal of a run that has a place in a line, and of one that waits for it:
//! the place is neither lost nor kept too long, and no two runs of the line are under way at once.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::{BOUNDARIES, is_played};
use crate::common::{Place, Ran, killed, ran};

/// Two calls of a workflow of which one run is under way at a time.
struct Line {
    place: Place,
    server: Server,
}

impl Line {
    /// A workflow of two steps.
    fn new() -> Self {
        let post = |of: &str| json!({ "type": "post", "properties": { "of": of } });
        let definition = json!({ "concurrency": { "key": "@input.id" }, "actions": [post("a"), post("b")] });
        let input = json!({ "type": "object", "properties": { "id": { "type": "string" } } });
        Self::of(&json!({ "name": "w", "input": input, "definition": definition }))
    }

    /// A loop whose model calls twice.
    fn of_loop() -> Self {
        let properties = json!({ "mode": "react", "objective": "Post {{input.id}}.",
            "tools": [{ "type": "action", "name": "post" }], "on_stuck": { "iterations": 9 } });
        let input = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
        Self::of(&json!({ "type": "loop", "name": "w", "input": input, "concurrency": { "key": "@input.id" },
            "properties": properties }))
    }

    fn of(document: &Value) -> Self {
        let server = Server::with(|_, _| Answer::json(&json!({})));
        let place = Place::on_disk();
        let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
            "idempotent": true, "url": format!("{}/post", server.url()),
            "parameters": { "type": "object", "properties": { "of": { "type": "string" } } } });
        place.json("actions/all.json", &json!([post]));
        place.json(
            "loopctl.json",
            &json!({ "model": "m", "models": { "m": { "provider": "script", "script": "script.json" } },
                "allow": { "private_addresses": true } }),
        );
        let call = |of: &str| json!({ "thought": of, "action": "post", "action_input": { "of": of } });
        let end = json!({ "thought": "!", "action": "__complete__", "action_input": { "answer": 1 } });
        place.json("script.json", &json!({ "replies": [call("a"), call("b"), end] }));
        place.json("loop.json", document);
        Self { place, server }
    }

    fn run(&self, id: &str, fail: &str) -> Ran {
        let args = ["run", "loop.json", "--run-id", id, "--output", "json", "--input", "id=ada"];
        killed(self.place.command(&args), fail)
    }

    fn resume(&self, id: &str) -> Ran {
        self.place.call(&["resume", id, "--output", "json"])
    }

    /// Brings a run to its end that a kill may have kept from being created.
    fn end(&self, id: &str) {
        let resumed = self.resume(id);
        let ended = if resumed.code == 2 && resumed.stderr.contains("no run") { self.run(id, "") } else { resumed };
        assert_eq!(ended.code, 0, "{ended:#?}");
    }

    /// The runs in the order of their calls, each as often as the calls changed to it; and how many keys there were.
    fn turns(&self) -> (Vec<String>, usize) {
        let keys: Vec<String> = self
            .server
            .requests()
            .iter()
            .map(|request| request.header("idempotency-key").unwrap().to_owned())
            .collect();
        let mut runs: Vec<String> = keys.iter().map(|key| key.split('-').next().unwrap().to_owned()).collect();
        runs.dedup();
        let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
        (runs, distinct.len())
    }
}

/// Kills the run that has the place at the boundaries of these events.
fn killed_with_the_place(new: fn() -> Line, events: std::ops::Range<usize>) {
    let mut kills = 0;
    for (kind, boundary) in BOUNDARIES.iter().enumerate() {
        for event in events.clone().filter(|event| is_played(*event, kind)) {
            let at = format!("journal:{event}:{boundary}");
            let line = new();
            let first = line.run("r1", &at);
            kills += usize::from(first.code == -9);
            let args = ["run", "loop.json", "--run-id", "r2", "--output", "json", "--input", "id=ada"];
            let second = line.place.start(&args, &[]);
            line.end("r1");
            let second = ran(&second.wait_with_output().unwrap());
            assert_eq!(second.code, 0, "{at}: {second:#?}");
            let third = line.run("r3", "");
            assert_eq!(third.code, 0, "{at}: the place is free again: {third:#?}");
            let (turns, keys) = line.turns();
            assert_eq!((turns.len(), keys), (3, 6), "{at}: {turns:?}");
            assert_eq!(turns[2], "r3", "{at}");
        }
    }
    assert!(kills >= events.len().saturating_sub(1), "{kills}");
}

#[test]
fn a_kill_of_the_run_that_has_the_place_leaves_the_next_one_waiting_until_it_has_ended() {
    killed_with_the_place(Line::new, 0..5);
}

#[test]
fn a_kill_of_a_run_of_a_loop_leaves_the_next_one_waiting_until_it_has_ended() {
    killed_with_the_place(Line::of_loop, 0..4);
}

#[test]
fn a_fork_waits_for_a_place_of_its_own_and_begins_where_the_copied_steps_end() {
    let line = Line::of_loop();
    let call = json!({ "thought": "a", "action": "post", "action_input": { "of": "a" } });
    let ask = json!({ "thought": "?", "action": "__pause_for_human__", "action_input": { "question": "Go on?" } });
    line.place.json("script.json", &json!({ "replies": [call, ask] }));
    assert_eq!(line.run("r1", "").code, 3);
    assert_eq!(line.server.requests().len(), 1);
    let fork = line.place.start(&["fork", "r1", "--at", "2", "--run-id", "f1", "--output", "json"], &[]);
    let row = || {
        let list = line.place.call(&["runs", "--output", "json"]).json();
        list.as_array().unwrap().iter().find(|run| run["run_id"] == "f1").cloned()
    };
    while row().is_none() {
        crate::common::wait_poll_interval();
    }
    let waiting = row().unwrap();
    assert_eq!((&waiting["status"], &waiting["behind"]), (&json!("queued"), &json!("r1")), "{waiting:#}");
    assert_eq!(line.place.call(&["cancel", "r1"]).code, 0);
    let forked = ran(&fork.wait_with_output().unwrap());
    assert_eq!(forked.code, 3, "{forked:#?}");
    assert_eq!(line.server.requests().len(), 1, "the copied call is not made again");
    // A fork of a run that had a place copies its steps, and not the place.
    assert_eq!(line.place.call(&["cancel", "f1"]).code, 0);
    let again = line.place.call(&["fork", "f1", "--at", "2", "--run-id", "f2", "--output", "json"]);
    assert_eq!(again.code, 3, "{again:#?}");
}

#[test]
fn a_run_that_waits_and_is_killed_keeps_its_turn_and_gives_it_up_when_it_is_cancelled() {
    let line = Line::new();
    let paused = json!({ "concurrency": { "key": "@input.id" }, "actions": [
        { "type": "PbotApproval", "properties": { "comment": "Go on?" } }] });
    line.place.json("loop.json", &json!({ "name": "w", "definition": paused }));
    assert_eq!(line.run("r1", "").code, 3);
    // Its start is all that it has.
    assert_eq!(line.run("r2", "journal:0:after-sync").code, -9);
    let listed = |id: &str| {
        let list = line.place.call(&["runs", "--output", "json"]).json();
        list.as_array().unwrap().iter().find(|run| run["run_id"] == id).unwrap().clone()
    };
    assert_eq!((&listed("r2")["status"], &listed("r2")["behind"]), (&json!("queued"), &json!("r1")));
    let table = line.place.call(&["runs"]);
    assert!(table.stdout.contains("waits for run r1 to end"), "{table:#?}");
    let explained = line.place.call(&["explain", "r2"]);
    assert!(explained.stdout.contains("lets one run be under way at a time for its key"), "{explained:#?}");
    assert!(explained.stdout.contains("run r1 is ahead, paused"), "{explained:#?}");
    // A signal takes a run that waits out of the line, and it was never begun.
    let args = ["run", "loop.json", "--run-id", "r3", "--input", "id=ada"];
    let waiting = line.place.start(&args, &[]);
    while line.place.call(&["runs", "--ids"]).stdout.lines().all(|id| id != "r3") {
        crate::common::wait_poll_interval();
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(waiting.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let stopped = ran(&waiting.wait_with_output().unwrap());
    assert_eq!((stopped.code, &listed("r3")["status"]), (130, &json!("cancelled")), "{stopped:#?}");
    assert!(stopped.stderr.contains("waits for run r1 to end"), "{stopped:#?}");
    // One that was killed while it waited goes on in its turn.
    assert_eq!(line.place.call(&["cancel", "r1"]).code, 0);
    assert_eq!(line.resume("r2").code, 3);
    let refused = json!({ "concurrency": { "key": "@input.id", "when_full": "refuse" }, "actions": paused["actions"] });
    line.place.json("loop.json", &json!({ "name": "w", "definition": refused }));
    let refused = line.run("r4", "");
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(refused.stderr.contains("run r2 holds the place"), "{refused:#?}");
}
