//! A step that waits is decided while other steps of its run are under way: by the server that drives them, by another
//! one of the store, and by the command line.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think, with};
use crate::serve::client::Serving;
use crate::serve::workflows::{STORES, act, asks, each, place};

/// Items of which `a` and `b` ask before they act, while the call of `slow` is held.
fn asking_beside_a_slow_one(tools: &Server, settings: Value) -> Place {
    let asked = json!({ "equal": ["@one.asks", true] });
    let ask = with(asks(json!({})), json!({ "filter": { "condition": asked } }));
    let done = json!({ "or": [{ "not": { "hasKey": "__approved" } }, { "equal": ["@__approved", true] }] });
    let settings = with(json!({ "max_concurrency": 3 }), settings);
    place(tools, json!({ "output": "@all", "actions": [each(settings, json!([ask, act("@one.id", Some(done))]))] }))
}

fn items() -> Value {
    json!({ "items": [{ "id": "slow" }, { "id": "a", "asks": true }, { "id": "b", "asks": true }] })
}

/// A server that holds the first call until the gate opens.
fn holding(gate: &Gate) -> Server {
    let held = gate.clone();
    Server::with(move |number, _| {
        let answer = Answer::json(&json!({ "done": true }));
        if number == 0 { answer.behind(&held) } else { answer }
    })
}

fn begin(server: &Serving) -> String {
    let reply = server.post("/workflows/pay/execute?async=true", &json!({ "input": items() }));
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()["run_id"].as_str().unwrap().to_owned()
}

/// The ids that the calls named, in the order of the calls.
fn called(tools: &Server) -> Vec<String> {
    tools.requests().iter().map(|request| request.json()["id"].as_str().unwrap().to_owned()).collect()
}

fn statuses(run: &Value) -> Vec<&str> {
    run["final_answer"].as_array().unwrap().iter().map(|item| item["status"].as_str().unwrap()).collect()
}

#[test]
fn a_waiting_item_is_decided_and_goes_on_while_another_one_is_under_way() {
    for store in STORES {
        let gate = Gate::default();
        let tools = holding(&gate);
        let place = asking_beside_a_slow_one(&tools, json!({}));
        let server = Serving::start(&place, store);
        let run = begin(&server);
        tools.wait_for(1);
        // Which step is decided must be said, and it must wait.
        let resume = format!("/agents/{run}/resume?async=true");
        for (decision, words) in [
            (json!({ "approve": true }), "name the address of the step that is decided"),
            (json!({ "approve": true, "at": "each.0.ask" }), "no step waits at `each.0.ask`"),
            (json!({ "approve": true, "at": "each.1.ask", "hash": "0000000000000000" }), ""),
            (json!({ "answer": "yes", "at": "each.1.ask" }), ""),
            (json!({ "approve": true, "at": "each.1.ask", "pause": 1 }), "pause 1 has not come yet"),
        ] {
            let reply = server.post(&resume, &decision);
            assert_eq!((reply.status, reply.code().as_str()), (409, "refused"), "{reply:?}");
            assert!(reply.json()["detail"].as_str().unwrap().contains(words), "{reply:?}");
        }
        let reply = server.post(&resume, &json!({ "approve": true, "at": "each.1.ask" }));
        assert_eq!((reply.status, &reply.json()["status"]), (202, &json!("running")), "{reply:?}");
        tools.wait_for(2);
        assert_eq!(called(&tools), ["slow", "a"], "the decided item went on");
        let listed = server.get("/agents?status=paused").json();
        assert_eq!(listed["agents"][0]["question"], "Pay b?", "the first question that is open: {listed}");
        assert_eq!(server.get("/agents?waiting=true").json()["agents"][0]["question"], "Pay b?", "{listed}");
        let reply = server.post(&format!("/approvals/{run}/each.2.ask?async=true"), &json!({ "approved": false }));
        assert_eq!(reply.status, 202, "{reply:?}");
        let again = server.post(&resume, &json!({ "approve": true, "at": "each.2.ask" }));
        assert_eq!(again.code(), "refused", "{again:?}");
        gate.open();
        let ended = server.settled(&run);
        assert_eq!(ended["status"], "completed", "{ended:#}");
        assert_eq!(statuses(&ended), ["completed"; 3], "{ended:#}");
        let decisions: Vec<(&Value, &Value)> = ended["result"]["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|decision| (&decision["step"], &decision["decision"]))
            .collect();
        let expected = [(json!("each.1.ask"), json!("approve")), (json!("each.2.ask"), json!("deny"))];
        assert_eq!(decisions, expected.iter().map(|(step, what)| (step, what)).collect::<Vec<_>>());
        assert_eq!(called(&tools), ["slow", "a"]);
    }
}

#[test]
fn a_decision_beside_a_running_step_outlives_its_server() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking_beside_a_slow_one(&tools, json!({}));
    let server = Serving::start(&place, STORES[0]);
    let run = begin(&server);
    tools.wait_for(1);
    let reply = server.post(&format!("/approvals/{run}/each.1.ask?async=true"), &json!({ "approved": true }));
    assert_eq!(reply.status, 202, "{reply:?}");
    // Killed: the response was sent after the decision was durable.
    drop(server);
    gate.open();
    let next = Serving::start(&place, STORES[0]);
    let reply = next.post(&format!("/agents/{run}/resume?async=true"), &json!({ "approve": true, "at": "each.1.ask" }));
    assert_eq!(reply.status, 409, "it is decided: {reply:?}");
    let waits = next.settled(&run);
    assert_eq!(crate::serve::workflows::waiting(&waits), ["each.2.ask"], "{waits:#}");
    let ended = next.post(&format!("/approvals/{run}/each.2.ask"), &json!({ "approved": true })).json();
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let calls = called(&tools);
    // The call that was under way is idempotent, and is made again.
    for (id, most) in [("slow", 2), ("a", 2), ("b", 1)] {
        let made = calls.iter().filter(|called| *called == id).count();
        assert!((1..=most).contains(&made), "{calls:?}");
    }
}

/// Two servers of a store, of which the first one drives a run whose items 1 and 2 wait.
fn beside_another(place: &Place, tools: &Server) -> (Serving, Serving, String) {
    let (driver, other) = (Serving::start(place, STORES[0]), Serving::start(place, STORES[0]));
    let run = begin(&driver);
    tools.wait_for(1);
    (driver, other, run)
}

/// The decisions that wait in the store.
fn queued(place: &Place) -> u32 {
    let store = rusqlite::Connection::open(place.path().join("runs.db")).unwrap();
    store.query_row("SELECT count(*) FROM decisions", [], |row| row.get(0)).unwrap()
}

fn signal(server: &Serving, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(server.pid()).unwrap()), signal).unwrap();
}

/// Approves the last item that waits; the steps that were decided, in order.
fn decided_in_the_end(server: &Serving, run: &str) -> Vec<String> {
    assert_eq!(crate::serve::workflows::waiting(&server.settled(run)), ["each.2.ask"]);
    let ended = server.post(&format!("/approvals/{run}/each.2.ask"), &json!({ "approved": true })).json();
    assert_eq!((&ended["status"], statuses(&ended)), (&json!("completed"), vec!["completed"; 3]), "{ended:#}");
    let decisions = ended["result"]["decisions"].as_array().unwrap().iter();
    decisions.map(|decision| decision["step"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn any_server_of_the_store_takes_a_decision_about_a_run_that_another_one_drives() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking_beside_a_slow_one(&tools, json!({}));
    let (driver, other, run) = beside_another(&place, &tools);
    let resume = format!("/agents/{run}/resume?async=true");
    for (decision, words) in [
        (json!({ "approve": true }), "name the address of the step that is decided"),
        (json!({ "approve": true, "at": "each.0.ask" }), "no step waits at `each.0.ask`"),
        (json!({ "answer": "yes", "at": "each.1.ask" }), ""),
    ] {
        let reply = other.post(&resume, &decision);
        assert_eq!((reply.status, reply.code().as_str()), (409, "refused"), "{reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains(words), "{reply:?}");
    }
    let reply = other.post(&resume, &json!({ "approve": true, "at": "each.1.ask" }));
    assert_eq!((reply.status, &reply.json()["status"]), (202, &json!("running")), "{reply:?}");
    tools.wait_for(2);
    assert_eq!((called(&tools), queued(&place)), (vec!["slow".to_owned(), "a".to_owned()], 0));
    let again = other.post(&resume, &json!({ "approve": true, "at": "each.1.ask" }));
    assert_eq!(again.code(), "refused", "{again:?}");
    gate.open();
    assert_eq!(decided_in_the_end(&driver, &run), ["each.1.ask", "each.2.ask"]);
    assert_eq!(called(&tools), ["slow", "a", "b"], "each call was made once");
}

#[test]
fn a_decision_for_a_driver_that_dies_is_taken_by_the_next_one() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking_beside_a_slow_one(&tools, json!({}));
    let (driver, other, run) = beside_another(&place, &tools);
    // It takes no decision any more, and is killed.
    signal(&driver, nix::sys::signal::Signal::SIGSTOP);
    let reply = other.post(&format!("/approvals/{run}/each.1.ask"), &json!({ "approved": true }));
    assert_eq!((reply.status, queued(&place)), (202, 1), "it is stored, and nobody waits for the driver: {reply:?}");
    let again = other.post(&format!("/approvals/{run}/each.1.ask"), &json!({ "approved": false }));
    assert_eq!(again.code(), "refused", "{again:?}");
    drop(driver);
    gate.open();
    assert_eq!(decided_in_the_end(&other, &run), ["each.1.ask", "each.2.ask"]);
    let calls = called(&tools);
    // The call that was under way is idempotent, and is made again.
    assert!(calls.iter().filter(|id| *id == "slow").count() <= 2, "{calls:?}");
    assert_eq!(calls.iter().filter(|id| *id != "slow").collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(queued(&place), 0);
}

#[test]
fn a_decision_outlives_the_server_that_was_asked() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking_beside_a_slow_one(&tools, json!({}));
    let (driver, other, run) = beside_another(&place, &tools);
    signal(&driver, nix::sys::signal::Signal::SIGSTOP);
    let target = format!("/approvals/{run}/each.1.ask?async=true");
    let body = json!({ "approved": true }).to_string();
    let headers = [("content-type", "application/json")];
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| other.try_send("POST", &target, &headers, body.as_bytes()));
        while queued(&place) == 0 {
            crate::common::wait_poll_interval();
        }
        signal(&other, nix::sys::signal::Signal::SIGKILL);
        asked.join().unwrap();
    });
    signal(&driver, nix::sys::signal::Signal::SIGCONT);
    tools.wait_for(2);
    gate.open();
    assert_eq!(decided_in_the_end(&driver, &run), ["each.1.ask", "each.2.ask"]);
    assert_eq!((called(&tools), queued(&place)), (vec!["slow".into(), "a".into(), "b".into()], 0));
}

#[test]
fn the_command_line_decides_about_a_run_that_a_server_drives() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking_beside_a_slow_one(&tools, json!({}));
    let driver = Serving::start(&place, STORES[0]);
    let run = begin(&driver);
    tools.wait_for(1);
    let resume = |at: &str| place.call(&["resume", &run, "--at", at, "--approve", "--store", "sqlite:runs.db"]);
    let ran = resume("each.0.ask");
    assert!(ran.code == 2 && ran.stderr.contains("no step waits at `each.0.ask`"), "{ran:#?}");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| resume("each.1.ask"));
        tools.wait_for(2);
        let second = scope.spawn(|| resume("each.2.ask"));
        tools.wait_for(3);
        gate.open();
        for ran in [first.join().unwrap(), second.join().unwrap()] {
            assert_eq!(ran.code, 0, "it waits for the run: {ran:#?}");
        }
    });
    let ended = driver.settled(&run);
    assert_eq!((&ended["status"], called(&tools)), (&json!("completed"), vec!["slow".into(), "a".into(), "b".into()]));
}

#[test]
fn forms_and_approvals_expire_while_another_step_is_under_way() {
    const AN_HOUR: u32 = 3_600_000;
    for store in STORES {
        let gate = Gate::default();
        let tools = holding(&gate);
        let of_kind = |kind: &str| json!({ "filter": { "condition": { "equal": ["@one.kind", kind] } } });
        let form = json!({ "id": "form", "type": "PbotForm", "properties": { "expected_keys": ["why"], "ttl_seconds": 3_600 } });
        let approval = json!({ "expires_after_ms": AN_HOUR });
        let tool = json!({ "type": "action", "name": "act", "requires_approval": true, "approval": approval });
        let judge = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "tools": [tool],
            "objective": "Judge it.", "result_key": "finding" } });
        let steps = json!([
            with(form, of_kind("form")),
            with(judge, of_kind("judge")),
            act("@one.id", Some(json!({ "equal": ["@one.kind", "act"] })))
        ]);
        let settings = json!({ "max_concurrency": 3, "failure_strategy": "continue_on_error" });
        let place = place(&tools, json!({ "output": "@all", "actions": [each(settings, steps)] }));
        let replies = [think("act", json!({ "id": "asked" })), complete(json!("not approved"))];
        place.json("script.json", &json!({ "replies": [], "loops": { "judge": replies } }));
        place.file("clock", "0");
        let server = Serving::start_with(&place, store, &[("LOOPCTL_CLOCK", "clock")]);
        let items = json!([{ "id": "slow", "kind": "act" }, { "id": 1, "kind": "form" }, { "id": 2, "kind": "judge" },
            { "id": "after one", "kind": "act" }, { "id": "after the other", "kind": "act" }]);
        let reply = server.post("/workflows/pay/execute?async=true", &json!({ "input": { "items": items } }));
        let run = reply.json()["run_id"].as_str().unwrap().to_owned();
        tools.wait_for(1);
        let step = |at: &str| server.get(&format!("/agents/{run}/trace?at={at}")).json();
        while !["each.1", "each.2"].iter().all(|at| step(at)["waiting"] == 1) {
            crate::common::wait_poll_interval();
        }
        place.file("clock", AN_HOUR.to_string());
        // Both items end, and give their places to the last two.
        tools.wait_for(3);
        assert_eq!(step("each.0")["status"], "running");
        gate.open();
        let ended = server.settled(&run);
        assert_eq!(statuses(&ended), ["completed", "failed", "completed", "completed", "completed"], "{ended:#}");
        assert_eq!(ended["final_answer"][1]["error"]["code"], "form_expired", "{ended:#}");
        assert_eq!(ended["final_answer"][2]["output"]["answer"], "not approved", "{ended:#}");
        let mut calls = called(&tools);
        calls.sort();
        assert_eq!(calls, ["after one", "after the other", "slow"]);
    }
}

#[test]
fn many_answers_at_once_below_one_step_are_all_taken() {
    const ITEMS: usize = 8;
    for store in STORES {
        let tools = crate::serve::workflows::tools();
        let done = json!({ "equal": ["@__approved", true] });
        let settings = json!({ "max_concurrency": ITEMS });
        let steps = json!([asks(json!({})), act("@one.id", Some(done))]);
        let place = place(&tools, json!({ "output": "@all", "actions": [each(settings, steps)] }));
        let call = json!({ "id": "pay", "type": "workflow", "name": "pay", "properties": { "items": "@input.items" } });
        let input = json!({ "type": "object", "properties": { "items": { "type": "array" } } });
        let outer = json!({ "name": "month", "definition": { "output": "@pay", "actions": [call] }, "input": input });
        place.json("workflows/month.json", &outer);
        let server = Serving::start(&place, store);
        let items: Vec<Value> = (0..ITEMS).map(|id| json!({ "id": id })).collect();
        let paused = server.post("/workflows/month/execute", &json!({ "input": { "items": items } })).json();
        let run = paused["run_id"].as_str().expect("an id").to_owned();
        let asked = crate::serve::workflows::waiting(&paused);
        assert_eq!(asked.len(), ITEMS, "{paused:#}");
        std::thread::scope(|scope| {
            for at in &asked {
                let (server, run) = (&server, &run);
                scope.spawn(move || {
                    let path = format!("/approvals/{run}/{}?async=true", at.replace('/', "%2F"));
                    let reply = server.post(&path, &json!({ "approved": true }));
                    assert_eq!(reply.status, 202, "{at}: {reply:?}");
                });
            }
        });
        // A decision that was stored for later is taken after a pause.
        let ended = loop {
            let run = server.settled(&run);
            if run["status"] != "paused" {
                break run;
            }
            crate::common::wait_poll_interval();
        };
        assert_eq!(statuses(&ended), ["completed"; ITEMS], "{ended:#}");
        let mut ids: Vec<String> = tools.requests().iter().map(|request| request.json()["id"].to_string()).collect();
        ids.sort();
        assert_eq!(ids, (0..ITEMS).map(|id| id.to_string()).collect::<Vec<_>>(), "each call once");
    }
}
