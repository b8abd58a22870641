//! What a step asks while other steps of its run are under way is posted once, is answered by its token, and is reminded
//! of, also across servers; the pause that follows does not post it again.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::with;
use crate::serve::client::{Serving, scripted};
use crate::serve::workflows::{act, asks, each, place, waiting};

const HOUR_MS: i64 = 3_600_000;

/// A server that holds the call of the slow item until the gate opens.
fn holding_the_slow_one(gate: &Gate) -> Server {
    let held = gate.clone();
    Server::reading(move |_, request| {
        let answer = Answer::json(&json!({ "done": true }));
        if request.json()["id"] == "slow" { answer.behind(&held) } else { answer }
    })
}

#[test]
fn a_question_is_posted_when_it_begins_to_wait_and_never_again() {
    let gate = Gate::default();
    let tools = holding_the_slow_one(&gate);
    let hook = Server::with(|_, _| Answer::json("{}"));
    let asked = json!({ "equal": ["@one.asks", true] });
    let ask = with(asks(json!({ "reminder_intervals": [3600] })), json!({ "filter": { "condition": asked } }));
    let goes_on = json!({ "or": [{ "not": { "hasKey": "__approved" } }, { "equal": ["@__approved", true] }] });
    let steps = json!([ask, act("@one.id", Some(goes_on))]);
    let place = place(&tools, json!({ "output": "@all", "actions": [each(json!({ "max_concurrency": 3 }), steps)] }));
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[], json!({ "serve": { "callback_secret": "file:hook.key" } }));
    place.file("clock", "0");
    let clock = place.path().join("clock").to_str().expect("a path").to_owned();
    let start = || Serving::start_with(&place, &["--store", "sqlite:runs.db"], &[("LOOPCTL_CLOCK", &clock)]);

    let server = start();
    let items = json!([{ "id": "slow" }, { "id": "a", "asks": true }, { "id": "b", "asks": true }]);
    let body = json!({ "input": { "items": items }, "callback_url": hook.url() });
    let reply = server.post("/workflows/pay/execute?async=true", &body);
    let run = reply.json()["run_id"].as_str().expect("an id").to_owned();
    hook.wait_for(2);
    let posts: Vec<Value> = hook.requests().iter().map(|request| request.json()).collect();
    for (post, at) in posts.iter().zip(["each.1.ask", "each.2.ask"]) {
        assert_eq!((&post["event"], &post["payload"]["status"]), (&json!("agent_run_waiting"), &json!("running")));
        let steps = post["payload"]["steps"].as_array().expect("steps");
        assert_eq!((steps.len(), &steps[0]["at"]), (1, &json!(at)), "{post:#}");
        assert_eq!(steps[0]["choices"], json!(["approve", "deny", "edit"]));
    }
    // The status shows the same, although the run does not pause.
    let status = server.get(&format!("/runs/{run}/status")).json();
    let waits = status["result"]["waiting"].as_array().unwrap().iter();
    let shown: Vec<&str> = waits.filter_map(|step| step["at"].as_str()).collect();
    assert_eq!((&status["status"], shown), (&json!("running"), vec!["each.1.ask", "each.2.ask"]), "{status:#}");

    let answer = |server: &Serving, post: &Value| {
        let token = &post["payload"]["steps"][0]["answer"]["token"];
        server.post(&format!("/agents/{run}/answer"), &json!({ "token": token, "approve": true }))
    };
    assert_eq!(answer(&server, &posts[0]).status, 202);
    tools.wait_for(2);
    assert_eq!(tools.requests()[1].json()["id"], "a", "it went on at once");
    assert_eq!(answer(&server, &posts[0]).status, 410);

    // Killed while `b` waits: the next server posts the reminder, and not the question.
    drop(server);
    let server = start();
    tools.wait_for(3);
    place.file("clock", (HOUR_MS + 5_000).to_string());
    hook.wait_for(3);
    let reminder = hook.requests()[2].json();
    assert_eq!((&reminder["event"], &reminder["payload"]["status"]), (&json!("agent_run_reminded"), &json!("running")));
    assert_eq!(reminder["payload"]["steps"][0]["at"], "each.2.ask", "{reminder:#}");

    gate.open();
    let paused = server.settled(&run);
    assert_eq!(waiting(&paused), ["each.2.ask"], "{paused:#}");
    // The pause asks what was posted: it counts as posted.
    while server.get(&format!("/agents/{run}/status")).json()["callback"]["pause"] != 1 {
        crate::common::wait_poll_interval();
    }
    assert_eq!(hook.requests().len(), 3);
    assert_eq!(answer(&server, &posts[1]).status, 202);
    hook.wait_for(4);
    assert_eq!(hook.requests()[3].json()["event"], "agent_run_completed");
    let keys: Vec<String> =
        hook.requests().iter().filter_map(|request| request.header("idempotency-key").map(str::to_owned)).collect();
    assert!(keys[..2].iter().all(|key| key.starts_with(&format!("{run}-asks-"))) && keys[0] != keys[1], "{keys:?}");
    assert!(keys[2].starts_with(&format!("{run}-reminder-")), "{keys:?}");
}
