//! Leases: which runs this driver has, and until when it can be sure of them. A driver is one row, which says until
//! when its runs must be left alone. Only the database's clock is compared; this driver stops before its time by both
//! of its own clocks, of which the monotonic one stops in a suspended machine.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::journal::CancelRequest;
use crate::journal::lease_clock::Clock;

/// A run that this driver has.
#[derive(Debug, Clone)]
pub(super) struct HeldRow {
    /// Its key in the tables.
    pub row: i64,
    /// The number of the lease.
    pub fence: u64,
    /// The number of its next event; none when only the database knows it.
    pub next: Option<u64>,
    pub session: Option<String>,
    /// When it was leased, or the request to end it was taken, by the monotonic clock.
    pub since_ms: u64,
}

/// What is known of the leases without asking the database.
pub(super) struct HeldRows {
    clock: Clock,
    ttl: Duration,
    known: RwLock<KnownLeases>,
}

#[derive(Default)]
struct KnownLeases {
    runs: HashMap<String, HeldRow>,
    /// Until when nobody else takes them, by the wall clock and by the monotonic one.
    until: (i64, u64),
    /// The requests to end runs, and when they were asked for by the monotonic clock.
    cancels: HashMap<String, KnownCancel>,
    requests_at_ms: Option<u64>,
    /// The runs about which decisions wait, as of the same moment; with when this process queued one since.
    decided: HashMap<String, Option<u64>>,
}

/// A request to end a run.
struct KnownCancel {
    request: CancelRequest,
    /// When this process made it, by the monotonic clock; none when it was looked up.
    made_at_ms: Option<u64>,
}

impl KnownLeases {
    /// Whether the requests about a run were asked for since it was leased, and not too long ago.
    fn is_recent(&self, run_id: &str, now_and_most: (u64, u64)) -> bool {
        let (now_ms, most_ms) = now_and_most;
        let at_ms = self.requests_at_ms.filter(|at_ms| now_ms.saturating_sub(*at_ms) <= most_ms);
        self.runs.get(run_id).zip(at_ms).is_some_and(|(held, at_ms)| held.since_ms < at_ms)
    }
}

impl HeldRows {
    pub(super) fn new(clock: Clock, ttl: Duration) -> Self {
        Self { clock, ttl, known: RwLock::default() }
    }

    /// How long the lease of a driver lasts.
    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    fn known(&self) -> RwLockReadGuard<'_, KnownLeases> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, KnownLeases> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Both clocks, to be read before a lease is asked for.
    pub(super) fn now(&self) -> (i64, u64) {
        (self.clock.wall_ms(), self.clock.monotonic_ms())
    }

    /// The lease was renewed; it was asked for at `sent`. The last twentieth is not relied on.
    pub(super) fn renewed(&self, sent: (i64, u64)) {
        let ttl_ms = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        let sure_ms = ttl_ms - ttl_ms / 20;
        self.change().until = (sent.0.saturating_add_unsigned(sure_ms), sent.1.saturating_add(sure_ms));
    }

    /// Whether nobody can have taken a run from this driver.
    pub(super) fn is_fresh(&self) -> bool {
        let (now, until) = (self.now(), self.known().until);
        now.0 < until.0 && now.1 < until.1
    }

    /// Whether the lease is old enough to be renewed.
    pub(super) fn is_due(&self) -> bool {
        let third_ms = i64::try_from(self.ttl.as_millis() / 3).unwrap_or(i64::MAX);
        !self.is_fresh() || self.now().0.saturating_add(2 * third_ms) >= self.known().until.0
    }

    pub(super) fn held(&self, run_id: &str) -> Option<HeldRow> {
        self.known().runs.get(run_id).cloned()
    }

    /// The run, if the lease of this number is held.
    pub(super) fn held_by(&self, run_id: &str, fence: u64) -> Option<HeldRow> {
        self.held(run_id).filter(|held| held.fence == fence)
    }

    pub(super) fn all(&self) -> Vec<(String, HeldRow)> {
        self.known().runs.iter().map(|(run_id, held)| (run_id.clone(), held.clone())).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known().runs.is_empty()
    }

    /// A run was leased.
    pub(super) fn granted(&self, run_id: &str, row: i64, lease: (u64, u64), session: Option<String>) {
        let since_ms = self.clock.monotonic_ms();
        let held = HeldRow { row, fence: lease.0, next: Some(lease.1), session, since_ms };
        self.change().runs.insert(run_id.to_owned(), held);
    }

    /// The number of the next event, for who holds the lease; `next` is the one after it from now on.
    pub(super) fn set_next(&self, run_id: &str, fence: u64, next: Option<u64>) {
        if let Some(held) = self.change().runs.get_mut(run_id).filter(|held| held.fence == fence) {
            held.next = next;
        }
    }

    /// The lease of this number is not held any more.
    pub(super) fn lost(&self, run_id: &str, fence: u64) {
        let mut known = self.change();
        if known.runs.get(run_id).is_some_and(|held| held.fence == fence) {
            known.runs.remove(run_id);
        }
    }

    /// The requests to end runs of this driver, and those about which decisions wait, as they were asked for at this
    /// moment.
    pub(super) fn set_requests(&self, at_ms: u64, cancels: HashMap<String, CancelRequest>, decided: HashSet<String>) {
        let mut known = self.change();
        // The look-up may have been before what this process wrote meanwhile.
        let is_newer = |made_at_ms: Option<u64>| made_at_ms.is_some_and(|made_at_ms| made_at_ms >= at_ms);
        known.cancels.retain(|_, cancel| is_newer(cancel.made_at_ms));
        known.decided.retain(|_, made_at_ms| is_newer(*made_at_ms));
        for (run_id, request) in cancels {
            known.cancels.insert(run_id, KnownCancel { request, made_at_ms: None });
        }
        for run_id in decided {
            known.decided.entry(run_id).or_default();
        }
        known.requests_at_ms = Some(at_ms);
    }

    /// An event took the request to end a run, or may have: what was looked up before says nothing of the run any more.
    pub(super) fn forget_requests(&self, run_id: &str, fence: u64) {
        let since_ms = self.clock.monotonic_ms();
        if let Some(held) = self.change().runs.get_mut(run_id).filter(|held| held.fence == fence) {
            held.since_ms = since_ms;
        }
    }

    /// This process queued a decision about a run.
    pub(super) fn add_decided(&self, run_id: &str) {
        let made_at_ms = Some(self.clock.monotonic_ms());
        let mut known = self.change();
        if known.runs.contains_key(run_id) {
            known.decided.insert(run_id.to_owned(), made_at_ms);
        }
    }

    /// The request that holds after this process made one.
    pub(super) fn add_cancel(&self, run_id: &str, request: CancelRequest) {
        let made_at_ms = Some(self.clock.monotonic_ms());
        let mut known = self.change();
        if known.runs.contains_key(run_id) {
            known.cancels.insert(run_id.to_owned(), KnownCancel { request, made_at_ms });
        }
    }

    /// Whether the end of a run was requested; none when only the database knows.
    pub(super) fn cancel(&self, run_id: &str, at_most_ms: u64) -> Option<Option<CancelRequest>> {
        let known = self.known();
        let is_recent = known.is_recent(run_id, (self.clock.monotonic_ms(), at_most_ms));
        is_recent.then(|| known.cancels.get(run_id).map(|known| known.request.clone()))
    }

    /// Whether decisions about a run may wait; also when only the database knows.
    pub(super) fn may_be_decided(&self, run_id: &str, at_most_ms: u64) -> bool {
        let known = self.known();
        known.decided.contains_key(run_id) || !known.is_recent(run_id, (self.clock.monotonic_ms(), at_most_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_that_this_process_queued_is_known_at_once_and_until_a_later_look_up() {
        let clock = Clock::new();
        let held = HeldRows::new(clock.clone(), Duration::from_secs(10));
        held.granted("r", 1, (1, 1), None);
        clock.advance(10);
        let before = clock.monotonic_ms();
        held.set_requests(before, HashMap::new(), HashSet::new());
        assert!(!held.may_be_decided("r", 1_000));
        clock.advance(10);
        held.add_decided("r");
        held.add_decided("another driver's");
        assert!(held.may_be_decided("r", 1_000));
        held.set_requests(before, HashMap::new(), HashSet::new());
        assert!(held.may_be_decided("r", 1_000));
        clock.advance(10);
        held.set_requests(clock.monotonic_ms(), HashMap::new(), HashSet::new());
        assert!(!held.may_be_decided("r", 1_000));
    }

    #[test]
    fn a_request_that_was_taken_is_none_until_a_later_look_up() {
        let clock = Clock::new();
        let held = HeldRows::new(clock.clone(), Duration::from_secs(10));
        held.granted("r", 1, (1, 1), None);
        clock.advance(10);
        let before = clock.monotonic_ms();
        let asked = || HashMap::from([("r".to_owned(), CancelRequest::default())]);
        held.set_requests(before, asked(), HashSet::new());
        assert_eq!(held.cancel("r", 1_000), Some(Some(CancelRequest::default())));
        clock.advance(10);
        held.forget_requests("r", 1);
        assert_eq!(held.cancel("r", 1_000), None);
        // Its statement was done before the request was taken.
        held.set_requests(before, asked(), HashSet::new());
        assert_eq!(held.cancel("r", 1_000), None);
        clock.advance(10);
        held.set_requests(clock.monotonic_ms(), HashMap::new(), HashSet::new());
        assert_eq!(held.cancel("r", 1_000), Some(None));
    }

    #[test]
    fn a_look_up_of_before_does_not_undo_a_request_of_this_process() {
        let clock = Clock::new();
        let held = HeldRows::new(clock.clone(), Duration::from_secs(10));
        let asked = |reason: &str| CancelRequest { reason: Some(reason.to_owned()), by: None };
        held.granted("r", 1, (1, 1), None);
        clock.advance(10);
        let before = clock.monotonic_ms();
        held.set_requests(before, HashMap::new(), HashSet::new());
        assert_eq!(held.cancel("r", 1_000), Some(None));
        clock.advance(10);
        held.add_cancel("r", asked("enough"));
        // Its statement was done before the request's, and its answer came after it.
        held.set_requests(before, HashMap::new(), HashSet::new());
        assert_eq!(held.cancel("r", 1_000), Some(Some(asked("enough"))));
        clock.advance(10);
        held.set_requests(clock.monotonic_ms(), HashMap::from([("r".to_owned(), asked("first"))]), HashSet::new());
        assert_eq!(held.cancel("r", 1_000), Some(Some(asked("first"))));
        // It is looked up again: the run was reopened.
        clock.advance(10);
        held.set_requests(clock.monotonic_ms(), HashMap::new(), HashSet::new());
        assert_eq!(held.cancel("r", 1_000), Some(None));
    }
}
