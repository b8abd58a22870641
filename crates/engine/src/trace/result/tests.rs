//! The shape of a result: each ending has its fields and no others.

use super::*;
use crate::event::CallId;
use crate::event::{ModelFacts, Tokens, ToolFault, ToolResult};
use crate::operation::{AskedFor, Call, Progress};
use crate::state::{StoredEntry, Turn};
use crate::stuck::StuckPattern;
use crate::trace::tests_state::{entry, in_phase, of_loop, state};
use serde_json::json;

const SHOWN: Shown<'static> = Shown { result_key: None, trace: true, driven: false, is_quarantined: false };

fn shown(state: &State) -> Value {
    serde_json::to_value(result(SHOWN, state, &Redaction::default())).unwrap()
}

fn ended(ending: Ending) -> State {
    in_phase(Phase::Ended(Box::new(ending)))
}

fn ending(status: Status, termination: Termination) -> Ending {
    Ending {
        status,
        termination,
        answer: None,
        limit: None,
        stuck: None,
        error: None,
        cancelled_by: None,
        at_ms: 1_769_941_805_000,
    }
}

#[test]
fn a_completed_run_has_its_answer_and_all_counts() {
    let answer = Answer { answer: json!({"refund": true}), confidence: 0.9.to_string().parse().ok(), summary: None };
    let mut state = ended(Ending { answer: Some(answer), ..ending(Status::Completed, Termination::Complete) });
    of_loop(&mut state).entries = vec![entry(1)];
    assert_eq!(
        shown(&state),
        json!({
            "run_id": "run-1", "status": "completed", "termination": "complete",
            "result": {"answer": {"refund": true}, "confidence": 0.9},
            "iterations": 1, "usage": {"input_tokens": 100, "output_tokens": 20},
            "metadata": {"rounds": 1, "tool_calls_made": 1, "invalid_replies": 0, "truncated_responses": 0,
                "truncated_observations": 0, "messages_trimmed": 0, "model_retries": 0},
            "started_at": "2026-02-01T10:30:00.000Z", "finished_at": "2026-02-01T10:30:05.000Z",
            "trace": [{"iteration": 1, "timestamp": "2026-02-01T10:30:01.000Z",
                "called_at": "2026-02-01T10:30:01.000Z", "thought": "look first",
                "action": "lookup_ticket", "action_input": {"ticket_id": "TK-1"},
                "observation": {"status": "open"}, "success": true, "duration_ms": 312,
                "usage": {"input_tokens": 100, "output_tokens": 20}}]
        })
    );
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_keep_their_digits() {
    let answer = Answer {
        answer: serde_json::from_str("[12345678901234567890123,9007199254740993,1.0,-0]").unwrap(),
        confidence: Some(1.into()),
        summary: None,
    };
    let state = ended(Ending { answer: Some(answer), ..ending(Status::Completed, Termination::Complete) });
    let line = serde_json::to_string(&result(SHOWN, &state, &Redaction::default())).unwrap();
    assert!(line.contains("[12345678901234567890123,9007199254740993,1.0,-0]"), "{line}");
}

#[test]
fn a_failed_run_says_why_and_keeps_what_was_found() {
    let stuck = Stuck { pattern: StuckPattern::SameAction, iterations: (2, 4), detail: "3 times the same".to_owned() };
    let error =
        RunError { code: "stuck".to_owned(), message: "it went in circles".to_owned(), retryable: false, step: None };
    let mut state =
        ended(Ending { stuck: Some(stuck), error: Some(error), ..ending(Status::Failed, Termination::Stuck) });
    of_loop(&mut state).entries = vec![entry(1)];
    of_loop(&mut state).memory.insert("db_password".to_owned(), json!("x"));
    of_loop(&mut state).memory.insert("found".to_owned(), json!([1]));
    let shown = shown(&state);
    assert_eq!(shown["stuck"], json!({"pattern": "same_action", "iterations": [2, 4], "detail": "3 times the same"}));
    assert_eq!(shown["error"], json!({"code": "stuck", "message": "it went in circles", "retryable": false}));
    assert_eq!(shown["memory"], json!({"db_password": "[hidden]", "found": [1]}));
    assert_eq!(shown["last_thought"], "look first");
    assert!(shown.get("result").is_none() && shown.get("pause").is_none() && shown.get("limit").is_none());
}

#[test]
fn a_forced_answer_says_which_limit() {
    let answer = Answer { answer: json!("so far"), confidence: Some(1.into()), summary: Some("cut".to_owned()) };
    let state = ended(Ending {
        answer: Some(answer),
        limit: Some(Limit::Timeout),
        ..ending(Status::Completed, Termination::ForcedAnswer)
    });
    let shown = shown(&state);
    assert_eq!((&shown["termination"], &shown["limit"]), (&json!("forced_answer"), &json!("timeout")));
}

#[test]
fn a_paused_run_shows_the_calls_that_wait_with_secrets_hidden() {
    let call = |index| Call {
        progress: Progress::Asks(AskedFor::Approval(Box::default())),
        ..Call::new(CallId { iteration: 2, index }, "pay".to_owned(), json!({"amount": 12, "api_key": "k"}), 0)
    };
    let turn = Turn { iteration: 2, thought: "pay it".to_owned(), calls: vec![call(0), call(1)], ..Turn::default() };
    let pause = Pause {
        number: 1,
        question: Question::new(Termination::Approval, "May it pay?"),
        calls: vec![CallId { iteration: 2, index: 0 }],
        forced: None,
        steps: Vec::new(),
        until_ms: None,
        asks: None,
    };
    let state = in_phase(Phase::Paused { pause: Box::new(pause), turn: Some(turn) });
    let one = shown(&state);
    assert_eq!(
        one["pause"],
        json!({"number": 1, "kind": "approval", "question": "May it pay?",
            "call": {"id": "2.0", "iteration": 2, "index": 0, "action": "pay",
                "action_input": {"amount": 12, "api_key": "[hidden]"}, "hash": one["pause"]["call"]["hash"]}})
    );
    assert_eq!((&one["status"], &one["termination"]), (&json!("paused"), &json!("approval")));
    assert_eq!(one["last_thought"], "pay it");
    assert!(one.get("finished_at").is_none());
}

#[test]
fn a_question_is_not_shown_again_as_a_call() {
    let id = CallId { iteration: 1, index: 0 };
    let call = Call {
        progress: Progress::Requested,
        ..Call::new(id, "__pause_for_human__".to_owned(), json!({"question": "Which?"}), 0)
    };
    let pause = Pause {
        number: 1,
        question: Question {
            context: Some("two".to_owned()),
            options: vec!["A".to_owned()],
            ..Question::new(Termination::Human, "Which?")
        },
        calls: vec![id],
        forced: None,
        steps: Vec::new(),
        until_ms: None,
        asks: None,
    };
    let turn = Turn { iteration: 1, calls: vec![call], ..Turn::default() };
    let shown = shown(&in_phase(Phase::Paused { pause: Box::new(pause), turn: Some(turn) }));
    assert_eq!(
        shown["pause"],
        json!({"number": 1, "kind": "human", "question": "Which?", "context": "two", "options": ["A"]})
    );
}

#[test]
fn an_interrupted_run_is_cancelled_and_may_be_tried_again() {
    let mut state = in_phase(Phase::Thinking { forced: None });
    state.interrupted = true;
    let shown = shown(&state);
    assert_eq!((&shown["status"], &shown["termination"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(shown["error"]["retryable"], true);
    assert_eq!(shown["error"]["message"], "the run was stopped between two steps and can be resumed");
    assert!(shown.get("finished_at").is_none());
}

#[test]
fn a_run_that_was_stopped_at_once_says_what_was_under_way() {
    let call = |index, tool: &str, progress| Call {
        progress,
        ..Call::new(CallId { iteration: 1, index }, tool.to_owned(), json!({}), 0)
    };
    let done = Progress::Done { result: ToolResult::Ok(json!(1)), duration_ms: 1 };
    let turn = |calls| Turn { iteration: 1, calls, ..Turn::default() };
    for (calls, said) in [
        (vec![call(0, "look", done.clone()), call(1, "act", Progress::Requested)], "while it called act"),
        (vec![call(0, "look", done)], "between two steps"),
    ] {
        let mut state = in_phase(Phase::Acting { turn: turn(calls) });
        state.interrupted = true;
        let message = format!("the run was stopped {said} and can be resumed");
        assert_eq!(shown(&state)["error"]["message"], message);
    }
}

#[test]
fn the_trace_and_the_key_are_there_when_the_document_wants_them() {
    let bare = result(Shown::default(), &state(), &Redaction::default());
    assert!(bare.trace.is_none() && bare.result_key.is_none());
    let keyed = result(
        Shown { result_key: Some("check"), trace: true, driven: false, is_quarantined: false },
        &state(),
        &Redaction::default(),
    );
    assert!(keyed.trace.is_some() && keyed.result_key.as_deref() == Some("check"));
}

#[test]
fn an_unreadable_reply_has_no_action_and_its_fault_shows_the_operator_all_of_it() {
    let unread = StoredEntry { action: None, action_input: Value::Null.into(), success: false, ..entry(2) };
    let failed = StoredEntry {
        success: false,
        error: Some(Box::new(ToolFault {
            class: "http 503".to_owned(),
            detail: "GET https://h/?token=abc".to_owned(),
            ..ToolFault::default()
        })),
        ..entry(3)
    };
    let mut state = state();
    of_loop(&mut state).entries = vec![unread, failed];
    let shown = serde_json::to_value(entries(&state, false, &Redaction::default())).unwrap();
    assert!(shown[0].get("action").is_none() && shown[0].get("action_input").is_none());
    assert_eq!(shown[1]["error"], json!({"class": "http 503", "detail": "GET https://h/?token=[hidden]"}));
}

#[test]
fn a_cost_is_shown_only_when_the_price_is_known_and_an_estimate_says_so() {
    let mut state = state();
    assert!(shown(&state)["usage"].get("cost_usd").is_none());
    std::sync::Arc::make_mut(&mut state.header).model = ModelFacts {
        price: serde_json::from_value(json!({ "input": 0.1, "output": 0.2 })).unwrap(),
        ..ModelFacts::default()
    };
    state.counters.tokens = Tokens { input: 3, output: 0, ..Tokens::default() };
    state.counters.cost_usd = 3e-7;
    state.counters.estimated = true;
    assert_eq!(
        shown(&state)["usage"].to_string(),
        r#"{"input_tokens":3,"output_tokens":0,"cost_usd":3e-7,"estimated":true}"#
    );
    state.counters.unpriced = true;
    assert!(shown(&state)["usage"].get("cost_usd").is_none(), "a part of the cost is not the cost");
}
