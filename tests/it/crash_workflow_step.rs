//! The real process is killed at every boundary of the journals of a workflow and of the runs that its steps name, of one that
//! chooses, and of one that handles a failure: no call that has an outcome is made again, and a run that nobody waits for is
//! started once.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use crate::common::server::{Answer, Server};
use crate::common::sweep::{kill_everywhere, kills_of, least};
use crate::common::{Place, Ran, complete, is_nightly};
use serde_json::{Value, json};

/// A workflow that runs a loop and a workflow by their names: that one makes a call that may not be repeated, asks, and
/// makes another such call.
struct NamedSteps {
    place: Place,
    server: Server,
}

impl NamedSteps {
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
        place.json(
            "loops/decide.json",
            &json!({ "type": "loop", "name": "decide", "description": "Decides.",
                "properties": { "mode": "react", "objective": "Decide.", "tools": [] } }),
        );
        place.json(
            "loop.json",
            &json!({ "name": "boss", "definition": { "actions": [
                { "id": "d", "type": "loop", "name": "decide" },
                { "id": "p", "type": "workflow", "name": "pay", "wait": waits, "outputKey": "pay" },
                { "id": "last", "type": "loop", "name": "decide" }
            ], "output": ["@decide.answer", "@pay"] } }),
        );
        Self::of(place, server)
    }

    fn of(place: Place, server: Server) -> Self {
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        place.json("script.json", &json!({ "replies": [], "loops": { "decide": [complete(json!("yes"))] } }));
        Self { place, server }
    }

    /// A workflow that chooses between calls, fails at the second one, and takes the first one back.
    fn failing() -> Self {
        let server = Server::with(|_, request| {
            let key = request.header("idempotency-key").unwrap_or_default().to_owned();
            let answer = Answer::json(&json!({ "did": key }));
            if key.contains("bad") { answer.status(400) } else { answer }
        });
        let place = Place::on_disk();
        let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
            "url": format!("{}/post", server.url()), "parameters": { "type": "object" } });
        let step = |id: &str, what: Value| json!({ "id": id, "type": "post", "outputKey": id, "properties": { "what": what } });
        let never = json!({ "when": { "equal": ["@__run_id", "other"] }, "steps": [step("never", json!(1))] });
        let route =
            json!({ "id": "route", "type": "choose", "cases": [never], "otherwise": [step("first", json!(2))] });
        place.json("actions/all.json", &json!([post]));
        place.json(
            "loop.json",
            &json!({ "name": "boss", "definition": { "actions": [route, step("bad", json!("@first.did"))],
                "on_failure": [step("undo", json!("@first.did")), step("tell", json!("@__error.step"))] } }),
        );
        Self::of(place, server)
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
            if ran.code != 3 {
                return (ran.json(), uncertain);
            }
            let step = &ran.json()["pause"]["steps"][0];
            let at = step["at"].as_str().unwrap();
            ran = if step["kind"] == "uncertain" {
                uncertain += 1;
                let key = match at.split_once('/') {
                    Some((own, below)) => format!("r.{own}-{below}"),
                    None => format!("{run}-{at}"),
                };
                match self.keys().contains(&key) {
                    // The server did not take it.
                    true if at == "bad" => self.resume(run, &["--at", at, "--fail", "http 400"]),
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
        assert_eq!(keys, ["r.p-first", "r.p-second"], "{at}");
    }
}

/// Kills at every event of every boundary. How often the process was killed, and how often a call was of unknown
/// outcome then.
fn kills(made: impl Fn() -> NamedSteps, holds: impl Fn(&NamedSteps, &str) -> usize) -> ([usize; 4], usize) {
    let mut uncertain = 0;
    let counts = kill_everywhere(|event, at| {
        let steps = made();
        if event >= 40 || steps.start(at).code != -9 {
            return false;
        }
        uncertain += holds(&steps, at);
        true
    });
    (counts, uncertain)
}

#[test]
fn a_kill_at_every_boundary_of_the_runs_that_steps_name_repeats_no_call() {
    let (counts, uncertain) = kills(
        || NamedSteps::new(true),
        |steps, at| {
            let (result, uncertain) = steps.finish("r", steps.start(""));
            assert_eq!(
                (&result["status"], &result["result"]["answer"]),
                (&json!("completed"), &json!(["yes", "r.p-second"])),
                "{at}: {result}"
            );
            steps.made_once(at);
            uncertain
        },
    );
    // Started; the loop started, its reply, its result; the workflow started, its first call, its question passed up.
    assert_eq!(counts[..3], kills_of(7), "{counts:?}");
    // Two of all kills leave the outcome of a call open.
    assert!(uncertain > 0 || !is_nightly(), "{counts:?}");
    assert!(counts[3] >= least(2), "{counts:?}");
}

#[test]
fn a_kill_at_every_boundary_starts_a_run_that_no_step_waits_for_once() {
    let (counts, uncertain) = kills(
        || NamedSteps::new(false),
        |steps, at| {
            let ran = steps.start("");
            assert_eq!(
                (ran.code, &ran.json()["result"]["answer"]),
                (0, &json!(["yes", { "run_id": "r.p", "status": "running" }])),
                "{at}: {ran:#?}"
            );
            let (result, uncertain) = steps.finish("r.p", steps.resume("r.p", &[]));
            assert_eq!(
                (&result["status"], &result["started_by"]),
                (&json!("completed"), &json!("r")),
                "{at}: {result}"
            );
            steps.made_once(at);
            uncertain
        },
    );
    assert!(counts.iter().zip(kills_of(10)).all(|(kills, least)| *kills >= least), "{counts:?}");
    assert!(uncertain > 0, "{counts:?}");
}

#[test]
fn a_kill_at_every_boundary_of_a_choice_and_of_what_handles_a_failure_repeats_no_call() {
    let (counts, uncertain) = kills(NamedSteps::failing, |steps, at| {
        let (result, uncertain) = steps.finish("r", steps.start(""));
        assert_eq!((&result["status"], &result["error"]["step"]), (&json!("failed"), &json!("bad")), "{at}: {result}");
        let mut keys = steps.keys();
        keys.sort();
        assert_eq!(keys, ["r-bad", "r-on_failure.tell", "r-on_failure.undo", "r-route.otherwise.first"], "{at}");
        let undone: Vec<Value> = steps.server.requests().iter().map(|request| request.json()["what"].clone()).collect();
        assert!(
            undone.contains(&json!("r-route.otherwise.first")) && undone.contains(&json!("bad")),
            "{at}: {undone:?}"
        );
        uncertain
    });
    // Started, and the outcomes of four calls.
    assert_eq!(counts[..3], kills_of(5), "{counts:?}");
    assert!(uncertain > 0 || !is_nightly(), "{counts:?}");
}
