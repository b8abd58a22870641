//! An earlier run over HTTP: whose it may be, and what the status says of it.

use serde_json::{Value, json};

use crate::common::{complete, think};
use crate::serve::client::{Reply, Serving, place, scripted};

#[test]
fn the_status_and_the_result_name_the_earlier_run() {
    let kept = think("__store_memory__", json!({ "key": "order", "value": 7 }));
    let place = place(json!({}), &[kept, complete(json!("the cable"))]);
    let server = Serving::start(&place, &[]);
    let first = server.execute("", json!({ "loop": "test" })).json();
    let earlier = first["agent_run_id"].as_str().unwrap();
    assert!(first.get("previous_run_id").is_none());
    for body in [
        json!({ "loop": "test", "previous_run_id": earlier }),
        json!({ "objective": "Go on.", "tools": [], "previous_run_id": earlier }),
    ] {
        let reply = server.execute("", body);
        let run = reply.json();
        assert_eq!((reply.status, &run["previous_run_id"]), (200, &json!(earlier)), "{reply:?}");
        assert_eq!(run["result"]["previous_run_id"], earlier);
        let id = run["agent_run_id"].as_str().unwrap();
        assert_eq!(server.get(&format!("/agents/{id}/status")).json()["previous_run_id"], earlier);
    }
}

#[test]
fn one_that_has_not_ended_is_a_409_and_begins_nothing() {
    let place = place(json!({}), &[think("__pause_for_human__", json!({ "question": "Go on?" }))]);
    let server = Serving::start(&place, &[]);
    let waits = server.execute("", json!({ "loop": "test" })).json()["agent_run_id"].clone();
    let reply = server.execute("", json!({ "loop": "test", "previous_run_id": waits }));
    assert_eq!((reply.status, reply.code()), (409, "refused".to_owned()), "{reply:?}");
    assert!(reply.json()["detail"].as_str().unwrap().contains("has not ended (paused)"), "{reply:?}");
    assert_eq!(server.get("/agents").json()["agents"].as_array().unwrap().len(), 1);
}

#[test]
fn another_organisations_run_is_reported_as_unknown() {
    let place = place(json!({}), &[]);
    let (mut tokens, mut entries) = (Vec::new(), Vec::<Value>::new());
    for org in ["acme", "other"] {
        let made = place.call(&["token", org, "--org", org, "--scope", "run", "--scope", "compose"]);
        assert_eq!(made.code, 0, "{made:?}");
        entries.push(serde_json::from_str(made.stderr.lines().nth(1).expect("an entry")).expect("JSON"));
        tokens.push(format!("Bearer {}", made.stdout.trim()));
    }
    scripted(&place, &[complete(json!("ok"))], json!({ "serve": { "tokens": entries } }));
    let server = Serving::start(&place, &[]);
    let start = |org: usize, body: &Value| -> Reply {
        let headers = [("authorization", tokens[org].as_str()), ("idempotency-key", "k")];
        let headers = if body.get("key").is_some() { &headers[..] } else { &headers[..1] };
        let mut body = body.clone();
        body.as_object_mut().unwrap().shift_remove("key");
        server.send("POST", "/agents/execute", headers, body.to_string().as_bytes())
    };
    let first = start(0, &json!({ "loop": "test" }));
    let earlier = first.json()["agent_run_id"].as_str().expect("a run").to_owned();
    for body in [
        |earlier: &str| json!({ "loop": "test", "previous_run_id": earlier }),
        |earlier: &str| json!({ "objective": "Go on.", "tools": [], "previous_run_id": earlier }),
    ] {
        let (foreign, unknown) = (start(1, &body(&earlier)), start(1, &body("agent-x")));
        assert_eq!((foreign.status, foreign.code()), (404, "no_previous_run".to_owned()), "{foreign:?}");
        let (foreign, unknown) = (foreign.json().to_string(), unknown.json().to_string());
        assert_eq!(foreign.replace(&earlier, "agent-x"), unknown);
        let own = start(0, &body(&earlier));
        assert_eq!((own.status, &own.json()["previous_run_id"]), (200, &json!(earlier)), "{own:?}");
    }
    // The same key with another earlier run is another body.
    let keyed = |earlier: Value| start(0, &json!({ "loop": "test", "previous_run_id": earlier, "key": true }));
    let (one, again) = (keyed(json!(earlier)), keyed(json!(earlier)));
    assert_eq!((one.status, one.json()), (200, again.json()), "{one:?}");
    let conflict = keyed(Value::Null);
    assert_eq!((conflict.status, conflict.code()), (409, "run_id_conflict".to_owned()), "{conflict:?}");
}
