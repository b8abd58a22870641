//! The runs whose models failed and are asked again after a wait: what their status shows meanwhile. It is in memory only:
//! the journal gets the failed attempts with what came of the call.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// The wait of one run, or of one call of it; dropping this ends it.
#[derive(Debug)]
pub(super) struct RunModelWait<'w> {
    all: &'w ModelWaits,
    asked_by: String,
}

impl ModelWaits {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, ModelWait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wait of a run for a model that failed; else that of the first run, or call, below that waits so.
    pub fn find(&self, run_id: &str) -> Option<ModelWait> {
        let all = self.all();
        let below = (format!("{run_id}."), format!("{run_id}/"));
        all.get(run_id).or_else(|| all.range(below.0..below.1).next().map(|(_, wait)| wait)).cloned()
    }

    /// The wait of a run that asks its model.
    pub fn of(&self, run_id: &str) -> RunModelWait<'_> {
        RunModelWait { all: self, asked_by: run_id.to_owned() }
    }

    /// The wait of a call that asks a model, at its address in the run: it is found as those of the runs below are.
    pub fn of_call(&self, run_id: &str, at: impl Display) -> RunModelWait<'_> {
        RunModelWait { all: self, asked_by: format!("{run_id}.{at}") }
    }
}

impl RunModelWait<'_> {
    /// An attempt failed.
    pub fn failed(&self, wait: ModelWait) {
        self.all.all().insert(self.asked_by.clone(), wait);
    }
}

impl Drop for RunModelWait<'_> {
    fn drop(&mut self) {
        self.all.all().remove(&self.asked_by);
    }
}
