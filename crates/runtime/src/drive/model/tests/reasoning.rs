//! Reasoning: it goes back to the model that wrote it byte for byte, whole or streamed, and to no other one.

use serde_json::{Value, json};

use super::*;
use loopctl_engine::event::{Finish, Reasoning};

/// A server that gives these answers, and the requests that it got for them: each reply is kept in the conversation as
/// the engine keeps it, and the next question follows.
async fn dialogue(provider: &str, answers: Vec<Answer>) -> (Vec<Reply>, Vec<String>) {
    let count = answers.len();
    let server = Server::new(answers);
    let (model, mut wire, mut conversation) = (at(&server, provider), Wire::default(), hello());
    let mut replies = Vec::new();
    for _ in 0..count {
        let reply = ask(&[Arc::clone(&model)], &plain(&conversation), &mut wire, &retry(1), &|_| ()).await.unwrap();
        let text =
            if reply.text.is_empty() && reply.calls.is_empty() { "(nothing)".to_owned() } else { reply.text.clone() };
        let ids: Vec<String> = reply.calls.iter().map(|call| call.id.clone()).collect();
        conversation.push_reply(text, reply.calls.clone(), reply.reasoning.clone());
        ids.into_iter().for_each(|id| conversation.push_answer(id, false, "seen".to_owned()));
        conversation.push(Role::User, "And then?");
        replies.push(reply);
    }
    let sent = server.requests().iter().map(server::Request::text).collect();
    (replies, sent)
}

fn text_of(reply: &Reply) -> &str {
    &reply.reasoning.as_deref().unwrap().text
}

/// A message of chat completions as a server writes it, and as a stream of `pieces`.
fn message(message: &str) -> Answer {
    Answer::json(&format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"stop"}}]}}"#))
}

fn stream(pieces: &[&str]) -> Answer {
    let piece = |delta: &&str| format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#);
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.to_owned();
    Answer::events(pieces.iter().map(piece).chain([end, "[DONE]".to_owned()]))
}

#[tokio::test]
async fn reasoning_content_goes_back_as_it_came() {
    // Escapes as a server may write them: none of them is written in another way.
    let first = message(r#"{"role":"assistant","reasoning_content":"Why\u00fc? \"so\"\/","content":"Hi"}"#);
    let (replies, sent) = dialogue("openai", vec![first, Answer::openai("x")]).await;
    assert_eq!(text_of(&replies[0]), "Whyü? \"so\"/");
    assert!(
        sent[1].contains(r#"{"role":"assistant","content":"Hi","reasoning_content":"Why\u00fc? \"so\"\/"}"#),
        "{}",
        sent[1]
    );
    assert_eq!(replies[1].reasoning, None);
}

#[tokio::test]
async fn reasoning_that_is_streamed_goes_back_whole() {
    let first = stream(&[
        r#"{"role":"assistant","content":null,"reasoning_content":"I "}"#,
        r#"{"reasoning_content":"look."}"#,
        r#"{"content":"Hi","reasoning_content":null}"#,
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}}]}"#,
    ]);
    let (replies, sent) = dialogue("openai", vec![first, Answer::openai("x")]).await;
    assert_eq!((text_of(&replies[0]), replies[0].text.as_str()), ("I look.", "Hi"));
    assert!(sent[1].contains(r#""content":"Hi","reasoning_content":"I look.","tool_calls":[{"id":"a""#), "{}", sent[1]);
}

#[tokio::test]
async fn an_empty_reasoning_content_goes_back_too() {
    let first = message(r#"{"reasoning_content":"","content":"Hi"}"#);
    let (_, sent) = dialogue("openai", vec![first, Answer::openai("x")]).await;
    assert!(sent[1].contains(r#""content":"Hi","reasoning_content":""}"#), "{}", sent[1]);
    for nothing in
        [r#"{"reasoning_content":null,"content":"Hi"}"#, r#"{"reasoning":"","reasoning_details":[],"content":"Hi"}"#]
    {
        let (replies, sent) = dialogue("openai", vec![message(nothing), Answer::openai("x")]).await;
        assert_eq!(replies[0].reasoning, None, "{nothing}");
        assert!(sent[1].contains(r#"{"role":"assistant","content":"Hi"}"#), "{}", sent[1]);
    }
}

#[tokio::test]
async fn the_details_of_openrouter_go_back_without_the_text_that_they_repeat() {
    let details = r#"[{"type":"reasoning.text","text":"Hm.","signature":"s1","format":"anthropic-claude-v1","index":0},{"type":"reasoning.encrypted","data":"gAAA","index":1}]"#;
    let whole = message(&format!(r#"{{"content":"Hi","reasoning":"Hm.","reasoning_details":{details}}}"#));
    let pieces = stream(&[
        r#"{"content":"","reasoning":"H","reasoning_details":[{"type":"reasoning.text","text":"H","format":"anthropic-claude-v1","index":0}]}"#,
        r#"{"content":"","reasoning":"m.","reasoning_details":[{"type":"reasoning.text","text":"m.","index":0}]}"#,
        r#"{"content":"","reasoning_details":[{"type":"reasoning.text","signature":"s1","text":null,"index":0}]}"#,
        r#"{"content":"","reasoning_details":[{"type":"reasoning.encrypted","data":"gA","index":1}]}"#,
        r#"{"content":"Hi","reasoning_details":[{"type":"reasoning.encrypted","data":"AA","index":1}]}"#,
    ]);
    for first in [whole, pieces] {
        let (replies, sent) = dialogue("openai", vec![first, Answer::openai("x")]).await;
        assert_eq!(text_of(&replies[0]), "Hm.");
        let body: Value = serde_json::from_str(&sent[1]).unwrap();
        let expected = json!({"role": "assistant", "content": "Hi",
            "reasoning_details": serde_json::from_str::<Value>(details).unwrap()});
        assert_eq!(body["messages"][2], expected);
    }
}

#[tokio::test]
async fn the_signature_of_each_call_of_gemini_goes_back_with_that_call() {
    let calls = r#"[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"},"extra_content":{"google":{"thought_signature":"AbC="}}},{"id":"b","type":"function","function":{"name":"act","arguments":"{}"}}]"#;
    let whole = message(&format!(r#"{{"content":null,"tool_calls":{calls}}}"#));
    let pieces = stream(&[
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"},"extra_content":{"google":{"thought_signature":"AbC="}}}]}"#,
        r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"act","arguments":"{}"}}]}"#,
    ]);
    for first in [whole, pieces] {
        let (replies, sent) = dialogue("openai", vec![first, Answer::openai("x")]).await;
        assert_eq!(replies[0].calls.len(), 2);
        assert!(sent[1].contains(&format!(r#""content":null,"tool_calls":{calls}"#)), "{}", sent[1]);
    }
}

#[tokio::test]
async fn thinking_blocks_go_back_to_anthropic_where_they_stood() {
    let [one, hidden, two] = [
        r#"{"type":"thinking","thinking":"Hm\u002e","signature":"Eq+/="}"#,
        r#"{"type":"redacted_thinking","data":"EmwK"}"#,
        r#"{"type":"thinking","thinking":"So.","signature":"Es"}"#,
    ];
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"look","input":{{}}}}"#);
    let (a, b) = (call("a"), call("b"));
    let body = format!(
        r#"{{"type":"message","content":[{one},{hidden},{{"type":"text","text":"I look."}},{a},{two},{b}],"stop_reason":"tool_use"}}"#
    );
    let (replies, sent) = dialogue("anthropic", vec![Answer::json(&body), Answer::anthropic("x")]).await;
    assert_eq!(text_of(&replies[0]), "Hm.\nSo.");
    let expected = format!(
        r#"{{"role":"assistant","content":[{one},{hidden},{{"type":"text","text":"I look."}},{a},{two},{b}]}}"#
    );
    assert!(sent[1].contains(&expected), "{}", sent[1]);
}

#[tokio::test]
async fn thinking_blocks_of_a_stream_go_back_with_their_signatures() {
    let start =
        |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let events = [
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "H"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "m."})),
        delta(0, json!({"type": "signature_delta", "signature": "Eq=="})),
        start(1, json!({"type": "redacted_thinking", "data": "EmwK"})),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Hi"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let first = Answer::events(events.iter().map(Value::to_string));
    let (replies, sent) = dialogue("anthropic", vec![first, Answer::anthropic("x")]).await;
    assert_eq!((text_of(&replies[0]), replies[0].text.as_str()), ("Hm.", "Hi"));
    let body: Value = serde_json::from_str(&sent[1]).unwrap();
    assert_eq!(
        body["messages"][1]["content"],
        json!([{"type": "thinking", "thinking": "Hm.", "signature": "Eq=="},
            {"type": "redacted_thinking", "data": "EmwK"}, {"type": "text", "text": "Hi"}])
    );
}

#[tokio::test]
async fn a_reply_that_was_cut_off_while_the_model_thought_says_so_and_sends_no_half_block() {
    let whole =
        json!({"type": "message", "content": [{"type": "thinking", "thinking": "Hm"}], "stop_reason": "max_tokens"});
    let events = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_stop"}),
    ];
    for first in [Answer::json(&whole), Answer::events(events.iter().map(Value::to_string))] {
        let (replies, sent) = dialogue("anthropic", vec![first, Answer::anthropic("x")]).await;
        assert_eq!((text_of(&replies[0]), replies[0].finish), ("Hm", Finish::Length));
        assert!(!sent[1].contains("thinking"), "{}", sent[1]);
    }
}

#[tokio::test]
async fn a_reply_of_reasoning_alone_is_called_that() {
    let server = Server::new(vec![message(r#"{"content":"","reasoning_content":"Hm."}"#)]);
    let fault = greet(&openai(&server), 1).await.0.unwrap_err();
    assert!(fault.message.contains("is empty but for its reasoning"), "{}", fault.message);
}

#[tokio::test]
async fn reasoning_goes_to_no_other_provider_host_or_model() {
    let server = Server::with(|_, _| Answer::openai("x"));
    let url = format!("{}/v1/", server.url());
    let other_host = url.replace("127.0.0.1", "localhost");
    let file = json!({"models": {
        "m": {"provider": "openai", "base_url": url, "model": "one"},
        "again": {"provider": "openai", "base_url": url, "model": "one"},
        "model": {"provider": "openai", "base_url": url, "model": "two"},
        "host": {"provider": "openai", "base_url": other_host, "model": "one"},
        "provider": {"provider": "anthropic", "base_url": url, "model": "one"},
    }});
    let models = models(&file);
    let mut conversation = hello();
    let sealed = r#"[{"at":0,"json":{"reasoning_content":"SECRET"}}]"#.to_owned();
    let origin = "openai 127.0.0.1 one".to_owned();
    let reasoning = Box::new(Reasoning { origin, sealed, text: String::new() });
    conversation.push_reply("Hi".to_owned(), Vec::new(), Some(reasoning));
    conversation.push(Role::User, "And then?");
    for (name, goes) in [("m", true), ("again", true), ("model", false), ("host", false), ("provider", false)] {
        let request = models.get(Some(name)).unwrap().request(&plain(&conversation), &mut Wire::default());
        let request = String::from_utf8(request.to_vec()).unwrap();
        assert_eq!(request.contains("SECRET"), goes, "{name}: {request}");
        serde_json::from_str::<Value>(&request).unwrap();
    }
}

#[test]
fn what_is_sealed_can_be_anything_and_no_request_breaks() {
    let server = "http://127.0.0.1:9";
    for sealed in
        ["", "x", "[]", "{}", r#"[{"at":0,"json":7}]"#, r#"[{"at":0,"json":{}}]"#, r#"[{"at":9,"json":[1]}]"#, "[7]"]
    {
        for provider in ["openai", "anthropic"] {
            let file = json!({"models": {"m": {"provider": provider, "base_url": server}}});
            let mut conversation = hello();
            let origin = format!("{provider} 127.0.0.1 m");
            let reasoning = Box::new(Reasoning { origin, sealed: sealed.to_owned(), text: String::new() });
            conversation.push_reply("Hi".to_owned(), Vec::new(), Some(reasoning));
            let request = models(&file).get(Some("m")).unwrap().request(&plain(&conversation), &mut Wire::default());
            serde_json::from_slice::<Value>(&request).unwrap();
        }
    }
}
