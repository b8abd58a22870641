//! Several approvals of a workflow in one request: each is a decision of its own.

use serde_json::{Value, json};

use crate::common::Place;
use crate::common::server::{Answer, Gate, Server};
use crate::serve::client::Serving;
use crate::serve::workflows::{STORES, act, asks, each, place, tools, waiting};

/// Items that ask before they act.
fn asking(tools: &Server) -> Place {
    let done = json!({ "equal": ["@__approved", true] });
    let steps = json!([asks(json!({})), act("@one.id", Some(done))]);
    place(tools, json!({ "output": "@all", "actions": [each(json!({ "max_concurrency": 4 }), steps)] }))
}

fn begin(server: &Serving, ids: &[&str]) -> (String, Value) {
    let items: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
    let run = server.post("/workflows/pay/execute", &json!({ "input": { "items": items } })).json();
    assert_eq!(run["status"], "paused", "{run:#}");
    (run["run_id"].as_str().expect("an id").to_owned(), run)
}

#[test]
fn approvals_are_decided_together_and_those_that_do_not_fit_say_why() {
    for store in STORES {
        let tools = tools();
        let place = asking(&tools);
        let server = Serving::start(&place, store);
        let (run, asked) = begin(&server, &["a", "b", "c", "d"]);
        assert_eq!(waiting(&asked).len(), 4);
        let hash = |item: usize| asked["result"]["pause"]["steps"][item]["hash"].clone();
        let decisions = json!([
            { "at": "each.0.ask", "approved": true, "hash": hash(0) },
            { "at": "each.1.ask", "approved": true, "hash": "0000000000000000" },
            { "at": "each.2.ask", "approved": false, "comment": "too much", "hash": hash(2) },
            { "at": "each.9.ask", "approved": true },
        ]);
        let answer = server.post(&format!("/approvals/{run}"), &json!({ "decisions": decisions }));
        let body = answer.json();
        assert_eq!((answer.status, &body["taken"]), (200, &json!(["each.0.ask", "each.2.ask"])), "{body:#}");
        let refused = body["refused"].as_array().unwrap();
        let of = |number: usize| (refused[number]["at"].as_str().unwrap(), refused[number]["code"].as_str().unwrap());
        assert_eq!((refused.len(), of(0), of(1)), (2, ("each.1.ask", "refused"), ("each.9.ask", "refused")));
        assert!(body.get("stopped").is_none(), "{body:#}");
        let rest = json!({ "decisions": [
            { "at": "each.3.ask", "approved": true, "data": { "id": "D" } },
            { "at": "each.1.ask", "approved": true },
        ] });
        let body = server.post(&format!("/approvals/{run}"), &rest).json();
        assert_eq!(body["taken"], json!(["each.3.ask", "each.1.ask"]), "{body:#}");
        let ended = server.settled(&run);
        assert_eq!(ended["status"], "completed", "{ended:#}");
        let decided: Vec<String> = ended["result"]["decisions"].as_array().unwrap().iter().map(said).collect();
        assert_eq!(
            decided,
            ["each.0.ask approve", "each.2.ask deny", "each.3.ask edit", "each.1.ask approve"],
            "{ended:#}"
        );
        let mut called: Vec<Value> = tools.requests().iter().map(|request| request.json()["id"].clone()).collect();
        called.sort_by_key(Value::to_string);
        assert_eq!(called, ["a", "b", "d"]);
    }
}

fn said(decision: &Value) -> String {
    format!("{} {}", decision["step"].as_str().unwrap(), decision["decision"].as_str().unwrap())
}

#[test]
fn approvals_are_decided_while_another_step_is_under_way_and_a_request_that_is_wrong_decides_nothing() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "done": true })).behind(&held));
    let place = asking(&tools);
    let server = Serving::start(&place, STORES[0]);
    let (run, _) = begin(&server, &["a", "b", "c"]);
    let send = |body: &Value| server.post(&format!("/approvals/{run}"), body);
    let yes = |at: &str| json!({ "at": at, "approved": true });
    for wrong in [
        json!({}),
        json!({ "decisions": [] }),
        json!({ "decisions": vec![yes("each.0.ask"); 501] }),
        json!({ "decisions": [yes("each.0.ask"), yes("each.0.ask")] }),
        json!({ "decisions": [yes("each.0.ask"), yes("each.*.ask")] }),
        json!({ "decisions": [yes("each.0.ask"), { "at": "each.1.ask" }] }),
        json!({ "decisions": [yes("each.0.ask")], "pause": 1 }),
    ] {
        assert_eq!(send(&wrong).code(), "bad_request", "{wrong}");
    }
    assert_eq!(server.post("/approvals/nobody", &json!({ "decisions": [yes("each.0.ask")] })).status, 404);
    assert_eq!(tools.requests().len(), 0);
    assert_eq!(send(&json!({ "decisions": [yes("each.0.ask")] })).json()["taken"], json!(["each.0.ask"]));
    tools.wait_for(1);
    // The call of the first item is under way.
    let both = json!({ "decisions": [yes("each.1.ask"), { "at": "each.2.ask", "approved": false }] });
    let answer = send(&both).json();
    assert_eq!(
        (&answer["taken"], &answer["status"]),
        (&json!(["each.1.ask", "each.2.ask"]), &json!("running")),
        "{answer:#}"
    );
    tools.wait_for(2);
    gate.open();
    assert_eq!(server.settled(&run)["status"], "completed");
}
