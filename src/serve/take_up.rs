//! A run that no living driver has is taken up: unless drivers before us died of it.

use std::sync::Arc;

use super::state::{Recorded, Served};
use crate::drive::fault::Fault;
use crate::drive::hold::Leased;

/// What came of taking a run up.
pub(super) enum TakenUp {
    /// It is ours to drive.
    Leased(Recorded, Leased),
    /// It stays set aside.
    Quarantined,
}

impl Served {
    /// Leases a run, and reads what it is driven by. The lease comes first: whatever in a run kills its driver, its
    /// document included, the next driver finds out from the lease before it touches that.
    ///
    /// # Errors
    /// When another driver has it, its document can't be read, or the store fails.
    pub(super) async fn take_up(self: &Arc<Self>, run_id: &str) -> Result<TakenUp, Fault> {
        let leased = Leased::take(&self.journal, run_id).await.map_err(Fault::Store)?;
        if leased.is_to_be_quarantined() {
            leased.give_back().await.map_err(Fault::Store)?;
            tracing::error!(run_id, "set aside: its drivers died again and again before anything happened in it");
            return Ok(TakenUp::Quarantined);
        }
        Ok(TakenUp::Leased(self.recorded(run_id).await?, leased))
    }
}
