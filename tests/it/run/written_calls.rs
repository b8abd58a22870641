//! Calls that a model writes as text: no answer, whatever their form; and answers that only look like one.

use serde_json::{Value, json};

use crate::common::dialects::message_of;
use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete, web, with};

/// The protocols of models.
const PROVIDERS: [&str; 4] = ["openai", "openai-responses", "anthropic", "gemini"];

/// A reply of this protocol with a text.
fn says(provider: &str, text: &str) -> Answer {
    match provider {
        "anthropic" => Answer::anthropic(text),
        "openai-responses" => Answer::json(&json!({ "object": "response", "status": "completed", "output": [{
            "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] }] })),
        "gemini" => Answer::json(&json!({ "candidates": [{ "content": { "parts": [{ "text": text }] },
            "finishReason": "STOP" }] })),
        _ => Answer::openai(text),
    }
}

/// Plays a loop with the tool `lookup` whose model gives these answers, and 500 after them; returns also what the model was
/// sent.
fn played(provider: &str, properties: Value, answers: Vec<Answer>) -> (Ran, Vec<String>) {
    let server = Server::with(move |_, request| match request.path.starts_with("/look") {
        true => Answer::json("{\"state\":\"sent\"}"),
        false => Answer::json("{}"),
    });
    let model = Server::new(answers);
    let place = Place::new();
    let parameters =
        json!({ "type": "object", "properties": { "order_id": { "type": "string" }, "x": { "type": "integer" } } });
    let model_of = json!({ "provider": provider, "base_url": format!("{}/v1", model.url()) });
    place.actions(
        &[web("lookup", &format!("{}/look", server.url()), json!({ "parameters": parameters }))],
        &json!({ "allow": { "private_addresses": true }, "models": { "m": model_of }, "model": "m" }),
    );
    let path = place.path().join("loop.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
    let retry = json!({ "retry": { "attempts": 1 } });
    document["properties"] = with(with(document["properties"].clone(), retry), properties);
    place.json("loop.json", &document);
    let ran = place.call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
    (ran, model.requests().iter().map(crate::common::server::Request::text).collect())
}

#[test]
fn a_call_as_text_is_asked_for_as_a_real_call_in_every_protocol() {
    for provider in PROVIDERS {
        for (text, seen) in [
            (
                "I will look it up now.\n<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"order_id\": \"A-1\"}}\n</tool_call>",
                "<tool_call",
            ),
            ("[TOOL_CALLS]lookup[ARGS]{\"order_id\": \"A-1\"}", "[TOOL_CALLS]"),
            ("Action: lookup\nAction Input: {\"order_id\": \"A-1\"}", "Action: lookup"),
            ("<tool_response>\n{\"state\": \"sent\"}\n</tool_response>\nIt is sent.", "<tool_response"),
            ("{\"tool_calls\": [{\"function\": {\"name\": \"lookup\", \"arguments\": \"{}\"}}]}", "calls lookup"),
        ] {
            let answers = vec![says(provider, text), says(provider, "The order is on its way.")];
            let (ran, requests) = played(provider, json!({ "dialect": "tool_calls" }), answers);
            let result = ran.json();
            let answer = &result["result"]["answer"];
            assert_eq!((ran.code, answer), (0, &json!("The order is on its way.")), "{provider} {text}: {ran:#?}");
            assert_eq!(result["metadata"]["invalid_replies"], 1, "{result:#}");
            let why = result["trace"][0]["observation"].as_str().expect("why");
            assert!(why.contains("writes a tool call as text") && why.contains(seen), "{why}");
            assert!(requests[1].contains("Make it as a real tool call"), "{}", requests[1]);
        }
    }
}

#[test]
fn a_call_as_text_is_no_final_answer_and_no_thought() {
    for text in [
        "FINAL_ANSWER: <function=lookup>{\"order_id\": \"A-1\"}</function>",
        "<|channel|>commentary to=functions.lookup<|message|>{}<|call|>\nFINAL_ANSWER: it is sent",
        "lookup(order_id=\"A-1\")",
    ] {
        let answers = vec![Answer::openai(text), Answer::openai("FINAL_ANSWER: sent")];
        let (ran, _) = played("openai", json!({ "dialect": "final_answer" }), answers);
        let result = ran.json();
        assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("sent")), "{text}: {ran:#?}");
        let why = result["trace"][0]["observation"].as_str().expect("why");
        assert!(why.contains("writes a tool call as text"), "{text}: {why}");
    }
}

#[test]
fn a_last_word_that_writes_a_call_is_no_answer() {
    let call = || {
        message_of(&json!({ "role": "assistant", "content": "Hm.", "tool_calls": [{ "id": "a",
        "type": "function", "function": { "name": "lookup", "arguments": "{\"x\": 1}" } }] }))
    };
    let properties = json!({ "dialect": "tool_calls", "max_iterations": 1, "on_limit": "answer" });
    let written = Answer::openai("<tool_call>{\"name\": \"lookup\", \"arguments\": {}}</tool_call>");
    let (ran, _) = played("openai", properties.clone(), vec![call(), written]);
    assert_eq!((ran.code, &ran.json()["termination"]), (1, &json!("max_iterations")), "{ran:#?}");
    let (ran, _) = played("openai", properties, vec![call(), Answer::openai("It is sent.")]);
    assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!("It is sent.")), "{ran:#?}");
}

#[test]
fn an_answer_that_fits_its_schema_or_names_no_tool_is_never_refused_as_a_call() {
    let report = json!({ "name": "nightly-report", "parameters": { "region": "EU" } });
    let wrapped = json!({ "tool_calls": [{ "name": "other", "arguments": {} }] });
    let of_tool = json!({ "name": "lookup", "arguments": { "order_id": "A-1" } });
    let schema = json!({ "type": "object" });
    let texts = json!({ "type": "string", "pattern": "^<tool_call>" });
    for (answer, schema) in [
        (report.clone(), None),
        (report, Some(json!({ "type": "object", "required": ["name", "parameters"] }))),
        (wrapped, None),
        (of_tool, Some(schema)),
        (json!("Models write `<tool_call>` first, and lookup(order_id) is a tool."), None),
        (json!("name: lookup\ninput: none"), None),
        (json!("<tool_call>{\"name\": \"lookup\"}</tool_call>"), Some(texts)),
    ] {
        for dialect in ["tool_calls", "final_answer"] {
            let mut properties = json!({ "dialect": dialect });
            if let Some(schema) = &schema {
                properties["answer_schema"] = schema.clone();
            }
            let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            let said = if dialect == "final_answer" { format!("FINAL_ANSWER: {text}") } else { text.clone() };
            let (ran, _) = played("openai", properties, vec![Answer::openai(&said)]);
            let given = ran.json()["result"]["answer"].clone();
            assert_eq!(ran.code, 0, "{dialect} {answer}: {ran:#?}");
            assert!(given == answer || given == json!(text), "{dialect} {answer}: {given}");
        }
    }
    // A schema of texts says nothing about calls.
    let properties = json!({ "dialect": "tool_calls", "answer_schema": { "type": "string", "minLength": 1 } });
    let call = Answer::openai("<tool_call>{\"name\": \"lookup\"}</tool_call>");
    let (ran, _) = played("openai", properties, vec![call, Answer::openai("Sent.")]);
    assert_eq!((ran.code, &ran.json()["metadata"]["invalid_replies"]), (0, &json!(1)), "{ran:#?}");
}

fn native(content: Value, calls: &[(&str, &str)]) -> Answer {
    let calls = calls.iter().enumerate().map(|(at, (name, arguments))| {
        json!({ "id": format!("call_{at}"), "type": "function", "function": { "name": name, "arguments": arguments } })
    });
    message_of(&json!({ "role": "assistant", "content": content, "tool_calls": calls.collect::<Vec<_>>() }))
}

#[test]
fn native_calls_are_made_in_the_dialects_whose_calls_are_text_and_stay_as_text() {
    for (dialect, end) in [("json", complete(json!("done")).to_string()), ("tags", "<answer>done</answer>".to_owned())]
    {
        for content in [json!(null), json!("I will look it up.")] {
            let answers = vec![native(content, &[("lookup", "{\"x\": 1}")]), Answer::openai(&end)];
            let (ran, requests) = played("openai", json!({ "dialect": dialect }), answers);
            let result = ran.json();
            assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("done")), "{dialect}: {ran:#?}");
            assert_eq!(result["trace"][0]["action_input"], json!({ "x": 1 }), "{result:#}");
            assert_eq!(result["trace"][0]["success"], true, "{result:#}");
            let request: Value = serde_json::from_str(&requests[1]).expect("JSON");
            let messages = request["messages"].as_array().expect("messages");
            let said = messages.iter().find(|message| message["role"] == "assistant").expect("the turn");
            assert!(said["content"].as_str().is_some_and(|text| text.contains("lookup")), "{said}");
            assert!(said.get("tool_calls").is_none() && !requests[1].contains("was empty"), "{said}");
        }
    }
}

#[test]
fn native_calls_that_leave_two_readings_are_not_made_in_those_dialects() {
    let text = |x: u32| json!({ "thought": "T", "action": "lookup", "action_input": { "x": x } }).to_string();
    for (answer, words) in [
        (native(json!(null), &[("lookup", "{}"), ("lookup", "{\"x\": 2}")]), "one action a turn"),
        (native(json!(text(1)), &[("lookup", "{\"x\": 2}")]), "Only one of them can be meant"),
        (native(json!(complete(json!("early")).to_string()), &[("lookup", "{}")]), "Only one of them can be meant"),
        (native(json!(null), &[("lookup", "{\"x\": ")]), "can't be read"),
    ] {
        let end = Answer::openai(&complete(json!("done")).to_string());
        let (ran, _) = played("openai", json!({ "dialect": "json" }), vec![answer, end]);
        let result = ran.json();
        assert_eq!((ran.code, &result["metadata"]["tool_calls_made"]), (0, &json!(0)), "{ran:#?}");
        assert!(result["trace"][0]["observation"].as_str().is_some_and(|why| why.contains(words)), "{result:#}");
    }
    // The same call twice is one.
    let end = Answer::openai(&complete(json!("done")).to_string());
    let both = native(json!(text(1)), &[("lookup", "{\"x\": 1}")]);
    let (ran, _) = played("openai", json!({ "dialect": "json" }), vec![both, end]);
    assert_eq!((ran.code, &ran.json()["metadata"]["tool_calls_made"]), (0, &json!(1)), "{ran:#?}");
}
