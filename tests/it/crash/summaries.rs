//! R1: kills around a summary of the history: a durable summary is not made again, and one that is not durable
//! is counted once.

use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::sweep::BOUNDARIES;
use crate::common::{self, Place, Ran, complete, document, look};
use crate::crash::reference::{events_of, timeless};

/// A run whose history is summarised once.
struct Long {
    place: Place,
    server: Server,
}

fn is_summary(request: &Request) -> bool {
    request.text().contains("You write the notes of an agent")
}

impl Long {
    fn new() -> Self {
        let server = Server::reading(|_, request| {
            let messages = request.json()["messages"].as_array().cloned().unwrap_or_default();
            let summed = messages[1]["content"].as_str().is_some_and(|text| text.contains("Found so far"));
            let text = if is_summary(request) {
                "Found so far: nothing but x.".to_owned()
            } else if summed {
                complete(json!("done")).to_string()
            } else {
                look(&messages.len().to_string()).to_string()
            };
            let read: usize = messages.iter().filter_map(|message| message["content"].as_str().map(str::len)).sum();
            Answer::json(&json!({
                "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": read / 4, "completion_tokens": text.len() / 4 },
            }))
        });
        let place = Place::on_disk();
        let mut document = document(&json!({ "history": { "context_tokens": 3_000 } }));
        for action in document["actions"].as_array_mut().expect("actions") {
            let (name, parameters) = (action["action_name"].clone(), action["parameters"].clone());
            *action = json!({ "action_name": name, "kind": "command", "program": "echo", "args": ["x".repeat(3_900)],
                "description": "Looks.", "parameters": parameters });
        }
        place.json("loop.json", &document);
        place.json("loopctl.json", &json!({ "allow": { "commands": ["echo"] } }));
        Self { place, server }
    }

    fn run(&self, fail: &str) -> Ran {
        let args = ["run", "loop.json", "--run-id", "r", "--model", "m", "--output", "json"];
        let mut command = self.place.command(&args);
        command.env("OPENAI_BASE_URL", self.server.url());
        common::killed(command, fail)
    }

    fn summaries(&self) -> usize {
        self.server.requests().iter().filter(|request| is_summary(request)).count()
    }

    /// The positions of the summaries in the journal.
    fn kept(&self) -> Vec<usize> {
        let events = events_of(&self.place);
        let kept = events.iter().enumerate().filter(|(_, event)| !event["what"]["summarized"].is_null());
        kept.map(|(at, _)| at).collect()
    }
}

#[test]
fn a_kill_around_a_summary_neither_repeats_one_that_is_durable_nor_counts_one_twice() {
    let whole = Long::new();
    let ran = whole.run("");
    assert_eq!((ran.code, whole.summaries()), (0, 1), "{ran:#?}");
    let expected: Value = timeless(ran.json());
    let [at] = whole.kept()[..] else { panic!("{:?}", whole.kept()) };
    // The summary is requested when the event before it is durable.
    let asked = ["after-sync", "before-effect"].map(|boundary| (at - 1, boundary));
    for (event, boundary) in asked.into_iter().chain(BOUNDARIES.map(|boundary| (at, boundary))) {
        let kill = format!("journal:{event}:{boundary}");
        let long = Long::new();
        assert_eq!(long.run(&kill).code, -9, "{kill}");
        let ran = long.run("");
        assert_eq!(ran.code, 0, "{kill}: {ran:#?}");
        assert_eq!(timeless(ran.json()), expected, "{kill}");
        let lost = event == at && ["before-write", "after-write"].contains(&boundary);
        assert_eq!((long.kept().len(), long.summaries()), (1, if lost { 2 } else { 1 }), "{kill}");
    }
}
