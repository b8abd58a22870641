//! The Responses API: what is sent, and what is read, whole and streamed.

use serde_json::{Value, json};

use super::*;
use loopctl_engine::event::{Finish, ModelFaultCode, SaidCall, Tokens};

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

fn message(index: u64, phase: Option<&str>, text: &str) -> Value {
    json!({"id": format!("msg_{index}"), "type": "message", "role": "assistant", "status": "completed", "phase": phase,
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": format!("fc_{id}"), "type": "function_call", "call_id": id, "name": "look", "arguments": arguments})
}

fn event(kind: &str, more: &Value) -> String {
    with(json!({ "type": format!("response.{kind}") }), more).to_string()
}

fn with(mut event: Value, more: &Value) -> Value {
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn completed(output: &Value) -> String {
    event("completed", &json!({"response": {"status": "completed", "output": output}}))
}

/// The texts and calls of a stream of these events.
async fn put_together(events: &[String]) -> (String, Vec<String>) {
    let reply = asked(&Server::new(vec![Answer::events(events)]), &hello(), true).await.unwrap();
    (reply.text, reply.calls.into_iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect())
}

#[tokio::test]
async fn the_answer_is_what_the_final_phase_says_and_commentary_is_thought() {
    let output =
        json!([message(0, Some("commentary"), "I confirm it."), message(1, Some("final_answer"), "Confirmed.")]);
    let begun = |index: usize| event("output_item.added", &json!({"output_index": index, "item": output[index]}));
    let delta = |index: u64, text: &str| event("output_text.delta", &json!({"output_index": index, "delta": text}));
    let done = |index: usize| event("output_item.done", &json!({"output_index": index, "item": output[index]}));
    let streamed = |end: Value| {
        let events = [begun(0), delta(0, "I confirm it."), done(0), begun(1), delta(1, "Confirmed."), done(1)];
        Answer::events(events.into_iter().chain([completed(&end)]))
    };
    let whole = Answer::json(&json!({"status": "completed", "output": output}));
    for first in [whole, streamed(json!([])), streamed(output.clone())] {
        let server = Server::new(vec![first, Answer::json(&response(MESSAGE, ""))]);
        let mut conversation = hello();
        let shown = Mutex::new(String::new());
        let partial = |reply: PartialReply<'_>| reply.text.clone_into(&mut shown.lock().unwrap());
        let asking = Ask { partial: Some(&partial), ..plain(&conversation) };
        let model = at(&server, "openai-responses");
        let reply = ask(&[model], &asking, &mut Wire::default(), &retry(1), &|_| ()).await.unwrap();
        assert_eq!(reply.text, "Confirmed.");
        assert!("Confirmed.".starts_with(&*shown.lock().unwrap()), "{shown:?}");
        assert_eq!(reply.reasoning.as_ref().unwrap().text, "I confirm it.");
        conversation.push_reply(reply.text, reply.calls, reply.reasoning);
        conversation.push(Role::User, "Thanks.");
        asked(&server, &conversation, false).await.unwrap();
        assert_eq!(
            server.requests()[1].json()["input"].as_array().unwrap()[2..],
            [
                json!({"role": "assistant", "phase": "commentary", "content": "I confirm it."}),
                json!({"role": "assistant", "content": "Confirmed.", "phase": "final_answer"}),
                json!({"role": "user", "content": "Thanks."}),
            ]
        );
    }
}

#[tokio::test]
async fn commentary_alone_is_no_answer_and_with_a_call_it_is_the_thought() {
    let alone = json!([message(0, Some("commentary"), "I look.")]);
    let server = Server::new(vec![Answer::json(&json!({"status": "completed", "output": alone}))]);
    let fault = asked(&server, &hello(), false).await.unwrap_err();
    assert!(fault.retryable && fault.message.contains("empty but for its reasoning"), "{fault:?}");
    for phase in [None, Some("analysis")] {
        let output = json!([message(0, phase, "I look."), message(1, Some("final_answer"), "Done.")]);
        let server = Server::new(vec![Answer::json(&json!({"status": "completed", "output": output}))]);
        let reply = asked(&server, &hello(), false).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.reasoning.unwrap().text.as_str()), ("Done.", "I look."));
    }
    let output = json!([alone[0], call("c", "{}")]);
    let server = Server::new(vec![Answer::json(&json!({"status": "completed", "output": output}))]);
    let reply = asked(&server, &hello(), false).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.calls.len()), ("", 1));
    assert_eq!(reply.reasoning.unwrap().text, "I look.");
}

#[tokio::test]
async fn what_streamed_is_reconciled_with_the_last_event_and_counts_once() {
    let delta = |text: &str| event("output_text.delta", &json!({"output_index": 0, "delta": text}));
    let arguments =
        event("function_call_arguments.delta", &json!({"output_index": 1, "item_id": "fc_c", "delta": "{\"x\":1}"}));
    let done = |index: u64, item: Value| event("output_item.done", &json!({"output_index": index, "item": item}));
    let begun = event("output_item.added", &json!({"output_index": 1, "item": call("c", "")}));
    let (text, one) = (message(0, None, "I look."), call("c", "{\"x\":1}"));
    let expected = ("I look.".to_owned(), vec!["c look {\"x\":1}".to_owned()]);
    let rotated = with(text.clone(), &json!({"id": "other"}));
    for events in [
        // Only the last event has the call; the text; both.
        vec![delta("I look."), arguments.clone(), completed(&json!([text, one]))],
        vec![done(1, one.clone()), completed(&json!([text, one]))],
        vec![completed(&json!([text, one]))],
        // Only the pieces have them.
        vec![delta("I "), delta("look."), begun.clone(), arguments.clone(), completed(&json!([]))],
        vec![delta("I "), delta("look."), done(0, text.clone()), done(1, one.clone()), completed(&json!([]))],
        vec![
            event("output_text.done", &json!({"output_index": 0, "text": "I look."})),
            begun.clone(),
            event("function_call_arguments.done", &json!({"output_index": 1, "arguments": "{\"x\":1}"})),
            completed(&json!([])),
        ],
        // Both have them, under other ids, or without a part.
        vec![
            delta("I look."),
            done(0, text.clone()),
            begun.clone(),
            arguments.clone(),
            done(1, one.clone()),
            completed(&json!([rotated, one])),
        ],
        vec![delta("I look."), done(1, one.clone()), completed(&json!([text]))],
        vec![delta("I look."), done(1, one.clone()), completed(&json!([one]))],
        vec![delta("I loo"), done(1, one.clone()), completed(&json!([text, call("c", "")]))],
        vec![
            delta("I look."),
            event("output_text.done", &json!({"output_index": 0, "text": "I look."})),
            done(0, text.clone()),
            done(1, one.clone()),
            completed(&json!([text, one])),
        ],
    ] {
        assert_eq!(put_together(&events).await, expected, "{events:#?}");
    }
    // Calls that are alike and have ids of their own are all made.
    let two = json!([call("a", "{}"), call("b", "{}")]);
    for events in [
        vec![completed(&two)],
        vec![done(0, two[0].clone()), done(1, two[1].clone()), completed(&two)],
        vec![done(0, two[0].clone()), completed(&two)],
    ] {
        assert_eq!(put_together(&events).await.1, ["a look {}", "b look {}"], "{events:#?}");
    }
}

#[tokio::test]
async fn a_call_whose_ids_change_from_event_to_event_is_one_call() {
    let item = |id: &str, call_id: &str, arguments: &str| json!({"id": id, "type": "function_call", "status": "in_progress", "call_id": call_id, "name": "look", "arguments": arguments});
    let at = |kind: &str, item: Value| event(kind, &json!({"output_index": 0, "item": item}));
    let piece = |id: &str, delta: &str| {
        event("function_call_arguments.delta", &json!({"output_index": 0, "item_id": id, "delta": delta}))
    };
    let whole =
        event("function_call_arguments.done", &json!({"output_index": 0, "item_id": "b4", "arguments": "{\"x\":1}"}));
    let opened = [at("output_item.added", item("a1", "c1", "")), piece("b2", "{\"x\":"), piece("b3", "1}")];
    let done = with(item("d4", "c2", "{\"x\": 1}"), &json!({"status": "completed"}));
    let bare = with(item("d4", "c2", ""), &json!({"status": "completed"}));
    for (rest, id, arguments) in [
        (vec![completed(&json!([]))], "c1", "{\"x\":1}"),
        (vec![whole, completed(&json!([]))], "c1", "{\"x\":1}"),
        (vec![at("output_item.done", bare), completed(&json!([]))], "c2", "{\"x\":1}"),
        (vec![at("output_item.done", done.clone()), completed(&json!([]))], "c2", "{\"x\": 1}"),
        (vec![completed(&json!([done]))], "c2", "{\"x\": 1}"),
    ] {
        let events: Vec<String> = opened.iter().cloned().chain(rest).collect();
        assert_eq!(put_together(&events).await.1, [format!("{id} look {arguments}")], "{events:#?}");
    }
    // Of a call that only began nothing is known; one that was cut off is not made.
    let lost = [opened[0].clone(), completed(&json!([]))];
    let fault = asked(&Server::new(vec![Answer::events(lost)]), &hello(), true).await.unwrap_err();
    assert!(fault.retryable && fault.message.contains("a call of which only the beginning came"), "{fault:?}");
    for output in [json!([]), json!([with(done.clone(), &json!({"status": "incomplete"}))])] {
        let end = event("incomplete", &json!({"response": {"status": "incomplete", "output": output}}));
        let cut = Answer::events([opened[0].clone(), end]);
        let reply = asked(&Server::new(vec![cut]), &hello(), true).await.unwrap();
        assert_eq!((reply.finish, reply.calls[0].arguments.as_str()), (Finish::Length, ""), "{output}");
    }
}
