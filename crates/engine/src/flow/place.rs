//! Where an address like `review.57.1` leads in a workflow: to a step, or to an item of a loop.

use std::collections::BTreeMap;

use super::progress::{ItemStatus, ItemsState, StepFrame};
use loopctl_lang::diagnostic::nearest;
use loopctl_lang::program::flow::{FlowProgram, FlowStep, FoundName, StepAction, find};

/// The most names in the sentence about an unknown address.
const MOST_NAMES: usize = 20;
/// The most characters of an address in a sentence.
const MOST_CHARS: usize = 100;

/// Where an address leads.
pub(super) struct FoundStep<'p> {
    pub kind: AddressKind<'p>,
    /// The steps around it; at an item, its own.
    pub list: &'p [FlowStep],
    /// How far these steps are; none before they begin, and once the loop around them has ended.
    pub frame: Option<&'p StepFrame>,
    /// The address of the item that these steps are of; empty for the steps of the workflow.
    pub prefix: String,
}

/// What is at an address.
pub(super) enum AddressKind<'p> {
    /// An item of a loop.
    Item,
    /// A step.
    Step(&'p FlowStep),
}

/// A workflow has no such step, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoSuchStep(String);

impl NoSuchStep {
    pub(super) fn of_loop() -> Self {
        Self("the run is one of a loop and has no steps: an address is for a run of a workflow".to_owned())
    }
}

/// What is below an address.
pub(super) fn below<'a>(address: &'a str, of: &str) -> Option<&'a str> {
    address.strip_prefix(of)?.strip_prefix('.')
}

/// Where an address leads. `ended`: how the items of loops ended, by the address of the loop.
///
/// # Errors
/// When there is no such step, or the loop has no such item, or not yet.
pub(super) fn found_at<'p>(
    program: &'p FlowProgram,
    root: &'p StepFrame,
    address: &str,
    ended: &BTreeMap<String, Box<[ItemStatus]>>,
) -> Result<FoundStep<'p>, NoSuchStep> {
    let mut place =
        FoundStep { kind: AddressKind::Item, list: &program.steps, frame: Some(root), prefix: String::new() };
    let mut rest = address;
    // Each round is one loop deeper.
    loop {
        let Some(FoundName { step, below }) = find(place.list, rest) else { return Err(no_step(&place, rest)) };
        let at = if place.prefix.is_empty() { step.name.clone() } else { format!("{}.{}", place.prefix, step.name) };
        let Some(below) = below else {
            return Ok(FoundStep { kind: AddressKind::Step(step), ..place });
        };
        let (number, inner) = below.split_once('.').map_or((below, None), |(number, inner)| (number, Some(inner)));
        let StepAction::Foreach(foreach) = &step.action else { return Err(no_step(&place, rest)) };
        let items = place.frame.and_then(|frame| frame.loop_around(&at)).filter(|items| items.at == at);
        let known = ended.get(&at).map(|all| u32::try_from(all.len()).unwrap_or(u32::MAX));
        let Some(count) = items.map(|items| items.count).or(known) else {
            return Err(NoSuchStep(format!(
                "the loop `{at}` has no items: it has not started, or did not get that far"
            )));
        };
        let index = number.parse::<u32>().ok().filter(|index| *index < count && index.to_string() == number);
        let Some(index) = index else {
            let has = match count {
                0 => "no items".to_owned(),
                1 => "1 item: 0".to_owned(),
                count => format!("{count} items: 0 to {}", count - 1),
            };
            return Err(NoSuchStep(format!("the loop `{at}` has no item `{}`; it has {has}", shown(number))));
        };
        place = FoundStep {
            kind: AddressKind::Item,
            list: &foreach.steps,
            frame: items.and_then(|items| frame_of(items, index)),
            prefix: format!("{at}.{index}"),
        };
        match inner {
            Some(inner) => rest = inner,
            None => return Ok(place),
        }
    }
}

/// The loop at an address, while it is under way or after it failed.
pub(super) fn items_at<'f>(root: &'f StepFrame, address: &str) -> Option<&'f ItemsState> {
    let mut frame = root;
    // Each round is one loop deeper, and loops are at most three deep.
    loop {
        let items = frame.loop_around(address)?;
        if items.at == address {
            return Some(items);
        }
        let index = below(address, &items.at)?.split('.').next()?.parse().ok()?;
        frame = frame_of(items, index)?;
    }
}

/// The lists of steps around the steps of an item, and its own, the innermost first; none when one of them is over. Of the steps
/// of the workflow itself, whose item has an empty address, it is one list.
pub(super) fn frames_around<'f>(root: &'f StepFrame, item: &str) -> Option<Vec<&'f StepFrame>> {
    let (mut frames, mut reached) = (vec![root], String::new());
    while reached != item {
        let items = frames.last()?.loop_around(item)?;
        let index = below(item, &items.at)?.split('.').next()?.parse().ok()?;
        frames.push(frame_of(items, index)?);
        reached = format!("{}.{index}", items.at);
    }
    frames.reverse();
    Some(frames)
}

/// How far an item is that has started, and did not complete.
fn frame_of(items: &ItemsState, index: u32) -> Option<&StepFrame> {
    items.open.get(&index).or_else(|| items.unfinished.get(&index)).or_else(|| items.again.get(&index))
}

/// Why nothing is at the rest of an address.
fn no_step(place: &FoundStep<'_>, rest: &str) -> NoSuchStep {
    let mut names = Vec::new();
    // The names of steps in a case have several parts.
    let mut name = rest.split('.').next().unwrap_or(rest);
    for step in place.list {
        let mut next = Some(step);
        while let Some(step) = next {
            names.push(step.name.as_str());
            if below(rest, &step.name).is_some() && !matches!(step.action, StepAction::Choose(_)) {
                let at = if place.prefix.is_empty() { String::new() } else { format!("{}.", place.prefix) };
                let why = "is no loop over items: nothing is below its address";
                return NoSuchStep(format!("the step `{at}{}` {why}", step.name));
            }
            if step.name == name {
                name = rest;
            }
            next = step.otherwise.as_deref();
        }
    }
    let listed = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let of = if place.prefix.is_empty() { "the workflow".to_owned() } else { format!("`{}`", place.prefix) };
    let near =
        nearest(name, names.iter().copied()).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let more = names.len().saturating_sub(MOST_NAMES);
    let there = listed(names.get(..MOST_NAMES).unwrap_or(&names));
    let there = if more > 0 { format!("{there} and {more} more") } else { there };
    NoSuchStep(format!("{of} has no step `{}`; its steps are {there}{near}", shown(name)))
}

/// A part of an address as it was given.
fn shown(part: &str) -> String {
    part.chars().take(MOST_CHARS).collect()
}
