//! Limits, and how a run ends.

use super::conversation::{Role, estimated_tokens};
use super::dialect;
use super::effect::{Effect, Effects};
use super::outcome::{Ending, Limit, RunError, Status, Termination};
use super::state::{Phase, State};
use crate::compile::Program;
use crate::language::react::OnLimit;

/// After an iteration: the next thought, unless a limit is reached.
pub(super) fn next(program: &Program, state: &mut State) -> Effects {
    match spent(program, state) {
        Some(limit) => reached(program, state, limit),
        None => {
            state.phase = Phase::Thinking { forced: None };
            vec![Effect::CallModel]
        }
    }
}

/// The limit that is spent, if any.
fn spent(program: &Program, state: &State) -> Option<Limit> {
    let properties = &program.properties;
    if state.tally.iterations >= properties.max_iterations {
        return Some(Limit::MaxIterations);
    }
    if state.now.active_ms >= state.begun.timeout_ms {
        return Some(Limit::Timeout);
    }
    let tokens = state.tally.tokens.input.saturating_add(state.tally.tokens.output);
    let own = properties.budget.as_ref().map(|budget| (budget.tokens, budget.cost_usd));
    let left = state.begun.bound;
    for (most, most_usd) in own.into_iter().chain([(left.tokens, left.cost_usd)]) {
        if most.is_some_and(|bound| tokens >= bound)
            || matches!((most_usd, state.cost_usd()), (Some(bound), Some(cost)) if cost >= bound)
        {
            return Some(Limit::Budget);
        }
    }
    let history = properties.history.as_ref().and_then(|history| history.context_tokens);
    let window = history.or_else(|| {
        let window = state.begun.model.context_tokens?;
        Some(window.saturating_sub(u64::from(properties.max_tokens)))
    });
    window.filter(|window| next_request(state) > *window).map(|_| Limit::Context)
}

/// What the next request will hold in tokens: the last one by the provider's count, and an estimate
/// of what came since.
fn next_request(state: &State) -> u64 {
    let (tokens, bytes) = state.tally.window;
    tokens.saturating_add(estimated_tokens(state.conversation.bytes.saturating_sub(bytes)))
}

/// A limit is reached: the run fails, or one last call must answer.
pub(super) fn reached(program: &Program, state: &mut State, limit: Limit) -> Effects {
    if program.properties.on_limit == OnLimit::Fail {
        return ended(program, state, limit);
    }
    if limit == Limit::Context {
        let gone = state.conversation.forget_half();
        let gone = u32::try_from(gone).unwrap_or(u32::MAX);
        state.tally.messages_trimmed = state.tally.messages_trimmed.saturating_add(gone);
    }
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
        Limit::Timeout => ("timeout", format!("{} ms of active time passed without an answer", state.begun.timeout_ms)),
        Limit::Context => ("context", "the conversation no longer fits the model's window".to_owned()),
        Limit::Budget => ("budget", "the run's budget is spent".to_owned()),
    };
    // What takes longer today may take less tomorrow; the other limits will be reached again.
    let error = RunError { code: code.to_owned(), message, retryable: limit == Limit::Timeout };
    end(state, Status::Failed, limit.into(), |ending| ending.error = Some(error))
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
