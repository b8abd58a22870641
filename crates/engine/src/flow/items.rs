//! The items of a loop: they begin in order, a bounded number at a time, and none sees the keys of another.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::advance::{Advance, ListEnd, Names, StepList, TakenItems};
use super::item_label::{item_label, labelled, names_of_item};
use super::item_row::{ItemRow, KnownItem};
use super::partial_value::{entry, unresolved_sentence};
use super::progress::{Current, ItemStatus, ItemsState, StepChange, StepFault, StepFrame};
use super::record::ItemCounts;
use crate::header::RunHeader;
use loopctl_lang::language::foreach::{FailureStrategy, OnItemPause};
use loopctl_lang::policy::json_text;
use loopctl_lang::program::flow::Foreach;
use loopctl_lang::program::reference::Unresolved;

/// The most items of a loop that wait for a human, or for a time, at the same time.
const MAX_WAITING: usize = 1_000;
/// The most failed items that the counts list.
const MAX_LISTED: usize = 1_000;

/// What a loop gave.
#[derive(Debug)]
pub(super) struct LoopEnd {
    /// Why it failed.
    pub fault: Option<StepFault>,
}

/// What is shown of an item that has just ended: what was gathered of it, or else what its last step gave.
fn ended_row(
    index: u32,
    status: ItemStatus,
    frame: &StepFrame,
    gathered: Option<&Value>,
    items: &ItemsState,
) -> ItemRow {
    let fault = items.faults.get(&index).filter(|_| status == ItemStatus::Failed);
    let known = KnownItem {
        item: frame.given.get("item"),
        output: gathered.or(frame.last.as_ref()).filter(|_| status == ItemStatus::Completed),
        error: fault.map(|fault| fault.message.as_str()),
    };
    ItemRow::new(index, frame.label.as_deref().map(str::to_owned), status.into(), known)
}

/// How many items may fail before the loop stops.
fn most_failures(foreach: &Foreach) -> u32 {
    match foreach.failure_strategy {
        FailureStrategy::StopOnError => 0,
        FailureStrategy::ContinueOnError => foreach.max_failures.unwrap_or(u32::MAX),
    }
}

/// Whether the loop stops as soon as the failures are handled that are known: no further step of another item begins.
fn will_stop(foreach: &Foreach, items: &ItemsState) -> bool {
    if foreach.on_failure.is_none() {
        return false;
    }
    let failing = items.open.values().filter(|frame| frame.is_handling()).count();
    let failed = usize::try_from(items.counts.failed).unwrap_or(usize::MAX).saturating_add(failing);
    failing > 0 && failed > usize::try_from(most_failures(foreach)).unwrap_or(usize::MAX)
}

impl<'p> Advance<'p> {
    /// Advances the items of a loop. Returns how the loop ended, if it did.
    pub fn items(
        &mut self,
        foreach: &'p Foreach,
        items: &mut ItemsState,
        names: &[&Map<String, Value>],
    ) -> Option<LoopEnd> {
        let was_blocked = self.blocked;
        self.around.push(TakenItems { count: items.taken, most: foreach.max_items, over: None });
        let gives_away = foreach.on_pause == OnItemPause::GoOn;
        let is_at_rest = |index: &u32| gives_away && items.open.get(index).is_some_and(rests);
        let (rest, active): (Vec<u32>, Vec<u32>) = items.open.keys().copied().partition(is_at_rest);
        for index in active {
            self.blocked = was_blocked || items.stopped || will_stop(foreach, items);
            self.item(foreach, items, index, names);
        }
        // Those whose waits are over come before items that have not begun.
        for index in rest {
            if has_place(foreach, items) {
                self.blocked = was_blocked || items.stopped || will_stop(foreach, items);
                self.item(foreach, items, index, names);
            }
        }
        while !items.stopped
            && self.around.last().is_none_or(|taken| taken.over.is_none())
            && self.may_begin_item(foreach, items)
        {
            let (index, frame) = match items.again.pop_first() {
                Some(again) => again,
                None => {
                    let index = items.next;
                    items.next += 1;
                    (index, self.frame_of(foreach, items, index, names))
                }
            };
            items.open.insert(index, frame);
            self.item(foreach, items, index, names);
        }
        self.blocked = was_blocked;
        if let Some(TakenItems { count, over, .. }) = self.around.pop() {
            // A limit that the items share stops the loop: which of them reaches it is a matter of timing.
            items.taken = count;
            items.stopped |= over.is_some();
            items.over = items.over.take().or(over);
        }
        if items.stopped {
            self.cancel_idle(items);
        }
        let is_over = items.open.is_empty() && (items.stopped || !has_more(items));
        is_over.then(|| LoopEnd { fault: self.fault_of(foreach, items) })
    }

    fn may_begin_item(&self, foreach: &Foreach, items: &ItemsState) -> bool {
        if self.is_barred() || !has_more(items) || will_stop(foreach, items) {
            return false;
        }
        let waiting = || items.open.values().filter(|frame| only_waits(frame)).count();
        has_place(foreach, items) && (foreach.on_pause == OnItemPause::Wait || waiting() < MAX_WAITING)
    }

    fn frame_of(&self, foreach: &Foreach, items: &ItemsState, index: u32, names: &[&Map<String, Value>]) -> StepFrame {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let item = match &items.list {
            Some(list) => list.get(at).cloned(),
            None => item_at(&self.header, foreach, at, names),
        };
        let item = item.unwrap_or(Value::Null);
        let given = names_of_item(foreach, item, index, items.count);
        let near: Names<'_> = std::iter::once(&given).chain(names.iter().copied()).collect();
        let label = item_label(foreach, &near, &self.header, self.now.wall_ms).map(Arc::from);
        StepFrame { given, label, began_active_ms: self.now.active_ms, ..StepFrame::default() }
    }

    /// Advances one item, and takes its outcome if it ended.
    fn item(&mut self, foreach: &'p Foreach, items: &mut ItemsState, index: u32, names: &[&Map<String, Value>]) {
        let Some(frame) = items.open.get_mut(&index) else { return };
        frame.rests &= self.blocked || self.stopping.is_some();
        let list = StepList::of_item(foreach, &items.at, index, frame);
        let Some(mut end) = self.list(&list, frame, names) else { return };
        let mut gathered = None;
        if foreach.collects && matches!(end, ListEnd::Completed) {
            match self.collected(foreach, frame, names) {
                Ok(value) => gathered = value,
                Err(why) => {
                    let message = format!("its `collect` can't be made: {}", unresolved_sentence(&why));
                    frame.fault = Some(StepFault::new("bad_value", message, format!("{}.{index}", items.at)));
                    let Some(failed) = self.list(&list, frame, names) else { return };
                    end = failed;
                }
            }
        }
        let Some(frame) = items.open.remove(&index) else { return };
        let status = match end {
            ListEnd::Completed => ItemStatus::Completed,
            ListEnd::Skipped => ItemStatus::Skipped,
            ListEnd::Failed(fault) => {
                items.faults.insert(index, fault);
                ItemStatus::Failed
            }
        };
        items.ended.insert(index, status);
        let counted = match status {
            ItemStatus::Completed => &mut items.counts.completed,
            ItemStatus::Failed => &mut items.counts.failed,
            ItemStatus::Skipped => &mut items.counts.skipped,
            ItemStatus::Cancelled => &mut items.counts.cancelled,
        };
        *counted += 1;
        let row = ended_row(index, status, &frame, gathered.as_ref(), items);
        self.changes.push(StepChange::ItemEnded { at: format!("{}.{index}", items.at), row: Box::new(row) });
        if let Some(gathered) = gathered {
            items.collected.insert(index, gathered.to_string().into());
        }
        for (key, value) in &frame.keys {
            // An item that runs again writes its keys again.
            let later = items.written.get(key).is_none_or(|(by, _)| *by <= index);
            if later {
                items.written.insert(key.clone(), (index, value.clone()));
            }
        }
        if status == ItemStatus::Failed {
            items.unfinished.insert(index, frame);
            items.stopped |= items.counts.failed > most_failures(foreach);
            self.blocked |= items.stopped;
        } else if frame.has_kept() {
            items.partly.insert(index, frame);
        }
    }

    /// Ends the items that have no call under way, because the loop stops.
    fn cancel_idle(&mut self, items: &mut ItemsState) {
        let idle: Vec<u32> = items
            .open
            .iter()
            .filter(|(_, frame)| !frame.is_under_way() && !frame.is_handling())
            .map(|(index, _)| *index)
            .collect();
        for index in idle {
            if let Some(frame) = items.open.remove(&index) {
                self.no_longer_spends(&frame);
                items.unfinished.insert(index, frame);
            }
            items.ended.insert(index, ItemStatus::Cancelled);
            items.counts.cancelled += 1;
        }
    }

    /// What is gathered of an item; none when it is an `@x.y?` without a value.
    fn collected(
        &mut self,
        foreach: &Foreach,
        frame: &StepFrame,
        names: &[&Map<String, Value>],
    ) -> Result<Option<Value>, Unresolved> {
        let Some(field) = &foreach.collect else { return Ok(Some(frame.last.clone().unwrap_or(Value::Null))) };
        let names: Names<'_> = [&frame.keys, &frame.given].into_iter().chain(names.iter().copied()).collect();
        self.with_scope(&names, |_, scope| entry(field, scope))
    }

    /// Whether so few items fail for good that the loop may succeed when the others run again.
    fn may_pass(foreach: &Foreach, items: &ItemsState) -> bool {
        let stay = items.faults.values().filter(|fault| !fault.retryable).count();
        u32::try_from(stay).is_ok_and(|stay| stay <= foreach.max_failures.unwrap_or(u32::MAX))
    }

    /// Why a loop failed.
    fn fault_of(&self, foreach: &Foreach, items: &ItemsState) -> Option<StepFault> {
        if items.over.is_some() {
            return items.over.clone();
        }
        let (index, fault) = items.faults.iter().next()?;
        if !items.stopped {
            return None;
        }
        let label = items.unfinished.get(index).and_then(|frame| frame.label.as_deref());
        let item = labelled(&index.to_string(), label);
        match foreach.failure_strategy {
            FailureStrategy::StopOnError => {
                Some(StepFault { message: format!("item {item} failed: {}", fault.message), ..fault.clone() })
            }
            FailureStrategy::ContinueOnError => Some(StepFault {
                code: "too_many_failures".to_owned(),
                message: format!(
                    "{} failed, and `max_failures` is {}; the first is item {item}: {}",
                    if items.counts.failed == 1 {
                        "1 item".to_owned()
                    } else {
                        format!("{} items", items.counts.failed)
                    },
                    foreach.max_failures.unwrap_or_default(),
                    fault.message
                ),
                step: fault.step.clone(),
                retryable: Self::may_pass(foreach, items),
            }),
        }
    }
}

/// An item of the list in the context. The list is not copied, and does not change while the loop is under way.
pub(super) fn item_at(
    header: &RunHeader,
    foreach: &Foreach,
    at: usize,
    names: &[&Map<String, Value>],
) -> Option<Value> {
    let (first, rest) = foreach.items.split_first()?;
    let input = &header.input;
    let list = match rest {
        [name] if first == "input" => input.lists.get(name),
        _ if header.files.are_meant(first, names.iter().copied()) => header.files.list_at(&foreach.items),
        _ => None,
    };
    if let Some(list) = list {
        return list.get(at);
    }
    let mut value = if first == "input" { &input.value } else { names.iter().find_map(|names| names.get(first))? };
    for name in rest {
        value = match value {
            Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
            other => other.get(name)?,
        };
    }
    value.get(at).cloned()
}

fn has_more(items: &ItemsState) -> bool {
    !items.again.is_empty() || items.next < items.count
}

/// Whether a loop has a place for one more item.
fn has_place(foreach: &Foreach, items: &ItemsState) -> bool {
    let most = usize::try_from(foreach.max_concurrency).unwrap_or(usize::MAX);
    let has_none = |frame: &&StepFrame| foreach.on_pause == OnItemPause::GoOn && only_waits(frame);
    items.open.len() - items.open.values().filter(has_none).count() < most
}

/// Whether the wait of an item is over, or of one in it, and nothing else of it is under way. Loops are at most three deep:
/// the recursion ends.
fn rests(frame: &StepFrame) -> bool {
    match &frame.current {
        Current::Items(items) => only_waits(frame) && items.open.values().any(rests),
        _ => frame.rests,
    }
}

/// Whether an item waits for a human or a time, or rests after that, and does nothing else.
fn only_waits(frame: &StepFrame) -> bool {
    match &frame.current {
        _ if frame.rests => true,
        Current::Idle => false,
        Current::Open(open) => open.progress.waits(),
        Current::Items(items) => !items.open.is_empty() && items.open.values().all(only_waits),
    }
}

/// What a loop gathered: an entry for each item, in their order.
pub(super) fn gathered(items: &ItemsState) -> Value {
    let entry = |index: u32| {
        let status = items.ended.get(&index).copied().unwrap_or(ItemStatus::Cancelled);
        let mut entry = json!({ "index": index, "status": status });
        let Some(members) = entry.as_object_mut() else { return entry };
        if let Some(text) = items.collected.get(&index) {
            members.insert("output".to_owned(), json_text::read(text).unwrap_or_default());
        }
        if let Some(fault) = items.faults.get(&index) {
            let StepFault { code, message, step, .. } = fault;
            members.insert("error".to_owned(), json!({ "code": code, "message": message, "step": step }));
        }
        entry
    };
    (0..items.count).map(entry).collect()
}

/// The counts of a loop that ended: what never began is cancelled.
pub(super) fn counts(items: &ItemsState) -> ItemCounts {
    let counts = counts_so_far(items);
    let ended = counts.completed + counts.failed + counts.skipped;
    ItemCounts { cancelled: items.count.saturating_sub(ended), ..counts }
}

/// The counts of a loop that is under way.
pub(super) fn counts_so_far(items: &ItemsState) -> ItemCounts {
    let mut counts = items.counts.clone();
    counts.total = items.count;
    counts.failed_indexes = items.faults.keys().copied().take(MAX_LISTED).collect();
    counts
}
