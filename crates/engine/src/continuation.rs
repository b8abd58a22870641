//! How a run continues that had ended: a human retries it after an outage of its model, or raises the limit that
//! ended it.

use std::mem;
use std::sync::Arc;

use super::budget;
use super::continuation_record::ContinuationRecord;
use super::conversation::Role;
use super::dialect;
use super::effect::Refused;
use super::event::{Allowance, LimitsRaised, RaisedLimits, Retried};
use super::limit::{self, DocumentLimits};
use super::next::Next;
use super::outcome::{Ending, Limit, Pause, Status, Termination};
use super::state::{LoopState, Phase, StateHead};
use loopctl_lang::program::{LoopProgram, Program};

/// What the model reads when it was asked for its last answer, and may continue after all.
const GO_ON: &str = "The limit of this run was raised: the last answer is not wanted yet. Go on as before; tools may \
                     be called again.";

/// Why a run is not retried that is paused.
pub(super) const WAITS_FOR_A_HUMAN: &str = "the run waits for a human, and did not fail: resume it with a decision";

/// Whether a run that has ended may continue: its model could not be reached, a limit ended it that can be raised, or
/// it was cancelled.
pub(super) fn may_continue(state: &LoopState, ending: &Ending) -> bool {
    is_outage(ending) || limit_of(ending).is_some() || state.cancelled_in.is_some()
}

/// Whether a retry may succeed: the model failed for a reason outside of the run, or a spending limit left no room, which can be
/// raised whether or not there will be room in it by itself.
pub fn is_outage(ending: &Ending) -> bool {
    match ending.termination {
        Termination::ModelError => ending.error.as_ref().is_some_and(|error| error.retryable),
        Termination::SpendingLimit => true,
        _ => false,
    }
}

/// The limit that ended a run and can be raised.
pub fn limit_of(ending: &Ending) -> Option<Limit> {
    match (ending.status, ending.termination) {
        (Status::Failed, Termination::MaxIterations) => Some(Limit::MaxIterations),
        (Status::Failed, Termination::Timeout) => Some(Limit::Timeout),
        (Status::Failed, Termination::Budget) => Some(Limit::Budget),
        _ => None,
    }
}

/// What a run that a limit ended is given when the step runs again that it is: this time, this rest of the budget of its
/// caller, and its own budget once more, each in addition to what it used. None when nothing is left for it.
pub fn share_again(program: &Program, state: &StateHead, time_ms: u64, left: Allowance) -> Option<LimitsRaised> {
    let Allowance { tokens, cost_usd } = budget::used(state);
    let (tokens, cost_usd) = (tokens.unwrap_or_default(), cost_usd.unwrap_or_default());
    if time_ms <= 1 || left.tokens == Some(0) || left.cost_usd.is_some_and(|left| left <= 0.0) {
        return None;
    }
    let bound = Allowance {
        tokens: left.tokens.map(|left| tokens.saturating_add(left)),
        cost_usd: left.cost_usd.map(|left| cost_usd + left),
    };
    let own = budget::own(program, state).unwrap_or_default();
    let document = program.budget.as_ref();
    let (more_tokens, more_usd) =
        (document.and_then(|budget| budget.tokens), document.and_then(|budget| budget.cost_usd));
    let budget = Allowance {
        tokens: own.tokens.filter(|own| tokens >= *own).map(|_| tokens.saturating_add(more_tokens.unwrap_or_default())),
        cost_usd: own.cost_usd.filter(|own| cost_usd >= *own).map(|_| cost_usd + more_usd.unwrap_or_default()),
    };
    let timeout_ms = Some(state.now.active_ms.saturating_add(time_ms)).filter(|most| *most > state.timeout_ms());
    let limits = RaisedLimits { max_iterations: None, timeout_ms, budget };
    Some(LimitsRaised { limits, by: None, bound: (!bound.is_none()).then_some(bound) })
}

/// A run that failed because of its model asks it again.
pub(super) fn retry_ended(state: &mut LoopState, ending: Box<Ending>, retried: Retried) -> Next {
    if !is_outage(&ending) {
        let why = not_retryable(&ending);
        return Next::refuse(Phase::Ended(ending), why);
    }
    let record = entry(state, retried.by, Some(&ending));
    state.continuations.push(record);
    state.watch.paid.end();
    Next::ask_again(state.watch.last_call)
}

fn not_retryable(ending: &Ending) -> String {
    let error = ending.error.as_ref();
    match (ending.status, limit_of(ending)) {
        (Status::Completed, _) => {
            "the run has completed: there is nothing to retry. A rerun starts a new run with its input".to_owned()
        }
        (Status::Cancelled, _) => {
            "the run was cancelled, and did not fail: there is nothing to retry. A rerun starts a new run with its input"
                .to_owned()
        }
        (_, Some(limit)) => format!(
            "a retry would end the same way: {}. Raise {} when you resume it",
            error.map_or("a limit was reached", |error| sentence(&error.message)),
            field(limit)
        ),
        _ => format!(
            "the run did not fail for a reason outside of it, and a retry would end the same way: {}. A rerun starts a \
             new run with its input",
            error.map_or("it has no error", |error| sentence(&error.message))
        ),
    }
}

/// A sentence without its full stop, to be a part of another one.
fn sentence(text: &str) -> &str {
    text.trim_end().trim_end_matches('.')
}

/// A run that waits for its model asks it again.
pub(super) fn retry_paused(state: &mut LoopState, phase: Phase, retried: Retried) -> Next {
    match &phase {
        Phase::Paused { pause, .. } if waits_for_model(pause) => {
            let error = Some(pause.question.text.clone());
            let record = ContinuationRecord { error, ..entry(state, retried.by, None) };
            state.continuations.push(record);
            state.watch.paid.end();
            Next::Wait(phase)
        }
        Phase::Paused { .. } => Next::refuse(phase, WAITS_FOR_A_HUMAN),
        _ => Next::refuse(phase, "the run has not failed: resume it"),
    }
}

/// Whether a loop, or the run that it called, waits for its model or for room in a spending limit.
fn waits_for_model(pause: &Pause) -> bool {
    matches!(pause.question.kind, Termination::ModelError | Termination::SpendingLimit)
        || pause.asks.as_ref().is_some_and(|asks| asks.waits_for_model())
}

/// Raises limits of a run that has not ended.
pub(super) fn raise<'p>(
    limits: impl Into<DocumentLimits<'p>>,
    state: &mut StateHead,
    raised: LimitsRaised,
) -> Result<(), Refused> {
    let limits = limits.into();
    apply(limits, state, &raised)?;
    record(limits, state, raised, None);
    Ok(())
}

fn give_back(state: &mut StateHead, limits: RaisedLimits, bound: Allowance) {
    state.limits = limits;
    if state.header.bound != bound {
        Arc::make_mut(&mut state.header).bound = bound;
    }
}

/// The same for a loop.
pub(super) fn raise_open(program: &LoopProgram, state: &mut LoopState, phase: Phase, raised: LimitsRaised) -> Next {
    match raise(program, state, raised) {
        Ok(()) => Next::Wait(phase),
        Err(refused) => Next::Refuse { phase, refused },
    }
}

/// Raises the limit that ended a run. A cancelled run may raise any.
pub(super) fn raise_spent<'p>(
    limits: impl Into<DocumentLimits<'p>>,
    state: &mut StateHead,
    ending: &Ending,
    raised: LimitsRaised,
) -> Result<(), Refused> {
    let (limits, limit) = (limits.into(), limit_of(ending));
    let (before, bound) = (state.limits, state.header.bound);
    let fits = match limit {
        None if ending.status != Status::Cancelled => Err(Refused::new(no_limit(ending))),
        Some(limit) if !gives(limit, &raised) => Err(Refused::new(other_limit(ending, limit))),
        _ => apply(limits, state, &raised),
    };
    let fits = fits.and_then(|()| match limit::spent(limits, state) {
        Some(still) if limit.is_some() => Err(Refused::new(still_spent(limits, state, still))),
        _ => Ok(()),
    });
    match fits {
        Ok(()) => record(limits, state, raised, Some(ending)),
        Err(_) => give_back(state, before, bound),
    }
    fits
}

/// Raises the limit that ended a run, and continues it. A cancelled run waits in the phase that it was in.
pub(super) fn raise_ended(
    program: &LoopProgram,
    state: &mut LoopState,
    ending: Box<Ending>,
    raised: LimitsRaised,
) -> Next {
    if let Err(refused) = raise_spent(program, state, &ending, raised) {
        return Next::Refuse { phase: Phase::Ended(ending), refused };
    }
    state.watch.paid.end();
    if let Some(phase) = state.cancelled_in.take() {
        return Next::Wait(*phase);
    }
    if state.watch.last_call.take().is_some() {
        take_back_the_last_call(program, state);
    }
    Next::Think
}

/// The model was asked for its last answer, and gave none that could be taken.
fn take_back_the_last_call(program: &LoopProgram, state: &mut LoopState) {
    let dialect = program.properties.dialect;
    let answered = state.conversation.messages.last().is_some_and(|message| message.role == Role::Assistant);
    if answered {
        dialect::report_refusal(dialect, &mut state.conversation, GO_ON);
    } else {
        state.conversation.push(Role::User, format!("{GO_ON}\n\n{}", dialect::question(dialect)));
    }
}

fn record(limits: DocumentLimits<'_>, state: &mut StateHead, raised: LimitsRaised, ending: Option<&Ending>) {
    let record = entry(state, raised.by, ending);
    state.continuations.push(ContinuationRecord { limits: Some(raised.limits), ..record });
    // The warning is due again at the share of the new budget.
    state.budget.is_warned = false;
    budget::look(limits.head, state);
}

/// Raises the limits, each above the present one and above what is used.
fn apply(limits: DocumentLimits<'_>, state: &mut StateHead, raised: &LimitsRaised) -> Result<(), Refused> {
    let RaisedLimits { max_iterations, timeout_ms, budget } = raised.limits;
    if raised.limits.is_none() && raised.bound.is_none() {
        return Err(Refused::new("no limit is given"));
    }
    if max_iterations.is_some() && !limits.has_iterations && state.header.refuses_iterations() {
        return Err(Refused::new("a workflow has no iterations: `max_iterations` is a limit of a loop"));
    }
    let (own, used) = (budget::own(limits.head, state).unwrap_or_default(), budget::used(state));
    let iterations = Some(limits.max_iterations(state));
    higher("max_iterations", max_iterations, iterations, Some(state.counters.iterations))?;
    higher("timeout_ms", timeout_ms, Some(state.timeout_ms()), Some(state.now.active_ms))?;
    higher("budget.tokens", budget.tokens, own.tokens, used.tokens)?;
    higher("budget.cost_usd", budget.cost_usd, own.cost_usd, used.cost_usd)?;
    let earlier = mem::take(&mut state.limits);
    state.limits = raised.limits.over(earlier);
    if let Some(bound) = raised.bound {
        Arc::make_mut(&mut state.header).bound = bound;
    }
    Ok(())
}

fn higher<T: PartialOrd + std::fmt::Display>(
    name: &str,
    new: Option<T>,
    present: Option<T>,
    used: Option<T>,
) -> Result<(), Refused> {
    let Some(new) = new else { return Ok(()) };
    let Some(present) = present else {
        return Err(Refused::new(format!("the run has no `{name}`, so there is nothing to raise")));
    };
    // A number that can't be compared is not higher.
    let is_above = |bound: &T| new > *bound;
    match used.filter(|used| !is_above(used)) {
        Some(used) => Err(Refused::new(format!("`{name}` must be more than {used}, which is used already"))),
        None if is_above(&present) => Ok(()),
        None => Err(Refused::new(format!("`{name}` is {present}: it can be raised, and not lowered to {new}"))),
    }
}

fn gives(limit: Limit, raised: &LimitsRaised) -> bool {
    let LimitsRaised { limits: raised, bound, .. } = raised;
    match limit {
        Limit::MaxIterations => raised.max_iterations.is_some(),
        Limit::Timeout => raised.timeout_ms.is_some(),
        Limit::Budget => !raised.budget.is_none() || bound.is_some(),
        Limit::Context => false,
    }
}

/// The field of the document that sets a limit.
fn field(limit: Limit) -> &'static str {
    match limit {
        Limit::MaxIterations => "`max_iterations`",
        Limit::Timeout => "`timeout_ms`",
        Limit::Budget => "its `budget`",
        Limit::Context => "the window of the model",
    }
}

fn no_limit(ending: &Ending) -> String {
    match (ending.status, ending.termination) {
        (Status::Completed, _) => {
            "the run has completed: it has no limit to raise. A rerun starts a new run with its input".to_owned()
        }
        (_, Termination::Context) => {
            "the run ended because its conversation is too long for the model, and no limit of \
                                      the run changes that"
                .to_owned()
        }
        (_, Termination::ModelError) if is_outage(ending) => {
            "the run ended because its model could not be reached, and not by a limit: retry it".to_owned()
        }
        (_, Termination::SpendingLimit) => {
            "a spending limit of the project ended the run, and not one of its own: retry it".to_owned()
        }
        _ => format!(
            "no limit ended the run: {}",
            ending.error.as_ref().map_or("it has no error", |error| error.message.as_str())
        ),
    }
}

fn other_limit(ending: &Ending, limit: Limit) -> String {
    let message = ending.error.as_ref().map_or("a limit was reached", |error| error.message.as_str());
    format!("this limit did not end the run: {message}. Raise {}", field(limit))
}

fn still_spent(limits: DocumentLimits<'_>, state: &StateHead, still: Limit) -> String {
    let own = budget::own(limits.head, state).unwrap_or_default();
    let used = budget::used(state);
    let spent = match still {
        Limit::MaxIterations => format!("`max_iterations` ({} are used)", state.counters.iterations),
        Limit::Timeout => format!("`timeout_ms` ({} ms are used)", state.now.active_ms),
        Limit::Budget => match (own.tokens, used.tokens) {
            (Some(most), Some(used)) if used >= most => format!("`budget.tokens` ({used} of {most} are used)"),
            _ => format!("`budget.cost_usd` ({} US dollars are used)", used.cost_usd.unwrap_or_default()),
        },
        Limit::Context => "the window of the model".to_owned(),
    };
    format!("the run would end again at once: raise {spent} too")
}

/// What is used of each limit: the numbers that a higher limit is compared with.
pub fn used(state: &StateHead) -> RaisedLimits {
    let Allowance { tokens, cost_usd } = budget::used(state);
    RaisedLimits {
        max_iterations: Some(state.counters.iterations),
        timeout_ms: Some(state.now.active_ms),
        budget: Allowance { tokens, cost_usd },
    }
}

/// The present limits of a run.
pub fn limits(program: &Program, state: &StateHead) -> RaisedLimits {
    RaisedLimits {
        max_iterations: Some(DocumentLimits::from(program).max_iterations(state)),
        timeout_ms: Some(state.timeout_ms()),
        budget: budget::own(program, state).unwrap_or_default(),
    }
}

pub(super) fn entry(state: &StateHead, by: Option<String>, ending: Option<&Ending>) -> ContinuationRecord {
    ContinuationRecord {
        by,
        at_ms: state.now.wall_ms,
        iterations: state.counters.iterations,
        termination: ending.map(|ending| ending.termination),
        error: ending.and_then(|ending| ending.error.as_ref()).map(|error| error.message.clone()),
        limits: None,
    }
}
