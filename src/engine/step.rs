//! The step: one flat match over phase and event.

use std::mem;
use std::sync::Arc;

use super::begin;
use super::budget;
use super::called;
use super::consent;
use super::effect::{Effect, Effects};
use super::event::{CallId, Decided, Decision, Event, EventKind, ToolReturned};
use super::history;
use super::human;
use super::limit;
use super::outcome::{Limit, Pause, RunError, Status, Termination};
use super::reply;
use super::state::{Call, CallProgress, Phase, State, Turn};
use super::storable;
use super::turn;
use crate::engine::event::ToolResult;
use crate::program::Program;

/// An event that does not fit the run's phase. The state is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    /// Why.
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Takes an event into the state and tells what to do next. No effect: the run waits for a human,
/// waits for calls that are still under way, was interrupted, or has ended.
///
/// # Errors
/// When the event does not fit the phase; the state is untouched then.
pub fn step(program: &Program, state: &mut State, event: Event) -> Result<Effects, Refused> {
    fits(program, state, &event.kind)?;
    can_be_kept(&event.kind)?;
    let before = mem::replace(&mut state.now, event.at);
    let phase = mem::take(&mut state.phase);
    let effects = match (phase, event.kind) {
        (Phase::New, EventKind::Started(started)) => begin::begin(program, state, *started),

        (Phase::Thinking { forced }, EventKind::ModelReplied(said)) => reply::take(program, state, said, forced),
        (Phase::Thinking { forced }, EventKind::ModelFailed(fault)) => reply::failed(program, state, fault, forced),
        (Phase::Thinking { forced: None }, EventKind::DeadlinePassed) => limit::reached(program, state, Limit::Timeout),
        (Phase::Thinking { forced: Some(limit) }, EventKind::DeadlinePassed) => limit::ended(program, state, limit),
        (Phase::Thinking { forced }, EventKind::Resumed) => {
            state.interrupted = false;
            state.phase = Phase::Thinking { forced };
            vec![Effect::CallModel]
        }

        (Phase::Summarizing { until }, EventKind::Summarized(said)) => history::summed(program, state, said, until),
        (Phase::Summarizing { until }, EventKind::ModelFailed(fault)) => {
            history::not_summed(program, state, fault, until)
        }
        (Phase::Summarizing { .. }, EventKind::DeadlinePassed) => limit::reached(program, state, Limit::Timeout),
        (Phase::Summarizing { until }, EventKind::Resumed) => {
            state.interrupted = false;
            state.phase = Phase::Summarizing { until };
            vec![Effect::Summarize]
        }
        (phase @ (Phase::Thinking { .. } | Phase::Summarizing { .. }), EventKind::AttemptsFailed(attempts)) => {
            state.phase = phase;
            let made = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
            state.counters.model_retries = state.counters.model_retries.saturating_add(made);
            budget::tried(program, state, attempts);
            Vec::new()
        }

        (Phase::Acting { turn }, EventKind::ToolReturned(returned)) => turn::returned(program, state, turn, returned),
        (Phase::Acting { turn }, EventKind::ToolPaused(paused)) => called::paused(program, state, turn, *paused),
        (Phase::Acting { turn }, EventKind::DeadlinePassed) => turn::out_of_time(program, state, turn),
        (Phase::Acting { turn }, EventKind::Resumed) => {
            state.interrupted = false;
            turn::taken_up(program, state, turn)
        }

        (Phase::Paused { pause, turn }, EventKind::Human(decided)) => {
            state.interrupted = false;
            human::decided(program, state, (pause, turn), decided)
        }
        (Phase::Paused { pause: Pause { asks: Some(_), .. }, turn: Some(turn) }, EventKind::Resumed) => {
            state.interrupted = false;
            called::asked_again(turn, state)
        }
        (paused @ Phase::Paused { .. }, EventKind::Resumed) => {
            state.interrupted = false;
            state.phase = paused;
            Vec::new()
        }

        (phase, EventKind::Interrupted) => {
            state.interrupted = true;
            state.phase = phase;
            Vec::new()
        }
        (phase, EventKind::NewDocument(documents)) => {
            Arc::make_mut(&mut state.header).meaning = consent::meaning(&documents);
            state.phase = phase;
            Vec::new()
        }
        (_, EventKind::Cancelled(cancelled)) => {
            let message = cancelled.reason.unwrap_or_else(|| "the run was cancelled".to_owned());
            let error = RunError { code: "cancelled".to_owned(), message, retryable: false };
            limit::end(state, Status::Cancelled, Termination::Cancelled, |ending| ending.error = Some(error))
        }

        (phase, _) => {
            (state.phase, state.now) = (phase, before);
            return Err(Refused::new("the event does not fit the run's phase"));
        }
    };
    Ok(effects)
}

/// Whether the event fits; looked at before anything is touched.
fn fits(program: &Program, state: &State, what: &EventKind) -> Result<(), Refused> {
    match (&state.phase, what) {
        (Phase::New, EventKind::Started(_)) => Ok(()),
        (Phase::New, _) => Err(Refused::new("the run has not begun")),
        (_, EventKind::Started(_)) => Err(Refused::new("the run has begun already")),
        (Phase::Ended(ending), _) => Err(Refused::new(format!("the run has ended: {}", ending.status.word()))),
        (
            Phase::Thinking { .. },
            EventKind::ModelReplied(_)
            | EventKind::ModelFailed(_)
            | EventKind::AttemptsFailed(_)
            | EventKind::DeadlinePassed,
        ) => Ok(()),
        (
            Phase::Summarizing { .. },
            EventKind::Summarized(_)
            | EventKind::ModelFailed(_)
            | EventKind::AttemptsFailed(_)
            | EventKind::DeadlinePassed,
        ) => Ok(()),
        (Phase::Acting { turn }, EventKind::ToolReturned(ToolReturned { call, .. })) => open(state, turn, *call),
        (Phase::Acting { turn }, EventKind::ToolPaused(paused)) => open(state, turn, paused.call),
        (Phase::Acting { .. }, EventKind::DeadlinePassed) => Ok(()),
        (Phase::Paused { pause, turn }, EventKind::Human(decided)) => {
            human::fits(program, state, (pause, turn.as_ref()), decided)
        }
        (_, EventKind::Human(_)) => Err(Refused::new("the run waits for no human")),
        (_, EventKind::Resumed | EventKind::Interrupted | EventKind::Cancelled(_) | EventKind::NewDocument(_)) => {
            Ok(())
        }
        (Phase::Thinking { .. } | Phase::Summarizing { .. }, EventKind::ToolReturned(_) | EventKind::ToolPaused(_)) => {
            Err(Refused::new("no call is under way"))
        }
        (Phase::Thinking { .. }, EventKind::Summarized(_)) => Err(Refused::new("no summary was asked for")),
        (Phase::Summarizing { .. }, EventKind::ModelReplied(_)) => Err(Refused::new("a summary was asked for")),
        (
            Phase::Acting { .. },
            EventKind::ModelReplied(_)
            | EventKind::ModelFailed(_)
            | EventKind::Summarized(_)
            | EventKind::AttemptsFailed(_),
        ) => Err(Refused::new("the model was not asked")),
        (Phase::Paused { .. }, _) => Err(Refused::new("the run waits for a human")),
    }
}

fn open(state: &State, turn: &Turn, call: CallId) -> Result<(), Refused> {
    match state.call(call) {
        Some(call) if call.progress.is_under_way() => Ok(()),
        Some(Call { progress: CallProgress::Held, .. }) => Err(Refused::new("the call was not made yet")),
        Some(_) => Err(Refused::new("the call has returned already")),
        None => Err(Refused::new(format!("iteration {} has no such call", turn.iteration))),
    }
}

/// Whether the event can be read back from a journal: what can't is refused before it is written.
fn can_be_kept(what: &EventKind) -> Result<(), Refused> {
    let refused = |name: &str, why: String| Err(Refused::new(format!("{name} {why}")));
    match what {
        EventKind::Started(started) => {
            if let Some(why) = storable::fault_of(&started.input) {
                return refused("the run's input", why);
            }
            let faults = started.memory.values().find_map(storable::fault_of);
            faults.map_or(Ok(()), |why| refused("what the session remembers", why))
        }
        EventKind::ToolReturned(ToolReturned { result: ToolResult::Ok(value), .. }) => {
            storable::fault_of(value).map_or(Ok(()), |why| refused("the tool's result", why))
        }
        EventKind::Human(Decided { decision: Decision::Edit(value) | Decision::Happened(value), .. }) => {
            storable::fault_of(value).map_or(Ok(()), |why| refused("the value", why))
        }
        _ => Ok(()),
    }
}

/// A result that the engine itself gives.
pub(super) fn failed(class: impl Into<String>) -> ToolResult {
    ToolResult::Failed(super::event::ToolFault { class: class.into(), detail: String::new() })
}
