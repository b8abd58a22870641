//! The steps of a workflow at an address: the whole list, the items of a loop, the steps of an item, or one step. Most of it
//! is in the state; what a step of an item gave is not, and is taken from the events while they are folded.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::item_row::{ItemRow, KnownItem};
use super::place::{AddressKind, FoundStep, NoSuchStep, below, found_at};
use super::progress::{Current, ItemStatus, ItemsState, StepChange, StepFrame, chosen};
use super::record::{StepRecord, StepStatus};
use super::records::StepSurroundings;
use super::shown_item::{ItemSource, LoopPlace};
use super::waiting;
use crate::outcome::Status;
use crate::question::StepQuestion;
use crate::state::{FlowState, State};
use loopctl_lang::program::Program;
use loopctl_lang::program::flow::{FlowProgram, FlowStep, StepAction};

/// The most questions of steps that wait in one view.
const MOST_QUESTIONS: usize = 50;

/// The steps of a workflow at an address, in the form that programs read. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepView {
    /// The address; left out for the steps of the workflow itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Where the run is.
    pub status: Status,
    /// The steps in their order, those that have not started among them. At the address of a step it is that step alone,
    /// with its input and output.
    pub steps: Vec<StepRecord>,
    /// At the address of an item: where the item is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<StepStatus>,
    /// At the address of an item, or of a step of one: what the item is called, by the `item_label` of its loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_label: Option<String>,
    /// At the address of a loop: its items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemsView>,
    /// How many steps at this address and below wait for a human.
    pub waiting: usize,
    /// What they ask: the first fifty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<StepQuestion>,
}

impl StepView {
    /// The same of a run that is set aside, which its state does not say.
    #[must_use]
    pub fn quarantined(self, is_quarantined: bool) -> Self {
        if is_quarantined { Self { status: Status::Quarantined, ..self } } else { self }
    }
}

/// The items of a loop: how many there are of each status, and some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ItemsView {
    /// All items.
    pub total: u32,
    /// How many items have each status; those that no item has are left out.
    #[schemars(with = "BTreeMap<String, u32>")]
    pub counts: BTreeMap<&'static str, u32>,
    /// The items that were asked for.
    pub rows: Vec<ItemRow>,
    /// The next item that was asked for and is not among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// Which items of a loop are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemWindow {
    /// The first one that may be.
    pub from: u32,
    /// The most.
    pub most: usize,
    /// Only those of this status.
    pub status: Option<StepStatus>,
}

/// What the events of a run say of the steps at an address, and the state does not.
#[derive(Debug, Clone, Default)]
pub struct StepLog {
    at: Option<String>,
    /// The steps that ended, by address.
    ended: BTreeMap<String, StepRecord>,
    /// How the items of a loop ended, by its address: of the loop that is asked for, and those around.
    items: BTreeMap<String, Box<[ItemStatus]>>,
}

impl StepLog {
    /// What is to be kept of the steps at an address; without one, of those of the workflow itself.
    pub fn new(at: Option<String>) -> Self {
        Self { at, ..Self::default() }
    }

    /// Keeps what the last event did.
    pub fn take(&mut self, state: &State) {
        let Some(at) = &self.at else { return };
        for change in state.step_changes() {
            match change {
                StepChange::Started { .. } | StepChange::Retried { .. } | StepChange::ItemEnded { .. } => {}
                StepChange::Ended(record) => {
                    let is_here = record.at == *at || *record.list == **at;
                    if is_here {
                        self.ended.insert(record.at.clone(), (**record).clone());
                    }
                }
                StepChange::ItemsEnded { at: ended, statuses } => {
                    if ended == at || below(at, ended).is_some() {
                        self.items.insert(ended.clone(), statuses.clone());
                    }
                }
            }
        }
    }

    /// The steps as they are in this state. `driven`: whether a driver has the run now.
    ///
    /// # Errors
    /// When the workflow has no such step, or no such item yet.
    pub fn view(
        &self,
        program: &Program,
        state: &State,
        driven: bool,
        window: ItemWindow,
    ) -> Result<StepView, NoSuchStep> {
        let (Program::Flow(program), State::Flow(state)) = (program, state) else {
            return Err(NoSuchStep::of_loop());
        };
        let around = StepSurroundings::of(state, driven);
        let all = ListView { log: self, recorded: &state.progress.records, around, prefix: "", ended: None };
        let mut waits = state.progress.open();
        waits.retain(|open| open.progress.waits() && !around.is_over);
        if let Some(at) = &self.at {
            waits.retain(|open| open.address.as_str() == *at || below(&open.address, at).is_some());
        }
        let mut view = StepView {
            at: self.at.clone(),
            status: state.status(),
            steps: Vec::new(),
            item: None,
            item_label: None,
            items: None,
            waiting: 0,
            questions: Vec::new(),
        };
        // A step has several when its run has called a workflow of which several steps wait.
        for question in waits.iter().flat_map(|open| waiting::questions(open, &state.header)) {
            view.waiting += 1;
            if view.questions.len() < MOST_QUESTIONS {
                view.questions.push(question);
            }
        }
        let Some(at) = &self.at else {
            view.steps = all.steps(&program.steps, Some(&state.progress.root));
            return Ok(view);
        };
        let FoundStep { kind, list, frame, prefix, .. } = found_at(program, &state.progress.root, at, &self.items)?;
        let item = (!prefix.is_empty()).then(|| self.item(state, &prefix, around)).flatten();
        view.item_label = label_at(program, state, &prefix);
        let is_over = around.is_over || item.is_some_and(|status| status == StepStatus::Cancelled);
        let around = StepSurroundings { is_over, ..around };
        let here = ListView { around, prefix: &prefix, ended: item, ..all };
        match kind {
            AddressKind::Item => {
                view.item = item;
                view.steps = here.steps(list, frame);
            }
            AddressKind::Step(step) => {
                view.steps.push(here.step(step, frame));
                if let StepAction::Foreach(foreach) = &step.action {
                    let items = items_of(frame, at);
                    view.items = Some(self.items_view(at, items, around, window));
                    if let Some(view) = &mut view.items {
                        let source = ItemSource::new(state, foreach, LoopPlace { at, of: &prefix }, view.total);
                        for row in &mut view.rows {
                            *row = source.row(row.index, row.status);
                        }
                    }
                }
            }
        }
        Ok(view)
    }

    /// Where the item at an address is.
    fn item(&self, state: &FlowState, at: &str, around: StepSurroundings<'_>) -> Option<StepStatus> {
        let (of, index) = at.rsplit_once('.')?;
        let index = index.parse().ok()?;
        let items = super::place::items_at(&state.progress.root, of);
        Some(self.item_status(of, items, index, around))
    }

    fn item_status(
        &self,
        of: &str,
        items: Option<&ItemsState>,
        index: u32,
        around: StepSurroundings<'_>,
    ) -> StepStatus {
        let known = self.items.get(of).and_then(|all| all.get(usize::try_from(index).ok()?)).copied();
        let Some(items) = items else { return known.map_or(StepStatus::Pending, StepStatus::from) };
        match (items.ended.get(&index), items.open.get(&index)) {
            (Some(status), _) => StepStatus::from(*status),
            (None, Some(frame)) => around.status_of(frame),
            (None, None) if around.is_over || items.stopped => StepStatus::Cancelled,
            (None, None) => StepStatus::Pending,
        }
    }

    fn items_view(
        &self,
        at: &str,
        items: Option<&ItemsState>,
        around: StepSurroundings<'_>,
        window: ItemWindow,
    ) -> ItemsView {
        let known = self.items.get(at).map_or(0, |all| u32::try_from(all.len()).unwrap_or(u32::MAX));
        let mut view = ItemsView { total: items.map_or(known, |items| items.count), ..ItemsView::default() };
        for index in 0..view.total {
            let status = self.item_status(at, items, index, around);
            *view.counts.entry(status.word()).or_default() += 1;
            if index < window.from || window.status.is_some_and(|asked| asked != status) || view.next.is_some() {
                continue;
            }
            if view.rows.len() < window.most {
                view.rows.push(ItemRow::new(index, None, status, KnownItem::default()));
            } else {
                view.next = Some(index);
            }
        }
        view
    }
}

/// What the item at an address is called.
fn label_at(program: &FlowProgram, state: &FlowState, at: &str) -> Option<String> {
    let (of, index) = at.rsplit_once('.')?;
    let step = program.step_at(of)?;
    let StepAction::Foreach(foreach) = &step.action else { return None };
    let around = of.strip_suffix(step.name.as_str())?.trim_end_matches('.');
    ItemSource::new(state, foreach, LoopPlace { at: of, of: around }, 0).label(index.parse().ok()?)
}

/// A loop that is under way, or failed, in a list.
fn items_of<'f>(frame: Option<&'f StepFrame>, at: &str) -> Option<&'f ItemsState> {
    frame?.loop_around(at).filter(|items| items.at == at)
}

/// What the records of a list of steps are made from.
#[derive(Clone, Copy)]
struct ListView<'v> {
    log: &'v StepLog,
    /// The records of the workflow's own steps.
    recorded: &'v [StepRecord],
    around: StepSurroundings<'v>,
    /// The address of the item.
    prefix: &'v str,
    /// Where the item is.
    ended: Option<StepStatus>,
}

impl ListView<'_> {
    fn steps(self, steps: &[FlowStep], frame: Option<&StepFrame>) -> Vec<StepRecord> {
        let last = steps.iter().rev().find(|step| self.recorded(step).is_some()).map(|step| step.slot);
        steps.iter().map(|step| self.record(step, frame, last)).collect()
    }

    fn step(self, step: &FlowStep, frame: Option<&StepFrame>) -> StepRecord {
        self.record(step, frame, None)
    }

    /// The record of a step, or of the one that took its place. `last`: the last step of the list that ended.
    fn record(self, step: &FlowStep, frame: Option<&StepFrame>, last: Option<usize>) -> StepRecord {
        let is_current = |at: &str| self.is(step, at);
        match frame.map(|frame| &frame.current) {
            Some(Current::Open(open)) if is_current(&open.address) => {
                let record = self.around.open(open);
                let is_run = chosen(step, &open.address).is_some_and(|step| step.subrun().is_some());
                let run_id = (is_run && open.requested_at_ms.is_some()).then(|| open.subrun_id(self.around.run_id));
                return StepRecord { run_id: record.run_id.clone().or(run_id), ..record };
            }
            Some(Current::Items(items)) if is_current(&items.at) => {
                // A loop that failed stays as it is.
                let failed = self.recorded(step).filter(|_| items.stopped);
                return failed.cloned().unwrap_or_else(|| self.around.items(items));
            }
            _ => {}
        }
        let has_ended = self.ended.is_none_or(|item| !matches!(item, StepStatus::Pending | StepStatus::Running));
        let runs_again = !has_ended && frame.is_some_and(|frame| step.slot >= frame.place_for(step));
        if let Some(record) = self.recorded(step).filter(|_| !runs_again) {
            return record.clone();
        }
        let is_skipped = matches!(self.ended, Some(StepStatus::Completed | StepStatus::Skipped))
            || frame.is_some_and(|frame| step.slot < frame.place_for(step))
            || last.is_some_and(|last| step.slot < last);
        let status = if is_skipped { StepStatus::Skipped } else { StepStatus::Pending };
        StepRecord { started_at_ms: None, ..StepRecord::new(self.address(&step.name), step.kind.clone(), status, 0) }
    }

    fn recorded(&self, step: &FlowStep) -> Option<&StepRecord> {
        let mut next = Some(step);
        while let Some(step) = next {
            let at = self.address(&step.name);
            let of_root = || self.recorded.iter().rev().find(|record| self.prefix.is_empty() && record.at == at);
            if let Some(record) = self.log.ended.get(&at).or_else(of_root) {
                return Some(record);
            }
            next = step.otherwise.as_deref();
        }
        None
    }

    /// Whether a step of this list, or one that takes its place, is at an address.
    fn is(&self, step: &FlowStep, at: &str) -> bool {
        chosen(step, at).is_some_and(|step| self.address(&step.name) == at)
    }

    fn address(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) }
    }
}

impl From<ItemStatus> for StepStatus {
    fn from(status: ItemStatus) -> Self {
        match status {
            ItemStatus::Completed => Self::Completed,
            ItemStatus::Failed => Self::Failed,
            ItemStatus::Skipped => Self::Skipped,
            ItemStatus::Cancelled => Self::Cancelled,
        }
    }
}
