//! The model's window: learned from the refusals of each provider and from replies that end with it; and what a reply, a
//! request and an observation take of it.

use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran, answering, complete, look, observed, think};

/// A loop whose tools answer with so many letters, and whose model is of this provider at this server.
fn place(server: &Server, provider: &str, properties: Value, letters: usize) -> Place {
    let place = answering(&properties, &"x".repeat(letters));
    with_model(&place, server, provider, json!({}));
    place
}

fn with_model(place: &Place, server: &Server, provider: &str, more: Value) {
    let path = place.path().join("loopctl.json");
    let mut project: Value = std::fs::read(path).map_or(json!({}), |text| serde_json::from_slice(&text).unwrap());
    let mut model = json!({ "provider": provider, "model": "small", "base_url": format!("{}/v1", server.url()) });
    for (name, value) in more.as_object().unwrap() {
        model[name] = value.clone();
    }
    project["models"] = json!({ "m": model });
    project["model"] = json!("m");
    place.json("loopctl.json", &project);
}

fn run(place: &Place) -> Ran {
    place.call(&["run", "loop.json", "--output", "json", "--run-id", "r"])
}

/// The tokens of a request, a quarter of its bytes: without the schema that constrains the reply, which no model reads.
fn tokens(request: &Request) -> usize {
    (request.text().len() - request.json()["response_format"].to_string().len()) / 4
}

/// The most tokens that a request asks for.
fn asked(request: &Request) -> usize {
    let body = request.json();
    let most = body["max_tokens"].as_u64().or(body["generationConfig"]["maxOutputTokens"].as_u64());
    usize::try_from(most.expect("a limit")).unwrap()
}

/// A reply of this provider.
fn reply(provider: &str, text: &str) -> Answer {
    match provider {
        "anthropic" => Answer::json(&json!({ "type": "message", "role": "assistant", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": text }] })),
        "gemini" => Answer::json(&json!({ "candidates": [{ "finishReason": "STOP",
            "content": { "role": "model", "parts": [{ "text": text }] } }] })),
        _ => Answer::json(&json!({ "choices": [{ "finish_reason": "stop",
            "message": { "role": "assistant", "content": text } }] })),
    }
}

/// How a server refuses a request of so many tokens for a reply of so many others; nothing if it takes it.
fn refusal(server: &str, window: usize, tokens: usize, asked: usize) -> Option<Answer> {
    let is_strict = matches!(server, "anthropic" | "vllm");
    if tokens + if is_strict { asked } else { 0 } <= window {
        return None;
    }
    let error = match server {
        "llama.cpp" => {
            json!({ "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": window,
            "message": "the request exceeds the available context size, try increasing it" })
        }
        "openai" => json!({ "code": "context_length_exceeded", "type": "invalid_request_error", "param": "messages",
            "message": format!("This model's maximum context length is {window} tokens. However, your messages resulted in \
                {tokens} tokens. Please reduce the length of the messages.") }),
        "anthropic" if tokens > window => json!({ "type": "invalid_request_error",
            "message": format!("prompt is too long: {tokens} tokens > {window} maximum") }),
        "anthropic" => json!({ "type": "invalid_request_error",
            "message": format!("input length and `max_tokens` exceed context limit: {tokens} + {asked} > {window}, decrease \
                input length or `max_tokens` and try again") }),
        "gemini" => json!({ "code": 400, "status": "INVALID_ARGUMENT",
            "message": format!("The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).") }),
        "vllm" if tokens < window => json!({ "code": 400, "type": "BadRequestError",
            "message": format!("'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context \
                length is {window} tokens and your request has {tokens} input tokens ({asked} > {window} - {tokens}).") }),
        _ => json!({ "code": 400, "type": "BadRequestError",
            "message": format!("This model's maximum context length is {window} tokens. However, you requested {} tokens \
                ({tokens} in the messages, {asked} in the completion). Please reduce the length of the messages or \
                completion.", tokens + asked) }),
    };
    Some(Answer::json(&json!({ "type": "error", "error": error })).status(400))
}

/// A server of this kind with a window, whose model looks `looks` times.
fn narrow(kind: &'static str, window: usize, looks: usize) -> Server {
    let seen = std::sync::atomic::AtomicUsize::new(0);
    Server::reading(move |_, request| {
        if let Some(refusal) = refusal(kind, window, tokens(request), asked(request)) {
            return refusal;
        }
        let number = seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let turn = if number < looks { look(&number.to_string()) } else { complete(json!("done")) };
        reply(kind, &turn.to_string())
    })
}

#[test]
fn the_window_is_learned_from_the_refusal_of_each_provider_and_the_history_is_trimmed_to_it() {
    for (kind, provider) in [
        ("llama.cpp", "openai"),
        ("openai", "openai"),
        ("vllm", "openai"),
        ("anthropic", "anthropic"),
        ("gemini", "gemini"),
    ] {
        let server = narrow(kind, 3_000, 12);
        let place = place(&server, provider, json!({ "max_iterations": 20, "history": { "summarize": false } }), 1_600);
        let ran = run(&place);
        assert_eq!(ran.code, 0, "{kind}: {ran:#?}");
        let result = ran.json();
        assert_eq!(result["iterations"], 13, "{kind}: a refusal is no iteration");
        let refused = server.requests().len() - 13;
        assert!((1..=3).contains(&refused), "{kind}: {refused} requests were refused");
        assert!(result["metadata"]["messages_trimmed"].as_u64() > Some(2), "{kind}: {result:#}");
        let last = server.requests().pop().unwrap();
        assert_eq!(asked(&last), 750, "{kind}: a reply takes a quarter of the window");
    }
}

#[test]
fn a_first_request_that_is_refused_for_its_max_tokens_alone_is_sent_again_whole() {
    for (written, then) in [(json!(null), 512), (json!(3_000), 1_024), (json!(300), 300)] {
        let server = narrow("vllm", 2_048, 1);
        let mut properties = json!({});
        if !written.is_null() {
            properties["max_tokens"] = written.clone();
        }
        let ran = run(&place(&server, "openai", properties, 20));
        assert_eq!(ran.code, 0, "{written}: {ran:#?}");
        let requests = server.requests();
        assert_eq!(asked(requests.last().unwrap()), then, "{written}");
        assert_eq!(requests[0].json()["messages"], requests[requests.len().min(3) - 2].json()["messages"], "{written}");
        assert_eq!(ran.json()["metadata"]["messages_trimmed"], 0);
    }
}

#[test]
fn observations_of_the_last_iteration_are_cut_when_nothing_else_can_go() {
    let server = narrow("llama.cpp", 2_000, 1);
    let ran = run(&place(&server, "openai", json!({}), 11_000));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let last = server.requests().pop().unwrap();
    assert!(tokens(&last) <= 2_000 && last.text().contains("bytes left out"), "{}", last.text());
}

#[test]
fn a_request_that_can_not_be_made_to_fit_ends_the_run_and_the_error_says_which_window_was_seen() {
    let server = narrow("llama.cpp", 300, 1);
    let ran = run(&place(&server, "openai", json!({}), 20));
    let result = ran.json();
    assert_eq!((ran.code, &result["termination"]), (1, &json!("context")), "{ran:#?}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("a window of 300 tokens") && message.contains("\"context_tokens\": 300"), "{message}");
    assert!(server.requests().len() <= 5, "{}", server.requests().len());
    let silent = Server::with(|_, _| {
        Answer::json(r#"{"error":{"message":"Your input exceeds the context window of this model."}}"#).status(400)
    });
    let ran = run(&place(&silent, "openai", json!({}), 20));
    let message = ran.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("is not known: write it as `context_tokens` of the model \"m\""), "{message}");
}

#[test]
fn a_reply_that_is_cut_off_where_the_window_ends_shows_it() {
    let server = Server::reading(|number, _| {
        let (text, finish, usage) = match number {
            0 => (look("a").to_string(), "stop", json!({ "prompt_tokens": 700, "completion_tokens": 30 })),
            1 => {
                ("{\"thought\": \"so".to_owned(), "length", json!({ "prompt_tokens": 1_900, "completion_tokens": 148 }))
            }
            _ => {
                (complete(json!("done")).to_string(), "stop", json!({ "prompt_tokens": 900, "completion_tokens": 20 }))
            }
        };
        let choices = json!([{ "finish_reason": finish, "message": { "role": "assistant", "content": text } }]);
        Answer::json(&json!({ "choices": choices, "usage": usage }))
    });
    let ran = run(&place(&server, "openai", json!({ "history": { "summarize": false } }), 4_000));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let asked: Vec<usize> = server.requests().iter().map(asked).collect();
    assert_eq!(asked, [4_096, 4_096, 512], "the window is 2,048 tokens");
    assert!(ran.json()["metadata"]["messages_trimmed"].as_u64() > Some(0), "{ran:#?}");
}

#[test]
fn a_later_run_of_the_process_knows_the_window_before_its_first_request() {
    let server = narrow("vllm", 2_048, 0);
    let place = Place::new();
    place.json(
        "loopctl.json",
        &json!({ "model": "boss", "models": { "boss": { "provider": "script", "script": "boss.json" },
            "m": { "provider": "openai", "base_url": format!("{}/v1", server.url()) } } }),
    );
    let tools = json!([{ "type": "loop", "name": "helper" }]);
    place.json(
        "loop.json",
        &json!({ "type": "loop", "properties": { "mode": "react", "objective": "Do it.", "tools": tools } }),
    );
    place.json(
        "loops/helper.json",
        &json!({ "type": "loop", "name": "helper", "description": "Helps.",
            "properties": { "mode": "react", "objective": "Help.", "model": "m", "tools": [] } }),
    );
    let call = think("helper", json!({}));
    place.json(
        "boss.json",
        &json!({ "replies": [call, think("helper", json!({ "again": 1 })), complete(json!("done"))] }),
    );
    let ran = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let asked: Vec<usize> = server.requests().iter().map(asked).collect();
    assert_eq!(asked, [4_096, 512, 512], "the second sub-run begins with what the first one learned");
}

#[test]
fn parts_of_a_window_that_the_project_says_bound_a_reply_and_the_observations_of_a_turn() {
    let server = Server::reading(|number, _| {
        let turn = if number == 0 { look("a") } else { complete(json!("done")) };
        Answer::openai(&turn.to_string())
    });
    let place = place(&server, "openai", json!({}), 11_000);
    with_model(&place, &server, "openai", json!({ "context_tokens": 4_096 }));
    let ran = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let observation = observed(&ran.json()["trace"][0]);
    assert!(observation.starts_with(&"x".repeat(3_000)) && observation.contains("[cut: "), "{observation}");
    assert!(observation.chars().count() < 3_200, "{}", observation.len());
    assert_eq!(asked(&server.requests()[0]), 1_024);
}

/// A turn in the dialect `json`.
fn turn(action: &str, input: Value) -> String {
    json!({ "thought": "t", "action": action, "action_input": input }).to_string()
}

/// The messages of the last request after these turns, and the end.
fn kept_of(dialect: &str, properties: Value, turns: &[Answer]) -> Vec<Value> {
    let mut turns = turns.to_vec();
    turns.push(match dialect {
        "json" => Answer::openai(&complete(json!({ "ok": 1 })).to_string()),
        _ => Answer::openai("<answer>{\"ok\":1}</answer>"),
    });
    if dialect == "tool_calls" {
        *turns.last_mut().unwrap() = Answer::openai("{\"ok\":1}");
    }
    let server = Server::new(turns);
    let mut all = json!({ "dialect": dialect });
    for (name, value) in properties.as_object().unwrap() {
        all[name] = value.clone();
    }
    let ran = run(&place(&server, "openai", all, 20));
    assert_eq!(ran.code, 0, "{ran:#?}");
    server.requests().pop().unwrap().json()["messages"].as_array().unwrap().clone()
}

#[test]
fn of_a_long_answer_that_was_refused_only_a_beginning_stays_in_the_conversation() {
    let schema = json!({ "answer_schema": { "type": "object", "required": ["ok"] } });
    let junk = json!({ "rows": vec!["y".repeat(40); 400] });
    let native = json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "role": "assistant", "content": "Here.",
        "tool_calls": [{ "id": "c1", "type": "function",
            "function": { "name": "__complete__", "arguments": json!({ "answer": junk }).to_string() } }] } }] });
    for (dialect, answer) in [
        ("json", Answer::openai(&complete(junk.clone()).to_string())),
        ("tags", Answer::openai(&format!("<answer>{junk}</answer>"))),
        ("tool_calls", Answer::json(&native)),
    ] {
        let messages = kept_of(dialect, schema.clone(), &[answer]);
        let kept = messages[2].to_string();
        assert_eq!(messages[2]["role"], "assistant");
        assert!(kept.contains("yyyy") && kept.contains("[cut: ") && kept.len() < 1_500, "{dialect}: {kept}");
        assert!(messages[3].to_string().contains("ok"), "{dialect}: the model reads what was wrong: {messages:#?}");
    }
}

#[test]
fn a_short_answer_that_was_refused_stays_whole_so_that_the_model_can_correct_it() {
    let answer = turn("__complete__", json!({ "answer": { "text": "z".repeat(1_500) } }));
    let schema = json!({ "answer_schema": { "type": "object", "required": ["ok"] } });
    let messages = kept_of("json", schema, &[Answer::openai(&answer)]);
    assert_eq!(messages[2]["content"], answer.as_str());
}

#[test]
fn of_the_huge_input_of_a_call_a_beginning_stays_in_the_conversation_in_its_form() {
    let huge = turn("look", json!({ "at": "w".repeat(40_000) }));
    let messages = kept_of("json", json!({}), &[Answer::openai(&huge)]);
    let kept: Value = serde_json::from_str(messages[2]["content"].as_str().unwrap()).expect("it is JSON still");
    assert_eq!((&kept["action"], kept.to_string().len() < 1_000), (&json!("look"), true), "{kept}");
    assert!(kept["action_input"]["at"].as_str().unwrap().contains("[cut: "), "{kept}");
}

#[test]
fn the_system_prompt_shows_the_schema_of_the_answer_once_in_each_dialect() {
    let schema =
        json!({ "type": "object", "properties": { "verdict": { "enum": ["yes", "no"] } }, "required": ["verdict"] });
    for dialect in ["json", "tool_calls", "tags", "final_answer"] {
        let place = Place::new();
        place.looped(&json!({ "dialect": dialect, "answer_schema": schema }));
        let prompt =
            || place.call_with(&["prompt", "loop.json", "--model", "m"], &[("OPENAI_BASE_URL", "http://127.0.0.1:1")]);
        let ran = prompt();
        assert_eq!(ran.code, 0, "{ran:#?}");
        let request = ran.json();
        let system = request["messages"][0]["content"].as_str().unwrap();
        assert_eq!(system.matches(&schema.to_string()).count(), 1, "{dialect}: {system}");
        place.looped(&json!({ "dialect": dialect,
            "answer_schema": schema, "system_prompt": "{{objective}} {{tools}} {{dialect_instructions}}" }));
        let request = prompt().json();
        assert!(request["messages"][0]["content"].as_str().unwrap().contains(&schema.to_string()), "{dialect}");
    }
}

#[test]
fn an_llm_action_asks_for_a_shorter_reply_once_its_model_has_shown_its_window() {
    let asked_for = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&asked_for);
    let server = Server::reading(move |_, request| {
        let mut seen = seen.lock().unwrap();
        if !request.text().contains("Translate bonjour") {
            let turn = if matches!(seen.len(), 0 | 2) { translate() } else { complete(json!("done")) };
            return reply("openai", &turn.to_string());
        }
        seen.push(asked(request));
        refusal("vllm", 3_000, tokens(request), asked(request)).unwrap_or_else(|| reply("openai", "hello"))
    });
    let place = Place::new();
    let action = json!({ "action_name": "translate", "kind": "llm", "description": "Translates.",
        "template": "Translate {{text}}", "max_tokens": 4_000 });
    place.actions(&[action], &json!({}));
    with_model(&place, &server, "openai", json!({}));
    let ran = run(&place);
    assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!("done")), "{ran:#?}");
    assert_eq!(*asked_for.lock().unwrap(), [4_000, 1_500, 1_500], "half of the window, at once from then on");
}

fn translate() -> Value {
    think("translate", json!({ "text": "bonjour" }))
}

/// A reply of OpenAI's Responses API.
fn response(text: &str) -> Answer {
    Answer::json(&json!({ "status": "completed", "usage": { "input_tokens": 10, "output_tokens": 5 }, "output": [{
        "type": "message", "role": "assistant", "id": "m", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] }] }))
}

#[test]
fn a_refusal_in_a_stream_before_any_part_of_a_reply_is_no_request_that_was_paid_for() {
    let full = json!({ "error": { "type": "invalid_request_error",
        "message": "Your request exceeded model token limit: 131072 (requested: 150000)" } });
    let failed = json!({ "type": "response.failed", "response": { "status": "failed", "output": [], "usage": null, "error":
        { "code": "context_length_exceeded", "message": "Your input exceeds the context window of this model." } } });
    let busy = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    for (provider, event, attempts) in [("openai", full, 1), ("openai-responses", failed, 1), ("anthropic", busy, 2)] {
        let server = Server::with(move |number, _| {
            let text = match number {
                3 => return Answer::events([event.to_string()]),
                4.. => complete(json!("ok")).to_string(),
                _ => look(&format!("place-{number}")).to_string(),
            };
            match provider {
                "openai" => Answer::openai(&text),
                "anthropic" => Answer::anthropic(&text),
                _ => response(&text),
            }
        });
        let properties = json!({ "retry": { "attempts": attempts, "base_ms": 1 }, "history": { "summarize": false } });
        let ran = run(&place(&server, provider, properties, 10));
        let (status, usage) = (ran.json()["status"].clone(), ran.json()["usage"].clone());
        assert_eq!((&status, &usage["at_most"]), (&json!("completed"), &Value::Null), "{provider}: {ran:#?}");
        // The twin: a part of a reply came first.
        let (begun, broken) = (provider, event_of_part(provider));
        let server = Server::with(move |number, _| match number {
            0 => Answer::events(broken.clone()),
            _ if begun == "openai" => Answer::openai(&complete(json!("ok")).to_string()),
            _ if begun == "anthropic" => Answer::anthropic(&complete(json!("ok")).to_string()),
            _ => response(&complete(json!("ok")).to_string()),
        });
        let ran = run(&place(&server, provider, json!({ "retry": { "attempts": 2, "base_ms": 1 } }), 10));
        assert_eq!(ran.json()["usage"]["at_most"], json!(true), "{provider}: {ran:#?}");
    }
}

/// A part of a reply, and the server's word that it failed.
fn event_of_part(provider: &str) -> Vec<String> {
    let error = json!({ "type": "error", "error": { "type": "api_error", "message": "Internal error" } });
    let part = match provider {
        "openai" => json!({ "choices": [{ "index": 0, "delta": { "content": "Once" } }] }),
        "anthropic" => {
            json!({ "type": "message_start", "message": { "model": "small", "usage": { "input_tokens": 9 } } })
        }
        _ => json!({ "type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "Once" }),
    };
    vec![part.to_string(), error.to_string()]
}
