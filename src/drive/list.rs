//! Runs as lists show them.

use std::collections::BTreeSet;

use super::subrun_id;
use crate::engine::event::{Event, EventKind};
use crate::engine::operation::Progress;
use crate::engine::outcome::Status;
use crate::engine::state::State;
use crate::journal::{Journal, RunFilter, RunSummary, StoreFault};
use crate::program::Program;

/// Runs, newest first. A store updates the record of a run when its status changes; the progress of a run that
/// is under way, or was cut off, is read from its events.
///
/// # Errors
/// When the store can't be read.
pub async fn list(journal: &dyn Journal, filter: RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
    let mut runs = journal.list(filter).await?;
    for run in runs
        .iter_mut()
        .filter(|run| matches!(run.status, Status::Running | Status::Quarantined) && run.damaged.is_none())
    {
        // A run that can't be read stays in the list with its record, and hides no other run.
        if let Ok(events) = journal.read(&run.run_id).await {
            let events: Vec<Event> = events.iter().filter_map(|text| Event::read(text).ok()).collect();
            let replies = events.iter().filter(|event| matches!(event.kind, EventKind::ModelReplied(_))).count();
            run.iterations = u32::try_from(replies).unwrap_or(u32::MAX);
            run.updated_at_ms = events.last().map_or(run.updated_at_ms, |event| event.at.wall_ms);
        }
    }
    Ok(runs)
}

/// The sub-runs of a run, in their order. The last ones may not have started yet.
pub fn called(program: &Program, state: &State) -> Vec<String> {
    let recorded = state.entries.iter().filter_map(|entry| entry.run_id.as_deref().map(str::to_owned));
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
