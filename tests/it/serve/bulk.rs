//! Many runs at once: retried, cancelled and released by a filter, over HTTP and on the command line.

use std::sync::Arc;

use loopctl::drive::engine::Resume;
use loopctl::engine::event::Retried;
use loopctl::journal::Journal;
use loopctl::journal::sqlite::SqliteJournal;
use loopctl::serve::run_store::DecidedRun;
use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::serve::client::{Serving, place, scripted, served};

const STORE: [&str; 2] = ["--store", "sqlite:runs.db"];

/// A place whose model fails this number of requests, and then answers.
fn failing(requests: usize) -> Place {
    let mut replies = vec![json!({ "http": 503, "body": "overloaded" }); requests];
    replies.push(complete(json!("done")));
    place(json!({}), &replies)
}

/// The ids of runs of the loop that were started, and the status that all of them have.
fn started(server: &Serving, count: usize, status: &str) -> Vec<String> {
    let run = |_| {
        let run = server.execute("", json!({ "loop": "test" })).json();
        assert_eq!(run["status"], status, "{run:#}");
        run["agent_run_id"].as_str().expect("an id").to_owned()
    };
    (0..count).map(run).collect()
}

/// A run of a list that somebody else has retried since, and that failed again.
fn is_not_retried_again(place: &Place, run: &str) {
    let journal: Arc<dyn Journal> = Arc::new(SqliteJournal::open(&place.path().join("runs.db")).expect("a store"));
    let served = served(place, Arc::clone(&journal));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(async {
        let mut row = journal.find(run).await.expect("a row").expect("a run");
        row.updated_at_ms -= 1;
        let resume = Resume { retried: Some(Retried::default()), ..Resume::default() };
        served.scheduler.decide(&mut DecidedRun::of_list(row), resume, None, &Default::default()).await.map(drop)
    });
    assert_eq!(refused.expect_err("it has continued").code, "changed_meanwhile");
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().expect("a list").iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
}

#[test]
fn the_runs_of_a_filter_are_retried_up_to_the_bound_the_oldest_first() {
    // Each run has a script of its own, whose first two requests fail.
    let place = failing(2);
    let server = Serving::start(&place, &STORE);
    let runs = started(&server, 3, "failed");
    let bulk = |body: Value| server.post("/agents/bulk", &body).json();
    let dry = bulk(json!({ "action": "retry", "loop": "test", "dry_run": true }));
    assert_eq!((ids(&dry["done"]), &dry["matched"], &dry["dry_run"]), (runs.clone(), &json!(3), &json!(true)));
    assert!(runs.iter().all(|run| server.settled(run)["status"] == "failed"), "a dry run does nothing");
    assert_eq!(bulk(json!({ "action": "retry", "loop": "other" }))["matched"], 0);
    assert_eq!(bulk(json!({ "action": "retry", "until": "2020-01-31T12:00:00Z" }))["matched"], 0);
    let some = bulk(json!({ "action": "retry", "runs": [runs[1], "nobody", runs[0]] }));
    assert_eq!((ids(&some["done"]), &some["matched"]), (runs[..2].to_vec(), &json!(2)), "{some:#}");
    let failed = &some["failed"];
    assert_eq!((&failed[0]["agent_run_id"], &failed[0]["code"]), (&json!("nobody"), &json!("not_matched")));
    assert!(failed.get(1).is_none(), "{some:#}");
    assert!(runs[..2].iter().all(|run| server.settled(run)["status"] == "completed"));
    assert_eq!(server.settled(&runs[2])["status"], "failed");
    for wrong in [
        json!({ "action": "retry", "limit": 0 }),
        json!({ "action": "retry", "limit": 501 }),
        json!({ "action": "retry", "runs": [] }),
        json!({ "action": "retry", "status": "completed" }),
        json!({ "action": "prune" }),
        json!({ "action": "retry", "lop": "test" }),
        json!({}),
    ] {
        assert_eq!(server.post("/agents/bulk", &wrong).code(), "bad_request", "{wrong}");
    }
    drop(server);
    is_not_retried_again(&place, &runs[2]);

    // The rest on the command line, which asks before it does something.
    let call = |args: &[&str]| place.call(&[args, &STORE[..]].concat());
    let files = ["--script", "script.json"];
    let unasked = call(&[&["retry", "--failed"], &files[..]].concat());
    assert!(unasked.code == 2 && unasked.stderr.contains("--yes"), "{unasked:?}");
    let dry = call(&["retry", "--failed", "--dry-run"]);
    assert!(dry.code == 0 && dry.stdout.contains("1 run would be retried") && dry.stdout.contains(&runs[2]), "{dry:?}");
    let both = call(&["retry", &runs[2], "--failed"]);
    assert_eq!(both.code, 2, "{both:?}");
    let beside = call(&["retry", &runs[2], "--dry-run"]);
    assert!(beside.code == 2 && beside.stderr.contains("--failed"), "{beside:?}");
    let done = call(&[&["retry", "--failed", "--loop", "test", "--yes", "--output", "json"], &files[..]].concat());
    let done = done.json();
    assert_eq!((ids(&done["done"]), &done["matched"], &done["failed"]), (runs[2..].to_vec(), &json!(1), &json!([])));
    assert!(call(&["runs", "--status", "completed"]).stdout.contains(&runs[2]));
    let none = call(&[&["retry", "--failed", "--yes"], &files[..]].concat());
    assert!(none.code == 0 && none.stderr.contains("no run matches"), "{none:?}");
}

#[test]
fn the_runs_of_a_filter_are_cancelled_and_each_has_its_line() {
    let place = place(json!({}), &[think("__pause_for_human__", json!({ "question": "Go on?" }))]);
    let server = Serving::start(&place, &STORE);
    let runs = started(&server, 3, "paused");
    let asked = json!({ "action": "cancel", "status": "paused", "limit": 1, "reason": "too old" });
    let one = server.post("/agents/bulk", &asked).json();
    assert_eq!((ids(&one["done"]), &one["matched"]), (runs[..1].to_vec(), &json!(3)), "{one:#}");
    assert_eq!(server.settled(&runs[0])["status"], "cancelled");
    drop(server);
    let call = |args: &[&str]| place.call(&[args, &STORE[..]].concat());
    let dry = call(&["cancel", "--status", "paused", "--limit", "1", "--dry-run"]);
    assert!(dry.stdout.contains("2 runs match; the oldest 1 run would be cancelled"), "{dry:?}");
    let done = call(&["cancel", "--status", "paused", "--loop", "test", "--yes"]);
    assert_eq!((done.code, done.stdout.lines().count()), (0, 2), "{done:?}");
    let cancelled = call(&["audit", "--action", "cancelled", "--output", "ndjson"]).stdout;
    assert!(runs.iter().all(|run| cancelled.contains(run)), "{cancelled}");
    assert_eq!(call(&["cancel"]).code, 2);
}

#[test]
fn nobody_does_something_with_many_runs_that_is_refused_for_one() {
    let place = place(json!({}), &[]);
    let (mut texts, mut entries) = (Vec::new(), Vec::new());
    for (org, scope) in [
        ("acme", "run:test"),
        ("acme", "run:other"),
        ("acme", "read"),
        ("acme", "cancel"),
        ("acme", "decide"),
        ("acme", "decide:other"),
        ("other", "cancel"),
        ("*", "read"),
    ] {
        let name = format!("{org} {scope}");
        let made = place.call(&["token", &name, "--org", org, "--scope", scope]);
        entries.push(serde_json::from_str::<Value>(made.stderr.lines().nth(1).expect("an entry")).expect("JSON"));
        texts.push((name, format!("Bearer {}", made.stdout.trim())));
    }
    let replies = [think("__pause_for_human__", json!({ "question": "Go on?" }))];
    scripted(&place, &replies, json!({ "serve": { "tokens": entries } }));
    let server = Serving::start(&place, &STORE);
    let send = |name: &str, path: &str, body: &str| {
        let (_, bearer) = texts.iter().find(|(known, _)| known == name).expect("a token");
        server.send("POST", path, &[("authorization", bearer)], body.as_bytes())
    };
    assert_eq!(send("acme run:test", "/agents/execute", r#"{"loop":"test"}"#).status, 200);
    for (name, action, matched) in [
        ("acme read", "cancel", None),
        ("* read", "cancel", None),
        ("other cancel", "cancel", Some(0)),
        ("acme run:other", "cancel", Some(0)),
        ("acme decide", "cancel", Some(0)),
        ("acme decide:other", "release", Some(0)),
        ("acme cancel", "retry", Some(0)),
        // A run that waits for a human is not retried.
        ("acme decide", "retry", Some(0)),
        ("acme cancel", "cancel", Some(1)),
        ("acme run:test", "cancel", Some(1)),
    ] {
        let body = json!({ "action": action, "dry_run": true }).to_string();
        let reply = send(name, "/agents/bulk", &body);
        match matched {
            None => assert_eq!(reply.code(), "forbidden", "{name} {action}"),
            Some(matched) => assert_eq!(reply.json()["matched"], matched, "{name} {action}: {reply:?}"),
        }
    }
}
