//! The real process is killed at every boundary of the journals of a run and of the workflow that it calls as a tool, and
//! resumed: no call that has an outcome is made again, and a workflow that nobody waits for is not lost.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use crate::common::server::{Answer, Server};
use crate::common::sweep::{kill_everywhere, kills_of, least};
use crate::common::{Place, Ran, complete, think};
use serde_json::{Value, json};

/// A loop that calls a workflow: a call that may not be repeated, an approval, and another such call.
struct Calls {
    place: Place,
    server: Server,
}

impl Calls {
    fn new(waits: bool) -> Self {
        let server = Server::with(|_, request| Answer::json(&json!({ "did": request.header("idempotency-key") })));
        let place = Place::on_disk();
        let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
            "url": format!("{}/post", server.url()), "parameters": { "type": "object" } });
        let step = |id: &str| json!({ "id": id, "type": "post", "properties": {} });
        let ask = json!({ "id": "ask", "type": "PbotApproval", "properties": { "comment": "Go on?" } });
        place.json("actions/all.json", &json!([post]));
        place.json(
            "workflows/pay.json",
            &json!({ "name": "pay", "description": "Pays.",
                "definition": { "actions": [step("first"), ask, step("second")], "output": "@post.did" } }),
        );
        let tool = json!({ "type": "workflow", "name": "pay", "wait": waits });
        place.json(
            "loop.json",
            &json!({ "type": "loop", "name": "boss",
                "properties": { "mode": "react", "objective": "Do it.", "tools": [tool] } }),
        );
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        place.json("script.json", &json!({ "replies": [think("pay", json!({})), complete(json!("all done"))] }));
        Self { place, server }
    }

    fn start(&self, fail: &str) -> Ran {
        let args = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
        crate::common::killed(self.place.command(&args), fail)
    }

    fn resume(&self, run: &str, how: &[&str]) -> Ran {
        let mut args = vec!["resume", run, "--script", "script.json", "--output", "json"];
        args.extend(how);
        self.place.call(&args)
    }

    fn keys(&self) -> Vec<String> {
        self.server.requests().iter().map(|request| request.header("idempotency-key").unwrap().to_owned()).collect()
    }

    /// Brings a run to its end as an operator would, who knows what the server saw. How often a call was of unknown
    /// outcome.
    fn finish(&self, run: &str, mut ran: Ran) -> (Value, usize) {
        let mut uncertain = 0;
        for _ in 0..20 {
            // Interrupted: also a run that was started and left.
            if ran.code != 3 {
                return (ran.json(), uncertain);
            }
            let step = &ran.json()["pause"]["steps"][0];
            let at = step["at"].as_str().unwrap();
            ran = if step["kind"] == "uncertain" {
                uncertain += 1;
                let key = format!("r.1.0-{at}");
                match self.keys().contains(&key) {
                    true => self.resume(run, &["--at", at, "--happened", &json!({ "did": key }).to_string()]),
                    false => self.resume(run, &["--at", at, "--retry"]),
                }
            } else {
                self.resume(run, &["--at", at, "--approve"])
            };
        }
        panic!("it does not end: {ran:#?}");
    }

    fn made_once(&self, at: &str) {
        let mut keys = self.keys();
        keys.sort();
        assert_eq!(keys, ["r.1.0-first", "r.1.0-second"], "{at}");
    }
}

/// Kills at every event of every boundary. How often the process was killed, and how often a call was of unknown
/// outcome then.
fn kills(waits: bool, holds: impl Fn(&Calls, &str) -> usize) -> ([usize; 4], usize) {
    let mut uncertain = 0;
    let counts = kill_everywhere(|event, at| {
        let calls = Calls::new(waits);
        // Who does not wait drives two runs, whose order is not always the same.
        if event >= 30 || calls.start(at).code != -9 {
            return false;
        }
        uncertain += holds(&calls, at);
        true
    });
    (counts, uncertain)
}

#[test]
fn a_kill_at_every_boundary_of_a_workflow_that_a_loop_calls_repeats_no_call() {
    let (counts, uncertain) = kills(true, |calls, at| {
        let (result, uncertain) = calls.finish("r", calls.start(""));
        assert_eq!(
            (&result["status"], &result["trace"][0]["observation"]),
            (&json!("completed"), &json!("r.1.0-second")),
            "{at}: {result}"
        );
        calls.made_once(at);
        uncertain
    });
    // Started, called; the workflow started, its first call's outcome; its question, passed up.
    assert_eq!(counts[..3], kills_of(5), "{counts:?}");
    assert!(uncertain > 0 && counts[3] >= least(2), "{counts:?}");
}

#[test]
fn a_kill_at_every_boundary_of_a_workflow_that_nobody_waits_for_loses_it_not_and_starts_it_once() {
    let (counts, uncertain) = kills(false, |calls, at| {
        let ran = calls.start("");
        assert_eq!(
            (ran.code, &ran.json()["trace"][0]["observation"]["run_id"]),
            (0, &json!("r.1.0")),
            "{at}: {ran:#?}"
        );
        let (result, uncertain) = calls.finish("r.1.0", calls.resume("r.1.0", &[]));
        assert_eq!((&result["status"], &result["started_by"]), (&json!("completed"), &json!("r")), "{at}: {result}");
        calls.made_once(at);
        uncertain
    });
    assert!(counts.iter().zip(kills_of(6)).all(|(kills, least)| *kills >= least), "{counts:?}");
    assert!(uncertain > 0, "{counts:?}");
}
