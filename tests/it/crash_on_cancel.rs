//! The steps that a workflow has for a cancel: they run once, also when the real process is killed at a boundary of its journal
//! meanwhile, and a second cancel does not wait for them.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::{BOUNDARIES, is_played};
use crate::common::{Place, Ran, killed};

/// A call, a question, and two calls after a cancel.
struct Cancelled {
    place: Place,
    server: Server,
}

impl Cancelled {
    /// A run that asks, after its first call.
    fn new() -> Self {
        let server = Server::with(|_, _| Answer::json(&json!({})));
        let place = Place::on_disk();
        let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
            "idempotent": true, "url": format!("{}/post", server.url()), "parameters": { "type": "object" } });
        place.json("actions/all.json", &json!([post]));
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        let post = |of: &str| json!({ "type": "post", "properties": { "of": of } });
        let ask = json!({ "type": "PbotApproval", "properties": { "comment": "Go on?" } });
        let undo = json!({ "type": "post", "properties": { "of": "undo", "error": "@__error" } });
        let definition =
            json!({ "actions": [post("a"), ask, post("b")], "on_failure": [undo, post("told")], "on_cancel": true });
        place.json("loop.json", &json!({ "name": "w", "definition": definition }));
        let run = Self { place, server };
        let paused = run.call(&["run", "loop.json", "--run-id", "r"], "");
        assert_eq!(paused.code, 3, "{paused:#?}");
        run
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        killed(self.place.command(args), fail)
    }

    fn cancel(&self, fail: &str) -> Ran {
        self.call(&["cancel", "r", "--reason", "no more"], fail)
    }

    fn resume(&self, fail: &str) -> Ran {
        self.call(&["resume", "r", "--output", "json"], fail)
    }

    /// The keys of the calls in the order in which they first came.
    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for request in self.server.requests() {
            let key = request.header("idempotency-key").unwrap().to_owned();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}

const ALL: [&str; 3] = ["r-0", "r-on_failure.0", "r-on_failure.1"];

#[test]
fn the_steps_for_a_cancel_run_after_it_and_read_why() {
    let run = Cancelled::new();
    let cancelled = run.cancel("");
    assert!(cancelled.code == 0 && cancelled.stderr.contains("`loopctl resume r` runs them"), "{cancelled:#?}");
    let ended = run.resume("");
    let result = ended.json();
    assert_eq!((ended.code, &result["status"]), (130, &json!("cancelled")), "{result:#}");
    assert_eq!(result["error"]["message"], "no more", "{result:#}");
    assert_eq!(run.keys(), ALL);
    let error = json!({ "code": "cancelled", "message": "no more", "retryable": false, "step": null });
    assert_eq!(run.server.requests()[1].json()["error"], error);
    let trace = run.call(&["trace", "r"], "");
    assert!(trace.stdout.contains("on_failure.0") && trace.stdout.contains("no more"), "{trace:#?}");
    let again = run.cancel("");
    assert!(again.code != 0 && again.stderr.contains("has ended"), "{again:#?}");
}

#[test]
fn a_second_cancel_ends_the_run_without_them() {
    let run = Cancelled::new();
    assert_eq!(run.cancel("").code, 0);
    let again = run.cancel("");
    assert!(again.code == 0 && again.stderr.contains("cancelled r"), "{again:#?}");
    assert_eq!(run.keys(), ["r-0"]);
    let list: Value = run.call(&["runs", "--output", "json"], "").json();
    assert_eq!((&list[0]["status"], &list[0]["termination"]), (&json!("cancelled"), &json!("cancelled")));
}

#[test]
fn a_kill_at_every_boundary_of_a_cancel_repeats_nothing() {
    let mut kills = [0, 0];
    for (kind, boundary) in BOUNDARIES.iter().enumerate() {
        for event in (0..4).filter(|event| is_played(*event, kind)) {
            for (phase, kills) in kills.iter_mut().enumerate() {
                let at = format!("journal:{event}:{boundary}");
                let run = Cancelled::new();
                let cancelled = run.cancel(if phase == 0 { &at } else { "" });
                *kills += usize::from(cancelled.code == -9);
                if cancelled.code == -9 && run.resume("").code == 3 {
                    // It was killed before the cancel was there.
                    assert_eq!(run.cancel("").code, 0, "{at}");
                }
                let mut ended = run.resume(if phase == 1 { &at } else { "" });
                *kills += usize::from(ended.code == -9);
                for _ in 0..5 {
                    if ended.code == 130 {
                        break;
                    }
                    ended = run.resume("");
                }
                assert_eq!((ended.code, &ended.json()["status"]), (130, &json!("cancelled")), "{at}: {ended:#?}");
                assert_eq!(run.keys(), ALL, "{at}");
            }
        }
    }
    assert!(kills[0] >= 1 && kills[1] >= 2, "{kills:?}");
}
