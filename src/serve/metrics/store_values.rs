//! What the store knows for the metrics: looked up once for all that ask at the same time, and never twice at once, however slow the
//! store is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

use super::labels::LabelValues;
use crate::drive::clock;
use crate::engine::run_stats::LimitUse;
use crate::journal::{RunCounts, StoreError, WaitMoments, Worker};

const MINUTE_MS: i64 = 60_000;
/// The bounds between the words for how long runs have waited, in milliseconds.
const AGE_BOUNDS_MS: [i64; 3] = [5 * MINUTE_MS, 60 * MINUTE_MS, 24 * 60 * MINUTE_MS];
/// How long runs have waited: below the first bound, from each of them on.
const AGES: [&str; 4] = ["under_5m", "under_1h", "under_1d", "over_1d"];

/// The moments since which runs have waited that are just as old as the bounds.
pub fn wait_moments(now_ms: i64) -> WaitMoments {
    AGE_BOUNDS_MS.map(|bound_ms| now_ms.saturating_sub(bound_ms))
}

/// What the store knows at a moment.
#[derive(Debug, Clone, Default)]
pub struct StoreValues {
    /// Runs that wait for a slot.
    pub queued: usize,
    /// How long the oldest of them has waited.
    pub queue_age: Duration,
    /// The runs that need somebody, by the moments of [`wait_moments`].
    pub runs: RunCounts,
    /// The processes that drive runs of the store.
    pub workers: Vec<Worker>,
    /// What the accounts of spending limits hold, that with the largest share first.
    pub limits: Vec<LimitUse>,
}

impl StoreValues {
    /// The number of waiting runs for each series, also where there is none.
    pub(super) fn waiting_by_label<'l>(&self, loops: &'l LabelValues) -> BTreeMap<(&'l str, &'static str), u64> {
        let mut counts: BTreeMap<(&str, &'static str), u64> =
            loops.with_other().flat_map(|name| AGES.map(|age| ((name, age), 0))).collect();
        for waiting in &self.runs.waiting {
            let [.., oldest] = AGES;
            let age = AGES.get(waiting.moments).copied().unwrap_or(oldest);
            *counts.entry((loops.of(&waiting.loop_name), age)).or_default() += waiting.runs;
        }
        counts
    }
}

/// The longest time of a look. One that never ends must not be what all later callers wait for.
const MAX_LOOK: Duration = Duration::from_secs(30);

type Looked<T> = Shared<BoxFuture<'static, Result<Arc<T>, StoreError>>>;

/// A look at the store that several callers may share.
pub struct StoreLook<T>(Mutex<Option<Looked<T>>>);

impl<T> Default for StoreLook<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Send + Sync + 'static> StoreLook<T> {
    /// What a look finds: the one that is under way, or else a new one. `None`: it took longer than this. It continues then, and
    /// the next caller waits for the same.
    pub async fn within(
        &self,
        most: Duration,
        look: impl FnOnce() -> BoxFuture<'static, Result<T, StoreError>>,
    ) -> Option<Result<Arc<T>, StoreError>> {
        let looked = {
            let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let known = under_way.take().filter(|looked| looked.peek().is_none());
            let looked = known.unwrap_or_else(|| {
                let looked =
                    tokio::time::timeout(MAX_LOOK, look()).map(|found| found.unwrap_or_else(|_| Err(too_late())));
                let looked = looked.map(|found| found.map(Arc::new)).boxed().shared();
                // It goes to its end also when nobody waits for it any more.
                tokio::spawn(looked.clone().map(drop));
                looked
            });
            under_way.insert(looked).clone()
        };
        tokio::time::timeout(most, looked).await.ok()
    }
}

fn too_late() -> StoreError {
    StoreError::Other(format!("the store has not answered for {} s", MAX_LOOK.as_secs()))
}

/// How long ago a moment was, in milliseconds; none for one that is to come.
pub(in crate::serve) fn age_ms(since_ms: i64) -> u64 {
    u64::try_from(clock::wall_ms().saturating_sub(since_ms)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_asked_once_however_many_ask() {
        let (look, asked, gate) =
            (StoreLook::<usize>::default(), Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let ask = || {
            let (asked, gate) = (Arc::clone(&asked), Arc::clone(&gate));
            look.within(Duration::from_millis(5), move || {
                async move {
                    let number = asked.fetch_add(1, Ordering::SeqCst);
                    drop(gate.acquire().await);
                    Ok(number)
                }
                .boxed()
            })
        };
        for _ in 0..50 {
            assert!(ask().await.is_none());
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        gate.add_permits(1);
        while ask().await.is_none() {}
        assert!(asked.load(Ordering::SeqCst) <= 2);
    }
}
