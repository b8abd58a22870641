//! A server requires what its loops need of the environment when it starts, and says when it is not there.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;

use loopctl::journal::memory::MemoryJournal;
use loopctl::serve::route;
use serde_json::json;

use crate::client::{Serving, parse, place, read_until_closed, scripted, served};
use crate::common::{Place, complete, with};

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
    let router = route::router(&served(&place, Arc::new(MemoryJournal::new())));
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
