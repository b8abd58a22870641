//! A call among those that may be made at once, in all processes of a store: a reservation of the store's ledger, which counts for as
//! long as the run is driven that makes the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::turns::SlotOwner;
use crate::drive::clock;
use crate::journal::ledger::{AccountTime, MostSpent, Reservation, Reserving, Settlement, SpentAmount};
use crate::journal::{Journal, StoreError};

/// The first wait for a call of another process to end; it doubles with each, with jitter.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(20);
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(320);

/// The numbers of the calls of this process.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The time of an account that counts what is under way alone.
const NOW: AccountTime = AccountTime { from_ms: 0, until_ms: None, rolling: None };

/// A call that may be made; dropping this makes room for the next one.
pub(super) struct Slot {
    journal: Arc<dyn Journal>,
    account: String,
    id: String,
}

impl Slot {
    /// Takes one of at most this many; none while all are taken.
    ///
    /// # Errors
    /// That of the store.
    pub async fn take(
        journal: &Arc<dyn Journal>,
        account: String,
        run: &SlotOwner,
        most: u32,
    ) -> Result<Option<Self>, StoreError> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        // Two drivers of a run have different leases, and two processes different runs, or leases.
        let id = format!("{} {} {} {number}", run.run_id, run.fence, clock::wall_ms());
        let amount = SpentAmount { tokens: 1, usd_nanos: 0 };
        let reservation = Reservation {
            account: account.clone(),
            id: id.clone(),
            run_id: run.run_id.clone(),
            fence: run.fence,
            amount,
            most: MostSpent { tokens: Some(i64::from(most)), usd_nanos: None },
            time: NOW,
        };
        // It is given back, too, when nobody waits for the answer any longer.
        let slot = Self { journal: Arc::clone(journal), account, id };
        let reserving = journal.reserve(reservation).await?;
        if reserving == Reserving::Reserved {
            return Ok(Some(slot));
        }
        slot.forget();
        Ok(None)
    }

    /// There is nothing to give back.
    fn forget(mut self) {
        self.id.clear();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.id.is_empty() {
            return;
        }
        // Nobody waits for it: what is not given back counts until the run is left.
        drop(self.journal.settle(Settlement {
            account: std::mem::take(&mut self.account),
            id: std::mem::take(&mut self.id),
            used: SpentAmount::default(),
            time: NOW,
            warn_at: MostSpent::default(),
            now_ms: clock::wall_ms(),
            warned_since_ms: 0,
        }));
    }
}
