//! R1: kills at every boundary of a run whose model thinks: the provider gets the reasoning of each reply back, the
//! same bytes before a kill and after it.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::kill_everywhere;
use crate::common::{self, Place, Ran};
use crate::crash::reference::{events_of, timeless};

/// The fields that follow the text of the model's first message, letter by letter.
const REASONING: &str = r#""reasoning_content":"Look\u0021 \"\ud83d\ude00\" first\/","reasoning_details":[{"type":"reasoning.encrypted","data":"gA=="}]"#;

struct Thinking {
    place: Place,
    server: Server,
}

impl Thinking {
    fn new() -> Self {
        let server = Server::reading(|_, request| {
            let text = request.text();
            let call = |id: &str, name: &str, arguments: Value| {
                json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments.to_string() },
                    "extra_content": { "google": { "thought_signature": "AbC=" } } })
            };
            let message = if text.contains("tool_call_id") {
                let done = call("b", "__complete__", json!({ "answer": "done" }));
                format!(r#"{{"content":null,"tool_calls":[{done}]}}"#)
            } else {
                let first = call("a", "look", json!({}));
                format!(r#"{{"content":null,{REASONING},"tool_calls":[{first}]}}"#)
            };
            Answer::json(&format!(
                r#"{{"choices":[{{"message":{message},"finish_reason":"tool_calls"}}],"usage":{{"prompt_tokens":9,"completion_tokens":3}}}}"#
            ))
        });
        let place = Place::on_disk();
        let action = json!({ "action_name": "look", "kind": "command", "program": "echo", "args": ["seen"],
            "description": "Looks.", "idempotent": true });
        place.json(
            "loop.json",
            &json!({ "type": "loop", "name": "test", "actions": [action], "properties": { "mode": "react",
                "objective": "x", "dialect": "tool_calls", "tools": [{ "type": "action", "name": "look" }] } }),
        );
        place.json("loopctl.json", &json!({ "allow": { "commands": ["echo"] } }));
        Self { place, server }
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        let mut command = self.place.command(args);
        command.env("OPENAI_BASE_URL", self.server.url());
        common::killed(command, fail)
    }

    fn run(&self, fail: &str) -> Ran {
        self.call(&["run", "loop.json", "--run-id", "r", "--model", "m", "--output", "json"], fail)
    }

    fn resume(&self) -> Ran {
        self.call(&["resume", "r", "--output", "json"], "")
    }

    /// The requests that followed the first reply.
    fn second_requests(&self) -> Vec<String> {
        let requests = self.server.requests().into_iter().map(|request| request.text());
        requests.filter(|text| text.contains("tool_call_id")).collect()
    }
}

#[test]
fn after_a_kill_at_any_boundary_the_provider_gets_the_same_bytes_of_reasoning() {
    let whole = Thinking::new();
    let ran = whole.run("");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let expected = timeless(ran.json());
    let [sent] = &whole.second_requests()[..] else { panic!("one second request") };
    assert!(sent.contains(REASONING) && sent.contains(r#""thought_signature":"AbC=""#), "{sent}");
    let mut again = 0;
    kill_everywhere(|_, at| {
        let thinking = Thinking::new();
        if thinking.run(at).code != -9 {
            return false;
        }
        // A run of which nothing is durable can't be resumed: it is started.
        let ran = if events_of(&thinking.place).is_empty() { thinking.run("") } else { thinking.resume() };
        assert_eq!((ran.code, timeless(ran.json())), (0, expected.clone()), "{at}: {ran:#?}");
        let requests = thinking.second_requests();
        assert!(!requests.is_empty() && requests.iter().all(|request| request == sent), "{at}: {requests:#?}");
        again += usize::from(requests.len() > 1);
        true
    });
    assert!(again > 0, "no kill was behind a second request");
}

#[test]
fn the_trace_shows_what_is_sent_back_only_when_it_is_asked_for() {
    let thinking = Thinking::new();
    assert_eq!(thinking.run("").code, 0);
    let trace = |more: &[&str]| {
        let mut args = vec!["trace", "r", "--format", "json"];
        args.extend(more);
        thinking.call(&args, "")
    };
    let plain = trace(&[]);
    assert!(!plain.stdout.contains("gA==") && !plain.stdout.contains("AbC="), "{plain:#?}");
    assert_eq!(
        plain.json()["trace"][0]["thought"],
        "Look! \"\u{1f600}\" first/",
        "the thought of a reply that has none"
    );
    let shown = trace(&["--reasoning"]).json();
    let [first, second] = &shown["reasoning"].as_array().expect("a list")[..] else { panic!("{shown:#}") };
    assert_eq!((&first["iteration"], &first["origin"]), (&json!(1), &json!("openai 127.0.0.1 m")));
    assert!(first["sealed"].as_str().is_some_and(|sealed| sealed.contains(REASONING)), "{first:#}");
    assert_eq!(second["iteration"], 2);
    let text = thinking.call(&["trace", "r", "--reasoning"], "");
    assert_eq!(text.code, 2, "{text:#?}");
    assert!(text.stderr.contains("--format json"), "{text:#?}");
}
