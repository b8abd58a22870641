//! `Idempotency-Key`: one key and body, one run.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, look, think, web};
use crate::serve::client::{Reply, Serving, place, scripted};

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

/// A server of a folder with the loops `test` and `other` and the workflow `flow`, which look once.
fn folder(tools: &Server) -> (Place, Serving) {
    let place = Place::new();
    let act = web("act", &format!("{}/act", tools.url()), json!({}));
    place.json("actions/act.json", &json!([act]));
    let tool = json!({ "type": "action", "name": "act" });
    let properties = json!({ "mode": "react", "objective": "Do the task.", "tools": [tool] });
    for name in ["test", "other"] {
        place.json(
            &format!("loops/{name}.json"),
            &json!({ "type": "loop", "name": name, "properties": properties,
            "input": { "type": "object", "properties": { "x": { "type": "integer" }, "y": { "default": 7 } } } }),
        );
    }
    let steps = json!([{ "type": "act", "properties": {} }]);
    place.json("workflows/flow.json", &json!({ "name": "Flow It", "definition": { "actions": steps } }));
    let replies = [think("act", json!({})), complete(json!("x"))];
    scripted(&place, &replies, json!({}));
    let server = Serving::start(&place, &[]);
    (place, server)
}

fn started(server: &Serving, target: &str, key: &str, body: &Value) -> Reply {
    server.send("POST", target, &[("idempotency-key", key)], body.to_string().as_bytes())
}

fn id(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["agent_run_id"].as_str().expect("an id").to_owned()
}

/// Writes a file of the place anew: what it says, otherwise laid out and with another description.
fn deploy(place: &Place, file: &str, change: impl Fn(&mut Value)) {
    let text = std::fs::read(place.path().join(file)).expect("it is there");
    let mut value: Value = serde_json::from_slice(&text).expect("JSON");
    change(&mut value);
    place.file(file, serde_json::to_string_pretty(&value).expect("JSON"));
}

#[test]
fn the_same_request_is_the_same_run_whatever_the_files_say_by_now() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let (place, server) = folder(&tools);
    let requests = [
        ("/agents/execute", "k1", json!({ "loop": "test", "input": { "x": 1 } })),
        ("/agents/execute", "k2", json!({ "loop": "test" })),
        ("/agents/execute", "k3", json!({ "loop": "test", "session": "s", "timeout_ms": 60_000 })),
        ("/workflows/Flow%20It/execute", "k4", json!({ "input": { "n": [1, 2] } })),
        ("/agents/execute", "k5", json!({ "objective": "Look.", "tools": [{ "type": "action", "name": "act" }] })),
    ];
    let ids: Vec<String> =
        requests.iter().map(|(target, key, body)| id(&started(&server, target, key, body))).collect();
    let rerun = format!("/agents/{}/rerun", ids[0]);
    let again = id(&started(&server, &rerun, "k6", &json!({})));
    for (id, name) in ids.iter().zip(["test-", "test-", "test-", "flow-it-", "agent-"]) {
        assert!(id.starts_with(name), "{id}");
    }
    assert!(again.starts_with("test-") && !ids.contains(&again), "{again}");
    drop(server);
    let calls = tools.requests().len();
    deploy(&place, "actions/act.json", |value| value[0]["description"] = json!("Looks again."));
    deploy(&place, "loops/test.json", |value| {
        value["properties"]["objective"] = json!("Do the other task.");
        value["input"]["properties"]["y"]["default"] = json!(8);
        value["input"]["properties"]["z"] = json!({ "type": "integer" });
        value["input"]["required"] = json!(["z"]);
    });
    deploy(&place, "workflows/flow.json", |value| value["description"] = json!("Flows."));
    let server = Serving::start(&place, &[]);
    for ((target, key, body), known) in requests.iter().zip(&ids) {
        assert_eq!(&id(&started(&server, target, key, body)), known, "{key}");
    }
    assert_eq!(id(&started(&server, &rerun, "k6", &json!({}))), again);
    assert_eq!(tools.requests().len(), calls, "nothing was called again");
    // Another request under a key is refused, and names the run.
    for (target, key, body, known) in [
        ("/agents/execute", "k1", json!({ "loop": "test", "input": { "x": 2 } }), &ids[0]),
        ("/agents/execute", "k1", json!({ "loop": "test" }), &ids[0]),
        ("/agents/execute", "k1", json!({ "loop": "other", "input": { "x": 1 } }), &ids[0]),
        ("/agents/execute", "k1", json!({ "loop": "test", "input": { "x": 1 }, "session": "s" }), &ids[0]),
        ("/agents/execute", "k1", json!({ "loop": "test", "input": { "x": 1 }, "timeout_ms": 5 }), &ids[0]),
        ("/workflows/Flow%20It/execute", "k1", json!({ "input": { "x": 1 } }), &ids[0]),
        ("/agents/execute", "k4", json!({ "loop": "test" }), &ids[3]),
        (
            "/agents/execute",
            "k5",
            json!({ "objective": "Look!", "tools": [{ "type": "action", "name": "act" }] }),
            &ids[4],
        ),
        ("/agents/execute", "k1", json!({ "objective": "Look.", "name": "test", "tools": [] }), &ids[0]),
        (&rerun, "k1", json!({}), &ids[0]),
        (&rerun, "k6", json!({ "document": "current" }), &again),
    ] {
        let reply = started(&server, target, key, &body);
        assert_eq!((reply.status, reply.code()), (409, "run_id_conflict".to_owned()), "{target} {key} {body}");
        assert_eq!(&reply.json()["agent_run_id"], known, "{target} {key} {body}");
    }
    assert_eq!(tools.requests().len(), calls);
}

#[test]
fn a_run_that_an_older_version_started_is_found_by_its_key() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let (place, server) = folder(&tools);
    let body = json!({ "loop": "test", "input": { "x": 1 } });
    let new = id(&started(&server, "/agents/execute", "k", &body));
    drop(server);
    let old = new.replacen("test-", "agent-", 1);
    {
        let store = rusqlite::Connection::open(place.path().join(".loopctl/runs.db")).expect("a store");
        // The id was of the key alone, and the identity of the documents too.
        let identity = "0123456789abcdef0123456789abcdef";
        let tables = "DROP INDEX runs_by_line; ALTER TABLE runs DROP COLUMN line; ALTER TABLE runs DROP COLUMN line_limit; \
            ALTER TABLE runs DROP COLUMN line_rule; ALTER TABLE runs DROP COLUMN place; DROP INDEX runs_by_awaited; ALTER TABLE runs DROP COLUMN awaits; ALTER TABLE runs DROP COLUMN tokens; ALTER TABLE runs DROP COLUMN cost_usd; ALTER TABLE runs DROP COLUMN error;
            ALTER TABLE runs DROP COLUMN question; ALTER TABLE runs DROP COLUMN search_text; ALTER TABLE drivers DROP COLUMN address; ALTER TABLE runs DROP COLUMN title;
            DROP INDEX runs_by_start_key; ALTER TABLE runs DROP COLUMN start_key; PRAGMA user_version = 11";
        store.execute_batch(tables).expect("they are those of the older version");
        store.execute("UPDATE runs SET run_id = ?1, identity = ?2", (&old, identity)).expect("it is written");
        let events: Vec<(i64, i64, String)> = store
            .prepare("SELECT rowid, seq, event FROM events")
            .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect())
            .expect("events");
        for (row, seq, event) in events {
            let event = event.replace(&new, &old);
            let bytes = old.bytes().chain([0]).chain(seq.to_le_bytes()).chain(event.bytes());
            let sum = bytes
                .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            let update = "UPDATE events SET event = ?1, sum = ?2 WHERE rowid = ?3";
            store.execute(update, (&event, sum.cast_signed(), row)).expect("it is written");
        }
    }
    deploy(&place, "actions/act.json", |value| value[0]["description"] = json!("Looks again."));
    let server = Serving::start(&place, &[]);
    assert_eq!(id(&started(&server, "/agents/execute", "k", &body)), old);
    for other in [json!({ "loop": "test" }), json!({ "loop": "other", "input": { "x": 1 } })] {
        let reply = started(&server, "/agents/execute", "k", &other);
        assert_eq!((reply.status, &reply.json()["agent_run_id"]), (409, &json!(old)), "{other}");
    }
    assert_eq!(tools.requests().len(), 1);
}

#[test]
fn of_different_requests_with_one_key_at_once_one_starts() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let (_place, server) = folder(&tools);
    let requests = [
        ("/agents/execute", json!({ "loop": "test", "input": { "x": 1 } })),
        ("/agents/execute", json!({ "loop": "other", "input": { "x": 1 } })),
        ("/workflows/Flow%20It/execute", json!({ "input": { "x": 1 } })),
        ("/agents/execute", json!({ "objective": "Look.", "tools": [{ "type": "action", "name": "act" }] })),
    ];
    for round in 0..5 {
        let key = format!("k{round}");
        let ask = |number: usize| {
            let (target, body) = &requests[number % requests.len()];
            (number % requests.len(), started(&server, target, &key, body))
        };
        let ask = &ask;
        let replies: Vec<(usize, Reply)> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..24).map(|number| scope.spawn(move || ask(number))).collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        let first = replies.iter().find(|(_, reply)| reply.status == 200).expect("one starts");
        let run = id(&first.1);
        for (number, reply) in &replies {
            let expected = if *number == first.0 { 200 } else { 409 };
            assert_eq!((reply.status, &reply.json()["agent_run_id"]), (expected, &json!(run)), "{number} {reply:?}");
        }
        assert_eq!(tools.requests().len(), round + 1, "one run looks");
    }
    let listed = server.get("/agents").json();
    assert_eq!(listed["agents"].as_array().map(Vec::len), Some(5), "{listed}");
}

#[test]
fn a_key_whose_loop_left_the_folder_is_still_that_of_its_run() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let (place, server) = folder(&tools);
    let (test, other) = (json!({ "loop": "test" }), json!({ "loop": "other" }));
    let run = id(&started(&server, "/agents/execute", "k", &test));
    drop(server);
    std::fs::remove_file(place.path().join("loops/test.json")).expect("it was there");
    let server = Serving::start(&place, &[]);
    assert_eq!(id(&started(&server, "/agents/execute", "k", &test)), run);
    let reply = started(&server, "/agents/execute", "k", &other);
    assert_eq!((reply.status, &reply.json()["agent_run_id"]), (409, &json!(run)), "{reply:?}");
    assert_eq!(tools.requests().len(), 1);
}

#[test]
fn a_request_is_its_values_and_an_absent_input_is_an_empty_one() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let (_place, server) = folder(&tools);
    let same = [
        ("/agents/execute", [r#"{"loop":"test"}"#, r#"{"loop":"test","input":{}}"#, r#"{"input":null,"loop":"test"}"#]),
        ("/workflows/Flow%20It/execute", [r#"{"input":{}}"#, "{}", r#"{"input":null}"#]),
        (
            "/agents/execute",
            [
                r#"{"objective":"Look.","tools":[{"type":"action","name":"act"}]}"#,
                r#"{ "tools": [{"name":"act","type":"action"}], "objective": "Look." }"#,
                r#"{"objective":"Look.","input":{},"tools":[{"type":"action","name":"act"}]}"#,
            ],
        ),
    ];
    for (number, (target, bodies)) in same.iter().enumerate() {
        let key = format!("k{number}");
        let ids = bodies.map(|body| id(&server.send("POST", target, &[("idempotency-key", &key)], body.as_bytes())));
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
    assert_eq!(tools.requests().len(), 3);
}

#[test]
fn a_key_has_letters_digits_signs_and_blanks() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let all: String = (b'!'..=b'~').map(char::from).collect();
    for key in [all.as_str(), "a b", "0"] {
        assert_eq!(started(&server, "/agents/execute", key, &json!({ "loop": "test" })).status, 200, "{key}");
    }
    for key in ["a\tb", "a\u{7f}b", "\u{1}", "a\u{e9}"] {
        let reply = started(&server, "/agents/execute", key, &json!({ "loop": "test" }));
        assert_eq!(reply.status, 400, "{key:?} {reply:?}");
    }
}
