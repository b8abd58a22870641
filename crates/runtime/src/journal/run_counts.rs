//! How many runs of a store need somebody: what metrics show, counted by the store.

use std::collections::BTreeMap;

use super::{CallbackState, RunSummary};
use loopctl_engine::outcome::{Status, Termination};

/// Moments in milliseconds since 1970, the latest first: they divide the runs that wait by how long they have waited.
pub type WaitMoments = [i64; 3];

/// How many runs of a store need somebody. Runs that other runs called are not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Quarantined runs.
    pub quarantined: u64,
    /// Runs whose models can't be reached, and that wait for them.
    pub model_away: u64,
    /// Runs that are not under way and whose callback is still to be made.
    pub callbacks_pending: u64,
    /// Runs that wait for a human, also while other parts of them are under way; in the order of loops and moments.
    pub waiting: Vec<WaitingRuns>,
}

/// Runs of a loop that have waited for a human for about the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRuns {
    /// The loop's name.
    pub loop_name: String,
    /// Since how many of the moments they have waited.
    pub moments: usize,
    /// Since when the first of them has waited, in milliseconds since 1970.
    pub oldest_ms: i64,
    /// How many they are.
    pub runs: u64,
}

impl RunCounts {
    /// The same of runs as lists show them.
    pub(super) fn of<'r>(runs: impl IntoIterator<Item = &'r RunSummary>, moments: WaitMoments) -> Self {
        let (mut counts, mut waiting) = (Self::default(), BTreeMap::<(String, usize), (i64, u64)>::new());
        for run in runs {
            let is_away = run.status == Status::Paused && run.termination == Some(Termination::ModelError);
            let is_pending = |of: &super::Callback| of.progress.state == CallbackState::Pending;
            counts.quarantined += u64::from(run.status == Status::Quarantined);
            counts.model_away += u64::from(is_away);
            counts.callbacks_pending +=
                u64::from(run.status != Status::Running && run.callback.as_ref().is_some_and(is_pending));
            if run.status != Status::Quarantined && run.waits_for_human() {
                let since_ms = run.waits_since_ms.unwrap_or(run.updated_at_ms);
                let passed = moments.into_iter().filter(|moment| since_ms <= *moment).count();
                let (oldest_ms, runs) = waiting.entry((run.loop_name.clone(), passed)).or_insert((since_ms, 0));
                *oldest_ms = since_ms.min(*oldest_ms);
                *runs += 1;
            }
        }
        let waiting = waiting.into_iter();
        let waiting = waiting.map(|((loop_name, moments), (oldest_ms, runs))| WaitingRuns {
            loop_name,
            moments,
            oldest_ms,
            runs,
        });
        Self { waiting: waiting.collect(), ..counts }
    }
}
