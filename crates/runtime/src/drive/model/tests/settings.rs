//! The settings of a model in the project file, and the fields that a model refuses.

use serde_json::{Value, json};

use super::*;

fn model_of(mut file: Value, server: &str) -> Result<Arc<ModelClient>, String> {
    file["base_url"] = json!(server);
    models(&json!({"models": {"m": file}})).get(Some("m"))
}

fn body(file: &Value, conversation: &Conversation) -> Value {
    let model = model_of(file.clone(), "http://127.0.0.1:9/v1").unwrap();
    let asked = Ask { stop: &["</x>"], max_tokens: 4_096, ..plain(conversation) };
    serde_json::from_slice(&model.request(&asked, &mut Wire::default())).unwrap()
}

#[test]
fn settings_and_more_fields_are_in_every_request() {
    let file = json!({"provider": "openai", "reasoning_effort": "low", "seed": 7, "stop": ["END"], "top_p": 0.5,
        "top_k": 3, "min_p": 0.1, "frequency_penalty": 0.25, "presence_penalty": -1,
        "extra_body": {"service_tier": "flex", "chat_template_kwargs": {"enable_thinking": true}}});
    let sent = body(&file, &hello());
    let expected = json!({"model": "m", "temperature": 0.7, "max_tokens": 4096, "stop": ["</x>", "END"],
        "reasoning_effort": "low", "seed": 7, "top_p": 0.5, "top_k": 3, "min_p": 0.1, "frequency_penalty": 0.25,
        "presence_penalty": -1.0, "service_tier": "flex", "chat_template_kwargs": {"enable_thinking": true},
        "messages": sent["messages"]});
    assert_eq!(sent, expected);
    let file = json!({"provider": "anthropic", "reasoning_effort": "max", "stop": ["END"], "top_p": 0.5,
        "extra_body": {"service_tier": "auto"}});
    let sent = body(&file, &hello());
    let written = ["output_config", "stop_sequences", "top_p", "service_tier"].map(|name| sent[name].clone());
    assert_eq!(written, [json!({"effort": "max"}), json!(["</x>", "END"]), json!(0.5), json!("auto")]);
    let file = json!({"provider": "openai-responses", "reasoning_effort": "xhigh"});
    assert_eq!(body(&file, &hello())["reasoning"], json!({"effort": "xhigh"}));
}

#[test]
fn a_setting_that_cannot_be_sent_keeps_the_model_from_being_asked() {
    for (file, named) in [
        (json!({"provider": "anthropic", "seed": 1}), "seed"),
        (json!({"provider": "openai", "thinking": {"type": "adaptive"}}), "thinking"),
        (json!({"provider": "openai-responses", "stop": ["x"]}), "stop"),
        (json!({"provider": "openai", "extra_body": {"messages": []}}), "messages"),
        (json!({"provider": "anthropic", "extra_body": {"system": "x"}}), "system"),
    ] {
        let wrong = model_of(file, "http://127.0.0.1:9").unwrap_err();
        assert!(wrong.contains(&format!("`{named}`")), "{wrong}");
    }
}

#[test]
fn thinking_is_asked_for_without_a_temperature_unless_a_turn_of_calls_began_without_it() {
    let file = json!({"provider": "anthropic", "thinking": {"type": "enabled", "budget_tokens": 2000}});
    let mut conversation = hello();
    let sent = body(&file, &conversation);
    assert_eq!((&sent["thinking"], &sent["temperature"]), (&file["thinking"], &Value::Null));
    let call = || loopctl_engine::event::SaidCall { id: "a".into(), name: "look".into(), arguments: "{}".into() };
    conversation.push_reply(String::new(), vec![call()], None);
    conversation.push_answer("a".to_owned(), false, "seen".to_owned());
    assert_eq!(body(&file, &conversation)["thinking"], Value::Null, "another model made the call");
    let off = json!({"provider": "anthropic", "thinking": {"type": "disabled"}});
    assert_eq!(body(&off, &hello())["temperature"], 0.7);
}

/// A server that refuses requests in which `refused` has a value, in these words.
fn refusing(refused: &'static str, words: &'static str, param: Option<&'static str>) -> Server {
    Server::reading(move |_, request| {
        if request.json()[refused].is_null() {
            return Answer::openai("Hi");
        }
        Answer::json(&json!({"error": {"message": words, "type": "invalid_request_error", "param": param}})).status(400)
    })
}

#[tokio::test]
async fn a_field_that_a_model_refuses_is_learned_once_and_is_no_failed_attempt() {
    for (field, words, param) in [
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            Some("max_tokens"),
        ),
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.",
            None,
        ),
        ("stream_options", "stream_options: Extra inputs are not permitted", None),
    ] {
        let server = refusing(field, words, param);
        let model = openai(&server);
        let partial = |_: PartialReply<'_>| ();
        let conversation = hello();
        let asked = Ask { partial: Some(&partial), ..plain(&conversation) };
        for requests in [2, 3] {
            let reply = ask(&[Arc::clone(&model)], &asked, &mut Wire::default(), &retry(1), &|_| ()).await.unwrap();
            assert_eq!((reply.text.as_str(), reply.retries, reply.attempts.len()), ("Hi", 0, 0), "{field}");
            assert_eq!(server.requests().len(), requests, "{field}");
        }
        let last = server.requests()[2].json();
        assert_eq!(last["max_completion_tokens"], if field == "max_tokens" { json!(100) } else { json!(null) });
    }
}

#[tokio::test]
async fn a_refusal_that_names_neither_penalty_or_only_what_is_taken_is_learned() {
    for (field, words) in [
        ("presence_penalty", "Penalty is not enabled for models/fake-1"),
        ("frequency_penalty", "Penalty is not enabled for models/fake-1"),
        ("presence_penalty", "Argument not supported on this model: presencePenalty"),
    ] {
        let server = refusing(field, words, None);
        let model = model_of(json!({"provider": "openai", field: 0.5, "seed": 7}), &server.url()).unwrap();
        assert_eq!(greet(&model, 1).await.0.unwrap().text, "Hi", "{words}");
        let sent: Vec<Value> = server.requests().iter().map(|request| request.json()).collect();
        assert_eq!((&sent[0][field], &sent[1][field], &sent[1]["seed"]), (&json!(0.5), &Value::Null, &json!(7)));
    }
}

#[tokio::test]
async fn a_refusal_of_a_value_is_no_refusal_of_the_field() {
    let words = "Invalid 'temperature': decimal above maximum value. Expected a value <= 2.";
    let server = refusing("temperature", words, Some("temperature"));
    let fault = greet(&openai(&server), 1).await.0.unwrap_err();
    assert!(fault.message.contains("above maximum"), "{}", fault.message);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_refusal_that_the_project_can_cure_says_what_to_write() {
    for (words, cure) in [
        (
            "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "\"provider\": \"openai-responses\" in loopctl.json, or \"reasoning_effort\": \"none\"",
        ),
        ("This model is only supported in v1/responses and not in v1/chat/completions.", "\"openai-responses\""),
        ("\"thinking.type.enabled\" is not supported for this model.", "{\"type\": \"adaptive\"}"),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", "start another run"),
    ] {
        let server = Server::with(move |_, _| Answer::json(&json!({"error": {"message": words}})).status(400));
        let fault = greet(&openai(&server), 1).await.0.unwrap_err();
        assert!(fault.message.contains(cure), "{}", fault.message);
        assert_eq!(server.requests().len(), 1, "{words}");
    }
}
