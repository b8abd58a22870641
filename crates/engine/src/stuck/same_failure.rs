//! The same action failing 2N times in a row, whatever its input.

use super::{StepDigest, Stuck, StuckPattern, last, stuck};

pub fn detect(steps: &[StepDigest], n: usize) -> Option<Stuck> {
    let count = n.saturating_mul(2);
    let shown = last(steps, count)?;
    let first = shown.first()?;
    if !shown.iter().all(|step| step.failed && step.name == first.name) {
        return None;
    }
    let what = format!("The action `{}` failed {count} times in a row", first.label);
    stuck(StuckPattern::SameFailure, shown, &what)
}
