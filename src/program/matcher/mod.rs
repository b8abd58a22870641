//! The matcher: which entries of two lists belong together. Each entry is used once, and the nearest pairs come first,
//! whatever the order of the lists. Its work is bounded.

mod entry;
mod settings;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_properties;
mod tool;

pub(crate) use entry::{AMOUNT, DATE, MAX_PAIR_DEPTH, is_date_name};
pub use settings::MatchSettings;
pub use tool::{MatcherCall, MatcherSide, MatcherTool};

use std::collections::HashMap;

use serde_json::{Value, json};

use self::entry::EntryFacts;
use crate::program::value_kind::value_kind;

/// The most pairs that are compared: those of entries whose `matchOn` fields are equal.
pub const MAX_PAIRS: usize = 2_000_000;
/// The most steps that the comparisons of texts take: each takes the product of their lengths.
const MAX_TEXT_STEPS: u64 = 400_000_000;

/// Which entries belong together, by their positions in the two lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MatchedLists {
    /// The pairs, in the order of the left list.
    pub matched: Vec<MatchedPair>,
    /// What is left of the left list, in its order.
    pub unmatched_left: Vec<usize>,
    /// What is left of the right list, in its order.
    pub unmatched_right: Vec<usize>,
}

/// Two entries that belong together, by their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MatchedPair {
    /// The position in the left list.
    pub left: usize,
    /// The position in the right list.
    pub right: usize,
}

/// The lists would take more work than a matcher does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MatchTooLarge {
    /// Too many pairs have equal `matchOn` fields.
    #[error(
        "the lists are too large to match: more than {MAX_PAIRS} pairs have equal `matchOn` fields; name another field there"
    )]
    Pairs,
    /// Too many texts are compared.
    #[error(
        "the lists are too large to match: the texts of too many pairs are compared; name another field in `matchOn`"
    )]
    Texts,
}

/// A call of a matcher that gives nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatchFault {
    /// The lists would take too much work.
    #[error(transparent)]
    TooLarge(#[from] MatchTooLarge),
    /// No entry has a partner, and none can have one.
    #[error(
        "nothing matches, because `{field}` is {left} in each entry on the left and {right} in each entry on the right: such \
         values are never equal; let both lists have it in one form"
    )]
    UnequalTypes {
        /// The field.
        field: String,
        /// What it is on the left.
        left: String,
        /// What it is on the right.
        right: String,
    },
}

/// Finds which entries of two lists belong together. Of all pairs that the settings allow, the one nearest in amount is
/// taken first, then the one nearest in date, then the first in the lists.
///
/// # Errors
/// When the lists take too much work.
pub fn match_lists(settings: &MatchSettings, left: &[Value], right: &[Value]) -> Result<MatchedLists, MatchTooLarge> {
    let lists = ComparedLists {
        settings,
        left: left.iter().map(|entry| EntryFacts::of(entry, settings)).collect(),
        right: right.iter().map(|entry| EntryFacts::of(entry, settings)).collect(),
    };
    let groups = lists.groups();
    let pairs = groups.iter().map(|group| group.left.len().saturating_mul(group.right.len()));
    if pairs.fold(0, usize::saturating_add) > MAX_PAIRS {
        return Err(MatchTooLarge::Pairs);
    }
    let mut unused_left = vec![true; left.len()];
    let mut unused_right = vec![true; right.len()];
    let mut text_steps = MAX_TEXT_STEPS;
    let mut matched = Vec::new();
    for group in &groups {
        for pair in lists.candidates(group, &mut text_steps)? {
            let entries = (unused_left.get_mut(pair.left), unused_right.get_mut(pair.right));
            if let (Some(left @ true), Some(right @ true)) = entries {
                (*left, *right) = (false, false);
                matched.push(pair);
            }
        }
    }
    matched.sort_unstable();
    Ok(MatchedLists { matched, unmatched_left: positions(&unused_left), unmatched_right: positions(&unused_right) })
}

/// A field of `matchOn` by which no entry of the one list can have a partner in the other: the values are of other types.
/// What lacks the field, or has null there, does not count.
pub fn unequal_types(settings: &MatchSettings, left: &[Value], right: &[Value]) -> Option<MatchFault> {
    let types = |list: &[Value], name: &str| {
        let mut types: Vec<&'static str> =
            list.iter().filter_map(|entry| entry::value_of(entry, name)).map(value_kind).collect();
        types.sort_unstable();
        types.dedup();
        types
    };
    settings.match_on.iter().find_map(|field| {
        let (one, other) = (types(left, field), types(right, field));
        let is_unequal = !one.is_empty() && !other.is_empty() && !one.iter().any(|kind| other.contains(kind));
        is_unequal.then(|| MatchFault::UnequalTypes {
            field: field.clone(),
            left: one.join(" or "),
            right: other.join(" or "),
        })
    })
}

fn positions(unused: &[bool]) -> Vec<usize> {
    unused.iter().enumerate().filter(|(_, unused)| **unused).map(|(at, _)| at).collect()
}

impl MatchedLists {
    /// The three lists of entries: pairs as `{a, b}`, what is left of the left list, and of the right one.
    pub fn into_entries(self, mut left: Vec<Value>, mut right: Vec<Value>) -> [Vec<Value>; 3] {
        let take = |list: &mut Vec<Value>, at: usize| list.get_mut(at).map(Value::take).unwrap_or_default();
        let pair = |pair: &MatchedPair| json!({ "a": take(&mut left, pair.left), "b": take(&mut right, pair.right) });
        let pairs = self.matched.iter().map(pair).collect();
        let unmatched_left = self.unmatched_left.iter().map(|at| take(&mut left, *at)).collect();
        let unmatched_right = self.unmatched_right.iter().map(|at| take(&mut right, *at)).collect();
        [pairs, unmatched_left, unmatched_right]
    }
}

/// Two lists, and how they are compared.
struct ComparedLists<'a> {
    settings: &'a MatchSettings,
    left: Vec<EntryFacts>,
    right: Vec<EntryFacts>,
}

/// The entries of both lists whose `matchOn` fields are equal, by their positions.
#[derive(Default)]
struct KeyGroup {
    left: Vec<usize>,
    right: Vec<usize>,
}

impl ComparedLists<'_> {
    fn groups(&self) -> Vec<KeyGroup> {
        let mut by_key: HashMap<&str, usize> = HashMap::new();
        let mut groups: Vec<KeyGroup> = Vec::new();
        for (at, entry) in self.left.iter().enumerate() {
            let Some(key) = &entry.key else { continue };
            let next = groups.len();
            let number = *by_key.entry(key).or_insert(next);
            if number == next {
                groups.push(KeyGroup::default());
            }
            groups.get_mut(number).into_iter().for_each(|group| group.left.push(at));
        }
        for (at, entry) in self.right.iter().enumerate() {
            let number = entry.key.as_ref().and_then(|key| by_key.get(key.as_str()));
            number.and_then(|number| groups.get_mut(*number)).into_iter().for_each(|group| group.right.push(at));
        }
        groups
    }

    /// The pairs of a group that the settings allow, the nearest first.
    fn candidates(&self, group: &KeyGroup, text_steps: &mut u64) -> Result<Vec<MatchedPair>, MatchTooLarge> {
        let mut candidates = Vec::new();
        for left in &group.left {
            for right in &group.right {
                let (Some(one), Some(other)) = (self.left.get(*left), self.right.get(*right)) else { continue };
                if self.settings.allow(one, other, text_steps)? {
                    candidates.push(MatchedPair { left: *left, right: *right });
                }
            }
        }
        candidates.sort_unstable_by_key(|pair| {
            let entries = self.left.get(pair.left).zip(self.right.get(pair.right));
            (entries.map(|(one, other)| one.distance(other)), *pair)
        });
        Ok(candidates)
    }
}
