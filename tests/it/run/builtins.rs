//! Every built-in tool.

use serde_json::{Value, json};

use crate::common::{Place, complete, look, think};

#[test]
fn complete_without_an_answer_is_an_observation_and_the_run_goes_on() {
    let place = Place::new();
    place.looped(&json!({})).script(&[think("__complete__", json!({})), complete(json!("ok"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!(ran.code, 0);
    assert_eq!(result["trace"][0]["success"], false);
    assert!(result["trace"][0]["observation"].as_str().is_some_and(|text| text.contains("answer")), "{result:#}");
}

#[test]
fn confidence_is_1_when_none_is_given() {
    let place = Place::new();
    place.looped(&json!({})).script(&[complete(json!("ok"))]);
    assert_eq!(place.run(&[]).1["result"]["confidence"].as_f64(), Some(1.0));
}

#[test]
fn confidence_over_1_is_reported_and_refused() {
    let place = Place::new();
    place
        .looped(&json!({}))
        .script(&[think("__complete__", json!({ "answer": 1, "confidence": 1.5 })), complete(json!("ok"))]);
    let (_, result) = place.run(&[]);
    assert_eq!(result["iterations"], 2);
}

#[test]
fn an_answer_that_does_not_match_its_schema_is_reported_and_refused() {
    let place = Place::new();
    place
        .looped(&json!({ "answer_schema": { "type": "object", "required": ["decision"] } }))
        .script(&[complete(json!("yes")), complete(json!({ "decision": "yes" }))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["iterations"]), (0, &json!(2)));
    assert_eq!(result["result"]["answer"], json!({ "decision": "yes" }));
}

#[test]
fn memory_keeps_values_and_suggests_the_nearest_key() {
    let place = Place::new();
    place.looped(&json!({})).script(&[
        think("__store_memory__", json!({ "key": "customer", "value": { "id": 7 } })),
        think("__retrieve_memory__", json!({ "key": "customer" })),
        think("__retrieve_memory__", json!({ "key": "custmer" })),
        think("__retrieve_memory__", json!({})),
        complete(json!("ok")),
    ]);
    let (ran, result) = place.run(&[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][1]["observation"], json!({ "id": 7 }));
    assert!(result["trace"][2]["observation"].as_str().is_some_and(|text| text.contains("customer")));
    assert_eq!(result["trace"][3]["observation"], json!({ "keys": ["customer"] }));
}

#[test]
fn a_session_remembers_from_run_to_run_and_another_session_does_not() {
    let place = Place::new();
    place
        .looped(&json!({}))
        .script(&[think("__store_memory__", json!({ "key": "k", "value": "kept" })), complete(json!("ok"))]);
    place.run(&["--session", "one"]);
    place.script(&[think("__retrieve_memory__", json!({ "key": "k" })), complete(json!("ok"))]);
    let (_, same) = place.run(&["--session", "one"]);
    let (_, other) = place.run(&["--session", "two"]);
    let (_, none) = place.run(&[]);
    assert_eq!(same["trace"][0]["observation"], "kept");
    assert_eq!(other["trace"][0]["success"], false);
    assert_eq!(none["trace"][0]["success"], false);
}

#[test]
fn progress_is_shown_while_the_run_goes_on() {
    let place = Place::new();
    place.looped(&json!({})).script(&[
        think("__log_progress__", json!({ "message": "half way", "milestone": "middle", "percent": 50 })),
        complete(json!("ok")),
    ]);
    let ran = place.call(&["run", "loop.json", "--script", "script.json"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("half way") && ran.stderr.contains("50"), "{}", ran.stderr);
    assert_eq!(ran.stdout.trim(), "ok");
}

#[test]
fn the_old_workflow_tool_is_refused_when_no_workflow_is_declared() {
    let place = Place::new();
    place
        .looped(&json!({}))
        .script(&[think("__run_workflow__", json!({ "workflow_name": "w" })), complete(json!("ok"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!(ran.code, 0);
    assert_eq!(result["trace"][0]["success"], false);
}

#[test]
fn a_built_in_tool_by_another_case_is_no_tool() {
    let place = Place::new();
    place.looped(&json!({})).script(&[think("__Complete__", json!({ "answer": 1 })), complete(json!("ok"))]);
    let (_, result) = place.run(&[]);
    assert_eq!(result["result"]["answer"], "ok");
    assert!(result["trace"][0]["observation"].as_str().is_some_and(|text| text.contains("__complete__")));
}

#[test]
fn what_one_session_remembers_no_other_session_reads() {
    let place = Place::new();
    place.looped(&json!({}));
    let get = || think("__retrieve_memory__", json!({}));
    let odd = ["__proto__", "constructor", "a\u{0}b", "{{input.x}}", "k", "K"];
    let mut replies: Vec<_> = odd
        .iter()
        .map(|key| think("__store_memory__", json!({ "key": key, "value": format!("of one: {key}") })))
        .collect();
    replies.push(complete(json!("ok")));
    place.script(&replies);
    let (ran, result) = place.run(&["--session", "one"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let kept: Vec<&str> =
        odd.iter().enumerate().filter(|(at, _)| result["trace"][*at]["success"] == true).map(|(_, key)| *key).collect();
    assert!(kept.len() >= 4, "{result:#}");
    place.script(&[get(), complete(json!("ok"))]);
    for session in [vec!["--session", "two"], vec!["--session", "One"], vec!["--session", "one "], vec![]] {
        let (_, result) = place.run(&session);
        assert_eq!(result["trace"][0]["observation"], json!({ "keys": [] }), "{session:?}");
    }
    place.script(
        &kept.iter().map(|key| think("__retrieve_memory__", json!({ "key": key }))).chain([get()]).collect::<Vec<_>>(),
    );
    let (_, result) = place.run(&["--session", "one"]);
    for (at, key) in kept.iter().enumerate() {
        assert_eq!(result["trace"][at]["observation"], json!(format!("of one: {key}")));
    }
    assert_eq!(result["trace"][kept.len()]["observation"]["keys"].as_array().map(Vec::len), Some(kept.len()));
}

/// The first request of a loop with these properties: its system prompt, and the whole of it.
fn prompt(properties: Value) -> (String, Value) {
    let place = Place::new();
    place.looped(&properties);
    let server = [("OPENAI_BASE_URL", "http://127.0.0.1:1")];
    let request = place.call_with(&["prompt", "loop.json", "--model", "m"], &server);
    assert_eq!(request.code, 0, "{request:#?}");
    let request = request.json();
    (request["messages"][0]["content"].as_str().expect("a text").to_owned(), request)
}

#[test]
fn the_system_prompt_of_two_tools_has_less_than_600_tokens() {
    let (whole, _) = prompt(json!({}));
    let tokens = loopctl::engine::conversation::estimated_tokens(whole.len());
    assert!(tokens < 600, "{tokens} tokens: {whole}");
    for builtin in
        ["__complete__", "__pause_for_human__", "__store_memory__", "__retrieve_memory__", "__log_progress__"]
    {
        assert!(whole.contains(builtin), "{builtin}: {whole}");
    }
}

#[test]
fn built_in_tools_that_a_loop_leaves_out_are_neither_offered_nor_called() {
    let (prompt, _) = prompt(json!({ "builtins": ["__complete__", "__log_progress__"] }));
    assert!(prompt.contains("__log_progress__") && !prompt.contains("__store_memory__"), "{prompt}");
    let place = Place::new();
    let store = think("__store_memory__", json!({ "key": "k", "value": 1 }));
    place.looped(&json!({ "builtins": [] })).script(&[store, complete(json!("ok"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["trace"][0]["success"]), (0, &json!(false)), "{ran:#?}");
    assert!(result["trace"][0]["observation"].as_str().expect("a text").contains("no tool named"), "{result:#}");
}

#[test]
fn no_answer_is_taken_before_the_tools_were_called_that_must_be() {
    for required in [json!("any"), json!(["look"])] {
        let place = Place::new();
        let properties = json!({ "require_tool_before_answer": required });
        place.looped(&properties);
        let script = json!({ "replies": [complete(json!("early")), look("a"), complete(json!("late"))],
            "tools": { "look": [{ "found": 1 }] } });
        place.json("script.json", &script);
        let (ran, result) = place.run(&[]);
        assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("late")), "{ran:#?}");
        let why = result["trace"][0]["observation"].as_str().expect("a text");
        assert!(why.contains("the answer was not taken: call"), "{why}");
        let native = |more: Value| {
            let mut properties = more;
            properties["dialect"] = json!("tool_calls");
            prompt(properties).1["tool_choice"].clone()
        };
        assert_eq!(native(properties), "required");
        assert_eq!(native(json!({})), Value::Null);
    }
}

#[test]
fn a_call_that_a_human_did_not_allow_counts_as_asked_for() {
    for required in [json!("any"), json!(["look"])] {
        let place = Place::new();
        let tool = json!([{ "type": "action", "name": "look", "requires_approval": true }]);
        place.looped(&json!({ "require_tool_before_answer": required, "tools": tool }));
        let replies = [look("a"), complete(json!("It was not allowed."))];
        place.json("script.json", &json!({ "replies": replies, "tools": { "look": [{ "found": 1 }] } }));
        let asked = place.call(&["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"]);
        assert_eq!(asked.code, 3, "{asked:#?}");
        let ran = place.call(&["resume", "r", "--deny", "--script", "script.json", "--output", "json"]);
        assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!("It was not allowed.")), "{ran:#?}");
    }
}
