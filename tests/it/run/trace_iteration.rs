//! `loopctl trace RUN --at ITERATION`: what the model was sent for a reply, what the run knew then, and what came of it.

use serde_json::{Value, json};

use crate::common::dialects::{DIALECTS, answers, calls};
use crate::common::server::Server;
use crate::common::{Place, Ran, complete, look};

fn role(message: &Value) -> &str {
    message["role"].as_str().expect("a role")
}

#[test]
fn each_iteration_shows_the_messages_that_the_model_was_really_sent() {
    for dialect in DIALECTS {
        let said = [
            calls("Look at a.", &[("look", json!({ "at": "a" }))]),
            calls("Look at b.", &[("look", json!({ "at": "b" }))]),
            answers("Done.", "seen"),
        ];
        let server = Server::reading(move |turn, request| said[turn].reply(dialect, request, turn));
        let place = Place::new();
        let mut document = crate::common::document(&json!({ "dialect": dialect, "model": "main" }));
        for action in document["actions"].as_array_mut().unwrap() {
            let (name, parameters) = (action["action_name"].clone(), action["parameters"].clone());
            *action = json!({ "action_name": name, "kind": "command", "program": "echo", "args": ["{\"id\": 7}"],
                "description": "Looks.", "parameters": parameters });
        }
        place.json("loop.json", &document);
        let model = json!({ "provider": "openai", "model": "gpt-4o-mini", "base_url": server.url() });
        place.json("loopctl.json", &json!({ "models": { "main": model }, "allow": { "commands": ["echo"] } }));
        let args = ["run", "loop.json", "--run-id", "r", "--output", "json"];
        let ran = place.call(&args);
        assert_eq!(ran.code, 0, "{dialect}: {ran:?}");
        let sent = server.requests();
        assert_eq!(sent.len(), 3, "{dialect}");
        for (index, request) in sent.iter().enumerate() {
            let at = (index + 1).to_string();
            let shown = place.call(&["trace", "r", "--at", &at, "--format", "json"]);
            assert_eq!(shown.code, 0, "{shown:?}");
            let (view, request) = (shown.json(), request.json());
            let (shown, sent) = (view["messages"].as_array().unwrap(), request["messages"].as_array().unwrap());
            assert_eq!(shown.len(), sent.len(), "{dialect} {at}: {view:#} {request:#}");
            for (shown, sent) in shown.iter().zip(sent) {
                assert_eq!(role(shown), role(sent), "{dialect} {at}");
                assert_eq!(shown["text"], *sent["content"].as_str().unwrap_or_default(), "{dialect} {at}");
                let ids = |calls: &Value| calls.as_array().map_or(0, Vec::len);
                assert_eq!(ids(&shown["calls"]), ids(&sent["tool_calls"]), "{dialect} {at}");
            }
            let entries = view["trace"].as_array().unwrap();
            assert!(!entries.is_empty() && entries.iter().all(|entry| entry["iteration"] == index + 1), "{view:#}");
        }
    }
}

#[test]
fn an_iteration_shows_the_memory_and_the_cost_at_its_time_without_secrets() {
    let place = Place::new();
    let tool = |name: &str| json!({ "type": "action", "name": name, "remember": { "colour": "/colour" } });
    place.looped(&json!({ "tools": [tool("look"), tool("act")] }));
    let seen = json!({ "password": "hunter-2-hunter" });
    place.json(
        "script.json",
        &json!({ "replies": [look("a"), look("b"), complete(json!("done"))],
                 "tools": { "look": [seen, { "colour": "blue" }] } }),
    );
    let (ran, _) = place.run(&["--run-id", "r"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let at = |at: &str| place.call(&["trace", "r", "--at", at, "--format", "json"]).json();
    assert_eq!((&at("2")["memory"], &at("3")["memory"]), (&json!({}), &json!({ "colour": "blue" })));
    let tokens = |view: &Value| view["tokens"].as_u64().unwrap();
    let used: Vec<u64> = ["1", "2", "3"].map(|number| tokens(&at(number))).to_vec();
    assert!(used[0] == 0 && used[0] < used[1] && used[1] < used[2], "{used:?}");
    let text = place.call(&["trace", "r", "--at", "2"]);
    assert_eq!(text.code, 0, "{text:?}");
    for of in ["Iteration 2 of r", "system", "Observation:", "\"password\":\"[hidden]\"", "what came of it", "blue"] {
        assert!(text.stdout.contains(of), "{of}: {}", text.stdout);
    }
    let all = [text.stdout, at("2").to_string(), at("3").to_string()].concat();
    assert!(!all.contains("hunter-2"), "{all}");
}

#[test]
fn what_is_no_iteration_of_the_run_is_refused_in_a_sentence() {
    let place = Place::new();
    place.looped(&json!({}));
    place.script(&[look("a"), complete(json!("done"))]);
    place.run(&["--run-id", "r"]);
    let refused = |at: &[&str]| {
        let Ran { code, stdout, stderr } = place.call(&[&["trace", "r"], at].concat());
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        stderr
    };
    assert!(refused(&["--at", "3"]).contains("it has 2 iterations"));
    assert!(refused(&["--at", "0"]).contains("it has 2 iterations"));
    assert!(refused(&["--at", "look"]).contains("\"look\" is no iteration"));
    assert!(refused(&["--at", "1", "--format", "html"]).contains("an iteration has no HTML page"));
}

#[test]
fn an_iteration_that_a_fork_copied_is_shown_as_it_was() {
    let place = Place::new();
    place.looped(&json!({}));
    place.script(&[look("a"), look("b"), complete(json!("done"))]);
    place.run(&["--run-id", "r"]);
    place.script(&[look("a"), complete(json!("other"))]);
    let forked =
        place.call(&["fork", "r", "--at", "2", "--run-id", "f", "--script", "script.json", "--output", "json"]);
    assert_eq!(forked.code, 0, "{forked:?}");
    let messages = |run: &str, at: &str| {
        let shown = place.call(&["trace", run, "--at", at, "--format", "json"]);
        assert_eq!(shown.code, 0, "{shown:?}");
        shown.json()["messages"].clone()
    };
    assert_eq!(messages("r", "1"), messages("f", "1"));
    assert_eq!(messages("r", "2"), messages("f", "2"));
}

#[test]
fn what_a_fork_copied_was_spent_once() {
    let place = Place::new();
    place.looped(&json!({}));
    let said = |reply: Value| json!({ "text": reply.to_string(), "usage": { "input": 100, "output": 20 } });
    place.script(&[said(look("a")), said(look("b")), said(complete(json!("done")))]);
    place.run(&["--run-id", "r"]);
    let counted = || {
        let report = place.call(&["stats", "--output", "json"]).json();
        let models = report["models"].as_array().unwrap().iter();
        let replies: u64 = models.clone().filter_map(|model| model["replies"].as_u64()).sum();
        let input: u64 = models.filter_map(|model| model["input_tokens"].as_u64()).sum();
        (report["total"]["tokens"].as_u64(), replies, input)
    };
    assert_eq!(counted(), (Some(360), 3, 300));
    place.script(&[said(look("a")), said(look("b")), said(complete(json!("other")))]);
    let forked =
        place.call(&["fork", "r", "--at", "3", "--run-id", "f", "--script", "script.json", "--output", "json"]);
    assert_eq!(forked.code, 0, "{forked:?}");
    // What it was given counts for its own limits.
    let usage = &forked.json()["usage"];
    assert_eq!(usage["input_tokens"], 300, "{forked:?}");
    assert_eq!(counted(), (Some(480), 4, 400));
}
