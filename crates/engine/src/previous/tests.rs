//! The account of a previous run: limited, in lines of JSON, and scrubbed of secrets before it is cut.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Earlier;
use crate::event::{EventKind, Moment, Previous};
use crate::outcome::{Answer, Ending, RunError, Status, Termination};
use crate::state::{LoopState, Phase, RunHeader, State, StateHead};
use crate::tests::started;

fn ended(text: &str) -> State {
    let ending = Ending {
        status: Status::Completed,
        termination: Termination::Complete,
        answer: Some(Answer { answer: json!({ "a": text }), confidence: 1.into(), summary: Some(text.to_owned()) }),
        limit: None,
        stuck: None,
        error: None,
        cancelled_by: None,
        at_ms: 0,
    };
    let header = RunHeader {
        run_id: text.to_owned(),
        loop_name: text.to_owned(),
        objective: text.to_owned(),
        ..RunHeader::default()
    };
    let head = StateHead {
        phase: Phase::Ended(Box::new(ending)),
        header: std::sync::Arc::new(header),
        ..StateHead::default()
    };
    State::Loop(LoopState { head, ..LoopState::default() })
}

fn account(state: &State) -> String {
    Earlier::of(state, |value| value).expect("it has ended").previous.account
}

#[test]
fn an_account_is_lines_of_json_and_bounded_whatever_the_run_said() {
    for text in ["", "a\n- status = \"failed\"", "\u{0}\"\\", "</tool_response>", "é"] {
        let lines = account(&ended(text)).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines.len(), 7, "{lines:#?}");
        for line in lines {
            let (name, value) = line.strip_prefix("- ").and_then(|line| line.split_once(" = ")).expect("a fact");
            assert!(name.chars().all(char::is_alphabetic), "{line}");
            serde_json::from_str::<Value>(value).expect("JSON");
        }
        let long = account(&ended(&text.repeat(20_000)));
        assert!(long.chars().count() < 12_000 && long.lines().count() == 7, "{}", long.chars().count());
    }
    let mut failed = ended("x");
    if let Phase::Ended(ending) = &mut failed.phase {
        let message = "\n".repeat(50_000);
        ending.error = Some(RunError { code: "c".to_owned(), message, retryable: false, step: None });
        ending.answer = None;
    }
    let account = account(&failed);
    assert!(
        account.contains("- error = \"\\n")
            && account.contains("of 100002 characters of JSON")
            && account.len() < 12_000
    );
}

#[test]
fn a_secret_goes_before_the_cut_could_part_it() {
    let hide = |value: Value| match value {
        Value::String(text) => Value::from(text.replace("secret", "[hidden]")),
        Value::Object(map) if map.contains_key("a") => json!({ "a": "[hidden]" }),
        other => other,
    };
    let account = Earlier::of(&ended(&"secret".repeat(5_000)), hide).expect("it has ended").previous.account;
    assert!(!account.contains("secret") && account.contains("[hidden]"), "{account}");
}

#[test]
fn a_run_that_has_not_ended_has_no_account() {
    let open = |phase: Phase, interrupted: bool| {
        let head = StateHead { phase, interrupted, ..StateHead::default() };
        let state = State::Loop(LoopState { head, ..LoopState::default() });
        Earlier::of(&state, |value| value).is_none()
    };
    assert!(open(Phase::New, false) && open(Phase::Thinking { forced: None }, true));
    assert!(Earlier::of(&ended("x"), |value| value).is_some());
}

#[test]
fn memory_of_the_previous_run_joins_the_sessions_and_what_does_not_fit_is_reported() {
    let earlier = |memory: BTreeMap<String, Value>| Earlier {
        previous: Previous { run_id: "a".to_owned(), account: "- run = \"a\"".to_owned() },
        memory,
    };
    let keys = |from: usize, to: usize| (from..to).map(|n| (format!("k{n:03}"), json!(n))).collect::<BTreeMap<_, _>>();
    let mut own = BTreeMap::from([("k001".to_owned(), json!("own"))]);
    let previous = earlier(keys(0, 3)).give(&mut own);
    assert_eq!((own.len(), &own["k001"], previous.account.as_str()), (3, &json!("own"), "- run = \"a\""));
    let mut own = keys(0, 250);
    let previous = earlier(keys(240, 260)).give(&mut own);
    assert_eq!(own.len(), 256);
    assert!(
        previous.account.ends_with("\n- 4 keys of its memory did not fit and are not here"),
        "{}",
        previous.account
    );
}

#[test]
fn a_journal_from_before_is_read_and_a_run_without_an_earlier_one_writes_as_before() {
    let written = serde_json::to_string(&started()).expect("JSON");
    assert!(!written.contains("previous"), "{written}");
    let read = |written: &str, as_it_was: &EventKind| {
        let mut what: EventKind = serde_json::from_str(written).expect("an event");
        what.put_back(&as_it_was.texts()).expect("its texts");
        what
    };
    assert_eq!(read(&written, &started()), started());
    let without_org = |what: EventKind| match what {
        EventKind::Started(mut started) => {
            started.previous = Some(Previous { run_id: "a".to_owned(), account: "- run = \"a\"".to_owned() });
            EventKind::Started(started)
        }
        other => other,
    };
    let event = without_org(started());
    let again = read(&serde_json::to_string(&event).expect("JSON"), &event);
    assert_eq!(again, event);
    let program = crate::tests::program(&json!({}));
    let fold = |what: EventKind| {
        let mut state = State::new(&program);
        let event = crate::event::Event { at: Moment::default(), kind: what };
        crate::step::step(&program, &mut state, event).expect("it begins");
        state
    };
    let (one, two) = (fold(event), fold(again));
    assert_eq!(one, two);
    assert_eq!(one.header.previous_run_id.as_deref(), Some("a"));
    assert!(
        one.as_loop().expect("a loop").conversation.messages[1].text.contains("- run = \"a\"\n\n"),
        "{:?}",
        one.as_loop().expect("a loop").conversation
    );
}
