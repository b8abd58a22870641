//! Calls of one turn that ask a model, when there is a budget: they are made one after the other, so that they
//! do not exceed it together.

use std::sync::Arc;

use serde_json::{Value, json};

use super::effect::{Effect, Effects};
use super::event::{
    Allowance, CallId, Decided, Decision, EventKind, Reply, SaidCall, Tokens, ToolResult, ToolReturned,
};
use super::outcome::Termination;
use super::state::{Phase, State};
use super::step::step;
use super::tests::{at, started};
use crate::operation::Progress;
use loopctl_lang::compile::{Texts, compile};
use loopctl_lang::diagnostic::Source;
use loopctl_lang::program::Program;

/// A loop that may look, and ask a model by a tool with these fields.
fn asking(properties: &Value, fields: &Value) -> Arc<Program> {
    let mut fields = fields.clone();
    let approval = fields.as_object_mut().unwrap().remove("requires_approval") == Some(json!(true));
    let mut ask = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Say {{text}}" });
    let mut all = json!({ "mode": "react", "objective": "Find it.", "dialect": "tool_calls", "timeout_ms": 1_000 });
    for (object, more) in [(&mut ask, &fields), (&mut all, properties)] {
        for (name, value) in more.as_object().unwrap() {
            object[name] = value.clone();
        }
    }
    all["tools"] = json!([{ "type": "action", "name": "look" },
        { "type": "action", "name": "ask", "requires_approval": approval }]);
    let document = json!({ "type": "loop", "properties": all, "actions": [
        { "action_name": "look", "kind": "http", "description": "Looks.", "url": "https://x.example/", "http_method": "GET" },
        ask
    ] });
    let compiled = compile(&Texts::new(Source::new("loop.json", document.to_string())));
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

/// A turn of these calls.
fn turn(names: &[&str]) -> EventKind {
    let said = |(place, name): (usize, &&str)| {
        let input = if *name == "ask" { json!({ "text": place.to_string() }) } else { json!({}) };
        SaidCall { id: format!("id{place}"), name: (*name).to_owned(), arguments: input.to_string() }
    };
    let calls = names.iter().enumerate().map(said).collect();
    EventKind::ModelReplied(Reply { text: "t".to_owned(), calls, ..Reply::default() })
}

fn id(index: u32) -> CallId {
    CallId { iteration: 1, index }
}

fn paid(index: u32, input: u64) -> EventKind {
    EventKind::ToolReturned(ToolReturned {
        attempts: Vec::new(),
        waited_ms: 0,
        call: id(index),
        result: ToolResult::Ok(json!("said")),
        duration_ms: 1,
        tokens: Some(Tokens { input, output: 0, ..Tokens::default() }),
        cost_usd: None,
        estimated: false,
        at_most: false,
        run_id: None,
    })
}

fn asked(indexes: &[u32]) -> Effects {
    indexes.iter().map(|index| Effect::CallTool(id(*index))).collect()
}

/// The state after these events, and the effects of the last one.
fn play(program: &Program, happened: Vec<EventKind>) -> (State, Effects) {
    let (mut state, mut effects) = (State::new(program), Effects::new());
    for (number, what) in happened.into_iter().enumerate() {
        effects = step(program, &mut state, at(number, what)).unwrap();
    }
    (state, effects)
}

/// The error class of each call; empty for a call that succeeded.
fn error_classes(state: &State) -> Vec<String> {
    let class =
        |entry: &super::state::StoredEntry| entry.error.as_ref().map_or_else(String::new, |fault| fault.class.clone());
    state.entries().iter().map(class).collect()
}

const BUDGET: u64 = 100_000;

fn budget() -> Value {
    json!({ "budget": { "tokens": BUDGET } })
}

#[test]
fn calls_that_ask_a_model_are_made_one_after_the_other_until_the_budget_is_spent() {
    let again = json!({ "on_uncertain": "retry" });
    let bound = || {
        let mut began = started();
        let EventKind::Started(inner) = &mut began else { panic!() };
        inner.bound = Allowance { tokens: Some(BUDGET), cost_usd: None };
        began
    };
    let free = asking(&json!({}), &again);
    for (program, began) in [(asking(&budget(), &again), started()), (Arc::clone(&free), bound())] {
        let (mut state, effects) = play(&program, vec![began, turn(&["ask", "look", "ask", "ask", "ask"])]);
        assert_eq!((effects, state.counters.tool_calls_made), (asked(&[0, 1]), 2));
        step(&program, &mut state, at(2, paid(2, 1))).unwrap_err();
        // A held call stays held when the run is resumed.
        assert_eq!(step(&program, &mut state, at(2, EventKind::Resumed)).unwrap(), asked(&[0, 1]));
        assert_eq!(step(&program, &mut state, at(3, paid(1, 0))).unwrap(), []);
        assert_eq!(step(&program, &mut state, at(4, paid(0, BUDGET / 2))).unwrap(), asked(&[2]));
        assert_eq!(step(&program, &mut state, at(5, EventKind::Resumed)).unwrap(), asked(&[2]));
        step(&program, &mut state, at(6, paid(2, BUDGET / 2))).unwrap();
        let spent = "not called: the run's budget is spent";
        assert_eq!(error_classes(&state), ["", "", "", spent, spent]);
        assert_eq!((state.counters.tool_calls_made, state.counters.calls["ask"]), (3, 2));
        assert!(matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::Budget));
    }
    // Without a budget, nothing is held.
    let (_, effects) = play(&free, vec![started(), turn(&["ask", "look", "ask", "ask"])]);
    assert_eq!(effects, asked(&[0, 1, 2, 3]));
}

#[test]
fn calls_that_are_held_wait_until_a_human_has_said_what_came_of_the_one_before() {
    let program = asking(&budget(), &json!({}));
    for (decision, made, then) in
        [(Decision::Retry, vec![0], vec![1]), (Decision::Happened(json!(1)), vec![1], vec![2])]
    {
        let (mut state, effects) = play(&program, vec![started(), turn(&["ask", "ask", "ask"]), EventKind::Resumed]);
        let Phase::Paused { pause, .. } = &state.phase else { panic!("{:?}", state.phase) };
        assert_eq!(
            (pause.question.kind, pause.calls.as_slice(), effects),
            (Termination::Uncertain, &[id(0)][..], vec![])
        );
        let decided = Decided::from(decision);
        assert_eq!(step(&program, &mut state, at(3, EventKind::Human(decided))).unwrap(), asked(&made));
        assert_eq!(step(&program, &mut state, at(4, paid(made[0], 1))).unwrap(), asked(&then));
    }
}

#[test]
fn calls_that_ask_a_model_and_were_approved_wait_for_each_other_too() {
    let tool = json!({ "requires_approval": true });
    let decide = |index, decision| EventKind::Human(Decided { call: Some(id(index)), ..Decided::from(decision) });
    let happened = || {
        let edited = Decision::Edit(json!({ "text": "other" }));
        vec![started(), turn(&["ask", "ask", "ask"]), decide(2, edited), decide(1, Decision::Approve)]
    };
    let program = asking(&budget(), &tool);
    let (state, effects) = play(&program, happened());
    assert!(effects.is_empty() && state.call(id(1)).unwrap().progress == Progress::Held);
    assert_eq!(super::waiting_calls::waiting_calls(&state).len(), 1, "what is decided waits for nobody");
    let whole = |last| happened().into_iter().chain([last]).collect::<Vec<_>>();
    let (mut state, effects) = play(&program, whole(decide(0, Decision::Deny(None))));
    assert_eq!((effects, state.counters.tool_calls_made), (asked(&[1]), 1));
    step(&program, &mut state, at(5, paid(1, BUDGET))).unwrap();
    assert_eq!(error_classes(&state)[1..], ["", "not called: the run's budget is spent"]);
    assert_eq!((state.counters.tool_calls_made, state.counters.calls["ask"]), (1, 1));
    let (_, effects) = play(&asking(&json!({}), &tool), whole(decide(0, Decision::Deny(None))));
    assert_eq!(effects, asked(&[1, 2]), "without a budget");
}

#[test]
fn no_human_is_asked_about_a_call_when_the_time_is_over() {
    let program = asking(&json!({}), &json!({ "requires_approval": true }));
    let (mut state, effects) = play(&program, vec![started(), turn(&["ask", "look"])]);
    assert_eq!((effects, state.counters.calls["ask"]), (asked(&[1]), 1));
    // The twin: before that, one is asked.
    let mut twin = state.clone();
    step(&program, &mut twin, at(3, paid(1, 0))).unwrap();
    assert!(matches!(&twin.phase, Phase::Paused { pause, .. } if pause.question.kind == Termination::Approval));
    step(&program, &mut state, at(1_000, EventKind::DeadlinePassed)).unwrap();
    assert_eq!(error_classes(&state), ["not called: the run's time is over", "cut off: the run's time is over"]);
    assert_eq!(state.counters.calls["ask"], 0);
    assert!(matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::Timeout));
}

#[test]
fn calls_that_are_held_when_the_time_is_over_are_not_made() {
    let program = asking(&budget(), &json!({}));
    let (mut state, _) = play(&program, vec![started(), turn(&["ask", "ask"])]);
    step(&program, &mut state, at(1_000, EventKind::DeadlinePassed)).unwrap();
    assert_eq!(error_classes(&state), ["cut off: the run's time is over", "not called: the run's time is over"]);
    assert_eq!((state.counters.tool_calls_made, state.counters.calls["ask"]), (1, 1));
    assert!(matches!(&state.phase, Phase::Ended(ending) if ending.termination == Termination::Timeout));
}
