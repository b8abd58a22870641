//! The rate of a model over the processes of a store.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete};

fn model() -> Server {
    Server::with(|_, _| Answer::openai(&complete(json!("done")).to_string()))
}

fn place(model: &Server, rate: Value, more: Value) -> Place {
    let place = Place::new();
    let properties =
        json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main", "max_tokens": 100 });
    let properties = crate::common::with(properties, more);
    place.json("loop.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let main = json!({ "provider": "openai", "base_url": model.url(), "rate": rate });
    place.json("loopctl.json", &json!({ "models": { "main": main } }));
    place
}

fn run(place: &Place, env: &[(&str, &str)]) -> Ran {
    place.call_with(&["run", "loop.json", "--output", "json"], &[&[("LOOPCTL_LOG", "warn")], env].concat())
}

#[test]
fn a_process_waits_for_what_another_one_has_sent_and_says_so_where_its_run_has_no_time_for_that() {
    let model = model();
    let place = place(&model, json!({ "requests_per_minute": 1 }), json!({ "timeout_ms": 1_500 }));
    assert_eq!(run(&place, &[]).json()["status"], "completed");
    let late = run(&place, &[]);
    let ended = late.json();
    assert_eq!(
        (&ended["termination"], &ended["metadata"]["model_retries"]),
        (&json!("timeout"), &json!(0)),
        "{ended:#}"
    );
    let line = "a request waits for its turn for longer than its run or call has time";
    assert!(late.stderr.contains(line), "{}", late.stderr);
    let error = ended["error"]["message"].as_str().unwrap_or_else(|| panic!("{ended:#}"));
    assert!(error.ends_with("its request waited for its turn at the model \"main\""), "{error}");
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn tokens_that_a_reply_did_not_use_are_given_back_to_the_next_process() {
    let model = model();
    // A request takes a minute and more, and its reply says that it used 15 tokens.
    let place = place(&model, json!({ "tokens_per_minute": 600 }), json!({ "timeout_ms": 20_000 }));
    for _ in 0..2 {
        assert_eq!(run(&place, &[]).json()["status"], "completed");
    }
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn what_a_clock_took_that_was_hours_ahead_keeps_nobody_waiting() {
    let model = model();
    let place = place(&model, json!({ "requests_per_minute": 1 }), json!({ "timeout_ms": 20_000 }));
    place.file("clock", "36000000");
    assert_eq!(run(&place, &[("LOOPCTL_CLOCK", "clock")]).json()["status"], "completed");
    assert_eq!(run(&place, &[]).json()["status"], "completed");
    assert_eq!(model.requests().len(), 2);
}
