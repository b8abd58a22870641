//! Reads runs at random workers while faults are made, as a list of the calls that their traces show.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::history::{Action, History, Operation};
use super::worker::ask;

/// How long it waits between two reads: they are not what is measured.
const PAUSE: Duration = Duration::from_millis(10);

/// Who reads, until it is ended.
pub struct Watch {
    over: Arc<AtomicBool>,
    reader: JoinHandle<History>,
    workers: Arc<Mutex<Vec<SocketAddr>>>,
    runs: Arc<Mutex<BTreeMap<usize, String>>>,
}

impl Watch {
    pub fn start(workers: Arc<Mutex<Vec<SocketAddr>>>, runs: Arc<Mutex<BTreeMap<usize, String>>>, seed: u64) -> Self {
        let (over, mut chance) = (Arc::new(AtomicBool::new(false)), fastrand::Rng::with_seed(seed));
        let (is_over, read_at, all) = (Arc::clone(&over), Arc::clone(&workers), Arc::clone(&runs));
        let reader = std::thread::spawn(move || {
            let history = History::default();
            while !is_over.load(Ordering::SeqCst) {
                std::thread::sleep(PAUSE);
                let worker = *chance.choice(read_at.lock().unwrap().iter()).unwrap();
                let run = chance.choice(all.lock().unwrap().iter()).map(|(number, run)| (*number, run.clone()));
                let Some((number, run)) = run else { continue };
                read(worker, number, &run, &history);
            }
            history
        });
        Self { over, reader, workers, runs }
    }

    /// Reads each run a last time.
    pub fn end(self) -> History {
        self.over.store(true, Ordering::SeqCst);
        let history = self.reader.join().unwrap();
        let workers = self.workers.lock().unwrap().clone();
        for (number, run) in self.runs.lock().unwrap().iter() {
            let is_read = workers.iter().any(|worker| read(*worker, *number, run, &history));
            assert!(is_read, "nobody shows run {number}");
        }
        history
    }
}

/// Reads a run at a worker; whether it answered.
fn read(worker: SocketAddr, number: usize, run: &str, history: &History) -> bool {
    #![allow(clippy::disallowed_methods, reason = "a history has moments")]
    let called = Instant::now();
    let Some(reply) = ask(worker, "GET", &format!("/agents/{run}/trace"), &[], b"") else { return false };
    if reply.status != 200 {
        return false;
    }
    let trace: Value = reply.json();
    let entries = trace["trace"].as_array().unwrap().iter();
    let made = entries.filter(|entry| entry["observation"]["done"].is_u64());
    let values = made.map(|entry| entry["action_input"]["at"].as_u64().unwrap()).collect();
    history.note(Operation { list: number, action: Action::Read(values), called, answered: Some(Instant::now()) });
    true
}
