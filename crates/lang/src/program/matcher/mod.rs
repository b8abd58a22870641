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

use std::cmp::Ordering;

use serde_json::Value;

use self::entry::{EntryFacts, amount_places, no_amount, no_date};
use self::settings::AMOUNT_PLACES;
use crate::program::json_length::json_bytes;
use crate::program::value_kind::value_kind;

/// The most pairs that are compared: those of entries whose `matchOn` fields are equal.
pub const MAX_PAIRS: usize = 2_000_000;
/// The most steps that the comparisons of texts take: each takes the product of their lengths.
const MAX_TEXT_STEPS: u64 = if cfg!(test) { 40_000_000 } else { 400_000_000 };

/// The most characters of a value in a sentence.
const MAX_SHOWN_CHARACTERS: usize = 60;

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
    /// The result is longer than the caller takes.
    #[error("its output has {bytes} bytes, and a step gives at most {} MiB", most >> 20)]
    TooLong {
        /// How long it is, as JSON text.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
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
    /// No entry has a partner, because none of a list has an amount, or a date, that can be read.
    #[error("nothing matches, because no entry on the {side} has {wanted} in `{field}`: the first one has {shown}")]
    Unread {
        /// The list: `left` or `right`.
        side: &'static str,
        /// The field.
        field: &'static str,
        /// What it must be.
        wanted: &'static str,
        /// What the first entry has there.
        shown: String,
    },
}

/// Finds which entries of two lists belong together. Of all pairs that the settings allow, the one nearest in amount is
/// taken first, then the one nearest in date, then the first in the lists.
///
/// # Errors
/// When the lists take too much work.
pub fn match_lists(settings: &MatchSettings, left: &[Value], right: &[Value]) -> Result<MatchedLists, MatchTooLarge> {
    let places = amount_places([left, right], AMOUNT_PLACES);
    let lists = ComparedLists {
        settings,
        left: left.iter().map(|entry| EntryFacts::of(entry, settings, places)).collect(),
        right: right.iter().map(|entry| EntryFacts::of(entry, settings, places)).collect(),
        scale: 10_u128.saturating_pow(u32::from(AMOUNT_PLACES.saturating_sub(places))),
    };
    let (of_left, of_right) = (by_key(&lists.left), by_key(&lists.right));
    let groups = lists.groups(&of_left, &of_right);
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

/// A list none of whose entries has an amount, or a date, that can be read, where a pair needs one. What lacks the field does not
/// count.
pub fn unread(settings: &MatchSettings, left: &[Value], right: &[Value]) -> Option<MatchFault> {
    let fault = |side, field, wanted, value: &Value| {
        let shown = value.to_string();
        let cut = shown.char_indices().nth(MAX_SHOWN_CHARACTERS).and_then(|(at, _)| shown.get(..at));
        let shown = cut.map_or_else(|| shown.clone(), |cut| format!("{cut}..."));
        MatchFault::Unread { side, field, wanted, shown }
    };
    [("left", left), ("right", right)].into_iter().find_map(|(side, list)| {
        let amount = no_amount(list).filter(|_| settings.compares_amounts());
        let amount = amount.map(|value| fault(side, AMOUNT, "a number", value));
        let date = || no_date(list).filter(|_| settings.compares_dates());
        amount.or_else(|| date().map(|value| fault(side, DATE, "a date, written `2026-12-31`,", value)))
    })
}

fn positions(unused: &[bool]) -> Vec<usize> {
    unused.iter().enumerate().filter(|(_, unused)| **unused).map(|(at, _)| at).collect()
}

impl MatchedLists {
    /// How long the three lists of entries are as JSON texts, in bytes; they are not made for that.
    fn bytes(&self, left: &[Value], right: &[Value]) -> usize {
        let of = |list: &[Value], at: &usize| list.get(*at).map_or(0, json_bytes);
        let pair = |pair: &MatchedPair| {
            // The rest of `{"a":,"b":}`.
            of(left, &pair.left).saturating_add(of(right, &pair.right)).saturating_add(11)
        };
        [
            list_bytes(self.matched.iter().map(pair)),
            list_bytes(self.unmatched_left.iter().map(|at| of(left, at))),
            list_bytes(self.unmatched_right.iter().map(|at| of(right, at))),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// The three lists of entries: pairs as `{a, b}`, what is left of the left list, and of the right one.
    pub fn entries(&self, left: &[Value], right: &[Value]) -> [Vec<Value>; 3] {
        let entry = |list: &[Value], at: usize| list.get(at).cloned().unwrap_or_default();
        let pair = |pair: &MatchedPair| {
            let members = [("a", entry(left, pair.left)), ("b", entry(right, pair.right))];
            Value::Object(members.into_iter().map(|(name, entry)| (name.to_owned(), entry)).collect())
        };
        let pairs = self.matched.iter().map(pair).collect();
        let unmatched_left = self.unmatched_left.iter().map(|at| entry(left, *at)).collect();
        let unmatched_right = self.unmatched_right.iter().map(|at| entry(right, *at)).collect();
        [pairs, unmatched_left, unmatched_right]
    }
}

/// How long the JSON text of a list is, with brackets and commas.
fn list_bytes(entries: impl ExactSizeIterator<Item = usize>) -> usize {
    let commas = entries.len().saturating_sub(1);
    entries.fold(commas.saturating_add(2), usize::saturating_add)
}

/// Two lists, and how they are compared.
struct ComparedLists<'a> {
    settings: &'a MatchSettings,
    left: Vec<EntryFacts>,
    right: Vec<EntryFacts>,
    /// How many units of a tolerance one unit of the amounts is.
    scale: u128,
}

/// The entries of both lists whose `matchOn` fields are equal, by their positions.
struct KeyGroup<'k> {
    left: &'k [usize],
    right: &'k [usize],
}

/// The positions of the entries that have a key, in the order of their keys: a list of a hundred thousand entries takes one
/// allocation.
fn by_key(facts: &[EntryFacts]) -> Vec<usize> {
    let mut positions: Vec<usize> =
        facts.iter().enumerate().filter(|(_, entry)| entry.key.is_some()).map(|(at, _)| at).collect();
    positions.sort_unstable_by_key(|at| (key_of(facts, *at), *at));
    positions
}

fn key_of(facts: &[EntryFacts], at: usize) -> Option<&str> {
    facts.get(at)?.key.as_deref()
}

/// How many of these positions, which are in the order of their keys, have the key of the first one.
fn of_one_key(facts: &[EntryFacts], positions: &[usize]) -> usize {
    let Some(first) = positions.first() else { return 0 };
    let key = key_of(facts, *first);
    positions.iter().take_while(|at| key_of(facts, **at) == key).count()
}

impl ComparedLists<'_> {
    /// The groups that have entries of both lists. `left`, `right`: their positions in the order of their keys.
    fn groups<'k>(&self, mut left: &'k [usize], mut right: &'k [usize]) -> Vec<KeyGroup<'k>> {
        let mut groups = Vec::new();
        while let (Some(one), Some(other)) = (left.first(), right.first()) {
            match key_of(&self.left, *one).cmp(&key_of(&self.right, *other)) {
                Ordering::Less => left = left.get(of_one_key(&self.left, left)..).unwrap_or_default(),
                Ordering::Greater => right = right.get(of_one_key(&self.right, right)..).unwrap_or_default(),
                Ordering::Equal => {
                    let (of_left, rest_left) = left.split_at(of_one_key(&self.left, left));
                    let (of_right, rest_right) = right.split_at(of_one_key(&self.right, right));
                    groups.push(KeyGroup { left: of_left, right: of_right });
                    (left, right) = (rest_left, rest_right);
                }
            }
        }
        groups
    }

    /// The pairs of a group that the settings allow, the nearest first.
    fn candidates(&self, group: &KeyGroup<'_>, text_steps: &mut u64) -> Result<Vec<MatchedPair>, MatchTooLarge> {
        let mut candidates = Vec::new();
        for left in group.left {
            for right in group.right {
                let (Some(one), Some(other)) = (self.left.get(*left), self.right.get(*right)) else { continue };
                if self.settings.allow(one, other, self.scale, text_steps)? {
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
