//! Runs as lists show them.

use crate::engine::event::{Event, What};
use crate::engine::outcome::Status;
use crate::journal::{Journal, RunFilter, RunSummary, StoreFault};

/// Runs, newest first. A store keeps a run's standing when its status changes; how far a run is that is under
/// way, or was cut off, is told from its events.
///
/// # Errors
/// When the store can't be read.
pub async fn list(journal: &dyn Journal, filter: RunFilter) -> Result<Vec<RunSummary>, StoreFault> {
    let mut runs = journal.list(filter).await?;
    for run in runs.iter_mut().filter(|run| run.status == Status::Running && run.damaged.is_none()) {
        // One run that can't be read hides no other, and itself neither.
        if let Ok(events) = journal.read(&run.run_id).await {
            let events: Vec<Event> = events.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
            let replies = events.iter().filter(|event| matches!(event.what, What::ModelReplied(_))).count();
            run.iterations = u32::try_from(replies).unwrap_or(u32::MAX);
            run.updated_at_ms = events.last().map_or(run.updated_at_ms, |event| event.at.wall_ms);
        }
    }
    Ok(runs)
}
