//! The time of items. What ends in time depends on the order of the outcomes, so it is read from the journal of a run, and
//! held against the clock: a step begins while its item has time left, and fails for want of it afterwards only.

use std::collections::{BTreeMap, BTreeSet};

use loopctl::Program;
use loopctl::engine::flow::progress::Current;
use loopctl::engine::notice::{Notice, notices};
use loopctl::engine::state::State;
use loopctl::program::flow::StepAction;

use super::world::each_loop;

/// The steps that did not begin because the time of their item was over.
pub fn late_steps(program: &Program, journal: &[String]) -> BTreeSet<String> {
    let (flow, mut has_times) = (program.as_flow().unwrap(), false);
    flow.each(&mut |step| {
        has_times |= matches!(&step.action, StepAction::Foreach(foreach) if foreach.item_timeout_ms.is_some());
    });
    if !has_times {
        return BTreeSet::new();
    }
    let (mut state, mut late) = (State::new(program), BTreeSet::new());
    // When each item began, and what it may take.
    let mut began = BTreeMap::<String, (u64, u64)>::new();
    for text in journal {
        let caused = notices(program, &mut state, crate::simulation::world::read(text))
            .expect("what was taken once is taken again");
        let now = state.now;
        for notice in caused {
            let Notice::StepEnded { record } = notice else { continue };
            if record.error.is_some_and(|error| error.code == "timeout" && error.step == record.at) {
                let (from, most) = began[record.at.rsplit_once('.').unwrap().0];
                assert!(now.active_ms - from >= most, "{}: its item has time left", record.at);
                late.insert(record.at);
            }
        }
        each_loop(&state.as_flow().unwrap().progress.root, &mut |items| {
            let StepAction::Foreach(foreach) = &flow.step_at(&items.at).unwrap().action else { unreachable!() };
            let Some(most) = foreach.item_timeout_ms else { return };
            for (index, frame) in &items.open {
                began.insert(format!("{}.{index}", items.at), (frame.began_active_ms, most));
                if let Current::Open(open) = &frame.current
                    && open.due_at_ms == now.wall_ms
                {
                    assert!(now.active_ms - frame.began_active_ms < most, "{} begins too late", open.address);
                }
            }
        });
    }
    late
}
