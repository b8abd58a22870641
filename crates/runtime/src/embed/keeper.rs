//! Keeps the runs of documents going: without a server, what a process left or died in continues, and what is due happens.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Loop;
use crate::drive::clock;
use crate::drive::engine::Engine;
use crate::drive::fault::Fault;
use crate::drive::handled_runs::HandledRuns;
use crate::journal::{ListedStatus, RunFilter, RunSummary, StoreError};

/// The interval of the looks at the store.
const KEEP_INTERVAL: Duration = Duration::from_millis(500);
/// A run that could not be resumed is looked at again after this time.
const REST: Duration = Duration::from_secs(60);
/// A run that is resumed is waited for no longer than this.
const PATIENCE: Duration = Duration::from_secs(2);
/// At most this number of runs is resumed at a time, of each document.
const MOST_RESUMED: usize = 64;

/// Keeps runs going until it is dropped: [`Engine::keep`].
#[must_use = "runs are kept for as long as this lives"]
pub struct Keeper {
    driven: Vec<Arc<HandledRuns>>,
    /// Ends the looks at the store.
    over: watch::Sender<bool>,
}

impl Engine {
    /// Has the runs of these documents continue: those that a process left or died in, those that wait for a time or an approval that
    /// has expired, and those whose model can be asked again. Each is driven by a task of this process; several processes may keep the
    /// runs of one store. What [`Stop::after_step`](crate::drive::stop::Stop::after_step) interrupted waits for who resumes it.
    ///
    /// When the keeper is dropped, the runs that tasks of these engines drive, also those that handles started, are left after their step
    /// for the process that keeps them next; [`Keeper::drain`] waits for that.
    ///
    /// Call it in a tokio runtime.
    pub fn keep<'a>(&self, documents: impl IntoIterator<Item = &'a Loop>) -> Keeper {
        let (over, ended) = watch::channel(false);
        let mut driven = vec![Arc::clone(self.driven())];
        for document in documents {
            let of_engine = document.engine.driven();
            if !driven.iter().any(|known| Arc::ptr_eq(known, of_engine)) {
                driven.push(Arc::clone(of_engine));
            }
            let mut ended = ended.clone();
            let mut kept = KeptRuns { of: document.clone(), resting: BTreeMap::new() };
            tokio::spawn(async move {
                loop {
                    kept.look().await;
                    tokio::select! {
                        () = sleep(KEEP_INTERVAL) => {}
                        _ = ended.wait_for(|is_over| *is_over) => return,
                    }
                }
            });
        }
        Keeper { driven, over }
    }
}

impl Keeper {
    /// Resumes nothing from now on, has all runs left after their step, and returns when that is done, or after this time. A longer
    /// step is made again, or asked about, by the process that resumes its run.
    pub async fn drain(self, grace: Duration) {
        self.leave();
        let none_left = async {
            for driven in &self.driven {
                driven.none_left().await;
            }
        };
        drop(timeout(grace, none_left).await);
    }

    fn leave(&self) {
        self.over.send_replace(true);
        self.driven.iter().for_each(|driven| driven.leave_all());
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.leave();
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

/// The runs of a document.
struct KeptRuns {
    of: Loop,
    /// Since when runs rest that could not be resumed.
    resting: BTreeMap<String, Instant>,
}

impl KeptRuns {
    /// Resumes what has no driver.
    async fn look(&mut self) {
        self.resting.retain(|_, since| clock::elapsed(*since) < REST);
        let runs = match self.waiting().await {
            Ok(runs) => runs,
            Err(fault) => {
                tracing::error!(code = fault.code(), "runs can't be looked for: {fault}");
                return;
            }
        };
        for run in runs {
            let is_driven = run.driven || self.of.engine.driven().get(&run.run_id).is_some();
            // One in a line begins when those ahead have ended.
            if is_driven || run.behind.is_some() || self.resting.contains_key(&run.run_id) {
                continue;
            }
            // A task drives it all the same: others are not to wait for one that waits for its turn.
            match timeout(PATIENCE, self.of.resume(&run.run_id).spawn()).await {
                // Another process may be faster.
                Err(_) | Ok(Ok(_) | Err(Fault::Store(StoreError::Driven(_)))) => {}
                Ok(Err(fault)) => {
                    tracing::error!(run_id = run.run_id, code = fault.code(), "the run can't be resumed: {fault}");
                    self.resting.insert(run.run_id, clock::instant());
                }
            }
        }
    }

    /// The runs that have no driver, and those in which something is due.
    async fn waiting(&self) -> Result<Vec<RunSummary>, StoreError> {
        let filter = |status| RunFilter {
            statuses: vec![status],
            loop_name: Some(self.of.program.name.clone()),
            oldest_first: true,
            limit: MOST_RESUMED,
            ..RunFilter::default()
        };
        let journal = self.of.engine.journal();
        let mut runs = journal.list(filter(ListedStatus::Queued)).await?;
        let due = RunFilter { due_ms: Some(clock::wall_ms()), ..filter(ListedStatus::Paused) };
        runs.extend(journal.list(due).await?);
        Ok(runs)
    }
}
