//! A tool call that is made again: a process that is killed at any boundary of the journal leaves the attempts that are
//! left, with the same key, and the run ends the same.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::{kill_everywhere, least};
use crate::common::{self, Place, Ran, complete, think, web};
use crate::crash::reference::{events_of, timeless};

const START: [&str; 8] = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
const RESUME: [&str; 6] = ["resume", "r", "--script", "script.json", "--output", "json"];
const ATTEMPTS: usize = 3;

struct Retries {
    place: Place,
    server: Server,
}

impl Retries {
    /// Each request fails; after the first one the server asks for this wait, in seconds.
    fn new(wait: u64) -> Self {
        let server = Server::with(move |number, _| {
            let refused = Answer::json("{}").status(503);
            if number == 0 && wait > 0 { refused.header("retry-after", &wait.to_string()) } else { refused }
        });
        let place = Place::on_disk();
        let retry = json!({ "attempts": ATTEMPTS, "base_ms": 0, "max_ms": wait * 1_000 });
        let action = web("read", &format!("{}/read", server.url()), json!({ "retry": retry }));
        let tools = json!([{ "type": "action", "name": "read" }]);
        place.json(
            "loop.json",
            &json!({ "type": "loop", "name": "t", "actions": [action],
                "properties": { "mode": "react", "objective": "x", "tools": tools, "timeout_ms": 86_400_000 } }),
        );
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        place.script(&[think("read", json!({})), complete(json!("ok"))]);
        Self { place, server }
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        common::killed(self.place.command(args), fail)
    }

    fn keys(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().map(|request| request.header("idempotency-key").unwrap_or_default().to_owned()).collect()
    }

    /// How many failed attempts the journal holds that another one follows.
    fn retried(&self) -> usize {
        events_of(&self.place).iter().filter(|event| !event["what"]["tool_retried"].is_null()).count()
    }
}

fn result(ran: Ran, at: &str) -> Value {
    assert_eq!(ran.code, 0, "{at}: {ran:#?}");
    timeless(ran.json())
}

#[test]
fn a_kill_at_every_boundary_leaves_the_attempts_that_are_left_and_the_same_key() {
    let whole = Retries::new(0);
    let expected = result(whole.call(&START, ""), "whole");
    assert_eq!((whole.keys(), whole.retried()), (vec!["r-1-0".to_owned(); ATTEMPTS], ATTEMPTS - 1));
    assert_eq!(expected["trace"][0]["attempts"].as_array().map(Vec::len), Some(ATTEMPTS - 1), "{expected:#}");
    let kills = kill_everywhere(|_, at| {
        let retries = Retries::new(0);
        if retries.call(&START, at).code != -9 {
            return false;
        }
        let (made, kept) = (retries.keys().len(), retries.retried());
        assert!(made <= kept + 1, "{at}: at most one attempt is not in the journal");
        // A run without any event is started again.
        let again: &[&str] = if events_of(&retries.place).is_empty() { &START } else { &RESUME };
        assert_eq!(result(retries.call(again, ""), at), expected, "{at}");
        let keys = retries.keys();
        assert!((ATTEMPTS..=ATTEMPTS + 1).contains(&keys.len()), "{at}: a kill repeats one attempt at most: {keys:?}");
        assert!(keys.iter().all(|key| key == "r-1-0"), "{at}: {keys:?}");
        assert_eq!(retries.retried(), ATTEMPTS - 1, "{at}: each attempt is in the journal once");
        true
    });
    // Started, the call, two failed attempts, its outcome, the answer.
    assert!(kills.iter().sum::<usize>() >= least(4 * 6 - 1), "{kills:?} kills tested too little");
}

#[test]
fn a_process_that_dies_after_every_event_makes_no_more_attempts_than_allowed() {
    let retries = Retries::new(0);
    let mut ran = retries.call(&START, "way:0:after-sync");
    let mut lives = 1;
    while ran.code == -9 {
        lives += 1;
        assert!(lives < 60, "the run makes no way");
        ran = retries.call(&RESUME, "way:0:after-sync");
    }
    assert!(lives > 4, "{lives} lives tested too little");
    assert_eq!((retries.keys().len(), retries.retried()), (ATTEMPTS, ATTEMPTS - 1), "{ran:#?}");
}

#[test]
fn a_kill_in_the_wait_leaves_what_is_left_of_it() {
    let retries = Retries::new(3_600);
    // The start, the call, and the first failed attempt: the process is killed when the wait begins.
    assert_eq!(retries.call(&START, "journal:2:before-effect").code, -9);
    assert_eq!((retries.keys().len(), retries.retried()), (1, 1));
    // An hour later, the next attempt is due.
    retries.place.file("ahead", "3600001");
    let mut resume = retries.place.command(&RESUME);
    resume.env("LOOPCTL_CLOCK", retries.place.path().join("ahead"));
    let ended = result(common::killed(resume, ""), "an hour later");
    assert_eq!(ended["trace"][0]["attempts"][0]["delay_ms"], 3_600_000, "{ended:#}");
    assert_eq!(retries.keys(), vec!["r-1-0".to_owned(); ATTEMPTS]);
}
