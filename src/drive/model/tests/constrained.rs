//! Requests that constrain a reply to the schema of a turn.

use serde_json::{Value, json};

use super::*;
use crate::drive::tests::compiled;
use crate::program::Program;

const REFUSED: &str = r#"{"error":{"message":"response_format is not supported","type":"invalid_request_error"}}"#;

/// A model at a server in this mode.
fn model(server: &Server, provider: &str, mode: &str) -> Arc<ModelClient> {
    let model = json!({"provider": provider, "base_url": format!("{}/v1", server.url()), "constrain": mode});
    models(&json!({"models": {"m": model}})).get(Some("m")).unwrap()
}

async fn turn(model: &Arc<ModelClient>, program: &Program) -> Result<Reply, ModelFault> {
    let conversation = hello();
    let asked = Ask { program: Some(program), ..plain(&conversation) };
    ask(std::slice::from_ref(model), &asked, &mut Wire::default(), &retry(1), &|_| ()).await
}

fn format_of(request: &server::Request) -> Value {
    request.json()["response_format"].clone()
}

/// A server that refuses every request with a schema.
fn refusing() -> Server {
    Server::reading(|_, request| match format_of(request) {
        Value::Null => Answer::openai("{}"),
        _ => Answer::json(REFUSED).status(400),
    })
}

#[tokio::test]
async fn a_turn_in_json_is_constrained_to_the_tools_and_nothing_else_is() {
    let server = Server::with(|_, _| Answer::openai("{}"));
    let program = compiled(&json!({}), &["look"]);
    turn(&model(&server, "openai", "auto"), &program).await.unwrap();
    turn(&model(&server, "openai", "off"), &program).await.unwrap();
    for dialect in ["tool_calls", "tags", "final_answer"] {
        turn(&model(&server, "openai", "on"), &compiled(&json!({"dialect": dialect}), &[])).await.unwrap();
    }
    let requests = server.requests();
    let format = format_of(&requests[0]);
    assert_eq!(format["json_schema"]["name"], "turn");
    let branches = format["json_schema"]["schema"]["anyOf"].as_array().unwrap().clone();
    let actions: Vec<&str> = branches.iter().filter_map(|one| one["properties"]["action"]["const"].as_str()).collect();
    assert!(actions.contains(&"hangs") && actions.contains(&"__complete__"), "{actions:?}");
    assert!(branches.iter().all(|one| one["properties"]["thought"]["maxLength"].is_number()));
    assert!(requests[1..].iter().all(|request| format_of(request).is_null()));
}

#[tokio::test]
async fn a_server_that_refuses_a_schema_is_asked_without_one_from_then_on() {
    let server = refusing();
    let program = compiled(&json!({}), &[]);
    for _ in 0..2 {
        let reply = turn(&model(&server, "openai", "auto"), &program).await.unwrap();
        assert!(reply.attempts.is_empty(), "it is no failed attempt");
    }
    let formats: Vec<bool> = server.requests().iter().map(|request| format_of(request).is_null()).collect();
    assert_eq!(formats, [false, true, true], "refused once, and remembered by the address");
    let fault = turn(&model(&server, "openai", "on"), &program).await.unwrap_err();
    assert!(fault.message.contains("response_format is not supported"), "{}", fault.message);
}

#[tokio::test]
async fn a_refusal_that_has_nothing_to_do_with_the_schema_is_not_remembered() {
    let server = Server::with(|_, _| Answer::json(REFUSED).status(400));
    let program = compiled(&json!({}), &[]);
    for _ in 0..2 {
        turn(&model(&server, "openai", "auto"), &program).await.unwrap_err();
    }
    let formats: Vec<bool> = server.requests().iter().map(|request| format_of(request).is_null()).collect();
    assert_eq!(formats, [false, true, false, true]);
}

#[tokio::test]
async fn anthropics_models_are_made_to_call_a_tool_whose_input_is_the_turn() {
    let said = r#"{"type":"message","content":[{"type":"tool_use","id":"t","name":"turn","input":{"action":"look"}}],
        "stop_reason":"tool_use"}"#;
    let server = Server::with(move |_, _| Answer::json(said));
    let program = compiled(&json!({}), &[]);
    let reply = turn(&model(&server, "anthropic", "on"), &program).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.calls.len()), (r#"{"action":"look"}"#, 0));
    turn(&model(&server, "anthropic", "auto"), &program).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].json()["tool_choice"], json!({"type": "tool", "name": "turn"}));
    assert_eq!(requests[0].json()["tools"][0]["input_schema"]["type"], "object");
    assert!(requests[1].json()["tool_choice"].is_null(), "auto is for OpenAI's protocol alone");
}
