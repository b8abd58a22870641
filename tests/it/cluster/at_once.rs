//! The same requests at all workers at once: one of them does it, and the others report what it did.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cluster::harness::database::Store;
use crate::cluster::harness::worker::Worker;
use crate::common::{Place, complete, think};
use crate::serve::client;

/// The requests that are sent at once.
const AT_ONCE: usize = 50;

/// A folder whose loop asks a human, and then ends.
fn asking() -> Place {
    client::place(json!({}), &[think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))])
}

/// The statuses and bodies of as many requests, spread over all workers.
fn at_once(
    workers: &[Worker],
    requests: usize,
    ask: impl Fn(&Worker, usize) -> (u16, Value) + Sync,
) -> Vec<(u16, Value)> {
    std::thread::scope(|scope| {
        let ask = &ask;
        let asked = (0..requests).map(|number| scope.spawn(move || ask(&workers[number % workers.len()], number)));
        asked.collect::<Vec<_>>().into_iter().map(|asked| asked.join().unwrap()).collect()
    })
}

fn post(worker: &Worker, target: &str, key: &str, body: &Value) -> (u16, Value) {
    let headers = [("idempotency-key", key)];
    let reply = worker.ask("POST", target, &headers, body.to_string().as_bytes()).expect("an answer");
    (reply.status, reply.json())
}

fn cancel(worker: &Worker, run: &str) -> (u16, Value) {
    let reply = worker.ask("DELETE", &format!("/agents/{run}"), &[], b"").expect("an answer");
    (reply.status, reply.json())
}

/// D7: starts of one id, decisions about one pause, and cancels, on all workers at once.
fn play(test: &str, workers: usize, rounds: usize) {
    let Some(store) = Store::shared(test) else { return };
    let place = asking();
    let workers: Vec<Worker> = (0..workers).map(|_| Worker::start(&place, &store.url, 16)).collect();
    for round in 0..rounds {
        let key = format!("round {round}");
        let started =
            at_once(&workers, AT_ONCE, |worker, _| post(worker, "/agents/execute", &key, &json!({ "loop": "test" })));
        let ids: BTreeSet<&str> = started.iter().map(|(_, run)| run["agent_run_id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 1, "{started:?}");
        assert!(started.iter().all(|(status, run)| *status == 200 && run["status"] == "paused"), "{started:?}");
        let run = ids.into_iter().next().unwrap();

        // A third of the rounds decides, a third cancels, a third does both.
        let (decides, cancels) = (round % 3 != 1, round % 3 != 0);
        let replies = at_once(&workers, 12, |worker, number| {
            if cancels && (!decides || number % 2 == 0) {
                return cancel(worker, run);
            }
            post(
                worker,
                &format!("/agents/{run}/resume"),
                "none",
                &json!({ "answer": format!("by {number}"), "pause": 1 }),
            )
        });
        for (status, reply) in &replies {
            assert!([200, 202, 409].contains(status), "{reply}");
        }
        let settled = loop {
            let state = workers[round % workers.len()].get(&format!("/agents/{run}/trace")).unwrap().json();
            if state["status"] != "running" && state["status"] != "paused" {
                break state;
            }
        };
        let decisions = settled["trace"].to_string().matches("\"by ").count();
        let accepted =
            replies.iter().filter(|(status, reply)| *status != 409 && reply["status"] == "completed").count();
        assert!(decisions <= 1 && accepted <= 1, "{decisions} decisions, {accepted} accepted: {settled} {replies:?}");
        match (decides, cancels) {
            (true, false) => assert_eq!((decisions, settled["status"].as_str()), (1, Some("completed")), "{settled}"),
            (false, _) => assert_eq!(settled["status"], "cancelled", "{settled}"),
            (true, true) => assert!(settled["status"] == "completed" || settled["status"] == "cancelled", "{settled}"),
        }
        let row = store.tell(&format!("SELECT status FROM @.runs WHERE run_id = '{run}'"));
        assert_eq!(settled["status"], row.as_str());
    }
    assert_eq!(store.tell("SELECT count(*) FROM @.runs"), rounds.to_string(), "one run for each id");
    let gaps = "SELECT run FROM @.events GROUP BY run HAVING count(*) <> max(seq) + 1";
    assert_eq!(store.tell(gaps), "", "no event is missing");
}

#[test]
fn starts_decisions_and_cancels_everywhere_at_once_make_one_run_and_one_decision() {
    play("starts_decisions_and_cancels_everywhere_at_once", 3, 3);
}

#[test]
#[ignore = "nightly: 8 workers, 60 rounds"]
fn sixty_rounds_of_requests_at_eight_workers_at_once() {
    play("sixty_rounds_of_requests_at_eight_workers_at_once", 8, 60);
}
