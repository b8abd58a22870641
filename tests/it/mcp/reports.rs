//! What a server says while it works, and that its tools have changed, as events of the call.

use serde_json::{Value, json};

use super::steps::flow;
use super::{looped, notes, pin, project, relocked};
use crate::common::{Place, complete, think};

/// The events of a run with this name.
fn heard(place: &Place, document: &str, name: &str) -> Vec<Value> {
    let ran = place.call(&["run", document, "--script", "script.json", "--output", "ndjson"]);
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|event| event["event"] == name).collect()
}

#[test]
fn who_follows_a_run_hears_how_far_a_call_is() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["works"], json!({}));
    place.json("script.json", &json!({ "replies": [think("notes.works", json!({})), complete(json!("ok"))] }));
    let said = heard(&place, "loop.json", "mcp_progress");
    let pages: Vec<&Value> = said.iter().map(|event| &event["message"]).collect();
    assert_eq!(pages, [&json!("page 1"), &json!("page 2"), &json!("page 3")], "{said:#?}");
    assert_eq!(
        (&said[2]["call"]["iteration"], &said[2]["progress"], &said[2]["total"]),
        (&json!(1), &json!(3.0), &json!(3.0))
    );
    flow(&place, json!([{ "type": "notes.works", "id": "work" }]), json!("@works"));
    assert_eq!(heard(&place, "flow.json", "mcp_progress")[0]["at"], "work");
    // Where nobody listens, the server is asked for nothing.
    let ran = place.call(&["mcp", "call", "notes.works", "{}"]);
    assert!(ran.code == 0 && ran.stdout.contains("token none"), "{ran:#?}");
}

#[test]
fn who_follows_a_run_hears_that_a_tool_has_changed() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["read"], json!({}));
    place.json(
        "script.json",
        &json!({ "replies": [think("notes.read", json!({ "path": "a" })), complete(json!("ok"))] }),
    );
    assert!(heard(&place, "loop.json", "mcp_drift").is_empty());
    for (how, changes, is_called) in [("reworded", "text", true), ("changed", "input", false)] {
        relocked(&place, how);
        project(&place, how, json!({}));
        let said = heard(&place, "loop.json", "mcp_drift");
        assert_eq!((&said[0]["changes"], &said[0]["called"]), (&json!([changes]), &json!(is_called)), "{said:#?}");
    }
}
