//! Models that fail and recover: what is retried, in what order, and that each attempt is reported.

use std::time::Duration;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, Ran, complete, document};

fn place(properties: Value) -> Place {
    let place = Place::new();
    place.json("loop.json", &document(&properties));
    place
}

fn run(place: &Place, server: &Server) -> Ran {
    let args = ["run", "loop.json", "--output", "json", "--run-id", "r", "--model", "m"];
    place.call_with(&args, &[("OPENAI_BASE_URL", &server.url())])
}

fn done() -> Answer {
    Answer::openai(&complete(json!("done")).to_string())
}

const FAST: &str = r#"{ "attempts": 9, "base_ms": 1, "max_ms": 1 }"#;

fn fast() -> Value {
    serde_json::from_str(FAST).unwrap()
}

#[test]
fn every_failed_attempt_is_in_the_trace_with_its_reason_and_its_wait() {
    let server = Server::new(vec![
        Answer::json("{\"error\":{\"message\":\"too many\"}}").status(429).header("retry-after-ms", "7"),
        Answer::json("{}").status(500),
        Answer::reset(),
        done().cut(),
        Answer::openai(""),
        done().slow(Duration::from_millis(5)),
    ]);
    let place = place(json!({ "retry": fast() }));
    let ran = run(&place, &server);
    let result = ran.json();
    assert_eq!((ran.code, &result["metadata"]["model_retries"]), (0, &json!(5)), "{ran:#?}");
    let attempts = result["attempts"].as_array().expect("attempts");
    let reasons: Vec<&str> = attempts.iter().map(|attempt| attempt["reason"].as_str().unwrap()).collect();
    for (reason, words) in reasons.iter().zip(["http 429", "http 500", "connection", "cut off", "is empty"]) {
        assert!(reason.contains(words), "{words}: {reasons:#?}");
    }
    assert_eq!((attempts.len(), &attempts[0]["delay_ms"], &attempts[0]["iteration"]), (5, &json!(7), &json!(1)));
    assert_eq!(attempts[4]["usage"], json!({ "input_tokens": 10, "output_tokens": 5 }));
    let input = |at: usize| attempts[at]["usage"]["input_tokens"].as_u64().unwrap();
    assert!(attempts[1].get("usage").is_none() && attempts[2].get("usage").is_none(), "{attempts:#?}");
    assert_eq!(attempts[3]["at_most"], true, "{attempts:#?}");
    let paid = 20 + input(3);
    assert_eq!(result["usage"]["input_tokens"], paid, "the empty reply was paid for too, and so was what was lost");
    let text = place.call(&["trace", "r"]);
    for words in ["http 429", "http 500", "cut off", "is empty"] {
        assert!(text.stdout.contains(words), "{words}: {text:#?}");
    }
    let page = place.call(&["trace", "r", "--format", "html"]);
    assert!(page.stdout.contains("http 429"), "{page:#?}");
    let again: Value = place.call(&["trace", "r", "--format", "json"]).json();
    assert_eq!(again["attempts"], result["attempts"], "the journal keeps what was reported");
}

#[test]
fn a_run_whose_attempts_all_fail_reports_each_of_them() {
    let (first, second) = (Server::with(|_, _| Answer::json("{}").status(503)), Server::with(|_, _| Answer::closed()));
    let place = place(json!({ "fallback_models": ["second"], "retry": { "attempts": 2, "base_ms": 1, "max_ms": 1 } }));
    let model = |server: &Server| json!({ "provider": "openai", "base_url": server.url() });
    place.json("loopctl.json", &json!({ "models": { "m": model(&first), "second": model(&second) } }));
    let ran = run(&place, &first);
    let result = ran.json();
    assert_eq!((ran.code, &result["error"]["code"]), (1, &json!("model_unreachable")), "{ran:#?}");
    let models: Vec<&Value> = result["attempts"].as_array().unwrap().iter().map(|attempt| &attempt["model"]).collect();
    assert_eq!(models, [&json!(null), &json!(null), &json!("second"), &json!("second")], "{result:#}");
    let text = place.call(&["trace", "r"]);
    assert!(text.stdout.contains("http 503") && text.stdout.contains("second: "), "{text:#?}");
}

#[test]
fn empty_replies_for_ever_end_the_run_as_a_model_error() {
    let server = Server::with(|_, _| Answer::openai(" \n"));
    let place = place(json!({ "retry": { "attempts": 3, "base_ms": 1, "max_ms": 1 } }));
    let ran = run(&place, &server);
    let result = ran.json();
    assert_eq!((ran.code, &result["termination"], server.requests().len()), (1, &json!("model_error"), 3), "{ran:#?}");
    assert_eq!((&result["error"]["code"], &result["error"]["retryable"]), (&json!("model_protocol"), &json!(true)));
}

#[test]
fn the_runs_time_bounds_a_wait_that_a_server_asks_for_and_its_attempts_are_kept() {
    let server = Server::with(|_, _| Answer::json("{}").status(429).header("retry-after", "120"));
    let place = place(json!({ "timeout_ms": 3_000 }));
    let ran = run(&place, &server);
    let result = ran.json();
    assert_eq!((ran.code, &result["termination"]), (1, &json!("timeout")), "{ran:#?}");
    assert_eq!((server.requests().len(), &result["attempts"][0]["delay_ms"]), (1, &json!(120_000)), "{result:#}");
}

const LOADING: &str = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;

#[test]
fn a_server_that_still_loads_its_model_is_waited_for() {
    let loading = Answer::json(LOADING).status(503);
    let server = Server::with(move |number, _| if number < 6 { loading.clone() } else { done() });
    let ran = run(&place(json!({ "retry": { "base_ms": 1, "max_ms": 1 } })), &server);
    let result = ran.json();
    assert_eq!((ran.code, &result["metadata"]["model_retries"]), (0, &json!(6)), "{ran:#?}");
    assert!(result["attempts"][0]["reason"].as_str().unwrap().contains("Loading model"), "{result:#}");
}

#[test]
fn a_run_whose_model_stays_away_pauses_and_goes_on_when_it_is_resumed() {
    let server = Server::with(|number, _| if number < 5 { Answer::json(LOADING).status(503) } else { done() });
    let place = place(json!({ "on_model_outage": "pause", "retry": { "attempts": 2, "base_ms": 1, "max_ms": 1 } }));
    let ran = run(&place, &server);
    let result = ran.json();
    assert_eq!((ran.code, &result["status"], &result["termination"]), (3, &json!("paused"), &json!("model_error")));
    assert!(result["pause"]["question"].as_str().unwrap().contains("Loading model"), "{result:#}");
    let environment = [("OPENAI_BASE_URL", server.url())];
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let refused = place.call_with(&["resume", "r", "--answer", "x"], &environment);
    assert!(refused.code == 2 && refused.stderr.contains("waits for its model"), "{refused:#?}");
    let retried = place.call_with(&["resume", "r", "--retry"], &environment);
    assert_eq!(retried.code, 3, "{retried:#?}");
    for words in ["The model can't be reached", "resume r"] {
        assert!(retried.stderr.contains(words) || retried.stdout.contains(words), "{words}: {retried:#?}");
    }
    let page = place.call(&["trace", "r", "--format", "html"]);
    assert!(page.stdout.contains("be reached</h2>"), "{page:#?}");
    let resumed = place.call_with(&["resume", "r", "--output", "json"], &environment);
    let result = resumed.json();
    assert_eq!((resumed.code, &result["result"]["answer"]), (0, &json!("done")), "{resumed:#?}");
    assert_eq!((&result["metadata"]["model_retries"], server.requests().len()), (&json!(3), 6), "{result:#}");
}

#[test]
fn a_reply_that_stalls_or_takes_too_long_is_asked_for_again() {
    for limit in ["stall_timeout_ms", "reply_timeout_ms"] {
        let server = Server::with(|number, _| if number == 0 { done().stalling() } else { done() });
        let ran = run(&place(json!({ limit: 300, "retry": fast() })), &server);
        let result = ran.json();
        let reason = result["attempts"][0]["reason"].as_str().unwrap_or_default().to_owned();
        assert!(ran.code == 0 && reason.contains("300 ms"), "{limit}: {ran:#?}");
    }
}

#[test]
fn the_runs_time_bounds_a_server_that_never_answers() {
    let gate = Gate::default();
    let silent = done().behind(&gate);
    let server = Server::with(move |_, _| silent.clone());
    let ran = run(&place(json!({ "timeout_ms": 300 })), &server);
    gate.open();
    assert_eq!((ran.code, &ran.json()["termination"]), (1, &json!("timeout")), "{ran:#?}");
}
