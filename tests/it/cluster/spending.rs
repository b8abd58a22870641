//! Spending limits over three workers of which one dies again and again: what models used is over the limit by no more than the
//! requests of workers that died, and nothing stays reserved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::cluster::harness::database::Store;
use crate::cluster::harness::worker::{Signals, Worker};
use crate::common::server::{Answer, Server};
use crate::common::{Place, complete};

const RUNS: usize = 64;
/// What a request uses; a run makes one.
const TOKENS: usize = 300;
/// What the runs may use together: enough for a half of them.
const LIMIT: usize = 32 * TOKENS;
/// How many runs a worker drives at once: no more requests die with it.
const SLOTS: usize = 6;
const KILLS: usize = 8;

/// A model that counts its requests.
fn model(asked: &Arc<AtomicUsize>) -> Server {
    let asked = Arc::clone(asked);
    let said = complete(json!("done")).to_string();
    let message = json!({ "message": { "role": "assistant", "content": said }, "finish_reason": "stop" });
    let usage = json!({ "prompt_tokens": TOKENS - 20, "completion_tokens": 20 });
    let answer = json!({ "choices": [message], "usage": usage });
    Server::with(move |_, _| {
        asked.fetch_add(1, Ordering::SeqCst);
        Answer::json(&answer)
    })
}

fn place(model: &Server) -> Place {
    let place = Place::new();
    // Each request reserves more than it uses.
    let properties =
        json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main", "max_tokens": 400 });
    place.json("test.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let main = json!({ "provider": "openai", "base_url": model.url(), "api_key": "env:PATH" });
    let limit = json!({ "per": "loop", "every": { "hours": 8784 }, "tokens": LIMIT });
    place.json("loopctl.json", &json!({ "models": { "main": main }, "limits": [limit] }));
    place
}

/// Starts the runs, and kills a worker after some of them, again and again. Returns when all have ended: their terminations.
fn ended(place: &Place, store: &str) -> Vec<Value> {
    let mut workers: Vec<Worker> = (0..3).map(|_| Worker::start(place, store, SLOTS)).collect();
    for number in 0..RUNS {
        let body = json!({ "loop": "test", "input": { "n": number } }).to_string();
        let started = workers[2].ask("POST", "/agents/execute?async=true", &[], body.as_bytes()).unwrap();
        assert!([200, 202].contains(&started.status), "{started:?}");
        if number % (RUNS / KILLS) == 0 {
            workers[0].signal(Signals::Kill);
            workers[0] = Worker::start(place, store, SLOTS);
        }
    }
    loop {
        let listed = workers[1].get("/agents?limit=100").unwrap().json();
        let runs = listed["agents"].as_array().unwrap();
        if runs.iter().filter(|run| run["status"] == "completed" || run["status"] == "failed").count() == RUNS {
            return runs.iter().map(|run| run["termination"].clone()).collect();
        }
        crate::common::wait_poll_interval();
    }
}

/// Judges what came of the runs: `held` is what the account holds, settled and reserved.
fn judge(ended: &[Value], asked: usize, held: (usize, usize)) {
    let of = |word: &str| ended.iter().filter(|termination| **termination == word).count();
    let (completed, refused) = (of("complete"), of("spending_limit"));
    assert_eq!(completed + refused, RUNS, "{ended:?}");
    // Requests of workers that died were asked and not counted.
    let most = LIMIT / TOKENS + KILLS * SLOTS;
    assert!(refused > 0 && asked <= most, "{asked} requests, {completed} runs completed, {refused} were refused");
    let (settled, reserved) = held;
    assert!(settled <= LIMIT && settled >= completed * TOKENS && reserved == 0, "{settled} {reserved} {completed}");
}

#[test]
fn workers_of_a_database_hold_a_limit_together_whatever_worker_dies() {
    let Some(store) = Store::shared("workers_hold_a_limit_together") else { return };
    let asked = Arc::new(AtomicUsize::new(0));
    let model = model(&asked);
    let place = place(&model);
    let ended = ended(&place, &store.url);
    let number = |sql: &str| store.tell(sql).parse().unwrap();
    // What nobody gave back yet is of leases that are over.
    let alive = "SELECT coalesce(sum(v.tokens), 0) FROM @.reservations v JOIN @.runs r ON r.run_id = v.run_id AND r.fence = v.fence
      WHERE r.driver IS NOT NULL";
    judge(&ended, asked.load(Ordering::SeqCst), (number("SELECT settled_tokens FROM @.ledger"), number(alive)));
}

#[test]
fn processes_of_a_file_hold_a_limit_together_whatever_process_dies() {
    let asked = Arc::new(AtomicUsize::new(0));
    let model = model(&asked);
    let place = place(&model);
    let ended = ended(&place, "sqlite:runs.db");
    let store = rusqlite::Connection::open(place.path().join("runs.db")).unwrap();
    let number = |sql: &str| -> usize {
        let number: i64 = store.query_row(sql, (), |row| row.get(0)).unwrap();
        usize::try_from(number).unwrap()
    };
    let alive =
        "SELECT coalesce(sum(v.tokens), 0) FROM reservations v JOIN runs r ON r.run_id = v.run_id AND r.fence = v.fence
      WHERE r.driver IS NOT NULL";
    judge(&ended, asked.load(Ordering::SeqCst), (number("SELECT settled_tokens FROM ledger"), number(alive)));
}
