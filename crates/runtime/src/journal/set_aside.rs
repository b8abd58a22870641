//! Runs below one that is set aside: their callers drive them, so that nobody does until somebody resumes that one.

use std::collections::BTreeMap;

use super::{Journal, RunSummary, StoreError};
use loopctl_engine::outcome::Status;

/// More callers than runs may have above each other.
const MOST_CALLERS: usize = 64;

/// The run because of which a run is set aside: the run itself, or one above it. None: it is driven, waits or has ended.
///
/// # Errors
/// When the store fails.
pub async fn set_aside_by(journal: &dyn Journal, run: Option<&RunSummary>) -> Result<Option<String>, StoreError> {
    let mut above: Option<RunSummary> = None;
    for _ in 0..MOST_CALLERS {
        let Some(at) = above.as_ref().or(run) else { return Ok(None) };
        match (at.status, &at.parent_run_id) {
            (Status::Quarantined, _) => return Ok(Some(at.run_id.clone())),
            (Status::Running, Some(caller)) if !at.driven => above = journal.find(caller).await?,
            _ => return Ok(None),
        }
        if above.is_none() {
            return Ok(None);
        }
    }
    Ok(None)
}

/// A run as it is shown: one below a run that is set aside is quarantined too.
///
/// # Errors
/// When the store fails.
pub async fn shown(journal: &dyn Journal, run: RunSummary) -> Result<RunSummary, StoreError> {
    let is_set_aside = set_aside_by(journal, Some(&run)).await?.is_some();
    Ok(if is_set_aside { RunSummary { status: Status::Quarantined, ..run } } else { run })
}

/// The same for a list, which looks once for each caller.
///
/// # Errors
/// When the store fails.
pub async fn all_shown(journal: &dyn Journal, runs: Vec<RunSummary>) -> Result<Vec<RunSummary>, StoreError> {
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut all = Vec::with_capacity(runs.len());
    for run in runs {
        let caller = run.parent_run_id.as_ref().filter(|_| run.status == Status::Running && !run.driven);
        let Some(caller) = caller.cloned() else {
            all.push(run);
            continue;
        };
        let is_set_aside = match known.get(&caller) {
            Some(known) => *known,
            None => set_aside_by(journal, Some(&run)).await?.is_some(),
        };
        known.insert(caller, is_set_aside);
        all.push(if is_set_aside { RunSummary { status: Status::Quarantined, ..run } } else { run });
    }
    Ok(all)
}
