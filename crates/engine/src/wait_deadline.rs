//! When a run that waits stops waiting by itself.

use super::open_posts::next_post_ms;
use super::operation::OpenStep;
use super::outcome::Termination;
use super::state::{Phase, State};

/// When what a run waits for expires, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DueTimes {
    /// The earliest of its own approvals, forms and waits.
    pub own: Option<i64>,
    /// The earliest of those of its sub-runs.
    pub below: Option<i64>,
}

/// When a paused run is taken up next, in milliseconds since 1970: the earliest approval or form expires that it waits for, or a
/// question is to be posted.
pub fn due_at_ms(state: &State) -> Option<i64> {
    let DueTimes { own, below } = due_times(state);
    let post = matches!(state.phase, Phase::Paused { .. }).then(|| next_post_ms(state)).flatten();
    own.into_iter().chain(below).chain(post).min()
}

/// When the earliest approval or form expires of a workflow of which other steps are under way, in milliseconds since 1970.
pub fn due_beside(state: &State) -> Option<i64> {
    let DueTimes { own, below } = of_steps(&steps_beside(state)?);
    own.into_iter().chain(below).min()
}

/// Since when the first of the steps that wait for a human has waited in a workflow of which other steps are under way, in
/// milliseconds since 1970.
pub fn waits_beside_since_ms(state: &State) -> Option<i64> {
    let open = steps_beside(state)?;
    open.iter().filter(|open| open.progress.waits_for_human()).map(|open| open.due_at_ms).min()
}

/// When what a paused run waits for expires, by the run in which it does.
pub fn due_times(state: &State) -> DueTimes {
    let Phase::Paused { pause, turn } = &state.phase else { return DueTimes::default() };
    if let State::Flow(state) = state {
        return of_steps(&state.progress.open());
    }
    if let Some(asks) = &pause.asks {
        return DueTimes { own: None, below: asks.due_at_ms() };
    }
    if pause.until_ms.is_some() {
        return DueTimes { own: pause.until_ms, below: None };
    }
    if pause.question.kind != Termination::Approval {
        return DueTimes::default();
    }
    let calls = turn.iter().flat_map(|turn| &turn.calls).filter(|call| pause.calls.contains(&call.address));
    let own = calls.filter_map(|call| call.progress.expires_at_ms()).min();
    DueTimes { own, below: None }
}

/// Whether a paused run, or one that it called, waits for room in a spending limit: there may be some, or the limit was raised.
pub fn waits_for_room(state: &State) -> bool {
    match (state, &state.phase) {
        (State::Flow(state), Phase::Paused { .. }) => {
            state.progress.open().iter().any(|open| open.progress.waits_for_room())
        }
        (State::Loop(_), Phase::Paused { pause, .. }) => {
            pause.until_ms.is_some() || pause.asks.as_ref().is_some_and(|asks| asks.waits_for_room())
        }
        _ => false,
    }
}

/// The open steps of a workflow of which some are under way, unless it stops.
fn steps_beside(state: &State) -> Option<Vec<&OpenStep>> {
    let state = state.as_flow().filter(|state| matches!(state.phase, Phase::Stepping))?;
    state.progress.stopping.is_none().then(|| state.progress.open())
}

/// Of a run below that somebody resumed, what expired is its own matter.
fn of_steps(open: &[&OpenStep]) -> DueTimes {
    let own = open.iter().filter_map(|open| open.progress.expires_at_ms());
    let below = open.iter().filter_map(|open| open.progress.subrun().filter(|wait| wait.is_open())?.asks.due_at_ms());
    DueTimes { own: own.min(), below: below.min() }
}
