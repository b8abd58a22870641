//! What a project says of a server's tools: a run keeps what it began with, and nobody lays an approval aside.

use serde_json::{Value, json};

use super::{looped, notes, pin, project, read, relocked};
use crate::common::{Place, Ran, complete, observed, think};

const RESUME: [&str; 6] = ["resume", "r", "--script", "script.json", "--output", "json"];

/// Starts the loop of a place, or another document, with one call of `notes.read`.
fn start(place: &Place, document: &str) -> Ran {
    let replies = [think("notes.read", json!({ "path": "a" })), complete(json!("ok"))];
    place.json("script.json", &json!({ "replies": replies }));
    place.call(&["run", document, "--script", "script.json", "--run-id", "r", "--output", "json"])
}

/// A project whose approval of `read` is in the project file.
fn approved() -> Place {
    let place = notes("legacy");
    project(&place, "legacy", json!({ "tools": { "read": { "requires_approval": true } } }));
    pin(&place);
    looped(&place, &["read"], json!({}));
    place
}

fn traced(place: &Place) -> String {
    let shown = place.call(&["trace", "r"]);
    assert_eq!(shown.code, 0, "{shown:#?}");
    shown.stdout
}

#[test]
fn a_run_keeps_the_settings_that_it_began_with() {
    let place = approved();
    assert_eq!(start(&place, "loop.json").code, 3);
    let before = traced(&place);
    assert!(before.contains("notes.read"), "{before}");
    let without_server = json!({ "allow": { "commands": ["sh"] } });
    for more in [
        Some(json!({ "tools": { "read": { "idempotent": true } } })),
        Some(json!({})),
        Some(json!({ "trust_annotations": true, "timeout_ms": 5 })),
        Some(json!({ "tools": { "read": { "name": "look" } } })),
        Some(json!({ "tools": { "read": { "requires_approval": { "equal": ["@input.path", "b"] } } } })),
        None,
    ] {
        match &more {
            Some(more) => project(&place, "legacy", more.clone()),
            None => drop(place.json("loopctl.json", &without_server)),
        }
        // The project of today decides nothing: it is asked which text counts.
        assert_eq!(traced(&place), before, "{more:?}");
        let resumed = place.call(&RESUME);
        assert_eq!(resumed.code, 2, "{more:?}: {resumed:#?}");
        let is_said = resumed.stderr.contains("MCP tool notes/read has changed since the run began");
        assert!(is_said || more.is_none(), "{more:?}: {resumed:#?}");
        assert_eq!(read(&place, "calls.txt"), "", "{more:?}");
    }
    // What was asked is answered under what it was asked by.
    project(&place, "legacy", json!({}));
    let resumed = place.call(&[&RESUME[..], &["--approve", "--recorded-document"]].concat());
    assert_eq!(resumed.json()["result"]["answer"], "ok", "{resumed:#?}");
    assert_eq!(read(&place, "calls.txt").lines().count(), 1);
    // A run is read when its server, its lock and its project are gone.
    let ended = traced(&place);
    place.json("loopctl.json", &without_server);
    assert_eq!(traced(&place), ended);
    for gone in ["mcp.lock.json", "loopctl.json"] {
        std::fs::remove_file(place.path().join(gone)).unwrap();
        assert_eq!(traced(&place), ended, "{gone}");
    }
}

#[test]
fn a_loop_declares_the_tools_whose_names_are_like_a_pattern() {
    let place = notes("legacy");
    pin(&place);
    looped(&place, &["re*", "read", "*ice"], json!({ "requires_approval": true }));
    let checked = place.call(&["check", "loop.json"]);
    assert_eq!(checked.code, 0, "{checked:#?}");
    // What the declaration says is said of each of them.
    assert_eq!(start(&place, "loop.json").code, 3);
    assert!(traced(&place).contains("notes.read"));
    let replies = [think("notes.twice", json!({})), think("notes.once", json!({})), complete(json!("ok"))];
    place.json("script.json", &json!({ "replies": replies }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "p", "--output", "json"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let ran = place.call(&["resume", "p", "--approve", "--script", "script.json", "--output", "json"]);
    let seen: Vec<String> = ran.json()["trace"].as_array().unwrap().iter().map(observed).collect();
    assert!(seen[0] == "one" && seen[1].contains("notes.once"), "{seen:?}");
    looped(&place, &["lists_*"], json!({}));
    let checked = place.call(&["check", "loop.json"]);
    let report = format!("{}{}", checked.stdout, checked.stderr);
    assert!(checked.code == 1 && report.contains("has a name like `lists_*`"), "{checked:#?}");
}

#[test]
fn a_run_is_read_without_a_tool_that_it_could_not_have() {
    let place = notes("legacy");
    pin(&place);
    let path = place.path().join("mcp.lock.json");
    let mut lock: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    lock["servers"]["notes"]["tools"]["errs"]["inputSchema"] = json!({ "type": "string" });
    std::fs::write(&path, lock.to_string()).unwrap();
    for tools in [&["read", "errs"][..], &["errs"]] {
        looped(&place, tools, json!({}));
        place.json("script.json", &json!({ "replies": [complete(json!("ok"))] }));
        let id = tools.len().to_string();
        let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", &id, "--output", "json"]);
        assert_eq!(ran.code, 0, "{tools:?}: {ran:#?}");
        let shown = place.call(&["trace", &id]);
        assert_eq!(shown.code, 0, "{tools:?}: {shown:#?}");
    }
}

#[test]
fn what_a_human_approves_is_not_called_once_it_reads_otherwise() {
    let place = approved();
    assert_eq!(start(&place, "loop.json").code, 3);
    relocked(&place, "reworded");
    project(&place, "reworded", json!({ "tools": { "read": { "requires_approval": true } } }));
    let resumed = place.call(&[&RESUME[..], &["--approve"]].concat());
    assert_eq!(resumed.code, 0, "{resumed:#?}");
    let said = traced(&place);
    assert!(said.contains("changed since it was pinned: text"), "{said}");
    assert_eq!(read(&place, "calls.txt"), "");
}

#[test]
fn a_request_adds_to_the_approvals_of_the_project_and_lays_none_aside() {
    let place = approved();
    let tool = json!({ "type": "mcp", "server": "notes", "tools": ["read"], "requires_approval": false });
    place.json("request.json", &json!({ "objective": "Read.", "tools": [tool] }));
    let asked = start(&place, "request.json");
    assert_eq!(asked.code, 3, "{asked:#?}");
    assert_eq!(read(&place, "calls.txt"), "");
    // The twin: a loop of the project says so.
    looped(&place, &["read"], json!({ "requires_approval": false }));
    assert_eq!(observed(&place.calls(&[think("notes.read", json!({ "path": "a" }))])[0]), "a note");
}

#[test]
fn a_secret_that_a_server_repeats_is_neither_pinned_nor_shown() {
    const TOKEN: &str = "sk-7f3a9c21d4e8b605";
    let settings = |how: &str| {
        json!({ "orgconfig": { "tok": "file:token.txt" }, "allow": { "commands": ["sh"] }, "mcp": { "notes": {
            "command": "sh", "args": ["server.sh", how], "env": { "TOKEN": "orgconfig:tok" } } } })
    };
    let place = notes("legacy");
    place.file("token.txt", TOKEN);
    for (how, code, said) in [("repeats", 1, "the tool read"), ("chatters", 0, "[secret tok]")] {
        place.json("loopctl.json", &settings(how));
        let pinned = place.call(&["mcp", "pin", "--yes"]);
        assert_eq!((pinned.code, pinned.stderr.contains(said)), (code, true), "{how}: {pinned:#?}");
        let all = format!("{}{}{}", pinned.stdout, pinned.stderr, read(&place, "mcp.lock.json"));
        assert!(!all.contains(TOKEN), "{how}: {all}");
        assert_eq!(place.path().join("mcp.lock.json").exists(), code == 0, "{how}");
    }
}
