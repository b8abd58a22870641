//! `Idempotency-Key`: one key and body, one run.

use serde_json::json;

use crate::client::{Serving, place, scripted};
use crate::common::server::{Answer, Server};
use crate::common::{complete, look};

#[test]
fn the_same_key_and_body_a_hundred_times_at_once_is_one_run() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let replies = [look("a"), complete(json!("once"))];
    let place = place(json!({}), &replies);
    let mut document = crate::common::document(&json!({}));
    document["actions"][0]["url"] = json!(format!("{}/{{{{at}}}}", tools.url()));
    place.json("loop.json", &document);
    scripted(&place, &replies, json!({}));
    let server = Serving::start(&place, &[]);
    let key = [("idempotency-key", "job 1")];
    let mut ids: Vec<String> = std::thread::scope(|scope| {
        let ask = || {
            let reply = server.send("POST", "/agents/execute", &key, br#"{"loop":"test","input":{"a":1,"b":2}}"#);
            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.json()["final_answer"], "once");
            reply.json()["agent_run_id"].as_str().unwrap().to_owned()
        };
        let asked: Vec<_> = (0..100).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(tools.requests().len(), 1);
    // The same input, written otherwise.
    let same = server.send("POST", "/agents/execute", &key, br#"{"input":{"b":2,"a":1},"loop":"test"}"#);
    assert_eq!(same.json()["agent_run_id"], ids[0]);
    for other in [
        r#"{"loop":"test","input":{"a":2,"b":2}}"#,
        r#"{"loop":"test"}"#,
        r#"{"loop":"test","input":{"a":1,"b":2},"session":"s"}"#,
    ] {
        let reply = server.send("POST", "/agents/execute", &key, other.as_bytes());
        assert_eq!((reply.status, reply.code()), (409, "run_id_conflict".to_owned()), "{other}");
    }
    let another = server.send("POST", "/agents/execute", &[("idempotency-key", "job 2")], br#"{"loop":"test"}"#);
    assert_ne!(another.json()["agent_run_id"], ids[0]);
    // Without a key each request is a run of its own.
    let one = server.execute("", json!({ "loop": "test" })).json();
    assert_ne!(one["agent_run_id"], server.execute("", json!({ "loop": "test" })).json()["agent_run_id"]);
    for wrong in ["", "\u{e9}", &"x".repeat(256)] {
        let reply = server.send("POST", "/agents/execute", &[("idempotency-key", wrong)], br#"{"loop":"test"}"#);
        assert_eq!(reply.code(), "bad_request", "{wrong:?}");
    }
}
