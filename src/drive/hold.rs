//! A lease that is given back whatever happens: also when an error ends the work early, when a
//! listener panics, and when the run's future is dropped in the middle.

use std::sync::Arc;

use crate::journal::{Journal, Lease, StoreFault};

/// Holds a run's lease. Dropping it gives the lease back without waiting for the store's word.
pub(super) struct Hold {
    journal: Arc<dyn Journal>,
    run_id: String,
    fence: Option<u64>,
}

impl Hold {
    /// Holds a lease that was just granted.
    pub fn new(journal: &Arc<dyn Journal>, run_id: &str, lease: &Lease) -> Self {
        Self { journal: Arc::clone(journal), run_id: run_id.to_owned(), fence: Some(lease.fence) }
    }

    /// Gives the lease back, and waits until the store has it.
    ///
    /// # Errors
    /// When the store fails; the lease then expires.
    pub async fn give_back(mut self) -> Result<(), StoreFault> {
        match self.fence.take() {
            Some(fence) => self.journal.release(&self.run_id, fence).await,
            None => Ok(()),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(fence) = self.fence.take() {
            // The request is on its way when the ticket is made; nobody is left to wait for it.
            drop(self.journal.release(&self.run_id, fence));
        }
    }
}
