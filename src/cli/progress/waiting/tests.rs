//! What is said of a run that waits, in played time.

use super::*;
use crate::engine::event::{CallId, Finish};
use crate::trace::Redaction;
use serde_json::Value;

fn part(text: &str, output_tokens: u64) -> Notice {
    Notice::ModelDelta {
        iteration: 1,
        attempt: 1,
        text: text.to_owned(),
        output_tokens,
        estimated: true,
        time_to_first_token_ms: Some(820),
        last: false,
    }
}

fn replied() -> Notice {
    Notice::ModelReplied {
        iteration: 1,
        thought: String::new(),
        usage: None,
        finish: Finish::Stop,
        response_model: None,
        duration_ms: 1,
        time_to_first_token_ms: None,
    }
}

fn after(start: Instant, seconds: u64) -> Instant {
    start.checked_add(Duration::from_secs(seconds)).unwrap()
}

fn start() -> Instant {
    crate::cli::host::clock::instant()
}

#[test]
fn minutes_of_waiting_are_never_silent() {
    let start = start();
    let (mut waiting, mut reply) = (Waiting::new(start, None), LiveReply::new(Redaction::default()));
    assert_eq!(waiting.still(&reply, start), None, "nothing is waited for");
    waiting.on(&Notice::ModelAsked { iteration: 1 }, start);
    // As the command line does it: wait for as long as nothing may be said, and say it.
    let (mut now, mut said) = (start, Vec::new());
    while said.len() < 6 {
        let left = waiting.quiet_for(now);
        if left.is_zero() {
            said.extend(waiting.still(&reply, now));
            waiting.said(now);
        }
        if said.len() == 2 {
            reply.take(&part("It is the cable ", 1_240));
        }
        now = now.checked_add(left).unwrap();
    }
    assert_eq!(now, after(start, 90));
    assert_eq!(
        [&said[0], &said[1], &said[2], &said[5]],
        [
            "     … thinking, 15.0 s\n",
            "     … thinking, 30.0 s\n",
            "     … replying: about 1,240 tokens, the first after 820 ms, 45.0 s\n",
            "     … replying: about 1,240 tokens, the first after 820 ms, 1 min 30 s\n",
        ]
    );
    waiting.on(&replied(), now);
    assert_eq!(waiting.still(&reply, now), None);
}

#[test]
fn tools_and_retries_are_waited_for_aloud_and_a_line_in_between_counts() {
    let start = start();
    let (mut waiting, reply) = (Waiting::new(start, None), LiveReply::new(Redaction::default()));
    let call = CallId { iteration: 1, index: 0 };
    let called = Notice::ToolCalled { call, action: "look\u{1b}[2J".to_owned(), action_input: Value::Null };
    assert!(waiting.on(&called, start));
    waiting.said(after(start, 10));
    assert_eq!(waiting.quiet_for(after(start, 20)), Duration::from_secs(5));
    assert_eq!(waiting.still(&reply, after(start, 25)).unwrap(), "     … calling look\\u{1B}[2J, 25.0 s\n");
    let retried = Notice::ModelRetried { iteration: 1, attempt: 1, reason: String::new(), delay_ms: 1 };
    assert!(waiting.on(&retried, start));
    assert_eq!(waiting.what(&reply).unwrap(), "waiting to retry the request");
    // What says that the attempt before is void is not yet the next one.
    assert!(!waiting.on(&part("", 0), start));
    assert!(waiting.on(&part("It", 1), start));
}

#[test]
fn the_line_of_a_terminal_shows_the_end_of_the_reply_as_data_in_its_width() {
    let start = start();
    let (mut waiting, mut reply) = (Waiting::new(start, None), LiveReply::new(Redaction::default()));
    waiting.on(&Notice::ModelAsked { iteration: 1 }, start);
    assert_eq!(waiting.line(&reply, 100).unwrap(), ("thinking".to_owned(), String::new()));
    reply.take(&part("", 12));
    let line = ("thinking: about 12 tokens, the first after 820 ms".to_owned(), String::new());
    assert_eq!(waiting.line(&reply, 100).unwrap(), line, "reasoning has no text");
    reply.take(&part("One\n\n  line \u{1b}[2J\u{202e} 真的 and \r much more text behind it ", 40));
    let (what, tail) = waiting.line(&reply, 100).unwrap();
    assert_eq!(what, "replying: about 40 tokens, the first after 820 ms");
    assert_eq!(tail, " · …的 and much more text behind it".to_owned());
    for width in 20..140 {
        let (what, tail) = waiting.line(&reply, width).unwrap();
        assert!(what.width() + tail.width() <= width - BESIDE, "{width}: {what}{tail}");
        assert!(!tail.contains(['\u{1b}', '\u{202e}', '\n', '\r']), "{tail:?}");
    }
}
