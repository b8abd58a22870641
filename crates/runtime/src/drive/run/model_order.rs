//! In which order the models of a loop are asked: those whose condition holds, then its own, then its fallbacks.

use loopctl_engine::budget;
use loopctl_engine::state::LoopState;
use loopctl_lang::program::LoopProgram;

/// The places of the models that are asked, in their order: 0 is the loop's own, and its `fallback_models` follow. None where no model
/// has a condition.
pub(super) fn order(program: &LoopProgram, state: &LoopState) -> Option<Vec<usize>> {
    let fallbacks = &program.properties.fallback_models;
    if fallbacks.iter().all(|model| model.when().is_none()) {
        return None;
    }
    let left = budget::left_share(program, state);
    let (mut first, mut after) = (Vec::new(), Vec::new());
    for (place, model) in (1..).zip(fallbacks) {
        match model.when() {
            None => after.push(place),
            Some(when) if left.is_some_and(|left| left < when.budget_left_below) => first.push(place),
            Some(_) => {}
        }
    }
    Some(first.into_iter().chain([0]).chain(after).collect())
}
