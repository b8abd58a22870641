//! What is outside of a cluster: the model, and tools that note each call with its idempotency key.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Play;
use super::history::{Action, History, Operation};
use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think};
use crate::serve::client;

/// A call of a run, by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallName {
    pub run: usize,
    pub at: usize,
}

#[derive(Default)]
struct CallLog {
    /// The key of each call, each time that it arrived, and when that was.
    keys: Mutex<BTreeMap<CallName, Vec<(String, Instant)>>>,
    arrived: Condvar,
    /// Whether calls that arrive are not answered yet.
    are_held: Mutex<bool>,
    released: Condvar,
}

/// The folder that all workers serve, and its tools.
pub struct World {
    pub place: Place,
    log: Arc<CallLog>,
    _tools: Server,
}

impl World {
    pub fn new(play: &Play) -> Self {
        #![allow(clippy::disallowed_methods, reason = "a history has moments")]
        let log = Arc::new(CallLog::default());
        let (noted, pause) = (Arc::clone(&log), Duration::from_millis(play.tool_ms));
        let tools = Server::with(move |_, request| {
            let mut numbers = request.path.rsplit('/').map(|number| number.parse::<usize>().unwrap());
            let (at, run) = (numbers.next().unwrap(), numbers.next().unwrap());
            let key = request.header("idempotency-key").unwrap_or("none").to_owned();
            noted.keys.lock().unwrap().entry(CallName { run, at }).or_default().push((key, Instant::now()));
            noted.arrived.notify_all();
            drop(noted.released.wait_while(noted.are_held.lock().unwrap(), |are_held| *are_held).unwrap());
            Answer::json(&json!({ "done": at })).slow(pause)
        });
        Self { place: folder(play, &tools.url()), log, _tools: tools }
    }

    /// The calls that arrived, with their keys.
    pub fn log(&self) -> BTreeMap<CallName, Vec<String>> {
        let keys = |arrived: &Vec<(String, Instant)>| arrived.iter().map(|(key, _)| key.clone()).collect();
        self.log.keys.lock().unwrap().iter().map(|(call, arrived)| (*call, keys(arrived))).collect()
    }

    /// Notes the outcome of each call as an append to its run: it was called when the call arrived first, and was answered
    /// when the next one did, which follows it.
    pub fn append_to(&self, history: &History) {
        let log = self.log.keys.lock().unwrap();
        let first = |call: &CallName| log.get(call).map(|arrived| arrived[0].1);
        for call in log.keys() {
            let next = CallName { at: call.at + 1, ..*call };
            let (action, called) = (Action::Append(u64::try_from(call.at).unwrap()), first(call).unwrap());
            history.note(Operation { list: call.run, action, called, answered: first(&next) });
        }
    }

    /// Answers no call, so that no run ends, or all of them again.
    pub fn hold(&self, are_held: bool) {
        *self.log.are_held.lock().unwrap() = are_held;
        self.log.released.notify_all();
    }

    /// How many calls arrived.
    pub fn calls(&self) -> usize {
        self.log.keys.lock().unwrap().values().map(Vec::len).sum()
    }

    /// Waits until so many calls arrived; `false` when they do not in this time.
    pub fn wait_for(&self, calls: usize, time: Duration) -> bool {
        let keys = self.log.keys.lock().unwrap();
        let few =
            |keys: &mut BTreeMap<CallName, Vec<(String, Instant)>>| keys.values().map(Vec::len).sum::<usize>() < calls;
        !self.log.arrived.wait_timeout_while(keys, time, few).unwrap().1.timed_out()
    }
}

/// A folder with the loop `test`, which makes its calls in turn and then ends.
fn folder(play: &Play, tools: &str) -> Place {
    let action = |name: &str, idempotent: bool| {
        json!({ "action_name": name, "kind": "http", "description": "Acts.", "http_method": "POST",
            "url": format!("{tools}/{{{{input.n}}}}/{{{{at}}}}"), "idempotent": idempotent,
            "parameters": { "type": "object", "properties": { "at": { "type": "integer" } }, "required": ["at"] } })
    };
    let place = Place::new();
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "actions": [action("again", true), action("once", false)],
            "input": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] },
            "properties": { "mode": "react", "objective": "Act for {{input.n}}.", "max_iterations": 1000,
                "on_stuck": { "iterations": 1000 },
                "tools": [{ "type": "action", "name": "again" }, { "type": "action", "name": "once" }] } }),
    );
    let said = |reply: Value| json!({ "delay_ms": play.model_ms, "text": reply.to_string() });
    let name = |at: usize| if play.is_idempotent(at) { "again" } else { "once" };
    let mut replies: Vec<Value> = (0..play.calls).map(|at| said(think(name(at), json!({ "at": at })))).collect();
    replies.push(said(complete(json!("ok"))));
    client::scripted(&place, &replies, json!({}));
    place
}
