//! Pauses and what humans decide; idempotent starts; orders that must be refused.

use serde_json::{Value, json};

use crate::common::{Place, complete, look, think};
use crate::run::signals::{held_in_a_call, wait_for_line};

fn paused(properties: Value, replies: &[Value]) -> (Place, String) {
    let place = Place::new();
    place.looped(&properties).script(replies);
    let (ran, result) = place.run(&[]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let id = result["run_id"].as_str().expect("an id").to_owned();
    (place, id)
}

fn resume(place: &Place, id: &str, how: &[&str]) -> (i32, Value) {
    let mut args = vec!["resume", id, "--script", "script.json", "--output", "json"];
    args.extend(how);
    let ran = place.call(&args);
    let value = serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|_| json!({ "stderr": ran.stderr }));
    (ran.code, value)
}

fn ask() -> Value {
    think("__pause_for_human__", json!({ "question": "Refund?" }))
}

fn approval() -> Value {
    json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] })
}

#[test]
fn the_answer_of_a_human_is_the_observation() {
    let (place, id) = paused(json!({}), &[look("a"), ask(), complete(json!("done"))]);
    let (code, result) = resume(&place, &id, &["--answer", "yes, refund it"]);
    assert_eq!((code, &result["termination"]), (0, &json!("complete")));
    assert_eq!(result["trace"][1]["observation"], "yes, refund it");
    assert_eq!(result["run_id"], id.as_str());
}

#[test]
fn a_paused_run_stays_paused_until_somebody_decides() {
    let (place, id) = paused(json!({}), &[ask(), complete(json!("done"))]);
    let (code, result) = resume(&place, &id, &[]);
    assert_eq!((code, &result["status"]), (3, &json!("paused")));
}

#[test]
fn the_second_of_two_answers_is_refused() {
    let (place, id) = paused(json!({}), &[ask(), complete(json!("done"))]);
    assert_eq!(resume(&place, &id, &["--answer", "one"]).0, 0);
    let (code, said) = resume(&place, &id, &["--answer", "two"]);
    assert_eq!(code, 2, "{said}");
}

#[test]
fn an_approved_call_is_made() {
    let (place, id) = paused(approval(), &[think("act", json!({ "what": "x" })), complete(json!("done"))]);
    let (code, result) = resume(&place, &id, &["--approve"]);
    assert_eq!(code, 0, "{result:#}");
    assert_eq!(result["trace"][0]["observation"], json!({ "done": true }));
    assert_eq!(result["metadata"]["tool_calls_made"], 1);
}

#[test]
fn a_denied_call_is_an_observation_and_the_loop_goes_on() {
    let (place, id) = paused(approval(), &[think("act", json!({ "what": "x" })), complete(json!("done"))]);
    let (code, result) = resume(&place, &id, &["--deny", "--reason", "too dear"]);
    assert_eq!(code, 0, "{result:#}");
    assert!(result["trace"][0]["observation"].as_str().is_some_and(|text| text.contains("too dear")));
    assert_eq!(result["trace"][0]["success"], false);
    assert_eq!(result["metadata"]["tool_calls_made"], 0);
}

#[test]
fn what_was_edited_is_what_runs() {
    let (place, id) = paused(approval(), &[think("act", json!({ "what": "x" })), complete(json!("done"))]);
    let (code, result) = resume(&place, &id, &["--edit", r#"{"what":"y"}"#]);
    assert_eq!(code, 0, "{result:#}");
    assert_eq!(result["trace"][0]["action_input"], json!({ "what": "y" }));
}

#[test]
fn an_edit_against_the_schema_is_refused_and_the_run_still_waits() {
    let (place, id) = paused(approval(), &[think("act", json!({ "what": "x" })), complete(json!("done"))]);
    assert_eq!(resume(&place, &id, &["--edit", r#"{"what":7}"#]).0, 2);
    assert_eq!(resume(&place, &id, &["--approve"]).0, 0);
}

#[test]
fn an_answer_does_not_approve_and_an_approval_does_not_answer() {
    let (place, id) = paused(approval(), &[think("act", json!({ "what": "x" })), complete(json!("done"))]);
    assert_eq!(resume(&place, &id, &["--answer", "approved"]).0, 2);
    let (code, refused) = resume(&place, &id, &["--approve", "--at", "act"]);
    assert!(code == 2 && refused["stderr"].as_str().unwrap().contains("no step waits at `act`; what waits: 1.0"));
    assert_eq!(resume(&place, &id, &[]).0, 3, "it still waits");
    let (place, id) = paused(json!({}), &[ask(), complete(json!("done"))]);
    assert_eq!(resume(&place, &id, &["--approve"]).0, 2);
}

#[test]
fn approving_after_an_edit_is_refused() {
    let (place, id) = paused(approval(), &[think("act", json!({ "what": "x" })), complete(json!("done"))]);
    assert_eq!(resume(&place, &id, &["--edit", r#"{"what":"y"}"#]).0, 0);
    assert_eq!(resume(&place, &id, &["--approve"]).0, 2);
}

#[test]
fn guidance_takes_a_stuck_run_on() {
    let (place, id) = paused(
        json!({ "on_stuck": { "iterations": 2, "action": "escalate" } }),
        &[look("a"), look("a"), look("b"), complete(json!("done"))],
    );
    let (code, result) = resume(&place, &id, &["--answer", "look at b"]);
    assert_eq!((code, &result["termination"]), (0, &json!("complete")));
}

#[test]
fn the_same_run_id_gives_the_same_run_and_another_input_is_a_conflict() {
    let place = Place::new();
    place.looped(&json!({ "objective": "Find {{input.x}}" })).script(&[look("a"), complete(json!("once"))]);
    let (_, first) = place.run(&["--run-id", "job-1", "--input", "x=1"]);
    let (again, second) = place.run(&["--run-id", "job-1", "--input", "x=1"]);
    assert_eq!(again.code, 0);
    assert_eq!(first["started_at"], second["started_at"]);
    assert_eq!(first["trace"], second["trace"]);
    let other = place.call(&[
        "run",
        "loop.json",
        "--script",
        "script.json",
        "--output",
        "json",
        "--run-id",
        "job-1",
        "--input",
        "x=2",
    ]);
    assert_eq!((other.code, other.stdout.as_str()), (2, ""));
}

#[test]
fn the_same_run_id_twenty_times_at_once_is_one_run() {
    let place = Place::new();
    place.looped(&json!({})).script(&[json!({ "delay_ms": 20, "text": look("a") }), complete(json!("once"))]);
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "job-1"];
    let children: Vec<_> = (0..20).map(|_| place.start(&args, &[])).collect();
    let mut results = Vec::new();
    for child in children {
        let ran = crate::common::ran(&child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 0, "{ran:#?}");
        results.push(ran.json()["started_at"].clone());
    }
    results.dedup();
    assert_eq!(results.len(), 1);
}

#[test]
fn a_changed_document_is_refused_unless_the_new_one_is_wanted() {
    let (place, id) = paused(json!({}), &[ask(), complete(json!("done"))]);
    place.looped(&json!({ "max_iterations": 9 }));
    let (code, said) = resume(&place, &id, &["--answer", "yes"]);
    assert_eq!(code, 2, "{said}");
    assert!(said["stderr"].as_str().is_some_and(|text| text.contains("--new-document")), "{said}");
    assert_eq!(resume(&place, &id, &["--answer", "yes", "--new-document"]).0, 0);
}

#[test]
fn a_run_that_is_not_there_is_said_to_be_so() {
    let place = Place::new();
    place.looped(&json!({})).script(&[complete(json!("ok"))]);
    place.run(&[]);
    for command in ["resume", "cancel", "trace"] {
        let ran = place.call(&[command, "agent-none"]);
        assert_eq!(ran.code, 2, "{command}: {ran:#?}");
        assert!(ran.stderr.starts_with("error: there is no run agent-none in .loopctl/runs.db\n"), "{}", ran.stderr);
    }
}

/// Two processes decide at the same moment: their codes, in order.
fn at_once(place: &Place, id: &str, decisions: [&[&str]; 2]) -> [i32; 2] {
    let children = decisions.map(|how| {
        let mut args = vec!["resume", id, "--script", "script.json", "--output", "json"];
        args.extend(how);
        place.start(&args, &[])
    });
    let mut codes = children.map(|child| child.wait_with_output().expect("it ends").status.code().expect("a code"));
    codes.sort_unstable();
    codes
}

#[test]
fn of_two_decisions_one_is_taken_and_what_was_decided_is_what_runs() {
    let act = || [think("act", json!({ "what": "x" })), complete(json!("done"))];
    // What is decided first, what comes too late, and how often the call was made.
    let orders: [(&[&str], &[&str], u64); 6] = [
        (&["--approve"], &["--approve"], 1),
        (&["--approve"], &["--deny"], 1),
        (&["--approve"], &["--edit", r#"{"what":"y"}"#], 1),
        (&["--deny"], &["--approve"], 0),
        (&["--edit", r#"{"what":"y"}"#], &["--approve"], 1),
        (&["--edit", r#"{"what":"y"}"#], &["--edit", r#"{"what":"z"}"#], 1),
    ];
    for (first, late, made) in orders {
        let (place, id) = paused(approval(), &act());
        let (code, result) = resume(&place, &id, first);
        assert_eq!((code, &result["metadata"]["tool_calls_made"]), (0, &json!(made)), "{first:?}: {result:#}");
        let what = if first[0] == "--edit" { "y" } else { "x" };
        assert_eq!(result["trace"][0]["action_input"], json!({ "what": what }), "{first:?}");
        let (code, said) = resume(&place, &id, late);
        assert!(code == 2 && said["stderr"].as_str().is_some_and(|text| text.contains("ended")), "{late:?}: {said}");
        assert_eq!(resume(&place, &id, &[]).1["trace"], result["trace"], "{late:?} left no mark");
    }
}

#[test]
fn of_two_decisions_at_the_same_moment_one_is_taken() {
    let (place, id) = paused(approval(), &[think("act", json!({ "what": "x" })), complete(json!("done"))]);
    assert_eq!(at_once(&place, &id, [&["--approve"], &["--deny"]]), [0, 2]);
    let (place, id) = paused(json!({}), &[ask(), complete(json!("done"))]);
    assert_eq!(at_once(&place, &id, [&["--answer", "one"], &["--answer", "two"]]), [0, 2]);
}

#[test]
fn an_answer_to_an_older_pause_and_one_after_the_end_are_refused() {
    let (place, id) = paused(json!({}), &[ask(), ask(), complete(json!("done"))]);
    assert_eq!(resume(&place, &id, &["--answer", "one", "--pause", "1"]).0, 3);
    let (code, said) = resume(&place, &id, &["--answer", "one", "--pause", "1"]);
    assert!(code == 2 && said["stderr"].as_str().is_some_and(|text| text.contains("pause 1 is over")), "{said}");
    let (code, said) = resume(&place, &id, &["--answer", "one", "--pause", "7"]);
    let early = "pause 7 has not come yet; the run is in pause 2";
    assert!(code == 2 && said["stderr"].as_str().is_some_and(|text| text.contains(early)), "{said}");
    assert_eq!(place.call(&["cancel", &id]).code, 0);
    assert_eq!(resume(&place, &id, &["--answer", "two", "--pause", "2"]).0, 2);
}

#[test]
fn a_second_start_of_an_active_run_says_that_it_waits_for_its_end() {
    let (place, server, gate) = held_in_a_call("once");
    let run = ["run", "loop.json", "--script", "script.json", "--run-id", "r"];
    let first = place.start(&run, &[]);
    server.wait_for(1);
    let mut second = place.start(&run, &[]);
    let waiting = wait_for_line(&mut second, "driven by another process: waiting for its end");
    gate.open();
    for child in [first, second] {
        let ran = crate::common::ran(&child.wait_with_output().expect("it ends"));
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "once\n"), "{ran:#?}");
    }
    waiting.join().expect("it ends");
    assert_eq!(server.requests().len(), 1);
}

#[test]
#[ignore = "nightly: 100 processes, and one of another body"]
fn the_same_run_id_a_hundred_times_at_once_is_one_run() {
    let place = Place::new();
    place.looped(&json!({})).script(&[json!({ "delay_ms": 20, "text": look("a") }), complete(json!("once"))]);
    place.json("other.json", &crate::common::document(&json!({ "max_iterations": 3 })));
    let start = |file: &str| {
        place.start(&["run", file, "--script", "script.json", "--output", "json", "--run-id", "job-1"], &[])
    };
    let children: Vec<_> = (0..100).map(|_| start("loop.json")).collect();
    for child in children {
        let ran = crate::common::ran(&child.wait_with_output().expect("it ends"));
        assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!("once")), "{ran:#?}");
    }
    assert_eq!(start("other.json").wait_with_output().expect("it ends").status.code(), Some(2));
    let runs = place.call(&["runs", "--output", "json"]);
    assert_eq!(runs.stdout.matches("job-1").count(), 1, "{runs:#?}");
}
