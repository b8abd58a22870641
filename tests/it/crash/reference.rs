//! The reference run of the crash tests: a server outside of the process counts its calls.

use std::time::Duration;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{self, Place, Ran, complete, finished, think};

/// The arguments that start the run, and resume it.
pub const START: [&str; 8] = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];

/// Its calls.
pub const CALLS: [&str; 3] = ["read", "put", "post"];

/// The reference run: an idempotent GET, a POST with an idempotency key, one without, memory, a question to a
/// human.
pub struct Reference {
    pub place: Place,
    pub server: Server,
}

impl Reference {
    pub fn new() -> Self {
        Self::behind(None)
    }

    /// The first call is answered when the gate is open.
    pub fn behind(gate: Option<Gate>) -> Self {
        Self::answered(move |number, answer| match &gate {
            Some(gate) if number == 0 => answer.behind(gate),
            _ => answer,
        })
    }

    /// Each call takes so long.
    pub fn slow(pause: Duration) -> Self {
        Self::answered(move |_, answer| answer.slow(pause))
    }

    fn answered(how: impl Fn(usize, Answer) -> Answer + Send + Sync + 'static) -> Self {
        let server = Server::with(move |number, request| {
            let name = request.path.trim_start_matches('/').to_owned();
            how(number, Answer::json(&json!({ "did": name })))
        });
        let place = Place::on_disk();
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
        let names = CALLS.map(|name| json!({ "type": "action", "name": name }));
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

    pub fn start(&self, fail: &str) -> Ran {
        self.call(&START, fail)
    }

    pub fn resume(&self, how: &[&str], fail: &str) -> Ran {
        let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
        args.extend(how);
        self.call(&args, fail)
    }

    pub fn call(&self, args: &[&str], fail: &str) -> Ran {
        common::killed(self.place.command(args), fail)
    }

    pub fn calls_of(&self, name: &str) -> Vec<String> {
        let path = format!("/{name}");
        self.server
            .requests()
            .iter()
            .filter(|request| request.path.split('?').next() == Some(path.as_str()))
            .map(|request| request.header("idempotency-key").unwrap_or_default().to_owned())
            .collect()
    }

    /// Drives the run to its end as an operator would who knows what the server saw: returns its result, and
    /// how often it asked about the POST without a key.
    pub fn finish(&self) -> (Value, u32) {
        self.finish_after(self.start(""))
    }

    /// The same after a process that resumed the run.
    pub fn finish_after(&self, ran: Ran) -> (Value, u32) {
        let posted = || !self.calls_of("post").is_empty();
        let (ran, uncertain) = finished(ran, |how| self.resume(how, ""), posted);
        (ran.json(), uncertain)
    }

    /// The durable events of the run, as text.
    pub fn events(&self) -> Vec<Value> {
        events_of(&self.place)
    }

    /// The calls whose outcomes are in the journal, and the one with only an intent.
    pub fn calls_in_journal(&self) -> (Vec<&'static str>, Option<&'static str>) {
        let (mut done, mut open) = (Vec::new(), None);
        for event in self.events() {
            let what = &event["what"];
            if let Some(text) = what["model_replied"]["text"].as_str() {
                open = CALLS.into_iter().find(|name| text.contains(&format!("\"{name}\"")));
            } else if !what["tool_returned"].is_null() || !what["human"]["decision"]["happened"].is_null() {
                done.extend(open.take());
            }
        }
        (done, open)
    }

    /// Whether the journal has the intent of the POST without a key, but not its outcome.
    pub fn post_is_open(&self) -> bool {
        self.calls_in_journal().1 == Some("post")
    }

    pub fn holds(&self, at: &str) {
        self.holds_after(at, 1);
    }

    /// What must be true of the calls after so many kills.
    pub fn holds_after(&self, at: &str, kills: usize) {
        for name in CALLS {
            let calls = self.calls_of(name);
            let most = if name == "post" { 1 } else { 1 + kills };
            assert!((1..=most).contains(&calls.len()), "{at}: {} calls of {name}", calls.len());
            assert!(calls.iter().all(|key| *key == calls[0]), "{at}: {name} was called with two keys: {calls:?}");
        }
        let extra: usize = CALLS.iter().map(|name| self.calls_of(name).len() - 1).sum();
        assert!(extra <= kills, "{at}: a kill repeats one call at most, and {extra} were");
    }
}

/// The durable events of the run `r`.
pub fn events_of(place: &Place) -> Vec<Value> {
    let store = place.path().join(".loopctl/runs.db");
    // Read-only: the next process must find the log of a killed process unchanged.
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let Ok(connection) = rusqlite::Connection::open_with_flags(store, flags) else { return Vec::new() };
    let sql = "SELECT event FROM events JOIN runs ON runs.id = events.run WHERE run_id = 'r' ORDER BY seq";
    let Ok(mut query) = connection.prepare(sql) else { return Vec::new() };
    let rows = query.query_map((), |row| row.get::<_, String>(0)).expect("it reads");
    rows.map(|text| serde_json::from_str(&text.expect("a text")).expect("JSON")).collect()
}

/// A result without what differs from run to run: the times, and the hashes, which the ports of the tools are in.
pub fn timeless(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for name in
                    ["timestamp", "duration_ms", "started_at", "finished_at", "at", "decided_at", "called_at", "hash"]
                {
                    fields.remove(name);
                }
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

/// Compares a result with that of a run that nobody killed. What a human said about a call that was cut off is in one
/// of them only; and the model reads of it, which the estimate of its tokens counts.
pub fn assert_same(result: Value, expected: &Value, at: &str) {
    let (mut result, mut expected) = (timeless(result), expected.clone());
    let is_of_crash = |decision: &Value| ["retry", "happened"].iter().any(|kind| decision["decision"] == *kind);
    let Some(Value::Array(decisions)) = result.get_mut("decisions") else {
        return assert_eq!(result, expected, "{at}");
    };
    let all = decisions.len();
    decisions.retain(|decision| !is_of_crash(decision));
    for decision in &mut *decisions {
        decision["pause"].take();
    }
    if decisions.len() < all {
        for value in [&mut result, &mut expected] {
            without(value, "usage");
        }
    }
    if let Some(Value::Array(decisions)) = expected.get_mut("decisions") {
        decisions.iter_mut().for_each(|decision| drop(decision["pause"].take()));
    }
    assert_eq!(result, expected, "{at}");
}

fn without(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => {
            fields.remove(name);
            fields.values_mut().for_each(|value| without(value, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without(item, name)),
        _ => {}
    }
}

pub fn untouched() -> Value {
    timeless(Reference::new().finish().0)
}
