//! Copies of runs in a store, to look at.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think};
use crate::harness::{self, Restate, post};
use crate::{acting, ask, client, decided, ended, world};

const STORE: [&str; 2] = ["--store", "sqlite:runs.db"];

fn store(place: &Place) -> Connection {
    Connection::open(place.path().join("runs.db")).unwrap()
}

/// The status of the copy, and how many events it has; the events have no gaps.
fn copy(place: &Place, run_id: &str) -> (String, usize) {
    let store = store(place);
    let found = store.query_row("SELECT status, id FROM runs WHERE run_id = ?1", [run_id], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    });
    let Ok((status, run)) = found else { return ("none".to_owned(), 0) };
    let mut events = store.prepare("SELECT seq FROM events WHERE run = ?1 ORDER BY seq").unwrap();
    let seqs: Vec<i64> = events.query_map([run], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(seqs.iter().zip(0..).all(|(seq, at)| *seq == at), "{run_id}: {seqs:?}");
    (status, seqs.len())
}

/// Waits until the copy has this status: it is made beside the run.
fn copied(place: &Place, run_id: &str, status: &str) {
    for _ in 0..1_200 {
        if copy(place, run_id).0 == status {
            return;
        }
        harness::pause();
    }
    panic!("the copy of {run_id} is {:?}", copy(place, run_id));
}

#[test]
fn a_run_is_traced_and_listed_in_a_store_and_decided_in_restate_only() {
    let Some(program) = harness::program() else { return };
    let replies = [think("again", json!({ "at": 0 })), ask(), think("once", json!({ "at": 1 })), complete(json!("ok"))];
    let (place, _tools, calls) = world(&replies, Duration::ZERO);
    let restate = Restate::with_options(program, &place, &STORE);
    restate.begin("r", &json!({ "n": 7 }));
    assert_eq!(restate.settled("r")["status"], "paused");
    copied(&place, "r", "paused");
    let trace = place.call(&["trace", "r", STORE[0], STORE[1]]);
    assert!(trace.stdout.contains("Go on?"), "{}{}", trace.stdout, trace.stderr);
    // The hint is one that works.
    assert!(trace.stderr.contains("INGRESS/loopctl/r/answer") && !trace.stderr.contains("resume"), "{}", trace.stderr);
    for refused in [vec!["resume", "r", "--answer", "Yes."], vec!["cancel", "r"]] {
        let refused = place.call(&[&refused[..], &STORE].concat());
        assert!(refused.stderr.contains("a copy of a run that a Restate server drives"), "{}", refused.stderr);
    }
    assert_eq!(restate.call("r", "answer", &json!({ "answer": "Yes." })).status, 200);
    assert_eq!(ended(&restate, "r")["status"], "completed");
    copied(&place, "r", "completed");
    let list = place.call(&["runs", STORE[0], STORE[1]]);
    assert!(list.stdout.contains("completed"), "{}{}", list.stdout, list.stderr);
    let trace = place.call(&["trace", "r", STORE[0], STORE[1]]);
    assert!(trace.stdout.contains("once") && trace.stdout.contains("Yes."), "{}", trace.stdout);
    let once = |path: &str| (path.to_owned(), 1);
    assert_eq!(*calls.lock().unwrap(), BTreeMap::from([once("/again/7/0"), once("/once/7/1")]));
}

#[test]
fn the_copies_are_complete_after_kills_and_handovers() {
    let Some(program) = harness::program() else { return };
    let call = |at: usize| think(if at.is_multiple_of(2) { "again" } else { "once" }, json!({ "at": at }));
    let replies: Vec<Value> = (0..8).map(call).chain([complete(json!("ok"))]).collect();
    let (place, tools, _) = world(&replies, Duration::from_millis(20));
    let mut restate = Restate::with_options(program, &place, &[&STORE[..], &["--max-steps", "5"]].concat());
    let ids: Vec<String> = (0..4).map(|n| format!("run-{n}")).collect();
    ids.iter().zip(0..).for_each(|(id, n)| restate.begin(id, &json!({ "n": n })));
    for calls in [3, 11, 19] {
        while tools.requests().len() < calls {
            // A kill may have left all of them at a call of unknown outcome.
            for id in &ids {
                decided(&restate, id);
            }
            harness::pause();
        }
        restate.kill_service();
        restate.start_service(&place);
    }
    for id in &ids {
        let mut status = restate.settled(id);
        while status["status"] == "paused" {
            decided(&restate, id);
            status = restate.settled(id);
        }
        assert_eq!(status["status"], "completed", "{status}");
        copied(&place, id, "completed");
        // The trace is the fold of the copied events: it refuses any that do not fit.
        let trace = place.call(&["trace", id, STORE[0], STORE[1]]);
        assert!(trace.code == 0 && trace.stdout.contains("ok"), "{}{}", trace.stdout, trace.stderr);
        // A start, a resumption at least, and a reply and an outcome for each call.
        assert!(copy(&place, id).1 >= 2 * 8 + 3, "{:?}", copy(&place, id));
    }
}

#[test]
fn a_store_that_is_away_delays_no_run_and_gets_its_copy_later() {
    let Some(program) = harness::program() else { return };
    let (place, _tools, _) = world(&[think("again", json!({ "at": 0 })), complete(json!("ok"))], Duration::ZERO);
    let mut restate = Restate::with_options(program, &place, &STORE);
    let locked = store(&place);
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    restate.begin("r", &json!({ "n": 1 }));
    assert_eq!(ended(&restate, "r")["status"], "completed");
    assert_eq!(copy(&place, "r").0, "none");
    // What is left to copy is in Restate: this process is not needed for it.
    restate.kill_service();
    locked.execute_batch("ROLLBACK").unwrap();
    restate.start_service(&place);
    copied(&place, "r", "completed");
}

#[test]
fn a_store_with_another_run_of_the_id_stops_no_run() {
    let Some(program) = harness::program() else { return };
    let (place, _tools, _) = world(&[think("again", json!({ "at": 0 })), complete(json!("ok"))], Duration::ZERO);
    let here = place.call(&["run", "loop.json", "--input", "n=1", "--run-id", "r", STORE[0], STORE[1]]);
    assert_eq!(here.code, 0, "{}", here.stderr);
    let before = copy(&place, "r");
    let restate = Restate::with_options(program, &place, &STORE);
    restate.begin("r", &json!({ "n": 1 }));
    assert_eq!(ended(&restate, "r")["status"], "completed");
    assert_eq!(copy(&place, "r"), before);
}

#[test]
fn a_server_on_the_store_of_the_copies_drives_its_own_runs_only() {
    let Some(program) = harness::program() else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, request| {
        let answer = Answer::json(&json!({ "done": true }));
        if request.path.starts_with("/again/1/") { answer.behind(&held) } else { answer }
    });
    let place = Place::new();
    acting(&place, &tools, json!({}));
    client::scripted(&place, &[think("again", json!({ "at": 0 })), complete(json!("ok"))], json!({}));
    let mut restate = Restate::with_options(program, &place, &STORE);
    restate.begin("r", &json!({ "n": 1 }));
    tools.wait_for(1);
    copied(&place, "r", "cancelled");
    let list = place.call(&["runs", STORE[0], STORE[1]]);
    assert!(list.stdout.contains("under way in Restate"), "{}{}", list.stdout, list.stderr);
    restate.kill_service();

    let mut server = place.start(&["serve", ".", "--listen", "127.0.0.1:0", STORE[0], STORE[1]], &[]);
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("http://").parse().unwrap();
    // The server takes up what is in its queue before it begins a run.
    for n in [2, 3] {
        let own = post(address, "/agents/execute", &json!({ "loop": "test", "input": { "n": n } })).unwrap();
        assert_eq!(own.json()["status"], "completed", "{own:?}");
    }
    let resumed = post(address, "/agents/r/resume", &json!({ "answer": "Yes." })).unwrap();
    assert_eq!(resumed.status, 409, "{resumed:?}");
    server.kill().unwrap();
    server.wait().unwrap();
    let of_run = tools.requests().iter().filter(|request| request.path.starts_with("/again/1/")).count();
    assert_eq!(of_run, 1, "the server drove the run");

    gate.open();
    restate.start_service(&place);
    assert_eq!(ended(&restate, "r")["status"], "completed");
    copied(&place, "r", "completed");
}

/// The first event of a copy.
fn first_event(place: &Place, run_id: &str) -> String {
    let first = "SELECT event FROM events WHERE seq = 0 AND run = (SELECT id FROM runs WHERE run_id = ?1)";
    store(place).query_row(first, [run_id], |row| row.get(0)).unwrap()
}

#[test]
fn runs_of_a_session_share_its_memory_also_after_a_handover_and_a_kill() {
    let Some(program) = harness::program() else { return };
    let kept = |key: &str| think("__store_memory__", json!({ "key": key, "value": format!("value-of-{key}") }));
    let replies = [kept("one"), think("again", json!({ "at": 0 })), kept("two"), complete(json!("ok"))];
    let (place, tools, _) = world(&replies, Duration::ZERO);
    let mut restate = Restate::with_options(program, &place, &[&STORE[..], &["--max-steps", "3"]].concat());
    let order = |session: &str| json!({ "loop": "test", "input": { "n": 1 }, "session": session });
    for (run_id, session, knows) in [("a", "ada", false), ("b", "ada", true), ("c", "bob", false), ("d", "ada", true)] {
        let ended = restate.call(run_id, "run", &order(session));
        assert_eq!(ended.status, 200, "{ended:?}");
        assert_eq!((&ended.json()["status"], &ended.json()["session"]), (&json!("completed"), &json!(session)));
        copied(&place, run_id, "completed");
        let first = first_event(&place, run_id);
        assert_eq!(first.matches("value-of-").count(), if knows { 2 } else { 0 }, "{first}");
        restate.kill_service();
        restate.start_service(&place);
    }
    let store = store(&place);
    let memories: i64 = store.query_row("SELECT count(*) FROM session_memory", [], |row| row.get(0)).unwrap();
    assert_eq!(memories, 0, "the store has sessions of its own");
    let refused = restate.call("e", "run", &order("not a session"));
    assert!(refused.status == 422 && refused.json()["message"].to_string().contains("128 letters"), "{refused:?}");
    drop(tools);
}
