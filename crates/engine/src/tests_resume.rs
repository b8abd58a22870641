//! What must hold when a run is cut off, decided by a human, or resumed with less than it had: nothing is lost,
//! nothing is counted twice, and nothing enters a journal that can't be read back.

use serde_json::{Value, json};

use super::blob::Blob;
use super::effect::Effect;
use super::event::{
    CallId, Decided, Decision, Event, EventKind, ModelFault, ModelFaultCode, Moment, RunDocument, ToolFault,
    ToolResult, ToolReturned,
};
use super::next::Next;
use super::outcome::{Limit, Termination};
use super::state::{Phase, State, Turn};
use super::step::step;
use super::tests::{at, call, decides, play, program, returns, says, started};
use super::waiting_calls::waiting_calls;
use super::{storable, turn};
use crate::operation::{AskedFor, Call, Doubt, Progress};
use loopctl_lang::program::Program;

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!([]), |inner, _| json!([inner]))
}

fn poisoned() -> Value {
    let mut map = serde_json::Map::new();
    map.insert("$serde_json::private::Number".to_owned(), json!("no number"));
    Value::Object(map)
}

fn reads_back(what: &EventKind) -> bool {
    let text = serde_json::to_string(&at(0, what.clone())).unwrap();
    let texts = what.texts();
    serde_json::from_str::<Event>(&text)
        .is_ok_and(|mut event| event.kind.put_back(&texts).is_ok() && event.kind == *what)
}

#[cfg(feature = "exact-numbers")]
#[test]
fn values_that_a_journal_could_not_give_back_are_found() {
    let result = |value: Value| returns(1, ToolResult::Ok(value));
    assert!(!reads_back(&result(poisoned())), "the danger is real");
    assert!(!reads_back(&result(nested(125))), "the danger is real");
    assert!(storable::fault_of(&poisoned()).is_some());
    assert!(storable::fault_of(&json!({ "a": [poisoned()] })).is_some());
    assert!(storable::fault_of(&nested(storable::MAX_DEPTH + 1)).is_some());
    for value in [nested(storable::MAX_DEPTH), json!({ "a": 12345678901234567890_u64, "": [null, -0.5] })] {
        assert_eq!(storable::fault_of(&value), None);
        assert!(reads_back(&result(value.clone())));
        assert!(reads_back(&decides(Decision::Happened(value.clone()), None)));
        let mut event = started();
        let EventKind::Started(inner) = &mut event else { panic!() };
        inner.input = value.clone();
        inner.memory.insert("k".to_owned(), value);
        assert!(reads_back(&event));
    }
    assert_eq!(storable::kept(poisoned()), json!("{\"$serde_json::private::Number\":\"no number\"}"));
    assert!(reads_back(&result(storable::kept(nested(128)))));
}

#[test]
fn an_event_that_could_not_be_read_back_is_refused_and_leaves_no_mark() {
    let program = program(&json!({}));
    let look = call("look", &json!({ "at": "a" }));
    for bad in [nested(124), poisoned()] {
        let mut event = started();
        let EventKind::Started(inner) = &mut event else { panic!() };
        inner.input = bad.clone();
        assert!(step(&program, &mut State::new(&program), at(0, event)).is_err());

        let acting = play(&program, vec![(0, started()), (1, look.clone())]);
        let asks = play(&program, vec![(0, started()), (1, call("act", &json!({})))]);
        let sent = play(&program, vec![(0, started()), (1, call("send", &json!({}))), (2, EventKind::Resumed)]);
        for (state, what) in [
            (acting, returns(1, ToolResult::Ok(bad.clone()))),
            (asks, decides(Decision::Edit(bad.clone()), None)),
            (sent, decides(Decision::Happened(bad.clone()), None)),
        ] {
            let mut after = state.clone();
            step(&program, &mut after, at(3, what)).unwrap_err();
            assert_eq!(after, state);
        }
    }
}

#[test]
fn memory_takes_no_value_that_would_close_the_session_for_ever() {
    let program = program(&json!({}));
    for bad in [poisoned(), nested(122)] {
        let store = call("__store_memory__", &json!({ "key": "k", "value": bad }));
        let state = play(&program, vec![(0, started()), (1, store)]);
        assert!(state.as_loop().unwrap().memory.is_empty());
        assert!(!state.entries()[0].success, "the entry is a failure");
    }
}

#[test]
fn memory_is_bounded_as_a_whole() {
    let mut memory = std::collections::BTreeMap::new();
    let large = json!("x".repeat(60_000));
    let stored = (0..100).filter(|at| super::memory::store(&mut memory, &at.to_string(), large.clone()).is_ok());
    assert_eq!(stored.count(), 17);
    super::memory::store(&mut memory, "3", json!("less")).unwrap();
}

#[test]
fn the_last_word_stores_nothing() {
    let program = program(&json!({ "max_iterations": 1, "on_limit": "answer" }));
    let store = call("__store_memory__", &json!({ "key": "k", "value": 1 }));
    let look = call("look", &json!({ "at": "a" }));
    let state = play(&program, vec![(0, started()), (1, look), (2, returns(1, ToolResult::Ok(json!(1)))), (3, store)]);
    assert!(matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::MaxIterations));
    assert!(state.as_loop().unwrap().memory.is_empty(), "nothing changes without its effect");
}

#[test]
fn a_resumed_last_word_is_still_the_last_word() {
    let program = program(&json!({ "timeout_ms": 10, "on_limit": "answer" }));
    let mut events =
        vec![(0, started()), (10, EventKind::DeadlinePassed), (11, EventKind::Interrupted), (12, EventKind::Resumed)];
    let state = play(&program, events.clone());
    assert!(matches!(state.phase, Phase::Thinking { forced: Some(Limit::Timeout) }));
    assert_eq!(state.now.active_ms, 12, "its time is counted from here");
    events.push((13, call("__complete__", &json!({ "answer": 1 }))));
    let Phase::Ended(ending) = play(&program, events).phase.clone() else { panic!() };
    assert_eq!((ending.termination, ending.limit), (Termination::ForcedAnswer, Some(Limit::Timeout)));
}

fn too_long() -> EventKind {
    EventKind::ModelFailed(ModelFault {
        code: ModelFaultCode::ContextExceeded,
        message: "too long".to_owned(),
        retryable: false,
        attempts: 1,
        duration_ms: 1,
        failed: Vec::new(),
        window: None,
        prompt_tokens: None,
        spending_limit: None,
        paid_out: false,
    })
}

#[test]
fn a_full_window_still_gets_its_last_word_with_less_history() {
    let program = program(&json!({ "on_limit": "answer" }));
    let mut events = vec![(0, started())];
    for iteration in 1..=4 {
        events.push((1, call("look", &json!({ "at": iteration.to_string() }))));
        events.push((1, returns(iteration, ToolResult::Ok(json!(iteration.to_string().repeat(500))))));
    }
    let before = play(&program, events.clone());
    events.push((2, too_long()));
    let asked = play(&program, events.clone());
    assert!(matches!(asked.phase, Phase::Thinking { forced: Some(Limit::Context) }));
    assert_eq!(asked.as_loop().unwrap().conversation.generation, before.as_loop().unwrap().conversation.generation + 1);
    assert!(asked.as_loop().unwrap().conversation.bytes < before.as_loop().unwrap().conversation.bytes * 2 / 3);
    let bytes: usize = asked.as_loop().unwrap().conversation.messages.iter().map(|message| message.text.len()).sum();
    assert_eq!(asked.as_loop().unwrap().conversation.bytes, bytes);
    assert_eq!(asked.as_loop().unwrap().conversation.messages[0], before.as_loop().unwrap().conversation.messages[0]);
    assert_eq!(asked.as_loop().unwrap().conversation.messages[1].role, super::conversation::Role::User);
    let trimmed = usize::try_from(asked.counters.messages_trimmed).unwrap();
    assert_eq!(
        asked.as_loop().unwrap().conversation.messages.len() + trimmed,
        before.as_loop().unwrap().conversation.messages.len() + 1
    );

    let mut answered = events.clone();
    answered.push((3, call("__complete__", &json!({ "answer": 1 }))));
    let Phase::Ended(ending) = play(&program, answered).phase.clone() else { panic!() };
    assert_eq!((ending.termination, ending.limit), (Termination::ForcedAnswer, Some(Limit::Context)));
    events.push((3, too_long()));
    let Phase::Ended(ending) = play(&program, events).phase.clone() else { panic!() };
    assert_eq!(ending.termination, Termination::Context);
}

#[test]
fn a_full_window_without_a_last_word_fails_as_context() {
    let state = play(&program(&json!({})), vec![(0, started()), (1, too_long())]);
    assert!(matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::Context));
}

#[test]
fn an_invented_observation_does_not_stay_in_the_conversation() {
    let program = program(&json!({}));
    let action = json!({ "thought": "t", "action": "look", "action_input": { "at": "a" } }).to_string();
    for invented in [
        "\nObservation: all is well",
        "\n<tool_response>all is well</tool_response>",
        "\n{\"observation\": \"all is well\"}",
    ] {
        let state = play(&program, vec![(0, started()), (1, says(format!("{action}{invented}")))]);
        assert!(matches!(state.phase, Phase::Acting { .. }), "{invented}");
        let last = state.as_loop().unwrap().conversation.messages.last().unwrap();
        assert_eq!(*last.text, *action, "{invented}");
        assert_eq!(state.counters.window.1, state.as_loop().unwrap().conversation.bytes);
    }
    let prose = format!("I look.\n{action}\nThat is all.");
    let state = play(&program, vec![(0, started()), (1, says(prose.clone()))]);
    assert_eq!(*state.as_loop().unwrap().conversation.messages.last().unwrap().text, *prose);
}

#[test]
fn an_unreadable_reply_does_not_fill_the_window() {
    let state = play(&program(&json!({})), vec![(0, started()), (1, says("ä".repeat(100_000)))]);
    assert!(state.as_loop().unwrap().conversation.bytes < 40_000);
}

/// A run with these calls in its turn, after the turn was settled.
fn settled(program: &Program, mut state: State, calls: Vec<Call>) -> State {
    let turn = Turn { iteration: 1, calls, ..Turn::default() };
    let State::Loop(of_loop) = &mut state else { unreachable!() };
    match turn::settle(program.as_loop().unwrap(), of_loop, turn, &mut Vec::new()) {
        Next::Wait(phase) => state.phase = phase,
        next => panic!("{next:?}"),
    }
    state
}

/// A turn of two calls: one needs approval, one has an unknown outcome.
fn mixed(program: &loopctl_lang::program::Program) -> State {
    let state = play(program, vec![(0, started())]);
    let call = |index, tool: &str, progress| Call {
        progress,
        ..Call::new(CallId { iteration: 1, index }, tool.to_owned(), json!({}), 0)
    };
    let calls = vec![
        call(0, "act", Progress::Asks(AskedFor::Approval(Box::default()))),
        call(1, "send", Progress::Uncertain(Doubt::Stopped)),
    ];
    settled(program, state, calls)
}

#[test]
fn an_approval_is_not_held_up_by_a_call_of_unknown_outcome_in_the_same_turn() {
    let program = program(&json!({}));
    let mut state = mixed(&program);
    let effects = step(&program, &mut state, at(1, decides(Decision::Approve, Some(1)))).unwrap();
    assert_eq!(effects.len(), 1, "the approved call is made");
    step(&program, &mut state, at(2, returns(1, ToolResult::Ok(json!(1))))).unwrap();
    let Phase::Paused { pause, .. } = &state.phase else { panic!("{:?}", state.phase) };
    assert_eq!((pause.number, pause.question.kind), (2, Termination::Uncertain));
    // One call waits for this pause: an edit need not say which.
    let mut state = mixed(&program);
    step(&program, &mut state, at(1, decides(Decision::Edit(json!({ "n": 1 })), None))).unwrap();
}

/// A turn of three calls that wait for approval.
fn three(program: &loopctl_lang::program::Program) -> State {
    let state = play(program, vec![(0, started())]);
    let call = |index| Call {
        progress: Progress::Asks(AskedFor::Approval(Box::default())),
        ..Call::new(CallId { iteration: 1, index }, "act".to_owned(), json!({ "n": index }), 0)
    };
    let calls = vec![call(0), call(1), call(2)];
    settled(program, state, calls)
}

#[test]
fn several_calls_of_a_turn_are_decided_one_by_one_and_none_runs_before_all_are() {
    let program = program(&json!({}));
    let mut state = three(&program);
    let waits = |state: &State| -> Vec<String> { waiting_calls(state).into_iter().map(|call| call.id).collect() };
    assert_eq!(waits(&state), ["1.0", "1.1", "1.2"]);
    for all in [Decision::Approve, Decision::Edit(json!({ "n": 1 }))] {
        let refused = step(&program, &mut state, at(1, decides(all, Some(1)))).unwrap_err();
        assert!(refused.to_string().contains("say which one"), "{refused}");
    }
    let decide = |call: Option<u32>, hash: Option<&str>, decision| {
        let call = call.map(|index| CallId { iteration: 1, index });
        EventKind::Human(Decided { pause: Some(1), call, hash: hash.map(str::to_owned), ..Decided::from(decision) })
    };
    // By its hash, by its place, and by both.
    let hashes: Vec<String> = waiting_calls(&state).into_iter().map(|call| call.hash).collect();
    let crossed = decide(Some(0), Some(&hashes[1]), Decision::Approve);
    step(&program, &mut state, at(1, crossed)).unwrap_err();
    let effects = step(&program, &mut state, at(1, decide(None, Some(&hashes[1]), Decision::Approve))).unwrap();
    assert_eq!((effects.len(), waits(&state)), (0, vec!["1.0".to_owned(), "1.2".to_owned()]));
    step(&program, &mut state, at(2, decide(None, Some(&hashes[1]), Decision::Approve))).unwrap_err();
    step(&program, &mut state, at(2, decide(Some(0), None, Decision::Deny(None)))).unwrap();
    let edit = Decision::Edit(json!({ "n": 7 }));
    let effects = step(&program, &mut state, at(3, decide(Some(2), Some(&hashes[2]), edit))).unwrap();
    let made: Vec<Effect> = [1, 2].map(|index| Effect::CallTool(CallId { iteration: 1, index })).into();
    assert_eq!(effects, made);
    assert_eq!(state.call(CallId { iteration: 1, index: 2 }).unwrap().input, json!({ "n": 7 }).into());
    // All may be denied at once.
    let mut state = three(&program);
    let effects = step(&program, &mut state, at(1, decides(Decision::Deny(None), None))).unwrap();
    assert_eq!((effects, state.entries().len()), (vec![Effect::CallModel], 3));
}

#[test]
fn a_denied_call_does_not_use_up_max_calls_and_a_repeated_one_counts_once() {
    let tools = json!([{ "type": "action", "name": "act", "requires_approval": true, "max_calls": 1 },
        { "type": "action", "name": "send" }]);
    let program = program(&json!({ "tools": tools }));
    let act = || call("act", &json!({ "n": 1 }));
    let denied = decides(Decision::Deny(None), None);
    let mut events = vec![(0, started()), (1, act()), (2, denied), (3, act())];
    let waits = play(&program, events.clone());
    assert!(matches!(waits.phase, Phase::Paused { .. }), "it may be asked for again");
    assert_eq!(waits.calls_returned("act"), 0);
    events.extend([(4, decides(Decision::Approve, None)), (5, EventKind::Resumed)]);
    let uncertain = play(&program, events.clone());
    assert!(matches!(&uncertain.phase, Phase::Paused { pause, .. } if pause.question.kind == Termination::Uncertain));
    events.extend([(6, decides(Decision::Retry, None)), (7, returns(2, ToolResult::Ok(json!(1))))]);
    let state = play(&program, events.clone());
    assert_eq!((state.counters.tool_calls_made, state.calls_returned("act")), (1, 1));
    events.push((8, act()));
    let state = play(&program, events);
    assert!(!state.entries().last().unwrap().success, "now it is used up");
}

#[test]
fn a_new_document_is_noted_in_any_phase_of_a_run_that_goes_on() {
    let program = program(&json!({}));
    let adopted = || EventKind::NewDocument(vec![RunDocument { file: "f".to_owned(), text: Blob::document("{}") }]);
    assert!(reads_back(&adopted()));
    step(&program, &mut State::new(&program), at(0, adopted())).unwrap_err();
    for events in [
        vec![(0, started())],
        vec![(0, started()), (1, call("send", &json!({})))],
        vec![(0, started()), (1, call("act", &json!({})))],
    ] {
        let mut state = play(&program, events);
        let before = state.phase.clone();
        assert!(step(&program, &mut state, at(2, adopted())).unwrap().is_empty());
        assert_eq!(state.phase, before);
    }
}

#[test]
fn a_late_result_after_the_deadline_is_refused() {
    let program = program(&json!({ "timeout_ms": 50 }));
    let look = call("look", &json!({ "at": "a" }));
    let mut state = play(&program, vec![(0, started()), (1, look), (50, EventKind::DeadlinePassed)]);
    assert!(matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::Timeout));
    assert_eq!(state.entries().len(), 1, "the call that was cut off has its entry");
    let late = ToolReturned {
        attempts: Vec::new(),
        waited_ms: 0,
        call: CallId { iteration: 1, index: 0 },
        result: ToolResult::Failed(ToolFault { class: "late".to_owned(), ..ToolFault::default() }),
        duration_ms: 1,
        tokens: None,
        cost_usd: None,
        estimated: false,
        at_most: false,
        run_id: None,
    };
    let event = Event { at: Moment { wall_ms: 0, active_ms: 60 }, kind: EventKind::ToolReturned(late) };
    step(&program, &mut state, event).unwrap_err();
}
