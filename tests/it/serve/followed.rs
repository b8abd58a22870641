//! `loopctl trace --follow`: a run is shown while another process executes it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::json;

use crate::serve::client::Serving;
use crate::serve::stats_fold::{model, place};

const STORE: &str = "sqlite:runs.db";

#[test]
fn a_run_that_has_ended_is_shown_with_what_it_called_and_its_exit_code() {
    let model = model();
    let place = place(&model);
    let server = Serving::start(&place, &["--store", STORE]);
    for name in ["calls", "fails"] {
        server.post("/agents/execute", &json!({ "loop": name }));
    }
    let follow = |run: &str| place.call(&["trace", run, "--follow", "--store", STORE]);
    let calls = follow("last:calls");
    assert_eq!(calls.code, 0, "{calls:?}");
    let called = calls.stdout.lines().find(|line| line.starts_with("\u{2500}\u{2500} calls-")).expect("the called run");
    assert!(called.ends_with(".1.0"), "{called}");
    assert!(calls.stdout.contains("\u{2192} quick"), "{}", calls.stdout);
    assert_eq!(follow("last:fails").code, 1);
    let other = place.call(&["trace", "last", "--follow", "--format", "json", "--store", STORE]);
    assert_eq!(other.code, 2, "{other:?}");
}

#[test]
fn a_run_that_waits_is_followed_until_it_ends() {
    let model = model();
    let place = place(&model);
    let server = Serving::start(&place, &["--store", STORE]);
    let run = server.post("/agents/execute", &json!({ "loop": "asks" })).json();
    let run = run["agent_run_id"].as_str().unwrap();
    let mut follow = place.command(&["trace", run, "--follow", "--store", STORE]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(follow.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("1,") && !text.contains("tokens") {
        assert_ne!(shown.read_line(&mut text).unwrap(), 0, "it ended early: {text}");
    }
    assert!(follow.try_wait().unwrap().is_none(), "it waits with the run: {text}");
    assert_eq!(server.post(&format!("/agents/{run}/resume"), &json!({ "answer": "yes" })).status, 200);
    shown.read_to_string(&mut text).unwrap();
    assert_eq!(follow.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains("answered") || text.contains("yes"), "{text}");
}
