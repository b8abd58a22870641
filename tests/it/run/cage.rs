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

/// The names above, and twins of all that is there: by case, space, sign, script, and path.
fn undeclared_names() -> Vec<String> {
    let mut names: Vec<String> = UNDECLARED.iter().map(|name| (*name).to_owned()).collect();
    for name in
        ["ask", "refund", "delete_all", "touch_it", "inner", "__complete__", "__store_memory__", "__log_progress__"]
    {
        names.extend([
            name.to_uppercase(),
            format!("{name}."),
            format!("{name}()"),
            format!("{name}\u{200d}"),
            format!("{name}\u{feff}"),
            format!("{name}\u{202e}"),
            format!("{name}\u{fe0f}"),
            format!("{name}\t"),
            format!("\u{a0}{name}"),
            format!("tools.{name}"),
            format!("functions.{name}"),
            format!("inner/{name}"),
            format!("./{name}"),
            format!("actions/{name}.json"),
            format!("{name}%00"),
            format!("\"{name}\""),
            format!("@{name}"),
            format!("{{{{{name}}}}}"),
            format!("{name}@v2"),
            name.replace('e', "\u{435}").replace('a', "\u{430}") + "\u{301}",
            name.replace('_', "-") + "-",
            name.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c)).collect(),
        ]);
    }
    names.sort();
    names.dedup();
    names.retain(|name| {
        name != "ask"
            && !(name.starts_with("__")
                && name.ends_with("__")
                && name.is_ascii()
                && *name == name.to_lowercase()
                && name != "__run_workflow__")
    });
    names
}

#[test]
fn nothing_runs_that_the_loop_does_not_declare() {
    let names = undeclared_names();
    assert!(names.len() >= 200, "{} names", names.len());
    let server = Server::with(|_, _| Answer::json("{}"));
    let place = undeclared(&server);
    let calls: Vec<Value> = names.iter().map(|name| think(name, json!({}))).collect();
    // An unreadable reply thrice in a row would end the run: here each one is read.
    let trace = place.calls_with(&calls, &["--input", "tool=ask"], &[]);
    for (name, entry) in names.iter().zip(&trace) {
        assert_eq!(entry["success"], false, "{name:?}: {entry:#}");
        // A twin of another script is not led to the real tool.
        assert!(name.is_ascii() || !observed(entry).contains("Did you mean"), "{name:?}: {entry:#}");
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

/// A loop that calls another one, whose action has this address and this header beside it.
fn keyed(server: &Server, url: &str, header: &str) -> Place {
    let place = Place::new();
    place.file("key", "hunter22-and-more");
    let url = url.replace("SERVER", &server.address().to_string());
    let action = web("ask", &url, json!({ "headers": { "Authorization": header } }));
    let inner = json!({ "type": "loop", "name": "inner", "actions": [action], "input": { "type": "object" },
        "properties": { "mode": "react", "objective": "x", "tools": [{ "type": "action", "name": "ask" }] } });
    place.json("loops/inner.json", &inner);
    place.actions(&[], &json!({ "allow": { "private_addresses": true }, "orgconfig": { "k": "file:key" } }));
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "properties": { "mode": "react", "objective": "x",
            "tools": [{ "type": "loop", "name": "inner" }] } }),
    );
    place
}

#[test]
fn no_input_of_a_called_loop_names_the_host_of_a_secret_or_stands_beside_one() {
    let server = Server::with(|_, _| Answer::json("{}"));
    for (url, header, code) in [
        ("http://{{input.host}}/x", "orgconfig:k", "L102"),
        ("http://{{#if input.a}}SERVER/{{/if}}{{input.host}}/x", "orgconfig:k", "L102"),
        ("http://SERVER/x", "{{input.x}} orgconfig:k", "L131"),
    ] {
        let message = keyed(&server, url, header).refused();
        assert!(message.contains(code), "{url} {header}: {message}");
    }
    assert_eq!(server.connections(), 0);
    // The twin: written out, it is sent, and the server has the secret.
    let place = keyed(&server, "http://SERVER/{{input.x}}", "orgconfig:k");
    let call = think("inner", json!({ "x": "a" }));
    let end = crate::common::complete(json!("ok"));
    let loops = json!({ "inner": [think("ask", json!({})), end] });
    place.json("script.json", &json!({ "replies": [call, end], "loops": loops }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--store", "memory"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(server.requests()[0].header("authorization"), Some("hunter22-and-more"));
}
