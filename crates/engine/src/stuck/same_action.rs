//! The same action with the same input N times in a row. Calls of a polling tool count only if their
//! observations are the same too: polling repeats calls on purpose.

use super::{StepDigest, Stuck, StuckPattern, last, stuck};

pub fn detect(steps: &[StepDigest], n: usize) -> Option<Stuck> {
    let shown = last(steps, n)?;
    let first = shown.first()?;
    first.action?;
    let same = |step: &StepDigest| {
        step.action == first.action && (!(first.polling || step.polling) || step.observation == first.observation)
    };
    if !shown.iter().all(same) {
        return None;
    }
    let what = format!("The action `{}` was called {n} times in a row with the same input", first.label);
    stuck(StuckPattern::SameAction, shown, &what)
}
