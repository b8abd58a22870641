//! The runs that a run called.

use std::collections::BTreeSet;

use super::subrun_id;
use loopctl_engine::operation::Progress;
use loopctl_engine::state::State;
use loopctl_lang::program::Program;

/// The sub-runs of a run, in their order. The last ones may not have started yet.
pub fn called(program: &Program, state: &State) -> Vec<String> {
    let recorded = state.entries().iter().filter_map(|entry| entry.run_id.as_deref().map(str::to_owned));
    let mut runs: Vec<String> = recorded.collect();
    if let Some(turn) = state.turn() {
        for call in &turn.calls {
            let under_way = matches!(call.progress, Progress::Requested) && subrun_id::loop_of(program, call).is_some();
            let run = match &call.run_id {
                Some(run_id) => Some(run_id.to_string()),
                None => under_way.then(|| subrun_id::id(&state.header.run_id, call.address)),
            };
            runs.extend(run);
        }
    }
    let mut known = BTreeSet::new();
    runs.retain(|run| known.insert(run.clone()));
    runs
}
