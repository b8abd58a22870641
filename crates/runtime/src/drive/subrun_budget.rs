//! Counts the sub-runs of one outermost run, at every depth and across all of their drivers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::world::World;
use loopctl_engine::state::RunHeader;
use loopctl_lang::program::{MAX_SUBRUNS, Program};

/// What the model reads when no further run is started.
pub(super) fn full() -> String {
    format!("not called: this run and the loops under it have called {MAX_SUBRUNS} loops, and no more are allowed")
}

/// The number of sub-runs of one outermost run.
#[derive(Debug, Default)]
pub(super) struct SubrunBudget {
    called: AtomicU64,
}

impl SubrunBudget {
    /// Counts a sub-run that is about to start. `false`: the limit is reached.
    pub fn enter(&self) -> bool {
        let one_more = |called: u64| (called < MAX_SUBRUNS).then(|| called.saturating_add(1));
        self.called.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).is_ok()
    }
}

/// The shared budgets of the runs that are driven now and may call loops, by the id of each run.
#[derive(Debug, Default)]
pub(super) struct SubrunBudgets(Mutex<HashMap<String, Arc<BudgetEntry>>>);

/// The entry of one driver's run: the next driver of the run has another one, with the same budget or not.
#[derive(Debug)]
struct BudgetEntry(Arc<SubrunBudget>);

impl SubrunBudgets {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<BudgetEntry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of a run: it shares the budget of its caller, which is driven at the same time. A run without
    /// a caller starts a budget.
    fn join(&self, run_id: &str, caller: Option<&str>) -> SubrunBudgetGuard<'_> {
        let mut all = self.all();
        let budget = caller.and_then(|caller| Some(Arc::clone(&all.get(caller)?.0))).unwrap_or_default();
        let place = Arc::new(BudgetEntry(budget));
        all.insert(run_id.to_owned(), Arc::clone(&place));
        SubrunBudgetGuard { budgets: self, run_id: run_id.to_owned(), place }
    }
}

/// The entry of a driven run: removed when its driver leaves.
pub(super) struct SubrunBudgetGuard<'a> {
    budgets: &'a SubrunBudgets,
    run_id: String,
    place: Arc<BudgetEntry>,
}

impl<'a> SubrunBudgetGuard<'a> {
    /// The entry of a run; none when its loop can't call loops.
    pub fn of(world: &'a World, program: &Program, header: &RunHeader) -> Option<Self> {
        let calls = !program.called_loops().is_empty();
        calls.then(|| {
            world.subrun_budgets.join(&header.run_id, header.caller.as_ref().map(|caller| caller.run_id.as_str()))
        })
    }

    /// The budget that the run shares.
    pub fn budget(&self) -> Arc<SubrunBudget> {
        Arc::clone(&self.place.0)
    }

    /// Counts the sub-runs of earlier drivers.
    pub fn had(&self, called: u64) {
        self.place.0.called.store(called, Ordering::SeqCst);
    }
}

impl Drop for SubrunBudgetGuard<'_> {
    fn drop(&mut self) {
        let mut all = self.budgets.all();
        // The lease is released before this: another driver may have resumed the run and made its own entry.
        if all.get(&self.run_id).is_some_and(|place| Arc::ptr_eq(place, &self.place)) {
            all.remove(&self.run_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_under_one_run_are_counted_together_whoever_calls_them() {
        let budgets = SubrunBudgets::default();
        let boss = budgets.join("r", None);
        let child = budgets.join("r.1.0", Some("r"));
        let grandchild = budgets.join("r.1.0.1.0", Some("r.1.0"));
        let other = budgets.join("s", None);
        boss.had(MAX_SUBRUNS - 3);
        assert!(grandchild.budget().enter() && child.budget().enter() && boss.budget().enter());
        for full in [&boss, &child, &grandchild] {
            assert!(!full.budget().enter(), "{}", full.run_id);
        }
        assert!(other.budget().enter(), "another run has its own");
    }

    #[test]
    fn as_many_as_are_allowed_enter_from_several_threads_and_none_more() {
        let budget = SubrunBudget::default();
        let entered = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..MAX_SUBRUNS {
                        entered.fetch_add(u64::from(budget.enter()), Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(entered.into_inner(), MAX_SUBRUNS);
    }

    #[test]
    fn a_run_that_is_left_is_forgotten() {
        let budgets = SubrunBudgets::default();
        let boss = budgets.join("r", None);
        drop(budgets.join("r.1.0", Some("r")));
        assert_eq!(budgets.all().keys().collect::<Vec<_>>(), ["r"]);
        drop(boss);
        assert!(budgets.all().is_empty());
    }

    #[test]
    fn a_driver_that_leaves_late_takes_nothing_from_the_one_that_came_after_it() {
        for caller in [None, Some("q")] {
            let budgets = SubrunBudgets::default();
            let above = budgets.join("q", None);
            let late = budgets.join("r", caller);
            // The lease was released before the driver was gone, and another driver has resumed the run.
            let next = budgets.join("r", caller);
            drop(late);
            let child = budgets.join("r.1.0", Some("r"));
            next.had(MAX_SUBRUNS);
            assert!(!child.budget().enter(), "it counts with the run that called it");
            drop((above, next, child));
            assert!(budgets.all().is_empty());
        }
    }
}
