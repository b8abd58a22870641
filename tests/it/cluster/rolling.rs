//! D9: each worker is replaced by a new one while clients go on. The balancer before them asks each worker whether it is
//! ready, and passes a request on to the next worker only if the first one did not take it.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::cluster::harness::database::Store;
use crate::cluster::harness::worker::{Worker, ask};
use crate::cluster::harness::{Cluster, Play, start_body};
use crate::serve::client::Reply;

/// Sends a request as a balancer does; the answer that the client gets, if any.
fn balanced(workers: &Mutex<Vec<SocketAddr>>, turn: usize, number: usize) -> Option<Reply> {
    let known = workers.lock().unwrap().clone();
    let (key, body) = (format!("job {number}"), start_body(number).to_string());
    let mut reply = None;
    for at in 0..known.len() {
        let worker = known[(turn + at) % known.len()];
        // Who can't be reached was not given the request.
        if std::net::TcpStream::connect(worker).is_err() {
            continue;
        }
        reply = ask(worker, "POST", "/agents/execute", &[("idempotency-key", &key)], body.as_bytes());
        // A worker that leaves says that it started nothing.
        if reply.as_ref().is_none_or(|reply| reply.status != 503 || reply.code() != "draining") {
            return reply;
        }
    }
    reply
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn play(name: &str, play: Play, clients: usize, replacements: usize) {
    let Some(store) = Store::shared(name) else { return };
    let mut cluster = Cluster::start(play, store.clone(), &store.url, 8);
    let addresses = Mutex::new(cluster.workers.iter().map(|worker| worker.address).collect::<Vec<_>>());
    let (over, next, failed) = (AtomicBool::new(false), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let mut workers: Vec<Worker> = cluster.workers.drain(..).collect();
    std::thread::scope(|scope| {
        // The clients end also when an assertion fails: a scope waits for its threads.
        let stop = StopOnDrop(&over);
        for client in 0..clients {
            let (cluster, addresses, over, next, failed) = (&cluster, &addresses, &over, &next, &failed);
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    match balanced(addresses, client + number, number) {
                        Some(reply) if reply.status == 200 || reply.status == 202 => {
                            cluster.note(number, &reply.json())
                        }
                        other => failed.lock().unwrap().push(format!("request {number}: {other:?}")),
                    }
                }
            });
        }
        for replaced in 0..replacements {
            cluster.wait_for_calls(play.calls * clients);
            let new = cluster.new_worker();
            while new.get("/readyz").is_none_or(|reply| reply.status != 200) {
                crate::common::wait_poll_interval();
            }
            let at = replaced % workers.len();
            addresses.lock().unwrap()[at] = new.address;
            assert_eq!(std::mem::replace(&mut workers[at], new).leave(), Some(0));
        }
        drop(stop);
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} requests failed: {failed:#?}", failed.len(), next.into_inner());
    cluster.workers = workers;
    let report = cluster.judge(name).sound(0);
    assert_eq!((report.completed, report.again), (report.runs, 0), "who leaves in order ends its steps");
}

#[test]
fn no_request_fails_while_all_workers_are_replaced() {
    let short = Play { workers: 3, slots: 16, runs: 0, calls: 3, model_ms: 20, tool_ms: 10, has_once: true };
    play("no_request_fails_while_all_workers_are_replaced", short, 4, 3);
}

#[test]
#[ignore = "nightly: 60 replacements"]
fn no_request_fails_in_sixty_replacements() {
    let long = Play { workers: 3, slots: 16, runs: 0, calls: 6, model_ms: 20, tool_ms: 10, has_once: true };
    play("no_request_fails_in_sixty_replacements", long, 8, 60);
}
