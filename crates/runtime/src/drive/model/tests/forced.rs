//! Requests that say that a tool must be called, and those that can't.

use serde_json::{Value, json};

use super::*;
use crate::drive::tests::compiled;

const THINKING: &str = r#"{"type":"enabled","budget_tokens":2000}"#;

fn model_of(mut file: Value, url: &str) -> Result<Arc<ModelClient>, String> {
    file["base_url"] = json!(format!("{url}/v1"));
    models(&json!({"models": {"m": file}})).get(Some("m"))
}

/// A request of a loop with native calls that must call a tool.
fn forced(file: &Value) -> Value {
    let (program, conversation) = (compiled(&json!({"dialect": "tool_calls"}), &["look"]), hello());
    let asked = Ask { program: program.as_loop(), must_call: true, max_tokens: 4_096, ..plain(&conversation) };
    let model = model_of(file.clone(), "http://127.0.0.1:9").unwrap();
    serde_json::from_slice(&model.request(&asked, &mut Wire::default())).unwrap()
}

#[test]
fn each_provider_is_sent_that_a_tool_must_be_called() {
    for (provider, place, sent) in [
        ("openai", "/tool_choice", json!("required")),
        ("openai-responses", "/tool_choice", json!("required")),
        ("anthropic", "/tool_choice", json!({"type": "any"})),
        ("gemini", "/toolConfig/functionCallingConfig", json!({"mode": "ANY"})),
    ] {
        let request = forced(&json!({"provider": provider}));
        assert_eq!(request.pointer(place), Some(&sent), "{request}");
    }
}

#[test]
fn a_model_that_thinks_is_not_made_to_call_a_tool() {
    let thinking: Value = serde_json::from_str(THINKING).unwrap();
    for thinking in [thinking, json!({"type": "adaptive"})] {
        let request = forced(&json!({"provider": "anthropic", "thinking": thinking}));
        assert_eq!((&request["tool_choice"], &request["thinking"]), (&Value::Null, &thinking));
    }
    let off = forced(&json!({"provider": "anthropic", "thinking": {"type": "disabled"}}));
    assert_eq!(off["tool_choice"], json!({"type": "any"}));
}

#[test]
fn a_model_that_is_made_to_call_the_tool_of_its_turn_does_not_think() {
    let thinking: Value = serde_json::from_str(THINKING).unwrap();
    let file = |id: &str| json!({"provider": "anthropic", "model": id, "constrain": "on", "thinking": thinking});
    // Tools that are open somewhere: the schema of a turn can't be that of a reply.
    let (program, conversation) = (compiled(&json!({}), &["look"]), hello());
    let asked = Ask { program: program.as_loop(), ..plain(&conversation) };
    let model = model_of(file("claude-opus-4-7"), "http://127.0.0.1:9").unwrap();
    let request: Value = serde_json::from_slice(&model.request(&asked, &mut Wire::default())).unwrap();
    assert_eq!((&request["tool_choice"]["type"], &request["thinking"]), (&json!("tool"), &Value::Null));
    // A model that takes no schema at all would never think.
    let wrong = model_of(file("claude-opus-4-1"), "http://127.0.0.1:9").unwrap_err();
    assert!(wrong.contains("can't think"), "{wrong}");
}

#[tokio::test]
async fn a_refusal_of_a_forced_call_is_learned_once_and_is_no_failed_attempt() {
    for (provider, field, words) in [
        ("anthropic", "tool_choice", "Thinking may not be enabled when tool_choice forces tool use."),
        ("openai", "tool_choice", "deepseek-reasoner does not support this tool_choice"),
    ] {
        let server = Server::reading(move |_, request| match request.json()[field].is_null() {
            true if provider == "openai" => Answer::openai("Hi"),
            true => {
                Answer::json(r#"{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#)
            }
            false => Answer::json(&json!({"error": {"message": words, "type": "invalid_request_error"}})).status(400),
        });
        let (program, conversation) = (compiled(&json!({"dialect": "tool_calls"}), &["look"]), hello());
        let asked = Ask { program: program.as_loop(), must_call: true, ..plain(&conversation) };
        let model = at(&server, provider);
        for requests in [2, 3] {
            let reply = ask(&[Arc::clone(&model)], &asked, &mut Wire::default(), &retry(1), &|_| ()).await.unwrap();
            assert_eq!((reply.text.as_str(), reply.attempts.len()), ("Hi", 0), "{provider}");
            assert_eq!(server.requests().len(), requests, "{provider}");
        }
    }
}
