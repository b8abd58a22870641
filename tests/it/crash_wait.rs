//! The real process is killed at every boundary of the journal of a workflow that waits for a time, before the wait and after
//! it: no call is made twice, and the wait is neither lost nor begun anew.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::{BOUNDARIES, is_played, least};
use crate::common::{Place, Ran};

/// A call, items that each wait and call, and a last call.
struct Waiting {
    place: Place,
    server: Server,
}

impl Waiting {
    fn new() -> Self {
        let server = Server::with(|_, _| Answer::json(&json!({})));
        let place = Place::on_disk();
        let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
            "idempotent": true, "url": format!("{}/post", server.url()), "parameters": { "type": "object" } });
        place.json("actions/all.json", &json!([post]));
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        let post = |of: &str| json!({ "type": "post", "properties": { "of": of } });
        let wait = json!({ "type": "wait", "properties": { "for": "1h" } });
        let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
            "item_variable_name": "one", "max_concurrency": 2, "actions_to_execute": [wait, post("@one")] } });
        place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [post("a"), each, post("z")] } }));
        place.file("clock", "0");
        Self { place, server }
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        let mut command = self.place.command(args);
        command.env("LOOPCTL_CLOCK", "clock");
        crate::common::killed(command, fail)
    }

    fn start(&self, fail: &str) -> Ran {
        let input = r#"{"items":[1,2]}"#;
        self.call(&["run", "loop.json", "--run-id", "r", "--output", "json", "--input", input], fail)
    }

    fn resume(&self, fail: &str) -> Ran {
        self.call(&["resume", "r", "--output", "json"], fail)
    }

    fn time_comes(&self) {
        self.place.file("clock", 3_660_000.to_string());
    }

    /// Resumes the run until it waits or has ended.
    fn driven(&self, mut ran: Ran) -> Ran {
        for _ in 0..20 {
            if ran.code == 0 || ran.code == 3 {
                return ran;
            }
            ran = if ran.code == 2 && ran.stderr.contains("no run") { self.start("") } else { self.resume("") };
        }
        panic!("it does not end: {ran:#?}");
    }

    /// The keys of the calls that came to the server: each once.
    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self
            .server
            .requests()
            .iter()
            .map(|request| request.header("idempotency-key").unwrap().to_owned())
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }
}

const ALL: [&str; 4] = ["r-0", "r-2", "r-each.0.1", "r-each.1.1"];

#[test]
fn a_kill_at_every_boundary_of_a_wait_loses_and_repeats_nothing() {
    let mut kills = [0, 0];
    for (kind, boundary) in BOUNDARIES.iter().enumerate() {
        for event in (0..12).filter(|event| is_played(*event, kind)) {
            // Before the wait, and at its end: each in a run of its own.
            for (phase, kills) in kills.iter_mut().enumerate() {
                let run = Waiting::new();
                let at = format!("journal:{event}:{boundary}");
                let first = run.start(if phase == 0 { &at } else { "" });
                *kills += usize::from(first.code == -9);
                let paused = run.driven(first);
                let result = paused.json();
                assert_eq!((paused.code, &result["termination"]), (3, &json!("waiting")), "{at}: {result:#}");
                assert_eq!(run.keys(), ["r-0"], "{at}");
                let until: Vec<Value> = result["pause"]["steps"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|step| step["expires_at"].clone())
                    .collect();
                let again = run.resume("").json();
                let still = again["pause"]["steps"].as_array().unwrap().iter().map(|step| step["expires_at"].clone());
                assert_eq!(still.collect::<Vec<_>>(), until, "{at}: the wait is not begun anew");
                run.time_comes();
                let last = run.resume(if phase == 1 { &at } else { "" });
                *kills += usize::from(last.code == -9);
                let ended = run.driven(last);
                assert_eq!((ended.code, run.keys()), (0, ALL.map(str::to_owned).to_vec()), "{at}: {ended:#?}");
                let calls = run.server.requests().len();
                assert!(calls <= ALL.len() + 2, "{at}: {calls} calls");
            }
        }
    }
    assert!(kills[0] >= least(4) && kills[1] >= least(12), "{kills:?}");
}

/// A call, a wait for an event, and a last call.
fn event_flow() -> Waiting {
    let run = Waiting::new();
    let post = |of: &str| json!({ "type": "post", "properties": { "of": of } });
    let wait = json!({ "id": "paid", "type": "wait_for_event", "outputKey": "paid",
        "properties": { "event": "paid", "match": { "order": 7 } } });
    let definition = json!({ "actions": [post("a"), wait, post("z")] });
    run.place.json("loop.json", &json!({ "name": "w", "definition": definition }));
    run
}

#[test]
fn a_kill_at_every_boundary_around_an_event_neither_loses_nor_repeats_it() {
    let event = ["event", "paid", "--id", "p1", "--data", r#"{"order":7,"by":"card"}"#, "--document", "loop.json"];
    let mut kills = 0;
    for (kind, boundary) in BOUNDARIES.iter().enumerate() {
        for number in (0..5).filter(|number| is_played(*number, kind)) {
            let at = format!("journal:{number}:{boundary}");
            for comes_first in [true, false] {
                let run = event_flow();
                if comes_first {
                    // The store is made by a run that waits for another event, and does not end.
                    let other =
                        json!({ "actions": [{ "type": "wait_for_event", "properties": { "event": "other" } }] });
                    run.place.json("other.json", &json!({ "name": "other", "definition": other }));
                    assert_eq!(run.call(&["run", "other.json"], "").code, 3);
                    let sent = run.call(&event, "");
                    assert!(sent.code == 0 && sent.stderr.contains("no run waits for it"), "{sent:#?}");
                } else {
                    let paused = run.start("");
                    assert_eq!(
                        (paused.code, &paused.json()["termination"]),
                        (3, &json!("waiting_event")),
                        "{paused:#?}"
                    );
                    for said in ["1 run gets it", "1 run gets it"] {
                        let sent = run.call(&event, "");
                        assert!(sent.code == 0 && sent.stderr.contains(said), "{sent:#?}");
                    }
                }
                let last = if comes_first { run.start(&at) } else { run.resume(&at) };
                kills += usize::from(last.code == -9);
                let ended = run.driven(last);
                assert_eq!((ended.code, run.keys()), (0, vec!["r-0".to_owned(), "r-2".to_owned()]), "{at}: {ended:#?}");
                assert_eq!(ended.json()["result"]["answer"]["paid"]["by"], "card", "{at}");
                let sent = run.call(&event, "");
                assert!(sent.code == 0 && sent.stderr.contains("sent before"), "{sent:#?}");
            }
        }
    }
    assert!(kills >= least(8), "{kills}");
}
