//! `loopctl ready`: the health check of a container, by its exit code.

use std::net::SocketAddr;

use serde_json::json;

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete};
use crate::serve::client::{Serving, place, scripted};

/// The exit code of the command for a server, its stdout and its stderr.
fn asked(place: &Place, server: SocketAddr) -> (i32, String, String) {
    let called = place.call(&["ready", &server.to_string()]);
    (called.code, called.stdout, called.stderr)
}

#[test]
fn a_server_is_ready_until_something_is_missing_that_its_loops_need() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    scripted(&place, &[complete(json!("ok"))], json!({ "orgconfig": { "key": "file:key.txt" } }));
    let mut document = crate::common::document(&json!({}));
    document["actions"][0]["headers"] = json!({ "X-Key": "orgconfig:key" });
    place.json("loop.json", &document);
    place.file("key.txt", "a-secret-of-somebody");
    let server = Serving::start(&place, &[]);
    // That of a server in a container, which is asked on its own machine.
    let listened = SocketAddr::new([0, 0, 0, 0].into(), server.connect().peer_addr().unwrap().port());
    assert_eq!(asked(&place, listened), (0, "ready\n".to_owned(), String::new()));
    std::fs::remove_file(place.path().join("key.txt")).unwrap();
    assert_eq!(asked(&place, listened), (1, String::new(), "not ready: its loops lack key\n".to_owned()));
}

#[test]
fn nobody_and_another_server_are_not_ready() {
    let place = Place::new();
    // No server of any test has this port: it is none that a system chooses.
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let (code, stdout, stderr) = asked(&place, nobody);
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    assert!(stderr.starts_with(&format!("not ready: no server answers at {nobody}: ")), "{stderr}");
    let ready = json!({ "status": "ready" });
    let long = format!(r#"{{"status": "ready", "x": "{}"}}"#, "x".repeat(1 << 20));
    let answers = vec![
        Answer::json(&json!({ "status": "ok" })),
        Answer::json(&ready).status(500),
        Answer::json(&json!({ "status": "missing", "missing": ["\u{1b}[2J", 1] })).status(503),
        Answer::json(&json!({ "status": "draining" })).status(503),
        Answer::json(&json!({ "status": "store" })).status(503),
        Answer::json(&long),
        Answer::json("ready"),
        Answer::json(&ready),
    ];
    let server = Server::new(answers);
    let shown: Vec<String> = (0..7)
        .map(|_| {
            let (code, stdout, stderr) = asked(&place, server.address());
            assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
            stderr.trim_end().strip_prefix("not ready: ").unwrap().to_owned()
        })
        .collect();
    let other = |status: u16| format!("it answers {status} to /readyz, as no server of loopctl does");
    let wanted = [
        other(200),
        other(500),
        "its loops lack \\u{1B}[2J".to_owned(),
        "it stops".to_owned(),
        "its store can't be read".to_owned(),
        other(200),
        other(200),
    ];
    assert_eq!(shown, wanted);
    assert_eq!(asked(&place, server.address()), (0, "ready\n".to_owned(), String::new()));
}
