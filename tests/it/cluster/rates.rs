//! The rate of a model over three workers of which one dies again and again: together they send no more than the rate, and what a dead
//! worker had taken keeps nobody waiting.

#![expect(clippy::disallowed_methods, reason = "it is measured that no minute has more requests than the rate")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::cluster::harness::database::Store;
use crate::cluster::harness::worker::{Signals, Worker};
use crate::common::server::{Answer, Server};
use crate::common::{Place, complete};

const RUNS: usize = 48;
const KILLS: usize = 4;
/// Requests in a minute: ten in a second.
const RATE: u32 = 600;

fn place(model: &Server) -> Place {
    let place = Place::new();
    let properties =
        json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main", "max_tokens": 400 });
    place.json("test.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let main = json!({ "provider": "openai", "base_url": model.url(), "rate": { "requests_per_minute": RATE } });
    place.json("loopctl.json", &json!({ "models": { "main": main } }));
    place
}

/// Starts the runs, and kills a worker after some of them. All complete, and no sooner than the rate allows.
fn judge(store: &str) {
    let sent = Arc::<Mutex<Vec<Instant>>>::default();
    let known = Arc::clone(&sent);
    let said = complete(json!("done")).to_string();
    let model = Server::with(move |_, _| {
        known.lock().unwrap().push(Instant::now());
        Answer::openai(&said)
    });
    let place = place(&model);
    let mut workers: Vec<Worker> = (0..3).map(|_| Worker::start(&place, store, 16)).collect();
    for number in 0..RUNS {
        let body = json!({ "loop": "test", "input": { "n": number } }).to_string();
        let started = workers[2].ask("POST", "/agents/execute?async=true", &[], body.as_bytes()).unwrap();
        assert!([200, 202].contains(&started.status), "{started:?}");
        if number % (RUNS / KILLS) == RUNS / KILLS - 1 {
            workers[0].signal(Signals::Kill);
            workers[0] = Worker::start(&place, store, 16);
        }
    }
    loop {
        let listed = workers[1].get("/agents?limit=100").unwrap().json();
        let runs = listed["agents"].as_array().unwrap();
        assert!(runs.iter().all(|run| run["status"] != "failed"), "{listed:#}");
        if runs.iter().filter(|run| run["status"] == "completed").count() == RUNS {
            break;
        }
        crate::common::wait_poll_interval();
    }
    let sent = sent.lock().unwrap();
    assert!((RUNS..=RUNS + KILLS * 16).contains(&sent.len()), "{}", sent.len());
    // Without the ten that may be sent at once, as many tenths of a second.
    let took = sent.last().unwrap().duration_since(sent[0]);
    let least = Duration::from_secs(60) * u32::try_from(sent.len() - 11).unwrap() / RATE;
    assert!(took >= least, "{} requests in {took:?}: the rate gives them in {least:?}", sent.len());
}

#[test]
fn workers_of_a_database_keep_to_a_rate_together_whatever_worker_dies() {
    let Some(store) = Store::shared("workers_keep_to_a_rate_together") else { return };
    judge(&store.url);
}

#[test]
fn processes_of_a_file_keep_to_a_rate_together_whatever_process_dies() {
    judge("sqlite:runs.db");
}
