//! Workflows, as a pure function: the steps of a workflow or of a loop of mode `foreach`, one after the other, and the
//! items of a loop beside each other.

mod advance;
mod choose;
mod decide;
mod end;
mod expire;
pub mod form_answer;
pub mod item_budget;
pub(crate) mod item_label;
pub mod item_log;
pub mod item_row;
mod items;
mod on_failure;
mod outcome;
mod output;
mod partial_value;
mod place;
pub mod progress;
pub mod question;
pub mod record;
mod records;
mod redrive;
mod resume;
mod runs_again;
mod scope;
mod shown_item;
mod step_input;
mod step_start;
#[cfg(test)]
mod tests;
pub mod view;
mod wait;
mod waiting;

use std::mem;
use std::sync::Arc;

use serde_json::Value;

use self::advance::{Advance, ListEnd, StepList};
use self::output::is_of_output;
use self::progress::{FlowProgress, StepFault, Stopping};
use super::address::StepAddress;
use super::continuation;
use super::decision::consent;
use super::effect::{Effects, Refused};
use super::event::{Cancelled, CopiedUsage, Decided, Event, EventKind, ReadFile, Started};
use super::outcome::{Answer, Ending, Pause, RunError, Status, Termination};
use super::question::Question;
use super::state::{FlowState, Phase, RunHeader};
use super::step::may_come_in_line;
use super::timestamp::rfc3339;
use loopctl_lang::program::file_value::{self, FileValue, FileValues};
use loopctl_lang::program::flow::FlowProgram;

pub use on_failure::{failed_parts, has_failed_items, has_handled_failure};
pub use outcome::react_output;
pub use place::NoSuchStep;
pub use records::{context, records};
pub use runs_again::{RunAgain, runs_again};
pub(crate) use waiting::calls;
pub(crate) use waiting::questions as questions_of;
pub use waiting::{first_question, first_waiting, reminders, waiting_for, waiting_steps};

/// Applies an event to a workflow and returns the effects to perform.
///
/// # Errors
/// When the event does not fit; the state is untouched then.
pub(super) fn step(program: &FlowProgram, state: &mut FlowState, event: Event) -> Result<Effects, Refused> {
    let before = mem::replace(&mut state.now, event.at);
    let changes = mem::take(&mut state.progress.changes);
    let effects = transition(program, state, event.kind);
    if effects.is_err() {
        state.now = before;
        state.progress.changes = changes;
    }
    effects
}

/// Whether a decision fits a workflow as it is.
///
/// # Errors
/// Why it does not.
pub(super) fn fits(program: &FlowProgram, state: &FlowState, decided: &Decided) -> Result<(), Refused> {
    match &state.phase {
        Phase::Paused { .. } | Phase::Stepping => decide::fits(program, state, decided),
        phase => Err(phase.takes_no_decision()),
    }
}

/// The table of phases and events: the only place that says which event fits which phase.
// house: flat match
fn transition(program: &FlowProgram, state: &mut FlowState, event: EventKind) -> Result<Effects, Refused> {
    let refused = |why: &str| Err(Refused::new(why));
    match (&state.phase, event) {
        (Phase::New, EventKind::Started(started)) if !state.waits_in_line() => Ok(begin(program, state, *started)),
        (Phase::New, EventKind::Admitted) if state.waits_in_line() => Ok(first_steps(program, state)),
        (Phase::New, event) if !(state.waits_in_line() && may_come_in_line(&event)) => {
            refused(if state.waits_in_line() { "the run waits in its line" } else { "the run has not started" })
        }
        (_, EventKind::Admitted) => refused("the run waits in no line"),
        (_, EventKind::Started(_)) => refused("the run has started already"),
        (Phase::Ended(_), EventKind::Retried(retried)) => redrive::retried(program, state, retried),
        (Phase::Ended(ending), EventKind::LimitsRaised(raised)) if continuation::limit_of(ending).is_some() => {
            redrive::limits_raised(program, state, raised)
        }
        // What makes it continue with them comes next.
        (Phase::Ended(ending), EventKind::NewDocument(documents)) if ending.status != Status::Cancelled => {
            Arc::make_mut(&mut state.header).meaning = consent::meaning(&documents);
            Ok(Effects::new())
        }
        (Phase::Ended(ending), _) => Err(Refused::Ended { status: ending.status }),

        (_, EventKind::Interrupted) => {
            state.interrupted = true;
            Ok(Effects::new())
        }
        (_, EventKind::QuestionPosted(posted)) => {
            let now_ms = state.now.wall_ms;
            state.posts.take(*posted, now_ms);
            Ok(Effects::new())
        }
        (_, EventKind::NewDocument(documents)) => {
            Arc::make_mut(&mut state.header).meaning = consent::meaning(&documents);
            Ok(Effects::new())
        }
        (_, EventKind::Left) => {
            resume::left(state);
            Ok(Effects::new())
        }
        (_, EventKind::Cancelled(cancelled)) => Ok(cancel(program, state, cancelled)),
        (_, EventKind::LimitsRaised(raised)) => {
            continuation::raise(program, state, raised)?;
            Ok(Effects::new())
        }
        (Phase::New, EventKind::Resumed) => {
            state.interrupted = false;
            Ok(Effects::new())
        }
        (_, EventKind::Resumed) => Ok(resume::resumed(program, state)),
        (_, EventKind::Retried(retried)) if retried.anew => Ok(redrive::anew(program, state, retried)),
        (Phase::Paused { .. }, EventKind::Retried(retried)) => redrive::retried_paused(program, state, retried),
        (Phase::Paused { .. } | Phase::Stepping, EventKind::Human(decided)) => {
            decide::decided(program, state, &decided)
        }
        (Phase::Paused { .. } | Phase::Stepping, EventKind::ApprovalExpired) => expire::expired(program, state),
        (_, EventKind::Human(_) | EventKind::ApprovalExpired) => refused("the run waits for no human"),
        (Phase::Paused { .. }, _) => refused("the run waits for a human"),

        (_, EventKind::Stopping) => Ok(stop(program, state, Stopping::Interrupt)),
        (_, EventKind::DeadlinePassed) => Ok(stop(program, state, Stopping::Timeout)),
        (_, EventKind::StepReturned(returned)) => outcome::returned(program, state, *returned),
        (_, EventKind::StepRetried(retried)) => outcome::retried(program, state, *retried),
        (_, EventKind::StepLeft(left)) => {
            let at = StepAddress::new(&left.at);
            outcome::left(program, state, &at, &left)?;
            resume::step_left(state, &at);
            Ok(Effects::new())
        }
        (_, EventKind::StepWaits(waits)) => outcome::waits(program, state, *waits),
        (_, EventKind::StepPaused(paused)) => outcome::paused(program, state, *paused),
        (_, EventKind::StepAsks(asked)) => outcome::asks(program, state, *asked),
        (_, EventKind::Retried(_)) => refused("the run has not failed: resume it"),
        (
            _,
            EventKind::ModelReplied(_)
            | EventKind::ModelFailed(_)
            | EventKind::Summarized(_)
            | EventKind::AttemptsFailed(_)
            | EventKind::ToolReturned(_)
            | EventKind::ToolRetried(_)
            | EventKind::ToolLeft(_)
            | EventKind::ToolPaused(_)
            | EventKind::ToolAsks(_),
        ) => refused("the run is a workflow, and asks no model itself"),
    }
}

/// Initialises the state and begins the first steps.
fn begin(program: &FlowProgram, state: &mut FlowState, started: Started) -> Effects {
    let input = started.run_input();
    let files = Arc::new(files(&started.read, started.edition));
    let in_line = started.in_line;
    state.header = Arc::new(RunHeader {
        run_id: started.run_id,
        session: started.session,
        loop_name: started.loop_name,
        objective: started.objective,
        input,
        model: started.model,
        at_ms: state.now.wall_ms,
        timeout_ms: started.timeout_ms.unwrap_or(program.timeout_ms),
        meaning: consent::meaning(&started.documents),
        bound: started.bound,
        order: started.order,
        scripted: started.scripted,
        edition: started.edition,
        callback_rights: started.callback_rights,
        files,
        caller: started.caller,
        previous_run_id: None,
        rerun_of: started.rerun_of.map(String::into_boxed_str),
        delivery: started.delivery.map(Box::new),
        fork: None,
        copied: CopiedUsage::default(),
        started_by: started.started_by.map(|call| call.run_id.into_boxed_str()),
    });
    if in_line { Effects::new() } else { first_steps(program, state) }
}

/// Begins the first steps.
fn first_steps(program: &FlowProgram, state: &mut FlowState) -> Effects {
    let condition =
        program.condition.as_ref().map_or(Ok(true), |condition| Advance::of(program, state).holds(condition));
    match condition {
        Ok(true) => advanced(program, state, |_, _| {}),
        Ok(false) => {
            let ending = Ending::new(Status::Completed, Termination::ConditionNotMet, state.now.wall_ms);
            state.phase = Phase::Ended(Box::new(Ending { answer: Some(answer(Value::Null)), ..ending }));
            Effects::new()
        }
        Err(why) => {
            let message = format!("the workflow's `condition` can't be judged: {why}");
            fail(state, Termination::StepFailed, "bad_condition", message, None);
            Effects::new()
        }
    }
}

/// No further step begins; the run ends once no call is under way.
fn stop(program: &FlowProgram, state: &mut FlowState, why: Stopping) -> Effects {
    advanced(program, state, |_, progress| progress.stopping = progress.stopping.or(Some(why)))
}

/// Cancels the run: at once, or after the steps that its workflow has for that. A second time, these are not waited for. A run below
/// another one has none: the one above ends now, and waits for nobody.
fn cancel(program: &FlowProgram, state: &mut FlowState, cancelled: Cancelled) -> Effects {
    let is_handled = program.on_cancel
        && program.on_failure.is_some()
        && !matches!(state.phase, Phase::New)
        && state.header.caller.is_none()
        && !state.progress.root.is_handling();
    if !is_handled {
        end_cancelled(state, cancelled);
        return Effects::new();
    }
    state.interrupted = false;
    let fault = on_failure::of_cancel(&cancelled);
    advanced(program, state, |advance, progress| {
        // Nothing of what was under way is waited for.
        advance.spending = 0;
        progress.stopping = None;
        progress.cancelled = Some(Box::new(cancelled));
        progress.root.fault = Some(fault);
    })
}

fn end_cancelled(state: &mut FlowState, cancelled: Cancelled) {
    state.progress.cancelled = None;
    let message = cancelled.reason.unwrap_or_else(|| "the run was cancelled".to_owned());
    let error = RunError { code: "cancelled".to_owned(), message, retryable: false, step: None };
    let ending = Ending::new(Status::Cancelled, Termination::Cancelled, state.now.wall_ms);
    state.interrupted = false;
    let cancelled_by = cancelled.by.map(Into::into);
    state.phase = Phase::Ended(Box::new(Ending { error: Some(error), cancelled_by, ..ending }));
}

/// Changes the steps, and advances all of them as far as they go without an outcome from outside.
fn advanced(
    program: &FlowProgram,
    state: &mut FlowState,
    change: impl FnOnce(&mut Advance<'_>, &mut FlowProgress),
) -> Effects {
    let mut advance = Advance::of(program, state);
    let FlowState { head, progress } = &mut *state;
    change(&mut advance, progress);
    (advance.stopping, advance.round) = (progress.stopping, progress.rounds);
    advance.changed = mem::take(&mut progress.changed);
    advance.outages = mem::take(&mut progress.outages);
    let list = root(program);
    let around = [head.header.files.names()];
    let mut end = advance.list(&list, &mut progress.root, &around);
    while end.is_none() && mem::take(&mut advance.freed) {
        end = advance.list(&list, &mut progress.root, &around);
    }
    if end.is_none()
        && list.on_failure.is_some()
        && !progress.is_under_way()
        && !progress.root.is_handling()
        && let Some(fault) = advance.stopping.and_then(on_failure::of_limit)
    {
        progress.root.fault = Some(fault);
        end = advance.list(&list, &mut progress.root, &around);
    }
    let mut output = Value::Null;
    if let Some(ListEnd::Completed | ListEnd::Skipped) = end {
        match advance.output(&progress.root.keys) {
            Ok(made) => output = made,
            Err(fault) => {
                progress.root.fault = Some(fault);
                end = advance.list(&list, &mut progress.root, &around);
            }
        }
    }
    (progress.stopping, progress.changed, progress.outages) = (advance.stopping, advance.changed, advance.outages);
    for record in advance.records.drain(..) {
        // A loop that runs again after the run had completed has a record already.
        let known = progress.records.iter_mut().find(|known| progress.rounds > 0 && known.at == record.at);
        match known {
            Some(known) => *known = record,
            None => progress.records.push(record),
        }
    }
    progress.changes = advance.changes;
    let effects = advance.effects;
    settle(state, end, output);
    effects
}

/// The values of the files that the run reads. What started the run has seen that each has one.
fn files(read: &[ReadFile], edition: u32) -> FileValues {
    let value = |file: &ReadFile| {
        let text = file.text.shared();
        let strictly = (edition >= 2).then(|| file_value::read(&file.file, text, file.form.as_ref()).ok()).flatten();
        let value = strictly.or_else(|| file_value::read_of_old(&file.file, text).map(FileValue::of))?;
        Some((format!("{}{}", file_value::PREFIX, file.name), value))
    };
    read.iter().filter_map(value).collect()
}

/// The steps of the workflow.
fn root(program: &FlowProgram) -> StepList<'_> {
    let on_failure = program.on_failure;
    StepList { steps: &program.steps, on_failure, prefix: String::new(), of: None, label: None }
}

/// Where the run is after its steps advanced. `output`: what it answers, if they have ended.
fn settle(state: &mut FlowState, end: Option<ListEnd>, output: Value) {
    match end {
        Some(ListEnd::Completed | ListEnd::Skipped) => {
            let ending = Ending::new(Status::Completed, Termination::Complete, state.now.wall_ms);
            state.phase = Phase::Ended(Box::new(Ending { answer: Some(answer(output)), ..ending }));
        }
        Some(ListEnd::Failed(_)) if state.progress.cancelled.is_some() => {
            let cancelled = state.progress.cancelled.take().map(|cancelled| *cancelled);
            end_cancelled(state, cancelled.unwrap_or_default());
        }
        Some(ListEnd::Failed(fault)) if is_of_output(&fault) => {
            fail(state, Termination::StepFailed, &fault.code, fault.message, None);
        }
        // A limit is no failure of a step.
        Some(ListEnd::Failed(fault)) if fault.step.is_empty() => stopped(state),
        Some(ListEnd::Failed(fault)) => step_failed(state, fault),
        None if state.progress.is_under_way() => state.phase = Phase::Stepping,
        // What handles a failure may wait, whatever the limits are.
        None if handles_and_waits(state) => pause(state),
        None => stopped(state),
    }
    if matches!(state.phase, Phase::Ended(_)) {
        state.interrupted = false;
    }
}

/// Whether a step waits that handles the failure of the run, and the driver was not asked to stop.
fn handles_and_waits(state: &FlowState) -> bool {
    state.progress.root.is_handling()
        && state.progress.stopping != Some(Stopping::Interrupt)
        && state.progress.open().iter().any(|open| open.progress.waits())
}

/// Nothing is under way, and the steps have not ended.
fn stopped(state: &mut FlowState) {
    match state.progress.stopping {
        Some(Stopping::Timeout) => {
            let message = format!("{} ms of active time passed before the last step", state.timeout_ms());
            fail(state, Termination::Timeout, "timeout", message, None);
        }
        Some(Stopping::Budget) => {
            fail(state, Termination::Budget, "budget", "the run's budget is spent".to_owned(), None);
        }
        Some(Stopping::Interrupt) => state.phase = Phase::Stepping,
        None => pause(state),
    }
}

/// The run waits: for humans, or for something else where no step asks one. A pause with the same questions stays the same.
fn pause(state: &mut FlowState) {
    let waiting = waiting::of_pause(state.progress.open());
    let asked: Vec<String> = waiting.iter().map(|open| open.address.to_string()).collect();
    if let Phase::Paused { pause, .. } = &state.phase
        && pause.steps == asked
    {
        return;
    }
    let about = waiting::first_asked(&waiting);
    let questions: Vec<_> = about.iter().map(|open| waiting::question(open, &state.header)).collect();
    let asks = match waiting.as_slice() {
        [open] => open.progress.subrun().map(|wait| Box::new(wait.asks.clone())),
        _ => None,
    };
    let question = match questions.as_slice() {
        [only] => {
            let subrun = about.first().and_then(|open| open.progress.subrun());
            let context = subrun.and_then(|wait| wait.asks.question.context.clone());
            Question { context, ..only.question.clone() }
        }
        several => {
            let kinds = || several.iter().map(|step| step.question.kind);
            // A human who is asked is asked, whatever else is waited for; what lacks room in a spending limit is asked again when that is
            // raised.
            let asks_human = kinds().find(|kind| !kind.needs_no_human());
            let lacks_room = kinds().find(|kind| *kind == Termination::SpendingLimit);
            let kind = asks_human.or(lacks_room).or(kinds().next()).unwrap_or(Termination::Human);
            let asked: Vec<String> = several.iter().map(|step| step.at.clone()).collect();
            let until = several.iter().filter(|_| kind.is_wait()).filter_map(|step| step.expires_at_ms).min();
            let until = until.map(|at_ms| format!(", the first until {}", rfc3339(at_ms))).unwrap_or_default();
            Question::new(kind, format!("{} steps wait: {}{until}", several.len(), listed(&asked)))
        }
    };
    let pause = Pause { steps: asked, asks, ..*state.new_pause(question, Vec::new()) };
    state.phase = Phase::Paused { pause: Box::new(pause), turn: None };
}

/// Names in a sentence: the first few of many.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

fn step_failed(state: &mut FlowState, fault: StepFault) {
    let StepFault { code, message, step, retryable } = fault;
    let termination = match code.as_str() {
        "rejected" | "approval_expired" => Termination::Rejected,
        "form_expired" => Termination::FormExpired,
        _ => Termination::StepFailed,
    };
    let code = match termination {
        Termination::StepFailed => "step_failed".to_owned(),
        _ => code,
    };
    fail(state, termination, &code, format!("the step `{step}` failed: {message}"), Some(step));
    if let Phase::Ended(ending) = &mut state.phase
        && let Some(error) = &mut ending.error
    {
        error.retryable = retryable;
    }
}

fn fail(state: &mut FlowState, termination: Termination, code: &str, message: String, step: Option<String>) {
    let error = RunError { code: code.to_owned(), message, retryable: false, step };
    let ending = Ending::new(Status::Failed, termination, state.now.wall_ms);
    state.phase = Phase::Ended(Box::new(Ending { error: Some(error), ..ending }));
}

fn answer(answer: Value) -> Answer {
    Answer { answer, confidence: None, summary: None }
}
