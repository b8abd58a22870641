//! The record of a workflow: its steps that ended, and those that have not.

use serde_json::{Map, Value};

use super::items::counts_so_far;
use super::record::{StepRecord, StepStatus};
use super::state::{Current, StepProgress};
use crate::engine::outcome::Status;
use crate::engine::state::State;

/// The steps of a workflow that ended or were skipped, and the present one; those of items are not among them. `driven`:
/// whether a driver has the run now; if none has, it is not known whether a step that has no outcome happened.
pub fn records(state: &State, driven: bool) -> Vec<StepRecord> {
    let Some(flow) = &state.flow else { return Vec::new() };
    let mut records = flow.records.clone();
    let is_over = !matches!(state.status(), Status::Running | Status::Paused) || !driven;
    if state.status() == Status::Failed {
        // The failed step is recorded already.
        return records;
    }
    match &flow.root.current {
        Current::Idle => {}
        Current::Open(open) => {
            let status = match &open.progress {
                progress if progress.waits_for_human() && *progress != StepProgress::Uncertain => StepStatus::Waiting,
                StepProgress::Uncertain => StepStatus::Uncertain,
                progress if is_over && progress.is_under_way() => StepStatus::Uncertain,
                _ => StepStatus::Running,
            };
            let record = StepRecord::new(open.at.clone(), open.kind.clone(), status, open.since_ms);
            let run_id = open.run_id.as_deref().map(str::to_owned);
            records.push(StepRecord { input: Some(open.input.clone()), run_id, ..record });
        }
        Current::Items(items) => {
            let record = StepRecord::new(items.at.clone(), "loop".to_owned(), StepStatus::Running, items.since_ms);
            records.push(StepRecord { items: Some(counts_so_far(items)), ..record });
        }
    }
    records
}

/// What the steps of a workflow can read now: its input, and the keys that they have written; none for a loop. The keys of
/// items are not among them.
pub fn context(state: &State) -> Option<Value> {
    let mut context = Map::from_iter([("input".to_owned(), state.header.input.clone())]);
    context.extend(state.flow.as_ref()?.root.keys.clone());
    Some(Value::Object(context))
}
