//! A cycle of 2 to 6 actions, repeated N times, with no observation that the first round did not have. A single
//! repeated action is no cycle: `same_action` handles that, and it knows polling tools.

use super::{StepDigest, Stuck, StuckPattern, last, stuck};

pub fn detect(steps: &[StepDigest], n: usize) -> Option<Stuck> {
    (2..=6).find_map(|length| of_length(steps, n, length))
}

fn of_length(steps: &[StepDigest], n: usize, length: usize) -> Option<Stuck> {
    let shown = last(steps, length.saturating_mul(n))?;
    let (round, rest) = shown.split_at_checked(length)?;
    let first = round.first()?;
    if round.iter().any(|step| step.action.is_none()) || round.iter().all(|step| step.action == first.action) {
        return None;
    }
    let again = rest.iter().zip(round.iter().cycle()).all(|(step, model)| step.action == model.action);
    let nothing_new = rest.iter().all(|step| round.iter().any(|seen| seen.observation == step.observation));
    if !(again && nothing_new) {
        return None;
    }
    let names = round.iter().map(|step| format!("`{}`", step.label)).collect::<Vec<_>>().join(", ");
    let what = format!("The actions {names} were called in this order {n} times, and nothing new was observed");
    let pattern = if length == 2 { StuckPattern::Alternation } else { StuckPattern::Cycle };
    stuck(pattern, shown, &what)
}
