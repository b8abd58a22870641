//! Native calls in answers, whole and in pieces, and in requests, by the ways in which servers differ.

use serde_json::{Value, json};

use super::*;
use crate::drive::model::failure::Peer;
use crate::drive::model::reply::StreamedReply;
use crate::drive::model::stop_reason::StopReason;
use loopctl_engine::digest::Sha256;
use loopctl_engine::event::{Finish, SaidCall};

fn call(id: &str, name: &str, arguments: &str) -> SaidCall {
    SaidCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

async fn said(answer: Answer, provider: &str) -> Reply {
    let server = Server::new(vec![answer]);
    greet(&at(&server, provider), 1).await.0.unwrap()
}

fn message(message: &Value) -> Answer {
    let reason = if message["tool_calls"][0].is_null() { "stop" } else { "tool_calls" };
    Answer::json(&json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}]}))
}

#[tokio::test]
async fn whole_calls_are_read_however_a_server_writes_them() {
    let function = |arguments: Value| json!({"name": "look", "arguments": arguments});
    for (calls, expected) in [
        (
            json!([{"id": "a", "type": "function", "function": function(json!("{\"n\": 1E400}"))}]),
            call("a", "look", "{\"n\": 1E400}"),
        ),
        (json!([{"id": "a", "function": function(json!({"at": [1, null]}))}]), call("a", "look", "{\"at\":[1,null]}")),
        (json!([{"id": null, "function": function(json!(null))}]), call("", "look", "")),
        (json!([{"function": {"name": "look"}}]), call("", "look", "")),
        (json!([{"id": "a", "function": null}]), call("a", "", "")),
    ] {
        for content in [json!(null), json!(""), json!("Text."), json!([{"type": "text", "text": "Text."}])] {
            let reply =
                said(message(&json!({"role": "assistant", "content": content, "tool_calls": calls})), "openai").await;
            assert_eq!(reply.calls, std::slice::from_ref(&expected), "{calls}");
            assert_eq!(reply.finish, Finish::Stop);
        }
    }
    for none in [json!(null), json!([])] {
        let reply =
            said(message(&json!({"role": "assistant", "content": "Text.", "tool_calls": none})), "openai").await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("Text.", 0));
    }
}

#[tokio::test]
async fn digits_of_an_object_stay_as_they_are_written() {
    let body = r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"look",
        "arguments":{"n":12345678901234567890123,"m":1.50}}}]}}]}"#;
    let reply = said(Answer::json(body), "openai").await;
    assert_eq!(reply.calls[0].arguments, r#"{"n":12345678901234567890123,"m":1.50}"#);
    let body = r#"{"type":"message","content":[{"type":"thinking","thinking":"x","signature":"y"},{"type":"text","text":"I look."},
        {"type":"tool_use","id":"t","name":"look","input":{"n":12345678901234567890123}}],"stop_reason":"tool_use"}"#;
    let reply = said(Answer::json(body), "anthropic").await;
    assert_eq!(reply.calls, [call("t", "look", r#"{"n":12345678901234567890123}"#)]);
    assert_eq!((reply.text.as_str(), reply.finish), ("I look.", Finish::Stop));
}

fn delta(calls: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": null}]}).to_string()
}

async fn streamed(pieces: Vec<Value>) -> Vec<SaidCall> {
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned();
    let events: Vec<String> = pieces.iter().map(delta).chain([end, "[DONE]".to_owned()]).collect();
    said(Answer::events(&events), "openai").await.calls
}

fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut piece = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        piece["index"] = json!(index);
    }
    if let Some(id) = id {
        piece["id"] = json!(id);
    }
    if let Some(name) = name {
        piece["function"]["name"] = json!(name);
    }
    json!([piece])
}

#[tokio::test]
async fn pieces_of_calls_are_put_together_however_a_server_cuts_them() {
    let expected = [call("a", "look", "{\"at\":\"x\"}"), call("b", "act", "{}")];
    // As the protocol has it, the calls one in the other.
    let calls = streamed(vec![
        piece(Some(0), Some("a"), Some("look"), ""),
        piece(Some(1), Some("b"), Some("act"), ""),
        piece(Some(0), None, None, "{\"at\":"),
        piece(Some(1), None, None, "{}"),
        piece(Some(0), None, None, "\"x\"}"),
    ]);
    assert_eq!(calls.await, expected);
    // The name and the id again with each piece; the second call first.
    let calls = streamed(vec![
        piece(Some(1), Some("b"), Some("act"), "{"),
        piece(Some(0), Some("a"), Some("look"), "{\"at\":"),
        piece(Some(0), Some("a"), Some("look"), "\"x\"}"),
        piece(Some(1), Some("b"), Some("act"), "}"),
    ]);
    assert_eq!(calls.await, expected);
    // Whole calls, all of index 0; and without an index at all.
    for index in [Some(0), None] {
        let calls = streamed(vec![
            piece(index, Some("a"), Some("look"), "{\"at\":\"x\"}"),
            piece(index, Some("b"), Some("act"), "{}"),
        ]);
        assert_eq!(calls.await, expected);
    }
    // No ids, an empty name behind the first piece.
    let calls = streamed(vec![
        piece(Some(0), None, Some("look"), "{\"at\":"),
        piece(Some(0), Some(""), Some(""), "\"x\"}"),
        piece(Some(1), None, Some("act"), "{}"),
    ]);
    assert_eq!(calls.await, [call("", "look", "{\"at\":\"x\"}"), call("", "act", "{}")]);
}

#[tokio::test]
async fn a_piece_without_a_name_continues_the_call_of_its_index_whatever_its_id() {
    for id in [None, Some(""), Some("a"), Some("another")] {
        let calls = streamed(vec![
            piece(Some(0), Some("a"), Some("look"), ""),
            piece(Some(1), Some("b"), Some("act"), ""),
            piece(Some(0), id, None, "{\"x\":"),
            piece(Some(0), id, Some(""), "5}"),
            piece(Some(1), id, None, "{}"),
        ]);
        assert_eq!(calls.await, [call("a", "look", "{\"x\":5}"), call("b", "act", "{}")], "{id:?}");
    }
    // The ids say which call a piece is of, where the index is the same for all, or missing.
    for index in [Some(0), None] {
        let calls = streamed(vec![
            piece(index, Some("a"), Some("look"), ""),
            piece(index, Some("b"), Some("look"), ""),
            piece(index, Some("a"), None, "{\"x\":1}"),
            piece(index, Some("b"), None, "{\"x\":2}"),
        ]);
        assert_eq!(calls.await, [call("a", "look", "{\"x\":1}"), call("b", "look", "{\"x\":2}")], "{index:?}");
    }
    // Two pieces with names are two calls; without ids, when each is whole.
    let two = [call("a", "look", "{\"x\":1}"), call("b", "look", "{\"x\":2}")];
    for index in [Some(0), None] {
        let named = |id, arguments| piece(index, id, Some("look"), arguments);
        assert_eq!(streamed(vec![named(Some("a"), "{\"x\":1}"), named(Some("b"), "{\"x\":2}")]).await, two);
        let calls = streamed(vec![named(None, "{\"x\":1}"), named(None, "{\"x\":2}")]).await;
        assert_eq!(calls, [call("", "look", "{\"x\":1}"), call("", "look", "{\"x\":2}")]);
    }
}

#[tokio::test]
async fn calls_that_a_last_piece_says_again_are_made_once() {
    let calls = json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{\"x\":1}"}},
        {"index": 1, "id": "b", "function": {"name": "look", "arguments": "{\"x\":2}"}}]);
    for (last, again) in [("delta", calls.clone()), ("message", calls.clone()), ("delta", json!([calls[1]]))] {
        let end = json!({"choices": [{"index": 0, last: {"tool_calls": again}, "finish_reason": "tool_calls"}]});
        let events = [delta(&json!([calls[0]])), delta(&json!([calls[1]])), end.to_string()];
        let reply = said(Answer::events(events), "openai").await;
        assert_eq!(reply.calls, [call("a", "look", "{\"x\":1}"), call("b", "look", "{\"x\":2}")], "{last}");
    }
}

#[tokio::test]
async fn a_call_that_a_reply_has_twice_is_one_and_calls_that_differ_are_two() {
    let function =
        |id: &str, x: &str| json!({"id": id, "function": {"name": "look", "arguments": format!("{{\"x\":{x}}}")}});
    let one = || call("a", "look", "{\"x\":1}");
    for (second, expected) in [
        (function("a", "1"), vec![one()]),
        (function("a", " 1"), vec![one()]),
        (function("a", "2"), vec![one(), call("a", "look", "{\"x\":2}")]),
        (function("b", "1"), vec![one(), call("b", "look", "{\"x\":1}")]),
    ] {
        let calls = [function("a", "1"), second];
        let reply = said(message(&json!({"content": null, "tool_calls": calls})), "openai").await;
        assert_eq!(reply.calls, expected);
        let pieces = calls.iter().zip(0..).map(|(call, index)| {
            let mut call = call.clone();
            call["index"] = json!(index);
            json!([call])
        });
        assert_eq!(streamed(pieces.collect()).await, expected);
    }
    let calls = ["", ""].map(|id| function(id, "1"));
    assert_eq!(said(message(&json!({"content": null, "tool_calls": calls})), "openai").await.calls.len(), 2);
    // What goes back with a call stays with it.
    let part = |x: u64, sealed: &str| json!({"functionCall": {"id": format!("c{x}"), "name": "look", "args": {"x": x}}, "thoughtSignature": sealed});
    let content = json!({"parts": [part(1, "s1"), part(1, "again"), part(2, "s2")]});
    let answer = Answer::json(&json!({"candidates": [{"content": content, "finishReason": "STOP"}]}));
    let reply = said(answer, "gemini").await;
    assert_eq!(reply.calls.len(), 2);
    let sealed: Value = serde_json::from_str(&reply.reasoning.unwrap().sealed).unwrap();
    assert_eq!(sealed, json!([{"at": 2, "json": "s1"}, {"at": 3, "json": "s2"}]));
}

#[tokio::test]
async fn a_part_of_a_text_that_is_a_call_is_not_dropped_and_a_thought_is_no_text() {
    let parts = |kind: &str| json!({"content": [{"type": "text", "text": "I look."}, {"type": kind, "text": "hm", "name": "look"}]});
    for kind in ["tool_use", "tool_call", "function_call"] {
        let fault = greet(&openai(&Server::new(vec![message(&parts(kind))])), 1).await.0.unwrap_err();
        assert!(fault.retryable && fault.message.contains(kind), "{fault:?}");
    }
    for kind in ["thinking", "reasoning"] {
        assert_eq!(said(message(&parts(kind)), "openai").await.text, "I look.");
    }
    let look = json!({"thought": true, "functionCall": {"name": "look", "args": {}}});
    let answer = json!({"candidates": [{"content": {"parts": [{"text": "I look."}, look]}, "finishReason": "STOP"}]});
    assert_eq!(said(Answer::json(&answer), "gemini").await.calls, [call("", "look", "{}")]);
    let custom = json!({"type": "custom_tool_call", "call_id": "c", "name": "look", "input": "{}"});
    let output = json!([{"type": "message", "content": [{"type": "output_text", "text": "I look."}]}, custom]);
    let server = Server::new(vec![Answer::json(&json!({"status": "completed", "output": output}))]);
    let fault = greet(&at(&server, "openai-responses"), 1).await.0.unwrap_err();
    assert!(fault.retryable && fault.message.contains("a call of the kind custom_tool_call"), "{fault:?}");
}

#[tokio::test]
async fn no_call_of_a_reply_is_made_when_another_one_has_no_name() {
    let calls = json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}},
        {"index": 1, "id": "b", "function": {"arguments": "{}"}}]);
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string();
    let torn = [message(&json!({"content": null, "tool_calls": calls})), Answer::events([delta(&calls), end])];
    for answer in torn {
        let server = Server::new(vec![answer, Answer::openai("Hi")]);
        let (reply, failed) = greet_all(&[openai(&server)], &mut Wire::default(), 2).await;
        assert_eq!((reply.unwrap().text.as_str(), failed.len()), ("Hi", 1));
        assert!(failed[0].reason.contains("no name"), "{failed:?}");
    }
}

#[tokio::test]
async fn a_call_in_the_words_of_the_first_years_is_a_call() {
    let function = json!({"name": "look", "arguments": "{\"x\":1}"});
    let whole = |message: Value, reason: &str| {
        Answer::json(&json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}]}))
    };
    for reason in ["function_call", "stop"] {
        let answer = whole(json!({"content": null, "function_call": function}), reason);
        assert_eq!(said(answer, "openai").await.calls, [call("", "look", "{\"x\":1}")]);
    }
    let piece = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]}).to_string();
    let events = [
        piece(json!({"content": null, "function_call": {"name": "look", "arguments": ""}})),
        piece(json!({"function_call": {"arguments": "{\"x\""}})),
        piece(json!({"function_call": {"arguments": ":1}"}})),
        end,
    ];
    assert_eq!(said(Answer::events(events), "openai").await.calls, [call("", "look", "{\"x\":1}")]);
    // Both ways at once are one call.
    let both = json!({"content": "x", "function_call": function, "tool_calls": [{"id": "a", "function": function}]});
    assert_eq!(said(whole(both, "tool_calls"), "openai").await.calls, [call("a", "look", "{\"x\":1}")]);
}

#[test]
fn very_many_calls_are_put_together_as_few_are() {
    let mut pieces = StreamedReply::default();
    for arguments in ["{", "}"] {
        for index in 0..150_000 {
            pieces.add_call(Some(index), call("", "", arguments));
        }
    }
    pieces.stop(StopReason::Calls);
    let calls = pieces.whole(&Peer { name: "peer".to_owned(), vault: vault() }).unwrap().calls;
    assert!(calls.len() == 150_000 && calls.iter().all(|call| call.arguments == "{}"));
}

#[tokio::test]
async fn blocks_of_a_stream_are_put_together() {
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I look."}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "a", "name": "look", "input": {}}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"at\": 1.5"}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "0}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "b", "name": "act", "input": {}}}),
        json!({"type": "content_block_stop", "index": 3}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    let reply = said(Answer::events(&events), "anthropic").await;
    assert_eq!(reply.calls, [call("a", "look", "{\"at\": 1.50}"), call("b", "act", "")]);
    assert_eq!((reply.text.as_str(), reply.finish), ("I look.", Finish::Stop));
}

fn conversation() -> Conversation {
    let mut conversation = hello();
    conversation.push_reply(
        "I look.".to_owned(),
        vec![call("a.1", "look", "{\"n\":1E400}"), call("b", "act", "{}")],
        None,
    );
    conversation.push_answer("a.1".to_owned(), false, "seen".to_owned());
    conversation.push_answer("b".to_owned(), true, "Error: no".to_owned());
    conversation.push(Role::User, "Hint: stop.");
    conversation.push_reply(String::new(), vec![call("c", "act", "{}")], None);
    conversation.push_answer("c".to_owned(), false, String::new());
    conversation
}

#[test]
fn calls_and_observations_go_back_as_openai_wants_them() {
    let request = models(&json!({"models": {"m": {"provider": "openai", "base_url": "http://localhost:1"}}}))
        .get(Some("m"))
        .unwrap()
        .request(&plain(&conversation()), &mut Wire::default());
    let body: Value = serde_json::from_slice(&request).unwrap();
    let function = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    assert_eq!(
        body["messages"].as_array().unwrap()[2..],
        [
            json!({"role": "assistant", "content": "I look.",
                "tool_calls": [function("a.1", "look", "{\"n\":1E400}"), function("b", "act", "{}")]}),
            json!({"role": "tool", "content": "seen", "tool_call_id": "a.1"}),
            json!({"role": "tool", "content": "Error: no", "tool_call_id": "b"}),
            json!({"role": "user", "content": "Hint: stop."}),
            json!({"role": "assistant", "content": null, "tool_calls": [function("c", "act", "{}")]}),
            json!({"role": "tool", "content": "", "tool_call_id": "c"}),
        ]
    );
}

#[test]
fn calls_and_observations_go_back_as_anthropic_wants_them() {
    let model = models(&json!({"models": {"m": {"provider": "anthropic", "base_url": "http://localhost:1"}}}))
        .get(Some("m"))
        .unwrap();
    let request = model.request(&plain(&conversation()), &mut Wire::default());
    let text = String::from_utf8(request.to_vec()).unwrap();
    assert!(text.contains("\"input\":{\"n\":1E400}"), "{text}");
    let made: String = Sha256::of("a.1").to_string().chars().take(24).collect();
    let made = format!("call_{made}");
    let body: Value = serde_json::from_str(&text.replace("1E400", "1")).unwrap();
    assert_eq!(
        body["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": made, "name": "look", "input": {"n": 1}},
                {"type": "tool_use", "id": "b", "name": "act", "input": {}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": made, "content": "seen"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": "Error: no"},
                {"type": "text", "text": "Hint: stop."}]}),
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "act", "input": {}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "", "cache_control": {"type": "ephemeral"}}]}),
        ]
    );
    // A trimmed history may begin with the model's word.
    let mut trimmed = conversation();
    trimmed.messages.remove(1);
    let body: Value = serde_json::from_slice(&model.request(&plain(&trimmed), &mut Wire::default())).unwrap();
    assert_eq!(body["messages"][0]["role"], "user");
    assert_eq!(body["messages"][1]["role"], "assistant");
}
