//! The commands that are offered can be copied, and name what they need.

use super::*;
use crate::trace::tests_state::state;
use crate::trace::{Redaction, Shown, result};

fn next() -> Next {
    Next {
        program: "loopctl".to_owned(),
        run_id: "run-1".to_owned(),
        lasts: true,
        store: None,
        script: None,
        actions: Vec::new(),
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
    let approval = next().text(&shown(Status::Paused, Some(Termination::Approval)), &look);
    assert!(
        approval.contains("resume run-1 --approve\n") && approval.contains("--deny") && approval.contains("--edit")
    );
    let uncertain = next().text(&shown(Status::Paused, Some(Termination::Uncertain)), &look);
    assert!(uncertain.contains("--happened") && uncertain.contains("--retry"));
}

#[test]
fn script_actions_and_store_are_named_again_where_they_are_needed() {
    let next = Next {
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
    let next = Next { lasts: false, ..next() };
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
