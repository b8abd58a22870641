//! The real process is killed at every boundary of the journals of a run and of the loop that it calls,
//! and resumed: both end the same, no finished step of either is done again, and what a human decided
//! reaches the called loop once.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use crate::common::server::{Answer, Server};
use crate::common::sweep::{BOUNDARIES, is_played, kill_everywhere, kills_of};
use crate::common::{Place, Ran, complete, finished, think};
use serde_json::{Value, json};

/// A run that calls a loop, which makes a call that is not idempotent, asks a human, and wants a second
/// call approved.
struct Nested {
    place: Place,
    server: Server,
}

impl Nested {
    fn new() -> Self {
        let server = Server::with(|_, _| Answer::json(&json!({ "did": "post" })));
        let place = Place::on_disk();
        let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
            "url": format!("{}/post", server.url()),
            "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } } });
        place.json(
            "loop.json",
            &json!({ "type": "loop", "name": "boss", "properties": { "mode": "react", "objective": "Do it.",
                "tools": [{ "type": "loop", "name": "helper" }] } }),
        );
        place.json(
            "loops/helper.json",
            &json!({ "type": "loop", "name": "helper", "description": "Helps.", "actions": [post],
                "properties": { "mode": "react", "objective": "Help.",
                    "tools": [{ "type": "action", "name": "post" }] } }),
        );
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        place.json(
            "script.json",
            &json!({
                "replies": [think("helper", json!({})), complete(json!("all done"))],
                "loops": { "helper": [
                    think("post", json!({ "n": 1 })),
                    think("__pause_for_human__", json!({ "question": "Go on?" })),
                    complete(json!("helped")),
                ] } }),
        );
        Self { place, server }
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        crate::common::killed(self.place.command(args), fail)
    }

    fn start(&self, fail: &str) -> Ran {
        self.call(&["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"], fail)
    }

    fn resume(&self, how: &[&str], fail: &str) -> Ran {
        let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
        args.extend(how);
        self.call(&args, fail)
    }

    /// Brings both to their end as an operator would, who knows what the server saw. The results of both,
    /// and how often the call was of unknown outcome.
    fn finish(&self) -> (Value, Value, u32) {
        let posted = || !self.server.requests().is_empty();
        let (ran, uncertain) = finished(self.start(""), |how| self.resume(how, ""), posted);
        let helper = self.place.call(&["trace", "r.1.0", "--format", "json"]).json();
        (ran.json(), helper, uncertain)
    }

    fn holds(&self, at: &str) -> u32 {
        let (boss, helper, uncertain) = self.finish();
        let observed = |result: &Value| {
            let trace = result["trace"].as_array().unwrap();
            trace.iter().map(|entry| entry["observation"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(observed(&boss), [json!("helped"), Value::Null], "{at}");
        assert_eq!(observed(&helper), [json!({ "did": "post" }), json!("yes"), Value::Null], "{at}");
        assert_eq!((&boss["iterations"], &helper["iterations"]), (&json!(2), &json!(3)), "{at}");
        assert_eq!(self.server.requests().len(), 1, "{at}: the call was made once");
        uncertain
    }
}

/// Kills at every event of every boundary; the kills of each, and those after which a human was asked.
fn kills(strike: impl Fn(&Nested, &str) -> Ran) -> ([usize; 4], Vec<String>) {
    let mut asked = Vec::new();
    let counts = kill_everywhere(|_, at| {
        let nested = Nested::new();
        if strike(&nested, at).code != -9 {
            return false;
        }
        if nested.holds(at) > 0 {
            asked.push(at.to_owned());
        }
        true
    });
    (counts, asked)
}

#[test]
fn a_kill_at_every_boundary_until_the_called_loop_asks_ends_in_the_same_results() {
    let (counts, asked) = kills(Nested::start);
    // Started, called; the helper started, its call, the outcome, its question; the question passed up.
    assert_eq!(counts[..3], kills_of(7), "{counts:?}");
    assert!(counts[3] >= kills_of(5)[0], "{counts:?}");
    let open = [4, 4, 3, 3].into_iter().zip(BOUNDARIES).enumerate();
    let open = open.filter(|(boundary, (event, _))| is_played(*event, *boundary));
    let expected: Vec<String> = open.map(|(_, (event, boundary))| format!("journal:{event}:{boundary}")).collect();
    assert!(!expected.is_empty());
    assert_eq!(asked, expected);
}

#[test]
fn a_kill_at_every_boundary_after_the_answer_hands_it_on_once() {
    let (counts, asked) = kills(|nested, at| {
        assert_eq!(nested.start("").code, 3);
        nested.resume(&["--answer", "yes"], at)
    });
    // The answer; the helper gets it, and ends; its answer is passed up; the end.
    assert_eq!(counts[..3], kills_of(5), "{counts:?}");
    assert!(asked.is_empty(), "{asked:?}");
}
