//! A budget counts all sub-runs, however they are nested, and drops a run that is left.

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
