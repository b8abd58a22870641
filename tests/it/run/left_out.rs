//! Optional arguments that a call leaves out: what is sent then.

use serde_json::{Value, json};

use super::http_tool::anywhere;
use crate::common::server::{Answer, Server};
use crate::common::{Place, observed, think, web, with};

const BODY: &str =
    r#"{"id": "@id", "note": "@note", "deep": {"note": "@note", "kept": true}, "text": "{{id}}", "all": ["@id"]}"#;

/// An action that sends this, of an `id` and an optional `note`.
fn action(url: &str, more: Value) -> Value {
    let parameters = json!({ "type": "object", "required": ["id"], "additionalProperties": false,
        "properties": { "id": { "type": "integer" }, "note": { "type": ["string", "null"] } } });
    web("save", url, with(json!({ "http_method": "PUT", "parameters": parameters }), more))
}

/// What the server got of calls with these inputs, and the trace.
fn called(more: Value, inputs: &[Value]) -> (Server, Vec<Value>) {
    let server = Server::with(|_, _| Answer::json("{}"));
    let place = Place::new();
    place.actions(&[action(&format!("{}/save", server.url()), more)], &anywhere());
    let calls: Vec<Value> = inputs.iter().map(|input| think("save", input.clone())).collect();
    let trace = place.calls(&calls);
    (server, trace)
}

#[test]
fn a_member_that_is_an_argument_as_a_whole_is_left_out_with_it() {
    let body: Value = serde_json::from_str(BODY).expect("JSON");
    let inputs = [json!({ "id": 1 }), json!({ "id": 2, "note": "n" }), json!({ "id": 3, "note": null })];
    let (server, trace) = called(json!({ "body": body, "query": { "n": "@note", "i": "@id" } }), &inputs);
    assert!(trace.iter().all(|entry| entry["success"] == true), "{trace:#?}");
    let sent: Vec<(String, Value)> =
        server.requests().iter().map(|request| (request.path.clone(), request.json())).collect();
    let whole = |id: u32, note: Value| json!({ "id": id, "note": note, "deep": { "note": note, "kept": true }, "text": id.to_string(), "all": [id] });
    let without = json!({ "id": 1, "deep": { "kept": true }, "text": "1", "all": [1] });
    assert_eq!(sent[0], ("/save?i=1".to_owned(), without));
    assert_eq!(sent[1], ("/save?i=2&n=n".to_owned(), whole(2, json!("n"))));
    assert_eq!(sent[2], ("/save?i=3".to_owned(), whole(3, json!(null))), "null is a value");
}

#[test]
fn a_header_and_a_whole_body_are_left_out_with_their_argument() {
    let more = json!({ "headers": { "x-note": "@note" }, "body": "@note" });
    let (server, trace) = called(more, &[json!({ "id": 1 }), json!({ "id": 2, "note": "n" })]);
    assert!(trace.iter().all(|entry| entry["success"] == true), "{trace:#?}");
    let sent = server.requests();
    assert_eq!((sent[0].header("x-note"), sent[0].body.is_empty()), (None, true));
    assert_eq!((sent[1].header("x-note"), sent[1].json()), (Some("n"), json!("n")));
}

#[test]
fn an_argument_that_is_left_out_is_needed_everywhere_else() {
    for more in [
        json!({ "body": { "list": ["@note"] } }),
        json!({ "body": { "text": "a {{note}}" } }),
        json!({ "headers": { "x-note": "a @note, {{note}}" }, "body": {} }),
    ] {
        let (server, trace) = called(more.clone(), &[json!({ "id": 1 })]);
        assert!(observed(&trace[0]).contains("a value is missing"), "{more}: {:#}", trace[0]);
        assert_eq!(server.requests().len(), 0, "{more}");
    }
}

#[test]
fn check_warns_of_what_would_fail_and_of_nothing_else() {
    for (more, warned) in [
        (json!({ "body": { "note": "@note", "deep": [{ "note": "@note" }] }, "query": { "n": "@note" } }), 0),
        (json!({ "body": { "list": ["@note"] } }), 1),
        (json!({ "body": { "text": "a {{note}}" }, "query": { "n": "{{note}}" } }), 2),
        (json!({ "body": "@note", "headers": { "x-note": "@note" } }), 0),
        (json!({ "body": {}, "headers": { "x-note": "{{note}}" } }), 1),
    ] {
        let place = Place::new();
        place.actions(&[action("https://api.example.com/save", more.clone())], &json!({}));
        let said = place.call(&["check", "loop.json", "--format", "json"]).stdout;
        assert_eq!(said.matches("\"L061\"").count(), warned, "{more}: {said}");
    }
}
