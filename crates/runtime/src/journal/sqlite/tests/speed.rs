//! How fast it is: not a test, figures to look at.

use std::time::Duration;

use super::*;
use crate::journal::tests::{begin, event};

/// `runs` runs append `events` events each, at once; events a second.
fn rate(path: &Path, runs: u64, events: u64) -> f64 {
    let journal = open(path);
    let ids: Vec<_> = (0..runs).map(|run| format!("{runs}-{run}")).collect();
    for id in &ids {
        begin(&journal, id);
    }
    let clock = Clock::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let journal = std::sync::Arc::new(journal);
    let tasks: Vec<_> = ids
        .into_iter()
        .map(|id| {
            let journal = std::sync::Arc::clone(&journal);
            runtime.spawn(async move {
                for seq in 1..=events {
                    let text = "x".repeat(600);
                    journal.append(Append { event: text, ..event(&id, 1, seq) }).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
    let took = Duration::from_millis(clock.monotonic_ms()).as_secs_f64().max(0.001);
    f64::from(u32::try_from(runs * events).unwrap()) / took
}

#[test]
#[ignore = "figures, not a test: cargo test --lib journal::sqlite::tests::speed -- --ignored --nocapture"]
fn appends_a_second() {
    let (_folder, path) = place();
    for (runs, events) in [(1, 2_000), (8, 1_000), (64, 500), (1_000, 50)] {
        println!("{runs:>5} runs at once: {:>7.0} appends a second", rate(&path, runs, events));
    }
    let journal = open(&path);
    let fence = begin(&journal, "r");
    let each_us = |what: &str, times: u32, operation: &dyn Fn()| {
        let clock = Clock::new();
        (0..times).for_each(|_| operation());
        let took = Duration::from_millis(clock.monotonic_ms()).as_secs_f64() * 1e6 / f64::from(times);
        println!("{what}: {took:.1} us");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    each_us("confirm", 10_000, &|| runtime.block_on(journal.confirm("r", fence)).unwrap());
    each_us("cancel_requested", 10_000, &|| {
        runtime.block_on(journal.cancel_requested("r")).unwrap();
    });
    each_us("list of 50", 100, &|| {
        runtime.block_on(journal.list(RunFilter { limit: 50, ..RunFilter::default() })).unwrap();
    });
}
