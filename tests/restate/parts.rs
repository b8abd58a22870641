//! Runs that go on in further workflows, because they have all the steps that one may have.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think, web};
use crate::harness::{self, Restate};
use crate::{
    acting, ask, asks_and_completes, called_loop_asks, client, decided, ended, is_cancelled_after_a_kill, killed, world,
};

fn calls_in_turn(calls: usize) -> Vec<Value> {
    let call = |at: usize| think(if at.is_multiple_of(2) { "again" } else { "once" }, json!({ "at": at }));
    (0..calls).map(call).chain([complete(json!("ok"))]).collect()
}

#[test]
fn a_run_with_many_steps_goes_on_in_further_workflows_and_makes_each_call_once() {
    let Some(program) = harness::program() else { return };
    let (place, _tools, calls) = world(&calls_in_turn(40), Duration::ZERO);
    let restate = Restate::with_options(program, &place, &["--max-steps", "10"]);
    let returned = restate.call("r", "run", &json!({ "loop": "test", "input": { "n": 1 } }));
    assert_eq!(returned.status, 200, "{returned:?}");
    let returned = returned.json();
    assert_eq!((&returned["status"], &returned["final_answer"]), (&json!("completed"), &json!("ok")), "{returned}");
    assert_eq!((&returned["agent_run_id"], &restate.status("r")), (&json!("r"), &returned));
    let calls = calls.lock().unwrap();
    assert!(calls.len() == 40 && calls.values().all(|count| *count == 1), "{calls:?}");
    let further = restate.call_service("loopctl-part", "r", "status", &Value::Null);
    assert!(further.status >= 400, "the further workflows are reachable from outside: {further:?}");
}

#[test]
fn a_run_that_waits_is_answered_wherever_the_workflow_ends() {
    for steps in ["1", "2", "3", "4", "5", "6"] {
        asks_and_completes(&["--max-steps", steps]);
    }
}

#[test]
fn a_called_loop_goes_on_in_a_further_workflow() {
    // Each workflow begins with a step for the run and one for its sub-run.
    for steps in ["3", "4", "7"] {
        called_loop_asks(&["--max-steps", steps]);
    }
}

#[test]
fn a_run_is_cancelled_in_a_further_workflow_while_it_waits_and_while_it_works() {
    let Some(program) = harness::program() else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, request| {
        let answer = Answer::json(&json!({ "done": true }));
        if request.path.starts_with("/once") { answer.behind(&held) } else { answer }
    });
    let place = Place::new();
    acting(&place, &tools, json!({}));
    let call = |at: usize| think("again", json!({ "at": at }));
    let waits: Vec<Value> = (0..9).map(call).chain([ask(), complete(json!("ok"))]).collect();
    client::scripted(&place, &waits, json!({}));
    let mut restate = Restate::with_options(program, &place, &["--max-steps", "5"]);
    restate.begin("waits", &json!({ "n": 1 }));
    assert_eq!(restate.settled("waits")["status"], "paused");
    assert!(restate.call("waits", "cancel", &json!({ "reason": "not needed" })).status < 300);
    let cancelled = ended(&restate, "waits");
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");

    restate.kill_service();
    let works: Vec<Value> =
        (0..9).map(call).chain([think("once", json!({ "at": 9 })), complete(json!("ok"))]).collect();
    client::scripted(&place, &works, json!({}));
    restate.start_service(&place);
    restate.begin("works", &json!({ "n": 2 }));
    tools.wait_for(19);
    assert_eq!(restate.status("works")["status"], "running");
    assert!(restate.call("works", "cancel", &json!({ "reason": "not needed" })).status < 300);
    // The call gets no answer before the run has ended.
    let cancelled = ended(&restate, "works");
    gate.open();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert!(cancelled.to_string().contains("not needed"), "{cancelled}");
}

#[test]
fn a_request_to_cancel_is_handed_over() {
    // The new process hands the run over before it does anything else.
    is_cancelled_after_a_kill(&["--max-steps", "1"]);
}

#[test]
fn a_run_with_all_its_workflows_is_cancelled_with_a_sentence() {
    let Some(program) = harness::program() else { return };
    let (place, _tools, calls) = world(&calls_in_turn(60), Duration::ZERO);
    let restate = Restate::with_options(program, &place, &["--max-steps", "10", "--max-parts", "3"]);
    restate.begin("r", &json!({ "n": 1 }));
    let ended = ended(&restate, "r");
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended.to_string().contains("may have no workflow after its 3"), "{ended}");
    let calls = calls.lock().unwrap();
    // More than one workflow has steps for.
    assert!((8..60).contains(&calls.len()) && calls.values().all(|count| *count == 1), "{calls:?}");
}

#[test]
fn the_bytes_of_all_workflows_are_bounded_together() {
    let Some(program) = harness::program() else { return };
    let place = Place::new();
    let tools = Server::with(|_, _| Answer::json(&json!({ "text": "x".repeat(100 << 10) })));
    acting(&place, &tools, json!({}));
    client::scripted(&place, &calls_in_turn(30), json!({}));
    let restate = Restate::with_options(program, &place, &["--max-steps", "10", "--max-bytes", "1000000"]);
    restate.begin("r", &json!({ "n": 1 }));
    let ended = ended(&restate, "r");
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert!(ended.to_string().contains("more than 1000000 bytes in the journal of Restate"), "{ended}");
}

#[test]
fn what_is_handed_over_fits_into_a_message_of_restate() {
    let Some(program) = harness::program() else { return };
    let place = Place::new();
    let tools = Server::with(|_, _| Answer::json(&json!({ "text": "x".repeat(1 << 20) })));
    acting(&place, &tools, json!({}));
    client::scripted(&place, &calls_in_turn(20), json!({}));
    let mut restate = Restate::with_options(program, &place, &["--max-steps", "12"]);
    restate.begin("fits", &json!({ "n": 1 }));
    let fits = ended(&restate, "fits");
    assert_eq!(fits["status"], "completed", "{fits}");

    restate.kill_service();
    client::scripted(&place, &calls_in_turn(30), json!({}));
    restate.start_service(&place);
    restate.begin("does-not", &json!({ "n": 2 }));
    let cancelled = ended(&restate, "does-not");
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert!(cancelled.to_string().contains("a further workflow can begin with 25165824"), "{cancelled}");
}

#[test]
fn kills_during_handovers_lose_nothing_and_repeat_no_finished_call() {
    killed(4, 10, 4, &["--max-steps", "3"]);
}

/// Kills of the service after times from a seed: they hit all moments of handovers.
fn killed_at_random(seed: u64, runs: usize, calls_of_run: usize, kills: usize) {
    let Some(program) = harness::program() else { return };
    let (place, _tools, calls) = world(&calls_in_turn(calls_of_run), Duration::ZERO);
    let mut restate = Restate::with_options(program, &place, &["--max-steps", "2", "--max-parts", "100"]);
    let id = |n: usize| format!("run-{n}");
    (0..runs).for_each(|n| restate.begin(&id(n), &json!({ "n": n })));
    let mut random = seed;
    let mut uncertain = 0;
    for kill in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros(random >> 44));
        if kill % 4 == 3 {
            restate.kill_server();
            restate.start_server();
        } else {
            restate.kill_service();
            restate.start_service(&place);
        }
        uncertain += (0..runs).filter(|n| decided(&restate, &id(*n))).count();
    }
    let mut over = 0;
    for n in 0..runs {
        let mut status = restate.settled(&id(n));
        while status["status"] == "paused" {
            uncertain += usize::from(decided(&restate, &id(n)));
            status = restate.settled(&id(n));
        }
        assert_eq!(status["status"], "completed", "seed {seed}: {status}");
        over += 1;
    }
    let calls: BTreeMap<String, usize> = calls.lock().unwrap().clone();
    let again: usize = calls.iter().filter(|(path, _)| path.starts_with("/again")).map(|(_, count)| count - 1).sum();
    println!("seed {seed}: {over} runs, {kills} kills: {uncertain} uncertain, {again} idempotent calls repeated");
    assert!(calls.len() == runs * calls_of_run || uncertain > 0, "seed {seed}: {} calls", calls.len());
    for (path, count) in &calls {
        assert!(*count <= 1 + kills, "seed {seed}: {path}: {count}");
        assert!(!path.starts_with("/once") || *count == 1, "seed {seed}: {path} was made {count} times");
    }
}

#[test]
fn kills_at_random_moments_of_handovers_repeat_no_finished_call() {
    killed_at_random(1, 8, 16, 6);
}

#[test]
#[ignore = "minutes: part of the nightly tests"]
fn kills_at_random_moments_of_handovers_with_many_seeds() {
    (2..22).for_each(|seed| killed_at_random(seed, 8, 16, 8));
}

#[test]
fn a_workflow_with_steps_beside_each_other_goes_on_in_further_workflows() {
    let Some(program) = harness::program() else { return };
    let tools = Server::reading(|_, _| Answer::json(&json!({ "done": true })));
    let place = Place::new();
    let more = json!({ "http_method": "POST", "idempotent": false, "parameters": { "type": "object" } });
    place.json("actions/act.json", &json!([web("act", &format!("{}/act", tools.url()), more)]));
    let act = |properties: Value| json!({ "type": "act", "properties": properties });
    let each = json!({ "mode": "foreach", "items_path": "@input.items", "item_variable_name": "one", "max_concurrency": 3,
        "collect_results": true, "result_key": "all",
        "actions_to_execute": [act(json!({ "n": "@one", "at": "first" })), act(json!({ "n": "@one", "at": "second" }))] });
    let approval = json!({ "comment": "Close?", "request_payload": { "of": "@input.n" } });
    let steps = json!([{ "id": "each", "type": "loop", "properties": each },
        { "id": "ask", "type": "PbotApproval", "properties": approval }, act(json!({ "n": 0, "at": "last" }))]);
    place.json(
        "workflows/test.json",
        &json!({ "name": "test", "description": "Acts.", "definition": { "output": "@all", "actions": steps },
            "input": { "type": "object", "properties": { "items": { "type": "array" } }, "additionalProperties": true } }),
    );
    client::scripted(&place, &[], json!({}));
    let mut made = 0;
    for steps in ["2", "5"] {
        let restate = Restate::with_options(program.clone(), &place, &["--max-steps", steps]);
        restate.begin("r", &json!({ "n": steps, "items": (1..13).collect::<Vec<_>>() }));
        let waiting = restate.settled("r");
        assert_eq!(waiting["result"]["pause"]["steps"][0]["at"], "ask", "{waiting:#}");
        let taken = restate.call("r", "answer", &json!({ "approve": true, "at": "ask" }));
        assert_eq!(taken.status, 200, "{taken:?}");
        let ended = ended(&restate, "r");
        assert_eq!(ended["status"], "completed", "{ended:#}");
        let requests = tools.requests();
        let calls: BTreeSet<String> = requests.iter().skip(made).map(|request| request.json().to_string()).collect();
        assert_eq!((calls.len(), requests.len() - made), (25, 25), "a call was made twice");
        made = requests.len();
    }
}
