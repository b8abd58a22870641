//! The runs that handles of a program drive, each in a task of its own: who follows one hears of it at once, and all of them
//! can be left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::fault::Fault;
use super::run_result::Finished;
use super::stop::Stop;
use crate::journal::StoreError;

/// How a task left its run.
pub(crate) type LeftRun = Result<Finished, Fault>;

/// The runs that are driven by tasks of this process.
#[derive(Default)]
pub(crate) struct HandledRuns {
    /// By their ids, the oldest task first: one that passes a decision to the driver of a run is beside that one.
    runs: Mutex<BTreeMap<String, Vec<Arc<HandledRun>>>>,
    /// How many there are.
    count: watch::Sender<usize>,
}

/// A run that a task drives.
pub(crate) struct HandledRun {
    /// Stops it, and no other run.
    stop: Stop,
    /// Changes with each event that is durable.
    news: watch::Sender<u64>,
    /// Set when the task has left it.
    left: watch::Sender<Option<LeftRun>>,
}

impl HandledRun {
    /// A run that this stop, and those above it, can stop.
    pub fn new(stop: Stop) -> Arc<Self> {
        Arc::new(Self { stop, news: watch::Sender::new(0), left: watch::Sender::new(None) })
    }

    /// Its stop.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Says that something in it is durable.
    pub fn touch(&self) {
        self.news.send_modify(|news| *news = news.wrapping_add(1));
    }

    /// Hears of what is durable from now on.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Waits until its task has left it.
    pub async fn left(&self) -> LeftRun {
        let mut left = self.left.subscribe();
        loop {
            if let Some(left) = left.borrow_and_update().clone() {
                return left;
            }
            // The sender is this one's, so that a change is all that can come.
            if left.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn leave(&self, left: LeftRun) {
        self.left.send_replace(Some(left));
        self.touch();
    }
}

/// A run in the register, which a task drives. When this is dropped, the run is out of it: a task that a runtime ends drops it too.
pub(crate) struct RegisteredRun {
    all: Arc<HandledRuns>,
    run_id: String,
    run: Arc<HandledRun>,
}

impl RegisteredRun {
    /// Says how the task left the run.
    pub fn leave(self, left: LeftRun) {
        self.run.leave(left);
    }
}

impl Drop for RegisteredRun {
    fn drop(&mut self) {
        let mut runs = self.all.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tasks) = runs.get_mut(&self.run_id) {
            tasks.retain(|run| !Arc::ptr_eq(run, &self.run));
            if tasks.is_empty() {
                runs.remove(&self.run_id);
            }
        }
        self.all.count.send_replace(runs.len());
        if self.run.left.borrow().is_none() {
            // It panicked, or its runtime ended: who waits for the run learns it.
            self.run.leave(Err(Fault::Cut(StoreError::Other("the task that drove it ended".to_owned()))));
        }
    }
}

impl HandledRuns {
    /// Registers a run that a task drives from now on.
    pub fn register(self: &Arc<Self>, run_id: &str, run: &Arc<HandledRun>) -> RegisteredRun {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.entry(run_id.to_owned()).or_default().push(Arc::clone(run));
        self.count.send_replace(runs.len());
        RegisteredRun { all: Arc::clone(self), run_id: run_id.to_owned(), run: Arc::clone(run) }
    }

    /// The run of this id, if a task drives it.
    pub fn get(&self, run_id: &str) -> Option<Arc<HandledRun>> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(run_id)?.first().cloned()
    }

    /// Has each run left after its step, for the process that resumes it.
    pub fn leave_all(&self) {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.values().flatten().for_each(|run| run.stop.leave());
    }

    /// Waits until no task drives a run.
    pub async fn none_left(&self) {
        // The sender is this one's.
        drop(self.count.subscribe().wait_for(|count| *count == 0).await);
    }
}
