//! `retry` of an `http` action: what is made again, how each attempt is recorded, and what ends a wait.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::http_tool::anywhere;
use super::signals::wait_for_line;
use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete, document, observed, think, web, with};

const RUN: [&str; 8] = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
const RESUME: [&str; 6] = ["resume", "r", "--script", "script.json", "--output", "json"];

/// A loop that reads once from the server, with this rule, and completes.
fn place(server: &Server, retry: Value, properties: Value) -> Place {
    let place = Place::new();
    let action = web("read", &format!("{}/read", server.url()), json!({ "retry": retry }));
    let tools = json!([{ "type": "action", "name": "read" }]);
    let properties = with(json!({ "mode": "react", "objective": "x", "tools": tools }), properties);
    place.json("loop.json", &json!({ "type": "loop", "name": "t", "actions": [action], "properties": properties }));
    place.json("loopctl.json", &anywhere());
    place.script(&[think("read", json!({})), complete(json!("ok"))]);
    place
}

/// Answers with these statuses in order, and with success after them.
fn failing(statuses: &'static [u16]) -> Server {
    Server::with(|number, _| match statuses.get(number) {
        Some(status) => Answer::new("text/plain", "busy").status(*status),
        None => Answer::json(&json!({ "read": number })),
    })
}

/// Asks for a wait of an hour, once.
fn waiting() -> Server {
    Server::with(|number, _| match number {
        0 => Answer::json("{}").status(503).header("retry-after", "3600"),
        _ => Answer::json(&json!({ "read": number })),
    })
}

/// The rule under which an hour is waited.
fn patient() -> Value {
    json!({ "attempts": 3, "max_ms": 3_600_000 })
}

fn fast() -> Value {
    json!({ "attempts": 4, "base_ms": 0, "max_ms": 0 })
}

#[test]
fn each_failed_attempt_is_in_the_record_and_the_model_reads_the_last_one_alone() {
    let server = Server::with(|number, _| match number {
        0 => Answer::new("text/plain", "busy").status(503),
        1 => Answer::raw("noise\r\n\r\n"),
        2 => Answer::json("{\"whole\":false}").cut(),
        _ => Answer::json(&json!({ "read": number })),
    });
    let place = place(&server, fast(), json!({}));
    let ran = place.call(&RUN);
    let result = ran.json();
    assert_eq!((ran.code, &result["metadata"]["tool_retries"]), (0, &json!(3)), "{ran:#?}");
    assert_eq!((&result["metadata"]["tool_calls_made"], &result["iterations"]), (&json!(1), &json!(2)), "{result:#}");
    let entry = &result["trace"][0];
    assert_eq!((&entry["observation"], &entry["success"]), (&json!({ "read": 3 }), &json!(true)), "{entry:#}");
    let attempts = entry["attempts"].as_array().expect("attempts");
    let classes: Vec<&Value> = attempts.iter().map(|attempt| &attempt["error"]["class"]).collect();
    assert_eq!(classes, ["http 503", "no valid http answer", "response cut off"], "{entry:#}");
    assert_eq!((&attempts[0]["error"]["detail"], &attempts[0]["delay_ms"]), (&json!("busy"), &json!(0)));
    let keys: Vec<_> =
        server.requests().iter().map(|request| request.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys, vec![Some("r-1-0".to_owned()); 4], "all attempts have one key");
    let text = place.call(&["trace", "r"]).stdout;
    for words in ["attempt 1: http 503; retry\n", "busy", "attempt 3: response cut off"] {
        assert_eq!(text.matches(words).count(), 1, "{words}: {text}");
    }
    let page = place.call(&["trace", "r", "--format", "html"]).stdout;
    assert!(page.contains("attempt 2: no valid http answer"), "{page}");
    assert_eq!(place.call(&["trace", "r", "--format", "json"]).json()["trace"], result["trace"]);
}

#[test]
fn a_listener_hears_of_each_attempt_and_of_one_call() {
    let server = failing(&[429, 500]);
    let place = place(&server, fast(), json!({}));
    let mut args = RUN.to_vec();
    args[7] = "ndjson";
    let ran = place.call(&args);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["event"] == kind).collect::<Vec<_>>();
    let retried = of("tool_retried");
    let expected = json!({ "event": "tool_retried", "call": { "iteration": 1, "index": 0 }, "action": "read", "attempt": 2,
        "error": { "class": "http 500", "detail": "busy" }, "delay_ms": 0 });
    assert_eq!((retried.len(), of("tool_called").len(), retried[1]), (2, 1, &expected), "{ran:#?}");
}

#[test]
fn what_stays_as_it_is_and_what_the_rule_leaves_out_is_not_made_again() {
    for (retry, statuses, requests, class) in [
        (fast(), [404, 200].as_slice(), 1, "http 404"),
        (fast(), &[400; 9], 1, "http 400"),
        (json!({ "attempts": 2, "base_ms": 0 }), &[503; 9], 2, "http 503"),
        (json!({ "attempts": 1 }), &[503; 9], 1, "http 503"),
        (json!({ "attempts": 9, "base_ms": 0, "on": [429] }), &[429, 503, 503], 2, "http 503"),
        (json!({ "attempts": 9, "base_ms": 0, "on": [404] }), &[404, 404, 400, 400], 3, "http 400"),
    ] {
        let server = failing(statuses);
        let place = place(&server, retry.clone(), json!({}));
        let result = place.call(&RUN).json();
        let error = &result["trace"][0]["error"]["class"];
        assert_eq!((server.requests().len(), error), (requests, &json!(class)), "{retry}: {result:#}");
        let failed = result["trace"][0]["attempts"].as_array().map_or(0, Vec::len);
        assert_eq!(failed + 1, requests, "{retry}: the last attempt is the outcome");
    }
}

#[test]
fn a_timeout_limits_each_attempt() {
    let silent = Server::with(|_, _| Answer::json("{}").behind(&crate::common::server::Gate::default()));
    let held = place(&silent, json!({ "attempts": 2, "base_ms": 0 }), json!({ "tool_timeout_ms": 1_500 }));
    let entry = &held.call(&RUN).json()["trace"][0];
    assert_eq!(entry["attempts"][0]["error"]["class"], "timed out after 1.5 s", "{entry:#}");
    assert_eq!((&entry["error"]["class"], silent.requests().len()), (&json!("timed out after 1.5 s"), 2), "{entry:#}");
}

#[test]
fn a_script_answers_each_attempt_with_its_next_entry() {
    let server = failing(&[]);
    let place = place(&server, fast(), json!({}));
    let answers = json!([{ "error": "http 503" }, { "error": "it broke" }, { "did": 1 }, { "error": "http 404" }]);
    let replies = json!([think("read", json!({})), think("read", json!({ "again": 1 })), complete(json!("ok"))]);
    place.json("script.json", &json!({ "replies": replies, "tools": { "read": answers } }));
    let document = std::fs::read_to_string(place.path().join("loop.json")).expect("it is there");
    let mut document: Value = serde_json::from_str(&document).expect("JSON");
    document["actions"][0]["parameters"] = json!({ "type": "object" });
    place.json("loop.json", &document);
    let result = place.call(&RUN).json();
    let trace = result["trace"].as_array().expect("a trace");
    assert_eq!(
        (&trace[0]["observation"], trace[0]["attempts"].as_array().map(Vec::len)),
        (&json!({ "did": 1 }), Some(2))
    );
    assert_eq!(
        (observed(&trace[1]), trace[1]["attempts"].as_array()),
        ("Error: http 404".to_owned(), None),
        "{result:#}"
    );
}

/// Starts the run, waits until an attempt has failed and its wait has started, and does something to the process.
fn in_the_wait(place: &Place, server: &Server, then: impl FnOnce(&std::process::Child)) -> Ran {
    let mut child = place.start(&RUN[..6], &[]);
    let rest = wait_for_line(&mut child, "attempt 1: http 503");
    assert_eq!(server.requests().len(), 1);
    then(&child);
    let output = child.wait_with_output().expect("it ends");
    rest.join().expect("it ends");
    crate::common::ran(&output)
}

#[test]
fn a_signal_ends_the_wait_at_once_and_the_run_continues_when_it_is_due() {
    let server = waiting();
    let place = place(&server, patient(), json!({ "timeout_ms": 86_400_000 }));
    let stopped = in_the_wait(&place, &server, |child| {
        kill(Pid::from_raw(i32::try_from(child.id()).expect("a pid")), Signal::SIGINT).expect("it is there");
    });
    assert_eq!(stopped.code, 130, "{stopped:#?}");
    // An hour later; the clock is a fail point of debug builds.
    place.file("ahead", "3600001");
    let ahead = place.path().join("ahead").display().to_string();
    let resumed = place.call_with(&RESUME, &[("LOOPCTL_CLOCK", &ahead)]);
    assert_eq!((resumed.code, server.requests().len()), (0, 2), "{resumed:#?}");
    let entry = &resumed.json()["trace"][0];
    assert_eq!((&entry["observation"], &entry["attempts"][0]["delay_ms"]), (&json!({ "read": 1 }), &json!(3_600_000)));
}

#[test]
fn a_cancellation_and_the_end_of_the_time_end_the_wait() {
    let server = waiting();
    let cancelled = place(&server, patient(), json!({ "timeout_ms": 86_400_000 }));
    in_the_wait(&cancelled, &server, |_| {
        let ran = cancelled.call(&["cancel", "r"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    });
    let trace = cancelled.call(&["trace", "r", "--format", "json"]).json();
    assert_eq!((&trace["status"], server.requests().len()), (&json!("cancelled"), 1), "{trace:#}");
    assert_eq!(trace["trace"][0]["attempts"][0]["error"]["class"], "http 503", "{trace:#}");
    let server = waiting();
    let late = place(&server, patient(), json!({ "timeout_ms": 1_500 }));
    let ran = late.call(&RUN);
    assert_eq!((ran.code, &ran.json()["termination"]), (1, &json!("timeout")), "{ran:#?}");
    let entry = &ran.json()["trace"][0];
    assert_eq!((observed(entry), server.requests().len()), ("Error: cut off: the run's time is over".to_owned(), 1));
    assert_eq!(entry["attempts"][0]["error"]["class"], "http 503", "{entry:#}");
}

#[test]
fn a_retry_of_a_post_without_a_key_is_refused_by_check_and_by_run() {
    let server = failing(&[503]);
    let place = place(&server, fast(), json!({}));
    let mut document: Value = document(&json!({}));
    document["actions"][1] =
        web("act", &server.url(), json!({ "http_method": "POST", "retry": fast(), "description": "x" }));
    place.json("loop.json", &document);
    for args in [["check", "loop.json"].as_slice(), &["run", "loop.json", "--script", "script.json"]] {
        let ran = place.call(args);
        let said = ran.stdout.clone() + &ran.stderr;
        assert!(ran.code != 0 && said.contains("L147") && said.contains("\"idempotent\": true"), "{ran:#?}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn the_body_of_a_failed_answer_reaches_the_model_as_data_where_it_may() {
    let secret = "s3cret-of-the-desk-17";
    let server = Server::with(move |_, request| match request.path.as_str() {
        "/json" => Answer::json(&json!({ "field": "amount", "key": secret, "password": "hunter2hunter2" })).status(422),
        "/long" => Answer::json(&json!({ "text": "x".repeat(3_000) })).status(400),
        "/text" => Answer::new("text/plain", "no \u{1b}[31m\"amount\"\n").status(400),
        _ => Answer::json(&json!({ "trace": "of the server" })).status(500),
    });
    let observed_of = |path: &str, more: Value| {
        let place = Place::new();
        let headers = json!({ "headers": { "x-key": "orgconfig:desk" } });
        let action = web("read", &format!("{}/{path}", server.url()), with(headers, more));
        place.actions(&[action], &with(anywhere(), json!({ "orgconfig": { "desk": "env:DESK" } })));
        let trace = place.calls_with(&[think("read", json!({}))], &[], &[("DESK", secret)]);
        let text = place.call(&["runs"]).stdout;
        assert!(!text.contains(secret));
        trace[0].clone()
    };
    let plain = observed_of("json", json!({}));
    let said = observed(&plain);
    assert!(said.starts_with("Error: http 422\nThe server answered: {\"field\":\"amount\",\"key\":\""), "{said}");
    assert!(!said.contains(secret) && !said.contains("hunter2"), "{said}");
    for (path, class) in [("long", "http 400"), ("text", "http 400"), ("failed", "http 500")] {
        let entry = observed_of(path, json!({}));
        assert_eq!(observed(&entry), format!("Error: {class}"), "{path}");
        assert!(!entry["error"]["detail"].as_str().unwrap_or_default().is_empty(), "the operator reads it: {entry:#}");
    }
    let all = json!({ "error_body": true });
    let text = observed_of("text", all.clone());
    assert_eq!(observed(&text), "Error: http 400\nThe server answered: \"no \\u001b[31m\\\"amount\\\"\\n\"");
    assert_eq!(text["error"]["detail"], Value::Null, "it is said once: {text:#}");
    assert!(observed(&observed_of("failed", all.clone())).ends_with("{\"trace\":\"of the server\"}"));
    let long = observed(&observed_of("long", all));
    assert!(long.ends_with("more bytes]") && long.len() < 2_200, "{long}");
}
