//! The suggested commands can be copied, and have the flags that they need.

use super::*;
use crate::cli::tests_state::state;
use crate::engine::event::CallId;
use crate::engine::question::Question;
use crate::trace::result::PauseView;
use crate::trace::{Redaction, Shown, result};

fn next() -> NextCommands {
    NextCommands {
        program: "loopctl".to_owned(),
        run_id: "run-1".to_owned(),
        lasts: true,
        is_copy: false,
        store: None,
        script: None,
        actions: Vec::new(),
        raising: None,
        for_replies: None,
    }
}

fn shown(status: Status, termination: Option<Termination>) -> RunResult {
    let mut result = result(Shown::default(), &state(), &Redaction::default());
    result.status = status;
    result.termination = termination;
    result
}

#[test]
fn a_question_is_answered_and_a_call_approved() {
    let look = Look::plain(80);
    let human = next().text(&shown(Status::Paused, Some(Termination::Human)), &look);
    assert_eq!(human, "  run     run-1\n  answer  loopctl resume run-1 --answer \"...\"\n");
    let approval = next().text(&waiting(Termination::Approval, &["2.0"]), &look);
    assert!(approval.contains("  approve  loopctl resume run-1 --approve --if hash-2.0\n"), "{approval}");
    assert!(approval.contains("--deny --reason \"...\" --if hash-2.0") && approval.contains("--edit '{...}' --if"));
    let uncertain = next().text(&waiting(Termination::Uncertain, &["2.0"]), &look);
    assert!(uncertain.contains("--happened '{...}' --if hash-2.0") && uncertain.contains("--retry --if hash-2.0"));
}

/// A paused run with these calls.
fn waiting(kind: Termination, ids: &[&str]) -> RunResult {
    let calls: Vec<WaitingCall> = ids
        .iter()
        .map(|id| WaitingCall {
            id: (*id).to_owned(),
            call: CallId { iteration: 2, index: 0 },
            action: "pay".to_owned(),
            action_input: serde_json::json!({}),
            hash: format!("hash-{id}"),
            approval: None,
        })
        .collect();
    let mut result = shown(Status::Paused, Some(kind));
    result.pause = Some(PauseView {
        steps: Vec::new(),
        number: 1,
        question: Question::new(kind, ""),
        call: calls.first().cloned(),
        calls: if calls.len() > 1 { calls } else { Vec::new() },
    });
    result
}

#[test]
fn each_of_several_calls_is_decided_on_its_own() {
    let text = next().text(&waiting(Termination::Approval, &["2.0", "2.1"]), &Look::plain(80));
    assert!(text.contains("approve 2.0") && text.contains("--approve --if hash-2.1\n"), "{text}");
    assert_eq!(text.lines().count(), 7, "{text}");
}

#[test]
fn script_actions_and_store_are_named_again_where_they_are_needed() {
    let next = NextCommands {
        store: Some("sqlite:my runs.db".to_owned()),
        script: Some("s.json".into()),
        actions: vec!["a.json".into()],
        ..next()
    };
    assert_eq!(
        next.command("resume", "--approve"),
        "loopctl resume run-1 --approve --script s.json --actions a.json --store 'sqlite:my runs.db'"
    );
    assert_eq!(next.command("trace", ""), "loopctl trace run-1 --store 'sqlite:my runs.db'");
}

#[test]
fn an_ended_run_is_named_with_its_trace() {
    let look = Look::plain(80);
    assert_eq!(
        next().text(&shown(Status::Completed, Some(Termination::Complete)), &look),
        "  run    run-1\n  trace  loopctl trace run-1\n"
    );
    let failed = next().text(&shown(Status::Failed, Some(Termination::MaxIterations)), &look);
    assert!(failed.contains("loopctl trace run-1") && failed.contains("max_iterations"));
}

#[test]
fn a_run_in_memory_offers_no_command() {
    let next = NextCommands { lasts: false, ..next() };
    let text = next.text(&shown(Status::Paused, Some(Termination::Human)), &Look::plain(80));
    assert!(!text.contains("loopctl resume") && text.contains("memory"));
}

#[test]
fn a_shell_takes_a_quoted_word_whole() {
    assert_eq!(quoted("run-1"), "run-1");
    assert_eq!(quoted("a b"), "'a b'");
    assert_eq!(quoted("it's $(x)"), "'it'\\''s $(x)'");
    assert_eq!(quoted(""), "''");
}
