//! Who drives the runs that a run starts without waiting for them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;

use super::fault::Fault;
use super::future::BoxFuture;
use super::run_result::Finished;
use loopctl_lang::program::Program;

/// The number of runs that are kept although nobody asked about them; of more, those that have ended are forgotten.
const KEPT: usize = 1_000;

/// A run of its own that another run started. It is in the store, and nobody drives it yet.
pub struct LaunchedRun {
    /// Its id.
    pub run_id: String,
    /// Its program.
    pub program: Arc<Program>,
    /// Drives it until it ends, waits for a human, or is stopped together with the driver of the run that started it.
    pub drive: BoxFuture<'static, Result<Finished, Fault>>,
}

/// Drives runs that runs started.
pub trait Launcher: Send + Sync {
    /// A place for a run of this owner, before it is created: dropped, it is free again.
    ///
    /// # Errors
    /// A sentence when the owner has too many runs that wait, or has used up its time.
    fn admit(self: Arc<Self>, owner: LaunchOwner) -> Result<Box<dyn LaunchPlace>, String>;

    /// A run that nobody drives was ended because another one replaces it.
    fn replaced(&self, _run_id: &str) {}
}

/// The place of a run that was not created yet.
pub trait LaunchPlace: Send {
    /// Drives a run, beside the one that started it.
    fn launch(self: Box<Self>, run: LaunchedRun);
}

/// Whose run is launched: the owner of the run that starts it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchOwner {
    /// The organisation.
    pub org: Option<String>,
    /// The name of the token.
    pub token: Option<String>,
}

/// Drives each run in a task of its own.
#[derive(Default)]
pub(crate) struct SpawnedRuns(Mutex<Vec<SpawnedRun>>);

/// A run that is driven in a task.
pub struct SpawnedRun {
    /// Its id.
    pub run_id: String,
    /// Its program.
    pub program: Arc<Program>,
    /// Its task.
    pub task: JoinHandle<Result<Finished, Fault>>,
}

impl Launcher for SpawnedRuns {
    fn admit(self: Arc<Self>, _: LaunchOwner) -> Result<Box<dyn LaunchPlace>, String> {
        Ok(Box::new(SpawnPlace(self)))
    }
}

/// Where a task is kept.
struct SpawnPlace(Arc<SpawnedRuns>);

impl LaunchPlace for SpawnPlace {
    fn launch(self: Box<Self>, run: LaunchedRun) {
        let LaunchedRun { run_id, program, drive, .. } = run;
        let mut all = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT {
            all.retain(|run| !run.task.is_finished());
        }
        all.push(SpawnedRun { run_id, program, task: tokio::spawn(drive) });
    }
}

impl SpawnedRuns {
    /// The runs that were started since the last time that this was asked.
    pub fn take(&self) -> Vec<SpawnedRun> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
