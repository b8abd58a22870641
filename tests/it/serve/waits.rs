//! Runs of a server that wait for a time: they take no slot, nobody is asked about them, and the server continues them.

use serde_json::{Value, json};

use crate::common::Place;
use crate::common::server::{Answer, Server};
use crate::serve::browser::Browser;
use crate::serve::client::Serving;
use crate::serve::page::DESKTOP;

/// A place whose workflow `late` waits for two hours before its call, and whose workflow `now` calls at once.
fn place(tools: &Server) -> Place {
    let place = Place::new();
    place.file("hook.key", "s3cret-of-the-hook\n");
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "serve": { "callback_secret": "file:hook.key" } }),
    );
    let act = json!({ "action_name": "act", "kind": "http", "description": "Acts.", "http_method": "POST",
        "url": format!("{}/{{{{of}}}}", tools.url()),
        "parameters": { "type": "object", "properties": { "of": { "type": "string" } } } });
    place.json("actions/act.json", &act);
    let act = |of: &str| json!({ "type": "act", "properties": { "of": of } });
    let wait = json!({ "id": "pause", "type": "wait", "properties": { "for": "2h" } });
    let flow = |name: &str, steps: Value| json!({ "name": name, "definition": { "actions": steps } });
    place.json("workflows/late.json", &flow("late", json!([wait, act("late")])));
    place.json("workflows/now.json", &flow("now", json!([act("now")])));
    place.file("clock", "0");
    place
}

fn posted(server: &Server) -> Vec<String> {
    server.requests().iter().map(|request| request.path.clone()).collect()
}

fn waiting(server: &Serving, id: &str) -> Value {
    let run = server.settled(id);
    assert_eq!((&run["status"], &run["result"]["termination"]), (&json!("paused"), &json!("waiting")), "{run:#}");
    run
}

#[test]
fn a_run_that_waits_takes_no_slot_and_continues_after_a_restart_at_its_time() {
    for store in [&["--store", "memory"][..], &["--store", "sqlite:runs.db"]] {
        let tools = Server::with(|_, _| Answer::json(&json!({})));
        let hook = Server::with(|_, _| Answer::json(&json!({})));
        let place = place(&tools);
        let clock = place.path().join("clock").to_str().expect("a path").to_owned();
        let start = || {
            let more = [store, &["--max-concurrent-runs", "1"]].concat();
            Serving::start_with(&place, &more, &[("LOOPCTL_CLOCK", &clock)])
        };
        let mut server = start();
        let body = json!({ "callback_url": hook.url() });
        let late = server.post("/workflows/late/execute?async=true", &body).json();
        let id = late["agent_run_id"].as_str().unwrap_or_else(|| panic!("{late:#}")).to_owned();
        waiting(&server, &id);
        let now = server.post("/workflows/now/execute", &json!({})).json();
        assert_eq!(now["status"], "completed", "the only slot is free: {now:#}");
        let listed = server.get("/agents?status=paused").json();
        assert_eq!(listed["agents"][0]["waiting"], Value::Null, "no human is asked: {listed:#}");
        assert_eq!(server.get("/agents?waiting=true").json()["agents"], json!([]), "{listed:#}");
        if store[1] != "memory" {
            drop(server);
            server = start();
            waiting(&server, &id);
        }
        place.file("clock", 7_260_000.to_string());
        let ended = loop {
            let run = server.get(&format!("/agents/{id}/status")).json();
            if run["status"] == "completed" {
                break run;
            }
            assert_ne!(run["status"], "failed", "{run:#}");
            crate::common::wait_poll_interval();
        };
        assert_eq!(posted(&tools), ["/now", "/late"], "{ended:#}");
        hook.wait_for(1);
        let events: Vec<Value> = hook.requests().iter().map(|post| post.json()["event"].clone()).collect();
        assert_eq!(events, [json!("agent_run_completed")], "the wait is posted to nobody");
    }
}

#[test]
fn a_wait_is_ended_over_http_by_who_may_decide() {
    let tools = Server::with(|_, _| Answer::json(&json!({})));
    let place = place(&tools);
    let server = Serving::start(&place, &["--store", "memory"]);
    let late = server.post("/workflows/late/execute?async=true", &json!({})).json();
    let id = late["agent_run_id"].as_str().unwrap_or_else(|| panic!("{late:#}")).to_owned();
    waiting(&server, &id);
    let refused = server.post(&format!("/agents/{id}/resume"), &json!({ "at": "pause", "answer": "now" }));
    assert_eq!(refused.status, 409, "{refused:?}");
    let ended = server.post(&format!("/agents/{id}/resume"), &json!({ "at": "pause", "approve": true })).json();
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!(posted(&tools), ["/late"]);
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_page_counts_who_asks_people_and_follows_a_run_that_somebody_else_retries() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|number, _| match number {
        0 => Answer::json(&json!({})).status(400),
        _ => Answer::json(&json!({})),
    });
    let place = place(&tools);
    let ask = json!({ "id": "ask", "type": "PbotApproval", "properties": { "comment": "Pay Ada?" } });
    place.json("workflows/ask.json", &json!({ "name": "ask", "definition": { "actions": [ask] } }));
    let server = Serving::start(&place, &["--store", "memory"]);
    let start = |name: &str| {
        let run = server.post(&format!("/workflows/{name}/execute"), &json!({})).json();
        run["agent_run_id"].as_str().unwrap_or_else(|| panic!("{run:#}")).to_owned()
    };
    start("ask");
    // More than a short list has, and newer.
    for _ in 0..12 {
        start("late");
    }
    browser.go(&format!("http://{}/", server.address));
    browser.shows(&["Waiting for people", "the oldest came", "Pay Ada?"]);
    browser.until("return document.title === '(1) loopctl'");
    browser.go(&format!("http://{}/#/runs?waiting=true", server.address));
    browser.until("return document.querySelectorAll('#runs li').length === 1");
    browser.shows(&["Only these: waiting for people"]);
    let failed = start("now");
    browser.go(&format!("http://{}/#{failed}", server.address));
    browser.shows(&["http 400", "Run again"]);
    let retried = server.post(&format!("/agents/{failed}/retry"), &json!({}));
    assert_eq!(retried.json()["status"], "completed", "{retried:?}");
    browser.until("return document.querySelector('#about .status')?.innerText === 'completed'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
