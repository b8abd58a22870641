//! The story of a run, word for word.

use super::*;
use crate::engine::event::{CallId, Finish};
use crate::engine::record::{TokenDetails, TokenUsage, TraceEntry};
use crate::trace::{Look, escape};
use serde_json::json;

fn story(width: usize) -> Story {
    Story::new(Pieces { look: Look::plain(width), shorten: true }, Redaction::default())
}

fn replied(iteration: u32, thought: &str) -> Notice {
    let usage = Some(TokenUsage { input_tokens: 1_200, output_tokens: 34, details: TokenDetails::default() });
    Notice::ModelReplied {
        iteration,
        thought: thought.to_owned(),
        usage,
        finish: Finish::Stop,
        response_model: None,
        duration_ms: 1_250,
        time_to_first_token_ms: None,
    }
}

fn called(iteration: u32, index: u32, action: &str, input: Value) -> Notice {
    Notice::ToolCalled { call: CallId { iteration, index }, action: action.to_owned(), action_input: input }
}

fn observed(iteration: u32, action: &str, input: Value, observation: Value, success: bool) -> Notice {
    Notice::Observed {
        call: Some(CallId { iteration, index: 0 }),
        entry: TraceEntry {
            iteration,
            at_ms: 0,
            thought: String::new(),
            action: Some(action.to_owned()),
            action_input: Some(input),
            observation,
            success,
            duration_ms: 312,
            usage: None,
            run_id: None,
            error: None,
            decided_at_ms: None,
            called_at_ms: None,
            index: 0,
            call_status: None,
            attempts: Vec::new(),
            hint: None,
        },
    }
}

fn begin() -> Notice {
    Notice::RunStarted {
        run_id: "run-1".to_owned(),
        loop_name: "refund-check".to_owned(),
        model: "small".to_owned(),
        objective: "Decide whether ticket TK-1 gets a refund.".to_owned(),
        max_iterations: 10,
        fork_of: None,
    }
}

#[test]
fn a_run_is_shown_as_it_happens() {
    let ticket = json!({"ticket_id": "TK-1", "api_key": "k"});
    let notices = [
        begin(),
        Notice::ModelAsked { iteration: 1 },
        Notice::ModelRetried { iteration: 1, attempt: 1, reason: "http 429".to_owned(), delay_ms: 1_000 },
        replied(1, "I look at the ticket first, because everything else hangs on what the customer wrote there."),
        called(1, 0, "lookup_ticket", ticket.clone()),
        observed(1, "lookup_ticket", ticket, json!({"status": "open", "amount": 12}), true),
        replied(2, "Two at once."),
        called(2, 0, "a", json!({})),
        called(2, 1, "b", json!({"n": 1})),
        observed(2, "b", json!({"n": 1}), json!("done"), true),
        observed(2, "a", json!({}), json!("http 503"), false),
        replied(3, ""),
        observed(
            3,
            "lookup_tickets",
            json!({}),
            json!("There is no tool lookup_tickets; did you mean lookup_ticket?"),
            false,
        ),
        observed(4, "__log_progress__", json!({"message": "half"}), json!("noted"), true),
        Notice::Progress { iteration: 4, message: "half".to_owned(), milestone: None, percent: Some(50.0) },
        observed(5, "__complete__", json!({"answer": 1}), json!(null), true),
    ];
    let mut story = story(72);
    let text: String = notices.iter().map(|notice| story.on(notice)).collect();
    insta::assert_snapshot!(text, @r#"
    refund-check · run-1 · small · at most 10 iterations
    Decide whether ticket TK-1 gets a refund.

         ! the model: http 429; attempt 1, retry in 1.0 s
      1  I look at the ticket first, because everything else hangs on what
         the customer wrote there.  1,234 tokens, 1.2 s
         → lookup_ticket {"ticket_id": "TK-1", "api_key": "[hidden]"}
         ← {"status": "open", "amount": 12}  312 ms

      2  Two at once.  1,234 tokens, 1.2 s
         → a
         → b {"n": 1}
         ← b: done  312 ms
         ✗ a: http 503  312 ms

      3  (no thought)  1,234 tokens, 1.2 s
         → lookup_tickets
         ✗ There is no tool lookup_tickets; did you mean lookup_ticket?
           312 ms
         ◆ █████░░░░░ 50 %  half
    "#);
}

#[test]
fn a_beginning_is_parted_from_what_comes_by_one_blank_line_and_from_an_end_by_the_ends() {
    let resumed =
        Notice::RunResumed { run_id: "run-1".to_owned(), loop_name: "refund-check".to_owned(), iterations: 1 };
    let retried = Notice::ModelRetried { iteration: 1, attempt: 1, reason: "x".to_owned(), delay_ms: 1 };
    for next in [replied(2, "Next."), called(1, 0, "a", json!({})), retried] {
        let mut story = story(72);
        assert_eq!(story.on(&resumed), "refund-check · run-1 · resumed after 1 iteration\n");
        assert_eq!(story.on(&Notice::ModelAsked { iteration: 1 }), "");
        let text = story.on(&next);
        assert!(text.starts_with('\n') && !text.starts_with("\n\n"), "{text:?}");
        assert!(!story.on(&called(3, 0, "b", json!({}))).starts_with('\n'));
    }
}

#[test]
fn a_failure_says_all_to_who_watches_and_a_call_decided_before_stands_apart() {
    let mut failed = observed(1, "lookup_host", json!({}), json!("Error: http 401"), false);
    let Notice::Observed { entry, .. } = &mut failed else { panic!("an observation") };
    let detail = "{\"error\": \"no token\", \"api_key\": \"k\"}\n".to_owned();
    entry.error = Some(ToolFault { class: "http 401".to_owned(), detail, ..ToolFault::default() });
    let mut story = story(72);
    let text: String = [failed, replied(2, "Next.")].iter().map(|notice| story.on(notice)).collect();
    insta::assert_snapshot!(text, @r#"
         → lookup_host
         ✗ Error: http 401  312 ms
         ! {"error":"no token","api_key":"[hidden]"}

      2  Next.  1,234 tokens, 1.2 s
    "#);
}

#[test]
fn long_texts_are_cut_and_counted() {
    let mut story = story(60);
    let text = story.on(&observed(1, "x", json!({"q": "y".repeat(5_000)}), json!("z ".repeat(5_000)), true));
    assert!(text.lines().count() <= 8, "{text}");
    assert!(text.contains("yy…\"}\n") && text.contains("characters more"), "{text}");
}

#[test]
fn nothing_of_a_hostile_run_reaches_the_terminal_raw() {
    let hostile = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202E}\r\u{E0041}";
    let mut story = story(80);
    let notices = [
        Notice::RunStarted {
            run_id: hostile.to_owned(),
            loop_name: hostile.to_owned(),
            model: hostile.to_owned(),
            objective: hostile.to_owned(),
            max_iterations: 1,
            fork_of: None,
        },
        Notice::ModelRetried { iteration: 1, attempt: 1, reason: hostile.to_owned(), delay_ms: 1 },
        replied(1, hostile),
        called(1, 0, hostile, json!({ hostile: hostile })),
        observed(1, hostile, json!({ hostile: hostile }), json!(hostile), false),
        Notice::Progress {
            iteration: 1,
            message: hostile.to_owned(),
            milestone: Some(hostile.to_owned()),
            percent: Some(1.0),
        },
    ];
    for notice in &notices {
        let text = story.on(notice);
        assert!(!text.contains(escape::is_hidden), "{text:?}");
    }
}

#[test]
fn a_line_for_machines_hides_secrets_and_keeps_digits() {
    let input: Value = serde_json::from_str(r#"{"password":"hunter2","n":12345678901234567890123}"#).unwrap();
    let value = story(80).json(&called(1, 0, "x", input)).unwrap();
    let line = super::super::json_line(&value).unwrap();
    assert!(line.starts_with(r#"{"event":"tool_called""#), "{line}");
    assert!(!line.contains("hunter2") && line.contains("12345678901234567890123"), "{line}");
}
