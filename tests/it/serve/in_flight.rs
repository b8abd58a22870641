//! A call that was under way when its run was cancelled or its server killed is uncertain wherever the run is shown.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::{Serving, place, scripted, until};

/// A folder whose loop's one call is held by the gate.
fn held() -> (Place, Server, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let replies = [think("act", json!({ "what": "x" })), complete(json!("ok"))];
    let place = place(json!({}), &replies);
    let mut document = crate::common::document(&json!({}));
    document["actions"][1]["url"] = json!(format!("{}/act", tools.url()));
    place.json("loop.json", &document);
    scripted(&place, &replies, json!({}));
    (place, tools, gate)
}

/// The entries of the run, from its trace and from its status, which are the same.
fn entries(server: &Serving, id: &str) -> (Value, Value) {
    let trace = server.get(&format!("/agents/{id}/trace")).json();
    let status = server.get(&format!("/agents/{id}/status?include_trace=true")).json();
    assert_eq!(trace["trace"], status["trace"]);
    (trace["trace"].clone(), trace["metadata"]["tool_calls_made"].clone())
}

#[test]
fn a_call_under_way_when_its_run_is_cancelled_is_uncertain_in_both_stores() {
    for store in ["memory", "sqlite:runs.db"] {
        let (place, tools, gate) = held();
        let server = Serving::start(&place, &["--store", store]);
        let run = server.execute("?async=true", json!({ "loop": "test" })).json();
        let id = run["agent_run_id"].as_str().unwrap();
        tools.wait_for(1);
        let (open, made) = entries(&server, id);
        assert_eq!((&open[0]["call_status"], &made), (&json!("under_way"), &json!(1)), "{store}: {open:#}");
        assert_eq!(server.send("DELETE", &format!("/agents/{id}"), &[], b"").status, 202);
        let events = server.events(id, &[]);
        gate.open();
        assert!(events.iter().all(|(_, event)| event["event"] != "observed"), "{store}: {events:#?}");
        let (closed, made) = entries(&server, id);
        assert_eq!((&closed[0]["call_status"], &made), (&json!("uncertain"), &json!(1)), "{store}: {closed:#}");
        assert_eq!(closed[0]["action_input"], json!({ "what": "x" }));
        assert!(closed[0]["called_at"].is_string(), "{closed:#}");
    }
}

#[test]
fn a_call_under_way_when_its_server_is_killed_is_uncertain() {
    let (place, tools, gate) = held();
    let server = Serving::start(&place, &[]);
    let run = server.execute("?async=true", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    tools.wait_for(1);
    drop(server);
    gate.open();
    let next = Serving::start(&place, &[]);
    until(&mut next.reader(id), "\"event\":\"paused\"");
    let (open, made) = entries(&next, id);
    assert_eq!((&open[0]["call_status"], &made), (&json!("uncertain"), &json!(1)), "{open:#}");
    assert_eq!(tools.requests().len(), 1);
}
