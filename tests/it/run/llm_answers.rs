//! `llm` actions whose answers must match a schema.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran};

const QUESTION: &str = "Is it covered?";

fn action(schema: Value) -> Value {
    json!({ "action_name": "judge", "kind": "llm", "description": "Judges.", "template": QUESTION, "answer_schema": schema,
        "parameters": { "type": "object" }, "retry": { "attempts": 1 } })
}

fn verdict() -> Value {
    json!({ "type": "object", "properties": { "covered": { "type": "boolean" }, "sum": { "type": "number" } },
        "required": ["covered"], "additionalProperties": false })
}

/// A workflow of one step that asks, and answers what a later step would read of the answer.
fn document(place: &Place, schema: Value) {
    place.json("actions/all.json", &json!([action(schema)]));
    let step = json!({ "type": "judge", "properties": {}, "outputKey": "v" });
    let output = json!({ "all": "@v", "covered": "@v.covered" });
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [step], "output": output } }));
}

fn scripted(script: &Value) -> (Place, Ran) {
    let place = Place::new();
    document(&place, verdict());
    place.json("script.json", script);
    place.json(
        "loopctl.json",
        &json!({ "models": { "m": { "provider": "script", "script": "script.json" } }, "model": "m" }),
    );
    let ran = place.call(&["run", "loop.json", "--output", "json", "--run-id", "r"]);
    (place, ran)
}

#[test]
fn an_answer_is_the_value_however_it_is_wrapped_and_a_wrong_one_is_asked_for_again() {
    let right = r#"{"covered": true, "sum": 1.50}"#;
    for (replies, calls) in [
        (vec![json!(right)], 1),
        (vec![json!(format!("Here it is:\n```json\n{right}\n```\nBye."))], 1),
        (vec![json!("I think so."), json!(format!("Sorry: {right}"))], 2),
        // What is inside of a broken answer is no answer.
        (vec![json!(r#"{"covered": false "sum": 0, "else": {"covered": false}}"#), json!(right)], 2),
        (vec![json!(r#"{"covered": "maybe"}"#), json!("{}"), json!(r#"{"covered": "true", "sum": "1.50"}"#)], 3),
    ] {
        let (_, ran) = scripted(&json!({ "replies": replies }));
        assert_eq!(ran.code, 0, "{replies:?}: {ran:#?}");
        let answer = &ran.json()["result"]["answer"];
        assert_eq!(answer.to_string(), r#"{"all":{"covered":true,"sum":1.50},"covered":true}"#, "{calls}");
        let attempts = ran.json()["steps"][0]["attempts"].as_array().map_or(0, Vec::len);
        assert_eq!(attempts, calls - 1, "those that were asked again are in the trace: {ran:#?}");
    }
    let (place, ran) = scripted(&json!({ "replies": ["No.", "No.", "No.", right] }));
    let error = ran.json()["error"].clone();
    assert_eq!((ran.code, &error["step"]), (1, &json!("0")), "{ran:#?}");
    assert!(error["message"].as_str().unwrap().contains("does not match `answer_schema`: it holds no JSON"), "{error}");
    // A reply that was cut off is no answer, although it could be read.
    let cut = json!({ "text": right, "finish": "length" });
    let (_, ran) = scripted(&json!({ "replies": [cut] }));
    assert!(ran.code == 1 && ran.stdout.contains("cut off"), "{ran:#?}");
    // What a script gives in the place of the answer is held against the schema, and what is read of it is known to `check`.
    for (given, code) in
        [(json!({ "covered": false }), 0), (json!("Well: {\"covered\": false}"), 0), (json!({ "covered": 7 }), 1)]
    {
        let (place, _) = scripted(&json!({ "replies": [], "tools": { "judge": [given] } }));
        let ran = place.call(&["run", "loop.json", "--script", "script.json"]);
        assert_eq!(ran.code, code, "{given}: {ran:#?}");
    }
    place.json(
        "loop.json",
        &json!({ "name": "w", "definition": { "actions": [{ "type": "judge", "properties": {}, "outputKey": "v" }],
        "output": "@v.coverd" } }),
    );
    let checked = place.call(&["check", "loop.json"]);
    assert!(checked.stdout.contains("has no `coverd`") || checked.stderr.contains("has no `coverd`"), "{checked:#?}");
}

#[test]
fn a_provider_is_sent_the_schema_and_the_second_question_says_what_was_wrong() {
    let said = |text: &str| {
        Answer::json(
            &json!({ "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 100, "completion_tokens": 10 } }),
        )
    };
    let answers = [said("It is."), said(r#"{"covered": true, "sum": null}"#)];
    let server = Server::with(move |number, _| answers[number.min(1)].clone());
    let place = Place::new();
    document(&place, verdict());
    let model = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()), "constrain": "on" });
    place.json("loopctl.json", &json!({ "model": "m", "models": { "m": model } }));
    let ran = place.call_with(&["run", "loop.json", "--output", "json"], &[("OPENAI_API_KEY", "k")]);
    assert_eq!((ran.code, &ran.json()["result"]["answer"]["all"]), (0, &json!({ "covered": true })), "{ran:#?}");
    assert_eq!(ran.json()["usage"]["input_tokens"], 200, "both answers are paid for: {ran:#?}");
    let asked: Vec<Value> = server.requests().iter().map(|request| request.json()).collect();
    let sent = |at: usize| asked[at]["messages"].as_array().unwrap().clone();
    assert_eq!((sent(0).len(), sent(1).len()), (1, 3), "{asked:#?}");
    assert!(
        sent(0)[0].to_string().contains("must match this JSON Schema") && sent(0)[0].to_string().contains(QUESTION)
    );
    assert!(sent(1)[2].to_string().contains("it holds no JSON"), "{asked:#?}");
    let form = &asked[0]["response_format"]["json_schema"];
    assert_eq!(form["schema"]["required"], json!(["covered"]), "the reply is constrained: {asked:#?}");
}

#[test]
fn each_attempt_at_the_model_of_a_step_is_in_its_trace() {
    let said = |text: &str| {
        Answer::json(
            &json!({ "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 100, "completion_tokens": 10 } }),
        )
    };
    let answers = [Answer::json("{}").status(503), said("It is."), said(r#"{"covered": true}"#)];
    let server = Server::with(move |number, _| answers[number.min(2)].clone());
    let place = Place::new();
    document(&place, verdict());
    let retried = crate::common::with(action(verdict()), json!({ "retry": { "attempts": 2, "base_ms": 1 } }));
    place.json("actions/all.json", &json!([retried]));
    let model = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()) });
    place.json("loopctl.json", &json!({ "model": "m", "models": { "m": model } }));
    let ran = place.call_with(&["run", "loop.json", "--output", "json", "--run-id", "r"], &[("OPENAI_API_KEY", "k")]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let attempts = ran.json()["steps"][0]["attempts"].clone();
    let classes =
        [0, 1].map(|number: usize| attempts[number]["error"]["class"].as_str().unwrap_or_default().to_owned());
    assert!(classes[0].contains("503") && classes[1].contains("it holds no JSON"), "{attempts:#}");
    assert_eq!(attempts.as_array().unwrap().len(), 2, "{attempts:#}");
    for format in ["text", "html"] {
        let shown = place.call(&["trace", "r", "--format", format]).stdout;
        assert!(shown.contains("attempt 1:") && shown.contains("attempt 2:"), "{format}: {shown}");
    }
}

/// A reply of a provider that is a native call, with a text beside it or none.
fn native(provider: &str, text: Option<&str>) -> Answer {
    let (name, input) = ("lookup", json!({ "x": 1 }));
    match provider {
        "openai" => {
            Answer::json(&json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "role": "assistant",
            "content": text, "tool_calls": [{ "id": "c", "type": "function", "function":
                { "name": name, "arguments": input.to_string() } }] } }] }))
        }
        "openai-responses" => {
            let said = text.map(|text| {
                json!({ "type": "message", "role": "assistant", "id": "m", "status": "completed",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
            });
            let call = json!({ "type": "function_call", "id": "f", "call_id": "c", "name": name,
                "arguments": input.to_string(), "status": "completed" });
            let output: Vec<Value> = said.into_iter().chain([call]).collect();
            Answer::json(&json!({ "status": "completed", "output": output }))
        }
        "anthropic" => {
            let said = text.map(|text| json!({ "type": "text", "text": text }));
            let call = json!({ "type": "tool_use", "id": "c", "name": name, "input": input });
            let content: Vec<Value> = said.into_iter().chain([call]).collect();
            Answer::json(
                &json!({ "type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use" }),
            )
        }
        _ => {
            let said = text.map(|text| json!({ "text": text }));
            let call = json!({ "functionCall": { "name": name, "args": input } });
            let parts: Vec<Value> = said.into_iter().chain([call]).collect();
            Answer::json(&json!({ "candidates": [{ "finishReason": "STOP",
                "content": { "role": "model", "parts": parts } }] }))
        }
    }
}

fn whole(provider: &str) -> Answer {
    match provider {
        "openai" => Answer::openai("WHOLE"),
        "openai-responses" => Answer::json(&json!({ "status": "completed", "output": [{ "type": "message",
            "role": "assistant", "id": "m", "status": "completed",
            "content": [{ "type": "output_text", "text": "WHOLE", "annotations": [] }] }] })),
        "anthropic" => Answer::anthropic("WHOLE"),
        _ => Answer::json(&json!({ "candidates": [{ "finishReason": "STOP",
            "content": { "role": "model", "parts": [{ "text": "WHOLE" }] } }] })),
    }
}

/// What a step of an `llm` action gives whose model replies so, and how many requests there were.
fn answered(provider: &'static str, replies: impl Fn(usize) -> Answer + Send + Sync + 'static) -> (Ran, usize) {
    let server = Server::with(move |number, _| replies(number));
    let place = Place::new();
    let ask = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": QUESTION,
        "retry": { "attempts": 3, "base_ms": 1 } });
    place.json("actions/ask.json", &ask);
    let step = json!({ "type": "ask", "properties": {}, "outputKey": "a" });
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [step], "output": "@a" } }));
    let base = if provider == "gemini" { "/v1beta" } else { "/v1" };
    let model = json!({ "provider": provider, "model": "small", "base_url": format!("{}{base}", server.url()) });
    place.json("loopctl.json", &json!({ "models": { "m": model }, "model": "m" }));
    let key = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"].map(|name| (name, "k"));
    let ran = place.call_with(&["run", "loop.json", "--output", "json", "--store", "memory"], &key);
    (ran, server.requests().len())
}

#[test]
fn a_native_call_alone_is_an_empty_answer_because_no_tool_is_offered() {
    for provider in ["openai", "openai-responses", "anthropic", "gemini"] {
        let (ran, asked) =
            answered(provider, |number| if number == 0 { native(provider, None) } else { whole(provider) });
        assert_eq!((ran.code, &ran.json()["result"]["answer"], asked), (0, &json!("WHOLE"), 2), "{provider}: {ran:#?}");
        let (ran, _) = answered(provider, |_| native(provider, None));
        let message = ran.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(ran.code == 1 && message.contains("empty") && message.contains("call"), "{provider}: {ran:#?}");
        // The text beside a call is the answer.
        let (ran, asked) = answered(provider, |_| native(provider, Some("WHOLE")));
        assert_eq!((ran.code, &ran.json()["result"]["answer"], asked), (0, &json!("WHOLE"), 1), "{provider}: {ran:#?}");
    }
}

#[test]
fn a_call_that_is_written_as_text_is_no_answer_because_no_tool_is_offered() {
    const CALL: &str = r#"<tool_call>{"name":"lookup","arguments":{"x":1}}</tool_call>"#;
    for call in [CALL, "<function=lookup><parameter=x>1</parameter></function>", "[TOOL_CALLS]lookup{\"x\": 1}"] {
        let (ran, asked) = answered("openai", move |number| Answer::openai(if number == 0 { call } else { "WHOLE" }));
        assert_eq!((ran.code, &ran.json()["result"]["answer"], asked), (0, &json!("WHOLE"), 2), "{call}: {ran:#?}");
        let (ran, asked) = answered("openai", move |_| Answer::openai(call));
        let message = ran.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(ran.code == 1 && message.contains("a tool call written as text"), "{call}: {ran:#?}");
        assert_eq!(asked, 2, "{call}");
    }
    // What shows a call, or is data, is an answer.
    let shown = format!("Write it so:\n```\n{CALL}\n```");
    for text in [shown.as_str(), r#"{"name":"lookup","arguments":{"x":1}}"#, "<b>WHOLE</b>", "[1] WHOLE"] {
        let said = text.to_owned();
        let (ran, asked) = answered("openai", move |_| Answer::openai(&said));
        assert_eq!((ran.code, &ran.json()["result"]["answer"], asked), (0, &json!(text), 1), "{ran:#?}");
    }
}
