//! The real process is killed at every boundary of the journal of a workflow with a form and two notices, and resumed: each
//! notice arrives under its one key, and the form is filled in once.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::{BOUNDARIES, is_played, least};
use crate::common::{Place, Ran, killed};

/// The run has no more events.
const MOST_EVENTS: usize = 8;

struct Notices {
    place: Place,
    server: Server,
}

impl Notices {
    fn new() -> Self {
        let server = Server::with(|_, _| Answer::json("ok"));
        let place = Place::on_disk();
        let target = json!({ "kind": "webhook", "url": format!("{}/hook", server.url()) });
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true }, "notify": { "ops": target } }));
        let notify =
            |id: &str, text: &str| json!({ "id": id, "type": "notify", "properties": { "to": "ops", "text": text } });
        let form = json!({ "id": "ask", "type": "PbotForm", "properties": { "question": "How much?",
            "fields": [{ "name": "amount", "type": "integer" }, { "name": "why", "type": "text", "default": "none" }] } });
        let actions = [notify("first", "It begins."), form, notify("last", "{{amount}} for {{why}}.")];
        let definition = json!({ "actions": actions, "output": "@amount" });
        place.json("loop.json", &json!({ "name": "w", "definition": definition }));
        place.json("script.json", &json!({ "replies": [] }));
        Self { place, server }
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        let all = [args, &["--script", "script.json", "--output", "json"]].concat();
        killed(self.place.command(&all), fail)
    }

    /// Starts, resumes and answers the run until it has ended. The first two processes have the fail point.
    fn ended(&self, fail: &str) -> (Value, bool) {
        let mut is_killed = false;
        let mut ran = self.call(&["run", "loop.json", "--run-id", "r"], fail);
        for turn in 0..10 {
            let fail = if turn == 0 && !is_killed && ran.code == 3 { fail } else { "" };
            is_killed |= ran.code == -9;
            ran = match ran.code {
                0 => return (ran.json(), is_killed),
                3 => self.call(&["resume", "r", "--answer", r#"{"amount": "12"}"#], fail),
                _ => self.call(&["run", "loop.json", "--run-id", "r"], ""),
            };
        }
        panic!("it does not end: {ran:#?}");
    }

    /// The texts that arrived, by key.
    fn arrived(&self) -> BTreeMap<String, Vec<String>> {
        let mut arrived: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for request in self.server.requests() {
            let key = request.header("idempotency-key").unwrap().to_owned();
            let body = request.json();
            assert_eq!((&body["id"], &body["to"]), (&json!(key), &json!("ops")), "{body}");
            arrived.entry(key).or_default().push(body["text"].as_str().unwrap().to_owned());
        }
        arrived
    }
}

#[test]
fn a_kill_at_every_boundary_loses_no_notice_and_sends_none_under_another_key() {
    let mut kills = 0;
    for (kind, boundary) in BOUNDARIES.iter().enumerate() {
        for event in (0..MOST_EVENTS).filter(|event| is_played(*event, kind)) {
            let notices = Notices::new();
            let at = format!("journal:{event}:{boundary}");
            let (result, is_killed) = notices.ended(&at);
            assert_eq!(result["result"]["answer"], 12, "{at}: {result}");
            let arrived = notices.arrived();
            let keys: Vec<&str> = arrived.keys().map(String::as_str).collect();
            assert_eq!(keys, ["r-first", "r-last"], "{at}");
            assert!(arrived["r-first"].iter().all(|text| text == "It begins."), "{at}: {arrived:?}");
            assert!(arrived["r-last"].iter().all(|text| text == "12 for none."), "{at}: {arrived:?}");
            assert!(arrived.values().map(Vec::len).sum::<usize>() <= 3, "{at}: {arrived:?}");
            kills += usize::from(is_killed);
        }
    }
    assert!(kills >= least(6), "{kills}");
}
