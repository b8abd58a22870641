//! Runs that have ended and continue: a retry after an outage of the model, and raised limits.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, Ran, complete, document, think};
use crate::run::decision_record::user;

fn keep(key: &str) -> Value {
    think("__store_memory__", json!({ "key": key, "value": 1 }))
}

/// Two attempts of a request that fail.
fn away() -> [Value; 2] {
    [json!({ "http": 503, "body": "overloaded" }), json!({ "http": 503, "body": "overloaded" })]
}

/// A place whose model says this.
fn place(properties: Value, replies: &[Value]) -> Place {
    let place = Place::new();
    place.json("loop.json", &document(&properties));
    place.json("script.json", &json!({ "replies": replies }));
    place
}

/// A variable names nobody: the record has the user of the system.
const ANA: [(&str, &str); 1] = [("USER", "ana")];

fn start(place: &Place) -> Ran {
    let args = ["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"];
    place.call_with(&args, &ANA)
}

/// `loopctl VERB r` with the script.
fn go_on(place: &Place, verb: &str, more: &[&str]) -> Ran {
    let mut args = vec![verb, "r", "--script", "script.json", "--output", "json"];
    args.extend(more);
    place.call_with(&args, &ANA)
}

fn trace(place: &Place) -> Value {
    place.call(&["trace", "r", "--format", "json"]).json()
}

/// That a command is refused with these words, and changes nothing.
fn refused(place: &Place, verb: &str, more: &[&str], words: &str) {
    let before = trace(place);
    let ran = go_on(place, verb, more);
    assert_eq!(ran.code, 2, "{verb} {more:?}: {ran:#?}");
    assert!(ran.stderr.contains(words), "{verb} {more:?}: {words}: {ran:#?}");
    assert_eq!(trace(place), before, "{verb} {more:?}: nothing changed");
}

#[test]
fn a_run_whose_model_was_away_is_retried_at_the_failed_step() {
    let [one, two] = away();
    let place = place(json!({}), &[keep("a"), one, two, keep("b"), complete(json!("done"))]);
    let failed = start(&place);
    let result = failed.json();
    assert_eq!((failed.code, &result["error"]["retryable"]), (1, &json!(true)), "{failed:#?}");
    let human = place.call(&["run", "loop.json", "--run-id", "r", "--script", "script.json"]);
    assert!(human.stderr.contains("retry r --script script.json"), "the end says how to go on: {human:#?}");
    let done = go_on(&place, "retry", &[]);
    let result = done.json();
    assert_eq!((done.code, &result["result"]["answer"]), (0, &json!("done")), "{done:#?}");
    assert_eq!((&result["iterations"], &result["metadata"]["model_retries"]), (&json!(3), &json!(1)), "{result:#}");
    let record = &result["continuations"][0];
    assert_eq!((&record["by"], &record["iterations"]), (&json!(user()), &json!(1)), "{result:#}");
    assert_eq!(record["termination"], "model_error");
    assert!(record["error"].as_str().unwrap().contains("503") && record["limits"].is_null(), "{record}");
    for format in ["text", "html"] {
        let shown = place.call(&["trace", "r", "--format", format]).stdout;
        assert!(shown.contains(&format!("retried by {} at ", user())), "{format}: {shown}");
    }
    refused(&place, "retry", &[], "the run has completed: there is nothing to retry");
}

#[test]
fn a_retry_is_an_event_and_one_that_fails_again_can_be_made_again() {
    let replies = [away().to_vec(), away().to_vec(), vec![complete(json!("done"))]].concat();
    let place = place(json!({}), &replies);
    assert_eq!(start(&place).code, 1);
    let events = place.call_with(&["retry", "r", "--script", "script.json", "--output", "ndjson"], &ANA);
    let events: Vec<Value> = events.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["run_resumed", "retried", "model_asked", "model_retried", "run_ended", "result"]);
    assert_eq!((&events[1]["by"], &events[1]["termination"]), (&json!(user()), &json!("model_error")));
    let done = go_on(&place, "retry", &[]);
    assert_eq!((done.code, done.json()["continuations"].as_array().map(Vec::len)), (0, Some(2)), "{done:#?}");
}

#[test]
fn what_a_retry_does_not_change_is_not_retried() {
    let denied = json!({ "http": 404, "body": "no such model" });
    for (properties, replies, words) in [
        (json!({ "max_iterations": 1 }), vec![keep("a")], "Raise `max_iterations` when you resume it"),
        (json!({}), vec![denied], "the run did not fail for a reason outside of it"),
        (json!({}), vec![think("__pause_for_human__", json!({ "question": "?" }))], "the run waits for a human"),
        (json!({ "on_stuck": { "iterations": 2 } }), vec![keep("a"), keep("a")], "did not fail for a reason outside"),
    ] {
        let place = place(properties, &replies);
        start(&place);
        refused(&place, "retry", &[], words);
    }
    let cancelled = place(json!({}), &[think("__pause_for_human__", json!({ "question": "?" }))]);
    start(&cancelled);
    assert_eq!(cancelled.call(&["cancel", "r"]).code, 0);
    refused(&cancelled, "retry", &[], "the run was cancelled, and did not fail");
}

#[test]
fn a_key_that_is_refused_lies_outside_of_the_run() {
    for status in [401, 402, 403] {
        let replies = [keep("a"), json!({ "http": status, "body": "token expired" }), complete(json!("done"))];
        let place = place(json!({}), &replies);
        let failed = start(&place);
        let error = failed.json()["error"].clone();
        assert_eq!((failed.code, &error["code"], &error["retryable"]), (1, &json!("model_refused"), &json!(true)));
        let done = go_on(&place, "retry", &[]);
        assert_eq!((done.code, &done.json()["result"]["answer"]), (0, &json!("done")), "{done:#?}");
    }
}

#[test]
fn a_run_that_waits_for_its_model_is_retried_too() {
    let [one, two] = away();
    let place = place(json!({ "on_model_outage": "pause" }), &[one, two, complete(json!("done"))]);
    assert_eq!(start(&place).code, 3);
    let done = go_on(&place, "retry", &[]);
    assert_eq!((done.code, &done.json()["continuations"][0]["by"]), (0, &json!(user())), "{done:#?}");
}

#[test]
fn a_run_that_is_driven_is_neither_retried_nor_given_more() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |_, _| Answer::openai(&complete(json!("done")).to_string()).behind(&held));
    let place = Place::new();
    place.json("loop.json", &document(&json!({})));
    let url = server.url();
    let run = place.start(&["run", "loop.json", "--run-id", "r", "--model", "m"], &[("OPENAI_BASE_URL", &url)]);
    server.wait_for(1);
    for args in [["retry", "r", "--output", "json"], ["resume", "r", "--max-iterations", "90"]] {
        let ran = place.call_with(&args, &[("OPENAI_BASE_URL", &url)]);
        assert!(ran.code == 2 && ran.stderr.contains("another"), "{args:?}: {ran:#?}");
    }
    gate.open();
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_run_that_ended_by_its_iterations_continues_with_more() {
    let place = place(json!({ "max_iterations": 2 }), &[keep("a"), keep("b"), keep("c"), complete(json!("done"))]);
    let ended = place.call(&["run", "loop.json", "--run-id", "r", "--script", "script.json"]);
    let hint = "resume r --max-iterations 4 --script script.json";
    assert!(ended.code == 1 && ended.stderr.contains(hint), "{ended:#?}");
    let done = go_on(&place, "resume", &["--max-iterations", "4"]);
    let result = done.json();
    assert_eq!((done.code, &result["iterations"]), (0, &json!(4)), "{done:#?}");
    let record = &result["continuations"][0];
    assert_eq!((&record["by"], &record["limits"]), (&json!(user()), &json!({ "max_iterations": 4 })), "{record}");
    assert_eq!(record["termination"], "max_iterations");
    for format in ["text", "html"] {
        let shown = place.call(&["trace", "r", "--format", format]).stdout;
        assert!(
            shown.contains(&format!("limits raised by {} at ", user())) && shown.contains("max_iterations 4"),
            "{format}: {shown}"
        );
    }
    refused(&place, "resume", &["--max-iterations", "9"], "the run has completed");
}

#[test]
fn raised_limits_end_a_run_again_and_can_be_raised_again() {
    let place = place(json!({ "max_iterations": 1 }), &[keep("a"), keep("b"), complete(json!("done"))]);
    assert_eq!(start(&place).code, 1);
    let again = go_on(&place, "resume", &["--max-iterations", "2"]);
    assert_eq!((again.code, &again.json()["error"]["message"]), (1, &json!("2 iterations passed without an answer")));
    refused(&place, "resume", &["--max-iterations", "2"], "`max_iterations` must be more than 2");
    assert_eq!(go_on(&place, "resume", &["--max-iterations", "3"]).code, 0);
}

#[test]
fn a_budget_of_tokens_or_dollars_is_raised() {
    let priced = json!({ "model": "m", "models": { "m": {
        "provider": "script", "script": "script.json", "price": { "input": 1000, "output": 1000 } } } });
    let says = |reply: Value| json!({ "text": reply.to_string(), "usage": { "input": 900, "output": 100 } });
    for (budget, less, hint, more) in [
        (json!({ "tokens": 1000 }), "--budget-tokens", "--budget-tokens 2000", "2000"),
        (json!({ "cost_usd": 0.9 }), "--budget-usd", "--budget-usd 2", "2"),
    ] {
        let place = place(json!({ "budget": budget }), &[says(keep("a")), says(complete(json!("done")))]);
        place.json("loopctl.json", &priced);
        let ended = place.call(&["run", "loop.json", "--run-id", "r"]);
        assert!(ended.code == 1 && ended.stderr.contains(&format!("resume r {hint}\n")), "{ended:#?}");
        let low = place.call(&["resume", "r", less, "0.5"]);
        assert!(low.code == 2, "{low:#?}");
        let done = place.call(&["resume", "r", less, more, "--output", "json"]);
        assert_eq!((done.code, &done.json()["result"]["answer"]), (0, &json!("done")), "{done:#?}");
    }
}

#[test]
fn both_limits_of_a_budget_that_are_used_up_must_be_raised() {
    let priced = json!({ "model": "m", "models": { "m": {
        "provider": "script", "script": "script.json", "price": { "input": 1000, "output": 1000 } } } });
    let says = |reply: Value| json!({ "text": reply.to_string(), "usage": { "input": 900, "output": 100 } });
    let place = place(
        json!({ "budget": { "tokens": 1000, "cost_usd": 1 } }),
        &[says(keep("a")), says(complete(json!("done")))],
    );
    place.json("loopctl.json", &priced);
    let ended = place.call(&["run", "loop.json", "--run-id", "r"]);
    assert!(ended.stderr.contains("resume r --budget-tokens 2000 --budget-usd 2\n"), "{ended:#?}");
    let half = place.call(&["resume", "r", "--budget-usd", "2"]);
    assert!(half.code == 2 && half.stderr.contains("raise `budget.tokens` (1000 of 1000 are used) too"), "{half:#?}");
    assert_eq!(place.call(&["resume", "r", "--budget-usd", "2", "--budget-tokens", "5000"]).code, 0);
}

#[test]
fn the_time_of_a_run_is_raised() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |number, _| {
        let answer = Answer::openai(&complete(json!("done")).to_string());
        if number == 0 { answer.behind(&held) } else { answer }
    });
    let place = Place::new();
    place.json("loop.json", &document(&json!({ "timeout_ms": 300 })));
    let url = server.url();
    let env = [("OPENAI_BASE_URL", url.as_str())];
    let ended = place.call_with(&["run", "loop.json", "--run-id", "r", "--model", "m"], &env);
    gate.open();
    assert!(ended.code == 1 && ended.stderr.contains("resume r --timeout-ms "), "{ended:#?}");
    let low = place.call_with(&["resume", "r", "--timeout-ms", "100"], &env);
    assert!(low.code == 2 && low.stderr.contains("`timeout_ms` must be more than"), "{low:#?}");
    let done = place.call_with(&["resume", "r", "--timeout-ms", "600000", "--output", "json"], &env);
    assert_eq!((done.code, &done.json()["result"]["answer"]), (0, &json!("done")), "{done:#?}");
}

#[test]
fn a_limit_that_did_not_end_the_run_or_that_it_has_not_is_not_raised() {
    let ended = place(json!({ "max_iterations": 1, "budget": { "tokens": 100_000 } }), &[keep("a"), keep("b")]);
    start(&ended);
    for (flags, words) in [
        (["--timeout-ms", "9000000"], "this limit did not end the run: 1 iteration passed"),
        (["--budget-tokens", "200000"], "this limit did not end the run"),
        (["--max-iterations", "1"], "`max_iterations` must be more than 1, which is used already"),
        (["--budget-usd", "nothing"], "above 0"),
    ] {
        refused(&ended, "resume", &flags, words);
    }
    refused(
        &ended,
        "resume",
        &["--max-iterations", "5", "--budget-tokens", "90000"],
        "it can be raised, and not lowered",
    );
    refused(&ended, "resume", &["--max-iterations", "5", "--budget-usd", "2"], "the run has no `budget.cost_usd`");
    let stuck = place(json!({ "on_stuck": { "iterations": 2 } }), &[keep("a"), keep("a")]);
    start(&stuck);
    refused(&stuck, "resume", &["--max-iterations", "900"], "no limit ended the run: ");
    let [one, two] = away();
    let unreached = place(json!({}), &[one, two]);
    start(&unreached);
    refused(&unreached, "resume", &["--max-iterations", "900"], "retry it");
}

#[test]
fn limits_are_raised_while_a_run_waits_with_the_decision_or_before_it() {
    let ask = think("__pause_for_human__", json!({ "question": "?" }));
    let replies = [ask, keep("a"), keep("b"), complete(json!("done"))];
    let together = place(json!({ "max_iterations": 2 }), &replies);
    assert_eq!(start(&together).code, 3);
    refused(&together, "resume", &["--max-iterations", "9", "--approve"], "the run waits for an answer");
    let done = go_on(&together, "resume", &["--max-iterations", "9", "--answer", "yes"]);
    assert_eq!((done.code, &done.json()["continuations"][0]["limits"]["max_iterations"]), (0, &json!(9)), "{done:#?}");
    let before = place(json!({ "max_iterations": 2 }), &replies);
    start(&before);
    let waits = go_on(&before, "resume", &["--max-iterations", "9"]);
    assert_eq!((waits.code, &waits.json()["pause"]["question"]), (3, &json!("?")), "{waits:#?}");
    assert_eq!(go_on(&before, "resume", &["--answer", "yes"]).code, 0);
}

#[test]
fn a_cancelled_run_continues_with_higher_limits_where_it_was() {
    let ask = think("__pause_for_human__", json!({ "question": "Which?" }));
    let place = place(json!({ "max_iterations": 2 }), &[ask, keep("a"), complete(json!("done"))]);
    start(&place);
    assert_eq!(place.call(&["cancel", "r", "--reason", "too dear"]).code, 0);
    let waits = go_on(&place, "resume", &["--max-iterations", "9"]);
    assert_eq!((waits.code, &waits.json()["pause"]["question"]), (3, &json!("Which?")), "{waits:#?}");
    let done = go_on(&place, "resume", &["--answer", "that"]);
    let record = &done.json()["continuations"][0];
    assert_eq!((done.code, &record["termination"], &record["error"]), (0, &json!("cancelled"), &json!("too dear")));
}

#[test]
fn a_model_that_was_asked_for_its_last_answer_reads_that_it_may_go_on() {
    for dialect in ["json", "tool_calls"] {
        let properties = json!({ "max_iterations": 1, "on_limit": "answer", "dialect": dialect });
        let place = place(properties, &[keep("a"), keep("b"), keep("c"), complete(json!("done"))]);
        let ended = start(&place);
        assert_eq!((ended.code, &ended.json()["termination"]), (1, &json!("max_iterations")), "{dialect}: {ended:#?}");
        let done = go_on(&place, "resume", &["--max-iterations", "9"]);
        assert_eq!((done.code, &done.json()["iterations"]), (0, &json!(4)), "{dialect}: {done:#?}");
    }
}

#[test]
fn a_forced_answer_is_an_end_that_no_limit_changes() {
    let place = place(json!({ "max_iterations": 1, "on_limit": "answer" }), &[keep("a"), complete(json!("done"))]);
    let ended = start(&place);
    assert_eq!(ended.json()["termination"], "forced_answer", "{ended:#?}");
    refused(&place, "resume", &["--max-iterations", "9"], "the run has completed");
}
