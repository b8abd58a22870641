//! Keys of models and secrets of tools: they expire, and are read again.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, answering, complete, look, with};

fn says(reply: Value) -> Answer {
    Answer::openai(&reply.to_string())
}

fn refuses(status: u16) -> Answer {
    Answer::json("{\"error\":{\"message\":\"token expired\"}}").status(status)
}

/// A place whose model `m` has its key in `MODEL_KEY`.
fn place(server: &Server, properties: &Value) -> Place {
    let retry = json!({ "retry": { "attempts": 3, "base_ms": 1, "max_ms": 1 } });
    let place = answering(&with(retry, properties.clone()), "{\"seen\":1}");
    let model = json!({ "provider": "openai", "base_url": server.url(), "api_key": "env:MODEL_KEY" });
    place.json("loopctl.json", &json!({ "allow": { "commands": ["echo"] }, "model": "m", "models": { "m": model } }));
    place
}

fn call(place: &Place, key: &str, args: &[&str]) -> Ran {
    place.call_with(&[args, &["--output", "json"]].concat(), &[("MODEL_KEY", key)])
}

#[test]
fn a_run_whose_key_expired_goes_on_where_it_was_once_the_key_is_good() {
    for (status, more) in [(401, json!({})), (402, json!({})), (403, json!({ "on_model_outage": "pause" }))] {
        let server = Server::with(move |number, request| {
            let is_new = request.header("authorization") == Some("Bearer the-second-key");
            match number {
                0 => says(look("a")),
                1 => says(look("b")),
                _ if is_new => says(complete(json!("done"))),
                _ => refuses(status),
            }
        });
        let place = place(&server, &more);
        let waits = more.get("on_model_outage").is_some();
        let failed = call(&place, "the-first-key", &["run", "loop.json", "--run-id", "r"]);
        let result = failed.json();
        assert_eq!(failed.code, if waits { 3 } else { 1 }, "{failed:#?}");
        assert_eq!((&result["termination"], server.requests().len()), (&json!("model_error"), 3), "{result:#}");
        if !waits {
            let error = &result["error"];
            assert_eq!((&error["code"], &error["retryable"]), (&json!("model_refused"), &json!(true)), "{result:#}");
        }
        // With the old key it fails as before, and nothing is lost.
        let again = call(&place, "the-first-key", &["retry", "r"]);
        assert_eq!(again.code, failed.code, "{again:#?}");
        let how = if waits { ["resume", "r"] } else { ["retry", "r"] };
        let done = call(&place, "the-second-key", &how);
        let result = done.json();
        assert_eq!((done.code, &result["result"]["answer"]), (0, &json!("done")), "{done:#?}");
        assert_eq!(result["metadata"]["tool_calls_made"], 2, "{result:#}");
        for ran in [&failed, &again, &done] {
            assert!(!format!("{ran:?}").contains("-key\""), "{ran:#?}");
        }
    }
}

#[test]
fn a_workflow_whose_step_lacks_a_good_key_goes_on_with_that_step() {
    let server = Server::with(|number, request| match request.header("authorization") {
        Some("Bearer the-second-key") => Answer::openai("second"),
        _ if number == 0 => Answer::openai("first"),
        _ => refuses(401),
    });
    let place = place(&server, &json!({}));
    let ask =
        |name: &str| json!({ "action_name": name, "kind": "llm", "description": "Asks.", "template": "Say {{n}}." });
    place.json("actions/ask.json", &json!([ask("one"), ask("two")]));
    let step = |name: &str| json!({ "type": name, "properties": { "n": 1 } });
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [step("one"), step("two")] } }));
    let failed = call(&place, "the-first-key", &["run", "loop.json", "--run-id", "r"]);
    let error = failed.json()["error"].clone();
    assert_eq!((failed.code, &error["retryable"]), (1, &json!(true)), "{failed:#?}");
    let done = call(&place, "the-second-key", &["retry", "r"]);
    assert_eq!(
        (done.code, &done.json()["result"]["answer"]),
        (0, &json!({ "one": "first", "two": "second" })),
        "{done:#?}"
    );
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_summary_that_only_lacks_a_good_key_is_written_once_the_key_is_good() {
    let history = json!({ "history": { "max_messages": 5, "keep_last": 1, "summarize": true } });
    let server = Server::reading(|_, request| {
        let messages = request.json()["messages"].clone();
        let text = messages.to_string();
        match request.header("authorization") {
            Some("Bearer the-second-key") if text.contains("Write the notes now") => Answer::openai("NOTES-OF-THE-RUN"),
            _ if text.contains("Write the notes now") => refuses(401),
            _ if text.contains("NOTES-OF-THE-RUN") => says(complete(json!("done"))),
            // Without the notes.
            _ if text.contains("are not shown any more") => says(complete(json!("lost"))),
            _ => says(look(&format!("place {}", messages.as_array().map_or(0, Vec::len)))),
        }
    });
    let place = place(&server, &history);
    let failed = call(&place, "the-first-key", &["run", "loop.json", "--run-id", "r"]);
    assert_eq!((failed.code, &failed.json()["error"]["retryable"]), (1, &json!(true)), "{failed:#?}");
    let done = call(&place, "the-second-key", &["retry", "r"]);
    assert_eq!((done.code, &done.json()["result"]["answer"]), (0, &json!("done")), "{done:#?}");
}
