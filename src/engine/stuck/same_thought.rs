//! The same thought, not an empty one, N times in a row, while every observation but the first one had been
//! seen before.

use super::{StepDigest, Stuck, StuckPattern, last, stuck};

pub fn detect(steps: &[StepDigest], n: usize) -> Option<Stuck> {
    let shown = last(steps, n)?;
    let first = shown.first()?;
    first.thought?;
    if !shown.iter().all(|step| step.thought == first.thought) {
        return None;
    }
    // Only now compare each observation with all earlier ones.
    let begin = steps.len().checked_sub(n)?;
    let seen_before = |index: usize| {
        let step = steps.get(index)?;
        Some(steps.get(..index)?.iter().rev().any(|earlier| earlier.observation == step.observation))
    };
    if !(begin.saturating_add(1)..steps.len()).all(|index| seen_before(index) == Some(true)) {
        return None;
    }
    let what = format!("The same thought came {n} times in a row, and nothing new was observed");
    stuck(StuckPattern::SameThought, shown, &what)
}
