//! R3: loops and workflows are played in a world that is simulated whole: model, tools, clock, store, humans, crashes.
//! A seed is a world; the same seed is the same world, byte for byte.
//!
//! What must hold in each: the fold of the journal is the live state after every event; no finished step
//! runs again; what was approved is what runs; no two calls of a turn are under way that the order of the loop forbids, and
//! their results are in the conversation in the model's order; limits are overshot by one step at most; what comes
//! twice or too late is refused and leaves no mark; the notices of a live run are those of its journal; every run ends
//! in a way that the table knows.
//!
//! A seed that fails is printed; put it into `KEPT`, fix the fault, and leave it there.
#![allow(clippy::cast_possible_truncation, reason = "a chance below a small number is small")]

mod called;
pub mod chance;
mod documents;
mod driver;
mod flows;
mod human;
mod ledger;
mod parallel;
mod words;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use world::{Played, World};

/// Seeds that once failed, and what was wrong.
const KEPT: [(u64, &str); 1] =
    [(930, "a human was asked about a call when the time was over, and it was made beside another one")];

/// How many documents the seeds share.
const DOCUMENTS: u64 = 64;

fn play(seed: u64) -> Played {
    let program = documents::program(seed % DOCUMENTS);
    World::new(seed, &program).play()
}

/// Plays the seeds on all cores; gives back how often each thing happened.
fn in_all<K: Into<String>>(seeds: std::ops::Range<u64>, play: fn(u64) -> BTreeMap<K, u64>) -> BTreeMap<String, u64> {
    let next = AtomicU64::new(seeds.start);
    let seen = Mutex::new(BTreeMap::new());
    let failed = Mutex::new(Vec::new());
    let one = || {
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seed >= seeds.end {
                return;
            }
            match catch_unwind(AssertUnwindSafe(|| play(seed))) {
                Ok(of_seed) => {
                    let mut seen = seen.lock().unwrap();
                    for (what, times) in of_seed {
                        *seen.entry(what.into()).or_insert(0) += times;
                    }
                }
                Err(_) => failed.lock().unwrap().push(seed),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(one);
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_unstable();
    let first: Vec<_> = failed.iter().take(20).collect();
    assert!(failed.is_empty(), "{} seeds failed, what each says is above: {first:?}", failed.len());
    seen.into_inner().unwrap()
}

/// Plays a seed, some of them twice; gives back how it ended and how often it was continued.
fn endings(seed: u64) -> BTreeMap<String, u64> {
    let played = play(seed);
    if seed.is_multiple_of(20) {
        assert!(played == play(seed), "the same seed gave other bytes");
    }
    let of_kind = |kind: &str| {
        let event = format!("{{\"{kind}\":");
        played.journal.iter().filter(|text| text.contains(&event)).count() as u64
    };
    let continued = ["retried", "limits_raised", "tool_left"].map(|kind| (kind.to_owned(), of_kind(kind)));
    continued.into_iter().chain([(played.ending, 1)]).collect()
}

/// That the simulation reaches what it is there for.
fn reaches_every(endings: &BTreeMap<String, u64>, worlds: u64) {
    for ending in [
        "complete",
        "forced_answer",
        "max_iterations",
        "timeout",
        "context",
        "budget",
        "stuck",
        "model_error",
        "invalid_replies",
        "cancelled",
    ] {
        assert!(endings.contains_key(ending), "no run ended by {ending}: {endings:?}");
    }
    for continued in ["retried", "limits_raised", "tool_left"] {
        assert!(endings[continued] > worlds / 66, "too few runs were continued: {continued}: {endings:?}");
    }
}

/// The worlds of each commit: among so few, these come to every ending.
const EACH_COMMIT: std::ops::Range<u64> = 1200..1500;

#[test]
fn three_hundred_worlds_hold_what_is_promised() {
    let endings = in_all(EACH_COMMIT, endings);
    reaches_every(&endings, 300);
}

#[test]
#[ignore = "nightly: 100,000 seeds"]
fn a_hundred_thousand_worlds_hold_what_is_promised() {
    let endings = in_all(0..100_000, endings);
    println!("{endings:#?}");
    reaches_every(&endings, 100_000);
}

#[test]
fn seeds_that_failed_once_hold_now() {
    for (seed, wrong) in KEPT {
        println!("{seed}: {wrong}");
        play(seed);
    }
}

#[test]
fn other_seeds_are_other_worlds() {
    assert!(play(3) != play(3 + DOCUMENTS));
}
