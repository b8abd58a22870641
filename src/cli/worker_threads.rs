//! Does the same work on many items, on several cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More threads do not help: files are short.
const MAX_THREADS: usize = 8;
/// Fewer items are done sooner than a thread is started.
const MIN_PARALLEL_ITEMS: usize = 8;
/// The stack of a thread, in bytes: documents nest to a limited depth.
const STACK_BYTES: usize = 8 << 20;

/// The results of `work` for all items, in their order.
pub fn each<T: Send, R: Send>(things: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let jobs = if things.len() < MIN_PARALLEL_ITEMS { 1 } else { cores() };
    each_of(jobs, things, work)
}

/// The cores that are used unless somebody says otherwise.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// The same with at most `jobs` threads.
pub fn each_of<T: Send, R: Send>(jobs: usize, things: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let jobs = jobs.min(things.len());
    if jobs <= 1 {
        return things.into_iter().map(work).collect();
    }
    let slots: Vec<Mutex<JobSlot<T, R>>> =
        things.into_iter().map(|thing| Mutex::new(JobSlot::Waiting(thing))).collect();
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let JobSlot::Waiting(thing) = swap(slot, JobSlot::Taken) {
                swap(slot, JobSlot::Done(work(thing)));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs {
            // If a thread can't be started, the others do its part. A panic in one ends the scope.
            let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        }
        run();
    });
    slots.into_iter().filter_map(|slot| swap(&slot, JobSlot::Taken).done()).collect()
}

enum JobSlot<T, R> {
    Waiting(T),
    Taken,
    Done(R),
}

impl<T, R> JobSlot<T, R> {
    fn done(self) -> Option<R> {
        match self {
            Self::Done(result) => Some(result),
            Self::Waiting(_) | Self::Taken => None,
        }
    }
}

fn swap<T, R>(slot: &Mutex<JobSlot<T, R>>, with: JobSlot<T, R>) -> JobSlot<T, R> {
    // A panic can't leave a slot half written: values are moved as a whole.
    let mut slot = slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::mem::replace(&mut *slot, with)
}
