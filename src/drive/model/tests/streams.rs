//! Streams: the decoder of events, and replies in pieces.

use proptest::prelude::*;

use super::super::sse::SseDecoder;
use super::*;
use crate::engine::event::{Finish, ModelFaultCode, Tokens};

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = SseDecoder::default();
    let mut events = Vec::new();
    let mut take = |data: &[u8]| {
        events.push(String::from_utf8(data.to_vec()).unwrap());
        Ok::<(), ()>(())
    };
    for piece in pieces {
        decoder.push(piece, &mut take).unwrap();
    }
    decoder.finish(&mut take).unwrap();
    events
}

#[test]
fn events_are_read_as_the_standard_says() {
    for (stream, events) in [
        ("data: a\n\ndata:b\n\n", vec!["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", vec!["a", "b", "c"]),
        (": hello\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", vec!["a"]),
        ("data: a\ndata\ndata:  b\n\n", vec!["a\n\n b"]),
        ("\u{feff}data: a\n\n\n\n\n", vec!["a"]),
        ("event: x\n\ndatabase: y\n\n", vec![]),
        ("data\n\n", vec![""]),
        // A missing empty line at the end is forgiven, a line that is cut is not.
        ("data: a\n", vec!["a"]),
        ("data: a\n\ndata: {\"b", vec!["a"]),
    ] {
        assert_eq!(decode([stream.as_bytes()]), events, "{stream:?}");
    }
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_events(
        lines in proptest::collection::vec("(data: ?|: |event:|data|)[a-zé😀:]{0,6}", 0..12),
        ends in proptest::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r"), Just("\n\n"), Just("\r\n\r\n")], 12),
        size in 1usize..7,
    ) {
        let stream: String = lines.iter().zip(&ends).map(|(line, end)| format!("{line}{end}")).collect();
        prop_assert_eq!(decode(stream.as_bytes().chunks(size)), decode([stream.as_bytes()]));
    }
}

fn delta(text: &str) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}], "usage": null})
        .to_string()
}

const END: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#;

/// Requests a stream; returns the pieces that came too.
async fn stream(model: Arc<ModelClient>, attempts: u32) -> (Result<Reply, ModelFault>, Vec<String>) {
    let pieces = Mutex::new((Vec::new(), 0));
    let partial = |reply: PartialReply<'_>| {
        let (pieces, had) = &mut *pieces.lock().unwrap();
        // Another attempt begins from the start.
        let new = reply.text.get(*had..).unwrap_or(reply.text);
        if !new.is_empty() {
            pieces.push(new.to_owned());
        }
        *had = reply.text.len();
        assert!(reply.written >= reply.text.len());
    };
    let failed = |_| pieces.lock().unwrap().1 = 0;
    let conversation = hello();
    let asked = Ask { partial: Some(&partial), ..plain(&conversation) };
    let reply = ask(&[model], &asked, &mut Wire::default(), &retry(attempts), &failed).await;
    (reply, pieces.into_inner().unwrap().0)
}

#[tokio::test]
async fn a_stream_is_handed_on_and_put_together() {
    let events = [delta(""), delta("Hé"), delta("llo"), END.into(), USAGE.into(), "[DONE]".into()];
    let server = Server::with(move |_, _| Answer::events(&events));
    let model = openai(&server);
    let (reply, pieces) = stream(Arc::clone(&model), 1).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("Héllo", Finish::Length));
    assert_eq!(reply.usage, Some(Tokens { input: 7, output: 3, ..Tokens::default() }));
    assert_eq!(pieces, ["Hé", "llo"]);
    assert!(reply.time_to_first_token_ms.is_some());
    assert_eq!(server.requests()[0].json()["stream"], true);
    stream(model, 1).await.0.unwrap();
    assert_eq!(server.connections(), 1, "the connection was not kept");
}

#[tokio::test]
async fn a_character_that_is_cut_between_two_chunks_comes_out_whole() {
    let text = format!("data: {}\r\n\r\ndata: {END}\r\n\r\n", delta("😀 ü"));
    let bytes = text.into_bytes().iter().map(|byte| vec![*byte]).collect();
    let server = Server::new(vec![Answer::chunked("text/event-stream; charset=utf-8", bytes)]);
    assert_eq!(stream(openai(&server), 1).await.0.unwrap().text, "😀 ü");
}

#[tokio::test]
async fn a_stream_that_ends_before_its_end_is_asked_for_again() {
    let whole = Answer::events([delta("whole"), END.to_owned()]);
    let server = Server::new(vec![
        Answer::events([delta("cut")]),
        Answer::events([delta("broken")]).cut(),
        Answer::events([delta("garbage"), "{oops".to_owned(), END.to_owned()]),
        Answer::events([delta("failed"), r#"{"error":{"message":"overloaded"}}"#.to_owned()]),
        whole,
    ]);
    let (reply, pieces) = stream(openai(&server), 5).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.retries), ("whole", 4));
    assert_eq!(pieces, ["cut", "broken", "garbage", "failed", "whole"]);
}

#[tokio::test]
async fn a_server_that_does_not_stream_gives_no_pieces() {
    let server = Server::new(vec![Answer::openai("Hi")]);
    let (reply, pieces) = stream(openai(&server), 1).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.time_to_first_token_ms, pieces), ("Hi", None, vec![]));
}

#[tokio::test]
async fn a_server_that_streams_unasked_is_understood() {
    let server = Server::new(vec![Answer::events([delta("Hi"), END.to_owned(), "[DONE]".to_owned()])]);
    assert_eq!(greet(&openai(&server), 1).await.0.unwrap().text, "Hi");
}

#[tokio::test]
async fn anthropics_stream_is_put_together() {
    let server = Server::new(vec![Answer::events([
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":7,"cache_read_input_tokens":20,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"?"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ])]);
    let (reply, pieces) = stream(anthropic(&server), 1).await;
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("Hello", Finish::Filtered));
    assert_eq!(reply.usage, Some(Tokens { input: 27, output: 9, cached_input: 20, ..Tokens::default() }));
    assert_eq!(pieces, ["Hel", "lo"]);
    assert!(reply.reasoning.is_none_or(|reasoning| reasoning.sealed.is_empty()), "no thinking block was opened");
}

#[tokio::test]
async fn an_error_in_anthropics_stream_is_transient() {
    let event = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let server = Server::with(move |_, _| Answer::events([event]));
    let fault = stream(anthropic(&server), 2).await.0.unwrap_err();
    assert_eq!((fault.code, fault.retryable, fault.attempts), (ModelFaultCode::ModelProtocol, true, 2));
    assert!(fault.message.contains("Overloaded"), "{}", fault.message);
}

#[tokio::test]
async fn a_stream_without_end_is_cut_at_the_limit() {
    let server = Server::new(vec![Answer::endless("text/event-stream", vec![b'x'; 1 << 20])]);
    let fault = stream(openai(&server), 1).await.0.unwrap_err();
    assert!(fault.message.contains("larger than 64 MiB"), "{}", fault.message);
}
