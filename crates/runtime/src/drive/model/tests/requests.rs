//! What is sent: the bytes, their growth, the headers.

use proptest::prelude::*;

use super::*;
use loopctl_engine::conversation::Message;

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn request(model: &ModelClient, conversation: &Conversation) -> String {
    text(&model.request(&plain(conversation), &mut Wire::default())).to_owned()
}

fn nowhere(provider: &str, id: &str) -> Arc<ModelClient> {
    let file =
        serde_json::json!({"models": {"m": {"provider": provider, "base_url": "http://127.0.0.1:9", "model": id}}});
    models(&file).get(Some("m")).unwrap()
}

#[test]
fn openai_gets_its_messages_last() {
    let conversation = conversation(&[(Role::System, "S"), (Role::User, "a \"b\"\n"), (Role::Assistant, "c")]);
    assert_eq!(
        request(&nowhere("openai", "gpt-4o"), &conversation),
        r#"{"model":"gpt-4o","temperature":0.7,"max_tokens":100,"messages":[{"role":"system","content":"S"},{"role":"user","content":"a \"b\"\n"},{"role":"assistant","content":"c"}]}"#
    );
}

#[test]
fn stop_texts_and_streaming_are_asked_for_only_when_they_are_wanted() {
    let conversation = hello();
    let partial = |_: PartialReply<'_>| ();
    let ask = Ask { stop: &["\nObservation:"], partial: Some(&partial), ..plain(&conversation) };
    let openai = nowhere("openai", "gpt-4o").request(&ask, &mut Wire::default());
    assert!(
        text(&openai).contains(
            r#""stop":["\nObservation:"],"stream":true,"stream_options":{"include_usage":true},"messages":["#
        )
    );
    let anthropic = nowhere("anthropic", "claude-sonnet-4-5").request(&ask, &mut Wire::default());
    assert!(
        text(&anthropic).contains(
            r#""stop_sequences":["\nObservation:"],"stream":true,"system":[{"type":"text","text":"Be brief.","#
        )
    );
}

#[test]
fn reasoning_models_of_openai_itself_get_other_fields() {
    fn keyed(name: &str) -> Option<String> {
        (name == "OPENAI_BASE_URL").then(|| "https://api.openai.com/v1".to_owned())
    }
    let (folder, vault) = (tempfile::tempdir().unwrap(), vault());
    std::fs::write(folder.path().join("key"), "sk-abcdefgh").unwrap();
    let key = format!("file:{}", folder.path().join("key").display());
    let file = serde_json::json!({"models": {"gpt-5-mini": {"provider": "openai", "api_key": key}}});
    let models = Models::new(&project(&file), Path::new("/"), &vault, None).in_environment(keyed);
    let sent = request(&models.get(Some("gpt-5-mini")).unwrap(), &hello());
    assert!(sent.starts_with(r#"{"model":"gpt-5-mini","max_completion_tokens":100,"messages":["#), "{sent}");
    // Elsewhere the name says nothing.
    let sent = request(&nowhere("openai", "gpt-5-mini"), &hello());
    assert!(sent.contains(r#""temperature":0.7,"max_tokens":100"#), "{sent}");
}

#[test]
fn models_of_anthropic_that_refuse_a_temperature_get_none() {
    for (id, refuses) in [
        ("claude-3-5-sonnet-20241022", false),
        ("claude-sonnet-4-20250514", false),
        ("claude-opus-4-6", false),
        ("claude-haiku-latest", false),
        ("claude-opus-4-7", true),
        ("claude-opus-4-7-20260401", true),
        ("claude-opus-5", true),
    ] {
        let sent = request(&nowhere("anthropic", id), &hello());
        assert_eq!(!sent.contains("temperature"), refuses, "{id}");
    }
}

#[test]
fn anthropic_gets_the_system_prompt_apart_and_roles_that_take_turns() {
    let conversation = conversation(&[
        (Role::System, "S"),
        (Role::User, "a"),
        (Role::User, "b"),
        (Role::Assistant, "  "),
        (Role::System, "c"),
        (Role::Assistant, "d"),
        (Role::User, "e"),
    ]);
    let sent: serde_json::Value =
        serde_json::from_str(&request(&nowhere("anthropic", "claude-sonnet-4-5"), &conversation)).unwrap();
    let cached = serde_json::json!({"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}});
    assert_eq!(sent["system"], serde_json::json!([cached]));
    let part = |text: &str| serde_json::json!({"type": "text", "text": text});
    assert_eq!(
        sent["messages"],
        serde_json::json!([
            {"role": "user", "content": [part("a"), part("b"), part("c")]},
            {"role": "assistant", "content": [part("d")]},
            {"role": "user", "content": [{"type": "text", "text": "e", "cache_control": {"type": "ephemeral"}}]},
        ])
    );
}

#[test]
fn anthropic_is_not_asked_to_keep_a_single_question() {
    let question = conversation(&[(Role::User, "a")]);
    let sent = request(&nowhere("anthropic", "claude-sonnet-4-5"), &question);
    assert!(sent.ends_with(r#""messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}"#), "{sent}");
}

#[test]
fn the_memory_of_the_last_request_is_used_again() {
    let model = nowhere("openai", "m");
    let (mut conversation, mut wire) = (hello(), Wire::default());
    conversation.push(Role::User, "x".repeat(10_000));
    drop(model.request(&plain(&conversation), &mut wire));
    conversation.push(Role::Assistant, "grows once");
    let first = model.request(&plain(&conversation), &mut wire).as_ptr();
    conversation.push(Role::User, "short");
    let second = model.request(&plain(&conversation), &mut wire).as_ptr();
    assert_eq!(first, second, "the buffer was copied");
    // Held by someone, it must not change under his hands.
    let held = model.request(&plain(&conversation), &mut wire);
    let before = held.to_vec();
    conversation.push(Role::User, "more");
    assert_ne!(model.request(&plain(&conversation), &mut wire).as_ptr(), held.as_ptr());
    assert_eq!(held, before);
}

#[test]
fn a_new_generation_other_parameters_or_another_model_begin_anew() {
    let (model, mut wire) = (nowhere("openai", "m"), Wire::default());
    let mut conversation = hello();
    drop(model.request(&plain(&conversation), &mut wire));
    conversation.messages.truncate(1);
    conversation.push(Role::User, "Other");
    conversation.generation += 1;
    assert_eq!(text(&model.request(&plain(&conversation), &mut wire)), request(&model, &conversation));
    let ask = Ask { max_tokens: 7, ..plain(&conversation) };
    assert!(text(&model.request(&ask, &mut wire)).contains("\"max_tokens\":7"));
    let other = nowhere("anthropic", "claude-sonnet-4-5");
    assert_eq!(text(&other.request(&plain(&conversation), &mut wire)), request(&other, &conversation));
    // Shorter without a new generation: never what was there before.
    conversation.messages.pop();
    assert_eq!(text(&other.request(&plain(&conversation), &mut wire)), request(&other, &conversation));
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::System)];
    let message = (role, "\\PC{0,12}").prop_map(|(role, text)| Message::new(role, text));
    proptest::collection::vec(message, 1..12)
}

proptest! {
    #[test]
    fn each_request_begins_with_the_bytes_of_the_one_before(messages in messages(), anthropic: bool) {
        let model = if anthropic { nowhere("anthropic", "claude-opus-5") } else { nowhere("openai", "m") };
        let (mut conversation, mut wire) = (hello(), Wire::default());
        let mut before = model.request(&plain(&conversation), &mut wire).to_vec();
        for message in messages {
            conversation.messages.push(message);
            let now = model.request(&plain(&conversation), &mut wire).to_vec();
            // But for what closes it.
            let tails: &[&str] =
                if anthropic { &[r#","cache_control":{"type":"ephemeral"}}]}]}"#] } else { &["\"}]}", "]}"] };
            let open = tails.iter().find_map(|tail| before.strip_suffix(tail.as_bytes())).unwrap();
            prop_assert!(now.starts_with(open));
            prop_assert_eq!(&now, &request(&model, &conversation).into_bytes());
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&now).is_ok());
            before = now;
        }
    }
}

#[tokio::test]
async fn five_asks_take_one_connection_and_send_what_request_shows() {
    let server = Server::with(|_, _| Answer::openai("Hi"));
    let (model, mut wire) = (openai(&server), Wire::default());
    let mut conversation = hello();
    for number in 0..5 {
        let reply = ask(&[Arc::clone(&model)], &plain(&conversation), &mut wire, &retry(1), &|_| ()).await.unwrap();
        assert_eq!(server.requests()[number].text(), request(&model, &conversation));
        conversation.push(Role::Assistant, reply.text);
        conversation.push(Role::User, "And then?");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_was_sent_is_let_go_so_that_the_wire_need_not_copy() {
    let server = Server::with(|_, _| Answer::openai("Hi"));
    let (model, mut wire, mut conversation) = (openai(&server), Wire::default(), hello());
    let mut moved = 0;
    let mut place = std::ptr::null();
    for _ in 0..200 {
        let asked = plain(&conversation);
        ask(std::slice::from_ref(&model), &asked, &mut wire, &retry(1), &|_| ()).await.unwrap();
        conversation.push(Role::User, "x".repeat(500));
        let now = model.request(&plain(&conversation), &mut wire).as_ptr();
        moved += usize::from(now != place);
        place = now;
    }
    // A buffer that grows by an eighth and what comes moves some 30 times from 200 bytes to 100,000; one that
    // is held elsewhere, each time.
    assert!(moved < 50, "{moved} copies");
}

#[tokio::test]
async fn a_server_without_a_key_gets_no_authorization() {
    let server = Server::with(|_, _| Answer::openai("Hi"));
    greet(&openai(&server), 1).await.0.unwrap();
    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    for name in ["authorization", "x-api-key", "cookie", "referer"] {
        assert_eq!(request.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn anthropic_gets_the_version_of_the_protocol() {
    let server = Server::with(|_, _| Answer::anthropic("Hi"));
    greet(&anthropic(&server), 1).await.0.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
}
