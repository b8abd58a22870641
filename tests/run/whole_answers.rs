//! What a step reads of a server or a model is whole, and is what it says: charsets, answers that were cut off, JSON in a fence,
//! and who refused a connection.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, with};

/// A workflow whose only action is asked for at `server`, and whose answer is `output`.
fn place(action: Value, project: Value, output: Value) -> Place {
    let place = Place::new();
    place.json("loopctl.json", &with(json!({ "allow": { "private_addresses": true } }), project));
    place.json("actions/all.json", &json!([with(json!({ "action_name": "get", "description": "Gets." }), action)]));
    let steps = json!([{ "type": "get", "outputKey": "a", "properties": {} }]);
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": steps, "output": output } }));
    place
}

fn run(place: &Place) -> (Ran, Value) {
    let ran = place.call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
    let result = ran.json();
    (ran, result)
}

fn answer(place: &Place) -> Value {
    let (ran, result) = run(place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    result["result"]["answer"].clone()
}

fn why(place: &Place) -> String {
    let (ran, result) = run(place);
    assert_eq!(ran.code, 1, "{ran:#?}");
    result["error"]["message"].as_str().unwrap_or_else(|| panic!("{result:#}")).to_owned()
}

fn http(url: &str) -> Value {
    json!({ "kind": "http", "url": url, "http_method": "GET" })
}

#[test]
fn an_answer_is_read_in_its_charset_or_refused_with_its_name() {
    let server = Server::with(|_, request| match request.path.as_str() {
        "/latin" => Answer::new("text/plain; charset=iso-8859-1", b"Z\xfcrich".to_vec()),
        "/json" => Answer::new("application/json; charset=windows-1252", b"{\"price\": \"\x80 5\"}".to_vec()),
        "/wide" => Answer::new("text/plain; charset=utf-16le", b"Z\0\xfc\0".to_vec()),
        "/utf" => Answer::new("text/plain; charset=utf-8", "Z\u{fc}rich"),
        _ => Answer::new("text/plain; charset=Shift_JIS", b"\x83\x65\x83".to_vec()),
    });
    let at = |path: &str| place(http(&format!("{}/{path}", server.url())), json!({}), json!("@a"));
    for (path, expected) in [
        ("latin", json!("Z\u{fc}rich")),
        ("json", json!({ "price": "\u{20ac} 5" })),
        ("wide", json!("Z\u{fc}")),
        ("utf", json!("Z\u{fc}rich")),
    ] {
        assert_eq!(answer(&at(path)), expected, "{path}");
    }
    let why = why(&at("japanese"));
    assert!(why.contains("the charset shift_jis; utf-8, iso-8859-1, windows-1252 and utf-16 are read"), "{why}");
}

#[test]
fn a_refused_connection_says_whose_it_was() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let why = why(&place(http(&format!("http://{free}/x?key=1")), json!({}), json!("@a")));
    assert!(why.contains(&format!("connection refused by {free}")) && !why.contains("key=1"), "{why}");
}

/// A workflow that asks a model, which says this.
fn asking(text: &str, finish: &str, output: Value) -> (Server, Place) {
    let reply = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m-1",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": finish }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18 } });
    let server = Server::with(move |_, _| Answer::json(&reply));
    let models = json!({ "model": "m", "models": { "m": { "provider": "openai", "base_url": format!("{}/v1", server.url()) } } });
    let action = json!({ "kind": "llm", "template": "Rate it as JSON.", "max_tokens": 77 });
    let place = place(action, models, output);
    (server, place)
}

#[test]
fn an_answer_of_a_model_that_was_cut_off_is_a_failed_step() {
    let (_server, place) = asking("{\"grade\": 2", "length", json!("@a"));
    let why = why(&place);
    assert!(why.contains("cut off after 77 tokens: raise `max_tokens`"), "{why}");
    let (_server, place) = asking("whole", "stop", json!("@a"));
    assert_eq!(answer(&place), "whole");
}

#[test]
fn a_path_into_the_answer_of_a_model_reads_the_json_in_its_fence() {
    for (text, grade) in [
        ("```json\n{\"grade\": 2}\n```", json!(2)),
        ("Here it is:\n\n```\n{\"grade\":\n 2}\n```\nIs that all?", json!(2)),
        ("{\"grade\": 2}", json!(2)),
        ("It is 2.", Value::Null),
        ("```json\n{\"grade\": 2}\n```\nor\n```json\n{\"grade\": 3}\n```", Value::Null),
        ("```sh\n{\"grade\": 2}\n```", Value::Null),
    ] {
        let (_server, place) = asking(text, "stop", json!({ "grade": "@a.grade", "all": "@a", "text": "{{a}}" }));
        assert_eq!(answer(&place), json!({ "grade": grade, "all": text, "text": text }), "{text}");
    }
}

#[test]
fn a_fence_is_read_by_filters_and_gives_the_items_of_a_loop() {
    let (_server, place) = asking("Two:\n```json\n[{\"id\": 1}, {\"id\": 2}]\n```", "stop", json!("@ids"));
    let each = json!({ "type": "loop", "filter": { "condition": { "equal": ["@a.1.id", 2] } }, "properties": { "mode": "foreach",
        "items_path": "@a", "item_variable_name": "one", "collect_results": true, "collect": "@one.id", "result_key": "ids",
        "actions_to_execute": [{ "type": "matcher", "properties": { "left": [], "right": [], "matchOn": ["id"] } }] } });
    let steps = json!([{ "type": "get", "outputKey": "a", "properties": {} }, each]);
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": steps, "output": "@ids" } }));
    let ids = answer(&place);
    assert_eq!(ids.as_array().unwrap().iter().map(|item| item["output"].clone()).collect::<Vec<_>>(), [1, 2]);
}
