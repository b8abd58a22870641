//! A server that is killed in the middle of a call: what was done is there, and is not done again.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use super::client::StdioClient;
use super::http::{send, until};
use super::{calling, modern, offer, project, runs};
use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think, web, with};
use crate::serve::client::Serving;

#[test]
fn a_call_that_is_sent_again_after_a_kill_is_the_same_run_and_no_effect_happens_twice() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |number, _| match number {
        0 => Answer::json("{}").behind(&held),
        _ => Answer::json("{}"),
    });
    let place = calling(&server, false);
    let call = json!({ "name": "slow", "_meta": { "loopctl/idempotency-key": "k" } });
    let mut client = StdioClient::open(&place, &[]);
    client.send("1", "tools/call", call.clone());
    server.wait_for(1);
    client.kill();
    gate.open();
    // Nobody knows whether the call of its tool has happened: a human says so, and no client.
    let mut client = StdioClient::open(&place, &[]);
    let given = client.ask("2", "tools/call", call.clone())["result"]["structuredContent"].clone();
    assert_eq!((&given["status"], &given["termination"]), (&json!("paused"), &json!("uncertain")), "{given}");
    let run_id = given["run_id"].as_str().unwrap().to_owned();
    let decided = place.call(&["resume", &run_id, "--happened", "{}", "--output", "json"]);
    assert_eq!(decided.json()["result"]["answer"], "looked", "{decided:#?}");
    let again = client.ask("3", "tools/call", call)["result"]["structuredContent"].clone();
    assert_eq!((&again["run_id"], &again["answer"]), (&json!(run_id), &json!("looked")), "{again}");
    client.end();
    assert_eq!((server.requests().len(), runs(&place).len()), (1, 1));
}

/// The parameters of a call with a key.
fn keyed() -> Value {
    let key = json!({ "loopctl/idempotency-key": "k" });
    json!({ "name": "slow", "_meta": with(modern(json!({}))["_meta"].clone(), key) })
}

/// Sends a call over HTTP, and kills the server when this number of requests has come to the tools.
fn killed_over_http(place: &Place, tools: &Server, requests: usize) {
    let server = Serving::start(place, &[]);
    let params = keyed();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: slow\r\ncontent-length: {}\r\n\r\n{message}",
        server.address,
        message.len()
    );
    let mut lost = server.connect();
    lost.write_all(head.as_bytes()).unwrap();
    tools.wait_for(requests);
    // It is killed as by `kill -9`, with its client still there.
    drop(server);
    let mut rest = Vec::new();
    assert!(lost.read_to_end(&mut rest).is_err() || !String::from_utf8_lossy(&rest).contains("structuredContent"));
}

#[test]
fn a_client_whose_server_was_killed_has_the_result_by_its_retry_and_no_call_was_made_twice() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |number, _| match number {
        1 => Answer::json("{}").behind(&held),
        _ => Answer::json("{}"),
    });
    let place = Place::new();
    let pay = web("pay", &format!("{}/pay", tools.url()), json!({ "http_method": "POST" }));
    let read = web("read", &format!("{}/read", tools.url()), json!({}));
    let declared = ["pay", "read"].map(|name| json!({ "type": "action", "name": name }));
    let properties = json!({ "mode": "react", "model": "slow", "objective": "Do it.", "tools": declared });
    let replies = [think("pay", json!({})), think("read", json!({})), complete(json!("paid"))];
    offer(&place, "slow", &replies, json!({ "actions": [pay, read], "properties": properties }));
    project(&place, &["slow"]);
    // Killed while the second call is under way, which only reads.
    killed_over_http(&place, &tools, 2);
    gate.open();
    let server = Serving::start(&place, &[]);
    let given = send(&server, "", "tools/call", keyed()).json()["result"]["structuredContent"].clone();
    assert_eq!((&given["status"], &given["answer"]), (&json!("completed"), &json!("paid")), "{given}");
    let again = send(&server, "", "tools/call", keyed()).json()["result"]["structuredContent"].clone();
    assert_eq!((&again["run_id"], &again["answer"]), (&given["run_id"], &given["answer"]));
    let paths: Vec<String> = tools.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/pay", "/read", "/read"]);
    assert_eq!(runs(&place).len(), 1);
}

#[test]
fn a_client_whose_server_was_killed_in_a_call_that_may_not_be_repeated_reads_that_it_is_uncertain() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let place = calling(&tools, false);
    killed_over_http(&place, &tools, 1);
    gate.open();
    let server = Serving::start(&place, &[]);
    let given = send(&server, "", "tools/call", keyed()).json()["result"]["structuredContent"].clone();
    assert_eq!((&given["status"], &given["termination"]), (&json!("paused"), &json!("uncertain")), "{given}");
    let run_id = given["run_id"].as_str().unwrap().to_owned();
    let decided = server.post(&format!("/agents/{run_id}/resume"), &json!({ "happened": {} }));
    assert!(decided.status < 300, "{decided:?}");
    until(|| runs(&place)[0].1 == "completed");
    let again = send(&server, "", "tools/call", keyed()).json()["result"]["structuredContent"].clone();
    assert_eq!((&again["run_id"], &again["answer"]), (&json!(run_id), &json!("looked")), "{again}");
    assert_eq!((tools.requests().len(), runs(&place).len()), (1, 1));
}
