//! A lease that is always released: also when an error ends the work early, when a listener panics, and when
//! the future of the run is dropped in the middle.

use std::sync::Arc;

use super::fault::Fault;
use crate::journal::{CancelRequest, Journal, Lease, MOST_FAILED_TAKE_UPS, SUSPECT_TAKE_UPS, StoreError};
use loopctl_engine::event::Event;
use loopctl_engine::outcome::Status;
use loopctl_engine::state::State;

/// A run that is leased to us, and untouched so far.
pub struct Leased {
    pub(super) run_id: String,
    pub(super) lease: Lease,
    pub(super) guard: LeaseGuard,
}

impl Leased {
    /// Takes the lease of a run.
    ///
    /// # Errors
    /// When another driver has it, it is a read-only copy, there is no such run, or the store fails.
    pub async fn take(journal: &Arc<dyn Journal>, run_id: &str) -> Result<Self, StoreError> {
        journal.find(run_id).await?.map_or(Ok(()), |run| run.may_be_driven())?;
        Ok(Self::claimed(journal, run_id, journal.lease(run_id).await?))
    }

    /// A run that was claimed from the queue.
    pub fn claimed(journal: &Arc<dyn Journal>, run_id: &str, lease: Lease) -> Self {
        let guard = LeaseGuard::new(journal, run_id, &lease);
        Self { run_id: run_id.to_owned(), lease, guard }
    }

    /// Takes the lease of a run to cancel it. `None`: another driver has it, and was asked to cancel it, or has done
    /// so already.
    ///
    /// # Errors
    /// When there is no such run, or the store fails.
    pub async fn to_cancel(
        journal: &Arc<dyn Journal>,
        run_id: &str,
        request: &CancelRequest,
    ) -> Result<Option<Self>, Fault> {
        match Self::take(journal, run_id).await {
            Err(StoreError::Driven(_)) => {}
            taken => return taken.map(Some).map_err(Fault::Store),
        }
        journal.request_cancel(run_id, request.clone()).await.map_err(Fault::Store)?;
        // The driver may have left before it could see the request, or have ended the run since.
        let leased = match Self::take(journal, run_id).await {
            Err(StoreError::Driven(_)) => return Ok(None),
            taken => taken.map_err(Fault::Store)?,
        };
        let run = journal.find(run_id).await.map_err(Fault::Store)?;
        if run.is_some_and(|run| run.status == Status::Cancelled) {
            // A lease that could not be released expires.
            drop(leased.give_back().await);
            return Ok(None);
        }
        Ok(Some(leased))
    }

    /// How many events the run has.
    pub fn events(&self) -> u64 {
        self.lease.events
    }

    /// Whether too many drivers in a row took the run, did nothing in it and died.
    pub fn is_to_be_quarantined(&self) -> bool {
        self.lease.failed_take_ups >= MOST_FAILED_TAKE_UPS
    }

    /// Whether it may be what processes died of, so that it is to be driven alone.
    pub fn is_suspect(&self) -> bool {
        self.lease.failed_take_ups >= SUSPECT_TAKE_UPS
    }

    /// Releases the lease with nothing done.
    ///
    /// # Errors
    /// When the store fails; the lease then expires.
    pub async fn give_back(self) -> Result<(), StoreError> {
        self.guard.give_back().await
    }
}

/// A run that is leased to us, with its events, read under this lease.
pub struct LeasedRun {
    /// The lease.
    pub leased: Leased,
    /// All its events.
    pub events: Vec<Event>,
    /// Their fold by the document that the run follows, if that is known already.
    pub state: Option<State>,
}

/// Holds the lease of a run. Dropping this releases the lease without waiting for the store.
pub struct LeaseGuard {
    journal: Arc<dyn Journal>,
    run_id: String,
    fence: Option<u64>,
}

impl LeaseGuard {
    /// Holds a lease that was just granted.
    pub fn new(journal: &Arc<dyn Journal>, run_id: &str, lease: &Lease) -> Self {
        Self { journal: Arc::clone(journal), run_id: run_id.to_owned(), fence: Some(lease.fence) }
    }

    /// Records that the lease was released with an event.
    pub fn released(&mut self) {
        self.fence = None;
    }

    /// The store.
    pub(super) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Releases the lease, and waits for the store.
    ///
    /// # Errors
    /// When the store fails; the lease then expires.
    pub async fn give_back(mut self) -> Result<(), StoreError> {
        match self.fence.take() {
            Some(fence) => self.journal.release(&self.run_id, fence).await,
            None => Ok(()),
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if let Some(fence) = self.fence.take() {
            // The request is sent when the ticket is made; nobody waits for its answer.
            drop(self.journal.release(&self.run_id, fence));
        }
    }
}

/// The driver's lease on its run.
pub(super) struct RunLease {
    /// The run.
    pub run_id: String,
    /// The lease's number.
    pub fence: u64,
    /// How many events the run has.
    pub events: u64,
    /// Releases the lease when the driver leaves, for whatever reason.
    pub guard: LeaseGuard,
}
