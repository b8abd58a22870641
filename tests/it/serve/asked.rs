//! Questions that a server posts to targets of `ask`: with a link that decides once, tried again from the store's queue, and
//! posted by the next server when this one was killed.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, document, think, wait_poll_interval, web, with};
use crate::serve::client::{Serving, scripted};
use crate::serve::workflows::{self, tools};

const PUBLIC_URL: &str = "https://loops.example.com/desk";

/// What a project says that asks this server.
fn project(hook: &Server, more: Value) -> Value {
    with(json!({ "notify": { "ops": { "kind": "webhook", "url": format!("{}/hook", hook.url()) } } }), more)
}

fn linked() -> Value {
    json!({ "serve": { "callback_secret": "file:hook.key", "public_url": PUBLIC_URL } })
}

/// A place whose workflow asks for an approval.
fn place(tools: &Server, hook: &Server, more: Value) -> Place {
    let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay?", "ask": ["ops"] } });
    let place = workflows::place(tools, json!({ "actions": [ask, workflows::act("x", None)] }));
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[], project(hook, more));
    place
}

fn begin(server: &Serving) -> String {
    let run = server.post("/workflows/pay/execute", &json!({ "input": {} })).json();
    assert_eq!(run["status"], "paused", "{run:#}");
    run["run_id"].as_str().expect("an id").to_owned()
}

fn status(server: &Serving, run: &str) -> Value {
    server.get(&format!("/agents/{run}/status")).json()
}

/// The status of a run once this holds.
fn until(server: &Serving, run: &str, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let now = status(server, run);
        if holds(&now) {
            return now;
        }
        wait_poll_interval();
    }
}

/// The path and the token of the link in a post.
fn link(post: &Value) -> (String, String) {
    let link = post["link"].as_str().unwrap_or_else(|| panic!("no link: {post:#}"));
    assert!(post["text"].as_str().unwrap().contains(&format!("\nanswer: {link}\n")), "{post:#}");
    let target = link.strip_prefix(PUBLIC_URL).unwrap_or_else(|| panic!("{link}")).to_owned();
    let token = target.split_once("token=").expect("a token").1.to_owned();
    (target, token)
}

#[test]
fn a_link_shows_the_question_and_decides_once() {
    let (tools, hook) = (tools(), Server::with(|_, _| Answer::json("{}")));
    let place = place(&tools, &hook, linked());
    let server = Serving::start(&place, &[]);
    let run = begin(&server);
    let post = hook.requests()[0].json();
    assert_eq!((&post["run_id"], &post["at"], &post["to"]), (&json!(run), &json!("ok"), &json!("ops")), "{post}");
    let (target, token) = link(&post);
    let page = server.get(&target);
    let shown = String::from_utf8(page.body.clone()).unwrap();
    assert!(page.status == 200 && shown.contains("Pay?"), "{page:?}");
    let asked = status(&server, &run)["result"]["asked"].clone();
    assert!(asked[0]["posted_at"].is_string() && asked[0].get("without_link").is_none(), "{asked}");
    assert!(!asked.to_string().contains(&token), "{asked}");
    // The next server does not post it again, and takes the answer.
    drop(server);
    let server = Serving::start(&place, &[]);
    let answer = json!({ "token": token, "approve": true, "pause": 1, "at": "ok" });
    let other = server.post(&format!("/agents/{run}/answer"), &with(answer.clone(), json!({ "at": "other" })));
    let detail = other.json()["detail"].as_str().unwrap_or_default().to_owned();
    assert!(other.status == 409 && !detail.contains("pause"), "{other:?}");
    // The pause that the status shows may be repeated.
    let answered = server.post(&format!("/agents/{run}/answer"), &answer);
    assert_eq!(answered.status, 202, "{answered:?}");
    until(&server, &run, |now| now["status"] == "completed");
    // Who clicks later reads that it is decided.
    assert_eq!(server.get(&target).status, 410);
    let late = server.post(&format!("/agents/{run}/answer"), &json!({ "token": token, "deny": true }));
    assert_eq!(late.status, 410, "{late:?}");
    assert_eq!(hook.requests().len(), 1);
}

#[test]
fn a_reminder_comes_from_the_queue_with_a_link_of_its_own() {
    let (tools, hook) = (tools(), Server::with(|_, _| Answer::json("{}")));
    let ask = json!({ "id": "ok", "type": "PbotApproval",
        "properties": { "comment": "Pay?", "ask": ["ops"], "reminder_intervals": [0.2] } });
    let place = workflows::place(&tools, json!({ "actions": [ask] }));
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[], project(&hook, linked()));
    let server = Serving::start(&place, &[]);
    let run = begin(&server);
    hook.wait_for(2);
    let posts: Vec<Value> = hook.requests().iter().map(|request| request.json()).collect();
    assert!(posts[0].get("reminder").is_none() && posts[1]["reminder"] == 1, "{posts:?}");
    assert!(posts[1]["text"].as_str().unwrap().starts_with("Reminder 1: pay asks at ok, run "), "{posts:?}");
    let [(first, _), (second, token)] = [0, 1].map(|number: usize| link(&posts[number]));
    assert_eq!((server.get(&first).status, server.get(&second).status), (200, 200));
    let answered = server.post(&format!("/agents/{run}/answer"), &json!({ "token": token, "approve": true }));
    assert_eq!(answered.status, 202, "{answered:?}");
    let ended = until(&server, &run, |now| now["status"] == "completed");
    assert_eq!(ended["result"]["asked"][1]["reminder"], 1, "{ended:#}");
    assert_eq!((server.get(&first).status, hook.requests().len()), (410, 2));
}

#[test]
fn a_decision_elsewhere_ends_the_link() {
    let (tools, hook) = (tools(), Server::with(|_, _| Answer::json("{}")));
    let place = place(&tools, &hook, linked());
    let server = Serving::start(&place, &[]);
    let run = begin(&server);
    let (target, _) = link(&hook.requests()[0].json());
    let approved = server.post(&format!("/approvals/{run}/ok"), &json!({ "approved": true }));
    assert_eq!(approved.json()["status"], "completed", "{approved:?}");
    assert_eq!(server.get(&target).status, 410);
}

#[test]
fn without_an_address_or_a_key_the_post_says_why_it_has_no_link() {
    for (serve, why) in [
        (json!({}), "the server has no `serve.callback_secret`"),
        (json!({ "serve": { "callback_secret": "file:hook.key" } }), "the server has no `serve.public_url`"),
    ] {
        let (tools, hook) = (tools(), Server::with(|_, _| Answer::json("{}")));
        let place = place(&tools, &hook, serve);
        let server = Serving::start(&place, &[]);
        let run = begin(&server);
        let post = hook.requests()[0].json();
        assert!(post.get("link").is_none() && post["text"].as_str().unwrap().contains(why), "{post}");
        assert_eq!(status(&server, &run)["result"]["asked"][0]["without_link"], why);
    }
}

#[test]
fn a_target_that_is_away_is_tried_again_from_the_queue_and_holds_up_no_decision() {
    let tools = tools();
    let hook = Server::with(|number, _| match number {
        0..=3 => Answer::new("text/plain", "busy").status(503),
        _ => Answer::json("{}"),
    });
    let place = place(&tools, &hook, linked());
    let server = Serving::start(&place, &[]);
    let run = begin(&server);
    let now = status(&server, &run);
    let post = &now["result"]["asked"][0];
    assert!(post["next_try_at"].is_string() && post["error"].as_str().unwrap().contains("503"), "{post}");
    hook.wait_for(5);
    let now = until(&server, &run, |now| now["result"]["asked"][0]["posted_at"].is_string());
    assert_eq!(now["result"]["asked"][0]["tries"], 5, "{now:#}");
    let tokens: Vec<String> = hook.requests().iter().map(|request| link(&request.json()).1).collect();
    let keys: Vec<Option<String>> =
        hook.requests().iter().map(|post| post.header("idempotency-key").map(str::to_owned)).collect();
    assert!(keys.len() == 5 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    // Each of them is good: one of the tries may have arrived.
    let answered = server.post(&format!("/agents/{run}/answer"), &json!({ "token": tokens[0], "approve": true }));
    assert_eq!(answered.status, 202, "{answered:?}");
    until(&server, &run, |now| now["status"] == "completed");
}

#[test]
fn a_question_of_a_server_that_was_killed_is_posted_by_the_next_one() {
    let (tools, gate) = (tools(), Gate::default());
    let held = gate.clone();
    let hook = Server::with(move |number, _| match number {
        0 => Answer::json("{}").behind(&held),
        _ => Answer::json("{}"),
    });
    let place = place(&tools, &hook, linked());
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let reply = server.post("/workflows/pay/execute?async=true", &json!({ "input": {} })).json();
    let run = reply["run_id"].as_str().expect("an id").to_owned();
    hook.wait_for(1);
    // Its first try never ends.
    drop(server);
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    hook.wait_for(2);
    gate.open();
    let now = until(&server, &run, |now| now["result"]["asked"][0]["posted_at"].is_string());
    assert_eq!(now["status"], "paused", "{now:#}");
    let keys: Vec<String> =
        hook.requests().iter().map(|post| post.header("idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys[0], keys[1]);
    for request in hook.requests() {
        assert_eq!(server.get(&link(&request.json()).0).status, 200);
    }
}

#[test]
fn the_approval_of_a_call_of_a_loop_is_decided_by_its_link() {
    let (tools, hook) = (tools(), Server::with(|_, _| Answer::json("{}")));
    let place = Place::new();
    let act = json!({ "http_method": "POST", "requires_approval": true, "approval": { "ask": ["ops"] },
        "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } } });
    place.json("actions/pay.json", &json!([web("pay", &format!("{}/pay", tools.url()), act)]));
    let tool = json!({ "type": "action", "name": "pay" });
    place.json("loop.json", &document(&json!({ "tools": [tool] })));
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[think("pay", json!({ "n": 1 })), complete(json!("ok"))], project(&hook, linked()));
    let server = Serving::start(&place, &[]);
    let run = server.post("/agents/execute", &json!({ "loop": "test" })).json();
    assert_eq!(run["status"], "paused", "{run:#}");
    let run = run["agent_run_id"].as_str().expect("an id").to_owned();
    let (target, token) = link(&hook.requests()[0].json());
    assert!(String::from_utf8(server.get(&target).body).unwrap().contains("Your approval is asked for"));
    let answered = server.post(&format!("/agents/{run}/answer"), &json!({ "token": token, "approve": true }));
    assert_eq!(answered.status, 202, "{answered:?}");
    until(&server, &run, |now| now["status"] == "completed");
    assert_eq!((server.get(&target).status, tools.requests().len()), (410, 1));
}
