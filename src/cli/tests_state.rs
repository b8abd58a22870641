//! A small state for the tests of the command line.

use serde_json::json;

use crate::engine::event::{ModelFacts, Moment, Tokens};
use crate::engine::state::{Counters, Phase, RunHeader, State};

/// A run after one iteration.
pub fn state() -> State {
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
    State {
        phase: Phase::Thinking { forced: None },
        header: std::sync::Arc::new(header),
        counters: tally,
        now: Moment { wall_ms: 1_769_941_804_200, active_ms: 4_200 },
        ..State::default()
    }
}
