//! Replies while they arrive, over HTTP: for readers who want them, from the first piece on, without secrets, and beside
//! the events of the journal.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::streams::{PROVIDERS, streamed};
use crate::common::{Place, complete, think};
use crate::serve::client::{Serving, parse, read_until_closed, stream, until};

fn place(server: &Server, provider: &str) -> Place {
    let place = Place::new();
    let properties =
        json!({ "mode": "react", "objective": "Answer.", "tools": [], "max_iterations": 5, "retry": { "base_ms": 0 } });
    place.json("loop.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let model = json!({ "provider": provider, "base_url": server.url(), "model": "test" });
    place.json("loopctl.json", &json!({ "model": "m", "models": { "m": model } }));
    place
}

fn answer(provider: &str, pieces: &[&str]) -> Answer {
    Answer::events(streamed(provider, pieces))
}

/// Begins to read a run's events with its replies.
fn reader(server: &Serving, id: &str) -> TcpStream {
    let mut stream = server.connect();
    let address = server.address;
    write!(stream, "GET /agents/{id}/events?deltas=true HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
        .unwrap();
    stream
}

/// The whole stream, of which this much was read.
fn rest(stream_of: &mut TcpStream, mut seen: String) -> Vec<(String, Value)> {
    seen.push_str(&String::from_utf8_lossy(&read_until_closed(stream_of)));
    stream(&String::from_utf8(parse(seen.as_bytes()).unwrap().body).unwrap())
}

fn parts(events: &[(String, Value)]) -> Vec<Value> {
    let all = events.iter().map(|(_, data)| data);
    all.filter(|data| data["event"] == "model_delta").cloned().collect()
}

fn text(parts: &[Value]) -> String {
    parts.iter().map(|part| part["text"].as_str().unwrap()).collect()
}

fn others(events: &[(String, Value)]) -> Vec<Value> {
    let all = events.iter().map(|(_, data)| data);
    all.filter(|data| data["event"] != "model_delta").cloned().collect()
}

#[test]
fn each_provider_s_reply_comes_while_it_arrives_to_the_readers_who_want_it() {
    for provider in PROVIDERS {
        let whole = complete(json!("It is the cable.")).to_string();
        let gate = Gate::default();
        let model = Server::new(vec![answer(provider, &[&whole[..30], &whole[30..]]).held_at(1, &gate)]);
        let place = place(&model, provider);
        let server = Serving::start(&place, &[]);
        let run = server.execute("?async=true&deltas=true", json!({ "loop": "test" })).json();
        let id = run["agent_run_id"].as_str().unwrap();
        let mut first = reader(&server, id);
        let seen = until(&mut first, "model_delta");
        assert!(!seen.contains("model_replied"), "{seen}");
        // A reader who comes later, and one who wants none.
        let mut second = reader(&server, id);
        let late = until(&mut second, "model_delta");
        let mut plain = server.reader(id);
        let without = until(&mut plain, "model_asked");
        gate.open();
        let (first, second, plain) = (rest(&mut first, seen), rest(&mut second, late), rest(&mut plain, without));
        for events in [&first, &second] {
            let parts = parts(events);
            assert_eq!(text(&parts), whole, "{provider}");
            assert!(parts[0]["time_to_first_token_ms"].is_u64(), "{parts:?}");
            assert_eq!(parts.iter().filter(|part| part["time_to_first_token_ms"].is_u64()).count(), 1);
            let last = parts.last().unwrap();
            assert_eq!((&last["last"], &last["output_tokens"]), (&json!(true), &json!(5)), "{provider}");
            let kinds: Vec<&str> = events.iter().map(|(_, data)| data["event"].as_str().unwrap()).collect();
            let at = |kind: &str| kinds.iter().position(|other| *other == kind).unwrap();
            let last = kinds.iter().rposition(|kind| *kind == "model_delta").unwrap();
            assert!(at("model_asked") < at("model_delta") && last < at("model_replied"), "{kinds:?}");
        }
        // The record has none of them, and the same else.
        assert_eq!((parts(&plain), others(&first)), (vec![], others(&plain)));
        assert_eq!((others(&second), server.events(id, &[])), (others(&plain), plain));
    }
}

#[test]
fn a_model_streams_only_while_somebody_reads() {
    let replies =
        [think("__pause_for_human__", json!({ "question": "Go on?" })).to_string(), complete(json!("ok")).to_string()];
    let gate = Gate::default();
    let held = gate.clone();
    let model = Server::reading(move |number, request| {
        let reply = &replies[number];
        let streams = request.json()["stream"] == true;
        if streams { answer("openai", &[&reply[..9], &reply[9..]]).held_at(1, &held) } else { Answer::openai(reply) }
    });
    let place = place(&model, "openai");
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    // Connected during the pause: the reply after it is streamed.
    let mut live = reader(&server, id);
    let seen = until(&mut live, "\"paused\"");
    assert_eq!(server.post(&format!("/agents/{id}/resume?async=true"), &json!({ "answer": "yes" })).status, 202);
    let seen = seen + &until(&mut live, "model_delta");
    gate.open();
    let parts = parts(&rest(&mut live, seen));
    assert_eq!((text(&parts), &parts[0]["iteration"]), (complete(json!("ok")).to_string(), &json!(2)));
    let streams: Vec<bool> = model.requests().iter().map(|request| request.json()["stream"] == true).collect();
    assert_eq!(streams, [false, true]);
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    assert!(metrics.contains("loopctl_time_to_first_token_seconds_count 1\n"), "{metrics}");
}

#[test]
fn another_attempt_makes_the_parts_before_void_and_secrets_stay_hidden() {
    let whole = complete(json!({ "text": "x", "password": "hunter2" })).to_string();
    let pieces: Vec<&str> = whole.split_inclusive(['u', ':']).collect();
    let gate = Gate::default();
    let again = answer("openai", &pieces).behind(&gate);
    let mut wrong = streamed("openai", &["It is wrong, all of it. "]);
    wrong.truncate(1);
    let model = Server::new(vec![Answer::events(wrong).cut(), again]);
    let place = place(&model, "openai");
    let server = Serving::start(&place, &[]);
    let run = server.execute("?async=true&deltas=true", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    let mut live = reader(&server, id);
    // Said at once, before the next attempt has any text.
    let seen = until(&mut live, "\"attempt\":2");
    gate.open();
    let events = rest(&mut live, seen);
    let parts: Vec<Value> = parts(&events).into_iter().filter(|part| part["attempt"] == 2).collect();
    assert_eq!(parts[0]["text"], "");
    assert_eq!(text(&parts), whole.replace("hunter2", "[hidden]"));
    // The answer is what the caller asked for, and is not changed.
    let ((_, result), before) = events.split_last().unwrap();
    assert!(!before.iter().any(|(_, data)| data.to_string().contains("hunter2")));
    assert_eq!((&result["status"], model.requests().len()), (&json!("completed"), 2));
}

#[test]
fn a_query_that_is_not_known_is_refused() {
    let model = Server::with(|_, _| Answer::openai(&complete(json!("ok")).to_string()));
    let place = place(&model, "openai");
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    for query in ["deltas=maybe", "delta=true"] {
        let reply = server.get(&format!("/agents/{id}/events?{query}"));
        assert_eq!((reply.status, reply.code()), (400, "bad_request".to_owned()), "{query}");
    }
}
