//! The matcher beside a simple one, and what holds for all lists.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::settings;
use super::{MatchSettings, MatchedLists, match_lists};

/// An entry with few keys, amounts, dates and texts, so that many may be pairs.
fn entry() -> impl Strategy<Value = Value> {
    let amount = proptest::option::of(0..40_i32);
    (0..3_i32, amount, proptest::option::of(1..9_u32), "[ab]{0,3}").prop_map(|(id, cents, day, memo)| {
        let mut entry = json!({"id": id, "memo": memo});
        if let Some(cents) = cents {
            entry["amount"] = json!(format!("{}.{:02}", cents / 10, cents % 10));
        }
        if let Some(day) = day {
            entry["date"] = json!(format!("2026-01-0{day}"));
        }
        entry
    })
}

fn written() -> impl Strategy<Value = Value> {
    let numbers = (proptest::option::of(0..30_u32), proptest::option::of(0..5_u32), proptest::option::of(0..100_u32));
    (numbers, any::<bool>()).prop_map(|((cents, days, least), is_share)| {
        let mut written = json!({"matchOn": ["id"]});
        if let Some(cents) = cents {
            written["tolerance"] = json!(f64::from(cents) / 100.0);
            written["tolerance_mode"] = json!(if is_share { "relative" } else { "absolute" });
        }
        if let Some(days) = days {
            written["dateWindowDays"] = json!(days);
        }
        if let Some(least) = least {
            written["fuzzyThreshold"] = json!(least);
            written["descriptionKey"] = json!("memo");
        }
        written
    })
}

/// Amounts in hundredths: what the entries above have.
fn cents(entry: &Value) -> Option<i64> {
    let (whole, part) = entry["amount"].as_str()?.split_once('.')?;
    Some(whole.parse::<i64>().unwrap() * 100 + part.parse::<i64>().unwrap())
}

fn day(entry: &Value) -> Option<i64> {
    entry["date"].as_str().map(|date| date[8..].parse().unwrap())
}

/// Whether two entries may be a pair, said once more in a simple way.
fn may_pair(written: &Value, one: &Value, other: &Value) -> bool {
    if one["id"] != other["id"] {
        return false;
    }
    if let Some(tolerance) = written["tolerance"].as_f64() {
        let (Some(one), Some(other)) = (cents(one), cents(other)) else { return false };
        let hundredths = (0..30_i32).find(|cents| f64::from(*cents) / 100.0 == tolerance).map(i64::from).unwrap();
        let most = if written["tolerance_mode"] == "relative" { hundredths * one.max(other) } else { hundredths * 100 };
        if (one - other).abs() * 100 > most {
            return false;
        }
    }
    if let Some(days) = written["dateWindowDays"].as_i64() {
        let (Some(one), Some(other)) = (day(one), day(other)) else { return false };
        if (one - other).abs() > days {
            return false;
        }
    }
    let least = usize::try_from(written["fuzzyThreshold"].as_u64().unwrap_or(0)).unwrap();
    let (one, other) = (one["memo"].as_str().unwrap(), other["memo"].as_str().unwrap());
    let longer = one.len().max(other.len());
    (longer - strsim::levenshtein(one, other)) * 100 >= least * longer
}

/// The matcher in its simplest form: again and again the nearest pair of what is left.
fn simplest(written: &Value, left: &[Value], right: &[Value]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    loop {
        let free = |at: usize, other: usize| pairs.iter().all(|(left, right)| *left != at && *right != other);
        let all = (0..left.len()).flat_map(|at| (0..right.len()).map(move |other| (at, other)));
        let gap = |one: Option<i64>, other: Option<i64>| match (one, other) {
            (Some(one), Some(other)) => (one - other).abs(),
            _ => i64::MAX,
        };
        let nearest = all
            .filter(|(at, other)| free(*at, *other) && may_pair(written, &left[*at], &right[*other]))
            .min_by_key(|(at, other)| {
                let (one, other_entry) = (&left[*at], &right[*other]);
                (gap(cents(one), cents(other_entry)), gap(day(one), day(other_entry)), *at, *other)
            });
        match nearest {
            Some(pair) => pairs.push(pair),
            None => break,
        }
    }
    pairs.sort_unstable();
    pairs
}

fn found(settings: &MatchSettings, left: &[Value], right: &[Value]) -> MatchedLists {
    match_lists(settings, left, right).unwrap()
}

/// A list in another order, and where each of its entries was before.
fn shuffled(list: &[Value], seed: usize) -> (Vec<Value>, Vec<usize>) {
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by_key(|at| (at * 7 + seed * 13) % 11);
    (order.iter().map(|at| list[*at].clone()).collect(), order)
}

proptest! {
    #[test]
    fn it_finds_what_the_simplest_matcher_finds(
        written in written(),
        left in proptest::collection::vec(entry(), 0..9),
        right in proptest::collection::vec(entry(), 0..9),
    ) {
        let found = found(&settings(written.clone()), &left, &right);
        let pairs: Vec<(usize, usize)> = found.matched.iter().map(|pair| (pair.left, pair.right)).collect();
        prop_assert_eq!(pairs, simplest(&written, &left, &right));
    }

    #[test]
    fn each_entry_is_used_once_and_none_is_lost(
        written in written(),
        left in proptest::collection::vec(entry(), 0..20),
        right in proptest::collection::vec(entry(), 0..20),
    ) {
        let found = found(&settings(written), &left, &right);
        let mut all_left: Vec<usize> = found.matched.iter().map(|pair| pair.left).chain(found.unmatched_left).collect();
        let mut all_right: Vec<usize> = found.matched.iter().map(|pair| pair.right).chain(found.unmatched_right).collect();
        all_left.sort_unstable();
        all_right.sort_unstable();
        prop_assert_eq!(all_left, (0..left.len()).collect::<Vec<_>>());
        prop_assert_eq!(all_right, (0..right.len()).collect::<Vec<_>>());
    }

    #[test]
    fn the_order_of_the_lists_changes_no_pair_when_no_two_are_equally_near(
        numbers in proptest::collection::btree_set(0..1_000_000_u64, 0..10),
        seed in 0..11_usize,
    ) {
        // Differences of distinct powers: no two pairs are equally near.
        let amounts: Vec<u64> = numbers.iter().enumerate().map(|(at, number)| number + (1 << (2 * at)) * 1_000_000).collect();
        let entries: Vec<Value> = amounts.iter().map(|amount| json!({"id": 1, "amount": amount})).collect();
        let (left, right) = entries.split_at(entries.len() / 2);
        let gaps: Vec<u64> = left.iter().flat_map(|one| right.iter().map(move |other| one["amount"].as_u64().unwrap().abs_diff(other["amount"].as_u64().unwrap()))).collect();
        prop_assume!(gaps.iter().collect::<BTreeSet<_>>().len() == gaps.len());
        let settings = settings(json!({"matchOn": ["id"]}));
        let pairs: BTreeSet<(usize, usize)> = found(&settings, left, right).matched.iter().map(|pair| (pair.left, pair.right)).collect();
        let ((new_left, from_left), (new_right, from_right)) = (shuffled(left, seed), shuffled(right, seed + 3));
        let again = found(&settings, &new_left, &new_right).matched;
        let again: BTreeSet<(usize, usize)> = again.iter().map(|pair| (from_left[pair.left], from_right[pair.right])).collect();
        prop_assert_eq!(pairs, again);
    }
}
