//! R1b: the process is killed at a random microsecond. The fail points are where we think that a kill hurts;
//! this test looks for the other places.
#![allow(clippy::disallowed_methods, reason = "how long a run takes is measured here")]

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::Value;

use crate::crash::reference::{CALLS, Reference, START, assert_same, untouched};

/// More before a release: ten times as many.
const KILLS: u64 = 1000;
/// The duration of each call: during it, its intent is durable and its outcome is not.
const CALL: Duration = Duration::from_millis(3);
/// The speed of a machine varies: it is measured again after so many rounds.
const MEASURED: u32 = 25;

const ANSWER: [&str; 8] = ["resume", "r", "--script", "script.json", "--output", "json", "--answer", "yes"];

/// Where a kill hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hit {
    /// The process was quicker.
    Missed,
    /// No event was durable yet.
    BeforeTheRun,
    /// Between the intent of this call and its outcome.
    During(&'static str),
    /// Somewhere else before the question.
    BetweenCalls,
    /// After the human's answer.
    AfterTheAnswer,
}

/// How long the parts of a run take, in microseconds: from the start of its process to the first call, from
/// each call to the next step, the last of which is the question; and the process that gets the answer.
struct Parts([RangeInclusive<u64>; 5]);

/// The last part.
const ANSWERED: usize = 4;

impl Parts {
    /// Measures a run that nobody kills.
    fn measure() -> Self {
        let reference = Reference::slow(CALL);
        let mut last = Instant::now();
        let mut lap = || micros(std::mem::replace(&mut last, Instant::now()).elapsed());
        let child = reference.place.start(&START, &[]);
        let [first, second, third] = [1, 2, 3].map(|requests| {
            reference.server.wait_for(requests);
            lap()
        });
        assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(3));
        let question = lap();
        assert_eq!(reference.resume(&["--answer", "yes"], "").code, 0);
        let end = lap();
        // The first part of the start of a process does not concern the run.
        Self([first / 4..=first, 0..=second, 0..=third, 0..=question, end / 2..=end])
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("a short time")
}

/// Plays a run that is killed once, and drives it to its end.
fn round(seed: u64, expected: &Value, parts: &Parts) -> Hit {
    let mut random = Rng::with_seed(seed);
    let reference = Reference::slow(CALL);
    let part = random.usize(..parts.0.len());
    let delay = random.u64(parts.0[part].clone());
    let answered = part == ANSWERED;
    if answered {
        assert_eq!(reference.start("").code, 3);
    }
    let mut child = reference.place.start(if answered { &ANSWER } else { &START }, &[]);
    if !answered {
        reference.server.wait_for(part);
    }
    std::thread::sleep(Duration::from_micros(delay));
    child.kill().expect("it is our child");
    let killed = child.wait_with_output().expect("it ends").status.signal() == Some(9);

    reference.server.wait_until_read();
    let (done, open) = reference.calls_in_journal();
    let has_events = !reference.events().is_empty();
    let before: BTreeMap<_, _> = done.iter().map(|name| (*name, reference.calls_of(name))).collect();
    let at = format!("seed {seed}, killed {delay} us into part {part}: finished {done:?}, under way {open:?}");
    // Either command finds the run by its id.
    let resumed = if has_events && random.bool() { reference.resume(&[], "") } else { reference.start("") };
    let (result, asked) = reference.finish_after(resumed);

    assert_same(result, expected, &at);
    reference.holds_after(&at, usize::from(killed));
    for (name, calls) in before {
        assert_eq!(reference.calls_of(name), calls, "{at}: {name} had finished, and was called again");
    }
    assert!(reference.calls_of("put").iter().all(|key| !key.is_empty()), "{at}: put has a key");
    assert_eq!(asked == 1, open == Some("post"), "{at}: asked {asked} times");
    match open {
        _ if !killed => Hit::Missed,
        Some(name) => Hit::During(name),
        None if !has_events => Hit::BeforeTheRun,
        None if answered => Hit::AfterTheAnswer,
        None => Hit::BetweenCalls,
    }
}

/// Plays rounds on all cores until so many kills hit; returns how many hit which place.
fn played(first: u64, kills: u64) -> BTreeMap<Hit, u64> {
    let expected = untouched();
    let (next, over) = (AtomicU64::new(0), AtomicU64::new(0));
    let (hits, failed) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    let some = || {
        let mut parts = Parts::measure();
        for mine in 1.. {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if over.load(Ordering::SeqCst) >= kills || number >= 2 * kills {
                return;
            }
            if mine % MEASURED == 0 {
                parts = Parts::measure();
            }
            let seed = first.wrapping_add(number);
            let hit = catch_unwind(AssertUnwindSafe(|| round(seed, &expected, &parts)));
            over.fetch_add(u64::from(!matches!(hit, Ok(Hit::Missed))), Ordering::SeqCst);
            match hit {
                Ok(hit) => *hits.lock().unwrap().entry(hit).or_insert(0) += 1,
                Err(_) => failed.lock().unwrap().push(seed),
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(some))));
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "what these seeds did is above: {failed:?}");
    hits.into_inner().unwrap()
}

#[test]
#[ignore = "nightly: 1,000 kills at random"]
fn a_kill_at_any_microsecond_ends_in_the_same_result() {
    let first = fastrand::u64(..);
    let hits = played(first, KILLS);
    println!("kills from seed {first}: {hits:?}");
    let kills: u64 = hits.iter().filter(|(hit, _)| **hit != Hit::Missed).map(|(_, count)| count).sum();
    assert!(kills >= KILLS, "most rounds were over before the kill: {hits:?}");
    let during = CALLS.map(|name| hits.get(&Hit::During(name)).copied().unwrap_or(0));
    let count: u64 = during.iter().sum();
    assert!(count * 10 >= kills, "{count} of {kills} kills hit between an intent and its outcome: that tests nothing");
    assert!(during.iter().all(|count| *count > 0), "a call that was never hit is not tested: {hits:?}");
}
