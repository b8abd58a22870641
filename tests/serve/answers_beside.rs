//! A step that waits is decided while other steps of its run are under way, by the server that drives them.

use serde_json::{Value, json};

use crate::client::Serving;
use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, with};
use crate::workflows::{STORES, act, asks, each, place};

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
            (json!({ "approve": true }), "name the step that is decided with `at`"),
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
    assert_eq!(crate::workflows::waiting(&waits), ["each.2.ask"], "{waits:#}");
    let ended = next.post(&format!("/approvals/{run}/each.2.ask"), &json!({ "approved": true })).json();
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let calls = called(&tools);
    // The call that was under way is idempotent, and is made again.
    for (id, most) in [("slow", 2), ("a", 2), ("b", 1)] {
        let made = calls.iter().filter(|called| *called == id).count();
        assert!((1..=most).contains(&made), "{calls:?}");
    }
}
