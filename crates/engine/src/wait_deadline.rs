//! When a run that waits stops waiting by itself.

use super::flow::questions_of;
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
    if pause.asks.is_some() {
        // All runs below are resumed, not only that whose question is asked now.
        let calls = turn.iter().flat_map(|turn| &turn.calls);
        let open = calls.filter_map(|call| call.progress.subrun().filter(|wait| wait.is_open()));
        return DueTimes { own: None, below: open.filter_map(|wait| wait.asks.due_at_ms()).min() };
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

/// What is said of the first model that a paused run, or one that it called, waits for because it can't be reached, whatever else the
/// run waits for.
pub fn away_model(state: &State) -> Option<&str> {
    match (state, &state.phase) {
        (State::Flow(state), Phase::Paused { .. }) => {
            state.progress.open().into_iter().find_map(|open| open.progress.away_model())
        }
        // A loop takes no decision while it asks a run below again: one that asks a human is left as it is.
        (State::Loop(_), Phase::Paused { pause, .. }) => {
            Some(pause.question.text.as_str()).filter(|_| pause.question.kind == Termination::ModelError)
        }
        _ => None,
    }
}

/// Why there is no room in a spending limit for the first step of a paused workflow that waits for some, or a run that it called.
pub fn missing_room(state: &State) -> Option<String> {
    let flow = state.as_flow().filter(|_| matches!(state.phase, Phase::Paused { .. }))?;
    let questions = flow.progress.open().into_iter().flat_map(|open| questions_of(open, &flow.header));
    let mut of_room = questions.filter(|step| step.question.kind == Termination::SpendingLimit);
    of_room.next().map(|step| step.question.text)
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
