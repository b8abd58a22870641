//! The gates of tools on a simulated clock: rates of seconds and minutes, and circuits.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{CallGates, CircuitState, GatePass, GateRequest, NotLetIn};
use crate::drive::clock;
use crate::drive::clock::simulated;
use crate::drive::pending_model_call::{Deaths, PendingModelCall};
use crate::journal::memory::MemoryJournal;
use crate::journal::{Journal, WaitedFor};

const BEGIN_MS: i64 = 1_700_000_000_000;

/// A process with limits of the action `get`.
#[derive(Clone)]
struct Process {
    gates: Arc<CallGates>,
    deaths: Arc<Deaths>,
}

impl Process {
    fn new(journal: &Arc<dyn Journal>, limits: &Value) -> Self {
        let process = Self { gates: Arc::default(), deaths: Arc::new(Deaths::new(Arc::clone(journal))) };
        process.read(&json!({ "get": limits }));
        process
    }

    fn read(&self, action_limits: &Value) {
        let project = serde_json::from_value(json!({ "action_limits": action_limits })).unwrap();
        self.gates.read(&project, Path::new("/p"));
    }

    /// Waits for the turn of a call for at most this time, while a circuit is open.
    async fn enter(&self, circuit_patience: Duration) -> Result<GatePass, NotLetIn> {
        let wait = PendingModelCall::of(&self.deaths, "r");
        let request = GateRequest { circuit_patience, wait: Some(&wait), ..to_get() };
        let mut pass = self.gates.of(Path::new("/p"), WaitedFor::Action, "get").enter(request).await?;
        pass.sent();
        Ok(pass)
    }

    /// A call that takes some time, and fails or not.
    async fn call(&self, time: Duration, failed: bool) -> bool {
        let Ok(mut pass) = self.enter(Duration::from_secs(60)).await else { return false };
        clock::sleep(time).await;
        pass.ended(to_get(), failed);
        true
    }

    fn state(&self) -> CircuitState {
        self.gates.circuits()[0].state
    }
}

fn to_get<'a>() -> GateRequest<'a> {
    let (of, name, id) = (WaitedFor::Action, "get", "");
    let (patience, circuit_patience) = (Duration::MAX, Duration::ZERO);
    GateRequest { of, name, id, is_sent: false, tokens: 0, patience, circuit_patience, wait: None }
}

fn simulate<T>(work: impl Future<Output = T>) -> T {
    simulated::run(BEGIN_MS, work).unwrap()
}

fn memory() -> Arc<dyn Journal> {
    Arc::new(MemoryJournal::new())
}

fn since_ms() -> i64 {
    clock::wall_ms() - BEGIN_MS
}

const SHORT: Duration = Duration::from_millis(1);

#[test]
fn no_second_has_more_calls_than_a_rate_of_seconds_and_no_minute_more_than_one_of_minutes() {
    for (rate, most, in_ms) in [
        (json!({ "per_second": 5 }), 5, 1_000),
        (json!({ "per_second": 1 }), 1, 1_000),
        (json!({ "per_minute": 60 }), 60, 60_000),
    ] {
        let sent = simulate(async {
            let (journal, sent) = (memory(), Arc::<Mutex<Vec<i64>>>::default());
            let processes = [0, 1, 2].map(|_| Process::new(&journal, &json!({ "rate": rate })));
            let calls: Vec<_> = (0..90)
                .map(|number| {
                    let (process, sent) = (processes[number % 3].clone(), Arc::clone(&sent));
                    tokio::spawn(async move {
                        // Some come later, after a time without calls.
                        clock::sleep(Duration::from_secs(if number < 60 { 0 } else { 200 })).await;
                        let pass = process.enter(Duration::ZERO).await;
                        sent.lock().unwrap().push(since_ms());
                        drop(pass);
                    })
                })
                .collect();
            for call in calls {
                call.await.unwrap();
            }
            let mut sent = sent.lock().unwrap().clone();
            sent.sort_unstable();
            sent
        });
        assert_eq!(sent.len(), 90);
        let counts = sent.iter().map(|begin| sent.iter().filter(|at| (*begin..begin + in_ms).contains(at)).count());
        assert!(counts.max() <= Some(most), "{rate}: {sent:?}");
    }
}

#[test]
fn a_circuit_opens_after_so_many_failures_in_a_time_and_not_after_as_many_that_lie_apart() {
    simulate(async {
        let process = Process::new(&memory(), &json!({ "circuit": { "failures": 3, "within_ms": 10_000 } }));
        for _ in 0..6 {
            assert!(process.call(Duration::from_secs(6), true).await);
            assert_eq!(process.state(), CircuitState::Closed);
        }
        clock::sleep(Duration::from_secs(20)).await;
        for state in [CircuitState::Closed, CircuitState::Closed, CircuitState::Open] {
            assert!(process.call(SHORT, true).await);
            assert_eq!(process.state(), state);
        }
        // None of them outlasts it.
        let met = process.enter(Duration::from_secs(29)).await;
        assert!(matches!(met, Err(NotLetIn::Open { left, .. }) if left > Duration::from_secs(29)), "at once");
        clock::sleep(Duration::from_secs(30)).await;
        assert_eq!(process.state(), CircuitState::HalfOpen);
    });
}

#[test]
fn one_call_tries_an_open_circuit_and_the_others_wait_for_it() {
    simulate(async {
        let process = Process::new(&memory(), &json!({ "circuit": { "failures": 1, "open_ms": 10_000 } }));
        process.call(SHORT, true).await;
        let ended = Arc::<Mutex<Vec<i64>>>::default();
        let call = |failed: bool, after_ms: u64| {
            let (process, ended) = (process.clone(), Arc::clone(&ended));
            tokio::spawn(async move {
                clock::sleep(Duration::from_millis(after_ms)).await;
                let was_made = process.call(Duration::from_secs(2), failed).await;
                ended.lock().unwrap().push(since_ms());
                was_made
            })
        };
        // The first one fails after 12 s: the next one is tried at 22 s, and the rest follows it at 24 s.
        let calls: Vec<_> = (0..5).map(|number| call(number == 0, number)).collect();
        for call in calls {
            assert!(call.await.unwrap());
        }
        let mut ended = ended.lock().unwrap().clone();
        ended.sort_unstable();
        let about = |ms: i64, at: i64| (at..at + 100).contains(&ms);
        assert!(about(ended[0], 12_000) && about(ended[1], 24_000), "{ended:?}");
        assert!(ended[2..].iter().all(|ms| about(*ms, 26_000)), "{ended:?}");
        assert_eq!(process.state(), CircuitState::Closed);
    });
}

#[test]
fn a_call_that_is_given_up_while_it_tries_a_circuit_lets_the_next_one_try_it() {
    simulate(async {
        let process = Process::new(&memory(), &json!({ "circuit": { "failures": 1, "open_ms": 1_000 } }));
        process.call(SHORT, true).await;
        clock::sleep(Duration::from_secs(1)).await;
        let trial = process.enter(Duration::ZERO).await;
        assert!(trial.is_ok());
        assert!(matches!(process.enter(Duration::ZERO).await, Err(NotLetIn::Open { .. })), "one at a time");
        drop(trial);
        assert!(process.call(SHORT, false).await);
        assert_eq!(process.state(), CircuitState::Closed);
    });
}

#[test]
fn limits_that_are_removed_let_in_what_waits() {
    simulate(async {
        let limits = json!({ "rate": { "per_minute": 1 }, "circuit": { "failures": 1, "open_ms": 60_000 } });
        let process = Process::new(&memory(), &limits);
        process.call(SHORT, true).await;
        let waits = {
            let process = process.clone();
            tokio::spawn(async move { process.call(SHORT, false).await })
        };
        clock::sleep(Duration::from_secs(5)).await;
        assert_eq!(process.gates.queues()[0].requests, 1);
        process.read(&json!({}));
        assert!(waits.await.unwrap());
        assert!(since_ms() < 6_000 && process.gates.circuits().is_empty());
    });
}
