//! Finds what is shown of an item of a loop beside its status: the item, what it gave, and why it failed.

use serde_json::{Map, Value};

use super::item_label::{item_label, names_of_item};
use super::item_row::{ItemRow, KnownItem};
use super::items::item_at;
use super::place::frames_around;
use super::progress::{ItemsState, StepFrame};
use super::record::StepStatus;
use crate::state::FlowState;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::flow::Foreach;

/// A longer text of what an item gave is not read, in bytes of JSON.
const MOST_OUTPUT_BYTES: usize = 16 << 10;

/// Where a loop is.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoopPlace<'a> {
    /// Its address.
    pub at: &'a str,
    /// The address of the item that it is a step of; empty for a step of the workflow.
    pub of: &'a str,
}

/// Where the items of one loop are found.
pub(super) struct ItemSource<'s> {
    state: &'s FlowState,
    foreach: &'s Foreach,
    /// The loop, while it is under way or after it failed.
    items: Option<&'s ItemsState>,
    /// The frames of the lists of steps around it, the innermost first; none when they are over.
    around: Option<Vec<&'s StepFrame>>,
    /// How many items there are.
    total: u32,
}

impl<'s> ItemSource<'s> {
    pub fn new(state: &'s FlowState, foreach: &'s Foreach, place: LoopPlace<'_>, total: u32) -> Self {
        let root = &state.progress.root;
        let items = super::place::items_at(root, place.at);
        Self { state, foreach, items, around: frames_around(root, place.of), total }
    }

    /// The row of an item.
    pub fn row(&self, index: u32, status: StepStatus) -> ItemRow {
        let gathered = self.gathered(index);
        let output = self.output(index).or_else(|| gathered?.get("output").cloned());
        let reason = self.items.and_then(|items| items.faults.get(&index)).map(|fault| fault.message.as_str());
        let reason = reason.or_else(|| gathered?.get("error")?.get("message")?.as_str());
        let item = self.item(index);
        let known = KnownItem { item: item.as_ref(), output: output.as_ref(), error: reason };
        ItemRow::new(index, self.label(index), status, known)
    }

    /// What an item is called; none without a label, and where the item is no longer known.
    pub fn label(&self, index: u32) -> Option<String> {
        self.foreach.label.as_ref()?;
        if let Some(frame) = self.frame(index) {
            return frame.label.as_deref().map(str::to_owned);
        }
        let count = self.items.map_or(self.total, |items| items.count);
        let given = names_of_item(self.foreach, self.item(index)?, index, count);
        let names: Vec<_> = std::iter::once(&given).chain(self.names()?).collect();
        item_label(self.foreach, &names, &self.state.header, self.state.now.wall_ms)
    }

    /// How far an item is that is kept.
    fn frame(&self, index: u32) -> Option<&'s StepFrame> {
        let items = self.items?;
        [&items.open, &items.unfinished, &items.again, &items.partly].iter().find_map(|frames| frames.get(&index))
    }

    /// The item itself.
    fn item(&self, index: u32) -> Option<Value> {
        if let Some(items) = self.items {
            if let Some(frame) = self.frame(index) {
                return frame.given.get("item").cloned();
            }
            if let Some(list) = &items.list {
                return list.get(usize::try_from(index).ok()?).cloned();
            }
        }
        let Foreach { items, result_key, summary_key, .. } = self.foreach;
        let is_overwritten = [result_key, summary_key].iter().any(|key| key.as_ref() == items.first());
        if self.items.is_none() && is_overwritten {
            return None;
        }
        item_at(&self.state.header, self.foreach, usize::try_from(index).ok()?, &self.names()?)
    }

    fn names(&self) -> Option<Vec<&Map<String, Value>>> {
        let around = self.around.as_ref()?;
        // The files of the project come last, as where a step reads them.
        let files = self.state.header.files.names();
        Some(around.iter().flat_map(|frame| [&frame.keys, &frame.given]).chain([files]).collect())
    }

    /// What was gathered of an item of a loop that is under way.
    fn output(&self, index: u32) -> Option<Value> {
        let text = self.items?.collected.get(&index).filter(|text| text.len() <= MOST_OUTPUT_BYTES)?;
        json_text::read(text).ok()
    }

    /// The entry of an item in what a loop gathered that has ended.
    fn gathered(&self, index: u32) -> Option<&Value> {
        let key = self.foreach.result_key.as_ref().filter(|_| self.items.is_none())?;
        let list = self.around.as_ref()?.iter().find_map(|frame| frame.keys.get(key))?.as_array()?;
        let is_whole = u32::try_from(list.len()).is_ok_and(|length| length == self.total);
        list.get(usize::try_from(index).ok()?).filter(|_| is_whole)
    }
}
