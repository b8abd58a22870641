//! The steps that run when a list of steps has failed, `on_failure`: with what was written so far, once for each failure. The
//! list fails when they have ended, with its own failure: that of one of them is in its record, and hides nothing.

use std::mem;

use serde_json::{Value, json};

use super::advance::{Advance, ListEnd, StepList};
use super::place::below;
use super::progress::{Current, FailedList, ItemsState, StepFault, StepFrame, Stopping, WrittenKeys};
use super::redrive;
use crate::event::{Cancelled, FailedParts};
use crate::outcome::Status;
use crate::state::{Phase, State};
use loopctl_lang::program::flow::{ERROR_KEY, FlowStep, ON_FAILURE};

impl Advance<'_> {
    /// A list failed: the steps for that begin, unless it has none or the failure is one of theirs. Returns how the list
    /// ended, if it did.
    pub fn list_failed(&self, list: &StepList<'_>, frame: &mut StepFrame, fault: StepFault) -> Option<ListEnd> {
        if frame.failed.is_some() {
            return frame.handled().map(ListEnd::Failed);
        }
        let Some(slot) = list.on_failure else { return Some(ListEnd::Failed(fault)) };
        // What an earlier failure chose is chosen anew.
        frame.cases.retain(|choose, _| choose.split('.').next() != Some(ON_FAILURE));
        frame.cases.insert(ON_FAILURE.to_owned(), 0);
        frame.given.insert(ERROR_KEY.to_owned(), error(&fault));
        let (next, current) = (mem::replace(&mut frame.next, slot), mem::take(&mut frame.current));
        let done = mem::take(&mut frame.done);
        let written = self
            .header
            .keeps_keys_of_a_failure_apart()
            .then(|| WrittenKeys { keys: frame.keys.clone(), last: frame.last.clone() });
        frame.failed = Some(Box::new(FailedList { fault, next, current, done, written }));
        None
    }

    /// Whether no step of a list begins now: its loop stops, or the run does. What a failure is handled with runs all the same,
    /// unless the driver was asked to stop.
    pub fn is_barred(&self) -> bool {
        let stops = match self.stopping {
            Some(Stopping::Interrupt) => true,
            Some(Stopping::Timeout | Stopping::Budget) => !self.is_handling,
            None => false,
        };
        self.blocked || stops
    }
}

/// A limit of the run as a failure of its steps.
pub(super) fn of_limit(stopping: Stopping) -> Option<StepFault> {
    match stopping {
        Stopping::Timeout => Some(StepFault::new("timeout", "the time of the run is over", "")),
        Stopping::Budget => Some(StepFault::new("budget", "the run's budget is spent", "")),
        Stopping::Interrupt => None,
    }
}

/// A cancel as a failure of its steps.
pub(super) fn of_cancel(cancelled: &Cancelled) -> StepFault {
    let reason = cancelled.reason.clone().unwrap_or_else(|| "the run was cancelled".to_owned());
    StepFault::new("cancelled", reason, "")
}

/// A failure as the steps for it read it.
fn error(fault: &StepFault) -> Value {
    let StepFault { code, message, step, retryable } = fault;
    let step = if step.is_empty() { Value::Null } else { Value::from(step.as_str()) };
    json!({ "step": step, "code": code, "message": message, "retryable": retryable })
}

/// Whether a run has completed although items of it failed, or of the runs below it: a retry runs them again.
pub fn has_failed_items(state: &State) -> bool {
    state.as_flow().is_some_and(|state| state.progress.root.has_kept())
}

/// Whether steps of `on_failure` have run for the failures because of which a run would continue. Those that send a text took
/// nothing back.
pub fn has_handled_failure(state: &State) -> bool {
    state.as_flow().is_some_and(|state| state.progress.root.has_handled())
}

/// What runs again when a run that has ended is retried, beside the step that ended it.
pub fn failed_parts(state: &State) -> FailedParts {
    let Some(state) = state.as_flow() else { return FailedParts::default() };
    let completed = matches!(&state.phase, Phase::Ended(ending) if ending.status == Status::Completed);
    let mut loops = Vec::new();
    redrive::failed_loops(&state.progress.root, &mut loops);
    FailedParts { loops, completed }
}

impl StepFrame {
    /// The steps for its failure have ended: it is as it was when it failed, so that its step may run again. Returns the
    /// failure.
    pub(super) fn handled(&mut self) -> Option<StepFault> {
        let FailedList { fault, next, current, done, written } = *self.failed.take()?;
        (self.next, self.current, self.done) = (next, current, done);
        // A step that runs again reads what it read before, and neither an approval nor a result of the steps for its failure.
        if let Some(WrittenKeys { keys, last }) = written {
            (self.keys, self.last) = (keys, last);
        }
        self.cases.remove(ON_FAILURE);
        self.given.remove(ERROR_KEY);
        Some(fault)
    }

    /// Whether steps have handled a failure of it, or of an item in it that may run again. Loops are at most three deep: the recursion
    /// ends.
    fn has_handled(&self) -> bool {
        let present = match &self.current {
            Current::Items(items) => Some(items),
            _ => None,
        };
        let items = present.into_iter().chain(self.kept.values());
        let mut frames = items.flat_map(|items| items.unfinished.values().chain(items.partly.values()));
        self.handled || frames.any(Self::has_handled)
    }

    /// Whether its failure is being handled.
    pub(super) fn is_handling(&self) -> bool {
        self.failed.is_some()
    }

    /// The loop at an address, or around it: the present step, or the one that failed while that is handled.
    pub(super) fn loop_around(&self, address: &str) -> Option<&ItemsState> {
        let failed = self.failed.iter().map(|failed| &failed.current);
        std::iter::once(&self.current).chain(failed).find_map(|current| match current {
            Current::Items(items) if items.at == address || below(address, &items.at).is_some() => Some(&**items),
            _ => None,
        })
    }

    /// The place that the list has come to; for the steps before those that handle its failure, where it failed.
    pub(super) fn place_for(&self, step: &FlowStep) -> usize {
        let handles = step.within.first().is_some_and(|of| *of.choose == *ON_FAILURE);
        self.failed.as_ref().filter(|_| !handles).map_or(self.next, |failed| failed.next)
    }
}
