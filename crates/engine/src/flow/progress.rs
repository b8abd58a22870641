//! The state of a workflow: how far each list of steps is, and what its steps wrote.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::item_row::ItemRow;
use super::record::{ItemCounts, StepRecord};
use crate::address::StepAddress;
use crate::call_attempt::CallAttempt;
use crate::event::Cancelled;
use crate::operation::{OpenStep, SettledCost};
use loopctl_lang::program::flow::FlowStep;

/// The state of a workflow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowProgress {
    /// The steps of the workflow.
    pub root: StepFrame,
    /// Why no further step begins, once that is so.
    pub stopping: Option<Stopping>,
    /// The steps of the workflow that ended or were skipped, without those in loops.
    pub records: Vec<StepRecord>,
    /// How often failed steps were run again.
    pub rounds: u32,
    /// How often the request of a step was changed after it failed, by its address.
    pub changed: BTreeMap<String, u32>,
    /// The runs of steps that failed for a reason outside of them, by the address of the step.
    pub outages: BTreeMap<String, FailedRun>,
    /// Who cancelled the run, and why, while the steps for that run.
    pub cancelled: Option<Box<Cancelled>>,
    /// What the last event began and ended, steps in loops included.
    pub changes: Vec<StepChange>,
}

/// What an event did to a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepChange {
    /// It began.
    Started {
        /// Its address.
        at: String,
        /// Its type.
        kind: String,
        /// Its input.
        input: Arc<Value>,
        /// What the item is called that it is a step of.
        item_label: Option<Arc<str>>,
    },
    /// An attempt at its call failed, and another one follows.
    Retried {
        /// Its address.
        at: String,
        /// Its type.
        kind: String,
        /// The number of the attempt, from 1.
        number: u32,
        /// The attempt.
        attempt: Box<CallAttempt>,
    },
    /// It ended.
    Ended(Box<StepRecord>),
    /// It was an item of a loop, and all of its steps have ended.
    ItemEnded {
        /// Its address, like `review.57`.
        at: String,
        /// What is shown of it.
        row: Box<ItemRow>,
    },
    /// It was a loop that did not fail: how each of its items ended.
    ItemsEnded {
        /// Its address.
        at: String,
        /// By item.
        statuses: Box<[ItemStatus]>,
    },
}

/// Why no further step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopping {
    /// The active time is spent.
    Timeout,
    /// The budget is spent.
    Budget,
    /// The driver was asked to stop.
    Interrupt,
}

/// A list of steps: that of the workflow, or that of one item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepFrame {
    /// The number of the present step.
    pub next: usize,
    /// How far the present step is.
    pub current: Current,
    /// The keys that its steps wrote.
    pub keys: Map<String, Value>,
    /// The names that are given to it: those of its item.
    pub given: Map<String, Value>,
    /// What its item is called.
    pub label: Option<Arc<str>>,
    /// What its last step gave.
    pub last: Option<Value>,
    /// Whether a step of it ran.
    pub ran: bool,
    /// The active time at which it began, in milliseconds.
    pub began_active_ms: u64,
    /// What its steps spent.
    pub spent: SettledCost,
    /// Why it failed.
    pub fault: Option<StepFault>,
    /// Its loops that ended although items of them failed, by the number of the step: these items may run again.
    pub kept: BTreeMap<usize, Box<ItemsState>>,
    /// Its steps that are runs which completed although items in them failed, by the number of the step: these items may run again.
    pub kept_runs: BTreeMap<usize, Box<KeptRun>>,
    /// What the present step wrote when it ended before, if it is such a run and runs again.
    pub wrote: Option<Box<LoopOutput>>,
    /// Whether the wait of its item is over, and no step of it began since: it may have to get back a place that it gave
    /// away.
    pub rests: bool,
    /// The steps before this number have ended: of them, only loops that are kept run again.
    pub done: usize,
    /// The case that each choice chose, by the name of the choice.
    pub cases: BTreeMap<String, usize>,
    /// What it failed with, while the steps for that run.
    pub failed: Option<Box<FailedList>>,
    /// Whether steps for its failure have done something, since it began or was run again: what they took back is not done again.
    pub handled: bool,
}

/// A list of steps as it was when it failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedList {
    /// Why.
    pub fault: StepFault,
    /// The number of the step that failed.
    pub next: usize,
    /// How far that is.
    pub current: Current,
    /// How many of its steps had ended before.
    pub done: usize,
    /// What its steps had written, which the steps for the failure may write over. None in runs of older editions: there, what
    /// these wrote stays.
    pub written: Option<WrittenKeys>,
}

/// What the steps of a list wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenKeys {
    /// The keys.
    pub keys: Map<String, Value>,
    /// What the last step gave.
    pub last: Option<Value>,
}

/// How far the present step of a list is.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Current {
    /// It has not started.
    #[default]
    Idle,
    /// It is a call, a run or a question.
    Open(Box<OpenStep>),
    /// It is a loop.
    Items(Box<ItemsState>),
}

/// The run of a step that failed for a reason outside of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailedRun {
    /// The round that it began in.
    pub round: u32,
    /// What was counted of it.
    pub settled: SettledCost,
}

/// A step whose run completed although items in it failed.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptRun {
    /// Its address.
    pub at: String,
    /// The round that the run began in, and what was counted of it.
    pub run: FailedRun,
    /// Its input.
    pub input: Arc<Value>,
    /// What it wrote.
    pub wrote: LoopOutput,
}

/// A loop that is under way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ItemsState {
    /// The address of the loop.
    pub at: String,
    /// How many items there are.
    pub count: u32,
    /// How many items it has taken, those of the loops inside included.
    pub taken: u64,
    /// The loop inside that would have taken more items than this one may.
    pub over: Option<StepFault>,
    /// The list, when its path leads into a JSON text: it is read once.
    pub list: Option<Arc<Value>>,
    /// The next item to begin.
    pub next: u32,
    /// The items that have started and not ended.
    pub open: BTreeMap<u32, StepFrame>,
    /// How the items ended that have; the others are not in it.
    pub ended: BTreeMap<u32, ItemStatus>,
    /// What was gathered, as JSON: by item.
    pub collected: BTreeMap<u32, Box<str>>,
    /// Why items failed.
    pub faults: BTreeMap<u32, StepFault>,
    /// The keys that items wrote: the last item in order that did, and its value.
    pub written: BTreeMap<String, (u32, Value)>,
    /// How many items ended in each way.
    pub counts: ItemCounts,
    /// Items that failed or were cancelled, as they were: they may run again.
    pub unfinished: BTreeMap<u32, StepFrame>,
    /// Items that completed although items of a loop in them failed.
    pub partly: BTreeMap<u32, StepFrame>,
    /// Items that run again, and have not started to.
    pub again: BTreeMap<u32, StepFrame>,
    /// What the loop wrote when it ended before, if it runs again after that.
    pub wrote: Option<Box<LoopOutput>>,
    /// Whether no further item begins, because items failed or a loop inside had too many.
    pub stopped: bool,
    /// When the loop began, in milliseconds since 1970.
    pub since_ms: i64,
}

/// What a loop, or a run, wrote when it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopOutput {
    /// The keys, those of its items included.
    pub keys: Map<String, Value>,
    /// Its output.
    pub output: Value,
}

/// How an item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// All of its steps ended.
    Completed,
    /// A step of it failed.
    Failed,
    /// A filter left out each of its steps.
    Skipped,
    /// Another item failed before it could end.
    Cancelled,
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFault {
    /// A stable word.
    pub code: String,
    /// What happened, in a sentence without a final stop.
    pub message: String,
    /// The address of the step.
    pub step: String,
    /// Whether the same step may succeed unchanged when it runs again.
    pub retryable: bool,
}

impl StepFault {
    /// A failure that stays when the same step runs again.
    pub fn new(code: impl Into<String>, message: impl Into<String>, step: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), step: step.into(), retryable: false }
    }
}

impl StepFrame {
    /// Whether a step runs in the list, as far as choices decide that: all around it, because the case of one inside stays known.
    pub(super) fn takes(&self, step: &FlowStep) -> bool {
        step.within.iter().all(|of| self.cases.get(&*of.choose) == Some(&of.case))
    }

    /// Whether items of it failed, or of the runs that are its steps, and may run again.
    pub(super) fn has_kept(&self) -> bool {
        !self.kept.is_empty() || !self.kept_runs.is_empty()
    }

    /// Whether the driver must perform a step of it. Loops are at most three deep: the recursion ends.
    pub(super) fn is_under_way(&self) -> bool {
        match &self.current {
            Current::Idle => false,
            Current::Open(open) => open.progress.is_under_way(),
            Current::Items(items) => items.open.values().any(Self::is_under_way),
        }
    }

    /// Its steps that have started and not ended, those of items included, in the order of their addresses.
    pub(super) fn open(&self) -> Vec<&OpenStep> {
        let mut open = Vec::new();
        collect(self, &mut open);
        open
    }
}

impl FlowProgress {
    /// The steps that have started and not ended, in the order of their addresses.
    pub fn open(&self) -> Vec<&OpenStep> {
        self.root.open()
    }

    /// The open step at an address.
    pub fn open_at(&self, at: &StepAddress) -> Option<&OpenStep> {
        let mut frame = &self.root;
        // Loops are at most three deep.
        loop {
            match &frame.current {
                Current::Idle => return None,
                Current::Open(open) => return Some(&**open).filter(|open| open.address == *at),
                Current::Items(items) => frame = items.open.get(&at.item_of(&items.at)?)?,
            }
        }
    }

    /// The same, to be changed.
    pub(super) fn open_at_mut(&mut self, at: &StepAddress) -> Option<&mut OpenStep> {
        let mut frame = &mut self.root;
        loop {
            match &mut frame.current {
                Current::Idle => return None,
                Current::Open(open) => return Some(&mut **open).filter(|open| open.address == *at),
                Current::Items(items) => frame = items.open.get_mut(&at.item_of(&items.at)?)?,
            }
        }
    }

    /// Visits the steps that have started and not ended.
    pub(super) fn each_open(&mut self, visit: &mut dyn FnMut(&mut OpenStep)) {
        each(&mut self.root, visit);
    }

    /// Whether the driver must perform a step.
    pub fn is_under_way(&self) -> bool {
        self.root.is_under_way()
    }
}

/// Loops are at most three deep: the recursion ends.
fn collect<'f>(frame: &'f StepFrame, open: &mut Vec<&'f OpenStep>) {
    match &frame.current {
        Current::Idle => {}
        Current::Open(step) => open.push(step),
        Current::Items(items) => items.open.values().for_each(|frame| collect(frame, open)),
    }
}

fn each(frame: &mut StepFrame, visit: &mut dyn FnMut(&mut OpenStep)) {
    match &mut frame.current {
        Current::Idle => {}
        Current::Open(step) => visit(step),
        Current::Items(items) => items.open.values_mut().for_each(|frame| each(frame, visit)),
    }
}

/// The step that is open in a list: the present one, or the one that took its place.
pub(super) fn chosen<'p>(step: &'p FlowStep, at: &str) -> Option<&'p FlowStep> {
    // What precedes the last part is the same for all of them.
    let name = at.rsplit('.').next();
    let mut step = Some(step);
    while let Some(found) = step {
        if found.name.rsplit('.').next() == name {
            return Some(found);
        }
        step = found.otherwise.as_deref();
    }
    None
}
