//! Runs against a server whose tokens are bytes: what it was paid for is within the estimate, and within what the run and the spending
//! limits count.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran, complete, document, think, web};

/// The tokens of a request: the bytes of its texts, and of the tools that it declares.
fn tokens(request: &Request) -> u64 {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().map_or(0, str::len);
    let tools = body.get("tools").map_or(0, |tools| tools.to_string().len());
    (messages.iter().map(text).sum::<usize>() + tools) as u64
}

/// A reply, counted by its server.
fn reply(request: &Request, text: &str) -> Answer {
    let usage = json!({ "prompt_tokens": tokens(request), "completion_tokens": text.len() });
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": text } });
    Answer::json(&json!({ "model": "fake-1", "choices": [choice], "usage": usage }))
}

/// A reply that is paid for and breaks off.
fn broken(request: &Request) -> Answer {
    reply(request, &"x".repeat(500)).cut()
}

/// A loop whose model is at the server.
fn place(server: &Server, properties: &Value, model: &Value, project: &Value) -> Place {
    let place = Place::new();
    let mut all = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()), "model": "fake-1",
        "constrain": "off", "price": { "input": 1_000, "output": 1_000 } });
    merge(&mut all, model);
    let mut file = json!({ "allow": { "private_addresses": true }, "model": "m", "models": { "m": all } });
    merge(&mut file, project);
    place.json("loopctl.json", &file);
    let mut own = json!({ "mode": "react", "objective": "Do it.", "tools": [], "max_tokens": 1_000,
        "history": { "summarize": false } });
    merge(&mut own, properties);
    place.json("loop.json", &document(&own));
    place
}

fn merge(into: &mut Value, more: &Value) {
    for (name, value) in more.as_object().unwrap() {
        into[name] = value.clone();
    }
}

fn estimated(place: &Place) -> Value {
    let ran = place.call(&["estimate", "loop.json", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()["most"].clone()
}

fn run(place: &Place) -> Ran {
    place.call(&["run", "loop.json", "--run-id", "r", "--output", "json"])
}

fn counted(result: &Value) -> u64 {
    result["usage"]["input_tokens"].as_u64().unwrap() + result["usage"]["output_tokens"].as_u64().unwrap()
}

/// What is settled in the accounts of the store.
fn settled(place: &Place) -> i64 {
    let store = rusqlite::Connection::open(place.path().join(".loopctl/runs.db")).unwrap();
    store.query_row("SELECT coalesce(sum(settled_tokens), 0) FROM ledger", (), |row| row.get(0)).unwrap()
}

const LIMIT: u64 = 10_000_000;

fn limits() -> Value {
    json!({ "limits": [{ "every": "day", "tokens": LIMIT }] })
}

#[test]
fn attempts_that_take_too_long_count_for_the_bound_the_budget_the_usage_and_the_limits_alike() {
    let server = Server::reading(|_, request| reply(request, "late").slow(Duration::from_secs(3)));
    let retry = json!({ "for_ms": 60_000, "base_ms": 1, "max_ms": 1 });
    let properties = json!({ "max_iterations": 1, "reply_timeout_ms": 150, "retry": retry });
    let place = place(&server, &properties, &json!({}), &limits());
    let most = estimated(&place);
    assert_eq!(most["model_calls"], 4);
    let ran = run(&place);
    let result = ran.json();
    assert_eq!((ran.code, &result["status"]), (1, &json!("failed")), "{}", ran.stderr);
    let asked = server.requests();
    assert_eq!(asked.len(), 4, "each of them may be paid for");
    let paid: u64 = asked.iter().map(|request| tokens(request) + 1_000).sum();
    assert!(counted(&result) >= paid, "{result}");
    assert!(counted(&result) <= most["tokens"].as_u64().unwrap(), "{result}");
    assert_eq!(result["usage"]["at_most"], true, "{result}");
    assert_eq!(u64::try_from(settled(&place)).unwrap(), counted(&result), "one rule for the limits and the run");
    let trace = place.call(&["trace", "r"]).stdout;
    assert!(trace.contains("the most that it may have used"), "{trace}");
    assert!(ran.stderr.contains("at most ") || trace.contains("at most "), "{}{trace}", ran.stderr);
    // A human allows more: four again.
    assert_eq!(place.call(&["retry", "r", "--output", "json"]).code, 1);
    assert_eq!(server.requests().len(), 8);
}

#[test]
fn a_budget_ends_a_run_whose_attempts_break_off_uncounted() {
    let server = Server::reading(|_, request| broken(request));
    let retry = json!({ "attempts": 20, "base_ms": 1, "max_ms": 1 });
    let properties = json!({ "max_iterations": 5, "retry": retry, "budget": { "tokens": 6_000 } });
    let place = place(&server, &properties, &json!({}), &json!({}));
    let most = estimated(&place)["tokens"].as_u64().unwrap();
    let result = run(&place).json();
    assert_eq!(result["termination"], "budget", "{result}");
    let paid: u64 = server.requests().iter().map(|request| tokens(request) + 500).sum();
    assert!(paid <= counted(&result) && counted(&result) <= most, "{paid} of {most}: {result}");
}

#[test]
fn attempts_before_a_pause_for_a_model_count_after_it() {
    let asked = AtomicUsize::new(0);
    let server = Server::reading(move |_, request| match asked.fetch_add(1, Ordering::SeqCst) {
        0 | 2 => broken(request),
        _ => Answer::json(&json!({ "error": { "message": "overloaded" } })).status(503),
    });
    let retry = json!({ "attempts": 2, "base_ms": 1, "max_ms": 1 });
    let properties = json!({ "max_iterations": 1, "retry": retry, "on_model_outage": "pause" });
    let place = place(&server, &properties, &json!({}), &json!({}));
    assert_eq!(estimated(&place)["model_calls"], 2);
    assert_eq!(run(&place).json()["status"], "paused");
    assert_eq!(server.requests().len(), 2, "one may be paid for, and one is refused");
    let resumed = place.call(&["resume", "r", "--output", "json"]).json();
    assert_eq!(resumed["status"], "failed", "nobody pays a third time: {resumed}");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(resumed["error"]["retryable"], true, "{resumed}");
    let again = place.call(&["retry", "r", "--output", "json"]).json();
    assert_eq!(again["status"], "paused", "a human allows two more: {again}");
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn an_outage_that_costs_nothing_pauses_as_often_as_it_lasts() {
    let server = Server::reading(|_, _| Answer::json(&json!({ "error": { "message": "overloaded" } })).status(503));
    let retry = json!({ "attempts": 1 });
    let properties = json!({ "max_iterations": 1, "retry": retry, "on_model_outage": "pause" });
    let place = place(&server, &properties, &json!({}), &json!({}));
    assert_eq!(run(&place).json()["status"], "paused");
    for _ in 0..4 {
        assert_eq!(place.call(&["resume", "r", "--output", "json"]).json()["status"], "paused");
    }
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_request_that_is_under_way_at_the_deadline_counts_what_it_may_use() {
    let server = Server::reading(|_, request| reply(request, "late").slow(Duration::from_secs(3)));
    let place = place(&server, &json!({ "max_iterations": 1, "timeout_ms": 400 }), &json!({}), &limits());
    let result = run(&place).json();
    assert_eq!(result["termination"], "timeout", "{result}");
    let paid: u64 = server.requests().iter().map(|request| tokens(request) + 1_000).sum();
    assert!(counted(&result) >= paid && paid > 1_000, "{result}");
    assert_eq!(result["usage"]["at_most"], true);
}

#[test]
fn a_declared_window_bounds_what_is_sent_and_nothing_else() {
    // Three bytes a sign, and a token for each byte: the check before a request takes four bytes for a token.
    let server = Server::reading(|_, request| reply(request, &complete(json!("done")).to_string()));
    let text = "漢".repeat(2_000);
    let properties =
        json!({ "max_iterations": 1, "system_prompt": text, "max_tokens": 50, "retry": { "attempts": 1 } });
    let zh = place(&server, &properties, &json!({ "context_tokens": 3_000 }), &json!({}));
    let most = estimated(&zh)["input_tokens"].as_u64().unwrap();
    assert_eq!(run(&zh).json()["status"], "completed");
    let sent = tokens(&server.requests()[0]);
    assert!(sent > 3_000 && sent <= most, "{sent} of {most}");

    // A request that is too long whatever its texts are is not sent.
    let small = place(&server, &properties, &json!({ "context_tokens": 300 }), &json!({}));
    let result = run(&small).json();
    assert_eq!(result["termination"], "context", "{result}");
    assert_eq!(server.requests().len(), 1);

    // A fallback of a smaller window is sent what the run's own model is sent.
    let fallback = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()), "model": "small",
        "context_tokens": 1_000, "price": { "input": 1_000, "output": 1_000 } });
    let own = json!({ "provider": "openai", "base_url": format!("{}/none", server.url()), "model": "fake-1",
        "price": { "input": 1_000, "output": 1_000 } });
    let project = json!({ "models": { "m": own, "small": fallback } });
    let properties = json!({ "max_iterations": 1, "system_prompt": "x".repeat(3_000), "retry": { "attempts": 1 },
        "fallback_models": ["small"] });
    let down = Server::reading(|_, _| Answer::json(&json!({ "error": { "message": "overloaded" } })).status(503));
    let fb = place(&server, &properties, &json!({}), &project);
    let mut file: Value = serde_json::from_slice(&std::fs::read(fb.path().join("loopctl.json")).unwrap()).unwrap();
    file["models"]["m"]["base_url"] = json!(format!("{}/v1", down.url()));
    fb.json("loopctl.json", &file);
    let most = estimated(&fb)["input_tokens"].as_u64().unwrap();
    assert_eq!(run(&fb).json()["status"], "completed");
    let sent = tokens(server.requests().last().unwrap());
    assert!(sent > 1_000 && sent * 2 <= most, "{sent} of {most}");
}

#[test]
fn a_reservation_counts_the_tools_that_a_request_declares() {
    let server = Server::reading(|_, request| reply(request, "done"));
    let tool = web("far", "http://127.0.0.1:9/", json!({ "description": "x".repeat(40_000) }));
    let properties =
        json!({ "dialect": "tool_calls", "tools": [{ "type": "action", "name": "far" }], "max_tokens": 100 });
    let limits = json!({ "limits": [{ "every": "day", "tokens": 5_000 }] });
    let place = place(&server, &properties, &json!({}), &limits);
    place.json("actions/far.json", &tool);
    let result = run(&place).json();
    assert_eq!(result["termination"], "spending_limit", "{result}");
    assert!(server.requests().is_empty(), "nothing was sent");
}

#[test]
fn a_history_that_keeps_more_than_it_may_hold_grows_as_the_estimate_says() {
    let step = |number: u64| think("__log_progress__", json!({ "message": "m".repeat(80), "percent": number }));
    let server = Server::reading(move |number, request| reply(request, &step(number as u64).to_string()));
    let properties = json!({ "builtins": ["__log_progress__"], "max_iterations": 30, "max_tokens": 300,
        "max_observation_chars": 12, "on_stuck": { "iterations": 1_000 }, "retry": { "attempts": 1 },
        "history": { "max_messages": 4, "keep_last": 1_000, "summarize": false } });
    let place = place(&server, &properties, &json!({}), &json!({}));
    let most = estimated(&place)["input_tokens"].as_u64().unwrap();
    assert_eq!(run(&place).json()["termination"], "max_iterations");
    let sent: u64 = server.requests().iter().map(tokens).sum();
    assert!(sent <= most, "{sent} of {most}");
    let lengths: Vec<u64> = server.requests().iter().map(tokens).collect();
    assert!(lengths[29] > lengths[0] + 29 * 80, "nothing is removed: {lengths:?}");
}

#[test]
fn summaries_that_a_refused_length_brings_are_counted() {
    let asked = AtomicUsize::new(0);
    let step = think("__log_progress__", json!({ "message": "m", "percent": 1 }));
    let server = Server::reading(move |_, request| match asked.fetch_add(1, Ordering::SeqCst) {
        number if number % 3 == 2 && tokens(request) > 0 => Answer::json(&json!({ "error": {
            "message": "This model's maximum context length is 4096 tokens.", "code": "context_length_exceeded" } }))
        .status(400),
        _ => reply(request, &step.to_string()),
    });
    let properties = json!({ "builtins": ["__log_progress__"], "max_iterations": 6, "max_tokens": 300, "history": {},
        "on_stuck": { "iterations": 1_000 }, "retry": { "attempts": 1 } });
    let place = place(&server, &properties, &json!({}), &json!({}));
    let most = estimated(&place)["model_calls"].as_u64().unwrap();
    let _ = run(&place);
    let replied = server.requests().len() as u64;
    assert!(most == 11 && replied > 6, "six turns, and a summary for each but one: {most}, {replied}");
}

#[test]
fn a_question_whose_answers_are_not_taken_is_asked_as_often_as_the_estimate_says() {
    let asked = AtomicUsize::new(0);
    let server = Server::reading(move |_, request| {
        let text = match asked.fetch_add(1, Ordering::SeqCst) {
            0 => think("ask", json!({})).to_string(),
            number if number % 4 != 0 => return broken(request),
            _ => "no answer".to_owned(),
        };
        reply(request, &text)
    });
    let ask = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Say it.", "max_tokens": 500,
        "retry": { "attempts": 4, "base_ms": 1, "max_ms": 1 },
        "answer_schema": { "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } } });
    let properties =
        json!({ "tools": [{ "type": "action", "name": "ask" }], "max_iterations": 1, "retry": { "attempts": 1 } });
    let place = place(&server, &properties, &json!({}), &json!({}));
    place.json("actions/ask.json", &ask);
    let most = estimated(&place)["model_calls"].as_u64().unwrap();
    let result = run(&place).json();
    let replied = server.requests().len() as u64;
    assert!(replied == 1 + 12 && replied <= most, "{replied} of {most}");
    let paid: u64 = server.requests().iter().skip(1).map(tokens).sum();
    assert!(counted(&result) >= paid, "{paid}: {result}");
}

#[test]
fn a_secret_that_a_server_refuses_is_sent_once_more_and_counted() {
    let server = Server::reading(|_, _| Answer::json(&json!({ "error": "expired" })).status(401));
    let look =
        web("look", &format!("{}/look", server.url()), json!({ "headers": { "Authorization": "orgconfig:key" } }));
    let place = Place::new();
    place.json("actions/look.json", &look);
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true, "commands": ["date"] },
            "orgconfig": { "key": { "command": ["date", "+%N"] } } }),
    );
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [{ "type": "look" }] } }));
    let most = estimated(&place)["tool_calls"].as_u64().unwrap();
    let _ = run(&place);
    assert_eq!((server.requests().len() as u64, most), (2, 2));
}

#[test]
fn a_workflow_lasts_as_long_as_the_call_that_is_under_way_when_its_time_is_over() {
    let place = Place::new();
    let nap = json!({ "action_name": "nap", "kind": "command", "program": "sleep", "args": ["1"], "description": "Naps.",
        "timeout_ms": 5_000 });
    place.json("actions/nap.json", &nap);
    place.json("loopctl.json", &json!({ "allow": { "commands": ["sleep"] } }));
    place.json(
        "loop.json",
        &json!({ "name": "w", "definition": { "timeout_ms": 300, "actions": [{ "type": "nap" }] } }),
    );
    let report = place.call(&["estimate", "loop.json", "--output", "json"]).json();
    let most = report["active_ms"].as_u64().unwrap();
    let result = run(&place).json();
    let lasted = result["metadata"]["active_ms"].as_u64().or(result["active_ms"].as_u64());
    assert!(most >= 5_300, "{most}");
    assert!(lasted.is_none_or(|lasted| lasted <= most), "{lasted:?} of {most}: {result}");
}
