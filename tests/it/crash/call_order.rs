//! Several calls in one turn, in the order of the loop: wherever the process is killed, the calls begin in the same order.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::{kill_everywhere, least};
use crate::common::{self, Place, Ran, finished};
use crate::crash::reference::START;

/// The calls of the turn: two reads, a write without a key, an idempotent write, a read.
const CALLS: [&str; 5] = ["read1", "read2", "post3", "put4", "read5"];

struct Ordered {
    place: Place,
    server: Server,
}

impl Ordered {
    fn new() -> Self {
        let server = Server::with(|_, request| {
            let name = request.path.split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
            Answer::json(&json!({ "did": name.trim_end_matches(char::is_numeric) }))
        });
        let place = Place::on_disk();
        let action = |name: &str, method: &str| {
            json!({ "action_name": name, "kind": "http", "description": "Does it.", "http_method": method,
                "url": format!("{}/{name}{{{{n}}}}", server.url()), "body": {},
                "parameters": { "type": "object", "properties": { "n": { "type": "string" } }, "required": ["n"] } })
        };
        let actions: Vec<Value> = [("post", "POST"), ("put", "PUT")].map(|(name, method)| action(name, method)).into();
        let mut read = action("read", "GET");
        read.as_object_mut().unwrap().remove("body");
        let tools = ["read", "post", "put"].map(|name| json!({ "type": "action", "name": name }));
        place.json(
            "loop.json",
            &json!({ "type": "loop", "name": "ordered", "actions": [read, actions[0], actions[1]], "properties": {
                "mode": "react", "objective": "Do it.", "dialect": "tags", "tools": tools } }),
        );
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        let call = |name: &&str| {
            json!({ "action": name.trim_end_matches(char::is_numeric),
            "action_input": { "n": name.trim_start_matches(char::is_alphabetic) } })
        };
        let calls: Vec<Value> = CALLS.iter().map(call).collect();
        let replies = json!([{ "thought": "All.", "calls": calls }, { "thought": "t", "answer": "done" }]);
        place.json("script.json", &json!({ "replies": replies }));
        Self { place, server }
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        common::killed(self.place.command(args), fail)
    }

    fn start(&self, fail: &str) -> Ran {
        self.call(&START, fail)
    }

    /// The result, as an operator who knows what the server saw brings the run to its end.
    fn finish(&self, ran: Ran) -> Value {
        let resume = |how: &[&str]| {
            let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
            args.extend(how);
            self.call(&args, "")
        };
        finished(ran, resume, || self.came().iter().any(|name| name == "post3")).0.json()
    }

    /// The calls as the server first saw them.
    fn came(&self) -> Vec<String> {
        let mut came: Vec<String> = Vec::new();
        for request in self.server.requests() {
            let name = request.path.split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
            if !came.contains(&name) {
                came.push(name);
            }
        }
        came
    }
}

/// The calls of the trace, with what the model reads of each.
fn observed(result: &Value) -> Vec<[Value; 3]> {
    assert_eq!(result["status"], "completed", "{result:#}");
    let entries = result["trace"].as_array().expect("a trace").iter();
    entries.map(|entry| ["action", "action_input", "observation"].map(|name| entry[name].clone())).collect()
}

#[test]
fn wherever_it_is_killed_the_calls_of_a_turn_begin_in_their_order_and_a_write_is_made_once() {
    let untouched = Ordered::new();
    let expected = observed(&untouched.finish(untouched.start("")));
    assert_eq!(expected.len(), CALLS.len() + 1);
    let kills = kill_everywhere(|_, at| {
        let ordered = Ordered::new();
        if ordered.start(at).code != -9 {
            return false;
        }
        assert_eq!(observed(&ordered.finish(ordered.start(""))), expected, "{at}");
        let mut came = ordered.came();
        // The two reads at the beginning are made together.
        came[..2].sort();
        assert_eq!(came, CALLS, "{at}");
        let posted = ordered.server.requests().iter().filter(|request| request.path.starts_with("/post3")).count();
        assert_eq!(posted, 1, "{at}");
        true
    });
    assert!(kills.iter().sum::<usize>() >= least(24), "{kills:?} kills tested too little");
}
