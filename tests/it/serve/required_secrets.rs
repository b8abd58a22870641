//! A server requires what its loops need of the environment when it starts, and says when it is not there.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;

use loopctl::journal::memory::MemoryJournal;
use loopctl::serve::{RouteGroup, route};
use serde_json::json;

use crate::common::{Place, complete, with};
use crate::serve::client::{Serving, parse, place, read_until_closed, scripted, served};

fn keyed() -> Place {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let mut document = crate::common::document(&json!({}));
    for (at, key) in ["first", "second"].iter().enumerate() {
        document["actions"][at]["headers"] = json!({ "X-Key": format!("orgconfig:{key}") });
    }
    place.json("loop.json", &document);
    let secrets = json!({ "orgconfig": { "first": "env:FIRST", "second": "file:second.txt" } });
    scripted(&place, &[complete(json!("ok"))], secrets);
    place
}

#[test]
fn a_server_without_the_secrets_of_its_loops_does_not_start_and_names_all_of_them() {
    let place = keyed();
    for store in ["memory", "sqlite:runs.db"] {
        let refused = place.call(&["serve", ".", "--listen", "127.0.0.1:0", "--store", store]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:#?}");
        assert!(refused.stderr.contains("FIRST") && refused.stderr.contains("second.txt"), "{refused:#?}");
    }
    place.file("second.txt", "a-second-secret");
    let server = Serving::start_with(&place, &[], &[("FIRST", "a-first-secret")]);
    assert_eq!(server.get("/readyz").json()["status"], "ready");
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
}

#[test]
fn an_agent_request_without_its_secrets_is_refused() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    scripted(&place, &[complete(json!("ok"))], json!({ "orgconfig": { "first": "env:FIRST" } }));
    let action = crate::common::document(&json!({}))["actions"][0].clone();
    let keyed = json!({ "action_name": "keyed", "headers": { "X-Key": "orgconfig:first" } });
    place.json("actions/keyed.json", &with(action, keyed));
    let server = Serving::start(&place, &[]);
    let request = json!({ "objective": "Look.", "tools": [{ "type": "action", "name": "keyed" }] });
    let refused = server.post("/agents/execute", &request);
    assert_eq!((refused.status, refused.code()), (422, "missing".to_owned()), "{refused:?}");
    assert!(refused.json()["detail"].as_str().is_some_and(|detail| detail.contains("FIRST")), "{refused:?}");
    assert!(server.get("/agents").json()["agents"].as_array().is_some_and(Vec::is_empty));
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_names_what_is_missing_and_never_a_value() {
    let place = keyed();
    place.file("second.txt", "a-second-secret");
    let router = route::router(&served(&place, Arc::new(MemoryJournal::new())), &RouteGroup::ALL);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let asked = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        parse(&read_until_closed(&mut stream)).unwrap()
    });
    let reply = asked.await.unwrap();
    serving.abort();
    assert_eq!(reply.status, 503);
    let body = reply.json();
    assert_eq!((&body["status"], &body["missing"]), (&json!("missing"), &json!(["first"])), "{body}");
}

/// A place whose model has this key, at a server that takes the key which `good` names.
fn asking(server: &crate::common::server::Server, key: &serde_json::Value) -> Place {
    let place = crate::common::answering(&json!({}), "{}");
    let model = json!({ "provider": "openai", "base_url": server.url(), "api_key": key });
    let project = json!({ "allow": { "commands": ["echo", "sh"] }, "model": "m", "models": { "m": model } });
    place.json("loopctl.json", &project);
    place
}

fn taking(key: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> crate::common::server::Server {
    use crate::common::server::Answer;
    crate::common::server::Server::with(move |number, request| match request.header("authorization") {
        Some(given) if given == format!("Bearer {}", key(number)) => Answer::openai(&complete(json!("ok")).to_string()),
        other => Answer::json(&json!({ "error": { "message": format!("no {other:?}") } })).status(401),
    })
}

#[test]
fn a_server_sends_the_key_that_its_file_has_now() {
    let models = taking(|number| if number == 0 { "the-first-key" } else { "the-other-key" });
    let place = asking(&models, &json!("file:key.txt"));
    place.file("key.txt", "the-first-key\n");
    let server = Serving::start(&place, &[]);
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
    place.file("key.txt", "the-other-key\n");
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
    assert_eq!(models.requests().len(), 2, "no request had the old key");
    std::fs::remove_file(place.path().join("key.txt")).unwrap();
    let body = server.get("/readyz").json();
    assert_eq!((&body["status"], &body["missing"]), (&json!("missing"), &json!(["m"])), "{body}");
}

#[test]
fn readiness_names_a_program_that_gives_no_key_and_many_runs_ask_it_once() {
    let models = taking(|_| "the-key-of-all");
    let place = asking(&models, &json!({ "command": ["sh", "key.sh"] }));
    place.file("key.sh", "echo the-key-of-none >&2; exit 1\n");
    let server = Serving::start(&place, &[]);
    let reply = server.get("/readyz");
    let body = reply.json();
    assert_eq!((reply.status, &body["missing"]), (503, &json!(["m"])), "{body}");
    assert!(!body.to_string().contains("the-key"), "{body}");
    drop(server);
    // Held by a pipe until all runs wait for it.
    place.file("key.sh", "echo started >> started.txt\nread line < gate.txt\necho the-key-of-all\n");
    assert!(std::process::Command::new("mkfifo").arg(place.path().join("gate.txt")).status().unwrap().success());
    let server = Serving::start(&place, &[]);
    let started: Vec<String> = (0..4)
        .map(|_| {
            let reply = server.post("/agents/execute?async=true", &json!({ "loop": "test" }));
            reply.json()["agent_run_id"].as_str().unwrap_or_else(|| panic!("{reply:?}")).to_owned()
        })
        .collect();
    // Opening waits until the program reads.
    std::fs::write(place.path().join("gate.txt"), "go\n").unwrap();
    for run_id in &started {
        assert_eq!(server.settled(run_id)["status"], "completed");
    }
    let count = std::fs::read_to_string(place.path().join("started.txt")).unwrap().lines().count();
    assert_eq!(count, 1);
    assert_eq!(server.get("/readyz").status, 200);
}
