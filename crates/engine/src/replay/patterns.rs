//! Where stuck detection would have stopped an old run, by each threshold.

use crate::event::{Event, EventKind};
use crate::state::{Phase, State};
use crate::step::step;
use crate::stuck::{StepDigest, Stuck, detect};
use loopctl_lang::program::Program;

use super::paired_fold::used;

/// A stop at a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct StuckStop {
    /// The pattern, with its iterations.
    pub stuck: Stuck,
    /// The tokens that the run had used.
    pub tokens: u64,
}

/// Where a run would have been stopped, for each of these thresholds; none where it would not. Also its last state.
/// `program` is that of the run, without stuck detection: its threshold is never reached.
///
/// # Errors
/// When the events do not fit.
pub fn stops(
    program: &Program,
    events: &[Event],
    thresholds: &[u32],
) -> Result<(State, Vec<Option<StuckStop>>), String> {
    let mut state = State::new(program);
    let mut steps: Vec<StepDigest> = Vec::new();
    let mut stops: Vec<Option<StuckStop>> = vec![None; thresholds.len()];
    let mut seen = 0;
    for (at, event) in events.iter().enumerate() {
        // A human's word is something new.
        if matches!(event.kind, EventKind::Human(_)) {
            steps.clear();
        }
        let waits = matches!(state.phase, Phase::Paused { .. });
        if matches!(event.kind, EventKind::Human(_)) && !waits {
            // It answered that the agent was stuck.
            if let State::Loop(state) = &mut state {
                state.watch.steps.clear();
            }
            continue;
        }
        step(program, &mut state, event.clone()).map_err(|why| format!("event {at} does not fit: {why}"))?;
        let last = state.as_loop().and_then(|state| state.watch.steps.last());
        let Some(digest) = last.filter(|digest| digest.iteration > seen).cloned() else { continue };
        seen = digest.iteration;
        steps.push(digest);
        for (stop, threshold) in stops.iter_mut().zip(thresholds) {
            if stop.is_none() {
                let tokens = used(&state);
                *stop = detect(&steps, *threshold).map(|stuck| StuckStop { stuck, tokens });
            }
        }
    }
    Ok((state, stops))
}
