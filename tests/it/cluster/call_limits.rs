//! How many calls of an action are made at once, over three workers of which one dies again and again: no more than the limit, and what a
//! dead worker had under way keeps nobody waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::cluster::harness::database::Store;
use crate::cluster::harness::worker::{Signals, Worker};
use crate::common::server::{Answer, Server};
use crate::common::{Place, web};

const RUNS: usize = 24;
const KILLS: usize = 3;
const AT_ONCE: usize = 2;

fn place(tool: &Server) -> Place {
    let place = Place::new();
    let parameters = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    place.json(
        "actions/all.json",
        &json!([web("get", &format!("{}/{{{{n}}}}", tool.url()), json!({ "parameters": parameters }))]),
    );
    let step = json!({ "id": "get", "type": "get", "properties": { "n": "@input.n" } });
    place.json("test.json", &json!({ "name": "test", "definition": { "actions": [step] } }));
    let limits = json!({ "get": { "max_concurrency": AT_ONCE } });
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true }, "action_limits": limits }));
    place
}

/// What is under way at the server: now, and at most.
#[derive(Default)]
struct UnderWay {
    now: AtomicUsize,
    most: AtomicUsize,
}

fn tool(under_way: &Arc<UnderWay>) -> Server {
    let under_way = Arc::clone(under_way);
    Server::with(move |_, _| {
        let now = under_way.now.fetch_add(1, Ordering::SeqCst) + 1;
        under_way.most.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(60));
        under_way.now.fetch_sub(1, Ordering::SeqCst);
        Answer::json("{\"ok\":true}")
    })
}

/// Starts the runs, and kills a worker after some of them, if any is killed. All complete.
fn judge(store: &str, kills: usize) {
    let under_way = Arc::<UnderWay>::default();
    let tool = tool(&under_way);
    let place = place(&tool);
    let mut workers: Vec<Worker> = (0..3).map(|_| Worker::start(&place, store, 16)).collect();
    for number in 0..RUNS {
        let body = json!({ "loop": "test", "input": { "n": number } }).to_string();
        let started = workers[2].ask("POST", "/agents/execute?async=true", &[], body.as_bytes()).unwrap();
        assert!([200, 202].contains(&started.status), "{started:?}");
        if kills > 0 && number % (RUNS / kills) == RUNS / kills - 1 {
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
    let most = under_way.most.load(Ordering::SeqCst);
    // What a killed worker had sent may be at the server still when the store knows that it died.
    assert!(most <= AT_ONCE * (kills + 1), "{most} at once");
    assert!(kills > 0 || most == AT_ONCE, "{most} at once");
}

#[test]
fn workers_of_a_database_make_no_more_calls_at_once_than_an_action_allows_whatever_worker_dies() {
    let Some(store) = Store::shared("workers_make_no_more_calls_at_once") else { return };
    judge(&store.url, KILLS);
}

#[test]
fn workers_of_a_database_make_as_many_calls_at_once_as_an_action_allows() {
    let Some(store) = Store::shared("workers_make_as_many_calls_at_once") else { return };
    judge(&store.url, 0);
}

#[test]
fn processes_of_a_file_make_no_more_calls_at_once_than_an_action_allows_whatever_process_dies() {
    judge("sqlite:runs.db", KILLS);
}

#[test]
fn processes_of_a_file_make_as_many_calls_at_once_as_an_action_allows() {
    judge("sqlite:runs.db", 0);
}
