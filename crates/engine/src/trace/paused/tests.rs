//! What those read who are to decide: secrets hidden, and a token only where it belongs.

use serde_json::{Value, json};

use super::*;
use crate::event::CallId;
use crate::operation::{AskedFor, Call, Doubt, Progress};
use crate::outcome::Pause;
use crate::question::Question;
use crate::state::{Phase, Turn};
use crate::trace::tests_state;

fn waiting(kind: Termination, progress: Progress) -> State {
    let id = CallId { iteration: 2, index: 0 };
    let call =
        Call { progress, ..Call::new(id, "pay".to_owned(), json!({ "to": "Ada\u{202e}", "api_key": "k-123456" }), 0) };
    let pause = Pause {
        number: 3,
        question: Question { options: vec!["yes".to_owned()], ..Question::new(kind, "May it pay?") },
        calls: vec![id],
        forced: None,
        steps: Vec::new(),
        asks: None,
    };
    let turn = Turn { calls: vec![call], ..Turn::default() };
    tests_state::in_phase(Phase::Paused { pause: Box::new(pause), turn: Some(turn) })
}

fn shown(state: &State) -> Value {
    serde_json::to_value(PausedRun::of(state, &Redaction::default()).unwrap()).unwrap()
}

#[test]
fn a_waiting_call_is_shown_with_its_hash_its_dangers_and_the_decisions_that_it_takes() {
    let shown = shown(&waiting(Termination::Approval, Progress::Asks(AskedFor::Approval(Box::default()))));
    assert_eq!(
        (&shown["agent_run_id"], &shown["status"], &shown["loop"]),
        (&json!("run-1"), &json!("paused"), &json!("refund-check"))
    );
    let pause = &shown["pause"];
    assert_eq!(
        (&pause["number"], &pause["kind"], &pause["question"]),
        (&json!(3), &json!("approval"), &json!("May it pay?"))
    );
    assert!(pause.get("choices").is_none() && pause.get("answer").is_none(), "{pause}");
    let call = &pause["calls"][0];
    assert_eq!((&call["id"], &call["action"]), (&json!("2.0"), &json!("pay")));
    assert_eq!(call["action_input"], json!({ "to": "Ada\u{202e}", "api_key": "[hidden]" }));
    assert_eq!(call["choices"], json!(["approve", "deny", "edit"]));
    assert_eq!(call["hash"].as_str().unwrap().len(), 16);
    assert!(call["concerns"][0].as_str().unwrap().contains("1 character that nobody sees"), "{call}");
}

#[test]
fn a_question_is_answered_and_a_doubtful_call_is_settled() {
    let question = shown(&waiting(Termination::Human, Progress::Requested));
    assert_eq!((&question["pause"]["choices"], &question["pause"]["options"]), (&json!(["answer"]), &json!(["yes"])));
    assert!(question["pause"].get("calls").is_none());
    let doubt = shown(&waiting(Termination::Uncertain, Progress::Uncertain(Doubt::Stopped)));
    assert_eq!(doubt["pause"]["calls"][0]["choices"], json!(["happened", "fail", "retry"]));
    assert_eq!(PausedRun::of(&tests_state::state(), &Redaction::default()), None, "it does not wait");
}

#[test]
fn a_token_is_in_the_json_and_in_no_other_text() {
    let (url, token) = ("/agents/r/answer".to_owned(), "loopctl-answer-s3cret".to_owned());
    let link = AnswerLink { url, token, expires_at: "2026-02-01T10:30:00.000Z".to_owned() };
    let mut paused = PausedRun::of(&waiting(Termination::Human, Progress::Requested), &Redaction::default()).unwrap();
    paused.pause.answer = Some(link);
    assert!(!format!("{paused:?}").contains("s3cret"), "{paused:?}");
    assert!(serde_json::to_string(&paused).unwrap().contains("s3cret"));
}
