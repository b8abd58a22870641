//! The steps that a workflow has for a cancel, over HTTP: a server runs them by itself.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::with;
use crate::serve::client::Serving;
use crate::serve::workflows::{STORES, act, asks, place};
use crate::test_server::PostgresServer;

fn undone(tools: &Server, steps: Value) -> crate::common::Place {
    place(tools, json!({ "actions": steps, "on_failure": [act("@__error.message", None)], "on_cancel": true }))
}

fn cancel(server: &Serving, id: &str) -> u16 {
    server.send("DELETE", &format!("/agents/{id}?reason=no+more"), &[], b"").status
}

/// The run once it has ended.
fn ended(server: &Serving, id: &str) -> Value {
    loop {
        let run = server.get(&format!("/agents/{id}/status")).json();
        if run["status"] == "cancelled" {
            return run;
        }
        crate::common::wait_poll_interval();
    }
}

fn ids(tools: &Server) -> Vec<Value> {
    tools.requests().iter().map(|request| request.json()["id"].clone()).collect()
}

#[test]
fn a_run_that_waits_or_is_under_way_runs_its_steps_for_a_cancel() {
    let test = "a_run_that_waits_or_is_under_way_runs_its_steps_for_a_cancel";
    let postgres = crate::test_server::server(test).map(PostgresServer::store);
    let of_postgres = postgres.as_deref().map(|store| ["--store", store]);
    for store in STORES.into_iter().chain(of_postgres.iter().map(|store| &store[..])) {
        let gate = Gate::default();
        let held = gate.clone();
        let tools = Server::reading(move |_, request| {
            let answer = Answer::json(&json!({}));
            if request.json()["id"] == "slow" { answer.behind(&held) } else { answer }
        });
        let ask = with(asks(json!({ "comment": "Pay?", "request_payload": {}, "on_rejected": "stop" })), json!({}));
        let place = undone(&tools, json!([act("@input.id", None), ask]));
        let server = Serving::start(&place, store);
        let start = |id: &str| {
            let reply = server.post("/workflows/pay/execute?async=true", &json!({ "input": { "id": id } }));
            reply.json()["agent_run_id"].as_str().unwrap().to_owned()
        };
        let waits = start("quick");
        assert_eq!(server.settled(&waits)["status"], "paused");
        assert!([200, 202].contains(&cancel(&server, &waits)));
        let run = ended(&server, &waits);
        assert_eq!(run["result"]["error"]["message"], "no more", "{run:#}");
        assert_eq!(ids(&tools), [json!("quick"), json!("no more")]);

        let under_way = start("slow");
        tools.wait_until(|requests| requests.len() == 3);
        assert!([200, 202].contains(&cancel(&server, &under_way)));
        ended(&server, &under_way);
        assert_eq!(ids(&tools)[2..], [json!("slow"), json!("no more")]);
        gate.open();
    }
}
