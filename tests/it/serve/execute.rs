//! Starting loops: by name and by agent request, waiting or not, and what is refused.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{complete, document, look, think, with};
use crate::serve::client::{Serving, place, scripted};

fn ask() -> Value {
    think("__pause_for_human__", json!({ "question": "Which account?" }))
}

#[test]
fn a_loop_is_run_to_its_end_by_its_name() {
    let place = place(json!({ "result_key": "found" }), &[complete(json!({ "n": 1 }))]);
    let server = Serving::start(&place, &[]);
    let reply = server.execute("?include_trace=true", json!({ "loop": "test", "input": { "a": 1 } }));
    assert_eq!(reply.status, 200, "{reply:?}");
    let run = reply.json();
    let id = run["agent_run_id"].as_str().unwrap();
    assert_eq!(reply.header("location"), Some(format!("/agents/{id}/status").as_str()));
    assert_eq!((&run["status"], &run["final_answer"]), (&json!("completed"), &json!({ "n": 1 })));
    assert_eq!((&run["iterations"], &run["triggered_runs"]), (&json!(1), &json!([])));
    assert_eq!(run["objective"], "Find out what is wrong.");
    assert!(run["created_at"].is_string() && run["completed_at"].is_string() && run["confidence"].is_number());
    assert_eq!(run["result"]["result_key"], "found");
    assert_eq!(run["trace"][0]["action"], "__complete__");
    let seen = server.get(&format!("/agents/{id}/status"));
    assert_eq!(seen.json()["final_answer"], run["final_answer"]);
    assert!(seen.json().get("trace").is_none());
    let trace = server.get(&format!("/agents/{id}/trace")).json();
    assert_eq!((&trace["run_id"], &trace["trace"]), (&json!(id), &run["trace"]));
}

#[test]
fn a_run_that_is_not_waited_for_is_answered_by_its_id() {
    // The runs that are not waited for are under way until the gate opens.
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let under_way = place(json!({}), &[look("a"), complete(json!("ok"))]);
    let mut looking = document(&json!({}));
    looking["actions"][0]["url"] = json!(tools.url());
    looking["actions"][0]["parameters"] = json!({ "type": "object" });
    under_way.json("loop.json", &looking);
    let server = Serving::start(&under_way, &[]);
    for query in ["?async=true", "?wait_ms=0"] {
        let reply = server.execute(query, json!({ "loop": "test" }));
        let id = reply.json()["agent_run_id"].as_str().unwrap().to_owned();
        assert_eq!(reply.status, 202, "{reply:?}");
        assert_eq!(reply.header("location"), Some(format!("/agents/{id}/status").as_str()));
    }
    gate.open();
    let place = place(json!({}), &[ask(), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let reply = server.execute("?wait_ms=60000", json!({ "loop": "test" }));
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("paused")), "{reply:?}");
    assert_eq!(reply.json()["result"]["pause"]["question"], "Which account?");
}

#[test]
fn an_agent_request_is_run_with_the_actions_of_the_folder() {
    let place = place(json!({}), &[]);
    let registered = json!({ "action_name": "look_up", "kind": "http", "description": "Looks.",
        "url": "https://tools.example.com/x", "http_method": "GET" });
    place.json("actions/look.json", &registered);
    scripted(&place, &[complete(json!("hers"))], json!({}));
    let server = Serving::start(&place, &[]);
    let request = json!({ "objective": "Help {{input.who}}.", "session": "s-1", "input": { "who": "Ada" },
        "tools": [{ "type": "action", "name": "look_up" }], "config": { "max_iterations": 3 } });
    let run = server.execute("", request.clone());
    assert_eq!(run.status, 200, "{run:?}");
    assert_eq!((&run.json()["objective"], &run.json()["session"]), (&json!("Help Ada."), &json!("s-1")));
    let wrong =
        server.execute("", with(request.clone(), json!({ "tools": [{ "type": "action", "name": "look_upp" }] })));
    assert_eq!((wrong.status, wrong.code()), (422, "document".to_owned()), "{wrong:?}");
    let found = server.post("/check", &with(request, json!({ "tools": [{ "type": "action", "name": "look_upp" }] })));
    assert_eq!(found.status, 200);
    // `session` is beside the document, and was taken out of it without moving anything.
    assert_eq!(
        wrong.json()["diagnostics"][0]["code"],
        found
            .json()
            .as_array()
            .unwrap()
            .iter()
            .find(|fault| fault["path"].as_str().unwrap().starts_with("/tools"))
            .unwrap()["code"]
    );
}

#[test]
fn what_a_request_brings_along_reaches_no_program_database_or_secret() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let of = |action: Value| {
        let name = action["action_name"].clone();
        json!({ "objective": "x", "tools": [{ "type": "action", "name": name }], "actions": [action] })
    };
    let web = json!({ "action_name": "a", "kind": "http", "description": "d", "url": "https://e.example/",
        "http_method": "GET" });
    assert_eq!(server.execute("", of(web.clone())).status, 200);
    let secret = with(web, json!({ "headers": { "x": "orgconfig:KEY" } }));
    let command = json!({ "action_name": "a", "kind": "command", "description": "d", "program": "/bin/sh" });
    let db = json!({ "action_name": "a", "kind": "db", "description": "d", "datasource": "x", "query": "SELECT 1" });
    for action in [secret, command, db] {
        let reply = server.execute("", of(action));
        assert_eq!((reply.status, reply.code()), (422, "own_action".to_owned()), "{reply:?}");
    }
}

#[test]
fn what_can_t_be_started_is_refused_with_its_code() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let cases: Vec<(&str, Vec<u8>, u16, &str)> = vec![
        ("", b"{".to_vec(), 400, "bad_request"),
        ("", b"[]".to_vec(), 400, "bad_request"),
        ("", b"\xff".to_vec(), 400, "bad_request"),
        ("", b"{\"loop\":\"tset\"}".to_vec(), 422, "no_such_loop"),
        ("", b"{}".to_vec(), 422, "no_loop"),
        ("", b"{\"input\":{\"a\":1}}".to_vec(), 422, "no_loop"),
        ("", b"{\"loop\":\"test\",\"inptu\":{}}".to_vec(), 400, "bad_request"),
        ("", b"{\"loop\":\"test\",\"session\":\"a:b\"}".to_vec(), 400, "bad_request"),
        ("", b"{\"loop\":\"test\",\"timeout_ms\":0}".to_vec(), 400, "bad_request"),
        ("", b"{\"loop\":\"test\",\"callback_url\":\"https://e.example/\"}".to_vec(), 422, "callback_url"),
        ("?wait=1", b"{\"loop\":\"test\"}".to_vec(), 400, "bad_request"),
        ("?async=true&wait_ms=1", b"{\"loop\":\"test\"}".to_vec(), 400, "bad_request"),
        ("", b"{\"type\":\"loop\",\"properties\":{}}".to_vec(), 422, "no_agent_request"),
        ("", b"{\"objective\":\"x\",\"tools\":[],\"previous_run_id\":\"a\"}".to_vec(), 404, "no_previous_run"),
        ("", b"{\"loop\":\"test\",\"previous_run_id\":\"a\"}".to_vec(), 404, "no_previous_run"),
        ("", b"{\"objective\":7,\"tools\":[]}".to_vec(), 422, "document"),
    ];
    for (query, body, status, code) in cases {
        let reply = server.send("POST", &format!("/agents/execute{query}"), &[], &body);
        let said = String::from_utf8_lossy(&body).into_owned();
        assert_eq!((reply.status, reply.code()), (status, code.to_owned()), "{said} {reply:?}");
    }
    assert_eq!(server.get("/agents").json()["agents"], json!([]));
}

#[test]
fn a_document_is_checked_as_the_command_checks_it() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let wrong =
        json!({ "type": "loop", "properties": { "mode": "react", "objective": "x", "tools": [], "max_iteration": 3 } });
    place.json("wrong/request.json", &wrong);
    let checked = place.call(&["check", "wrong/request.json", "--format", "json"]).json();
    let found = server.send("POST", "/check", &[], serde_json::to_string_pretty(&wrong).unwrap().as_bytes());
    assert_eq!(found.status, 200);
    let codes = |list: &Value| {
        list.as_array().unwrap().iter().map(|f| (f["code"].clone(), f["line"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(codes(&found.json()), codes(&checked));
    assert!(!codes(&checked).is_empty());
    let broken = server.send("POST", "/check", &[], b"{\"type\": \"loop\",");
    assert_eq!((broken.status, broken.json()[0]["severity"].clone()), (200, json!("error")), "{broken:?}");
}

#[test]
fn a_folder_that_is_not_sound_is_not_served() {
    let place = place(json!({ "max_iterations": 0 }), &[]);
    let ran = place.call(&["serve", ".", "--listen", "127.0.0.1:0"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    assert!(ran.stderr.contains("loop.json"), "{ran:#?}");
    let ran = place.call(&["serve", "nowhere"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
}
