//! Runs that wait for their model. Each is claimed again after a wait that grows, until its model answers. The next
//! request of the run itself shows whether it does: no other one is sent.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Scheduler;
use crate::drive::clock;
use crate::engine::outcome::Termination;
use crate::engine::state::Phase;
use crate::language::react::Retry;
use crate::serve::run_store::FoldedRun;
use futures_util::FutureExt as _;

/// The longest wait before a run asks its model again.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// The wait before the store is asked again to note when a run asks its model again.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The most runs whose failures are remembered. Another server may drive one of them next, and then it is not
/// forgotten here.
const MAX_REMEMBERED_RUNS: usize = 100_000;

/// The runs that wait for their model: how often in a row it could not be reached.
#[derive(Debug, Default)]
pub(super) struct Outages {
    failures: HashMap<String, u32>,
}

impl Outages {
    /// The wait before the next attempt. `first_ms`: the wait after the first failure.
    fn next_wait(&mut self, run_id: &str, first_ms: u64) -> Duration {
        if self.failures.len() >= MAX_REMEMBERED_RUNS {
            self.failures.clear();
        }
        let failures = self.failures.entry(run_id.to_owned()).or_default();
        let doubled = first_ms.max(1).saturating_mul(1_u64.checked_shl(*failures).unwrap_or(u64::MAX));
        *failures = failures.saturating_add(1);
        Duration::from_millis(doubled).min(MAX_WAIT)
    }

    /// The run waits no longer for its model.
    fn forget(&mut self, run_id: &str) {
        self.failures.remove(run_id);
    }
}

impl Scheduler {
    /// Called when a driver has left a run: if it waits for its model, the store gets the time of its next attempt.
    pub(super) fn resume_after_outage(self: &Arc<Self>, run_id: &str, left: Option<&FoldedRun>) {
        let Some(FoldedRun { program, state }) = left else { return };
        let is_outage = match &state.phase {
            Phase::Paused { pause, .. } => pause.question.kind == Termination::ModelError && !state.interrupted,
            _ => false,
        };
        let wait = {
            let mut schedule = self.schedule();
            if !is_outage {
                return schedule.outages.forget(run_id);
            }
            // The waits grow on from where the retries of a single request stopped.
            let most_ms = program.as_loop().map_or(Retry::default().max_ms, |program| program.properties.retry.max_ms);
            schedule.outages.next_wait(run_id, most_ms)
        };
        // Runs that failed together must not come back together.
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let wait_ms = fastrand::u64(wait_ms / 2..=wait_ms);
        tracing::info!(run_id, wait_ms, "the model can't be reached; the run asks it again later");
        let at_ms = clock::wall_ms().saturating_add_unsigned(wait_ms);
        let (scheduler, run_id) = (Arc::downgrade(self), run_id.to_owned());
        tokio::spawn(
            async move {
                while let Some(scheduler) = Weak::upgrade(&scheduler).filter(|scheduler| !scheduler.is_draining()) {
                    let Err(fault) = scheduler.runs.journal.retry_at(&run_id, at_ms).await else { break };
                    tracing::error!(
                        run_id,
                        code = fault.code(),
                        "the time of the next attempt can't be stored: {fault}"
                    );
                    tokio::time::sleep(STORE_RETRY_INTERVAL).await;
                }
                tokio::time::sleep(Duration::from_millis(wait_ms)).await;
                if let Some(scheduler) = Weak::upgrade(&scheduler) {
                    scheduler.look();
                }
            }
            .boxed(),
        );
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
            waits.push(outages.next_wait("r", 30_000).as_secs());
        }
        assert_eq!(waits, [30, 60, 120, 240, 300, 300]);
        outages.forget("r");
        assert_eq!(outages.next_wait("r", 0), Duration::from_millis(1), "without a wait it would never rest");
    }
}
