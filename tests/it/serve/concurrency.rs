//! `concurrency` of loops and workflows over HTTP: how many runs of a key are under way at a time, and what the others do.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, with};
use crate::serve::client::{Reply, Serving, scripted};
use crate::serve::workflows::{STORES, act, asks, place, tools};

/// A workflow that asks, and then calls, with this `concurrency`.
fn limited(tools: &crate::common::server::Server, concurrency: Value) -> Place {
    let ask = with(asks(json!({ "comment": "Pay?", "request_payload": {}, "on_rejected": "stop" })), json!({}));
    let concurrency = with(json!({ "key": "@input.customer" }), concurrency);
    place(tools, json!({ "concurrency": concurrency, "actions": [ask, act("@input.customer", None)] }))
}

fn start(server: &Serving, input: Value) -> Reply {
    server.post("/workflows/pay/execute?async=true", &json!({ "input": input }))
}

/// Starts a run for a customer; its id.
fn started(server: &Serving, customer: Value) -> String {
    let reply = start(server, json!({ "customer": customer }));
    assert!([200, 202].contains(&reply.status), "{reply:?}");
    reply.json()["agent_run_id"].as_str().unwrap().to_owned()
}

fn status(server: &Serving, id: &str) -> Value {
    server.get(&format!("/agents/{id}/status")).json()
}

/// The run once it has this status.
fn until(server: &Serving, id: &str, word: &str) -> Value {
    loop {
        let run = status(server, id);
        if run["status"] == word {
            return run;
        }
        assert!(["running", "queued"].contains(&run["status"].as_str().unwrap()), "{run:#}");
        crate::common::wait_poll_interval();
    }
}

/// The row of a run in the list.
fn row(server: &Serving, id: &str) -> Value {
    let list = server.get("/agents").json();
    list["agents"].as_array().unwrap().iter().find(|run| run["agent_run_id"] == id).unwrap().clone()
}

fn approve(server: &Serving, id: &str) {
    let reply = server.post(&format!("/agents/{id}/resume"), &json!({ "approve": true, "pause": 1 }));
    assert!([200, 202].contains(&reply.status), "{reply:?}");
}

#[test]
fn runs_of_one_key_take_turns_and_say_for_which_one_they_wait() {
    for store in STORES {
        let tools = tools();
        let place = limited(&tools, json!({}));
        let server = Serving::start(&place, store);
        let first = started(&server, json!("ada"));
        until(&server, &first, "paused");
        // A number and the text that is written like it are one key; another customer waits for nobody.
        let (second, third) = (started(&server, json!("ada")), started(&server, json!("ada")));
        let (seven, text) = (started(&server, json!(7)), started(&server, json!("7")));
        until(&server, &seven, "paused");
        for (id, behind) in [(&second, &first), (&third, &first), (&text, &seven)] {
            let run = until(&server, id, "queued");
            assert_eq!((&run["behind"], &run["result"]["pause"]), (&json!(behind), &Value::Null), "{run:#}");
            let row = row(&server, id);
            assert_eq!((&row["status"], &row["behind"]), (&json!("queued"), &json!(behind)), "{row:#}");
        }
        assert_eq!(status(&server, &first)["behind"], Value::Null);
        // One that waits is cancelled: nobody else begins, and nothing of it was done.
        assert_eq!(server.send("DELETE", &format!("/agents/{second}"), &[], b"").status, 200);
        until(&server, &second, "cancelled");
        assert_eq!(until(&server, &third, "queued")["behind"], json!(first));
        approve(&server, &first);
        until(&server, &first, "completed");
        assert_eq!(until(&server, &third, "paused")["behind"], Value::Null);
        assert_eq!(tools.requests().len(), 1);
    }
}

#[test]
fn the_trace_of_a_run_that_waits_says_for_which_one() {
    let tools = tools();
    let place = limited(&tools, json!({}));
    let store = ["--store", "sqlite:runs.db"];
    let server = Serving::start(&place, &store);
    let first = started(&server, json!("ada"));
    until(&server, &first, "paused");
    let second = started(&server, json!("ada"));
    until(&server, &second, "queued");
    let trace = |id: &str, how: &[&str]| place.call(&[&["trace", id], &store[..], how].concat());
    let shown = trace(&second, &[]);
    let said = format!("in its line for run {first} to end");
    assert!(shown.code == 0 && format!("{}{}", shown.stdout, shown.stderr).contains(&said), "{shown:#?}");
    assert_eq!(trace(&second, &["--format", "json"]).json()["behind"], json!(first));
    assert_eq!(trace(&first, &["--format", "json"]).json().get("behind"), None);
    let explained = place.call(&[&["explain", &second], &store[..]].concat());
    assert!(explained.code == 0 && explained.stdout.starts_with(&format!("queued  {second}\n")), "{explained:#?}");
    let explained = place.call(&[&["explain", &second, "--output", "json"], &store[..]].concat());
    assert_eq!(explained.json()["status"], "queued", "{explained:#?}");
}

#[test]
fn a_run_that_is_refused_is_not_there_and_the_answer_names_the_one_that_runs() {
    for store in STORES {
        let tools = tools();
        let place = limited(&tools, json!({ "when_full": "refuse" }));
        let server = Serving::start(&place, store);
        let first = started(&server, json!("ada"));
        until(&server, &first, "paused");
        let refused = start(&server, json!({ "customer": "ada" }));
        assert_eq!((refused.status, refused.code()), (409, "concurrency_full".to_owned()), "{refused:?}");
        assert_eq!(refused.json()["agent_run_id"], json!(first));
        assert_eq!(server.get("/agents").json()["agents"].as_array().unwrap().len(), 1);
        approve(&server, &first);
        until(&server, &first, "completed");
        let second = started(&server, json!("ada"));
        until(&server, &second, "paused");
        // A key that is no text and no number.
        for customer in [json!(null), json!(true), json!(["ada"]), json!("")] {
            let wrong = start(&server, json!({ "customer": customer }));
            assert_eq!((wrong.status, wrong.code()), (422, "document".to_owned()), "{wrong:?}");
            assert!(wrong.json().to_string().contains("the `key` of `concurrency`"), "{wrong:?}");
        }
        assert_eq!(start(&server, json!({})).status, 422);
    }
}

#[test]
fn a_run_that_replaces_ends_those_ahead_and_begins_after_them() {
    for store in STORES {
        let tools = tools();
        let place = limited(&tools, json!({ "when_full": "replace" }));
        let server = Serving::start(&place, store);
        let first = started(&server, json!("ada"));
        until(&server, &first, "paused");
        let second = started(&server, json!("ada"));
        until(&server, &second, "paused");
        let ended = until(&server, &first, "cancelled");
        assert_eq!(ended["result"]["error"]["message"], json!(format!("replaced by run {second}")), "{ended:#}");
        let other = started(&server, json!("bob"));
        until(&server, &other, "paused");
        assert_eq!(status(&server, &second)["status"], "paused");
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a post that is made at once and one that is found later differ by their time alone"
)]
fn the_end_of_a_run_that_is_replaced_while_it_waits_for_a_human_is_posted_at_once() {
    let (hook, tools) = (Server::with(|_, _| Answer::json("{}")), tools());
    let place = limited(&tools, json!({ "when_full": "replace" }));
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[], json!({ "serve": { "callback_secret": "file:hook.key" } }));
    let server = Serving::start(&place, &[]);
    let body = json!({ "loop": "pay", "input": { "customer": "ada" }, "callback_url": hook.url() });
    let first = server.execute("", body).json()["agent_run_id"].as_str().unwrap().to_owned();
    until(&server, &first, "paused");
    hook.wait_for(1);
    let began = std::time::Instant::now();
    let second = started(&server, json!("ada"));
    until(&server, &second, "paused");
    hook.wait_for(2);
    // A server that looks for what nobody posts takes a minute.
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    let events: Vec<Value> = hook.requests().iter().map(|post| post.json()["event"].clone()).collect();
    assert_eq!(events, ["agent_run_paused", "agent_run_cancelled"]);
}

#[test]
fn the_log_says_that_a_run_started_when_it_has_its_place() {
    let tools = tools();
    let place = limited(&tools, json!({}));
    let log = place.path().join("log.txt");
    let server = Serving::start_logged(&place, &[], &log);
    let first = started(&server, json!("ada"));
    until(&server, &first, "paused");
    let second = started(&server, json!("ada"));
    until(&server, &second, "queued");
    approve(&server, &first);
    until(&server, &second, "paused");
    let text = server.whole_log(&log);
    let line = |words: &str, id: &str| {
        let lines: Vec<usize> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(words) && line.contains(id))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(lines.len(), 1, "{words} {id}: {text}");
        lines[0]
    };
    line(" started run_id=", &first);
    assert!(line(" ended run_id=", &first) < line(" started run_id=", &second), "{text}");
}

#[test]
fn a_run_that_is_retried_joins_its_line_at_the_end() {
    for store in STORES {
        let fails = std::sync::atomic::AtomicBool::new(true);
        let tools = crate::common::server::Server::with(move |_, _| {
            let fails = fails.swap(false, std::sync::atomic::Ordering::SeqCst);
            Answer::json(&json!({})).status(if fails { 400 } else { 200 })
        });
        let place = limited(&tools, json!({}));
        let server = Serving::start(&place, store);
        let first = started(&server, json!("ada"));
        until(&server, &first, "paused");
        approve(&server, &first);
        until(&server, &first, "failed");
        let second = started(&server, json!("ada"));
        until(&server, &second, "paused");
        let retried = server.post(&format!("/agents/{first}/retry?async=true"), &json!({}));
        assert!([200, 202].contains(&retried.status), "{retried:?}");
        assert_eq!(until(&server, &first, "queued")["behind"], json!(second));
        assert_eq!(tools.requests().len(), 1);
        approve(&server, &second);
        until(&server, &second, "completed");
        until(&server, &first, "completed");
        assert_eq!(tools.requests().len(), 3);
    }
}

#[test]
fn a_server_that_is_killed_leaves_the_places_as_they_are() {
    let tools = tools();
    let place = limited(&tools, json!({ "limit": 2 }));
    let server = Serving::start(&place, STORES[0]);
    let runs: Vec<String> = (0..4).map(|_| started(&server, json!("ada"))).collect();
    runs.iter().take(2).for_each(|id| drop(until(&server, id, "paused")));
    drop(server);
    let server = Serving::start(&place, STORES[0]);
    approve(&server, &runs[1]);
    until(&server, &runs[1], "completed");
    until(&server, &runs[2], "paused");
    assert_eq!(until(&server, &runs[3], "queued")["behind"], json!(runs[0]));
    approve(&server, &runs[0]);
    until(&server, &runs[3], "paused");
    assert_eq!(status(&server, &runs[2])["status"], "paused");
}

#[test]
fn a_run_that_is_retried_asks_nobody_before_it_has_a_place() {
    let (tools, hook) = (tools(), crate::common::server::Server::with(|_, _| Answer::json(&json!({}))));
    let ask = json!({ "id": "ok", "type": "PbotApproval",
        "properties": { "comment": "Pay?", "ask": ["ops"], "on_rejected": "stop" } });
    let place = place(&tools, json!({ "concurrency": { "key": "@input.customer" }, "actions": [ask] }));
    let target = json!({ "kind": "webhook", "url": format!("{}/hook", hook.url()) });
    crate::serve::client::scripted(&place, &[], json!({ "notify": { "ops": target } }));
    let server = Serving::start(&place, STORES[0]);
    let first = started(&server, json!("ada"));
    until(&server, &first, "paused");
    hook.wait_for(1);
    let decide =
        |approved: bool| server.post(&format!("/approvals/{first}/ok"), &json!({ "approved": approved })).status;
    // A driver that still has the run takes it from the queue: 202.
    assert!([200, 202].contains(&decide(false)));
    until(&server, &first, "failed");
    let second = started(&server, json!("ada"));
    until(&server, &second, "paused");
    hook.wait_for(2);
    let retried = server.post(&format!("/agents/{first}/retry"), &json!({}));
    assert!([200, 202].contains(&retried.status), "{retried:?}");
    assert_eq!(status(&server, &first)["behind"], json!(second));
    let waiting = server.get("/agents?waiting=true").json();
    let ids: Vec<&Value> = waiting["agents"].as_array().unwrap().iter().map(|run| &run["agent_run_id"]).collect();
    assert_eq!(ids, [&json!(second)], "{waiting:#}");
    assert_eq!(hook.requests().len(), 2, "nobody is asked what can't be decided");
    approve(&server, &second);
    until(&server, &second, "completed");
    hook.wait_for(3);
    assert_eq!(hook.requests()[2].json()["run_id"], json!(first));
    assert!([200, 202].contains(&decide(true)));
    until(&server, &first, "completed");
}

/// Loops `pay` of both modes that ask, with a place for one run of a customer.
fn loops() -> [Value; 2] {
    let react = json!({ "mode": "react", "objective": "Pay {{input.customer}}.", "tools": [] });
    let ask = json!({ "type": "PbotApproval", "properties": { "comment": "Pay?", "on_rejected": "stop" } });
    let foreach = json!({ "mode": "foreach", "items_path": "@input.items", "item_variable_name": "one",
        "actions_to_execute": [ask] });
    let input = json!({ "type": "object", "required": ["customer"], "additionalProperties": true,
        "properties": { "customer": { "type": "string" }, "items": { "type": "array" } } });
    [react, foreach].map(|properties| {
        json!({ "type": "loop", "name": "pay", "input": input, "concurrency": { "key": "@input.customer" },
            "properties": properties })
    })
}

#[test]
fn runs_of_a_loop_take_turns_as_those_of_a_workflow_do() {
    let ask = json!({ "thought": "?", "action": "__pause_for_human__", "action_input": { "question": "Pay?" } });
    let end = json!({ "thought": "!", "action": "__complete__", "action_input": { "answer": "paid" } });
    for (number, document) in loops().into_iter().enumerate() {
        for store in STORES {
            let place = Place::new();
            place.json("pay.json", &document);
            scripted(&place, &[ask.clone(), end.clone()], json!({}));
            let server = Serving::start(&place, store);
            let start = |customer: &str| {
                let input = json!({ "customer": customer, "items": [1] });
                let reply = server.execute("?async=true", json!({ "loop": "pay", "input": input }));
                assert!([200, 202].contains(&reply.status), "{reply:?}");
                reply.json()["agent_run_id"].as_str().unwrap().to_owned()
            };
            let first = start("ada");
            until(&server, &first, "paused");
            let (second, third, other) = (start("ada"), start("ada"), start("bob"));
            until(&server, &other, "paused");
            for id in [&second, &third] {
                let run = until(&server, id, "queued");
                assert_eq!((&run["behind"], &run["iterations"]), (&json!(first), &json!(0)), "{run:#}");
            }
            // One that waits has asked no model, and ends at once.
            assert_eq!(server.send("DELETE", &format!("/agents/{second}"), &[], b"").status, 200);
            let decision = if number == 0 {
                json!({ "answer": "Yes.", "pause": 1 })
            } else {
                json!({ "approve": true, "pause": 1 })
            };
            let reply = server.post(&format!("/agents/{first}/resume"), &decision);
            assert!([200, 202].contains(&reply.status), "{reply:?}");
            until(&server, &first, "completed");
            assert_eq!(until(&server, &third, "paused")["behind"], Value::Null);
            assert_eq!(status(&server, &second)["status"], "cancelled");
        }
    }
}
