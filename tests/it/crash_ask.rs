//! The real process is killed at every boundary of the journal of a workflow that asks targets, and resumed: the question
//! arrives at each target, under its one key, and is answered once.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::{BOUNDARIES, is_played, least};
use crate::common::{Place, Ran, killed};

/// The run has no more events.
const MOST_EVENTS: usize = 6;

fn call(place: &Place, args: &[&str], fail: &str) -> Ran {
    let all = [args, &["--script", "script.json", "--output", "json"]].concat();
    killed(place.command(&all), fail)
}

/// Starts, resumes and decides the run until it has ended. The first two processes have the fail point.
fn ended(place: &Place, fail: &str) -> (Value, bool) {
    let mut is_killed = false;
    let mut ran = call(place, &["run", "loop.json", "--run-id", "r"], fail);
    let mut answers = 0;
    for _ in 0..12 {
        let fail = if is_killed { "" } else { fail };
        is_killed |= ran.code == -9;
        ran = match ran.code {
            0 => return (ran.json(), is_killed),
            // A driver posts first what the one before it did not post.
            3 if answers == 0 => {
                answers = 1;
                call(place, &["resume", "r"], fail)
            }
            3 => call(place, &["resume", "r", "--approve"], fail),
            _ => call(place, &["run", "loop.json", "--run-id", "r"], ""),
        };
    }
    panic!("it does not end: {ran:#?}");
}

#[test]
fn a_kill_at_every_boundary_of_a_reminder_posts_it_under_one_key() {
    let mut kills = 0;
    for (kind, boundary) in BOUNDARIES.iter().enumerate() {
        for event in (0..MOST_EVENTS).filter(|event| is_played(*event, kind)) {
            let server = Server::with(|_, _| Answer::json("ok"));
            let place = Place::on_disk();
            let target = json!({ "kind": "webhook", "url": format!("{}/hook", server.url()) });
            place.json("loopctl.json", &json!({ "allow": { "private_addresses": true }, "notify": { "ops": target } }));
            let properties = json!({ "comment": "Go?", "ask": ["ops"], "reminder_intervals": [3600] });
            let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": properties });
            place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [ask] } }));
            place.json("script.json", &json!({ "replies": [] }));
            place.file("clock", "3600000");
            let clock = place.path().join("clock");
            let at = format!("journal:{event}:{boundary}");
            assert_eq!(call(&place, &["run", "loop.json", "--run-id", "r"], "").code, 3, "{at}");
            let resume = |fail: &str| {
                let args = ["resume", "r", "--script", "script.json", "--output", "json"];
                let mut command = place.command(&args);
                command.env("LOOPCTL_CLOCK", &clock);
                killed(command, fail)
            };
            kills += usize::from(resume(&at).code == -9);
            let ran = resume("");
            assert_eq!(ran.code, 3, "{at}: {ran:#?}");
            let keys: BTreeSet<String> =
                server.requests().iter().map(|request| request.header("idempotency-key").unwrap().to_owned()).collect();
            // At most the one that was under way when the process died is posted again.
            assert!(keys.len() == 2 && server.requests().len() <= 3, "{at}: {:?}", server.requests());
            let asked = ran.json()["asked"].clone();
            assert!(asked[1]["posted_at"].is_string() && asked[1]["reminder"] == 1, "{at}: {asked}");
        }
    }
    assert!(kills >= least(3), "{kills}");
}

#[test]
fn a_kill_at_every_boundary_loses_no_question_and_posts_none_under_another_key() {
    let mut kills = 0;
    for (kind, boundary) in BOUNDARIES.iter().enumerate() {
        for event in (0..MOST_EVENTS).filter(|event| is_played(*event, kind)) {
            let server = Server::with(|_, _| Answer::json("ok"));
            let place = Place::on_disk();
            let target = json!({ "kind": "webhook", "url": format!("{}/hook", server.url()) });
            place.json(
                "loopctl.json",
                &json!({ "allow": { "private_addresses": true }, "notify": { "ops": target, "night": target } }),
            );
            let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Go?", "ask": ["ops", "night"] } });
            place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [ask] } }));
            place.json("script.json", &json!({ "replies": [] }));
            let at = format!("journal:{event}:{boundary}");
            let (result, is_killed) = ended(&place, &at);
            assert_eq!(result["status"], "completed", "{at}: {result}");
            let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for request in server.requests() {
                let to = request.json()["to"].as_str().unwrap().to_owned();
                keys.entry(to).or_default().insert(request.header("idempotency-key").unwrap().to_owned());
            }
            let counts: Vec<(&str, usize)> = keys.iter().map(|(to, keys)| (to.as_str(), keys.len())).collect();
            assert_eq!(counts, [("night", 1), ("ops", 1)], "{at}: {keys:?}");
            // At most the two that were under way when the process died are posted again.
            assert!(server.requests().len() <= 4, "{at}: {:?}", server.requests());
            let asked = result["asked"].as_array().unwrap();
            assert!(asked.len() == 2 && asked.iter().all(|post| post["posted_at"].is_string()), "{at}: {result}");
            kills += usize::from(is_killed);
        }
    }
    assert!(kills >= least(8), "{kills}");
}
