//! Limits, and how a run ends.

use super::budget;
use super::conversation::Role;
use super::dialect;
use super::effect::{Effect, Effects};
use super::history::{self, Length};
use super::outcome::{Ending, Limit, RunError, Status, Termination};
use super::state::{Phase, State};
use crate::language::react::OnLimit;
use crate::program::Program;

/// After an iteration: the next thought, unless a limit is reached. Before it, what is too much of the
/// history goes.
pub(super) fn next(program: &Program, state: &mut State) -> Effects {
    if let Some(limit) = spent(program, state) {
        return reached(program, state, limit);
    }
    match history::look(program, state) {
        Length::Fits => {
            state.phase = Phase::Thinking { forced: None };
            vec![Effect::CallModel]
        }
        Length::Over { until, summed } => history::shorten(program, state, until, summed),
        Length::Full => reached(program, state, Limit::Context),
    }
}

/// The limit that is spent, if any; the window is the history's matter.
pub(super) fn spent(program: &Program, state: &State) -> Option<Limit> {
    if state.counters.iterations >= program.properties.max_iterations {
        return Some(Limit::MaxIterations);
    }
    if state.now.active_ms >= state.header.timeout_ms {
        return Some(Limit::Timeout);
    }
    budget::is_spent(program, state).then_some(Limit::Budget)
}

/// A limit is reached: the run fails, or one last call must answer. A run whose caller has nothing left has
/// no last call: with one in each of the loops that call each other, the budget would be passed by all of
/// them.
pub(super) fn reached(program: &Program, state: &mut State, limit: Limit) -> Effects {
    if program.properties.on_limit == OnLimit::Fail || budget::is_spent_for_the_caller(state) {
        return ended(program, state, limit);
    }
    history::make_room(program, state, limit == Limit::Context);
    let words = dialect::forced_question(program.properties.dialect, told(limit));
    state.conversation.push(Role::User, words);
    state.phase = Phase::Thinking { forced: Some(limit) };
    vec![Effect::CallModel]
}

/// The run fails by a limit.
pub(super) fn ended(program: &Program, state: &mut State, limit: Limit) -> Effects {
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
    // What takes longer today may take less tomorrow; the other limits will be reached again.
    let error = RunError { code: code.to_owned(), message, retryable: limit == Limit::Timeout };
    end(state, Status::Failed, limit.into(), |ending| ending.error = Some(error))
}

/// The run fails because so many answers did not match `answer_schema`.
pub(super) fn no_answer(state: &mut State, answers: u32) -> Effects {
    let message = format!("{answers} answers did not match answer_schema; the trace tells what was wrong with each");
    let error = RunError { code: "invalid_replies".to_owned(), message, retryable: false };
    end(state, Status::Failed, Termination::InvalidReplies, |ending| ending.error = Some(error))
}

/// Ends the run. `with` adds what the ending says beside status and termination.
pub(super) fn end(
    state: &mut State,
    status: Status,
    termination: Termination,
    with: impl FnOnce(&mut Ending),
) -> Effects {
    let mut ending =
        Ending { status, termination, answer: None, limit: None, stuck: None, error: None, at_ms: state.now.wall_ms };
    with(&mut ending);
    state.interrupted = false;
    state.phase = Phase::Ended(Box::new(ending));
    Vec::new()
}

fn told(limit: Limit) -> &'static str {
    match limit {
        Limit::MaxIterations => "all iterations are used",
        Limit::Timeout => "the time is over",
        Limit::Context => "the conversation is as long as it can be",
        Limit::Budget => "the budget is used",
    }
}
