//! Calls whose request was sent and whose outcome is not known: who reads of the failure reads that they may have happened.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, observed, think, web, with};

const MAY: &str = "the call may have happened";

/// The observation of a call of an action with these properties, and the message of the step that it is in a workflow.
fn failures(url: &str, more: &Value) -> (String, String) {
    let place = Place::new();
    let action = with(web("pay", url, json!({ "http_method": "POST", "timeout_ms": 1_000 })), more.clone());
    let project = json!({ "allow": { "private_addresses": true } });
    place.actions(std::slice::from_ref(&action), &project);
    let trace = place.calls(&[think("pay", json!({}))]);
    let flow =
        json!({ "name": "flow", "definition": { "actions": [{ "type": "pay", "properties": {}, "outputKey": "a" }] } });
    place.json("flow.json", &flow);
    place.json("actions/pay.json", &action);
    let ran = place.call(&["run", "flow.json", "--output", "json", "--store", "memory"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    (observed(&trace[0]), ran.json()["error"]["message"].as_str().expect("a message").to_owned())
}

#[test]
fn a_call_that_timed_out_or_broke_may_have_happened_in_loops_and_steps() {
    let gate = Gate::default();
    let held = gate.clone();
    let silent = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let closed = Server::with(|_, _| Answer::closed());
    let cut = Server::with(|_, _| Answer::json("{\"paid\": true, \"by\": \"card\"}").cut());
    let zipped = Server::with(|_, _| Answer::json("{}").header("content-encoding", "gzip"));
    let gateway = Server::with(|_, _| Answer::json("{}").status(504));
    let moved = Server::with(|_, request| match request.path.as_str() {
        "/pay" => Answer::json("{}").status(303).header("location", "/paid"),
        _ => Answer::json("{}").status(500),
    });
    for (server, words) in [
        (&silent, "timed out after 1 s"),
        (&closed, "no valid http answer"),
        (&cut, "response cut off"),
        (&zipped, "compressed answer"),
        (&gateway, "http 504"),
        (&moved, "http 500"),
    ] {
        let (in_loop, in_step) = failures(&format!("{}/pay", server.url()), &json!({}));
        for message in [in_loop, in_step] {
            assert!(message.contains(words) && message.contains(MAY), "{words}: {message}");
        }
    }
    for harmless in [json!({ "idempotent": true }), json!({ "http_method": "GET" })] {
        for server in [&silent, &closed] {
            let (in_loop, in_step) = failures(&server.url(), &harmless);
            assert!(!in_loop.contains(MAY) && !in_step.contains(MAY), "{in_loop} {in_step}");
        }
    }
    gate.open();
}

#[test]
fn a_call_that_was_never_sent_or_was_refused_is_a_plain_failure() {
    let free = {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", port.local_addr().expect("its address"))
    };
    let refusing = Server::with(|_, _| Answer::json("{}").status(503));
    let wrong = Server::with(|_, _| Answer::json("{\"error\": \"no amount\"}").status(422));
    for (url, words) in [(free, "connection refused"), (refusing.url(), "http 503"), (wrong.url(), "http 422")] {
        let (in_loop, in_step) = failures(&url, &json!({}));
        for message in [in_loop, in_step] {
            assert!(message.contains(words) && !message.contains(MAY), "{words}: {message}");
        }
    }
}

#[test]
fn a_command_that_was_given_up_may_have_done_its_work() {
    let place = Place::new();
    let command = json!({ "action_name": "work", "kind": "command", "description": "Works.", "timeout_ms": 200,
        "program": "sleep", "args": ["30"] });
    place.actions(std::slice::from_ref(&command), &json!({ "allow": { "commands": ["sleep"] } }));
    let trace = place.calls(&[think("work", json!({}))]);
    assert!(observed(&trace[0]).contains("timed out after 200 ms") && observed(&trace[0]).contains(MAY), "{trace:#?}");
}
