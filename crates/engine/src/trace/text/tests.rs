//! The trace as text, word for word.

use super::*;
use crate::event::CallId;
use crate::event::ToolFault;
use crate::outcome::{Answer, Ending};
use crate::question::{Question, WaitingCall};
use crate::state::{Phase, State};
use crate::trace::tests_state::{entry, in_phase, of_loop, state};
use crate::trace::{About, Redaction, Shown, result};
use serde_json::json;

fn about() -> About<'static> {
    About { loop_name: "refund-check", model: "small", objective: "Decide about the ticket.", active_ms: 4_200 }
}

fn shown(state: &State, look: Look) -> String {
    text(
        look,
        &about(),
        &result(
            Shown { result_key: None, trace: true, driven: false, is_quarantined: false },
            state,
            &Redaction::default(),
        ),
    )
}

fn whole() -> State {
    let answer = Answer { answer: json!({"refund": true}), confidence: 1.into(), summary: None };
    let ending = Ending {
        status: Status::Completed,
        termination: Termination::Complete,
        answer: Some(answer),
        limit: None,
        stuck: None,
        error: None,
        cancelled_by: None,
        at_ms: 1_769_941_805_000,
    };
    let mut failed = entry(2);
    failed.success = false;
    failed.observation = json!("http 503").into();
    failed.error = Some(Box::new(ToolFault {
        class: "http 503".to_owned(),
        detail: "GET https://h/x: overloaded".to_owned(),
        ..ToolFault::default()
    }));
    let mut state = in_phase(Phase::Ended(Box::new(ending)));
    of_loop(&mut state).entries = vec![entry(1), failed];
    state
}

#[test]
fn a_run_reads_from_top_to_bottom() {
    insta::assert_snapshot!(shown(&whole(), Look::plain(60)), @r#"
    refund-check · run-1 · small · 2026-02-01T10:30:00.000Z
    Decide about the ticket.

      1  look first  120 tokens
         → lookup_ticket {"ticket_id": "TK-1"}
           asked 10:30:01.000, called 10:30:01.000
         ← {"status": "open"}  312 ms

      2  look first  120 tokens
         → lookup_ticket {"ticket_id": "TK-1"}
           asked 10:30:01.000, called 10:30:01.000
         ✗ http 503  312 ms
         ! GET https://h/x: overloaded

    ✓ completed  1 iteration · 1 tool call · 120 tokens · 4.2 s

    {
      "refund": true
    }
    "#);
}

#[test]
fn a_narrow_terminal_is_kept_to() {
    use unicode_width::UnicodeWidthStr;
    let mut state = state();
    let mut long = entry(1);
    long.thought = "漢字 and words ".repeat(20).into();
    long.action_input = json!({"ticket_id": "x".repeat(200)}).into();
    long.success = false;
    of_loop(&mut state).entries = vec![long];
    let text = shown(&state, Look::plain(40));
    let widest = text.lines().skip(2).take_while(|line| !line.contains('✗')).map(str::width).max();
    assert!(widest <= Some(40), "{text}");
}

#[test]
fn on_a_narrow_terminal_no_fact_is_broken() {
    use unicode_width::UnicodeWidthStr;
    let shown = shown(&whole(), Look::plain(30));
    let at = |text: &str| shown.lines().find(|line| line.contains(text)).map(str::trim).map(str::to_owned);
    assert_eq!(at("small"), Some("run-1 · small".to_owned()), "{shown}");
    assert_eq!(at("iteration"), Some("1 iteration · 1 tool call".to_owned()), "{shown}");
    assert_eq!(at("4.2 s"), Some("120 tokens · 4.2 s".to_owned()), "{shown}");
    assert!(shown.lines().all(|line| line.width() <= 30), "{shown}");
}

#[test]
fn hostile_text_comes_through_harmless_and_colours_are_ours_only() {
    let mut state = state();
    let mut bad = entry(1);
    let hostile = "\u{1b}[2J\u{9b}31m\u{202E}\r\u{7}";
    bad.thought = hostile.into();
    bad.action = Some(hostile.into());
    bad.action_input = json!({ hostile: hostile }).into();
    bad.observation = json!(hostile).into();
    of_loop(&mut state).entries = vec![bad];
    std::sync::Arc::make_mut(&mut state.header).run_id = hostile.to_owned();
    assert!(!shown(&state, Look::plain(80)).contains(escape::is_hidden));
    let coloured = shown(&state, Look { colour: true, width: 80 });
    assert!(!coloured.replace("\u{1b}[", "").contains(escape::is_hidden));
    assert!(!coloured.contains("\u{1b}[2J"));
}

#[test]
fn progress_is_a_bar_within_its_bounds() {
    let pieces = Pieces { look: Look::plain(80), shorten: true };
    assert_eq!(pieces.progress("half", Some("m1"), Some(50.0)), "     ◆ █████░░░░░ 50 %  half  (m1)\n");
    assert_eq!(pieces.progress("odd", None, Some(900.0)), "     ◆ ██████████ 100 %  odd\n");
    assert_eq!(pieces.progress("none", None, Some(f64::NAN)), "     ◆ none\n");
}

#[test]
fn a_call_that_wants_approval_is_shown_with_what_is_hidden_counted() {
    let call = WaitingCall {
        id: "2.0".to_owned(),
        call: CallId { iteration: 2, index: 0 },
        action: "pay".to_owned(),
        action_input: json!({"note": "\n".repeat(10_000), "rows": vec![1; 100]}),
        hash: "0123456789abcdef".to_owned(),
        approval: None,
    };
    let question = Question::new(Termination::Approval, "May it pay?");
    let waiting = PauseView { number: 1, question, call: Some(call), calls: Vec::new(), steps: Vec::new() };
    let text = Pieces { look: Look::plain(80), shorten: true }.pause(&waiting);
    assert!(text.lines().count() < 50 && text.contains("not shown here"), "{text}");
}
