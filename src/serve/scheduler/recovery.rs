//! Resumes runs without a living driver after a restart, unless earlier drivers died of them.

use std::sync::Arc;

use super::{ActiveRun, QueuedRun, Scheduler};
use crate::drive::fault::Fault;
use crate::drive::lease_guard::{Leased, LeasedRun};
use crate::engine::outcome::{Status, Termination};
use crate::journal::{RunFilter, StoreFault};
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::run_store::ProgramOfRun;

/// The outcome of resuming a queued run.
pub(super) enum Recovered {
    /// It is leased, and can be driven here.
    Leased(LeasedRun, ProgramOfRun),
    /// It stays quarantined.
    Quarantined,
}

impl Scheduler {
    /// Queues every run that was under way when the last server ended, or waited for its model; sub-runs are resumed
    /// by their callers.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recover_all(self: &Arc<Self>) -> Result<usize, StoreFault> {
        let of = |status| RunFilter { status: Some(status), ..RunFilter::default() };
        let mut runs = self.runs.journal.list(of(Status::Paused)).await?;
        runs.retain(|run| run.termination == Some(Termination::ModelError));
        runs.extend(self.runs.journal.list(of(Status::Running)).await?);
        let mut count = 0;
        for run in runs.into_iter().rev().filter(|run| !run.driven) {
            let mut schedule = self.schedule();
            schedule.active.insert(run.run_id.clone(), ActiveRun::new());
            // The store knows the organisation of the run, but not the token that started it.
            let owner = Owner { org: run.org, token: None };
            schedule.queue.push(&owner, QueuedRun { run_id: run.run_id, _permit: None });
            count += 1;
        }
        self.start_queued();
        Ok(count)
    }

    /// Leases and reads a queued run, unless it is to be quarantined. The lease comes first: if something in
    /// the run kills its driver, even its document, the next driver learns that from the lease before it
    /// touches the run.
    ///
    /// # Errors
    /// When another driver has it, its document can't be read, or the store fails.
    pub(super) async fn recover(&self, run_id: &str) -> Result<Recovered, Fault> {
        let leased = Leased::take(&self.runs.journal, run_id).await.map_err(Fault::Store)?;
        if leased.is_to_be_quarantined() {
            leased.give_back().await.map_err(Fault::Store)?;
            tracing::error!(run_id, "set aside: its drivers died again and again before anything happened in it");
            return Ok(Recovered::Quarantined);
        }
        let (run, program) = self.read_leased(leased, run_id).await?;
        Ok(Recovered::Leased(run, program))
    }

    /// Leases and reads a run that a human decided about, with the document that the human chose.
    ///
    /// # Errors
    /// When another driver has it, its document can't be read or has changed, or the store fails.
    pub(super) async fn lease(
        &self,
        run_id: &str,
        new_document: Option<bool>,
    ) -> Result<(LeasedRun, ProgramOfRun), ProblemDetails> {
        let leased = Leased::take(&self.runs.journal, run_id).await?;
        let events = self.runs.events(run_id).await?;
        let program = self.runs.chosen(run_id, &events, new_document).await?;
        Ok((LeasedRun { leased, events }, program))
    }

    /// Reads a leased run. If that fails, dropping the lease releases it.
    pub(super) async fn read_leased(&self, leased: Leased, run_id: &str) -> Result<(LeasedRun, ProgramOfRun), Fault> {
        let events = self.runs.events(run_id).await?;
        let program = self.runs.program(run_id, &events).await?;
        Ok((LeasedRun { leased, events }, program))
    }
}
