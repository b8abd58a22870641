//! The steps of a workflow and of the items of its loops, with their inputs and outputs: what the events of a run say of them, for a page that shows all of it. The
//! state keeps little of an item that has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::place::below;
use super::progress::StepChange;
use super::record::StepRecord;
use super::view::{ItemWindow, ItemsView, StepLog};
use crate::state::State;
use loopctl_lang::program::Program;
use loopctl_lang::program::flow::{FlowStep, StepAction};

/// The most items of a loop that are kept.
const MOST_ITEMS: usize = 1_000;
/// The most steps of items that are kept, those of all loops together.
const MOST_STEPS: usize = 3_000;
/// A longer input or output is not kept, in bytes of JSON.
const MOST_VALUE_BYTES: usize = 64 << 10;

/// Keeps the items and their steps while events are folded.
#[derive(Debug, Default)]
pub struct ItemLog {
    /// The steps of the workflow itself that ended, by address.
    steps: BTreeMap<String, StepRecord>,
    loops: Vec<LoopLog>,
    kept: usize,
    left_out: usize,
}

/// A loop of the workflow itself.
#[derive(Debug)]
struct LoopLog {
    at: String,
    view: StepLog,
    /// The steps that ended, by the number of the item; those of loops inside included.
    steps: BTreeMap<u32, Vec<StepRecord>>,
}

/// The items of a loop with their steps.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopItems {
    /// The address of the loop.
    pub at: String,
    /// The items.
    pub items: ItemsView,
    /// The steps that ended, by the number of the item, in the order in which they did.
    pub steps: BTreeMap<u32, Vec<StepRecord>>,
}

impl ItemLog {
    /// A log for the loops of a program; it stays empty for one that has none.
    pub fn new(program: &Program) -> Self {
        let mut loops = Vec::new();
        for first in program.as_flow().map(|flow| flow.steps.as_slice()).unwrap_or_default() {
            let mut next: Option<&FlowStep> = Some(first);
            while let Some(step) = next {
                if matches!(step.action, StepAction::Foreach(_)) {
                    let view = StepLog::new(Some(step.name.clone()));
                    loops.push(LoopLog { at: step.name.clone(), view, steps: BTreeMap::new() });
                }
                next = step.otherwise.as_deref();
            }
        }
        Self { loops, ..Self::default() }
    }

    /// Keeps what the last event did.
    pub fn take(&mut self, state: &State) {
        for change in state.step_changes() {
            if let StepChange::Ended(record) = change
                && record.list.is_empty()
            {
                self.steps.insert(record.at.clone(), bounded((**record).clone()));
            }
        }
        for of_loop in &mut self.loops {
            of_loop.view.take(state);
            for change in state.step_changes() {
                let StepChange::Ended(record) = change else { continue };
                let Some(index) = below(&record.at, &of_loop.at).and_then(|rest| rest.split('.').next()) else {
                    continue;
                };
                let Ok(index) = index.parse() else { continue };
                if self.kept >= MOST_STEPS {
                    self.left_out += 1;
                    continue;
                }
                self.kept += 1;
                of_loop.steps.entry(index).or_default().push(bounded((**record).clone()));
            }
        }
    }

    /// The steps of the workflow itself that ended, by address, with their inputs and outputs.
    pub fn steps(&self) -> &BTreeMap<String, StepRecord> {
        &self.steps
    }

    /// How many steps of items that ended are not kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The loops that have items, in the order of the document.
    pub fn loops(&self, program: &Program, state: &State, driven: bool) -> Vec<LoopItems> {
        let window = ItemWindow { from: 0, most: MOST_ITEMS, status: None };
        let items = |of_loop: &LoopLog| {
            let items = of_loop.view.view(program, state, driven, window).ok()?.items?;
            let known = LoopItems { at: of_loop.at.clone(), items, steps: of_loop.steps.clone() };
            (known.items.total > 0).then_some(known)
        };
        self.loops.iter().filter_map(items).collect()
    }
}

/// A step without the values that are too long for a page.
fn bounded(record: StepRecord) -> StepRecord {
    let said = |bytes: usize| Value::from(format!("(JSON of {bytes} bytes)"));
    let is_long = |value: &Value| Some(value.to_string().len()).filter(|bytes| *bytes > MOST_VALUE_BYTES);
    let input = record.input.map(|input| is_long(&input).map(|bytes| Arc::new(said(bytes))).unwrap_or(input));
    let output = record.output.map(|output| is_long(&output).map(said).unwrap_or(output));
    StepRecord { input, output, ..record }
}
