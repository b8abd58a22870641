//! The events of a store, in parts: who follows a run reads what it lacks.

use super::fault::Fault;
use super::fold;
use crate::journal::Journal;
use loopctl_engine::event::Event;

/// The events of a run from a number on: as many as this number of bytes holds, and at least one if there is one.
///
/// # Errors
/// When there is no such run, or its journal can't be read.
pub async fn events_from(
    journal: &dyn Journal,
    run_id: &str,
    from: u64,
    most_bytes: usize,
) -> Result<Vec<Event>, Fault> {
    let events = journal.read_from(run_id, from, most_bytes).await.map_err(Fault::Store)?;
    // Only documents are long texts: without one, the texts need not be read.
    match fold::events(run_id, &events, &[]) {
        Ok(events) => Ok(events),
        Err(_) => fold::events(run_id, &events, &journal.texts(run_id).await.map_err(Fault::Store)?),
    }
}
