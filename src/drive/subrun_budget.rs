//! The runs under one outermost run: those that it called, and those that they called, counted by all of
//! their drivers together, for 32 calls a turn, five loops deep, would be 33 million.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::world::World;
use crate::engine::state::RunHeader;
use crate::program::Program;

#[cfg(test)]
mod tests;

/// How many runs one outermost run calls in all, with those that they call.
pub(super) const MOST: u64 = 1_000;

/// What the model reads when no other run is called.
pub(super) fn full() -> String {
    format!("not called: this run and the loops under it have called {MOST} loops, and no more are allowed")
}

/// The runs under one outermost run.
#[derive(Debug, Default)]
pub(super) struct SubrunBudget {
    called: AtomicU64,
}

impl SubrunBudget {
    /// Counts a run that is about to be called. `false`: it is one too many.
    pub fn enter(&self) -> bool {
        let one_more = |called: u64| (called < MOST).then(|| called.saturating_add(1));
        self.called.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).is_ok()
    }
}

/// The shared budgets of the runs that are driven now and may call loops, by the id of each run.
#[derive(Debug, Default)]
pub(super) struct SubrunBudgets(Mutex<HashMap<String, Arc<BudgetEntry>>>);

/// The place of one driver's run: the next driver of the run has another one, in the same family or not.
#[derive(Debug)]
struct BudgetEntry(Arc<SubrunBudget>);

impl SubrunBudgets {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<BudgetEntry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a run in its family: in that of its caller, which is driven while it is. Another one
    /// begins a family.
    fn join(&self, run_id: &str, caller: Option<&str>) -> SubrunBudgetGuard<'_> {
        let mut all = self.all();
        let family = caller.and_then(|caller| Some(Arc::clone(&all.get(caller)?.0))).unwrap_or_default();
        let place = Arc::new(BudgetEntry(family));
        all.insert(run_id.to_owned(), Arc::clone(&place));
        SubrunBudgetGuard { budgets: self, run_id: run_id.to_owned(), place }
    }
}

/// The place of a run that is driven: given up when its driver leaves.
pub(super) struct SubrunBudgetGuard<'a> {
    budgets: &'a SubrunBudgets,
    run_id: String,
    place: Arc<BudgetEntry>,
}

impl<'a> SubrunBudgetGuard<'a> {
    /// The place of a run; none when its loop can't call loops.
    pub fn of(world: &'a World, program: &Program, header: &RunHeader) -> Option<Self> {
        let calls = program.tools.iter().any(|tool| tool.called_loop().is_some());
        calls.then(|| {
            world.subrun_budgets.join(&header.run_id, header.caller.as_ref().map(|caller| caller.run_id.as_str()))
        })
    }

    /// The family.
    pub fn family(&self) -> Arc<SubrunBudget> {
        Arc::clone(&self.place.0)
    }

    /// So many runs were called before this driver came.
    pub fn had(&self, called: u64) {
        self.place.0.called.store(called, Ordering::SeqCst);
    }
}

impl Drop for SubrunBudgetGuard<'_> {
    fn drop(&mut self) {
        let mut all = self.budgets.all();
        // The lease goes back before this: another driver may have taken the run up, and the place is its own.
        if all.get(&self.run_id).is_some_and(|place| Arc::ptr_eq(place, &self.place)) {
            all.remove(&self.run_id);
        }
    }
}
