//! The turns of those that wait: one organisation after the other, within it one run after the other, and within that in the order in
//! which they came. So a run with a thousand items keeps no other one waiting for more than one of them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// For whom something waits: the organisation, and the run that nobody called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::drive) struct TurnOwner {
    pub org: Option<Arc<str>>,
    pub run: Arc<str>,
}

/// The run that makes a call, with the lease of its driver.
pub(in crate::drive) struct SlotOwner {
    pub run_id: String,
    pub fence: u64,
}

/// What waits, in turns. Each operation takes the same time, however many wait.
pub(super) struct FairTurns<T> {
    orgs: HashMap<Option<Arc<str>>, TurnsOfRuns<T>>,
    order: VecDeque<Option<Arc<str>>>,
}

struct TurnsOfRuns<T> {
    runs: HashMap<Arc<str>, VecDeque<T>>,
    order: VecDeque<Arc<str>>,
}

impl<T> Default for FairTurns<T> {
    fn default() -> Self {
        Self { orgs: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> FairTurns<T> {
    pub fn push(&mut self, asker: TurnOwner, waits: T) {
        let TurnOwner { org, run } = asker;
        let turns = self.orgs.entry(org.clone()).or_insert_with(|| {
            self.order.push_back(org);
            TurnsOfRuns { runs: HashMap::new(), order: VecDeque::new() }
        });
        let of_run = turns.runs.entry(Arc::clone(&run)).or_insert_with(|| {
            turns.order.push_back(run);
            VecDeque::new()
        });
        of_run.push_back(waits);
    }

    /// The next one; those that have gone have no turn.
    pub fn next(&mut self, has_gone: impl Fn(&T) -> bool) -> Option<T> {
        loop {
            let org = self.order.pop_front()?;
            let found = self.orgs.get_mut(&org).and_then(|turns| turns.next(&has_gone));
            if self.orgs.get(&org).is_some_and(|turns| !turns.order.is_empty()) {
                self.order.push_back(org);
            } else {
                self.orgs.remove(&org);
            }
            if found.is_some() {
                return found;
            }
        }
    }
}

impl<T> TurnsOfRuns<T> {
    fn next(&mut self, has_gone: impl Fn(&T) -> bool) -> Option<T> {
        loop {
            let run = self.order.pop_front()?;
            let Some(waiting) = self.runs.get_mut(&run) else { continue };
            let found = std::iter::from_fn(|| waiting.pop_front()).find(|waits| !has_gone(waits));
            if waiting.is_empty() {
                self.runs.remove(&run);
            } else {
                self.order.push_back(run);
            }
            if found.is_some() {
                return found;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(org: Option<&str>, run: &str) -> TurnOwner {
        TurnOwner { org: org.map(Arc::from), run: run.into() }
    }

    fn all(turns: &mut FairTurns<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| turns.next(|waits| waits.starts_with('-'))).collect()
    }

    #[test]
    fn organisations_and_runs_have_turns_and_what_came_first_is_first_within_them() {
        let mut turns = FairTurns::default();
        for (org, run, waits) in [
            (Some("a"), "one", "a11"),
            (Some("a"), "one", "a12"),
            (Some("a"), "one", "-gone"),
            (Some("a"), "one", "a13"),
            (Some("a"), "two", "a21"),
            (Some("b"), "three", "b1"),
            (Some("b"), "three", "b2"),
            (Some("c"), "four", "-gone"),
            (None, "five", "n1"),
        ] {
            turns.push(asker(org, run), waits);
        }
        assert_eq!(all(&mut turns), ["a11", "b1", "n1", "a21", "b2", "a12", "a13"]);
        assert!(turns.orgs.is_empty() && turns.order.is_empty(), "nothing is kept of who has nothing waiting");
    }

    #[test]
    fn who_asks_again_and_again_comes_after_those_that_wait() {
        let mut turns = FairTurns::default();
        for _ in 0..250 {
            turns.push(asker(Some("many"), "run"), "many");
        }
        turns.push(asker(Some("few"), "run"), "few");
        assert_eq!((turns.next(|_| false), turns.next(|_| false)), (Some("many"), Some("few")));
        for _ in 0..20 {
            turns.push(asker(Some("few"), "run"), "few");
            assert_eq!((turns.next(|_| false), turns.next(|_| false)), (Some("many"), Some("few")));
        }
    }
}
