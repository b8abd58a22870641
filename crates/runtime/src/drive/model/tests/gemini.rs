//! The Gemini API: what is sent, and what is read, whole and streamed.

use serde_json::{Value, json};

use super::*;
use loopctl_engine::event::{Finish, SaidCall, Tokens};

const USAGE: &str = r#""usageMetadata":{"promptTokenCount":12,"cachedContentTokenCount":8,"candidatesTokenCount":15,"thoughtsTokenCount":4},"modelVersion":"gemini-3-pro-001""#;

fn answer(parts: &str, finish: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"finishReason":"{finish}","index":0}}],{USAGE}}}"#
    )
}

const PARTS: [&str; 4] = [
    r#"{"text":"I think.","thought":true}"#,
    r#"{"text":"I look.","thoughtSignature":"TEXT+/="}"#,
    r#"{"functionCall":{"name":"look","args":{"at":1.50},"id":"c1"},"thoughtSignature":"CALL\u002b/="}"#,
    r#"{"functionCall":{"name":"act","args":{}}}"#,
];

fn whole() -> Answer {
    Answer::json(&answer(&PARTS.join(","), "STOP"))
}

fn streamed() -> Answer {
    let piece = |part: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}"#);
    let pieces = [PARTS[0], r#"{"text":"I "}"#, r#"{"text":"look.","thoughtSignature":"TEXT+/="}"#, PARTS[2]];
    let last = answer(PARTS[3], "STOP");
    Answer::events(pieces.into_iter().map(piece).chain([last]))
}

async fn asked(server: &Server, conversation: &Conversation, stream: bool) -> Result<Reply, ModelFault> {
    let partial = |_: PartialReply<'_>| ();
    let asked = Ask { partial: stream.then_some(&partial), ..plain(conversation) };
    ask(&[at(server, "gemini")], &asked, &mut Wire::default(), &retry(1), &|_| ()).await
}

#[tokio::test]
async fn calls_and_their_signatures_go_back_as_they_came() {
    for (stream, first, path) in [
        (false, whole(), "/v1/models/m:generateContent"),
        (true, streamed(), "/v1/models/m:streamGenerateContent?alt=sse"),
    ] {
        let server = Server::new(vec![first, Answer::json(&answer(r#"{"text":"Done."}"#, "STOP"))]);
        let mut conversation = hello();
        let reply = asked(&server, &conversation, stream).await.unwrap();
        let call = |id: &str, name: &str, arguments: &str| SaidCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        assert_eq!(reply.calls, [call("c1", "look", r#"{"at":1.50}"#), call("", "act", "{}")]);
        assert_eq!((reply.text.as_str(), reply.finish), ("I look.", Finish::Stop));
        assert_eq!(reply.reasoning.as_ref().unwrap().text, "I think.");
        let usage = Tokens { input: 12, output: 19, cached_input: 8, cache_write: 0, reasoning: 4 };
        assert_eq!((reply.usage, reply.response_model.as_deref()), (Some(usage), Some("gemini-3-pro-001")));
        let calls = vec![call("c1", "look", r#"{"at":1.50}"#), call("call_1_1", "act", "{}")];
        conversation.push_reply(reply.text, calls, reply.reasoning);
        conversation.push_answer("c1".to_owned(), false, "seen".to_owned());
        conversation.push_answer("call_1_1".to_owned(), true, "Error: no".to_owned());
        conversation.push(Role::User, "Hint: stop.");
        asked(&server, &conversation, false).await.unwrap();
        let requests = server.requests();
        assert_eq!((requests[0].path.as_str(), requests[0].header("authorization")), (path, None));
        let sent = requests[1].text();
        assert!(sent.contains(r#""thoughtSignature":"CALL\u002b/=""#), "{sent}");
        let body = requests[1].json();
        assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
        assert_eq!(body["generationConfig"], json!({"maxOutputTokens": 100, "temperature": 0.7}));
        let result = |id: &str, name: &str, output: &str| json!({"functionResponse": {"id": id, "name": name, "response": {"output": output}}});
        assert_eq!(
            body["contents"],
            json!([
                {"role": "user", "parts": [{"text": "Hello"}]},
                {"role": "model", "parts": [
                    {"text": "I look.", "thoughtSignature": "TEXT+/="},
                    {"functionCall": {"id": "c1", "name": "look", "args": serde_json::from_str::<Value>(r#"{"at":1.50}"#).unwrap()}, "thoughtSignature": "CALL+/="},
                    {"functionCall": {"id": "call_1_1", "name": "act", "args": {}}}]},
                {"role": "user", "parts": [result("c1", "look", "seen"), result("call_1_1", "act", "Error: no"),
                    {"text": "Hint: stop."}]},
            ])
        );
    }
}

#[tokio::test]
async fn a_signature_in_a_part_of_its_own_goes_back_with_the_call_before_it() {
    let called = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{},"id":"c1"}}]}}]}"#;
    let last = answer(r#"{"text":"","thoughtSignature":"OWN"}"#, "STOP");
    let second = Answer::json(&answer(r#"{"text":"Done."}"#, "STOP"));
    let server = Server::new(vec![Answer::events([called, last.as_str()]), second]);
    let mut conversation = hello();
    let reply = asked(&server, &conversation, true).await.unwrap();
    conversation.push_reply(reply.text, reply.calls, reply.reasoning);
    conversation.push_answer("c1".to_owned(), false, "seen".to_owned());
    asked(&server, &conversation, false).await.unwrap();
    let body = server.requests()[1].json();
    assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "OWN", "{body:#}");
}

#[tokio::test]
async fn a_conversation_that_grows_names_the_call_of_each_result() {
    let server = Server::with(|_, _| Answer::json(&answer(r#"{"text":"x"}"#, "STOP")));
    let (model, mut wire, mut conversation) = (at(&server, "gemini"), Wire::default(), hello());
    let call = SaidCall { id: "a".to_owned(), name: "look".to_owned(), arguments: "{}".to_owned() };
    conversation.push_reply(String::new(), vec![call], None);
    drop(model.request(&plain(&conversation), &mut wire));
    conversation.push_answer("a".to_owned(), false, "seen".to_owned());
    let grown = model.request(&plain(&conversation), &mut wire);
    assert_eq!(grown, model.request(&plain(&conversation), &mut Wire::default()));
    let body: Value = serde_json::from_slice(&grown).unwrap();
    assert_eq!(body["contents"][2]["parts"][0]["functionResponse"]["name"], "look");
}

#[tokio::test]
async fn stops_for_safety_are_filtered_and_what_could_not_be_a_call_is_tried_again() {
    for (body, finish, text) in [
        (answer(r#"{"text":"x"}"#, "MAX_TOKENS"), Finish::Length, "x"),
        (answer(r#"{"text":"x"}"#, "SAFETY"), Finish::Filtered, "x"),
        (r#"{"candidates":[{"finishReason":"PROHIBITED_CONTENT"}]}"#.to_owned(), Finish::Filtered, ""),
        (r#"{"promptFeedback":{"blockReason":"OTHER"}}"#.to_owned(), Finish::Filtered, "The prompt was blocked: OTHER"),
    ] {
        for first in [Answer::json(&body), Answer::events([&body])] {
            let reply = asked(&Server::new(vec![first]), &hello(), true).await.unwrap();
            assert_eq!((reply.finish, reply.text.as_str()), (finish, text), "{body}");
        }
    }
    let malformed = r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed: look("}]}"#;
    let fault = asked(&Server::new(vec![Answer::json(malformed)]), &hello(), false).await.unwrap_err();
    assert!(fault.retryable && fault.message.contains("Malformed: look("), "{fault:?}");
    let refused = r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#;
    let fault = asked(&Server::new(vec![Answer::json(refused).status(400)]), &hello(), false).await.unwrap_err();
    assert_eq!(fault.code, loopctl_engine::event::ModelFaultCode::ContextExceeded);
}

#[test]
fn settings_of_thinking_stand_in_the_generation_config() {
    for (settings, expected) in [
        (json!({"reasoning_effort": "low"}), json!({"includeThoughts": true, "thinkingLevel": "low"})),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 512}}),
            json!({"includeThoughts": true, "thinkingBudget": 512}),
        ),
        (json!({"thinking": {"type": "disabled"}}), json!({"includeThoughts": false, "thinkingBudget": 0})),
    ] {
        let mut model = json!({"provider": "gemini", "base_url": "http://127.0.0.1:9", "top_k": 3, "seed": 1});
        model.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let request = models(&json!({"models": {"m": model}})).get(Some("m")).unwrap();
        let body = request.request(&plain(&hello()), &mut Wire::default());
        let body: Value = serde_json::from_slice(&body).unwrap();
        let config = &body["generationConfig"];
        assert_eq!((&config["thinkingConfig"], &config["topK"], &config["seed"]), (&expected, &json!(3), &json!(1)));
    }
}
