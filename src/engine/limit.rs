//! Limits: the checks before the model is asked again, and what happens at a limit.

use super::budget;
use super::conversation::Role;
use super::dialect;
use super::history::{self, Length};
use super::next::Next;
use super::outcome::{Limit, RunError};
use super::state::State;
use crate::language::react::OnLimit;
use crate::program::Program;

/// After an iteration: the model is asked again, unless a limit is reached. If the history is too long, it is
/// shortened first.
pub(super) fn think(program: &Program, state: &mut State) -> Next {
    loop {
        if let Some(limit) = spent(program, state) {
            return Next::Limit(limit);
        }
        match history::look(program, state) {
            Length::Fits => return Next::Ask { forced: None },
            Length::Full => return Next::Limit(Limit::Context),
            Length::Over { until, summed: true } => return Next::Summarize { until },
            Length::Over { until, summed: false } => history::drop_until(state, until, None),
        }
    }
}

/// The limit that is reached, if any; the window is checked by the history.
fn spent(program: &Program, state: &State) -> Option<Limit> {
    if state.counters.iterations >= program.properties.max_iterations {
        return Some(Limit::MaxIterations);
    }
    if state.now.active_ms >= state.header.timeout_ms {
        return Some(Limit::Timeout);
    }
    budget::is_spent(program, state).then_some(Limit::Budget)
}

/// The provider reports that the request is too long: it is shortened once, and sent again.
pub(super) fn too_long(program: &Program, state: &mut State) -> Next {
    let again = std::mem::replace(&mut state.watch.too_long, true);
    let all = state.counters.estimator.tokens(state.conversation.bytes);
    let length = if again { Length::Full } else { history::too_long(program, state, all) };
    match (spent(program, state), length) {
        (Some(limit), _) => Next::Limit(limit),
        (None, Length::Over { until, summed: true }) => Next::Summarize { until },
        (None, Length::Over { until, summed: false }) => {
            history::drop_until(state, until, None);
            Next::Think
        }
        (None, Length::Full | Length::Fits) => Next::Limit(Limit::Context),
    }
}

/// A limit is reached: the run fails, or one last call must answer. A sub-run whose caller has nothing left
/// gets no last call: with one at each level of nested loops, they would exceed the budget together.
pub(super) fn reached(program: &Program, state: &mut State, limit: Limit) -> Next {
    if program.properties.on_limit == OnLimit::Fail || budget::is_spent_for_the_caller(state) {
        return failed(program, state, limit);
    }
    history::make_room(program, state, limit == Limit::Context);
    let words = dialect::forced_question(program.properties.dialect, words(limit));
    state.conversation.push(Role::User, words);
    Next::Ask { forced: Some(limit) }
}

/// The run fails because of a limit.
pub(super) fn failed(program: &Program, state: &State, limit: Limit) -> Next {
    let properties = &program.properties;
    let (code, message) = match limit {
        Limit::MaxIterations => {
            ("max_iterations", format!("{} iterations passed without an answer", properties.max_iterations))
        }
        Limit::Timeout => {
            ("timeout", format!("{} ms of active time passed without an answer", state.header.timeout_ms))
        }
        Limit::Context => ("context", "the conversation no longer fits the model's window".to_owned()),
        Limit::Budget => ("budget", "the run's budget is spent".to_owned()),
    };
    // A timeout may not happen again; the other limits will be reached again.
    let error = RunError { code: code.to_owned(), message, retryable: limit == Limit::Timeout };
    Next::fail(state, limit.into(), error)
}

fn words(limit: Limit) -> &'static str {
    match limit {
        Limit::MaxIterations => "all iterations are used",
        Limit::Timeout => "the time is over",
        Limit::Context => "the conversation is as long as it can be",
        Limit::Budget => "the budget is used",
    }
}
