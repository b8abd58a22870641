//! The events of a run: history and what happens now are one stream, and a reader who comes again loses
//! and repeats nothing.

use std::io::Read;

use serde_json::{Value, json};

use crate::common::{complete, look, think};
use crate::serve::client::{Serving, place, stream, until};

fn kinds(events: &[(String, Value)]) -> Vec<String> {
    events.iter().map(|(_, data)| data["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_reader_who_comes_again_at_any_place_gets_the_rest_and_only_that() {
    let replies = [think("__log_progress__", json!({ "message": "half" })), json!("unreadable"), complete(json!("ok"))];
    let place = place(json!({}), &replies);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    let all = server.events(id, &[]);
    assert_eq!(kinds(&all).first().unwrap(), "run_started");
    assert_eq!(kinds(&all).last().unwrap(), "result");
    assert!(kinds(&all).contains(&"progress".to_owned()), "{all:?}");
    let mut places: Vec<&String> = all.iter().map(|(id, _)| id).collect();
    places.dedup();
    assert_eq!(places.len(), all.len(), "each has a place of its own");
    for at in 0..all.len() - 1 {
        assert_eq!(server.events(id, &[("last-event-id", &all[at].0)]), all[at + 1..], "after {}", all[at].0);
    }
    let last = [("last-event-id", all.last().unwrap().0.as_str())];
    assert_eq!(server.send("GET", &format!("/agents/{id}/events"), &last, b"").status, 204);
    for wrong in ["99.0", "x", "1", "-1.0", "1.0.0", "99999999999999999999.0"] {
        let reply = server.send("GET", &format!("/agents/{id}/events"), &[("last-event-id", wrong)], b"");
        assert_eq!((reply.status, reply.code()), (400, "bad_event_id".to_owned()), "{wrong}");
    }
}

#[test]
fn what_happens_while_it_is_read_is_the_same_as_what_is_read_later() {
    let place =
        place(json!({}), &[think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    let mut reader = server.reader(id);
    let mut live = until(&mut reader, "\"paused\"");
    assert_eq!(server.post(&format!("/agents/{id}/resume"), &json!({ "answer": "yes" })).status, 200);
    reader.read_to_string(&mut live).unwrap();
    let reply = crate::serve::client::parse(live.as_bytes()).unwrap();
    let live = stream(&String::from_utf8(reply.body).unwrap());
    assert_eq!(live, server.events(id, &[]));
    let names = kinds(&live);
    let paused = names.iter().position(|name| name == "paused").unwrap();
    assert!(names[paused..].contains(&"run_resumed".to_owned()), "{names:?}");
}

#[test]
fn a_reader_stays_with_a_run_that_goes_on_elsewhere_with_another_document() {
    let replies = [
        think("__pause_for_human__", json!({ "question": "Go on?" })),
        think("__log_progress__", json!({ "message": "on" })),
        complete(json!("ok")),
    ];
    let place = place(json!({}), &replies);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    let mut reader = server.reader(id);
    let mut live = vec![0];
    reader.read_exact(&mut live).unwrap();
    place.json("loop.json", &crate::common::document(&json!({ "result_key": "found" })));
    let resumed = place.call(&["resume", id, "--answer", "yes", "--new-document", "--output", "json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    reader.read_to_end(&mut live).unwrap();
    let live = stream(&String::from_utf8(crate::serve::client::parse(&live).unwrap().body).unwrap());
    assert_eq!(live, server.events(id, &[]));
    assert_eq!(kinds(&live).iter().filter(|name| *name == "run_started").count(), 1, "{live:?}");
    assert_eq!(live.last().unwrap().1["result_key"], "found", "the new document's key");
}

#[test]
fn text_of_a_model_makes_no_event_of_its_own() {
    let forged = "x\n\nevent: done\ndata: {\"event\":\"run_ended\"}\n\nid: 9.9\r\n\r\n\u{2028}\u{1b}[2J";
    let replies = [json!({ "thought": forged, "action": "__complete__", "action_input": { "answer": forged } })];
    let place = place(json!({}), &replies);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["final_answer"], forged);
    let id = run["agent_run_id"].as_str().unwrap();
    let reply = server.send("GET", &format!("/agents/{id}/events"), &[], b"");
    assert!(!reply.body.contains(&0x1b));
    let events = stream(&String::from_utf8(reply.body).unwrap());
    assert_eq!(kinds(&events).iter().filter(|name| *name == "run_ended").count(), 1);
    assert_eq!(events.last().unwrap().1["result"]["answer"], forged);
}

#[test]
fn the_stream_reports_calls_and_observations() {
    let place = place(json!({ "retry": { "attempts": 1 } }), &[look("a"), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let events = server.events(run["agent_run_id"].as_str().unwrap(), &[]);
    let names = kinds(&events);
    let expected = ["run_started", "model_asked", "model_replied", "tool_called", "observed", "model_asked"];
    assert_eq!(names[..6], expected, "{names:?}");
    assert_eq!(events[3].1["action"], "look");
}

#[test]
fn names_that_the_project_hides_are_hidden_in_what_others_wrote_and_our_own_fields_stay() {
    let replies = [look("a"), complete(json!("ok"))];
    let place = place(json!({ "retry": { "attempts": 1 } }), &replies);
    let redact = json!(["event", "iteration", "call", "status", "at"]);
    crate::serve::client::scripted(&place, &replies, json!({ "redact": redact }));
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let events = server.events(run["agent_run_id"].as_str().unwrap(), &[]);
    let names = kinds(&events);
    assert_eq!((names[0].as_str(), names.last().unwrap().as_str()), ("run_started", "result"), "{names:?}");
    let called = &events.iter().find(|(_, data)| data["event"] == "tool_called").unwrap().1;
    assert_eq!(called["call"]["iteration"], 1, "{called}");
    assert_eq!(called["action_input"], json!({ "at": "[hidden]" }), "{called}");
}
