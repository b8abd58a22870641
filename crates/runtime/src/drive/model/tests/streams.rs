//! Streams: the decoder of events, and replies in pieces.

use proptest::prelude::*;

use std::time::Duration;

use bytes::Bytes;

use super::super::failure::AttemptFailure;
use super::super::reply_progress::{ReplyProgress, StreamState};
use super::super::sse::{PieceSource, SseDecoder, is_stream, read_events};
use super::*;
use loopctl_engine::event::{Finish, ModelFaultCode, Tokens};

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
        ("error: {\"code\": 400}\n\nerror: x\n\n", vec!["{\"code\": 400}"]),
        ("data\n\n", vec![""]),
        // A missing empty line at the end is forgiven, and a missing end of a line that is a whole object.
        ("data: a\n", vec!["a"]),
        ("data: a\n\ndata: {\"b", vec!["a"]),
        ("data: a\n\ndata: 12", vec!["a"]),
        ("data: a\n\ndata: {\"b\": 1} ", vec!["a", "{\"b\": 1} "]),
        ("data: a\ndata: {\"b\": 1}", vec!["a"]),
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
async fn an_error_that_is_the_whole_answer_is_one_and_nothing_behind_it_counts() {
    for error in [
        r#"{"object":"error","message":"The window of 4096 is full.","code":400}"#,
        r#"{"message":"The window of 4096 is full.","type":"invalid","code":null}"#,
    ] {
        let answers = [
            Answer::json(error),
            Answer::events([delta("Half"), error.to_owned(), END.to_owned(), "[DONE]".to_owned()]),
            Answer::new(
                "text/event-stream",
                format!("data: {}\n\nevent: error\ndata: {error}\n\ndata: {END}\n\n", delta("Half")),
            ),
            Answer::new("text/event-stream", format!("error: {error}\n\ndata: [DONE]\n\n")),
        ];
        for answer in answers {
            let fault = stream(openai(&Server::new(vec![answer])), 1).await.0.unwrap_err();
            assert!(fault.message.contains("The window of 4096 is full."), "{}", fault.message);
        }
    }
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

#[test]
fn a_stream_is_known_by_what_it_begins_with() {
    for (begun, labelled, expected) in [
        ("data: {}", false, Some(true)),
        ("\u{feff}\r\n: hello", false, Some(true)),
        ("event: x", false, Some(true)),
        ("data\n\n", false, Some(true)),
        ("database: x", false, Some(false)),
        ("{\"choices\":[]}", false, Some(false)),
        ("<html>", false, Some(false)),
        ("hello: x", false, Some(false)),
        ("hello: x", true, Some(true)),
        // An error as JSON, whatever its label.
        (" {\"error\":1}", true, Some(false)),
        ("", true, None),
        ("\n \n", false, None),
        ("dat", false, None),
        ("data", false, None),
        ("x", false, Some(false)),
    ] {
        assert_eq!(is_stream(begun.as_bytes(), labelled), expected, "{begun:?}");
    }
    assert_eq!(is_stream(&b" ".repeat(2_000), false), Some(false));
}

/// Pieces, and the seconds before each of them; then the end, a fault, or silence.
struct TimedPieces(Vec<(u64, Result<Option<&'static str>, ()>)>);

impl PieceSource for TimedPieces {
    async fn next(&mut self) -> Result<Option<Bytes>, AttemptFailure> {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        let (seconds, piece) = self.0.remove(0);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        piece.map(|piece| piece.map(Bytes::from)).map_err(|()| AttemptFailure::unreachable("broke".to_owned()))
    }
}

/// Reads a stream whose events are words; returns those that were read, whether it came to its end, and the seconds.
async fn timed(pieces: Vec<(u64, Result<Option<&'static str>, ()>)>) -> (String, Result<bool, String>, u64) {
    let (started_at, mut words) = (tokio::time::Instant::now(), Vec::new());
    let mut source = TimedPieces(pieces);
    let read = read_events(&mut source, |data| {
        let word = String::from_utf8(data.to_vec()).unwrap();
        let state = match word.as_str() {
            "bad" => return Err(AttemptFailure::protocol("bad".to_owned())),
            "end" => StreamState::Ended,
            "maybe" => StreamState::MayHaveEnded,
            "more" => StreamState::Grown,
            "over" => StreamState::Over,
            _ => StreamState::Open,
        };
        words.push(word);
        Ok(state)
    });
    let read = read.await.map_err(|failure| failure.message);
    (words.join(" "), read, started_at.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_has_ended_counts_with_or_without_what_may_follow() {
    let (text, end, usage) = (Ok(Some("data: text\n\n")), Ok(Some("data: end\n\n")), Ok(Some("data: usage\n\n")));
    let (beat, over) = (Ok(Some(": beat\n\n")), Ok(Some("data: over\n\n")));
    let (maybe, more) = (Ok(Some("data: maybe\n\n")), Ok(Some("data: more\n\n")));
    for (pieces, words, is_over, seconds) in [
        // Before the end of the reply, nothing has a bound here.
        (vec![(0, text), (1_000, end), (1, usage), (0, over)], "text end usage over", true, 1_001),
        (vec![(0, text), (0, end), (1, usage)], "text end usage", false, 2),
        (vec![(0, text), (0, end), (3, usage)], "text end", false, 2),
        (vec![(0, end), (1, beat), (0, beat), (3, usage)], "end", false, 2),
        (vec![(0, end), (1, end), (3, usage)], "end end", false, 2),
        (vec![(0, maybe), (5, end), (3, usage)], "maybe end", false, 7),
        (vec![(0, end), (1, Err(()))], "end", false, 1),
        (vec![(0, end), (1, Ok(Some("data: bad\n\n")))], "end", false, 1),
        (vec![(0, Ok(Some("data: end\n\ndata: bad\n\n")))], "end", false, 0),
        (vec![(0, end), (1, Ok(None))], "end", true, 1),
        (vec![(0, Ok(Some("data: end\n\ndata: over\n\ndata: bad\n\n")))], "end over", true, 0),
        // What grows behind the reason to stop was not at its end.
        (vec![(0, end), (1, more), (9, usage), (0, over)], "end more usage over", true, 10),
        // A reason that came with a piece is waited behind, and the reply is kept whatever ends the wait.
        (vec![(0, maybe), (9, more), (9, maybe), (9, Ok(None))], "maybe more maybe", true, 27),
        (vec![(0, maybe), (9, Err(()))], "maybe", false, 9),
        (vec![(0, text), (1, Ok(None))], "text", true, 1),
    ] {
        assert_eq!(timed(pieces).await, (words.to_owned(), Ok(is_over), seconds), "{words}");
    }
    for pieces in [
        vec![(0, text), (1, Err(()))],
        vec![(0, text), (0, Ok(Some("data: bad\n\n")))],
        vec![(0, maybe), (0, Ok(Some("data: bad\n\n")))],
        vec![(0, maybe), (0, more), (1, Err(()))],
        vec![(0, end), (0, more), (1, Err(()))],
    ] {
        assert!(timed(pieces).await.1.is_err());
    }
}

#[test]
fn only_a_reason_alone_behind_what_was_written_ends_a_reply() {
    let counted = |has_stopped, written, counted| ReplyProgress { has_stopped, written, counted };
    let progress = |has_stopped, written| counted(has_stopped, written, None);
    for (before, now, expected) in [
        (progress(false, 3), progress(true, 3), StreamState::Ended),
        (progress(false, 3), progress(true, 5), StreamState::MayHaveEnded),
        (progress(false, 0), progress(true, 0), StreamState::MayHaveEnded),
        (progress(true, 3), progress(true, 5), StreamState::Grown),
        (progress(true, 3), progress(true, 3), StreamState::Open),
        (progress(false, 3), progress(false, 5), StreamState::Open),
        // Tokens in a piece of their own say that it is whole; those that come with a piece of the text may be its own.
        (progress(false, 0), counted(true, 5, Some(2)), StreamState::MayHaveEnded),
        (progress(true, 5), counted(true, 5, Some(2)), StreamState::Ended),
        (counted(true, 5, Some(2)), counted(true, 5, Some(2)), StreamState::Open),
        (counted(true, 3, Some(1)), counted(true, 5, Some(2)), StreamState::Grown),
        (counted(false, 3, Some(1)), counted(true, 5, Some(1)), StreamState::MayHaveEnded),
        (progress(false, 0), counted(true, 0, Some(2)), StreamState::MayHaveEnded),
    ] {
        assert_eq!(now.since(before), expected, "{before:?} {now:?}");
    }
}

/// What a stream of chat completions comes to.
async fn read_stream(events: &[String]) -> Reply {
    stream(openai(&Server::new(vec![Answer::events(events)])), 1).await.0.unwrap()
}

#[tokio::test]
async fn blank_data_is_passed_over_and_a_blank_belongs_to_no_word() {
    for blank in ["", " ", "null", " null "] {
        for done in ["[DONE]", "[DONE] ", " [DONE]"] {
            let events = [blank.to_owned(), delta("Hi"), blank.to_owned(), END.to_owned(), done.to_owned()];
            assert_eq!(read_stream(&events).await.text, "Hi", "{blank:?} {done:?}");
        }
    }
    for (provider, events) in [
        (
            "anthropic",
            vec![
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}"#,
                "null",
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
                "",
                "[DONE]",
            ],
        ),
        (
            "gemini",
            vec!["", r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#, "[DONE] "],
        ),
        (
            "openai-responses",
            vec![
                "null",
                r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
                "",
                r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#,
                "[DONE]",
            ],
        ),
    ] {
        let server = Server::new(vec![Answer::events(events)]);
        assert_eq!(stream(at(&server, provider), 1).await.0.unwrap().text, "Hi", "{provider}");
    }
}

#[tokio::test]
async fn a_stream_is_read_under_any_label_when_one_was_asked_for() {
    let events = format!("data: {}\n\ndata: {END}\n\ndata: [DONE]\n\n", delta("Hi"));
    for kind in ["text/plain", "application/json", "application/octet-stream", "application/stream+json"] {
        let bytes = events.as_bytes().chunks(3).map(<[u8]>::to_vec).collect();
        let server = Server::new(vec![Answer::chunked(kind, bytes)]);
        let (reply, pieces) = stream(openai(&server), 1).await;
        assert_eq!((reply.unwrap().text.as_str(), pieces), ("Hi", vec!["Hi".to_owned()]), "{kind}");
    }
    // A whole answer, and an error, under the label of a stream.
    let server = Server::new(vec![Answer::openai("Hi").header("content-type", "text/event-stream")]);
    assert_eq!(stream(openai(&server), 1).await.0.unwrap().text, "Hi");
    let error = Answer::new("text/event-stream", r#"{"error":{"message":"overloaded"}}"#);
    let fault = stream(openai(&Server::new(vec![error])), 1).await.0.unwrap_err();
    assert!(fault.message.contains("overloaded"), "{}", fault.message);
    // Nobody asked for a stream, and nobody says that it is one.
    let server = Server::new(vec![Answer::new("text/plain", events)]);
    let fault = greet(&openai(&server), 1).await.0.unwrap_err();
    assert!(fault.message.contains("text/plain"), "{}", fault.message);
    let server = Server::new(vec![Answer::new("text/html", "<html>Welcome</html>")]);
    assert!(stream(openai(&server), 1).await.0.unwrap_err().message.contains("text/html"));
}

#[tokio::test]
async fn a_last_piece_that_says_all_again_counts_once() {
    let end = |last: &str| format!(r#"{{"choices":[{{"index":0,{last},"finish_reason":"stop"}}]}}"#);
    let whole = "It is 42, as you have asked me to say.";
    let (first, second) = (delta("It is 42,"), delta(" as you have asked me to say."));
    for last in [
        format!(r#""delta":{{"content":"{whole}"}}"#),
        format!(r#""message":{{"role":"assistant","content":"{whole}"}}"#),
        format!(r#""delta":{{}},"message":{{"content":"{whole}"}}"#),
        r#""delta":{}"#.to_owned(),
    ] {
        assert_eq!(read_stream(&[first.clone(), second.clone(), end(&last)]).await.text, whole, "{last}");
        assert_eq!(read_stream(&[delta(whole), end(&last)]).await.text, whole, "{last}");
        // In an event of its own, before the one with the reason.
        let again = format!(r#"{{"choices":[{{"index":0,{last}}}]}}"#);
        assert_eq!(read_stream(&[first.clone(), second.clone(), again, END.to_owned()]).await.text, whole, "{last}");
    }
    for pieces in [
        &["ha", "ha"][..],
        &["1", "1", "1"],
        &["a cable. ", "a cable. ", "so"],
        &["x", "y", "xy", "z"],
        &["12345678", "12345678"],
        &["a", "b", "ab"],
        &["-------------", "-------------"],
    ] {
        let events: Vec<String> = pieces.iter().map(|piece| delta(piece)).chain([END.to_owned()]).collect();
        assert_eq!(read_stream(&events).await.text, pieces.concat());
    }
    // The pieces of a stream as messages.
    let piece = |text: &str| format!(r#"{{"choices":[{{"index":0,"message":{{"content":"{text}"}}}}]}}"#);
    assert_eq!(read_stream(&[piece("It is"), piece(" 42."), END.to_owned()]).await.text, "It is 42.");
}

#[tokio::test]
async fn a_choice_that_nobody_asked_for_is_passed_over() {
    let choice =
        |index: u64, text: &str| serde_json::json!({"index": index, "delta": {"content": text}, "message": null});
    let event = |choices: &[serde_json::Value]| serde_json::json!({ "choices": choices }).to_string();
    let stop = |index: u64| serde_json::json!({"index": index, "delta": {}, "finish_reason": "length"});
    let events = [
        event(&[choice(1, "no"), choice(0, "Hel")]),
        event(&[stop(1)]),
        event(&[choice(1, "no")]),
        event(&[choice(0, "lo")]),
        event(&[serde_json::json!({"index": 0, "delta": {}, "finish_reason": "stop"})]),
    ];
    let reply = read_stream(&events).await;
    assert_eq!((reply.text.as_str(), reply.finish), ("Hello", Finish::Stop));
    let calls = serde_json::json!([{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}]);
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#;
    let usage = read_stream(&[delta("Hi"), end.to_owned()]).await.usage;
    assert_eq!(usage, Some(Tokens { input: 7, output: 3, ..Tokens::default() }));
    for (reason, made) in [("tool_calls", 1), ("stop", 0)] {
        let text = serde_json::json!({"content": "I look."});
        let called = serde_json::json!({ "tool_calls": calls });
        let choice = |index: u64, key: &str, said: &serde_json::Value, reason: &str| serde_json::json!({"index": index, key: said, "finish_reason": reason});
        let both = |key: &str, index: u64| event(&[choice(0, key, &text, "stop"), choice(index, key, &called, reason)]);
        assert_eq!(read_stream(&[both("delta", 1)]).await.calls.len(), made);
        for index in [0, 1] {
            let server = Server::new(vec![Answer::json(&both("message", index))]);
            let reply = greet(&openai(&server), 1).await.0.unwrap();
            assert_eq!((reply.text.as_str(), reply.calls.len()), ("I look.", made), "{reason} {index}");
        }
    }
    let whole = r#"{"choices":[{"index":1,"message":{"content":"no"},"finish_reason":"error"},
        {"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    assert_eq!(greet(&openai(&Server::new(vec![Answer::json(whole)])), 1).await.0.unwrap().text, "Hello");
}

#[tokio::test]
async fn halves_of_a_sign_are_joined_or_lost_and_no_reply_fails_for_them() {
    let openai_whole = r#"{"choices":[{"message":{"content":"sent \ud83d ok"},"finish_reason":"stop"}]}"#;
    let anthropic_whole = r#"{"content":[{"type":"text","text":"sent \ud83d ok"}],"stop_reason":"end_turn"}"#;
    let gemini_whole = r#"{"candidates":[{"content":{"parts":[{"text":"sent \ud83d ok"}]},"finishReason":"STOP"}]}"#;
    let responses_whole =
        r#"{"status":"completed","output":[{"type":"message","content":[{"text":"sent \ud83d ok"}]}]}"#;
    for (provider, whole) in [
        ("openai", openai_whole),
        ("anthropic", anthropic_whole),
        ("gemini", gemini_whole),
        ("openai-responses", responses_whole),
    ] {
        let server = Server::new(vec![Answer::json(whole)]);
        assert_eq!(greet(&at(&server, provider), 1).await.0.unwrap().text, "sent \u{fffd} ok", "{provider}");
    }
    let piece = |provider: &str, text: &str| match provider {
        "openai" => format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#),
        "anthropic" => {
            format!(r#"{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{text}"}}}}"#)
        }
        "gemini" => format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#),
        _ => format!(r#"{{"type":"response.output_text.delta","delta":"{text}"}}"#),
    };
    for (provider, end) in [
        ("openai", END),
        ("anthropic", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#),
        ("gemini", r#"{"candidates":[{"finishReason":"STOP"}]}"#),
        ("openai-responses", r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#),
    ] {
        for (pieces, expected) in [
            ([r"a\ud83d", r"\ude00b"], "a😀b"),
            ([r"a\ud83d", "b"], "a\u{fffd}b"),
            ([r"a", r"\ude00"], "a\u{fffd}"),
            ([r"a\\ud83d", r"\ud83d"], "a\\ud83d\u{fffd}"),
        ] {
            let events = pieces.map(|text| piece(provider, text)).into_iter().chain([end.to_owned()]);
            let (reply, shown) = stream(at(&Server::new(vec![Answer::events(events)]), provider), 1).await;
            let reply = reply.unwrap();
            assert_eq!(reply.text, expected, "{provider} {pieces:?}");
            assert!(expected.starts_with(&shown.concat()), "{provider} {shown:?}");
        }
    }
    let calls = |arguments: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"look","arguments":"{arguments}"}}}}]}}}}]}}"#
        )
    };
    for (pieces, expected) in [
        ([r#"{\"at\":\"\ud83d"#, r#"\ude00\"}"#], "{\"at\":\"😀\"}"),
        ([r#"{\"at\":\"\\ud83d"#, r#"\\ude00\"}"#], r#"{"at":"\ud83d\ude00"}"#),
        ([r#"{\"at\":\"\\ud83d"#, r#" ok\"}"#], "{\"at\":\"\u{fffd} ok\"}"),
    ] {
        let reply = read_stream(&[calls(pieces[0]), calls(pieces[1]), END.to_owned()]).await;
        assert_eq!(reply.calls[0].arguments, expected, "{pieces:?}");
    }
}

#[tokio::test]
async fn a_call_of_no_tool_with_no_arguments_beside_a_text_is_none() {
    let nothing = serde_json::json!({ "name": "", "arguments": "" });
    for said in [
        serde_json::json!({ "content": "4", "function_call": nothing, "tool_calls": null }),
        serde_json::json!({ "content": "4", "tool_calls": [{ "index": 0, "id": "", "type": "function", "function": nothing }] }),
    ] {
        let choice = |key: &str| serde_json::json!({ "choices": [{ "index": 0, key: said, "finish_reason": "stop" }] });
        let whole =
            greet(&openai(&Server::new(vec![Answer::json(&choice("message").to_string())])), 1).await.0.unwrap();
        let streamed = read_stream(&[choice("delta").to_string()]).await;
        for reply in [whole, streamed] {
            assert_eq!((reply.text.as_str(), reply.calls.len()), ("4", 0), "{said}");
        }
    }
}

#[tokio::test]
async fn a_block_that_anthropic_runs_itself_is_passed_over_in_a_stream_too() {
    let server = Server::new(vec![Answer::events([
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"mcp_tool_use","id":"a","name":"echo","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"look","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"y\":2}"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ])]);
    let calls = stream(anthropic(&server), 1).await.0.unwrap().calls;
    let made: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(made, [("look", r#"{"y":2}"#)]);
}

#[tokio::test]
async fn an_input_that_a_call_begins_with_and_its_pieces_say_again_counts_once() {
    let events = |pieces: &[&str]| {
        let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"b","name":"look","input":{"y":2}}}"#;
        let pieces = pieces.iter().map(|text| {
            let delta = serde_json::json!({ "type": "input_json_delta", "partial_json": text });
            serde_json::json!({ "type": "content_block_delta", "index": 0, "delta": delta }).to_string()
        });
        let end = [r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#, r#"{"type":"message_stop"}"#];
        std::iter::once(start.to_owned()).chain(pieces).chain(end.map(str::to_owned)).collect::<Vec<_>>()
    };
    for pieces in [&[][..], &[""], &["", "{\"y\"", ":2}"]] {
        let calls = stream(anthropic(&Server::new(vec![Answer::events(events(pieces))])), 1).await.0.unwrap().calls;
        assert_eq!(calls[0].arguments, r#"{"y":2}"#, "{pieces:?}");
    }
}

#[tokio::test]
async fn a_message_that_begins_within_another_one_is_asked_for_again() {
    let message = |id: &str| {
        let start = serde_json::json!({ "type": "message_start", "message": { "id": id, "content": [] } });
        let call = serde_json::json!({ "type": "content_block_start", "index": 0,
            "content_block": { "type": "tool_use", "id": id, "name": "pay", "input": { "amount": 5 } } });
        [start.to_string(), call.to_string()]
    };
    let end = [
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    let spliced = Answer::events([message("one"), message("two"), end.clone()].concat());
    let server = Server::new(vec![spliced, Answer::events([message("three"), end].concat())]);
    let reply = stream(anthropic(&server), 2).await.0.unwrap();
    assert_eq!(reply.calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["three"]);
}

#[tokio::test]
async fn a_choice_that_a_filter_left_without_a_message_is_withheld() {
    let withheld = r#"{"choices":[{"content_filter_results":{"hate":{"filtered":true,"severity":"high"}},"finish_reason":"content_filter",
        "index":0}],"usage":{"prompt_tokens":15,"completion_tokens":19}}"#;
    let reply = greet(&openai(&Server::new(vec![Answer::json(withheld)])), 1).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish), ("", Finish::Filtered));
    assert_eq!(reply.usage, Some(Tokens { input: 15, output: 19, ..Tokens::default() }));
}
