//! The record of a workflow: its steps that ended, and those that have not.

use serde_json::{Map, Value};

use super::items::counts_so_far;
use super::progress::{Current, ItemsState, StepFrame};
use super::record::{StepRecord, StepStatus};
use crate::operation::{OpenStep, Progress};
use crate::outcome::Status;
use crate::state::{Phase, State, StateHead};

/// What is known of the run around a step that has no outcome.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepSurroundings<'r> {
    /// The run's id.
    pub run_id: &'r str,
    /// Whether the run, or the item around the step, has ended: the step does not continue.
    pub is_over: bool,
    /// Whether a driver has the run: if none has, it is not known whether a step that was requested happened.
    pub is_driven: bool,
}

impl<'r> StepSurroundings<'r> {
    /// What is known of a run. `driven`: whether a driver has the run now.
    pub fn of(state: &'r StateHead, driven: bool) -> Self {
        let is_driven = driven && matches!(state.status(), Status::Running | Status::Paused);
        Self { run_id: &state.header.run_id, is_over: matches!(state.phase, Phase::Ended(_)), is_driven }
    }

    /// Where an open step is.
    fn status(self, open: &OpenStep) -> StepStatus {
        match &open.progress {
            Progress::Uncertain(_) => StepStatus::Uncertain,
            progress if progress.is_under_way() && !self.is_driven => StepStatus::Uncertain,
            _ if self.is_over => StepStatus::Cancelled,
            progress if progress.waits() => StepStatus::Waiting,
            _ => StepStatus::Running,
        }
    }

    /// Where an item that has not ended is, or the loop of several: under way as soon as one of its steps is.
    pub fn status_of(self, frame: &StepFrame) -> StepStatus {
        match &frame.current {
            Current::Open(open) => self.status(open),
            Current::Items(items) => self.status_of_items(items),
            Current::Idle if self.is_over => StepStatus::Cancelled,
            Current::Idle => StepStatus::Running,
        }
    }

    fn status_of_items(self, items: &ItemsState) -> StepStatus {
        if self.is_over {
            return StepStatus::Cancelled;
        }
        let of_items: Vec<StepStatus> = items.open.values().map(|frame| self.status_of(frame)).collect();
        let likely = [StepStatus::Running, StepStatus::Waiting, StepStatus::Uncertain];
        likely.into_iter().find(|status| of_items.contains(status)).unwrap_or(StepStatus::Running)
    }

    /// The record of an open step.
    pub fn open(self, open: &OpenStep) -> StepRecord {
        let record = StepRecord::new(open.address.to_string(), open.name.clone(), self.status(open), open.due_at_ms);
        let run_id = open.run_id.as_deref().map(str::to_owned);
        let item_label = open.item_label.as_deref().map(str::to_owned);
        let (input, attempts) = (Some(open.input.clone()), open.attempts.clone());
        StepRecord { item_label, input, run_id, attempts, waited_ms: open.waited_ms, ..record }
    }

    /// The record of a loop that has not ended.
    pub fn items(self, items: &ItemsState) -> StepRecord {
        let status = self.status_of_items(items);
        let record = StepRecord::new(items.at.clone(), "loop".to_owned(), status, items.since_ms);
        StepRecord { items: Some(counts_so_far(items)), ..record }
    }
}

/// The steps of a workflow that ended or were skipped, and the present one; those of items are not among them. `driven`:
/// whether a driver has the run now; if none has, it is not known whether a step that has no outcome happened.
pub fn records(state: &State, driven: bool) -> Vec<StepRecord> {
    let Some(progress) = state.as_flow().map(|state| &state.progress) else { return Vec::new() };
    let mut records = progress.records.clone();
    let around = StepSurroundings::of(state, driven);
    match &progress.root.current {
        Current::Idle => {}
        Current::Open(open) => records.push(around.open(open)),
        Current::Items(items) => {
            let record = around.items(items);
            // A loop that failed stays as it is, and is recorded already.
            let has_failed = |known: &StepRecord| known.at == record.at && known.status == StepStatus::Failed;
            if items.stopped && records.iter().any(has_failed) {
                return records;
            }
            match records.iter_mut().find(|known| known.at == record.at) {
                Some(known) => *known = record,
                None => records.push(record),
            }
        }
    }
    records
}

/// What the steps of a workflow can read now: its input, and the keys that they have written; none for a loop. The keys of
/// items are not among them.
pub fn context(state: &State) -> Option<Value> {
    let state = state.as_flow()?;
    let mut context = Map::from_iter([("input".to_owned(), state.header.input.whole().into_owned())]);
    context.extend(state.progress.root.keys.clone());
    Some(Value::Object(context))
}
