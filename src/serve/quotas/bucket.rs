//! A token bucket: a number of units in a window, all of them at once or one after the other.

/// A budget of units in a window of time. It starts full, and never holds more than the units of one window.
/// Spending more than there is leaves a debt, which is filled first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// The units of a window.
    budget: i128,
    window_ms: i128,
    /// Units times the window, so that a millisecond fills a whole number.
    level: i128,
    at_ms: u64,
}

impl Bucket {
    /// A full bucket. A budget or a window of 0 counts as 1.
    pub fn new(budget: u64, window_ms: u64, now_ms: u64) -> Self {
        let (budget, window_ms) = (i128::from(budget.max(1)), i128::from(window_ms.max(1)));
        Self { budget, window_ms, level: budget.saturating_mul(window_ms), at_ms: now_ms }
    }

    /// Lets time pass in which `spent_each_ms` units were spent each millisecond.
    pub fn pass(&mut self, now_ms: u64, spent_each_ms: u64) {
        let passed = i128::from(now_ms.saturating_sub(self.at_ms));
        self.at_ms = self.at_ms.max(now_ms);
        let each_ms = self.budget.saturating_sub(i128::from(spent_each_ms).saturating_mul(self.window_ms));
        let level = self.level.saturating_add(passed.saturating_mul(each_ms));
        self.level = level.min(self.budget.saturating_mul(self.window_ms));
    }

    /// Spends `units` units, even if there are fewer.
    pub fn spend(&mut self, units: u64) {
        self.level = self.level.saturating_sub(i128::from(units).saturating_mul(self.window_ms));
    }

    /// After how many milliseconds there is something again; 0 when there is now.
    pub fn wait_ms(&self) -> u64 {
        if self.level > 0 {
            return 0;
        }
        // The amount that is missing for a level above 0, rounded up to whole milliseconds.
        let missing = self.level.saturating_neg().saturating_add(1);
        let ms = missing.saturating_add(self.budget - 1) / self.budget;
        u64::try_from(ms).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_budget_may_be_spent_at_once_and_fills_again_in_its_window() {
        let mut bucket = Bucket::new(60, 60_000, 0);
        assert_eq!(bucket.wait_ms(), 0);
        bucket.spend(60);
        assert_eq!(bucket.wait_ms(), 1, "it is empty, and fills");
        bucket.spend(10);
        assert_eq!(bucket.wait_ms(), 10_001, "one unit a second");
        bucket.pass(10_001, 0);
        assert_eq!(bucket.wait_ms(), 0);
        bucket.pass(10_000_000, 0);
        bucket.spend(59);
        assert_eq!(bucket.wait_ms(), 0);
        bucket.spend(1);
        assert_eq!(bucket.wait_ms(), 1, "an hour of rest gives no more than a full one");
    }

    #[test]
    fn what_is_spent_while_time_passes_counts() {
        // 30 seconds of running time in a minute, spent by two runs at once.
        let mut bucket = Bucket::new(30_000, 60_000, 0);
        bucket.pass(19_999, 2);
        assert_eq!(bucket.wait_ms(), 0);
        bucket.pass(20_000, 2);
        assert_eq!(bucket.wait_ms(), 1, "20 s of two runs are 40 s, of which 10 s came back");
        bucket.pass(60_000, 0);
        assert_eq!(bucket.wait_ms(), 0);
    }

    proptest! {
        #[test]
        fn over_any_time_no_more_is_let_in_than_two_windows_and_the_last_spender(
            steps in prop::collection::vec((0_u64..5_000, 1_u64..500), 1..200),
        ) {
            let (budget, window) = (1_000_u64, 10_000_u64);
            let mut bucket = Bucket::new(budget, window, 0);
            let (mut now, mut spent) = (0, 0_u64);
            for (passed, units) in steps {
                now += passed;
                bucket.pass(now, 0);
                if bucket.wait_ms() == 0 {
                    bucket.spend(units);
                    spent += units;
                } else {
                    let later = now + bucket.wait_ms();
                    let mut then = bucket.clone();
                    then.pass(later - 1, 0);
                    prop_assert!(then.wait_ms() > 0, "not earlier than it says");
                    then.pass(later, 0);
                    prop_assert_eq!(then.wait_ms(), 0, "and not later");
                }
                prop_assert!(spent <= budget + now * budget / window + 500);
            }
        }
    }
}
