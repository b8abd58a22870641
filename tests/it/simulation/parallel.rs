//! Turns of several calls: results come back in any order, and the model gets them in its own order.

use std::sync::Arc;

use loopctl::Program;
use loopctl::engine::event::{CallId, Event, Moment};
use loopctl::engine::operation::{Call, Progress};
use loopctl::engine::state::{Phase, State, Turn};
use loopctl::engine::step::step;
use loopctl::language::react::CallOrder;
use loopctl::program::ToolKind;
use serde_json::json;

use crate::simulation::chance::Chance;
use crate::simulation::documents;
use crate::simulation::world::{World, started};

/// A run whose model has just asked for several calls.
fn in_a_turn(program: &Program, chance: &mut Chance) -> State {
    let mut state = State::new(program);
    let event = Event { at: Moment { wall_ms: 1_769_941_800_000, active_ms: 0 }, kind: started(program) };
    step(program, &mut state, event).expect("it begins");
    let open = program.offered().filter(|tool| !tool.approval.may_ask() && tool.max_calls.is_none());
    // What spends would not all be asked for at once where there is a budget.
    let plain = open.filter(|tool| matches!(tool.kind, ToolKind::Http(_)));
    let free: Vec<String> = plain.map(|tool| tool.name.clone()).collect();
    let calls = (0..2 + chance.below(4) as u32).map(|index| Call {
        progress: Progress::Requested,
        ..Call::new(CallId { iteration: 1, index }, chance.pick(&free), json!({ "n": index }), 0)
    });
    Arc::make_mut(&mut state.header).order = CallOrder::Together;
    let turn = Turn { iteration: 1, calls: calls.collect(), ..Turn::default() };
    state.counters.iterations = 1;
    state.phase = Phase::Acting { turn };
    state
}

#[test]
fn several_calls_a_turn_come_back_in_any_order_twice_late_or_not_at_all() {
    for seed in 0..u64::from(crate::common::cases(50)) {
        let mut chance = Chance::new(seed);
        let program = documents::program(seed % 16);
        let state = in_a_turn(&program, &mut chance);
        let Phase::Acting { turn } = &state.phase else { unreachable!() };
        let mut world = World::new(seed, &program).at(&state);
        for call in &turn.calls {
            world.ledger.may_be_made(call.address);
        }
        world.ledger.began_with(1);
        let played = world.play();
        let observed: Vec<_> =
            played.inputs.iter().filter(|(iteration, _)| *iteration == 1).map(|(_, input)| input).collect();
        let asked: Vec<_> = turn.calls.iter().map(|call| &*call.input).collect();
        assert!(
            observed == asked || played.ending == "cancelled",
            "seed {seed}: observed {observed:?}, asked {asked:?}"
        );
    }
}
