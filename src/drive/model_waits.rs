//! The runs whose models failed and are asked again after a wait: what their status shows meanwhile. It is in memory only:
//! the journal gets the failed attempts with what came of the call.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::world::Engine;

/// A model that failed and is asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelWait {
    /// The run that asks it: the one that was looked up, or one below.
    pub run_id: String,
    /// The name of the model.
    pub model: String,
    /// The attempts that failed so far.
    pub attempts: u32,
    /// Why the last one failed, in a sentence without secrets.
    pub reason: String,
    /// When it is asked again, in milliseconds since 1970.
    pub again_at_ms: i64,
}

/// The waits of all runs of an engine, by the runs.
#[derive(Debug, Default)]
pub(super) struct ModelWaits(Mutex<BTreeMap<String, ModelWait>>);

/// The wait of one run; dropping this ends it.
pub(super) struct RunModelWait<'w> {
    all: &'w ModelWaits,
    run_id: &'w str,
}

impl ModelWaits {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, ModelWait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wait of a run that asks its model.
    pub fn of<'w>(&'w self, run_id: &'w str) -> RunModelWait<'w> {
        RunModelWait { all: self, run_id }
    }
}

impl RunModelWait<'_> {
    /// An attempt failed.
    pub fn failed(&self, wait: ModelWait) {
        self.all.all().insert(self.run_id.to_owned(), wait);
    }
}

impl Drop for RunModelWait<'_> {
    fn drop(&mut self) {
        self.all.all().remove(self.run_id);
    }
}

impl Engine {
    /// The wait of a run that is driven here for a model that failed; else that of the first run below that waits so.
    pub fn model_wait(&self, run_id: &str) -> Option<ModelWait> {
        let all = self.world.model_waits.all();
        let below = (format!("{run_id}."), format!("{run_id}/"));
        all.get(run_id).or_else(|| all.range(below.0..below.1).next().map(|(_, wait)| wait)).cloned()
    }
}
