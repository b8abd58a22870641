//! Kills around a refusal that says the model's window: the resumed run sends the same requests, because what was learned is
//! in its journal.

use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::sweep::{kill_everywhere, least};
use crate::common::{self, Place, Ran, complete, document, look};
use crate::crash::reference::{START, timeless};

/// The window of the model, in tokens of four bytes.
const WINDOW: usize = 2_000;

struct Narrow {
    place: Place,
    server: Server,
}

fn tokens(request: &Request) -> usize {
    (request.text().len() - request.json()["response_format"].to_string().len()) / 4
}

impl Narrow {
    fn new() -> Self {
        let server = Server::reading(|_, request| {
            let tokens = tokens(request);
            if tokens > WINDOW {
                let error = json!({ "error": { "code": 400, "type": "exceed_context_size_error", "n_ctx": WINDOW,
                    "n_prompt_tokens": tokens, "message": "the request exceeds the available context size" } });
                return Answer::json(&error).status(400);
            }
            let messages = request.json()["messages"].as_array().map_or(0, Vec::len);
            let is_trimmed = request.text().contains("not shown any more");
            let turn = if is_trimmed { complete(json!("done")) } else { look(&messages.to_string()) };
            let message = json!({ "role": "assistant", "content": turn.to_string() });
            Answer::json(&json!({ "choices": [{ "message": message, "finish_reason": "stop" }] }))
        });
        let place = Place::on_disk();
        let mut document = document(&json!({ "history": { "summarize": false } }));
        for action in document["actions"].as_array_mut().expect("actions") {
            let (name, parameters) = (action["action_name"].clone(), action["parameters"].clone());
            *action = json!({ "action_name": name, "kind": "command", "program": "echo", "args": ["x".repeat(1_500)],
                "description": "Looks.", "parameters": parameters, "idempotent": true });
        }
        place.json("loop.json", &document);
        place.json(
            "loopctl.json",
            &json!({ "allow": { "commands": ["echo"] }, "model": "m",
                "models": { "m": { "provider": "openai", "base_url": format!("{}/v1", server.url()) } } }),
        );
        Self { place, server }
    }

    fn run(&self, fail: &str) -> Ran {
        let args: Vec<&str> = START.into_iter().filter(|arg| !arg.contains("script")).collect();
        common::killed(self.place.command(&args), fail)
    }

    /// The requests as the model got them, each once.
    fn requests(&self) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        for request in self.server.requests() {
            let body = request.json();
            if all.last() != Some(&body) {
                all.push(body);
            }
        }
        all
    }
}

#[test]
fn a_run_that_learned_the_window_and_is_killed_sends_the_same_requests_after_it() {
    let whole = Narrow::new();
    let ran = whole.run("");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let (expected, requests) = (timeless(ran.json()), whole.requests());
    let refused = whole.server.requests().iter().filter(|request| tokens(request) > WINDOW).count();
    assert!(refused >= 1 && expected["metadata"]["messages_trimmed"].as_u64() > Some(0), "{expected:#}");
    let kills = kill_everywhere(|_, at| {
        let narrow = Narrow::new();
        if narrow.run(at).code != -9 {
            return false;
        }
        let result = timeless(narrow.run("").json());
        assert_eq!(
            ["status", "result", "iterations"].map(|part| &result[part]),
            ["status", "result", "iterations"].map(|part| &expected[part]),
            "{at}"
        );
        assert_eq!(narrow.requests(), requests, "{at}");
        true
    });
    assert!(kills.iter().sum::<usize>() >= least(30), "{kills:?} kills tested too little");
}
