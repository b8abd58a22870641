//! Requests that constrain a reply to the schema of a turn.

use serde_json::{Value, json};

use super::super::constraint::{ReplyConstraint, TurnMeans};
use super::super::reply::AttemptReply;
use super::*;
use crate::drive::tests::compiled;
use loopctl_lang::language::project::Constrain;
use loopctl_lang::program::Program;

const REFUSED: &str = r#"{"error":{"message":"response_format is not supported","type":"invalid_request_error"}}"#;

/// The providers with the answer of each: a turn.
const PROVIDERS: [(&str, &str); 4] = [
    ("openai", r#"{"choices":[{"message":{"content":"{}"},"finish_reason":"stop"}]}"#),
    (
        "openai-responses",
        r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"{}"}]}]}"#,
    ),
    ("gemini", r#"{"candidates":[{"content":{"parts":[{"text":"{}"}]},"finishReason":"STOP"}]}"#),
    ("anthropic", r#"{"type":"message","content":[{"type":"text","text":"{}"}],"stop_reason":"end_turn"}"#),
];

/// Models of one engine at a server in this mode: `m` and `n` are one model, `other` is another.
fn models_at(server: &Server, provider: &str, mode: &str) -> Models {
    let url = format!("{}/v1", server.url());
    let model = |id: &str| json!({"provider": provider, "base_url": url, "model": id, "constrain": mode});
    models(
        &json!({"models": {"m": model("claude-opus-4-7"), "n": model("claude-opus-4-7"), "other": model("claude-opus-5"),
        "old": model("claude-opus-4-1-20250805")}}),
    )
}

fn model(server: &Server, provider: &str, mode: &str) -> Arc<ModelClient> {
    models_at(server, provider, mode).get(Some("m")).unwrap()
}

async fn turn(model: &Arc<ModelClient>, program: &Program) -> Result<Reply, ModelFault> {
    let conversation = hello();
    let asked = Ask { program: program.as_loop(), ..plain(&conversation) };
    ask(std::slice::from_ref(model), &asked, &mut Wire::default(), &retry(1), &|_| ()).await
}

/// A loop whose turns have a shape to the last value.
fn closed() -> Arc<Program> {
    let answer = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}}});
    compiled(&json!({"tools": [], "builtins": ["__complete__"], "answer_schema": answer}), &[])
}

/// The schema that a request has, wherever its provider takes it.
fn schema_of(request: &Value) -> Value {
    let places = [
        "/response_format/json_schema/schema",
        "/text/format/schema",
        "/generationConfig/responseJsonSchema",
        "/output_config/format/schema",
        "/tools/0/input_schema",
    ];
    places.iter().find_map(|place| request.pointer(place)).cloned().unwrap_or_default()
}

fn has_schema(requests: &[server::Request]) -> Vec<bool> {
    requests.iter().map(|request| !schema_of(&request.json()).is_null()).collect()
}

/// A server that refuses every request with a schema.
fn refusing(answer: &'static str) -> Server {
    Server::reading(move |_, request| match schema_of(&request.json()) {
        Value::Null => Answer::json(answer),
        _ => Answer::json(REFUSED).status(400),
    })
}

#[tokio::test]
async fn a_turn_in_json_is_constrained_to_the_tools_and_nothing_else_is() {
    for (provider, answer) in PROVIDERS {
        let server = Server::with(move |_, _| Answer::json(answer));
        let program = closed();
        assert_eq!(turn(&model(&server, provider, "auto"), &program).await.unwrap().text, "{}");
        turn(&model(&server, provider, "on"), &program).await.unwrap();
        turn(&model(&server, provider, "off"), &program).await.unwrap();
        for dialect in ["tool_calls", "tags", "final_answer"] {
            turn(&model(&server, provider, "on"), &compiled(&json!({"dialect": dialect, "tools": []}), &[]))
                .await
                .unwrap();
        }
        let requests = server.requests();
        for request in &requests[..2] {
            let schema = schema_of(&request.json()).to_string();
            assert!(schema.contains("__complete__") && schema.contains(r#""name":{"type":"string"}"#), "{schema}");
            assert!(!schema.contains("minimum") && !schema.contains("minLength"), "{provider}: {schema}");
        }
        let ours = |request: &server::Request| request.text().contains(r#""thought":{"#);
        assert!(!requests[2..].iter().any(ours), "{provider}");
    }
}

#[tokio::test]
async fn a_model_that_refuses_a_schema_is_asked_without_one_from_then_on_and_others_are_not() {
    for (provider, answer) in PROVIDERS {
        let server = refusing(answer);
        let models = models_at(&server, provider, "auto");
        for name in ["m", "n", "other"] {
            let reply = turn(&models.get(Some(name)).unwrap(), &closed()).await.unwrap();
            assert!(reply.attempts.is_empty(), "it is no failed attempt");
        }
        assert_eq!(has_schema(&server.requests()), [true, false, false, true, false], "{provider}");
        let fault = turn(&model(&server, provider, "on"), &closed()).await.unwrap_err();
        assert!(fault.message.contains("response_format is not supported"), "{}", fault.message);
    }
}

#[tokio::test]
async fn a_refusal_that_has_nothing_to_do_with_the_schema_is_not_remembered() {
    for (provider, _) in PROVIDERS {
        let server = Server::with(|_, _| Answer::json(REFUSED).status(400));
        let model = model(&server, provider, "auto");
        for _ in 0..2 {
            turn(&model, &closed()).await.unwrap_err();
        }
        assert_eq!(has_schema(&server.requests()), [true, false, true, false], "{provider}");
    }
}

#[tokio::test]
async fn a_local_server_gets_a_branch_for_each_tool() {
    let server = Server::with(|_, _| Answer::openai("{}"));
    turn(&model(&server, "openai", "auto"), &compiled(&json!({}), &["look"])).await.unwrap();
    let branches = schema_of(&server.requests()[0].json())["anyOf"].as_array().unwrap().clone();
    let actions: Vec<&str> = branches.iter().filter_map(|one| one["properties"]["action"]["const"].as_str()).collect();
    assert!(actions.contains(&"hangs") && actions.contains(&"__complete__"), "{actions:?}");
    assert!(branches.iter().all(|one| one["properties"]["thought"]["maxLength"].is_number()));
}

/// The body of a request to a provider's own server.
fn body(provider: &str, model: Value, program: &Program) -> Value {
    let mut file = model;
    file["provider"] = json!(provider);
    file["base_url"] = json!("https://models.example/v1");
    let models = models(&json!({"models": {"m": file}}));
    let conversation = hello();
    let asked = Ask { program: program.as_loop(), ..plain(&conversation) };
    serde_json::from_slice(&models.get(Some("m")).unwrap().request(&asked, &mut Wire::default())).unwrap()
}

#[test]
fn each_provider_gets_the_schema_in_its_place() {
    let closed = closed();
    let sent = body("openai", json!({}), &closed);
    let format = &sent["response_format"];
    assert_eq!((&format["type"], &format["json_schema"]["strict"]), (&json!("json_schema"), &json!(true)));
    let sent = body("openai-responses", json!({}), &closed);
    let format = &sent["text"]["format"];
    assert_eq!(
        [&format["type"], &format["name"], &format["strict"]],
        [&json!("json_schema"), &json!("turn"), &json!(true)]
    );
    let input = &format["schema"]["properties"]["action_input"]["anyOf"][0];
    assert_eq!(input["required"], json!(["answer", "confidence", "summary"]), "strict mode has no optional members");
    let sent = body("gemini", json!({"top_k": 3}), &closed);
    let config = &sent["generationConfig"];
    assert_eq!((&config["responseMimeType"], &config["topK"]), (&json!("application/json"), &json!(3)));
    assert_eq!(config["responseJsonSchema"]["properties"]["action"]["enum"], json!(["__complete__"]));
    let sent = body("anthropic", json!({"model": "claude-opus-4-7", "reasoning_effort": "low"}), &closed);
    let config = &sent["output_config"];
    assert_eq!((&config["effort"], &config["format"]["type"]), (&json!("low"), &json!("json_schema")));
    assert!(sent["tool_choice"].is_null());
}

#[test]
fn a_schema_that_is_open_somewhere_is_not_sent_as_strict() {
    let open = compiled(&json!({}), &["look"]);
    let format = &body("openai", json!({}), &open)["response_format"]["json_schema"];
    assert!(format["strict"].is_null() && format["schema"].is_object(), "{format}");
    let format = &body("openai-responses", json!({}), &open)["text"]["format"];
    assert!(format["strict"].is_null() && format["schema"].is_object(), "{format}");
    assert!(body("gemini", json!({}), &open)["generationConfig"]["responseJsonSchema"].is_object());
    let sent = body("anthropic", json!({"model": "claude-opus-4-7"}), &open);
    assert!(sent["output_config"].is_null() && sent["tool_choice"].is_null(), "{sent}");
}

#[test]
fn a_member_that_strict_mode_makes_null_is_absent_for_the_engine() {
    let (closed, conversation) = (closed(), hello());
    let asked = Ask { program: closed.as_loop(), ..plain(&conversation) };
    let text = |answer: &str| {
        format!(r#"{{"thought":"t","action":"__complete__","action_input":{{"answer":{{"name":"x"{answer}}}}}}}"#)
    };
    for (form, expected) in [(TurnMeans::Strict, text("")), (TurnMeans::Flat, text(r#","age":null"#))] {
        let reply = AttemptReply { text: text(r#","age":null"#), ..AttemptReply::default() };
        let read = ReplyConstraint::new(Constrain::Auto, form, &Arc::default()).read(reply, &asked);
        assert_eq!(read.text, expected);
    }
}

#[tokio::test]
async fn an_anthropic_model_that_takes_no_schema_is_made_to_call_a_tool_whose_input_is_the_turn() {
    let called = r#"{"type":"message","content":[{"type":"tool_use","id":"t","name":"turn","input":{"action":"look"}}],
        "stop_reason":"tool_use"}"#;
    let server = Server::with(move |_, _| Answer::json(called));
    let old = |mode: &str| models_at(&server, "anthropic", mode).get(Some("old")).unwrap();
    let open = compiled(&json!({}), &[]);
    for (model, program) in [(old("on"), closed()), (model(&server, "anthropic", "on"), open)] {
        let reply = turn(&model, &program).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.calls.len()), (r#"{"action":"look"}"#, 0));
    }
    let said = r#"{"type":"message","content":[{"type":"text","text":"{}"}],"stop_reason":"end_turn"}"#;
    let plain = Server::with(move |_, _| Answer::json(said));
    turn(&models_at(&plain, "anthropic", "auto").get(Some("old")).unwrap(), &closed()).await.unwrap();
    for request in server.requests() {
        assert_eq!(request.json()["tool_choice"], json!({"type": "tool", "name": "turn"}));
        assert_eq!(request.json()["tools"][0]["input_schema"]["type"], "object");
    }
    assert!(plain.requests()[0].json()["tool_choice"].is_null(), "no tool is forced with `auto`");
}

#[test]
fn the_largest_inputs_are_left_open_when_a_schema_would_be_too_large() {
    let words: Vec<String> = (0..4_000).map(|n| format!("a word of the list {n}")).collect();
    let of_bytes = json!({"type": "object", "properties": {"word": {"enum": words}}});
    let members: serde_json::Map<String, Value> = (0..2_000).map(|n| (format!("m{n}"), json!({}))).collect();
    let of_nodes = json!({"type": "object", "properties": members});
    let small = json!({"type": "object", "properties": {}});
    for large in [of_bytes, of_nodes] {
        let program = program_with(&large, &small);
        assert_eq!(program.as_loop().unwrap().turn_schema().open_inputs, ["large"]);
        let sent = body("openai", json!({}), &program);
        let inputs = sent.pointer("/response_format/json_schema/schema/properties/action_input/anyOf").unwrap();
        assert_eq!(inputs[0], json!({"type": "object", "properties": {}, "additionalProperties": true}));
        assert_eq!(inputs[1]["properties"], json!({}));
    }
}

#[tokio::test]
async fn the_schema_is_made_at_the_first_request_and_once_a_program() {
    let program = closed();
    assert!(program.as_loop().unwrap().turn_schema.get().is_none());
    let mut made = Vec::new();
    for (provider, answer) in PROVIDERS {
        let server = Server::with(move |_, _| Answer::json(answer));
        for _ in 0..2 {
            turn(&model(&server, provider, "auto"), &program).await.unwrap();
            made.push(std::ptr::from_ref(program.as_loop().unwrap().turn_schema.get().unwrap()));
        }
        assert_eq!(has_schema(&server.requests()), [true, true]);
    }
    made.dedup();
    assert_eq!(made.len(), 1);
}

/// A loop with the tools `large` and `small`, which take these inputs.
fn program_with(large: &Value, small: &Value) -> Arc<Program> {
    let action = |name: &str, parameters: &Value| {
        json!({"action_name": name, "kind": "http", "description": "Does it.", "url": "https://x.example/",
            "http_method": "POST", "parameters": parameters})
    };
    let tool = |name: &str| json!({"type": "action", "name": name});
    let document = json!({"type": "loop", "actions": [action("large", large), action("small", small)], "properties":
        {"mode": "react", "objective": "Do it.", "tools": [tool("large"), tool("small")]}});
    let compiled = loopctl_lang::compile::compile(&loopctl_lang::compile::Texts::new(
        loopctl_lang::diagnostic::Source::new("loop.json", document.to_string()),
    ));
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}
