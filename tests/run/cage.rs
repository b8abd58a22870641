//! The cage: what a model that was taken over can reach. The scripted model asks for whatever it
//! likes; what the loop does not declare is not there.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, observed, think, web};

/// Actions that are there, and that this loop does not declare; `ask` is the one that it does.
fn undeclared(server: &Server) -> Place {
    let place = Place::new();
    let url = format!("{}/called", server.url());
    place.actions(
        &[web("ask", &url, json!({}))],
        &json!({ "allow": { "private_addresses": true, "commands": ["touch"] } }),
    );
    let touch = json!({ "action_name": "touch_it", "kind": "command", "description": "Touches.", "program": "touch", "args": ["touched"] });
    let hidden = ["refund", "delete_all", "lookup.ticket", "admin/reset"].map(|name| web(name, &url, json!({})));
    place.json("actions/hidden.json", &json!(hidden));
    place.json("actions/touch.json", &touch);
    let inner = json!({ "mode": "react", "objective": "x", "tools": [{ "type": "action", "name": "refund" }] });
    place.json("loops/inner.json", &json!({ "type": "loop", "name": "inner", "properties": inner }));
    place
}

/// What a model that was taken over asks for.
const UNDECLARED: [&str; 46] = [
    "refund",
    "delete_all",
    "lookup.ticket",
    "admin/reset",
    "touch_it",
    "inner",
    "test",
    "Ask",
    "ASK",
    "ask ",
    " ask",
    "ask\n",
    "ask\u{0}",
    "ask\u{200b}",
    "\u{feff}ask",
    "a\u{430}sk",
    "\u{430}sk",
    "\u{ff41}sk",
    "ask\u{301}",
    "as\u{212a}",
    "__Complete__",
    "__COMPLETE__",
    "__complete",
    "complete__",
    "__complete__ ",
    "_complete_",
    "__pause_for_human",
    "__STORE_MEMORY__",
    "__run_workflow__",
    "__run_workflow",
    "actions/hidden.json",
    "../actions/hidden",
    "./ask",
    "ask/../refund",
    "/etc/passwd",
    "file:///etc/passwd",
    "{{ask}}",
    "{{input.tool}}",
    "@input.tool",
    "orgconfig:key",
    "${ask}",
    "ask; refund",
    "ask(refund)",
    "ask|refund",
    "*",
    "",
];

#[test]
fn nothing_runs_that_the_loop_does_not_declare() {
    assert!(UNDECLARED.len() >= 40);
    let server = Server::with(|_, _| Answer::json("{}"));
    let place = undeclared(&server);
    let calls: Vec<Value> = UNDECLARED.iter().map(|name| think(name, json!({}))).collect();
    // An unreadable reply thrice in a row would end the run: here each one is read.
    let trace = place.calls_with(&calls, &["--input", "tool=ask"], &[]);
    for (name, entry) in UNDECLARED.iter().zip(&trace) {
        assert_eq!(entry["success"], false, "{name:?}: {entry:#}");
        assert!(
            observed(entry).contains("nothing was called")
                || observed(entry).contains("Nothing was called")
                || observed(entry).contains("no workflow"),
            "{name:?}: {entry:#}"
        );
    }
    assert_eq!(server.connections(), 0);
    assert!(!place.path().join("touched").exists());
}

#[test]
fn what_the_loop_declares_runs() {
    let server = Server::with(|_, _| Answer::json("{}"));
    let place = undeclared(&server);
    place.calls(&[think("ask", json!({}))]);
    assert_eq!(server.requests().len(), 1);
    // And what is hidden above is found as soon as it is declared.
    let path = place.path().join("loop.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("JSON");
    for name in ["refund", "delete_all", "lookup.ticket", "admin/reset", "touch_it"] {
        document["properties"]["tools"].as_array_mut().expect("tools").push(json!({ "type": "action", "name": name }));
    }
    place.json("loop.json", &document);
    let names = ["refund", "delete_all", "lookup.ticket", "admin/reset", "touch_it"];
    place.calls(&names.map(|name| think(name, json!({}))));
    assert_eq!(server.requests().len(), 5);
    assert!(place.path().join("touched").exists());
}
