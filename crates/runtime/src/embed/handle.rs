//! A run by its id: what it does, how it is left, and its end by hand.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{Loop, Notices, Outcome};
use crate::drive::fault::Fault;
use crate::drive::handled_runs::{HandledRun, LeftRun};
use crate::drive::notices::NoticePosition;
use crate::drive::run_result::Finished;
use crate::journal::{CancelRequest, StoreError};
use loopctl_engine::outcome::Status;

/// The interval of the looks at a run that no task of this process drives.
pub(super) const RUN_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A run that is durable: [`StartRun::spawn`](super::StartRun::spawn), [`ResumeRun::spawn`](super::ResumeRun::spawn) and
/// [`Loop::handle`] give one. Cheap to clone. When it is dropped, the run continues.
#[derive(Clone)]
pub struct RunHandle {
    of: Loop,
    run_id: String,
    /// The task that was spawned for it; none for a handle by an id alone.
    run: Option<Arc<HandledRun>>,
}

impl RunHandle {
    pub(super) fn new(of: Loop, run_id: String) -> Self {
        Self { of, run_id, run: None }
    }

    pub(super) fn driven(of: Loop, run_id: String, run: Arc<HandledRun>) -> Self {
        Self { of, run_id, run: Some(run) }
    }

    /// Drives the run in a task.
    pub(super) fn drive(&self, driving: impl Future<Output = LeftRun> + Send + 'static) {
        let Some(run) = &self.run else { return };
        let registered = self.of.engine.driven().register(&self.run_id, run);
        tokio::spawn(async move { registered.leave(Box::pin(driving).await) });
    }

    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The notices of the run, from its first one on.
    pub fn notices(&self) -> Notices {
        Notices::new(self.of.clone(), self.run_id.clone(), None)
    }

    /// The notices of the run after this one. A reader that comes again, also in another process, lacks none and has none twice.
    pub fn notices_after(&self, position: NoticePosition) -> Notices {
        Notices::new(self.of.clone(), self.run_id.clone(), Some(position))
    }

    /// Waits until nobody drives the run: it has ended, waits for a human, or was left. A run that another process drives is waited
    /// for, too; one that nobody drives until somebody resumes it ([`Loop::resume`], [`Engine::keep`](crate::drive::engine::Engine::keep)).
    ///
    /// # Errors
    /// Why it was left, if that was no decision of the run or of a stop; or when there is no such run.
    pub async fn wait(&self) -> Result<Finished, Fault> {
        if let Some(run) = &self.run {
            return run.left().await;
        }
        loop {
            if let Some(run) = self.of.engine.driven().get(&self.run_id)
                && let Ok(finished) = run.left().await
            {
                return Ok(finished);
            }
            let there = self.of.engine.find(&self.run_id).await?;
            let Some(there) = there else { return Err(Fault::Store(StoreError::NoSuchRun(self.run_id.clone()))) };
            if there.status != Status::Running && !there.driven {
                return Ok(Finished { state: self.of.engine.state(&self.of.program, &self.run_id).await? });
            }
            sleep(RUN_POLL_INTERVAL).await;
        }
    }

    /// How the run is now, by its journal.
    ///
    /// # Errors
    /// When there is no such run, or its journal can't be read by this document.
    pub async fn outcome(&self) -> Result<Outcome, Fault> {
        let state = self.of.engine.state(&self.of.program, &self.run_id).await?;
        Ok(Finished { state }.outcome())
    }

    /// Ends the run by hand: at once when nobody drives it, otherwise by a request to its driver, which ends it after its step.
    /// Returns the status after that.
    ///
    /// # Errors
    /// When there is no such run, it has ended, or the store fails.
    pub async fn cancel(&self, reason: impl Into<String>) -> Result<Status, Fault> {
        let request = CancelRequest { reason: Some(reason.into()).filter(|reason| !reason.is_empty()), by: None };
        self.of.engine.cancel(&self.of.program, &self.run_id, request).await
    }
}

impl fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle").field("run_id", &self.run_id).finish_non_exhaustive()
    }
}
