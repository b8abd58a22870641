//! Several calls in one turn, and native calls: which calls may be made together, in which order they are
//! reported, and that every call is answered exactly once.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::conversation::{Conversation, Native, Role};
use super::effect::Effect;
use super::event::{CallId, Decided, Decision, Event, EventKind, Reply, SaidCall, ToolFault, ToolResult, ToolReturned};
use super::outcome::Termination;
use super::state::{Phase, State};
use super::step::step;
use super::tests::{at, play, program, started};
use loopctl_lang::program::Program;

fn native(properties: &Value) -> std::sync::Arc<Program> {
    let mut all = json!({ "dialect": "tool_calls" });
    for (name, value) in properties.as_object().unwrap() {
        all[name] = value.clone();
    }
    program(&all)
}

fn calls(calls: &[(&str, Value)]) -> EventKind {
    let said = |(place, (name, input)): (usize, &(&str, Value))| SaidCall {
        id: format!("id{place}"),
        name: (*name).to_owned(),
        arguments: input.to_string(),
    };
    let calls = calls.iter().enumerate().map(said).collect();
    EventKind::ModelReplied(Reply { text: "t".to_owned(), calls, ..Reply::default() })
}

fn returned(index: u32, result: ToolResult) -> EventKind {
    EventKind::ToolReturned(ToolReturned {
        attempts: Vec::new(),
        waited_ms: 0,
        call: CallId { iteration: 1, index },
        result,
        duration_ms: 1,
        tokens: None,
        cost_usd: None,
        estimated: false,
        at_most: false,
        run_id: None,
    })
}

fn look(at: &str) -> (&'static str, Value) {
    ("look", json!({ "at": at }))
}

/// The messages after the last one of the model: the call that each answers, and its text.
fn messages_to_model(conversation: &Conversation) -> Vec<(Option<String>, String)> {
    let last = conversation.messages.iter().rposition(|message| message.role == Role::Assistant).unwrap();
    let id = |native: Option<&Native>| match native {
        Some(Native::Answers { id, .. }) => Some(id.clone()),
        _ => None,
    };
    conversation.messages[last + 1..]
        .iter()
        .map(|message| (id(message.native.as_deref()), message.text.to_string()))
        .collect()
}

fn observations(state: &State) -> Vec<(String, bool, String)> {
    let entry = |entry: &super::state::StoredEntry| {
        let observation = entry.observation.value();
        let text = observation.as_str().map_or_else(|| observation.to_string(), str::to_owned);
        (entry.action.as_deref().unwrap_or_default().to_owned(), entry.success, text)
    };
    state.entries().iter().map(entry).collect()
}

#[test]
fn observations_keep_the_order_of_the_calls_and_a_failed_one_touches_no_other() {
    let program = native(&json!({}));
    let fault = ToolFault { class: "http 503".to_owned(), detail: "all of it".to_owned(), ..ToolFault::default() };
    let state = play(
        &program,
        vec![
            (0, started()),
            (1, calls(&[look("a"), ("nothing", json!({})), look("b"), ("look", json!({})), look("c")])),
            (2, returned(4, ToolResult::Ok(json!("C")))),
            (3, returned(2, ToolResult::Failed(fault))),
            (4, returned(0, ToolResult::Ok(json!("A")))),
        ],
    );
    let messages = messages_to_model(&state.as_loop().unwrap().conversation);
    let ids: Vec<_> = messages.iter().map(|(id, _)| id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["id0", "id1", "id2", "id3", "id4"]);
    assert_eq!((messages[0].1.as_str(), messages[2].1.as_str(), messages[4].1.as_str()), ("A", "Error: http 503", "C"));
    assert!(messages[1].1.contains("no tool named") && messages[3].1.contains("at"), "{messages:?}");
    let successes: Vec<bool> = state.entries().iter().map(|entry| entry.success).collect();
    assert_eq!(successes, [true, false, false, false, true]);
    assert!(state.entries().iter().all(|entry| entry.iteration == 1));
    assert_eq!(state.entries().iter().filter(|entry| entry.usage.is_some()).count(), 1);
}

#[test]
fn a_crash_in_the_middle_repeats_only_what_was_not_finished() {
    let program = native(&json!({}));
    let mut state = play(
        &program,
        vec![
            (0, started()),
            (1, calls(&[look("a"), look("b"), ("send", json!({})), look("c")])),
            (2, returned(1, ToolResult::Ok(json!("B")))),
        ],
    );
    let effects = step(&program, &mut state, at(3, EventKind::Resumed)).unwrap();
    let ids = |indexes: &[u32]| -> Vec<Effect> {
        indexes.iter().map(|index| Effect::CallTool(CallId { iteration: 1, index: *index })).collect()
    };
    assert_eq!(effects, ids(&[0, 3]));
    step(&program, &mut state, at(4, returned(0, ToolResult::Ok(json!("A"))))).unwrap();
    step(&program, &mut state, at(5, returned(3, ToolResult::Ok(json!("C"))))).unwrap();
    let Phase::Paused { pause, .. } = &state.phase else { panic!("{:?}", state.phase) };
    assert_eq!(
        (pause.question.kind, pause.calls.as_slice()),
        (Termination::Uncertain, &[CallId { iteration: 1, index: 2 }][..])
    );
}

#[test]
fn more_calls_than_are_allowed_are_not_made_at_all() {
    let program = native(&json!({ "max_tool_calls_per_turn": 2 }));
    let state = play(&program, vec![(0, started()), (1, calls(&[look("a"), look("b"), look("c")]))]);
    assert!(matches!(state.phase, Phase::Thinking { .. }), "{:?}", state.phase);
    assert_eq!(state.counters.tool_calls_made, 0);
    let messages = messages_to_model(&state.as_loop().unwrap().conversation);
    assert_eq!(messages.len(), 2, "what stays in the history is answered: {messages:?}");
    assert!(messages[0].1.contains("3 calls") && messages[0].1.contains("at most 2"), "{messages:?}");
    let state = play(&program, vec![(0, started()), (1, calls(&[look("a"), look("b")]))]);
    assert_eq!(state.counters.tool_calls_made, 2);
}

#[test]
fn an_ending_beside_other_calls_is_taken_only_when_their_results_could_not_matter() {
    let complete = ("__complete__", json!({ "answer": "x" }));
    let store = ("__store_memory__", json!({ "key": "k", "value": 1 }));
    let progress = ("__log_progress__", json!({ "message": "m" }));
    let recall = ("__retrieve_memory__", json!({}));
    let program = native(&json!({}));
    let once = |said: &[(&str, Value)]| play(&program, vec![(0, started()), (1, calls(said))]);
    let state = once(&[complete.clone(), store.clone(), progress]);
    assert!(matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::Complete));
    assert_eq!(state.entries().len(), 3);
    assert_eq!(state.as_loop().unwrap().memory.len(), 1);
    for said in [
        vec![complete.clone(), recall],
        vec![complete.clone(), complete.clone()],
        vec![complete.clone(), ("__store_memory__", json!({ "key": "" , "value": 1 }))],
    ] {
        let state = once(&said);
        assert!(matches!(state.phase, Phase::Thinking { .. }), "{said:?}: {:?}", state.phase);
        assert!(!state.entries()[0].success, "{said:?}");
        assert_eq!(messages_to_model(&state.as_loop().unwrap().conversation).len(), 2);
    }
    let state = once(&[look("a"), complete]);
    assert_eq!(state.counters.tool_calls_made, 1, "the other call is made");
}

#[test]
fn questions_are_asked_one_after_the_other_and_no_tool_runs_beside_them() {
    let ask = |question: &str| ("__pause_for_human__", json!({ "question": question }));
    let program = native(&json!({}));
    let said = calls(&[
        ("send", json!({})),
        ask("One?"),
        ("__store_memory__", json!({ "key": "k", "value": 1 })),
        ask("Two?"),
    ]);
    let mut state = play(&program, vec![(0, started()), (1, said)]);
    for (number, (question, answer)) in [("One?", "1"), ("Two?", "2")].into_iter().enumerate() {
        let Phase::Paused { pause, .. } = &state.phase else { panic!("{:?}", state.phase) };
        assert_eq!((pause.question.text.as_str(), pause.calls.len()), (question, 1));
        let decision = Decision::Answer(answer.to_owned());
        let decided = Decided { pause: Some(pause.number), ..Decided::from(decision) };
        step(&program, &mut state, at(2 + number, EventKind::Human(decided))).unwrap();
    }
    assert_eq!(state.counters.tool_calls_made, 0);
    let messages: Vec<String> =
        messages_to_model(&state.as_loop().unwrap().conversation).into_iter().map(|(_, text)| text).collect();
    assert!(messages[0].contains("asks a human"), "{messages:?}");
    assert_eq!(messages[1..], ["1", "Stored.", "2"]);
    assert_eq!(observations(&state)[1], ("__pause_for_human__".to_owned(), true, "1".to_owned()));
}

#[test]
fn calls_that_wait_for_approval_are_decided_each_on_its_own() {
    let program = native(&json!({}));
    let said = calls(&[look("a"), ("act", json!({ "n": 1 })), ("act", json!({ "n": 2 }))]);
    let mut state = play(&program, vec![(0, started()), (1, said), (2, returned(0, ToolResult::Ok(json!("A"))))]);
    let decide = |index, decision| {
        EventKind::Human(Decided { call: Some(CallId { iteration: 1, index }), ..Decided::from(decision) })
    };
    step(&program, &mut state, at(3, decide(2, Decision::Deny(Some("no".to_owned()))))).unwrap();
    let effects = step(&program, &mut state, at(4, decide(1, Decision::Approve))).unwrap();
    assert_eq!(effects, [Effect::CallTool(CallId { iteration: 1, index: 1 })]);
    step(&program, &mut state, at(5, returned(1, ToolResult::Ok(json!("did"))))).unwrap();
    let messages: Vec<String> =
        messages_to_model(&state.as_loop().unwrap().conversation).into_iter().map(|(_, text)| text).collect();
    assert_eq!(messages[..2], ["A", "did"]);
    assert!(messages[2].contains("a human did not allow this call: no"), "{messages:?}");
}

#[test]
fn a_refused_answer_in_text_is_reported_in_a_message_of_the_engine() {
    let program = native(&json!({ "answer_schema": { "type": "object" } }));
    let text = Reply { text: "done".to_owned(), ..Reply::default() };
    let state = play(&program, vec![(0, started()), (1, EventKind::ModelReplied(text))]);
    let messages = messages_to_model(&state.as_loop().unwrap().conversation);
    assert_eq!((messages.len(), messages[0].0.as_ref()), (1, None));
    assert!(messages[0].1.contains("must be an object"), "{messages:?}");
}

fn any_reply() -> impl Strategy<Value = EventKind> {
    let call = prop_oneof![
        4 => (0..3_u32).prop_map(|at| ("look".to_owned(), json!({ "at": at.to_string() }).to_string())),
        2 => Just(("act".to_owned(), json!({ "n": 1 }).to_string())),
        2 => Just(("send".to_owned(), "{}".to_owned())),
        1 => Just(("__pause_for_human__".to_owned(), json!({ "question": "q" }).to_string())),
        1 => Just(("__store_memory__".to_owned(), json!({ "key": "k", "value": 1 }).to_string())),
        1 => Just(("__complete__".to_owned(), json!({ "answer": 1 }).to_string())),
        1 => (".{0,5}", ".{0,9}"),
    ];
    let call = ("(|a|b)", call).prop_map(|(id, (name, arguments))| SaidCall { id, name, arguments });
    ("(|t|FINAL_ANSWER: a|.{0,9})", proptest::collection::vec(call, 0..5))
        .prop_map(|(text, calls)| EventKind::ModelReplied(Reply { text, calls, ..Reply::default() }))
}

fn any_event() -> impl Strategy<Value = EventKind> {
    let decision = prop_oneof![
        Just(Decision::Answer("yes".to_owned())),
        Just(Decision::Approve),
        Just(Decision::Deny(None)),
        Just(Decision::Happened(json!("did"))),
        Just(Decision::Failed("no".to_owned())),
        Just(Decision::Retry),
    ];
    let result = prop_oneof![
        Just(ToolResult::Ok(json!({ "rows": 1 }))),
        Just(ToolResult::Failed(ToolFault { class: "http 503".to_owned(), ..ToolFault::default() })),
    ];
    prop_oneof![
        6 => any_reply(),
        8 => (1..6_u32, 0..5_u32, result).prop_map(|(iteration, index, result)| EventKind::ToolReturned(ToolReturned { attempts: Vec::new(), waited_ms: 0,
            call: CallId { iteration, index }, result, duration_ms: 1, tokens: None, cost_usd: None, estimated: false, at_most: false, run_id: None
        })),
        4 => decision.prop_map(|decision| EventKind::Human(Decided::from(decision))),
        2 => Just(EventKind::Resumed),
        1 => Just(EventKind::DeadlinePassed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_answered_once_and_in_order_whatever_comes(
        happened in proptest::collection::vec(any_event(), 0..50),
        dialect in prop_oneof![Just("tool_calls"), Just("final_answer")],
        stuck in prop_oneof![Just("fail"), Just("escalate"), Just("retry_with_hint")],
        most in 2..5_u32,
    ) {
        let program = program(&json!({
            "dialect": dialect, "on_limit": "answer", "max_tool_calls_per_turn": most,
            "history": { "context_tokens": 300 }, "on_stuck": { "iterations": 2, "action": stuck }
        }));
        let (mut live, mut journal) = (State::new(&program), Vec::new());
        for (number, what) in std::iter::once(started()).chain(happened).enumerate() {
            let event = at(number, what);
            let written = (serde_json::to_string(&event).unwrap(), event.kind.texts());
            if step(&program, &mut live, event).is_ok() {
                journal.push(written);
            }
            let open = !matches!(live.phase, Phase::Thinking { .. });
            sound(&live.as_loop().unwrap().conversation, open)?;
        }
        let mut folded = State::new(&program);
        for (text, texts) in &journal {
            let mut event: Event = serde_json::from_str(text).unwrap();
            event.kind.put_back(texts).unwrap();
            step(&program, &mut folded, event).unwrap();
        }
        prop_assert_eq!(&folded, &live);
    }
}

/// What providers require of a conversation: each call is answered by a message with its id, in the order of
/// the calls, right after the message that made them. Only the calls of the last message may be open.
fn sound(conversation: &Conversation, open: bool) -> Result<(), TestCaseError> {
    let mut awaited: Vec<&str> = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for message in &conversation.messages {
        bytes += message.size();
        match message.native.as_deref() {
            Some(Native::Answers { id, .. }) => {
                prop_assert_eq!(message.role, Role::Tool);
                prop_assert!(!awaited.is_empty(), "nothing was asked: {:?}", conversation.messages);
                prop_assert_eq!(awaited.remove(0), id);
            }
            _ => prop_assert!(awaited.is_empty(), "not answered: {:?}", conversation.messages),
        }
        for call in message.calls() {
            prop_assert!(!known.contains(&call.id.as_str()));
            prop_assert!(serde_json::from_str::<serde_json::Map<String, Value>>(&call.arguments).is_ok());
            known.push(&call.id);
            awaited.push(&call.id);
        }
    }
    prop_assert!(open || awaited.is_empty(), "not answered: {:?}", conversation.messages);
    prop_assert_eq!(bytes, conversation.bytes);
    Ok(())
}
