//! A run that kills whoever drives it: after three servers in a row it is set aside, and stops no other one.
#![cfg(all(unix, debug_assertions))]

use std::os::unix::process::ExitStatusExt as _;

use serde_json::{Value, json};

use crate::client::{Serving, place};
use crate::common::{Place, complete, think};

/// Serves the place until the server kills itself at this point.
fn die(place: &Place, at: &str) {
    let mut command = place.command(&["serve", ".", "--listen", "127.0.0.1:0"]);
    let ended = command.env("LOOPCTL_FAIL", at).output().unwrap();
    assert_eq!(ended.status.signal(), Some(9), "{at}: {ended:?}");
}

fn note(n: u32) -> Value {
    think("__log_progress__", json!({ "message": n.to_string() }))
}

/// A place with a run that was cut off in the middle of its first iteration.
fn cut_off() -> Place {
    let replies: Vec<Value> = (0..9).map(note).chain([complete(json!("ok"))]).collect();
    let place = place(json!({ "max_iterations": 20 }), &replies);
    let killed =
        place.command(&["run", "loop.json", "--run-id", "r"]).env("LOOPCTL_FAIL", "journal:1:after-sync").output();
    assert_eq!(killed.unwrap().status.signal(), Some(9));
    place
}

fn quarantined(server: &Serving) -> String {
    let text = String::from_utf8(server.get("/metrics").body).unwrap();
    text.lines().find_map(|line| line.strip_prefix("loopctl_runs_quarantined ")).unwrap().to_owned()
}

#[test]
fn a_run_that_was_taken_up_three_times_in_vain_is_set_aside_until_somebody_resumes_it() {
    let place = cut_off();
    for at in ["journal:0:before-write", "journal:0:after-sync", "journal:0:before-effect"] {
        die(&place, at);
    }
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "quarantined");
    let listed = server.get("/agents?status=quarantined").json();
    assert_eq!((&listed["agents"][0]["agent_run_id"], &listed["agents"][1]), (&json!("r"), &Value::Null));
    assert_eq!(server.get("/agents?status=running").json()["agents"], json!([]));
    assert_eq!(quarantined(&server), "1");
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed", "it stops no other run");
    drop(server);
    let shown = place.command(&["runs", "--status", "quarantined"]).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("its process died 3 times"), "{shown:?}");

    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "quarantined", "the next server leaves it alone too");
    let other = server.post("/agents/r/resume", &json!({ "answer": "x" }));
    assert_eq!(other.status, 409, "it asks nothing: {other:?}");
    let resumed = server.post("/agents/r/resume", &json!({ "resume": true })).json();
    assert_eq!(resumed["status"], "completed", "{resumed:#}");
    assert_eq!(quarantined(&server), "0");
    let again = server.post("/agents/r/resume", &json!({ "resume": true }));
    assert_eq!((again.status, again.code()), (409, "refused".to_owned()));
}

#[test]
fn a_driver_that_panics_gives_its_place_back_and_the_next_server_takes_its_run_up() {
    let place = place(json!({}), &[note(1), complete(json!("ok"))]);
    let fail = [("LOOPCTL_FAIL", "journal:1:before-effect-panic")];
    let server = Serving::start_with(&place, &["--max-concurrent-runs", "1"], &fail);
    let first = server.execute("", json!({ "loop": "test" }));
    assert_eq!((first.status, &first.json()["status"]), (202, &json!("running")), "{first:?}");
    let second = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(second["status"], "completed", "the only place is free again: {second:#}");
    drop(server);
    let id = first.json()["agent_run_id"].as_str().unwrap().to_owned();
    assert_eq!(Serving::start(&place, &[]).settled(&id)["status"], "completed");
}

#[test]
fn a_run_that_two_servers_died_of_goes_on_with_the_third() {
    let place = cut_off();
    for _ in 0..2 {
        die(&place, "journal:0:after-sync");
    }
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "completed");
}

#[test]
fn servers_that_die_one_step_further_each_time_set_nothing_aside() {
    let place = cut_off();
    for _ in 0..5 {
        die(&place, "journal:1:after-sync");
    }
    for _ in 0..2 {
        die(&place, "journal:0:after-sync");
    }
    die(&place, "journal:1:after-sync");
    for _ in 0..2 {
        die(&place, "journal:0:after-sync");
    }
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled("r")["status"], "completed");
}

#[test]
fn a_run_that_is_set_aside_is_resumed_and_cancelled_from_the_command_line() {
    for (command, status) in [("resume", Some(0)), ("cancel", Some(0))] {
        let place = cut_off();
        for _ in 0..3 {
            die(&place, "journal:0:after-sync");
        }
        drop(Serving::start(&place, &[]));
        let done = place.command(&[command, "r"]).output().unwrap();
        assert_eq!(done.status.code(), status, "{done:?}");
        let server = Serving::start(&place, &[]);
        assert_ne!(server.settled("r")["status"], "quarantined");
        assert_eq!(quarantined(&server), "0");
    }
}
