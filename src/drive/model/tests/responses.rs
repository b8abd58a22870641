//! The Responses API: what is sent, and what is read, whole and streamed.

use serde_json::{Value, json};

use super::*;
use crate::engine::event::{Finish, ModelFaultCode, SaidCall, Tokens};

fn response(output: &str, more: &str) -> String {
    format!(
        r#"{{"id":"resp_1","object":"response","status":"completed","model":"gpt-5.6-2026-07-01","error":null,"output":[{output}],
        "usage":{{"input_tokens":90,"input_tokens_details":{{"cached_tokens":64}},"output_tokens":40,"output_tokens_details":{{"reasoning_tokens":30}}}}{more}}}"#
    )
}

const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Look\u0021"}],"encrypted_content":"gAAA=="}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"I look."}]}"#;
const CALL: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"at\":1.50}","call_id":"call_1","name":"look"}"#;

fn whole() -> Answer {
    Answer::json(&response(&[REASONING, MESSAGE, CALL].join(","), ""))
}

fn streamed() -> Answer {
    let delta =
        |text: &str| json!({"type": "response.output_text.delta", "item_id": "msg_1", "delta": text}).to_string();
    let done = |item: &str| format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let events = vec![
        r#"{"type":"response.created","response":{"status":"in_progress","output":[]}}"#.to_owned(),
        r#"{"type":"response.output_item.added","item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gA"}}"#.to_owned(),
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","delta":"Look"}"#.to_owned(),
        done(REASONING),
        delta("I "),
        delta("look."),
        done(MESSAGE),
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{"}"#.to_owned(),
        done(CALL),
        format!(r#"{{"type":"response.completed","response":{}}}"#, response("", "").replace('\n', "")),
    ];
    Answer::events(events)
}

async fn asked(server: &Server, conversation: &Conversation, stream: bool) -> Result<Reply, ModelFault> {
    let partial = |_: PartialReply<'_>| ();
    let asked = Ask { partial: stream.then_some(&partial), ..plain(conversation) };
    ask(&[at(server, "openai-responses")], &asked, &mut Wire::default(), &retry(1), &|_| ()).await
}

#[tokio::test]
async fn nothing_is_stored_and_reasoning_items_go_back_as_they_came() {
    for (stream, first) in [(false, whole()), (true, streamed())] {
        let server = Server::new(vec![first, Answer::json(&response(MESSAGE, ""))]);
        let mut conversation = hello();
        let reply = asked(&server, &conversation, stream).await.unwrap();
        let call = SaidCall { id: "call_1".into(), name: "look".into(), arguments: "{\"at\":1.50}".into() };
        assert_eq!((reply.text.as_str(), &reply.calls[..], reply.finish), ("I look.", &[call][..], Finish::Stop));
        assert_eq!(reply.reasoning.as_ref().unwrap().text, "Look!");
        let usage = Tokens { input: 90, output: 40, cached_input: 64, cache_write: 0, reasoning: 30 };
        assert_eq!((reply.usage, reply.response_model.as_deref()), (Some(usage), Some("gpt-5.6-2026-07-01")));
        conversation.push_reply(reply.text, reply.calls, reply.reasoning);
        conversation.push_answer("call_1".to_owned(), false, "seen".to_owned());
        asked(&server, &conversation, false).await.unwrap();
        let requests = server.requests();
        assert_eq!(requests[0].path, "/v1/responses");
        let sent = requests[1].text();
        assert!(sent.contains(REASONING), "{sent}");
        let body = requests[1].json();
        assert_eq!((&body["store"], &body["include"]), (&json!(false), &json!(["reasoning.encrypted_content"])));
        assert_eq!((&body["max_output_tokens"], &body["stream"]), (&json!(100), &Value::Null));
        assert_eq!(
            body["input"],
            json!([
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello"},
                serde_json::from_str::<Value>(REASONING).unwrap(),
                {"role": "assistant", "content": "I look."},
                {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{\"at\":1.50}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "seen"},
            ])
        );
    }
}

#[tokio::test]
async fn a_reply_says_whether_it_was_cut_off_kept_back_or_failed() {
    let read = |body: String| async move { asked(&Server::new(vec![Answer::json(&body)]), &hello(), false).await };
    let incomplete = |reason: &str| format!(r#","status":"incomplete","incomplete_details":{{"reason":"{reason}"}}"#);
    let cut = response(REASONING, "").replacen(r#","status":"completed""#, &incomplete("max_output_tokens"), 1);
    let reply = read(cut).await.unwrap();
    assert_eq!(reply.finish, Finish::Length);
    let reasoning = reply.reasoning.unwrap();
    assert_eq!((reasoning.text.as_str(), reasoning.sealed.as_str()), ("Look!", ""), "no item follows it");
    let filtered = response(MESSAGE, "").replacen(r#","status":"completed""#, &incomplete("content_filter"), 1);
    assert_eq!(read(filtered).await.unwrap().finish, Finish::Filtered);
    let refusal = MESSAGE
        .replace(r#""type":"output_text","annotations":[],"text":"I look.""#, r#""type":"refusal","refusal":"No.""#);
    let reply = read(response(&refusal, "")).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("No.", Finish::Filtered));
    let failed = response("", "").replace(r#""error":null"#, r#""error":{"code":"server_error","message":"Broken."}"#);
    let fault = read(failed).await.unwrap_err();
    assert!(fault.code == ModelFaultCode::ModelProtocol && fault.message.contains("Broken."), "{fault:?}");
    let events = [r#"{"type":"error","error":{"code":"x","message":"Foobar","param":null}}"#];
    let fault = asked(&Server::new(vec![Answer::events(events)]), &hello(), true).await.unwrap_err();
    assert!(fault.message.contains("Foobar"), "{fault:?}");
    let events = [r#"{"type":"response.output_text.delta","delta":"Hi"}"#];
    let fault = asked(&Server::new(vec![Answer::events(events)]), &hello(), true).await.unwrap_err();
    assert!(fault.message.contains("cut off"), "{fault:?}");
}

#[tokio::test]
async fn a_model_without_encrypted_reasoning_is_asked_without_it() {
    let server = Server::reading(|_, request| match request.json()["include"].is_null() {
        true => Answer::json(&response(MESSAGE, "")),
        false => {
            let words = "Encrypted content is not supported with this model.";
            Answer::json(&json!({"error": {"message": words, "param": "include"}})).status(400)
        }
    });
    assert_eq!(asked(&server, &hello(), false).await.unwrap().attempts, []);
    assert_eq!(server.requests().len(), 2);
}
