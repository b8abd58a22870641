//! Lines of runs over three workers, of which one dies again and again: no two runs of one key are under way at once, and each
//! of them ends.

use serde_json::json;

use crate::cluster::harness::database::Store;
use crate::cluster::harness::worker::{Signals, Worker};
use crate::common::Place;
use crate::common::server::{Answer, Request, Server};
use crate::serve::client::scripted;

const RUNS: usize = 18;
const CUSTOMERS: [&str; 3] = ["ada", "bob", "eve"];

/// A workflow that says when it begins with a customer, and when it ends.
fn place(tools: &Server) -> Place {
    let place = Place::new();
    let more = json!({ "http_method": "POST", "idempotent": true,
        "parameters": { "type": "object", "properties": { "what": {}, "customer": {} } } });
    place.json("actions/note.json", &json!([crate::common::web("note", &format!("{}/note", tools.url()), more)]));
    let note = |what: &str| json!({ "type": "note", "properties": { "what": what, "customer": "@input.customer" } });
    let definition = json!({ "concurrency": { "key": "@input.customer" }, "actions": [note("begins"), note("works"), note("ends")] });
    let input =
        json!({ "type": "object", "required": ["customer"], "properties": { "customer": { "type": "string" } } });
    place.json(
        "workflows/pay.json",
        &json!({ "name": "pay", "description": "Pays.", "definition": definition, "input": input }),
    );
    scripted(&place, &[], json!({}));
    place
}

/// The run of a call, which its idempotency key begins with.
fn run_of(request: &Request) -> String {
    let key = request.header("idempotency-key").unwrap();
    key.rsplit_once('-').map_or(key, |(run, _)| run).to_owned()
}

#[test]
fn of_one_key_one_run_is_under_way_whatever_worker_dies() {
    let Some(store) = Store::shared("of_one_key_one_run_is_under_way") else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({})));
    let place = place(&tools);
    let mut workers: Vec<Worker> = (0..3).map(|_| Worker::start(&place, &store.url, 4)).collect();
    for number in 0..RUNS {
        let body = json!({ "input": { "customer": CUSTOMERS[number % 3] } }).to_string();
        let worker = &workers[number % workers.len()];
        let started = worker.ask("POST", "/workflows/pay/execute?async=true", &[], body.as_bytes()).unwrap();
        assert!([200, 202].contains(&started.status), "{started:?}");
        if number % 6 == 5 {
            // It has runs that are under way, and some that wait.
            workers[0].signal(Signals::Kill);
            workers.remove(0);
            workers.push(Worker::start(&place, &store.url, 4));
        }
    }
    while store.tell("SELECT count(*) FROM @.runs WHERE status = 'completed'") != RUNS.to_string() {
        crate::common::wait_poll_interval();
    }
    for customer in CUSTOMERS {
        let calls = tools.requests();
        let of = calls.iter().filter(|request| request.json()["customer"] == customer);
        let mut order: Vec<String> = Vec::new();
        for request in of {
            let run = run_of(request);
            if order.last() != Some(&run) {
                assert!(!order.contains(&run), "two runs of {customer} were under way at once: {order:?}, {run}");
                order.push(run);
            }
        }
        assert_eq!(order.len(), RUNS / 3, "{customer}: {order:?}");
    }
    assert_eq!(store.tell("SELECT count(*) FROM @.runs r WHERE r.place IS NULL"), "0");
}
