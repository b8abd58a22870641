//! Runs that wait for their model. Each is claimed again after a wait that grows, until its model answers. The next
//! request of the run itself shows whether it does: no other one is sent.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Scheduler;
use crate::drive::clock;
use crate::engine::operation::OpenStep;
use crate::engine::state::State;
use crate::engine::wait_deadline::away_model;
use crate::language::react::Retry;
use crate::program::Program;
use crate::serve::run_store::FoldedRun;
use futures_util::FutureExt as _;

/// The longest wait before a run asks its model again.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// The wait before the store is asked again to note when a run asks its model again.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// The most runs whose failures are remembered. Another server may drive one of them next, and then it is not
/// forgotten here.
const MAX_REMEMBERED_RUNS: usize = 100_000;

/// The runs that wait for their model: how often in a row it could not be reached, and when it is asked again.
#[derive(Debug, Default)]
pub(super) struct Outages {
    runs: HashMap<String, Outage>,
}

/// The models of a run that can't be reached.
#[derive(Debug, Default)]
struct Outage {
    /// How often in a row.
    failures: u32,
    /// When they are asked again, in milliseconds since 1970.
    next_ms: i64,
}

impl Outages {
    /// The wait before the next attempt. `first_ms`: the wait after the first failure.
    fn next_wait(&mut self, run_id: &str, first_ms: u64) -> Duration {
        if self.runs.len() >= MAX_REMEMBERED_RUNS {
            self.runs.clear();
        }
        let Outage { failures, .. } = self.runs.entry(run_id.to_owned()).or_default();
        let doubled = first_ms.max(1).saturating_mul(1_u64.checked_shl(*failures).unwrap_or(u64::MAX));
        *failures = failures.saturating_add(1);
        Duration::from_millis(doubled).min(MAX_WAIT)
    }

    /// When the models are asked again of a run that is left, in milliseconds since 1970: where it was taken up for something else, as
    /// it was. `first_ms`: the wait after the first failure.
    fn next_attempt(&mut self, run_id: &str, first_ms: u64, now_ms: i64) -> i64 {
        if let Some(next_ms) = self.resting_until_ms(run_id, now_ms) {
            return next_ms;
        }
        let wait = self.next_wait(run_id, first_ms);
        // Runs that failed together must not come back together.
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let next_ms = now_ms.saturating_add_unsigned(fastrand::u64(wait_ms / 2..=wait_ms));
        if let Some(outage) = self.runs.get_mut(run_id) {
            outage.next_ms = next_ms;
        }
        next_ms
    }

    /// When the models of a run are asked again that rest until then, in milliseconds since 1970.
    fn resting_until_ms(&self, run_id: &str, now_ms: i64) -> Option<i64> {
        self.runs.get(run_id).map(|outage| outage.next_ms).filter(|next_ms| *next_ms > now_ms)
    }

    /// The run waits no longer for its model, or asks it now.
    pub(super) fn forget(&mut self, run_id: &str) {
        self.runs.remove(run_id);
    }
}

impl Scheduler {
    /// Whether the models of a run that can't be reached are asked again later, and not when the run is taken up for something else.
    pub(super) fn models_rest(&self, run_id: &str) -> bool {
        self.schedule().outages.resting_until_ms(run_id, clock::wall_ms()).is_some()
    }

    /// Called when a driver has left a run: if it waits for its model, the store gets the time of its next attempt.
    pub(super) fn resume_after_outage(self: &Arc<Self>, run_id: &str, left: Option<&FoldedRun>) {
        let Some(FoldedRun { program, state }) = left else { return };
        let is_outage = away_model(state).is_some() && !state.interrupted;
        let now_ms = clock::wall_ms();
        let at_ms = {
            let mut schedule = self.schedule();
            if !is_outage {
                return schedule.outages.forget(run_id);
            }
            // The waits grow on from where the retries of a single request stopped.
            schedule.outages.next_attempt(run_id, longest_retry_wait_ms(program, state), now_ms)
        };
        let wait_ms = u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or_default();
        tracing::info!(run_id, wait_ms, "the model can't be reached; the run asks it again later");
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

/// The longest wait between two requests to a model of a run that can't be reached: its own, or those of the loops that its steps are.
fn longest_retry_wait_ms(program: &Program, state: &State) -> u64 {
    let of_loop = |program: &Program| program.as_loop().map(|program| program.properties.retry.max_ms);
    let of_step = |open: &OpenStep| program.as_flow()?.step_at(&open.address)?.subrun().and_then(|run| of_loop(run));
    let is_away = |open: &&OpenStep| open.progress.away_model().is_some();
    let of_steps = || state.open_steps().into_iter().filter(is_away).filter_map(of_step).max();
    of_loop(program).or_else(of_steps).unwrap_or(Retry::default().max_ms)
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
        let soon_ms = outages.next_attempt("r", 30_000, 7_000);
        assert!((150_000..=300_000).contains(&(soon_ms - 7_000)), "{soon_ms}");
        assert_eq!(outages.next_attempt("r", 30_000, soon_ms - 1), soon_ms, "it was taken up for something else");
        assert!(outages.next_attempt("r", 30_000, soon_ms) > soon_ms);
        outages.forget("r");
        assert_eq!(outages.next_wait("r", 0), Duration::from_millis(1), "without a wait it would never rest");
    }
}
