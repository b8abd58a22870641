//! The step: which event fits which phase, and where each leads.

use std::mem;
use std::sync::Arc;

use super::begin;
use super::budget;
use super::continuation;
use super::decision::consent;
use super::decision::expiry;
use super::decision::human::{self, Paused};
use super::effect::{Effect, Effects};
use super::event::{
    Cancelled, Decided, Decision, EDITION, Event, EventKind, FailedAttempt, QuestionPosted, ToolResult, ToolReturned,
};
use super::flow;
use super::fork;
use super::history;
use super::limit;
use super::next::Next;
use super::outcome::{Ending, Limit, RunError, Status, Termination};
use super::reply;
use super::state::{LoopState, Phase, State};
use super::storable;
use super::subrun;
use super::turn;
use loopctl_lang::program::{LoopProgram, Program};

pub use super::effect::Refused;

/// Applies an event to the state and returns the effects to perform. No effect: the run waits for a human, or
/// for calls that are still under way, was interrupted, or has ended.
///
/// # Errors
/// When the event does not fit the phase; the state is untouched then.
pub fn step(program: &Program, state: &mut State, event: Event) -> Result<Effects, Refused> {
    can_be_kept(&event.kind)?;
    if let (Phase::New, EventKind::Started(started)) = (&state.phase, &event.kind) {
        if started.edition > EDITION {
            let later =
                format!("a later loopctl started the run (edition {}, and this one knows {EDITION})", started.edition);
            return Err(Refused::new(format!("{later}: take that one")));
        }
        if started.fork.is_some() {
            return fork::begin(program, state, event);
        }
    }
    match (program, state) {
        (Program::Loop(program), State::Loop(state)) => step_loop(program, state, event),
        (Program::Flow(program), State::Flow(state)) => flow::step(program, state, event),
        (_, state) => Err(state.is_of_another_machine()),
    }
}

/// Applies an event to a loop.
fn step_loop(program: &LoopProgram, state: &mut LoopState, event: Event) -> Result<Effects, Refused> {
    let before = mem::replace(&mut state.now, event.at);
    let phase = mem::take(&mut state.phase);
    let mut effects = Effects::new();
    let mut next = transition(program, state, phase, event.kind, &mut effects);
    loop {
        next = match next {
            Next::Think => limit::think(program, state),
            Next::Limit(limit) => limit::reached(program, state, limit),
            Next::Settle(turn) => turn::settle(program, state, turn, &mut effects),
            Next::Ask { forced } => {
                state.phase = Phase::Thinking { forced };
                effects.push(Effect::CallModel);
                return Ok(effects);
            }
            Next::Summarize { until } => {
                state.phase = Phase::Summarizing { until };
                effects.push(Effect::Summarize);
                return Ok(effects);
            }
            Next::Wait(phase) => {
                state.phase = phase;
                return Ok(effects);
            }
            Next::End(ending) => {
                state.interrupted = false;
                state.phase = Phase::Ended(ending);
                return Ok(effects);
            }
            Next::Refuse { phase, refused } => {
                (state.phase, state.now) = (phase, before);
                return Err(refused);
            }
        };
    }
}

/// Whether a decision fits the run as it is: what [`step`] would refuse at this moment is refused, and nothing changes.
///
/// # Errors
/// Why it does not fit.
pub fn fits(program: &Program, state: &State, decided: &Decided) -> Result<(), Refused> {
    value_can_be_kept(decided)?;
    match (program, state) {
        (Program::Loop(program), State::Loop(state)) => match &state.phase {
            Phase::Paused { pause, turn } => human::fits(program, state, pause, turn.as_ref(), decided),
            phase => Err(phase.takes_no_decision()),
        },
        (Program::Flow(program), State::Flow(state)) => flow::fits(program, state, decided),
        (_, state) => Err(state.is_of_another_machine()),
    }
}

/// No event follows the end.
fn has_ended(ending: Box<Ending>) -> Next {
    let why = format!("the run has ended: {}", ending.status.word());
    Next::refuse(Phase::Ended(ending), why)
}

fn question_posted(state: &mut LoopState, phase: Phase, posted: QuestionPosted) -> Next {
    let now_ms = state.now.wall_ms;
    state.posts.take(posted, now_ms);
    Next::Wait(phase)
}

/// The table of phases and events: the only place that says which event fits which phase. A refused event
/// changes nothing.
// house: flat match
#[expect(clippy::too_many_lines, reason = "one flat match")]
fn transition(
    program: &LoopProgram,
    state: &mut LoopState,
    phase: Phase,
    event: EventKind,
    effects: &mut Effects,
) -> Next {
    match (phase, event) {
        (Phase::New, event) if !state.waits_in_line() => match event {
            EventKind::Started(started) => begin::begin(program, state, *started),
            _ => Next::refuse(Phase::New, "the run has not started"),
        },
        (Phase::New, EventKind::Admitted) => Next::Ask { forced: None },
        (Phase::New, event) if !may_come_in_line(&event) => Next::refuse(Phase::New, "the run waits in its line"),
        (phase, EventKind::Admitted) => Next::refuse(phase, "the run waits in no line"),
        (phase, EventKind::Started(_)) => Next::refuse(phase, "the run has started already"),
        (Phase::Ended(ending), EventKind::Retried(retried)) => continuation::retry_ended(state, ending, retried),
        (Phase::Ended(ending), EventKind::LimitsRaised(raised)) => {
            match continuation::raise_ended(program, state, ending, raised) {
                // A cancelled run continues where it was.
                Next::Wait(phase) => resume(program, state, phase, effects),
                next => next,
            }
        }
        (Phase::Ended(ending), EventKind::NewDocument(documents)) if continuation::may_continue(state, &ending) => {
            Arc::make_mut(&mut state.header).meaning = consent::meaning(&documents);
            Next::Wait(Phase::Ended(ending))
        }
        (Phase::Ended(ending), _) => has_ended(ending),

        (phase, EventKind::Interrupted) => {
            state.interrupted = true;
            Next::Wait(phase)
        }
        (phase, EventKind::QuestionPosted(posted)) => question_posted(state, phase, *posted),
        (phase, EventKind::NewDocument(documents)) => {
            Arc::make_mut(&mut state.header).meaning = consent::meaning(&documents);
            Next::Wait(phase)
        }
        // A loop requests nothing at its start that may not be requested twice.
        (phase, EventKind::Left) => Next::Wait(phase),
        (phase, EventKind::Cancelled(cancelled)) => cancel(state, phase, cancelled),
        (phase, EventKind::Resumed) => resume(program, state, phase, effects),
        (phase, EventKind::LimitsRaised(raised)) => continuation::raise_open(program, state, phase, raised),
        (phase, EventKind::Retried(retried)) => match continuation::retry_paused(state, phase, retried) {
            Next::Wait(phase) => resume(program, state, phase, effects),
            next => next,
        },

        (Phase::Thinking { forced }, EventKind::ModelReplied(reply)) => {
            reply::take(program, state, reply, forced, effects)
        }
        (Phase::Thinking { forced }, EventKind::ModelFailed(fault)) => reply::failed(program, state, fault, forced),
        (Phase::Thinking { forced: None }, EventKind::DeadlinePassed) => Next::Limit(Limit::Timeout),
        (Phase::Thinking { forced: Some(limit) }, EventKind::DeadlinePassed) => limit::failed(program, state, limit),
        (phase @ Phase::Thinking { .. }, EventKind::Summarized(_)) => Next::refuse(phase, "no summary was asked for"),

        (Phase::Summarizing { until }, EventKind::Summarized(reply)) => history::summed(program, state, reply, until),
        (Phase::Summarizing { until }, EventKind::ModelFailed(fault)) if history::goes_on_without_notes(&fault) => {
            history::not_summed(program, state, fault, until)
        }
        (Phase::Summarizing { .. }, EventKind::ModelFailed(fault)) => reply::failed(program, state, fault, None),
        (Phase::Summarizing { .. }, EventKind::DeadlinePassed) => Next::Limit(Limit::Timeout),
        (phase @ Phase::Summarizing { .. }, EventKind::ModelReplied(_)) => {
            Next::refuse(phase, "a summary was asked for")
        }

        (phase @ (Phase::Thinking { .. } | Phase::Summarizing { .. }), EventKind::AttemptsFailed(attempts)) => {
            count_attempts(program, state, attempts);
            Next::Wait(phase)
        }
        (
            phase @ (Phase::Thinking { .. } | Phase::Summarizing { .. }),
            EventKind::ToolReturned(_)
            | EventKind::ToolRetried(_)
            | EventKind::ToolLeft(_)
            | EventKind::ToolPaused(_)
            | EventKind::ToolAsks(_),
        ) => Next::refuse(phase, "no call is under way"),

        (Phase::Acting { turn }, EventKind::ToolReturned(returned)) => turn::returned(program, state, turn, returned),
        (Phase::Acting { turn }, EventKind::ToolRetried(retried)) => turn::retried(state, turn, retried, effects),
        (Phase::Acting { turn }, EventKind::ToolLeft(left)) => turn::left(program, state, turn, &left),
        (Phase::Acting { turn }, EventKind::ToolPaused(paused)) => subrun::paused(program, state, turn, *paused),
        (Phase::Acting { turn }, EventKind::ToolAsks(asked)) => turn::asks(state, turn, *asked),
        (Phase::Acting { turn }, EventKind::DeadlinePassed) => turn::out_of_time(program, state, turn, effects),
        (
            phase @ Phase::Acting { .. },
            EventKind::ModelReplied(_)
            | EventKind::ModelFailed(_)
            | EventKind::Summarized(_)
            | EventKind::AttemptsFailed(_),
        ) => Next::refuse(phase, "the model was not asked"),

        (Phase::Paused { pause, turn }, EventKind::Human(decided)) => {
            human::decided(program, state, Paused { pause, turn }, decided, effects)
        }
        (Phase::Paused { pause, turn }, EventKind::ApprovalExpired) => {
            expiry::expired(program, state, Paused { pause, turn }, effects)
        }
        (phase, EventKind::Human(_) | EventKind::ApprovalExpired) => Next::refuse(phase, "the run waits for no human"),
        (phase @ Phase::Paused { .. }, _) => Next::refuse(phase, "the run waits for a human"),
        (phase, _) => Next::refuse(phase, "the event is one of a workflow, and the run is a loop"),
    }
}

/// What may happen to a run while it waits in its line: nothing that begins or changes a step.
pub(super) fn may_come_in_line(event: &EventKind) -> bool {
    matches!(
        event,
        EventKind::Interrupted
            | EventKind::NewDocument(_)
            | EventKind::Left
            | EventKind::Cancelled(_)
            | EventKind::LimitsRaised(_)
            | EventKind::Resumed
    )
}

/// Requests to the model failed before something else interrupted its call.
fn count_attempts(program: &LoopProgram, state: &mut LoopState, attempts: Vec<FailedAttempt>) {
    let followed = attempts.iter().filter(|attempt| !attempt.is_given_up()).count();
    let attempted = u32::try_from(followed).unwrap_or(u32::MAX);
    state.counters.model_retries = state.counters.model_retries.saturating_add(attempted);
    let waited = attempts.iter().rev().find(|attempt| attempt.in_line);
    state.watch.in_line = waited.map(|attempt| attempt.reason.as_str().into());
    budget::tried(program, state, attempts);
}

/// A driver resumes the run: requests without a result are made again.
fn resume(program: &LoopProgram, state: &mut LoopState, phase: Phase, effects: &mut Effects) -> Next {
    state.interrupted = false;
    match phase {
        Phase::Thinking { forced } => Next::Ask { forced },
        Phase::Summarizing { until } => Next::Summarize { until },
        Phase::Acting { turn } => turn::resumed(program, state, turn, effects),
        Phase::Paused { pause, turn: Some(turn) } if pause.asks.is_some() => subrun::ask_again(turn, effects),
        Phase::Paused { pause, turn: None } if waits_for_a_model(pause.question.kind) => Next::ask_again(pause.forced),
        phase @ (Phase::New | Phase::Stepping | Phase::Paused { .. } | Phase::Ended(_)) => Next::Wait(phase),
    }
}

/// Whether a run that is paused for this reason asks its model again.
fn waits_for_a_model(reason: Termination) -> bool {
    matches!(reason, Termination::ModelError | Termination::SpendingLimit)
}

/// Cancels the run.
fn cancel(state: &mut LoopState, phase: Phase, cancelled: Cancelled) -> Next {
    state.cancelled_in = Some(Box::new(phase));
    let message = cancelled.reason.unwrap_or_else(|| "the run was cancelled".to_owned());
    let error = RunError { code: "cancelled".to_owned(), message, retryable: false, step: None };
    Next::end(Ending {
        error: Some(error),
        cancelled_by: cancelled.by.map(Into::into),
        ..Ending::new(Status::Cancelled, Termination::Cancelled, state.now.wall_ms)
    })
}

/// Refuses an event that could not be read back from a journal, before it is written.
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
        EventKind::StepReturned(returned) => match &returned.result {
            ToolResult::Ok(value) => storable::fault_of(value).map_or(Ok(()), |why| refused("the step's result", why)),
            ToolResult::Failed(_) => Ok(()),
        },
        EventKind::ToolReturned(ToolReturned { result: ToolResult::Ok(value), .. }) => {
            storable::fault_of(value).map_or(Ok(()), |why| refused("the tool's result", why))
        }
        EventKind::Human(decided) => value_can_be_kept(decided),
        _ => Ok(()),
    }
}

fn value_can_be_kept(decided: &Decided) -> Result<(), Refused> {
    match &decided.decision {
        Decision::Edit(value) | Decision::Happened(value) => {
            storable::fault_of(value).map_or(Ok(()), |why| Err(Refused::new(format!("the value {why}"))))
        }
        _ => Ok(()),
    }
}
