//! A server that is killed in the middle of a call: what was done is there, and is not done again.

use serde_json::json;

use super::client::StdioClient;
use super::{calling, runs};
use crate::common::server::{Answer, Gate, Server};

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
