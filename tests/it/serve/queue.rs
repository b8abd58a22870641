//! How many runs are driven at once, and the order of those that wait.

use std::sync::Arc;
use std::time::Duration;

use loopctl::drive::begin::Begin;
use loopctl::drive::start::Start;
use loopctl::journal::memory::MemoryJournal;
use loopctl::serve::run_store::ProgramOfRun;
use loopctl::serve::scheduler::Admission;
use serde_json::{Value, json};

use crate::common::complete;
use crate::common::server::{Answer, Gate, Server};
use crate::serve::client::{Serving, acting, place, served};

#[test]
fn runs_that_wait_are_driven_in_their_order() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = acting(&tools.url(), 1, 0);
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    for n in 0..5 {
        assert_eq!(server.execute("?async=true", json!({ "loop": "test", "input": { "n": n } })).status, 202);
    }
    tools.wait_for(1);
    let ready = server.get("/readyz").json();
    assert_eq!((&ready["driven"], &ready["queued"]), (&json!(1), &json!(4)));
    let listed = |query: &str| server.get(&format!("/agents{query}")).json()["agents"].as_array().unwrap().clone();
    let of = |rows: &[Value]| -> Vec<Value> { rows.iter().map(|run| run["status"].clone()).collect() };
    let queued = listed("?status=queued");
    assert_eq!((of(&queued), &queued[0]["queued"]), (vec![json!("queued"); 4], &json!(true)));
    // Who asks for what is under way, as before `queued` was a status, gets all of it.
    let under_way = listed("?status=running");
    assert_eq!(of(&under_way), ["queued", "queued", "queued", "queued", "running"].map(|status| json!(status)));
    for run in &under_way {
        let status = server.get(&format!("/agents/{}/status", run["agent_run_id"].as_str().unwrap())).json();
        assert_eq!((&status["status"], &status["result"]["status"]), (&run["status"], &json!("running")));
    }
    let shown = place.call(&["runs", "--queued", "--output", "json"]).json();
    assert_eq!((shown.as_array().unwrap().len(), &shown[0]["status"]), (4, &json!("queued")));
    gate.open();
    let runs = server.get("/agents").json();
    for run in runs["agents"].as_array().unwrap() {
        server.events(run["agent_run_id"].as_str().unwrap(), &[]);
    }
    let order: Vec<String> = tools.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(order, ["/0/0", "/1/0", "/2/0", "/3/0", "/4/0"]);
}

#[test]
fn with_room_for_several_several_are_driven_at_once() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = acting(&tools.url(), 1, 0);
    let server = Serving::start(&place, &["--max-concurrent-runs", "3"]);
    for n in 0..5 {
        server.execute("?async=true", json!({ "loop": "test", "input": { "n": n } }));
    }
    tools.wait_for(3);
    assert_eq!(server.get("/readyz").json()["queued"], 2);
    gate.open();
    tools.wait_for(5);
}

#[test]
fn a_run_that_is_ended_while_it_is_queued_is_reported_before_its_turn() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = acting(&tools.url(), 1, 0);
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    assert_eq!(server.execute("?async=true", json!({ "loop": "test", "input": { "n": 0 } })).status, 202);
    tools.wait_for(1);
    let waits = server.execute("?async=true", json!({ "loop": "test", "input": { "n": 1 } })).json();
    assert_eq!(server.get("/readyz").json()["queued"], 1);
    let target = format!("/agents/{}", waits["agent_run_id"].as_str().unwrap());
    let ended = server.send("DELETE", &target, &[], b"");
    assert_eq!((ended.status, &ended.json()["status"]), (200, &json!("cancelled")));
    let ready = server.get("/readyz").json();
    assert_eq!((&ready["driven"], &ready["queued"]), (&json!(1), &json!(0)), "the first one is held still");
    gate.open();
}

#[test]
fn a_start_while_the_server_stops_reports_that_the_run_is_left() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let served = served(&place, Arc::new(MemoryJournal::new()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let settled = runtime.block_on(async {
        let folder = served.folder();
        let offered = &folder.loops["test"];
        let engine = served.runs.engine(&offered.root).unwrap();
        let Begin::New(started) = engine.begin(&offered.program, Start::default()).await.unwrap() else {
            panic!("it is new")
        };
        let run_id = started.run_id().to_owned();
        // The queue is left before the run gets there.
        served.scheduler.drain();
        served.scheduler.leave_all().await;
        let program = ProgramOfRun { program: Arc::clone(&offered.program), engine: engine.clone() };
        served.scheduler.start(program, started, Admission::default(), None).await.unwrap();
        tokio::time::timeout(Duration::from_secs(20), served.scheduler.wait(&run_id, None, None)).await
    });
    assert!(settled.expect("the caller gets a reply").unwrap().is_none(), "it goes on at the next server");
}
