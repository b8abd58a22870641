//! Cascades: loops and `llm` actions that one turn calls together, and loops in loops. What they spend passes
//! the budget by one call of a model at most, and one run does not call others without end.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, observed, think, web};

const SPENT: &str = "Error: not called: the run's budget is spent";

/// A turn of these calls, in the words of the dialect `tags`.
fn turn(calls: &[(&str, Value)]) -> String {
    let call = |(name, input): &(&str, Value)| {
        format!("<tool_call>{}</tool_call>\n", json!({ "name": name, "arguments": input }))
    };
    calls.iter().map(call).collect()
}

/// The loop `loop.json`, which speaks `tags`, with these tools and more properties.
fn boss(place: &Place, tools: &[Value], properties: Value) {
    let mut all = json!({ "mode": "react", "objective": "Get it done.", "dialect": "tags", "max_iterations": 100,
        "on_stuck": { "iterations": 1000 }, "tools": tools });
    all.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
    place.json("loop.json", &json!({ "type": "loop", "name": "boss", "properties": all }));
}

/// A loop that is called, with these tools and more properties.
fn child(place: &Place, name: &str, tools: &[Value], properties: Value) {
    let mut all = json!({ "mode": "react", "objective": "Help.", "tools": tools });
    all.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
    let document = json!({ "type": "loop", "name": name, "description": "Helps.",
        "input": { "type": "object", "properties": { "n": { "type": "integer" } } }, "properties": all });
    place.json(&format!("loops/{name}.json"), &document);
}

fn calls(name: &str) -> Value {
    json!({ "type": "loop", "name": name })
}

/// A reply that used 30 tokens.
fn said(reply: impl ToString) -> Value {
    json!({ "text": reply.to_string(), "usage": { "input": 20, "output": 10 } })
}

fn goes_on(message: &str) -> Value {
    think("__log_progress__", json!({ "message": message }))
}

fn tokens(result: &Value) -> u64 {
    result["usage"]["input_tokens"].as_u64().unwrap() + result["usage"]["output_tokens"].as_u64().unwrap()
}

fn trace(place: &Place, run: &str) -> Value {
    place.call(&["trace", run, "--format", "json"]).json()
}

#[test]
fn loops_that_one_turn_calls_pass_the_budget_by_one_call_at_most() {
    let helper = [said(goes_on("one")), said(goes_on("two")), said(complete(json!("helped")))];
    for (budget, called) in [(json!({ "budget": { "tokens": 100 } }), 1), (json!({}), 4)] {
        let place = Place::new();
        boss(&place, &[calls("helper")], budget);
        child(&place, "helper", &[], json!({}));
        let four = turn(&[0, 1, 2, 3].map(|n| ("helper", json!({ "n": n }))));
        place.json(
            "script.json",
            &json!({ "replies": [said(four), said("<answer>ok</answer>")], "loops": { "helper": helper } }),
        );
        let (ran, result) = place.run(&["--run-id", "r"]);
        let seen: Vec<String> = result["trace"].as_array().unwrap().iter().take(4).map(observed).collect();
        let made = seen.iter().filter(|seen| *seen == "helped").count();
        assert_eq!(made, called, "{ran:#?}");
        if called == 1 {
            assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
            assert_eq!(seen[1..], [SPENT, SPENT, SPENT]);
            assert!((100..130).contains(&tokens(&result)), "over it by one call at most: {result:#}");
            assert_eq!(result["metadata"]["tool_calls_made"], 1);
        } else {
            // The twin: without a budget all of them spend, far more than that.
            assert_eq!((ran.code, tokens(&result)), (0, 30 + 4 * 90 + 30), "{ran:#?}");
        }
    }
}

/// A model of OpenAI's protocol that says these things again and again, at 15 tokens a reply.
fn model(replies: Vec<String>) -> Server {
    Server::with(move |number, _| Answer::openai(&replies[number % replies.len()]))
}

#[test]
fn llm_actions_and_loops_that_one_turn_mixes_pass_the_budget_by_one_call_at_most() {
    for (budget, asked) in [(json!({ "budget": { "tokens": 40 } }), [1, 1, 1]), (json!({}), [2, 2, 4])] {
        let part = |n: u64| ("helper", json!({ "n": n }));
        let ask = |text: &str| ("translate", json!({ "text": text }));
        let mixed = turn(&[ask("a"), part(1), part(2), ask("b")]);
        let main = model(vec![mixed, "<answer>ok</answer>".to_owned()]);
        // They come in any order; the conversation shows whose reply it is.
        let helper = Server::reading(|_, request| {
            let went_on = request.text().contains("went-on-already");
            let reply = if went_on { complete(json!("helped")) } else { goes_on("went-on-already") };
            Answer::openai(&reply.to_string())
        });
        let translator = model(vec!["hello".to_owned()]);
        let place = Place::new();
        let at = |server: &Server| json!({ "provider": "openai", "base_url": server.url() });
        place.json(
            "loopctl.json",
            &json!({ "model": "main", "models": {
                "main": at(&main), "helper": at(&helper), "translator": at(&translator) } }),
        );
        place.json(
            "actions/translate.json",
            &json!({ "action_name": "translate", "kind": "llm", "description": "Translates.",
                "template": "Translate {{text}}", "model": "translator" }),
        );
        boss(&place, &[json!({ "type": "action", "name": "translate" }), calls("helper")], budget);
        child(&place, "helper", &[], json!({ "model": "helper", "on_stuck": { "iterations": 100 } }));
        let ran = place.call(&["run", "loop.json", "--output", "json", "--run-id", "r", "--store", "memory"]);
        let result = ran.json();
        let replies = [&main, &translator, &helper].map(|server| server.requests().len());
        let (ended, used, refused) = if asked == [1, 1, 1] { ("budget", 45, 2) } else { ("complete", 8 * 15, 0) };
        assert_eq!((replies, &result["termination"]), (asked, &json!(ended)), "{ran:#?}");
        assert_eq!(tokens(&result), used, "40 are allowed, and a call is 15: {result:#}");
        let trace = result["trace"].to_string();
        assert_eq!(trace.matches("\"Error: not called: the run's budget is spent\"").count(), refused, "{trace}");
    }
}

/// A server whose `/slow` answers when `/ping` was asked twice, and 503 when that takes too long.
fn gated() -> Server {
    let (pings, changed) = (Mutex::new(0_usize), Condvar::new());
    Server::with(move |_, request| {
        let mut count = pings.lock().unwrap();
        if request.path == "/ping" {
            *count += 1;
            changed.notify_all();
            return Answer::json(&json!({ "pong": true }));
        }
        let waited = changed.wait_timeout_while(count, Duration::from_secs(20), |count| *count < 2).unwrap();
        let late = waited.1.timed_out();
        Answer::json(&json!({ "slow": true })).status(if late { 503 } else { 200 })
    })
}

#[test]
fn a_call_that_waited_for_its_turn_begins_while_others_of_its_turn_are_still_under_way() {
    let server = gated();
    let place = Place::new();
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    for name in ["slow", "ping"] {
        place.json(&format!("actions/{name}.json"), &web(name, &format!("{}/{name}", server.url()), json!({})));
    }
    boss(
        &place,
        &[json!({ "type": "action", "name": "slow" }), calls("helper")],
        json!({ "budget": { "tokens": 1_000_000 } }),
    );
    child(&place, "helper", &[json!({ "type": "action", "name": "ping" })], json!({}));
    let calls = turn(&[("slow", json!({})), ("helper", json!({ "n": 1 })), ("helper", json!({ "n": 2 }))]);
    place.json(
        "script.json",
        &json!({ "replies": [calls, "<answer>ok</answer>"],
            "loops": { "helper": [think("ping", json!({})), complete(json!("helped"))] } }),
    );
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], json!({ "slow": true }), "{result:#}");
    // Under a budget the second loop begins when the first has ended.
    let moment = |run: &str, field: &str| trace(&place, run)[field].as_str().unwrap().to_owned();
    assert!(moment("r.1.1", "finished_at") <= moment("r.1.2", "started_at"));
}

#[test]
fn loops_that_one_turn_calls_run_side_by_side_where_there_is_no_budget() {
    let both = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let server = Server::with(move |_, _| {
        let (count, changed) = &*both;
        let mut count = count.lock().unwrap();
        *count += 1;
        changed.notify_all();
        let waited = changed.wait_timeout_while(count, Duration::from_secs(20), |count| *count < 2).unwrap();
        let late = waited.1.timed_out();
        Answer::json(&json!({ "pong": true })).status(if late { 503 } else { 200 })
    });
    let place = Place::new();
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    place.json("actions/ping.json", &web("ping", &format!("{}/ping", server.url()), json!({})));
    boss(&place, &[calls("helper")], json!({}));
    child(&place, "helper", &[json!({ "type": "action", "name": "ping" })], json!({}));
    let calls = turn(&[("helper", json!({ "n": 1 })), ("helper", json!({ "n": 2 }))]);
    place.json(
        "script.json",
        &json!({ "replies": [calls, "<answer>ok</answer>"],
            "loops": { "helper": [think("ping", json!({})), complete(json!("helped"))] } }),
    );
    let (ran, _) = place.run(&["--run-id", "r"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    for run in ["r.1.0", "r.1.1"] {
        assert_eq!(trace(&place, run)["trace"][0]["success"], true, "neither was answered before both had come");
    }
}

#[test]
fn loops_in_each_other_have_no_last_word_when_the_outermost_has_nothing_left() {
    let place = Place::new();
    let answer = || json!({ "on_limit": "answer" });
    boss(&place, &[calls("helper")], json!({ "on_limit": "answer", "budget": { "tokens": 100 } }));
    child(&place, "helper", &[calls("deep")], answer());
    child(&place, "deep", &[], answer());
    let script = |boss: &[Value]| {
        json!({ "replies": boss, "loops": {
            "helper": [said(think("deep", json!({}))), said(complete(json!("helped")))],
            "deep": [said(goes_on("a")), said(goes_on("b")), said(complete(json!("so far")))] } })
    };
    let call = || said(turn(&[("helper", json!({}))]));
    place.json("script.json", &script(&[call(), said("<answer>so far</answer>")]));
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!((ran.code, &result["termination"]), (0, &json!("forced_answer")), "{ran:#?}");
    // Two in `boss` and `helper`, two in `deep`, which passes it, and the one last word of `boss`.
    assert_eq!(tokens(&result), 150, "{result:#}");
    assert_eq!(trace(&place, "r.1.0")["termination"], "budget");
    assert_eq!(trace(&place, "r.1.0.1.0")["termination"], "budget");
    // The twin: a budget of its own, where its caller has more, leaves the called loop its last word.
    child(&place, "deep", &[], json!({ "on_limit": "answer", "budget": { "tokens": 60 } }));
    boss(&place, &[calls("helper")], json!({ "on_limit": "answer", "budget": { "tokens": 1_000 } }));
    let (ran, result) = place.run(&["--run-id", "twin"]);
    assert_eq!((ran.code, tokens(&result)), (0, 210), "{ran:#?}");
    assert_eq!(trace(&place, "twin.1.0.1.0")["termination"], "forced_answer");
}

#[test]
fn an_llm_action_is_not_tried_again_when_its_failed_attempts_used_what_was_left() {
    for (budget, asked) in [(json!({ "budget": { "tokens": 25 } }), 1), (json!({}), 2)] {
        let main = model(vec![turn(&[("translate", json!({ "text": "a" }))]), "<answer>ok</answer>".to_owned()]);
        let silent = model(vec![String::new(), "hello".to_owned()]);
        let place = Place::new();
        let at = |server: &Server| json!({ "provider": "openai", "base_url": server.url() });
        place.json("loopctl.json", &json!({ "model": "main", "models": { "main": at(&main), "silent": at(&silent) } }));
        place.json(
            "actions/translate.json",
            &json!({ "action_name": "translate", "kind": "llm", "description": "Translates.",
                "template": "Translate {{text}}", "model": "silent" }),
        );
        boss(&place, &[json!({ "type": "action", "name": "translate" })], budget);
        let ran = place.call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
        assert_eq!(silent.requests().len(), asked, "{ran:#?}");
    }
}

#[test]
fn one_run_calls_a_thousand_loops_and_no_more_also_when_it_was_resumed() {
    let place = Place::new();
    boss(&place, &[calls("helper")], json!({}));
    child(&place, "helper", &[], json!({}));
    let thirty_two = |turn_number: u64| {
        let numbers: Vec<_> = (0..32).map(|n| ("helper", json!({ "n": turn_number * 32 + n }))).collect();
        json!(turn(&numbers))
    };
    let asks = json!(turn(&[("__pause_for_human__", json!({ "question": "Go on?" }))]));
    let mut replies: Vec<Value> = (0..32).map(thirty_two).collect();
    replies.insert(16, asks);
    replies.push(json!("<answer>ok</answer>"));
    place.json("script.json", &json!({ "replies": replies, "loops": { "helper": [complete(json!("helped"))] } }));
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!((ran.code, &result["status"]), (3, &json!("paused")), "{}", ran.stderr);
    let args = ["resume", "r", "--answer", "yes", "--script", "script.json", "--output", "json"];
    let ran = place.call(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.json();
    let entries: Vec<&Value> =
        result["trace"].as_array().unwrap().iter().filter(|entry| entry["action"] == "helper").collect();
    let helped = entries.iter().filter(|entry| entry["observation"] == "helped").count();
    assert_eq!((entries.len(), helped), (1024, 1000));
    let refused = entries.last().unwrap();
    assert_eq!(
        observed(refused),
        "Error: not called: this run and the loops under it have called 1000 loops, and no more are allowed"
    );
    assert!(refused.get("run_id").is_none(), "{refused:#}");
}
