//! A loop as it was each time that its model was asked for a reply.

use std::ops::ControlFlow;

use super::event::{Decided, Event, EventKind, Fork, Started};
use super::state::{LoopState, Phase, State, StateHead};
use super::step::step;
use loopctl_lang::program::Program;

/// The state of a run when its model was asked for the reply of an iteration, from 1.
///
/// # Errors
/// When the run is a workflow, or has no such iteration.
pub fn asked(program: &Program, events: &[Event], iteration: u32) -> Result<LoopState, String> {
    let mut is_found = false;
    let state = folded_until(program, events, |at, _| {
        is_found = at == iteration;
        if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if is_found { Ok(state) } else { Err(no_such_iteration(state.counters.iterations, iteration)) }
}

/// Folds a run once and shows the state at each iteration, when its model was asked for the first time. Gives the number
/// of its iterations.
///
/// # Errors
/// When the run is a workflow, or its events do not fit together.
pub fn each_asked(
    program: &Program,
    events: &[Event],
    visit: impl FnMut(u32, &LoopState) -> ControlFlow<()>,
) -> Result<u32, String> {
    folded_until(program, events, visit).map(|state| state.counters.iterations)
}

/// The state at which the visit of the iterations breaks off, or the last one.
fn folded_until(
    program: &Program,
    events: &[Event],
    mut visit: impl FnMut(u32, &LoopState) -> ControlFlow<()>,
) -> Result<LoopState, String> {
    let no_loop = || "it is a workflow, which has no iterations".to_owned();
    let (mut state, mut last) = (State::new(program), 0);
    for (number, event) in flat(events)?.into_iter().enumerate() {
        step(program, &mut state, event).map_err(|why| format!("event {number} does not fit: {why}"))?;
        let of_loop = state.as_loop().ok_or_else(no_loop)?;
        if let Some(iteration) = asks(of_loop).filter(|iteration| *iteration > last) {
            last = iteration;
            if visit(iteration, of_loop).is_break() {
                break;
            }
        }
    }
    state.into_loop().ok_or_else(no_loop)
}

/// The iteration for whose reply the model is asked now.
pub fn asks(state: &StateHead) -> Option<u32> {
    matches!(state.phase, Phase::Thinking { .. }).then(|| state.counters.iterations.saturating_add(1))
}

/// Why a run has no such iteration, in a sentence.
pub fn no_such_iteration(had: u32, wanted: u32) -> String {
    if wanted == had.saturating_add(1) {
        return format!("it has {had} iterations, and does not ask for another one: choose one of them");
    }
    format!("it has {had} iterations, and none of the number {wanted}")
}

/// The events of a run, those that it copied in their place. Hashes are of calls of the run that is forked.
///
/// # Errors
/// When a copied event can't be read.
pub fn flat(events: &[Event]) -> Result<Vec<Event>, String> {
    let mut all = Vec::with_capacity(events.len());
    for event in events {
        match &event.kind {
            EventKind::Started(started) => {
                let copied = started.fork.as_ref().map(Fork::copied).transpose()?.unwrap_or_default();
                let started = Started { fork: None, ..Started::clone(started) };
                all.push(Event { at: event.at, kind: EventKind::Started(Box::new(started)) });
                all.extend(copied);
            }
            EventKind::Human(decided) => {
                let decided = Decided { hash: None, ..decided.clone() };
                all.push(Event { at: event.at, kind: EventKind::Human(decided) });
            }
            // All events are folded by the last document.
            EventKind::NewDocument(_) => {}
            _ => all.push(event.clone()),
        }
    }
    Ok(all)
}
