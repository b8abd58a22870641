//! A small state for the tests of this room.

use serde_json::json;

use crate::event::{ModelFacts, Moment, Tokens};
use crate::state::{Counters, LoopState, Phase, RunHeader, State, StateHead, StoredEntry};

/// A run after one iteration.
pub(crate) fn state() -> State {
    let header = RunHeader {
        run_id: "run-1".to_owned(),
        session: None,
        loop_name: "refund-check".to_owned(),
        objective: "Decide about the ticket.".to_owned(),
        input: json!({"ticket_id": "TK-1"}).into(),
        model: ModelFacts { name: "small".to_owned(), ..ModelFacts::default() },
        at_ms: 1_769_941_800_000,
        timeout_ms: 300_000,
        ..RunHeader::default()
    };
    let tally = Counters {
        iterations: 1,
        tokens: Tokens { input: 100, output: 20, ..Tokens::default() },
        tool_calls_made: 1,
        ..Counters::default()
    };
    let head = StateHead {
        phase: Phase::Thinking { forced: None },
        header: std::sync::Arc::new(header),
        counters: tally,
        now: Moment { wall_ms: 1_769_941_804_200, active_ms: 4_200 },
        ..StateHead::default()
    };
    State::Loop(LoopState { head, ..LoopState::default() })
}

/// The same in this phase.
pub(crate) fn in_phase(phase: Phase) -> State {
    let mut state = state();
    state.phase = phase;
    state
}

/// What loops alone have of it.
pub(crate) fn of_loop(state: &mut State) -> &mut LoopState {
    match state {
        State::Loop(state) => state,
        State::Flow(_) => unreachable!("it is a loop"),
    }
}

/// A call that succeeded.
pub(crate) fn entry(iteration: u32) -> StoredEntry {
    StoredEntry {
        iteration,
        at_ms: 1_769_941_801_000,
        thought: "look first".into(),
        action: Some("lookup_ticket".into()),
        action_input: json!({"ticket_id": "TK-1"}).into(),
        observation: json!({"status": "open"}).into(),
        success: true,
        error: None,
        waited_ms: 0,
        duration_ms: 312,
        usage: Some(Tokens { input: 100, output: 20, ..Tokens::default() }),
        run_id: None,
        called_at_ms: Some(1_769_941_801_000),
        attempts: Box::default(),
    }
}
