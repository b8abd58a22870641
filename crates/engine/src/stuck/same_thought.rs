//! The same thought, not an empty one, N times in a row, while every observation but the first one had been
//! seen before, and every action but the first one had been taken before: one thought over different calls is a batch.

use super::{StepDigest, Stuck, StuckPattern, last, stuck};

pub fn detect(steps: &[StepDigest], n: usize) -> Option<Stuck> {
    detect_by(steps, n, |earlier, step| earlier.action == step.action)
}

/// As in runs of older editions: whatever the actions.
pub fn detect_older(steps: &[StepDigest], n: usize) -> Option<Stuck> {
    detect_by(steps, n, |_, _| true)
}

fn detect_by(steps: &[StepDigest], n: usize, same_action: fn(&StepDigest, &StepDigest) -> bool) -> Option<Stuck> {
    let shown = last(steps, n)?;
    let first = shown.first()?;
    first.thought?;
    if !shown.iter().all(|step| step.thought == first.thought) {
        return None;
    }
    // Only now compare each step with all earlier ones.
    let begin = steps.len().checked_sub(n)?;
    let seen_before = |index: usize| {
        let (step, earlier) = (steps.get(index)?, steps.get(..index)?);
        let observed = earlier.iter().rev().any(|earlier| earlier.observation == step.observation);
        Some(observed && earlier.iter().rev().any(|earlier| same_action(earlier, step)))
    };
    if !(begin.saturating_add(1)..steps.len()).all(|index| seen_before(index) == Some(true)) {
        return None;
    }
    let what = format!("The same thought came {n} times in a row, and nothing new was observed");
    stuck(StuckPattern::SameThought, shown, &what)
}
