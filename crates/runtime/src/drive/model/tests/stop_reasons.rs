//! Why a model stopped: each word of each protocol, whole and streamed. A reply that was broken off is asked for again.

use serde_json::{Value, json};

use super::*;
use loopctl_engine::event::{Finish, Tokens};

/// What a reply with this reason comes to; the reasons that no reply may have fail the attempt.
const BROKEN: Option<Finish> = None;

/// A reply with a text and, maybe, a call that ends for a reason; whole, and as the data of the events of a stream.
fn said(provider: &str, reason: &Value, calls: bool) -> (Value, Vec<Value>) {
    match provider {
        "openai" => openai_reply(reason, calls),
        "anthropic" => anthropic_reply(reason, calls),
        "gemini" => gemini_reply(reason, calls),
        _ => responses_reply(reason, calls),
    }
}

fn openai_reply(reason: &Value, calls: bool) -> (Value, Vec<Value>) {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5});
    let call = json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}]);
    let said = json!({"content": "The refund is", "tool_calls": if calls { call } else { json!(null) }});
    let choice = |key: &str, said: &Value, reason: &Value| json!([{"index": 0, key: said, "finish_reason": reason}]);
    let whole = json!({"choices": choice("message", &said, reason), "usage": usage});
    let events = vec![
        json!({"choices": choice("delta", &said, &json!(null))}),
        json!({"choices": choice("delta", &json!({}), reason)}),
        json!({"choices": [], "usage": usage}),
    ];
    (whole, events)
}

fn anthropic_reply(reason: &Value, calls: bool) -> (Value, Vec<Value>) {
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    let call = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
    let mut content = vec![json!({"type": "text", "text": "The refund is"})];
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": usage}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "The refund is"}}),
    ];
    if calls {
        events.push(json!({"type": "content_block_start", "index": 1, "content_block": call}));
        content.push(call);
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
    events.push(json!({"type": "message_stop"}));
    (json!({"content": content, "stop_reason": reason, "usage": usage}), events)
}

fn gemini_reply(reason: &Value, calls: bool) -> (Value, Vec<Value>) {
    let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 5});
    let mut parts = vec![json!({"text": "The refund is"})];
    parts.extend(calls.then(|| json!({"functionCall": {"name": "look", "args": {}}})));
    let content = json!({"role": "model", "parts": parts});
    let whole = json!({"candidates": [{"content": content, "finishReason": reason}], "usageMetadata": usage});
    let end = json!({"candidates": [{"finishReason": reason}], "usageMetadata": usage});
    (whole, vec![json!({"candidates": [{"content": content}]}), end])
}

fn responses_reply(reason: &Value, calls: bool) -> (Value, Vec<Value>) {
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "The refund is"}]});
    let call = json!({"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"});
    let (status, details) = match reason.as_str().unwrap_or_default().split_once('/') {
        Some((status, reason)) => (json!(status), json!({"reason": reason})),
        None => (reason.clone(), json!(null)),
    };
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    let output: Vec<Value> = [Some(text), calls.then_some(call)].into_iter().flatten().collect();
    let mut events = vec![json!({"type": "response.output_text.delta", "delta": "The refund is"})];
    let done = |item: &Value| json!({"type": "response.output_item.done", "item": item});
    events.extend(output.iter().map(done));
    let response =
        json!({"status": status, "incomplete_details": details, "error": null, "output": output, "usage": usage});
    events.push(json!({"type": "response.completed", "response": response}));
    (response, events)
}

/// Asks once, and says what came of it. A failed attempt says which reason was given, and its tokens count.
async fn outcome(provider: &str, answer: Answer, streams: bool) -> Option<Finish> {
    let server = Server::new(vec![answer]);
    let partial = |_: PartialReply<'_>| ();
    let conversation = hello();
    let asked = Ask { partial: streams.then_some(&partial), ..plain(&conversation) };
    match ask(&[at(&server, provider)], &asked, &mut Wire::default(), &retry(1), &|_| ()).await {
        Ok(reply) => {
            assert_eq!(reply.text, "The refund is");
            Some(reply.finish)
        }
        Err(fault) => {
            assert!(fault.retryable && fault.message.contains("stopped"), "{fault:?}");
            let usage = Some(Tokens { input: 10, output: 5, ..Tokens::default() });
            assert_eq!(fault.failed[0].usage, usage, "{fault:?}");
            None
        }
    }
}

#[tokio::test]
async fn each_reason_of_each_protocol_is_one_of_the_known_ones_or_the_attempt_failed() {
    let (stop, length, filtered) = (Some(Finish::Stop), Some(Finish::Length), Some(Finish::Filtered));
    let openai: &[(&str, &[&str], Option<Finish>)] = &[
        ("openai", &["stop", "STOP", "eos", "end_turn", "stop_sequence"], stop),
        ("openai", &["length", "MAX_TOKENS", "model_length"], length),
        ("openai", &["content_filter", "refusal", "sensitive", "SAFETY"], filtered),
        ("openai", &["error", "network_error", "abort", "pause_turn", "OTHER", "unheard_of", "timeout"], BROKEN),
        ("openai", &["insufficient_system_resource", "MALFORMED_FUNCTION_CALL", "tool_calls", "function_call"], BROKEN),
        ("anthropic", &["end_turn", "stop_sequence"], stop),
        ("anthropic", &["max_tokens", "model_context_window_exceeded"], length),
        ("anthropic", &["refusal"], filtered),
        ("anthropic", &["pause_turn", "compaction", "error", "unheard_of", "tool_use"], BROKEN),
        ("gemini", &["STOP"], stop),
        ("gemini", &["MAX_TOKENS"], length),
        ("gemini", &["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"], filtered),
        ("gemini", &["OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"], BROKEN),
        ("openai-responses", &["completed"], stop),
        ("openai-responses", &["incomplete", "incomplete/max_output_tokens", "incomplete/unheard_of"], length),
        ("openai-responses", &["incomplete/content_filter"], filtered),
        ("openai-responses", &["failed", "cancelled", "in_progress", "queued", "unheard_of"], BROKEN),
    ];
    for (provider, words, expected) in openai {
        for word in *words {
            let (whole, events) = said(provider, &json!(word), false);
            let whole = outcome(provider, Answer::json(&whole), false).await;
            assert_eq!(whole, *expected, "{provider} {word}");
            let events: Vec<String> = events.iter().map(Value::to_string).collect();
            assert_eq!(outcome(provider, Answer::events(events), true).await, *expected, "{provider} {word}, streamed");
        }
    }
}

#[tokio::test]
async fn a_call_is_a_reply_with_each_reason_that_ends_a_turn() {
    for (provider, words) in [
        ("openai", &["tool_calls", "function_call", "tool_use", "stop", "eos"][..]),
        ("anthropic", &["tool_use", "end_turn"]),
        ("gemini", &["STOP"]),
        ("openai-responses", &["completed"]),
    ] {
        for word in words {
            let (whole, events) = said(provider, &json!(word), true);
            assert_eq!(outcome(provider, Answer::json(&whole), false).await, Some(Finish::Stop), "{provider} {word}");
            let events: Vec<String> = events.iter().map(Value::to_string).collect();
            assert_eq!(outcome(provider, Answer::events(events), true).await, Some(Finish::Stop), "{provider} {word}");
        }
    }
}

#[tokio::test]
async fn no_call_of_a_reply_that_was_withheld_is_made() {
    for (provider, word) in [
        ("openai", "content_filter"),
        ("anthropic", "refusal"),
        ("gemini", "SAFETY"),
        ("openai-responses", "incomplete/content_filter"),
    ] {
        let server = Server::new(vec![Answer::json(&said(provider, &json!(word), true).0)]);
        let reply = greet(&at(&server, provider), 1).await.0.unwrap();
        assert_eq!((reply.finish, reply.calls), (Finish::Filtered, Vec::new()), "{provider}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_without_a_reason_was_cut_off() {
    for provider in ["openai", "anthropic", "gemini", "openai-responses"] {
        for reason in [json!(null), json!(""), json!("FINISH_REASON_UNSPECIFIED")] {
            if provider != "gemini" && reason == "FINISH_REASON_UNSPECIFIED" || provider == "openai-responses" {
                continue;
            }
            let (whole, mut events) = said(provider, &reason, false);
            if reason != "FINISH_REASON_UNSPECIFIED" {
                // Anthropic's and Gemini's reasons are null only while a reply is arriving. Other servers leave it out of
                // whole replies, whose tokens they count.
                let is_whole = provider == "openai" || provider == "anthropic" && !reason.is_null();
                let expected = if is_whole { Some(Finish::Stop) } else { BROKEN };
                assert_eq!(outcome(provider, Answer::json(&whole), false).await, expected, "{provider} {reason}");
            }
            if provider == "openai" {
                events.push(json!("[DONE]"));
            }
            let data = |event: &Value| event.as_str().map_or_else(|| event.to_string(), str::to_owned);
            let server = Server::new(vec![Answer::events(events.iter().map(data))]);
            let fault = greet(&at(&server, provider), 1).await.0.unwrap_err();
            assert!(fault.retryable && fault.message.contains("cut off"), "{provider}: {fault:?}");
        }
    }
}

#[tokio::test]
async fn the_reason_that_says_most_counts_when_a_stream_gives_several() {
    for (words, expected) in [
        (["stop", "length"], Some(Finish::Length)),
        (["length", "stop"], Some(Finish::Length)),
        (["content_filter", "stop"], Some(Finish::Filtered)),
        (["error", "stop"], BROKEN),
        (["", "stop"], Some(Finish::Stop)),
    ] {
        let piece = |text: &str, word: &str| json!({"choices": [{"delta": {"content": text}, "finish_reason": word}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
        let events = [piece("The refund", words[0]), piece(" is", words[1]), usage].map(|event| event.to_string());
        assert_eq!(outcome("openai", Answer::events(events), true).await, expected, "{words:?}");
    }
}

#[tokio::test]
async fn an_empty_reason_needs_counted_tokens_and_a_gateway_s_own_word_is_not_the_last_one() {
    for (more, expected) in [
        (json!({"finish_reason": null}), BROKEN),
        (json!({"finish_reason": " "}), BROKEN),
        (json!({"finish_reason": "stop", "native_finish_reason": "end_turn"}), Some(Finish::Stop)),
        (json!({"finish_reason": "stop", "native_finish_reason": "STOP"}), Some(Finish::Stop)),
        (json!({"finish_reason": "stop", "native_finish_reason": "MAX_TOKENS"}), Some(Finish::Length)),
        (json!({"finish_reason": "stop", "native_finish_reason": "SAFETY"}), Some(Finish::Filtered)),
        (json!({"finish_reason": "stop", "native_finish_reason": "error"}), BROKEN),
        (json!({"finish_reason": "stop", "native_finish_reason": "MALFORMED_FUNCTION_CALL"}), BROKEN),
    ] {
        let (mut whole, mut events) = openai_reply(&json!("stop"), false);
        for choice in [&mut whole["choices"][0], &mut events[1]["choices"][0]] {
            choice.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        let usage =
            json!({"prompt_tokens": 10, "completion_tokens": if more["finish_reason"] == "stop" { 5 } else { 0 }});
        whole["usage"] = usage;
        let server = Server::new(vec![Answer::json(&whole)]);
        let reply = greet(&openai(&server), 1).await.0;
        assert_eq!(reply.as_ref().ok().map(|reply| reply.finish), expected, "{more} {reply:?}");
        if more["finish_reason"] == "stop" {
            let events = events.iter().map(Value::to_string);
            assert_eq!(outcome("openai", Answer::events(events), true).await, expected, "{more}, streamed");
        }
    }
}

#[tokio::test]
async fn what_a_response_says_beside_its_status_counts_too() {
    let message = |status: Value| json!({"type": "message", "status": status, "content": [{"type": "output_text", "text": "The refund is"}]});
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    for (status, item, reason, expected) in [
        (json!("completed"), json!("completed"), json!(null), Some(Finish::Stop)),
        // As gateways write them.
        (json!("completed"), json!(null), json!("stop"), Some(Finish::Stop)),
        (json!("completed"), json!("stop"), json!(""), Some(Finish::Stop)),
        (json!("completed"), json!("completed"), json!("max_output_tokens"), Some(Finish::Length)),
        (json!("completed"), json!("completed"), json!("content_filter"), Some(Finish::Filtered)),
        (json!("completed"), json!("incomplete"), json!(null), Some(Finish::Length)),
        (json!("completed"), json!("in_progress"), json!(null), BROKEN),
        (json!(null), json!("completed"), json!(null), BROKEN),
    ] {
        let response = json!({"status": status, "error": null, "usage": usage, "output": [message(item.clone())],
            "incomplete_details": { "reason": reason }});
        let whole = outcome("openai-responses", Answer::json(&response), false).await;
        assert_eq!(whole, expected, "{status} {item} {reason}");
        if status == "completed" {
            let end = json!({"type": "response.completed", "response": response}).to_string();
            let streamed = outcome("openai-responses", Answer::events([end]), true).await;
            assert_eq!(streamed, expected, "{status} {item} {reason}, streamed");
        }
    }
}

#[tokio::test]
async fn an_error_beside_a_choice_fails_the_attempt_whatever_the_reason() {
    let error = json!({"code": 502, "message": "stopped: Provider disconnected"});
    for reason in [json!("error"), json!("stop"), json!(null)] {
        let (mut whole, mut events) = openai_reply(&reason, false);
        whole["choices"][0]["error"] = error.clone();
        events[1]["choices"][0]["error"] = error.clone();
        events[1]["usage"] = whole["usage"].clone();
        assert_eq!(outcome("openai", Answer::json(&whole), false).await, BROKEN);
        let events = events.iter().map(Value::to_string);
        assert_eq!(outcome("openai", Answer::events(events), true).await, BROKEN);
    }
}

#[tokio::test]
async fn time_bounds_only_attempts_that_cost_nothing() {
    let broken = Answer::events([
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Let me\"}}]}".to_owned(),
        "[DONE]".to_owned(),
    ]);
    let away = Answer::json("{}").status(503);
    let cut = openai_answer().cut();
    for (answer, requests) in [(broken, 4), (cut, 4), (away, 7), (Answer::closed(), 7), (Answer::reset(), 7)] {
        let server = Server::with(move |number, _| if number < 6 { answer.clone() } else { openai_answer() });
        let rule = Retry { attempts: None, for_ms: Some(60_000), base_ms: 0, max_ms: 0 };
        let reply = ask(&[openai(&server)], &plain(&hello()), &mut Wire::default(), &rule, &|_| ()).await;
        assert_eq!((server.requests().len(), reply.is_ok()), (requests, requests > 6));
    }
}

fn openai_answer() -> Answer {
    Answer::json(&openai_reply(&json!("stop"), false).0)
}
