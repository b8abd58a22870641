//! Runs that wait for their model. Each is resumed after a wait that grows, until its model answers. The next request
//! of the run itself shows whether it does: no other one is sent.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{ActiveRun, QueuedRun, Scheduler};
use crate::engine::outcome::Termination;
use crate::engine::state::Phase;
use crate::serve::quotas::Owner;
use crate::serve::run_store::FoldedRun;

/// The longest wait before a run asks its model again.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The runs that wait for their model.
#[derive(Debug, Default)]
pub(super) struct Outages {
    waits: HashMap<String, OutageWait>,
}

/// How often in a row the model of a run could not be reached, and whether the next attempt is due later.
#[derive(Debug, Default)]
struct OutageWait {
    failures: u32,
    is_pending: bool,
}

impl Outages {
    /// The wait before the next attempt; none when it is due already. `first_ms`: the wait after the first failure.
    fn next_wait(&mut self, run_id: &str, first_ms: u64) -> Option<Duration> {
        let wait = self.waits.entry(run_id.to_owned()).or_default();
        if std::mem::replace(&mut wait.is_pending, true) {
            return None;
        }
        let doubled = first_ms.max(1).saturating_mul(1_u64.checked_shl(wait.failures).unwrap_or(u64::MAX));
        wait.failures = wait.failures.saturating_add(1);
        Some(Duration::from_millis(doubled).min(LONGEST_WAIT))
    }

    /// The run waits no longer for its model.
    fn forget(&mut self, run_id: &str) {
        self.waits.remove(run_id);
    }

    /// Whether the attempt that was due now is still wanted.
    fn is_due(&mut self, run_id: &str) -> bool {
        self.waits.get_mut(run_id).is_some_and(|wait| std::mem::take(&mut wait.is_pending))
    }
}

impl Scheduler {
    /// Called when a driver has left a run: if it waits for its model, it is resumed later.
    pub(super) fn resume_after_outage(self: &Arc<Self>, run_id: &str, owner: Owner, left: Option<&FoldedRun>) {
        let Some(FoldedRun { program, state }) = left else { return };
        let is_outage = match &state.phase {
            Phase::Paused { pause, .. } => pause.kind == Termination::ModelError && !state.interrupted,
            _ => false,
        };
        let wait = {
            let mut schedule = self.schedule();
            if !is_outage {
                return schedule.outages.forget(run_id);
            }
            // The waits grow on from where the retries of a single request stopped.
            schedule.outages.next_wait(run_id, program.properties.retry.max_ms)
        };
        let Some(wait) = wait else { return };
        // Runs that failed together must not come back together.
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let wait = Duration::from_millis(fastrand::u64(wait_ms / 2..=wait_ms));
        tracing::info!(run_id, wait_ms, "the model can't be reached; the run asks it again later");
        let (scheduler, run_id) = (Arc::downgrade(self), run_id.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if let Some(scheduler) = Weak::upgrade(&scheduler) {
                scheduler.ask_again(run_id, &owner);
            }
        });
    }

    /// Queues a run that waits for its model, unless it is driven.
    fn ask_again(self: &Arc<Self>, run_id: String, owner: &Owner) {
        {
            let mut schedule = self.schedule();
            if !schedule.outages.is_due(&run_id) || schedule.active.contains_key(&run_id) {
                return;
            }
            schedule.active.insert(run_id.clone(), ActiveRun::new());
            schedule.queue.push(owner, QueuedRun { run_id, _permit: None });
        }
        self.start_queued();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_grow_to_five_minutes_and_begin_again_after_a_reply() {
        let mut outages = Outages::default();
        let mut waits = Vec::new();
        for _ in 0..6 {
            waits.push(outages.next_wait("r", 30_000).unwrap().as_secs());
            assert_eq!(outages.next_wait("r", 30_000), None, "one attempt is due, and no second one");
            assert!(outages.is_due("r") && !outages.is_due("r"));
        }
        assert_eq!(waits, [30, 60, 120, 240, 300, 300]);
        outages.next_wait("r", 0);
        outages.forget("r");
        assert!(!outages.is_due("r"), "the run waits no longer");
        assert_eq!(outages.next_wait("r", 0), Some(Duration::from_millis(1)), "without a wait it would never rest");
    }
}
