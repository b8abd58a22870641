//! Reminders of steps that wait: each is posted once, also by the next server, and the run stays as it is.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::serve::client::{Serving, scripted};
use crate::serve::workflows::{act, place, tools};

const HOUR_MS: i64 = 3_600_000;

#[test]
fn a_form_and_an_approval_are_reminded_of_once_each_time_across_servers() {
    let tools = tools();
    let hook = Server::with(|_, _| Answer::json("{}"));
    let form = json!({ "id": "fill", "type": "PbotForm", "properties": { "expected_keys": ["amount"], "ttl_seconds": 86400,
        "reminder_intervals": [3600, 7200, 10800] } });
    let ask = json!({ "id": "ask", "type": "PbotApproval",
        "properties": { "comment": "Pay {{amount}}?", "reminder_intervals": [3600] } });
    let place = place(&tools, json!({ "actions": [form, ask, act("@amount", None)] }));
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[], json!({ "serve": { "callback_secret": "file:hook.key" } }));
    place.file("clock", "0");
    let clock = place.path().join("clock").to_str().expect("a path").to_owned();
    let start = || Serving::start_with(&place, &[], &[("LOOPCTL_CLOCK", &clock)]);
    let at = |ms: i64| place.file("clock", ms.to_string());
    let server = start();
    let body = json!({ "input": {}, "callback_url": hook.url() });
    let run = server.post("/workflows/pay/execute", &body).json();
    let id = run["run_id"].as_str().expect("an id").to_owned();
    let events = |server: &Serving| server.get(&format!("/agents/{id}/status")).json()["result"].clone();
    let before = events(&server);
    // The store gives the callback back so many hours after the question.
    let waits_for = |hours: i64| loop {
        let store = rusqlite::Connection::open(place.path().join(".loopctl/runs.db")).expect("a store");
        let sql = "SELECT callback_at_ms - updated_at_ms FROM runs";
        let at: Option<i64> = store.query_row(sql, [], |row| row.get(0)).unwrap_or_default();
        if at.is_some_and(|at| (at - hours * HOUR_MS).abs() < 60_000) {
            break;
        }
    };
    let post = |number: usize, event: &str| -> Value {
        hook.wait_for(number);
        let post = hook.requests()[number - 1].json();
        assert_eq!(post["event"], event, "{post:#}");
        post
    };
    let paused = post(1, "agent_run_paused");
    waits_for(1);
    at(HOUR_MS + 5_000);
    let first = post(2, "agent_run_reminded");
    let question = &first["payload"]["pause"]["steps"][0];
    assert_eq!((&question["at"], &question["expected_keys"]), (&json!("fill"), &json!(["amount"])));
    assert_ne!(question["answer"]["token"], paused["payload"]["pause"]["steps"][0]["answer"]["token"]);
    assert_eq!(events(&server), before, "the run is as it was");
    waits_for(2);
    // The next server does not repeat it; of the two that came due without a server it posts the last one.
    drop(server);
    let server = start();
    assert_eq!(server.get(&format!("/agents/{id}/status")).json()["status"], "paused");
    drop(server);
    at(3 * HOUR_MS + 5_000);
    let server = start();
    let last = post(3, "agent_run_reminded");
    let due =
        |post: &Value| post["timestamp"].as_str().expect("a time").parse::<jiff::Timestamp>().unwrap().as_millisecond();
    assert_eq!(due(&last) - due(&first), 2 * HOUR_MS);
    let key = hook.requests()[2].header("idempotency-key").map(str::to_owned);
    assert_eq!(key, Some(format!("{id}-reminder-{}", due(&last))));
    // The token of a reminder is as good as that of the pause.
    let token = &last["payload"]["pause"]["steps"][0]["answer"]["token"];
    let answered = server.post(&format!("/agents/{id}/answer"), &json!({ "token": token, "data": { "amount": 12 } }));
    assert_eq!(answered.status, 202, "{answered:?}");
    assert_eq!(post(4, "agent_run_paused")["payload"]["pause"]["steps"][0]["at"], "ask");
    waits_for(1);
    at(4 * HOUR_MS + 10_000);
    post(5, "agent_run_reminded");
    let approved = server.post(&format!("/approvals/{id}/ask"), &json!({ "approved": true })).json();
    assert_eq!(approved["status"], "completed", "{approved:#}");
    post(6, "agent_run_completed");
    assert_eq!(hook.requests().len(), 6);
}
