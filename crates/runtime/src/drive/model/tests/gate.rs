//! The gates of models, on a simulated clock: who waits for a rate is let in in turn, and the rate is used.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::project;
use crate::drive::clock;
use crate::drive::clock::simulated;
use crate::drive::gate::{CallGates, GatePass, GateRequest};
use crate::drive::pending_model_call::{Deaths, PendingModelCall};
use crate::journal::memory::MemoryJournal;
use crate::journal::{Journal, WaitedFor};
use loopctl_engine::event::Tokens;

const BEGIN_MS: i64 = 1_700_000_000_000;
const LONG: Duration = Duration::from_secs(600);

/// A process: the gates of a project that has one model.
#[derive(Clone)]
struct Process {
    gates: Arc<CallGates>,
    deaths: Arc<Deaths>,
}

impl Process {
    fn new(journal: &Arc<dyn Journal>, model: &Value) -> Self {
        let gates = Arc::new(CallGates::default());
        let process = Self { gates, deaths: Arc::new(Deaths::new(Arc::clone(journal))) };
        process.read(model);
        process
    }

    fn read(&self, model: &Value) {
        let mut main = json!({ "provider": "openai" });
        main.as_object_mut().unwrap().extend(model.as_object().unwrap().clone());
        self.gates.read(&project(&json!({ "models": { "main": main } })), Path::new("/p"));
    }

    async fn enter(&self, tokens: u64) -> GatePass {
        let wait = PendingModelCall::of(&self.deaths, "r");
        let request = GateRequest { tokens, ..to_main(&wait) };
        let Ok(mut pass) = self.gates.of(Path::new("/p"), WaitedFor::Model, "main").enter(request).await else {
            panic!("the store answers")
        };
        pass.sent();
        pass
    }

    /// A run that makes these requests one after the other; each takes some seconds. Ends with the time at which it ended.
    fn run(&self, requests: usize, tokens: u64, sent: &Arc<Mutex<Vec<i64>>>) -> JoinHandle<f64> {
        let (process, sent) = (self.clone(), Arc::clone(sent));
        tokio::spawn(async move {
            for _ in 0..requests {
                let pass = process.enter(tokens).await;
                sent.lock().unwrap().push(clock::wall_ms());
                clock::sleep(Duration::from_millis(fastrand::u64(500..3_000))).await;
                pass.settle(Tokens { input: tokens, ..Tokens::default() });
            }
            seconds()
        })
    }
}

fn to_main<'a>(wait: &'a PendingModelCall<'a>) -> GateRequest<'a> {
    let (of, name, id) = (WaitedFor::Model, "main", "m");
    GateRequest { of, name, id, is_sent: false, tokens: 0, patience: LONG, circuit_patience: LONG, wait: Some(wait) }
}

/// The time since the beginning.
fn seconds() -> f64 {
    Duration::from_millis(u64::try_from(clock::wall_ms() - BEGIN_MS).unwrap()).as_secs_f64()
}

fn simulate<T>(work: impl Future<Output = T>) -> T {
    simulated::run(BEGIN_MS, work).unwrap()
}

fn memory() -> Arc<dyn Journal> {
    Arc::new(MemoryJournal::new())
}

/// Eight loops of 30 requests each in this number of processes: when each ended, and when the requests were sent.
fn eight_loops(processes: usize, model: &Value, tokens: u64) -> (Vec<f64>, Vec<i64>) {
    simulate(async {
        let journal = memory();
        let processes: Vec<Process> = (0..processes).map(|_| Process::new(&journal, model)).collect();
        let sent = Arc::<Mutex<Vec<i64>>>::default();
        let runs: Vec<_> = (0..8).map(|number| processes[number % processes.len()].run(30, tokens, &sent)).collect();
        let mut ends = Vec::new();
        for run in runs {
            ends.push(run.await.unwrap());
        }
        let sent = sent.lock().unwrap().clone();
        (ends, sent)
    })
}

#[test]
fn eight_loops_with_one_rate_end_at_its_ideal_time_and_none_starves() {
    let requests = json!({ "rate": { "requests_per_minute": 60 } });
    let tokens = json!({ "rate": { "tokens_per_minute": 60_000 } });
    let both = json!({ "rate": { "requests_per_minute": 600, "tokens_per_minute": 60_000 }, "max_connections": 8 });
    for (processes, model) in [(1, &requests), (4, &requests), (8, &requests), (4, &tokens), (8, &both)] {
        let (ends, sent) = eight_loops(processes, model, 1_000);
        // 240 requests, one a second.
        let last = ends.iter().copied().fold(0.0, f64::max);
        let mean = ends.iter().sum::<f64>() / 8.0;
        assert!((236.0..=240.0 * 1.05).contains(&last), "{processes} {model}: {last} s");
        assert!(last <= 1.3 * mean, "{processes} {model}: the slowest ended after {last} s, the mean is {mean} s");
        let most =
            sent.iter().map(|begin| sent.iter().filter(|at| (*begin..=begin + 60_000).contains(at)).count()).max();
        assert!(most <= Some(60), "{processes} {model}: {most:?} in a minute");
    }
}

#[test]
fn no_minute_has_more_than_the_rate_where_requests_are_sent_late_or_wait_for_more_than_their_turn() {
    let bounds = [
        json!({ "rate": { "requests_per_minute": 60 } }),
        json!({ "rate": { "requests_per_minute": 60 }, "max_connections": 1 }),
        json!({ "rate": { "requests_per_minute": 60 }, "max_connections": 3 }),
    ];
    for model in bounds {
        let sent = simulate(async {
            let journal = memory();
            let processes: Vec<Process> = (0..3).map(|_| Process::new(&journal, &model)).collect();
            let sent = Arc::<Mutex<Vec<i64>>>::default();
            let runs: Vec<JoinHandle<()>> = (0..24)
                .map(|number| {
                    let (process, sent) = (processes[number % 3].clone(), Arc::clone(&sent));
                    tokio::spawn(async move {
                        for _ in 0..12 {
                            let pass = process.enter(0).await;
                            // The process is busy.
                            clock::sleep(Duration::from_millis(fastrand::u64(0..900))).await;
                            sent.lock().unwrap().push(clock::wall_ms());
                            let slow = fastrand::u64(0..20) == 0;
                            clock::sleep(Duration::from_millis(if slow { 15_000 } else { 200 })).await;
                            pass.settle(Tokens::default());
                        }
                    })
                })
                .collect();
            for run in runs {
                run.await.unwrap();
            }
            sent.lock().unwrap().clone()
        });
        let in_a_minute = |begin: &i64| sent.iter().filter(|at| (*begin..=begin + 60_000).contains(at)).count();
        let most = sent.iter().map(in_a_minute).max();
        assert!(most <= Some(60), "{model}: {most:?} in a minute");
    }
}

#[test]
fn processes_that_declare_other_rates_take_no_more_than_their_share_of_the_time() {
    let (slow, fast) =
        (json!({ "rate": { "requests_per_minute": 60 } }), json!({ "rate": { "requests_per_minute": 120 } }));
    let ended = simulate(async {
        let (journal, sent) = (memory(), Arc::default());
        let runs = [&slow, &fast].map(|model| Process::new(&journal, model).run(60, 0, &sent));
        let mut ends = Vec::new();
        for run in runs {
            ends.push(run.await.unwrap());
        }
        ends
    });
    // A minute of the one, and half a minute of the other.
    assert!(ended.iter().all(|end| (85.0..200.0).contains(end)), "{ended:?}");
}

#[test]
fn a_wait_that_ends_early_gives_its_turn_back_and_a_raised_rate_holds_for_those_that_wait() {
    simulate(async {
        let process = Process::new(&memory(), &json!({ "rate": { "requests_per_minute": 1 } }));
        drop(process.enter(0).await);
        // The first of the line has its turn in a minute, and leaves.
        let gone = tokio::time::timeout(Duration::from_secs(10), process.enter(0)).await;
        assert!(gone.is_err() && process.gates.queues().is_empty());
        drop(process.enter(0).await);
        assert!((59.0..62.0).contains(&seconds()), "{}", seconds());
        let sent = Arc::default();
        let runs = [process.run(1, 0, &sent), process.run(1, 0, &sent)];
        clock::sleep(Duration::from_secs(5)).await;
        let queues = process.gates.queues();
        assert_eq!((queues[0].name.as_str(), queues[0].requests), ("main", 2));
        assert!((59_000..62_000).contains(&(queues[0].since_ms - BEGIN_MS)), "{queues:?}");
        process.read(&json!({ "rate": { "requests_per_minute": 600 } }));
        for run in runs {
            assert!(run.await.unwrap() < 70.0, "they do not wait by the rate before");
        }
    });
}

#[test]
fn a_server_that_asks_for_a_wait_holds_back_all_that_come_and_they_are_let_in_one_by_one() {
    simulate(async {
        let journal = memory();
        let (one, other) = (Process::new(&journal, &json!({})), Process::new(&journal, &json!({})));
        let (sent, elsewhere) = (Arc::default(), Arc::default());
        let wait = PendingModelCall::of(&one.deaths, "r");
        let request = to_main(&wait);
        one.gates.of(Path::new("/p"), WaitedFor::Model, "main").hold(Duration::from_secs(30), request);
        let runs: Vec<_> = (0..5).map(|_| one.run(1, 0, &sent)).chain([other.run(1, 0, &elsewhere)]).collect();
        for run in runs {
            run.await.unwrap();
        }
        let sent = sent.lock().unwrap().clone();
        assert!(sent[0] >= BEGIN_MS + 30_000 && sent.windows(2).all(|pair| pair[1] - pair[0] >= 10), "{sent:?}");
        assert_eq!(elsewhere.lock().unwrap()[..], [BEGIN_MS], "without a rate, processes know nothing of each other");
        let rated = json!({ "rate": { "requests_per_minute": 6_000 } });
        let (one, other) = (Process::new(&journal, &rated), Process::new(&journal, &rated));
        let begin_ms = clock::wall_ms();
        one.gates.of(Path::new("/p"), WaitedFor::Model, "main").hold(Duration::from_secs(30), request);
        let sent = Arc::default();
        other.run(1, 0, &sent).await.unwrap();
        assert!(sent.lock().unwrap()[0] >= begin_ms + 30_000, "the store says it to the others");
    });
}
