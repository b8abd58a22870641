//! Workflows that are tools of a loop, over HTTP: their questions, and the runs that nobody waits for.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::{Serving, scripted};
use crate::serve::workflows::{STORES, waiting};

/// A loop `test` that calls the workflow `pay` of these steps; the action `act` may not be repeated.
fn place(url: &str, steps: Value, waits: bool) -> Place {
    let place = Place::new();
    let act = json!({ "action_name": "act", "kind": "http", "description": "Acts.", "url": format!("{url}/act"),
        "http_method": "POST", "parameters": { "type": "object" } });
    place.json("actions/act.json", &json!([act]));
    place.json(
        "workflows/pay.json",
        &json!({ "name": "pay", "description": "Pays.", "definition": { "actions": steps, "output": "@act" } }),
    );
    let tool = json!({ "type": "workflow", "name": "pay", "wait": waits });
    let properties = json!({ "mode": "react", "objective": "Get it done.", "tools": [tool] });
    place.json("loop.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    scripted(&place, &[think("pay", json!({})), complete(json!("all done"))], json!({}));
    place
}

fn act() -> Value {
    json!({ "id": "act", "type": "act", "properties": {} })
}

#[test]
fn an_approval_in_a_called_workflow_is_given_by_its_address_on_the_run_that_called_it() {
    for store in STORES {
        let tools = Server::with(|_, _| Answer::json(&json!({ "done": true })));
        let ask = json!({ "id": "ask", "type": "PbotApproval", "properties": { "comment": "Go on?" } });
        let place = place(&tools.url(), json!([ask, act()]), true);
        let server = Serving::start(&place, store);
        let run = server.execute("", json!({ "loop": "test" })).json();
        assert_eq!((&run["status"], waiting(&run)), (&json!("paused"), vec!["ask"]), "{run:#}");
        let id = run["agent_run_id"].as_str().unwrap();
        assert_eq!(run["result"]["pause"]["steps"][0]["run_id"], json!(format!("{id}.1.0")));
        let done = server.post(&format!("/approvals/{id}/ask"), &json!({ "approved": true })).json();
        assert_eq!((&done["status"], &done["final_answer"]), (&json!("completed"), &json!("all done")), "{done:#}");
        assert_eq!(done["triggered_runs"], json!([format!("{id}.1.0")]));
        assert_eq!(tools.requests().len(), 1);
    }
}

#[test]
fn a_workflow_that_nobody_waits_for_is_driven_when_there_is_a_slot() {
    for store in STORES {
        let tools = Server::with(|_, _| Answer::json(&json!({ "done": true })));
        let place = place(&tools.url(), json!([act()]), false);
        // The run that starts it has the only slot.
        let server = Serving::start(&place, &[store, &["--max-concurrent-runs", "1"]].concat());
        let run = server.execute("", json!({ "loop": "test" })).json();
        assert_eq!(run["status"], "completed", "{run:#}");
        let own = format!("{}.1.0", run["agent_run_id"].as_str().unwrap());
        assert_eq!(server.events(&own, &[]).last().unwrap().1["status"], "completed");
        let status = server.get(&format!("/runs/{own}/status")).json();
        assert_eq!((&status["final_answer"], status.get("called_by")), (&json!({ "done": true }), None), "{status:#}");
        assert_eq!(status["result"]["started_by"], run["agent_run_id"]);
        assert_eq!(tools.requests().len(), 1);
        let listed = server.get("/agents").json();
        assert_eq!(listed["agents"].as_array().unwrap().len(), 2, "it is a run like any other: {listed:#}");
    }
}

#[test]
fn the_first_call_of_a_workflow_that_waited_for_its_slot_is_made_and_not_uncertain() {
    for store in STORES {
        let gate = Gate::default();
        let held = gate.clone();
        let tools = Server::with(move |_, _| Answer::json(&json!({ "done": true })).behind(&held));
        let place = place(&tools.url(), json!([act()]), true);
        let server = Serving::start(&place, &[store, &["--max-concurrent-runs", "1"]].concat());
        let begin = || server.post("/workflows/pay/execute?async=true", &json!({})).json()["run_id"].clone();
        let runs = [begin(), begin()];
        tools.wait_for(1);
        gate.open();
        for run in runs {
            let last = server.events(run.as_str().unwrap(), &[]).last().unwrap().1.clone();
            assert_eq!(last["status"], "completed", "{last:#}");
        }
        assert_eq!(tools.requests().len(), 2);
    }
}
