//! The ids of new runs: the loop's name, and eight signs of Crockford's base 32, which can be read aloud and typed.
//! The first six count the seconds, so that the ids of a loop sort by time to the second; the others are chance.

use std::sync::atomic::{AtomicU64, Ordering};

use loopctl_lang::policy::characters::deceives;

/// Crockford's signs: no letter looks like a digit.
const SIGNS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The most characters of the loop's name.
const NAME_CHARS: usize = 24;
/// The name where the loop's has no letter or digit of ours.
const NAMELESS: &str = "run";
/// 2025-01-01, from which the seconds count. They are enough for 34 years.
const EPOCH_MS: i64 = 1_735_689_600_000;
const TIME_SIGNS: u32 = 6;
const CHANCE_SIGNS: u32 = 2;
/// After this many ids in a row that are taken, each further one has more chance.
const SHORT_TRIES: u32 = 3;

/// The number of ids of one second that are short: each further one has more chance, or a busy server would try most ids twice.
const SHORT_A_SECOND: u64 = 32;
const MORE_CHANCE_SIGNS: u32 = 2;

/// The second in which this process made its last id, and how many it made in it.
static MADE: AtomicU64 = AtomicU64::new(0);
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// How many ids this process has made in this second, with this one.
fn made_in(seconds: u64) -> u64 {
    let next = |made: u64| {
        let before = if made >> COUNT_BITS == seconds { made & COUNT_MASK } else { 0 };
        (seconds << COUNT_BITS) | before.saturating_add(1).min(COUNT_MASK)
    };
    // The count only decides how long an id is.
    MADE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |made| Some(next(made))).map_or(1, next) & COUNT_MASK
}

/// An id for a new run. `taken`: how many ids of this start were other runs' already.
pub(super) fn new(loop_name: &str, wall_ms: i64, taken: u32) -> String {
    let seconds = u64::try_from(wall_ms.saturating_sub(EPOCH_MS) / 1_000).unwrap_or(0);
    let most = (1_u64 << (5 * TIME_SIGNS)) - 1;
    let mut id = slug(loop_name);
    id.push('-');
    write(&mut id, seconds.min(most), TIME_SIGNS);
    let crowded = if made_in(seconds.min(most)) > SHORT_A_SECOND { MORE_CHANCE_SIGNS } else { 0 };
    let more = taken.saturating_sub(SHORT_TRIES).min(5) * 2;
    write(&mut id, fastrand::u64(..), CHANCE_SIGNS + more.max(crowded));
    id
}

/// The id of a run whose start named a key: the loop's name, and what is computed from the key.
pub fn of_key(loop_name: &str, key: &str) -> String {
    format!("{}-{key}", slug(loop_name))
}

/// The most characters of an id that is given at a start.
const MOST_CHARS: usize = 512;

/// Why a run can't have an id that was given: logs, file names and terminals would show another one.
pub(super) fn wrong_id(id: &str) -> Option<String> {
    let what = if id.chars().count() > MOST_CHARS {
        format!("it has more than {MOST_CHARS} characters")
    } else {
        unreadable(id)?.to_owned()
    };
    Some(format!("{id:?} can't be the id of a run: {what}; take letters, digits, `-`, `_` and `.`"))
}

/// Why an id can't be read for sure; none for one that can.
pub(super) fn unreadable(id: &str) -> Option<&'static str> {
    let is_wrong = |c: char| c.is_control() || deceives(c);
    if id.trim().is_empty() {
        Some("it is empty")
    } else if id.contains(is_wrong) {
        Some("it has a control character, or one that is not seen")
    } else {
        None
    }
}

/// The last `signs` signs of a number.
fn write(id: &mut String, number: u64, signs: u32) {
    for place in (0..signs).rev() {
        let sign = usize::try_from(number >> (5 * place) & 31).unwrap_or(0);
        id.extend(SIGNS.get(sign).map(|sign| char::from(*sign)));
    }
}

/// A name in small letters, digits and single hyphens.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if slug.len() >= NAME_CHARS {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { NAMELESS.to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_name_and_eight_signs() {
        let id = new("Triage of Tickets!", EPOCH_MS + 12_345_000, 0);
        let (name, signs) = id.rsplit_once('-').unwrap();
        assert_eq!((name, signs.len()), ("triage-of-tickets", 8), "{id}");
        assert!(signs.bytes().all(|sign| SIGNS.contains(&sign)), "{id}");
        assert_eq!(&signs[..6], "000c1s", "12345 seconds");
    }

    #[test]
    fn the_ids_of_a_loop_sort_by_time_also_the_longer_ones() {
        let ids: Vec<String> = (0..400_u32).map(|n| new("a", EPOCH_MS + i64::from(n) * 1_000, n % 9)).collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }

    #[test]
    fn clocks_before_the_epoch_and_after_its_end_give_ids() {
        for (wall_ms, begin) in [(0, "a-000000"), (i64::MIN, "a-000000"), (i64::MAX, "a-zzzzzz")] {
            assert!(new("a", wall_ms, 0).starts_with(begin));
        }
    }

    #[test]
    fn an_id_that_is_taken_again_and_again_gets_longer() {
        let length = |taken| new("a", 0, taken).len();
        assert_eq!([0, 3, 4, 5, 100].map(length), [10, 10, 12, 14, 20]);
    }

    #[test]
    fn ids_of_a_crowded_second_are_longer_and_few_are_alike() {
        let at_ms = EPOCH_MS + 777_000_000;
        let ids: Vec<String> = (0..2_000).map(|_| new("a", at_ms, 0)).collect();
        assert_eq!((ids[0].len(), ids[1_999].len()), (10, 12));
        let different: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert!(different.len() > 1_980, "{} of 2,000", different.len());
        assert_eq!(new("a", at_ms + 1_000, 0).len(), 10, "the next second begins with short ones");
    }

    #[test]
    fn every_name_is_one_that_can_be_typed() {
        for (name, expected) in [
            ("Lagebericht — täglich", "lagebericht-t-glich"),
            ("日本", "run"),
            ("", "run"),
            ("--a--", "a"),
            ("../../etc", "etc"),
            ("a-name-that-is-much-longer-than-it-may-be", "a-name-that-is-much-long"),
        ] {
            assert_eq!(slug(name), expected, "{name}");
        }
    }
}
