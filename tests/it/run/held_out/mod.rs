//! The meaning of other engines' own tests, carried over by hand, with their answers as the oracle. What is meant
//! otherwise here is a test too: its name begins with `differs`.

mod argo;
mod serverless_workflow;
mod step_functions;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, web, with};
use crate::run::workflows;

/// A place with the action `pass`, which gives back the `value` that it is given, and `fail`, which fails. Both are
/// answered by a server.
struct Passing {
    place: Place,
    server: Server,
}

/// How a run ended.
struct Ended {
    ran: Ran,
    result: Value,
}

impl Passing {
    fn new() -> Self {
        let server = Server::reading(|_, request| {
            let given: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let answer = Answer::json(&given.get("value").cloned().unwrap_or_default());
            if request.path == "/fail" { answer.status(503) } else { answer }
        });
        let place = Place::new();
        let action = |name: &str, idempotent: bool| {
            let more = json!({ "http_method": "POST", "idempotent": idempotent, "parameters": { "type": "object" } });
            web(name, &format!("{}/{name}", server.url()), more)
        };
        place.json("actions/all.json", &json!([action("pass", true), action("fail", true)]));
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        Self { place, server }
    }

    fn run(&self, definition: Value, input: &Value) -> Ended {
        workflows::definition(&self.place, definition);
        self.place.json("input.json", input);
        let ran =
            self.place.call(&["run", "loop.json", "--run-id", "r", "--input-file", "input.json", "--output", "json"]);
        let result = ran.json();
        Ended { ran, result }
    }

    /// What the server was given, by the value, in the order of arrival.
    fn values(&self, action: &str) -> Vec<Value> {
        let requests = self.server.requests();
        let of_action = requests.iter().filter(|request| request.path == format!("/{action}"));
        of_action.map(|request| request.json().get("value").cloned().unwrap_or_default()).collect()
    }
}

impl Ended {
    fn answer(&self) -> &Value {
        assert_eq!(self.ran.code, 0, "{:#?}", self.ran);
        &self.result["result"]["answer"]
    }

    /// The code of the failed step, and its address.
    fn fault(&self) -> (String, String) {
        assert_eq!(self.ran.code, 1, "{:#?}", self.ran);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let failed = self.result["steps"].as_array().unwrap().last().unwrap();
        (text(&failed["error"]["code"]), text(&self.result["error"]["step"]))
    }

    /// The counts of the loop that is the last step.
    fn counts(&self) -> Value {
        self.result["steps"].as_array().unwrap().last().unwrap()["items"].clone()
    }
}

fn pass(value: Value) -> Value {
    json!({ "type": "pass", "properties": { "value": value }, "outputKey": "passed" })
}

/// A loop that gathers what the last step of each item gives under `all`.
fn map(items: &str, more: Value, steps: Value) -> Value {
    let settings = with(json!({ "collect_results": true, "result_key": "all", "summary_key": "counts" }), more);
    workflows::foreach(items, settings, steps)
}

/// What the items gave.
fn outputs(all: &Value) -> Value {
    all.as_array().unwrap().iter().map(|entry| entry["output"].clone()).collect()
}
