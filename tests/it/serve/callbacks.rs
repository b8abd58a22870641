//! Callbacks: a result is posted, signed, until it is taken, also by the next server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loopctl::drive::begin::Begin;
use loopctl::drive::start::Start;
use loopctl::serve::run_store::ProgramOfRun;
use loopctl::serve::scheduler::Admission;
use ring::hmac;
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::{Serving, place, scripted, served};
use crate::serve::counting::Counting;

fn signed() -> Place {
    let place = place(json!({}), &[]);
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[complete(json!("ok"))], json!({ "serve": { "callback_secret": "file:hook.key" } }));
    place
}

/// Waits until the run's callback is as it should be.
fn until(server: &Serving, id: &str, state: &str) -> Value {
    loop {
        let run = server.get(&format!("/agents/{id}/status")).json();
        if run["callback"]["state"] == state {
            return run;
        }
        crate::common::wait_poll_interval();
    }
}

#[test]
fn a_post_whose_key_is_missing_is_tried_again_like_any_other() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    for pauses in [false, true] {
        let place = signed();
        let ask = think("__pause_for_human__", json!({ "question": "Which?" }));
        let replies = if pauses { vec![ask, complete(json!("ok"))] } else { vec![complete(json!("ok"))] };
        scripted(&place, &replies, json!({ "serve": { "callback_secret": "file:hook.key" } }));
        let log = place.path().join("log.txt");
        let server = Serving::start_logged(&place, &[], &log);
        let key = place.path().join("hook.key");
        let before = hook.requests().len();
        std::fs::rename(&key, place.path().join("away.key")).unwrap();
        let run = server.execute("", json!({ "loop": "test", "callback_url": hook.url() })).json();
        let id = run["agent_run_id"].as_str().unwrap();
        let said = |words: &str| std::fs::read_to_string(&log).unwrap().matches(words).count();
        while said("callbacks can't be signed") == 0 {
            crate::common::wait_poll_interval();
        }
        assert_eq!(server.get("/readyz").status, 503);
        if !pauses {
            while server.get(&format!("/agents/{id}/status")).json()["callback"]["tries"].as_u64() < Some(3) {
                crate::common::wait_poll_interval();
            }
        }
        assert_eq!((hook.requests().len(), said("callbacks can't be signed")), (before, 1));
        // Another key: what is posted is signed with the key of its own time.
        place.file("hook.key", "another-s3cret\n");
        hook.wait_for(before + 1);
        let post = &hook.requests()[before];
        let event = if pauses { "agent_run_paused" } else { "agent_run_completed" };
        assert_eq!(post.json()["event"], event);
        let digits = post.header("x-hyphen-signature").unwrap().strip_prefix("sha256=").unwrap();
        let tag: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap()).collect();
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, b"another-s3cret"), &post.body, &tag).unwrap();
        assert_eq!((server.get("/readyz").status, said("can be read again")), (200, 1));
        if !pauses {
            until(&server, id, "delivered");
        }
    }
}

#[test]
fn a_result_is_posted_until_it_is_taken_and_signed_over_its_bytes() {
    let hook = Server::new(vec![Answer::json("{}").status(503), Answer::json("{}").status(302), Answer::json("{}")]);
    let place = signed();
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test", "callback_url": format!("{}/hook", hook.url()) })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    let run = until(&server, id, "delivered");
    assert_eq!(run["callback"]["tries"], 3);
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret-of-the-hook");
    let posts = hook.requests();
    assert_eq!(posts.len(), 3);
    for post in &posts {
        let digits = post.header("x-hyphen-signature").unwrap().strip_prefix("sha256=").unwrap();
        let tag: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap()).collect();
        hmac::verify(&key, &post.body, &tag).unwrap();
        assert_eq!((post.method.as_str(), post.path.as_str()), ("POST", "/hook"));
        assert_eq!(post.header("idempotency-key"), Some(id));
        assert_eq!(post.body, posts[0].body);
    }
    let envelope = posts[0].json();
    assert_eq!(envelope["event"], "agent_run_completed");
    assert!(envelope["timestamp"].is_string());
    assert_eq!(
        (&envelope["payload"]["agent_run_id"], &envelope["payload"]["final_answer"]),
        (&json!(id), &json!("ok"))
    );
}

#[test]
fn what_was_not_taken_is_posted_by_the_next_server_and_what_was_is_not() {
    let open = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&open);
    let hook =
        Server::with(move |_, _| Answer::json("{}").status(if opened.load(Ordering::SeqCst) { 200 } else { 500 }));
    let place = signed();
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test", "callback_url": hook.url() })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    hook.wait_for(1);
    drop(server);
    open.store(true, Ordering::SeqCst);
    let next = Serving::start(&place, &[]);
    until(&next, id, "delivered");
    let count = hook.requests().len();
    drop(next);
    let last = Serving::start(&place, &[]);
    // Another one's post comes after whatever this server would post at its start.
    let other = last.execute("", json!({ "loop": "test", "callback_url": hook.url() })).json();
    until(&last, other["agent_run_id"].as_str().unwrap(), "delivered");
    assert_eq!(hook.requests().len(), count + 1);
}

#[test]
fn a_callback_comes_at_each_pause_and_at_the_end_and_says_how_it_ended() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    let place = signed();
    let replies = [think("__pause_for_human__", json!({ "question": "?" })), complete(json!("ok"))];
    scripted(&place, &replies, json!({ "serve": { "callback_secret": "file:hook.key" } }));
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test", "callback_url": hook.url() })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    assert_eq!((&run["status"], &run["callback"]["state"]), (&json!("paused"), &json!("pending")));
    hook.wait_for(1);
    assert_eq!(server.send("DELETE", &format!("/agents/{id}"), &[], b"").status, 200);
    until(&server, id, "delivered");
    let posts = hook.requests();
    let events: Vec<Value> = posts.iter().map(|post| post.json()["event"].clone()).collect();
    assert_eq!(events, ["agent_run_paused", "agent_run_cancelled"]);
    assert_eq!(posts[0].header("idempotency-key"), Some(format!("{id}-pause-1").as_str()));
    assert_eq!(posts[1].header("idempotency-key"), Some(id));
}

#[test]
fn nothing_is_posted_to_where_tools_may_not_reach() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    let place = signed();
    let more = json!({ "serve": { "callback_secret": "file:hook.key" }, "allow": {} });
    scripted(&place, &[complete(json!("ok"))], more);
    let server = Serving::start(&place, &[]);
    let port = hook.address().port();
    for url in [
        hook.url(),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        "http://169.254.169.254/latest".to_owned(),
        "file:///etc/passwd".to_owned(),
        "https:///e.example/".to_owned(),
        "https://u:p@e.example/".to_owned(),
        "no address".to_owned(),
        format!("https://e.example/{}", "x".repeat(2048)),
    ] {
        let reply = server.execute("", json!({ "loop": "test", "callback_url": url }));
        assert_eq!((reply.status, reply.code()), (422, "callback_url".to_owned()), "{url}");
    }
    assert_eq!(hook.connections(), 0);
}

#[test]
fn a_store_that_can_t_be_read_for_a_moment_keeps_no_result_back() {
    let hook = Server::new(vec![Answer::json("{}")]);
    let place = place(json!({}), &[complete(json!("ok"))]);
    let journal = Arc::new(Counting::default());
    let served = served(&place, journal.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = served.folder();
        let offered = &folder.loops["test"];
        let engine = served.runs.engine(&offered.root).unwrap();
        let start = Start { callback_url: Some(hook.url()), ..Start::default() };
        let Begin::New(started) = engine.begin(&offered.program, start).await.unwrap() else { panic!("it is new") };
        // What is to be posted is read when the run has ended.
        journal.unreadable.store(1, Ordering::SeqCst);
        let program = ProgramOfRun { program: Arc::clone(&offered.program), engine: engine.clone() };
        served.scheduler.start(program, started, Admission::default(), None).await.unwrap();
    });
    hook.wait_for(1);
    assert_eq!(hook.requests()[0].json()["payload"]["final_answer"], "ok");
    assert_eq!(journal.unreadable.load(Ordering::SeqCst), 0, "it was not to be read");
}

#[test]
fn an_end_that_the_run_has_left_is_not_posted_any_more() {
    let open = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&open);
    let hook =
        Server::with(move |_, _| Answer::json("{}").status(if opened.load(Ordering::SeqCst) { 200 } else { 500 }));
    let place = signed();
    let limited = |tokens: u64| {
        let limit = json!({ "every": "month", "tokens": tokens });
        let serve = json!({ "callback_secret": "file:hook.key" });
        scripted(&place, &[complete(json!("ok"))], json!({ "serve": serve, "limits": [limit] }));
    };
    limited(1);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test", "callback_url": hook.url() })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    assert_eq!(run["result"]["termination"], "spending_limit", "{run:#}");
    hook.wait_for(1);
    limited(9_000_000);
    crate::serve::reloads::hangup(&server);
    while server.settled(id)["status"] != "completed" {
        server.post(&format!("/agents/{id}/retry"), &json!({}));
        crate::common::wait_poll_interval();
    }
    open.store(true, Ordering::SeqCst);
    until(&server, id, "delivered");
    // Until the next try of the first end would have come.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let events: Vec<Value> = hook.requests().iter().map(|post| post.json()["event"].clone()).collect();
    let first = events.iter().position(|event| event == "agent_run_completed").unwrap();
    assert!(events[first..].iter().all(|event| event == "agent_run_completed"), "{events:?}");
}
