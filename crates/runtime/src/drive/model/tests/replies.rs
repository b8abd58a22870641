//! What is read: whole answers, of both protocols.

use super::*;
use loopctl_engine::event::{Finish, ModelFaultCode, Tokens};

async fn read(model: impl Fn(&Server) -> Arc<ModelClient>, body: &str) -> Result<Reply, ModelFault> {
    let server = Server::new(vec![Answer::json(body)]);
    greet(&model(&server), 1).await.0
}

#[tokio::test]
async fn a_reply_has_its_text_its_end_and_its_tokens() {
    let reply = read(openai, &openai_answer("\"Hi\"", "\"stop\"")).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish, reply.retries), ("Hi", Finish::Stop, 0));
    assert_eq!(reply.usage, Some(Tokens { input: 10, output: 5, ..Tokens::default() }));
    assert_eq!(reply.model, None);
}

fn openai_answer(content: &str, finish: &str) -> String {
    format!(
        r#"{{"choices":[{{"message":{{"role":"assistant","content":{content}}},"finish_reason":{finish}}}],
            "usage":{{"prompt_tokens":10,"completion_tokens":5,"details":{{"x":1.5}}}},"service":{{"tier":[null,1e999]}}}}"#
    )
}

#[tokio::test]
async fn content_may_be_text_parts_or_null() {
    for (content, text) in [
        (r#"[{"type":"thinking","thinking":"..."},{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, "ab"),
        (r#""\ud83d\ude00 ü""#, "😀 ü"),
    ] {
        assert_eq!(read(openai, &openai_answer(content, "null")).await.unwrap().text, text, "{content}");
    }
}

#[tokio::test]
async fn an_empty_reply_is_a_fault_that_is_tried_again_and_its_tokens_count() {
    for content in ["null", "\"\"", r#"" \n""#, r#""\u200b\ufeff ""#, "[]"] {
        let fault = read(openai, &openai_answer(content, "\"stop\"")).await.unwrap_err();
        assert_eq!((fault.code, fault.retryable), (ModelFaultCode::ModelProtocol, true), "{content}");
        assert_eq!(fault.failed[0].usage, Some(Tokens { input: 10, output: 5, ..Tokens::default() }), "{content}");
        let cut = read(openai, &openai_answer(content, "\"length\"")).await.unwrap();
        assert_eq!(cut.finish, Finish::Length, "what max_tokens left nothing of would be empty again: {content}");
    }
    let server = Server::new(vec![Answer::openai(""), Answer::openai("Hi")]);
    let reply = greet(&openai(&server), 2).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.retries, reply.attempts.len()), ("Hi", 1, 1));
    assert!(reply.attempts[0].reason.contains("is empty"), "{:?}", reply.attempts);
}

#[tokio::test]
async fn a_cut_or_filtered_reply_says_so() {
    let finish = |finish| async move { read(openai, &openai_answer("\"x\"", finish)).await.unwrap().finish };
    assert_eq!(finish("\"length\"").await, Finish::Length);
    assert_eq!(finish("\"content_filter\"").await, Finish::Filtered);
    for content in ["null", "\"{}\""] {
        let message = format!(r#"{{"content":{content},"refusal":"I can't."}}"#);
        let refused = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
        let reply = read(openai, &refused).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.finish, reply.usage), ("I can't.", Finish::Filtered, None));
    }
}

#[tokio::test]
async fn a_usage_that_makes_no_sense_is_none() {
    for usage in ["null", "{}", "[]", r#"{"prompt_tokens":-1,"completion_tokens":-2.5}"#, r#"{"prompt_tokens":"1"}"#] {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#);
        assert_eq!(read(openai, &body).await.unwrap().usage, None, "{usage}");
    }
}

#[tokio::test]
async fn anthropics_replies_count_what_the_cache_gave() {
    let reply = read(
        anthropic,
        r#"{"type":"message","content":[{"type":"thinking","thinking":"?"},{"type":"text","text":"a"},{"type":"text","text":"b"}],
            "stop_reason":"max_tokens","usage":{"input_tokens":1,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":4}}"#,
    )
    .await
    .unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("ab", Finish::Length));
    let (cached_input, cache_write) = (300, 20);
    assert_eq!(reply.usage, Some(Tokens { input: 321, output: 4, cached_input, cache_write, reasoning: 0 }));
}

#[tokio::test]
async fn cached_and_reasoning_tokens_are_counted_as_parts() {
    let body =
        |usage: &str| format!(r#"{{"model":"m-2026","choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#);
    let openai_usage = r#"{"prompt_tokens":100,"completion_tokens":50,
        "prompt_tokens_details":{"cached_tokens":80,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":40}}"#;
    let reply = read(openai, &body(openai_usage)).await.unwrap();
    let expected = Tokens { input: 100, output: 50, cached_input: 80, cache_write: 0, reasoning: 40 };
    assert_eq!((reply.usage, reply.response_model.as_deref()), (Some(expected), Some("m-2026")));
    let deepseek =
        r#"{"prompt_tokens":100,"completion_tokens":50,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#;
    assert_eq!(read(openai, &body(deepseek)).await.unwrap().usage.unwrap().cached_input, 64);
    let nothing =
        r#"{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":{}}"#;
    let reply = read(openai, &body(nothing).replace("m-2026", "m")).await.unwrap();
    let expected = Tokens { input: 1, output: 2, ..Tokens::default() };
    assert_eq!((reply.usage, reply.response_model), (Some(expected), None), "the model is the one that was asked");
}

#[tokio::test]
async fn a_stream_of_anthropic_counts_its_cache_too() {
    let events = [
        r#"{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":1,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":1}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let server = Server::new(vec![Answer::events(events)]);
    let reply = greet(&anthropic(&server), 1).await.0.unwrap();
    let expected = Tokens { input: 321, output: 9, cached_input: 300, cache_write: 20, reasoning: 0 };
    assert_eq!((reply.usage, reply.response_model.as_deref()), (Some(expected), Some("claude-x")));
}

#[tokio::test]
async fn success_without_a_reply_is_a_fault_of_the_protocol_and_tried_again() {
    let deep = format!("{{\"a\":{}1", "[".repeat(100_000));
    let bodies = [
        "",
        "null",
        "[]",
        "{}",
        "hello",
        r#"{"choices":[]}"#,
        r#"{"choices":[{}]}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[{"message":{"content":7}}]}"#,
        r#"{"error":{"message":"upstream died"}}"#,
        &deep,
    ];
    for body in bodies {
        let answer = Answer::json(body);
        let server = Server::with(move |_, _| answer.clone());
        let fault = greet(&openai(&server), 2).await.0.unwrap_err();
        let shown: String = body.chars().take(40).collect();
        assert_eq!((fault.code, fault.retryable, fault.attempts), (ModelFaultCode::ModelProtocol, true, 2), "{shown}");
        assert_eq!(server.requests().len(), 2, "{shown}");
    }
}

#[tokio::test]
async fn unknown_fields_of_any_depth_do_no_harm() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let body = format!(r#"{{"x":{deep},"choices":[{{"message":{{"content":"fine"}}}}]}}"#);
    assert_eq!(read(openai, &body).await.unwrap().text, "fine");
}

#[tokio::test]
async fn a_page_of_html_is_reported_as_such() {
    let page = Answer::new("text/html; charset=utf-8", "<html>Welcome to the hotel</html>");
    let server = Server::new(vec![page]);
    let fault = greet(&openai(&server), 1).await.0.unwrap_err();
    assert_eq!(fault.code, ModelFaultCode::ModelProtocol);
    assert!(fault.message.contains("text/html") && !fault.message.contains("hotel"), "{}", fault.message);
}

#[tokio::test]
async fn a_reply_under_a_wrong_type_is_still_a_reply() {
    let server = Server::new(vec![Answer::openai("Hi").header("content-type", "text/plain")]);
    assert_eq!(greet(&openai(&server), 1).await.0.unwrap().text, "Hi");
}

#[tokio::test]
async fn a_compressed_answer_was_not_asked_for() {
    let server = Server::new(vec![Answer::openai("Hi").header("content-encoding", "gzip")]);
    let fault = greet(&openai(&server), 1).await.0.unwrap_err();
    assert_eq!(fault.code, ModelFaultCode::ModelProtocol);
    assert!(fault.message.contains("gzip"), "{}", fault.message);
}
