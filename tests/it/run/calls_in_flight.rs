//! A call that was under way when its run was cancelled or killed is in the trace as uncertain, with its input; and
//! each call has the times at which it was asked for, decided and made.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::server::Server;
use crate::common::{Place, answering, complete, think};
use crate::run::signals::{held_in_a_call, wait_for_line};

/// The entry of the call of `act` is uncertain in each form of the trace, and the counts agree with the list.
fn is_uncertain(place: &Place, status: &str) {
    let shown = place.call(&["trace", "r", "--format", "json"]).json();
    assert_eq!(shown["status"], status, "{shown:#}");
    agrees(&shown);
    let entry = &shown["trace"][0];
    assert_eq!((&entry["action"], &entry["action_input"]), (&json!("act"), &json!({ "what": "x" })), "{shown:#}");
    assert_eq!((&entry["call_status"], &entry["success"]), (&json!("uncertain"), &json!(false)), "{shown:#}");
    assert!(entry["called_at"].is_string() && entry["observation"].is_null(), "{shown:#}");
    let text = place.call(&["trace", "r"]).stdout;
    assert!(text.contains(r#"→ act {"what": "x"}"#), "{text}");
    assert!(text.contains("uncertain: the run stopped during this call, and it may have happened"), "{text}");
    let html = place.call(&["trace", "r", "--format", "html"]).stdout;
    assert!(html.contains(r#"<span class="mark">uncertain</span>"#) && html.contains("may have happened"), "{html}");
}

fn agrees(shown: &Value) {
    let made = shown["trace"].as_array().expect("a trace").iter().filter(|entry| entry.get("called_at").is_some());
    assert_eq!(shown["metadata"]["tool_calls_made"], made.count(), "{shown:#}");
}

#[test]
fn a_call_under_way_when_its_run_is_cancelled_is_uncertain_in_the_trace() {
    let (place, server, gate) = held_in_a_call("never");
    let args = ["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--run-id", "r"];
    let child = place.start(&args, &[]);
    server.wait_for(1);
    let under_way = place.call(&["trace", "r", "--format", "json"]).json();
    assert_eq!(under_way["trace"][0]["call_status"], "under_way", "{under_way:#}");
    let cancelled = place.call(&["cancel", "r"]);
    assert_eq!(cancelled.code, 0, "{cancelled:#?}");
    let output = child.wait_with_output().expect("it ends");
    gate.open();
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let result = lines.last().expect("a result");
    assert_eq!(result["trace"][0]["call_status"], "uncertain", "{result:#}");
    agrees(result);
    is_uncertain(&place, "cancelled");
}

/// A run that was killed during its call.
fn killed_in_a_call() -> (Place, Server) {
    let (place, server, gate) = held_in_a_call("ok");
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"];
    let mut child = place.start(&args, &[]);
    server.wait_for(1);
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    gate.open();
    (place, server)
}

#[test]
fn a_call_of_which_a_human_says_that_it_failed_is_not_made_again_and_the_model_reads_why() {
    let (place, server) = killed_in_a_call();
    let resume =
        |how: &[&str]| place.call(&[&["resume", "r", "--script", "script.json", "--output", "json"], how].concat());
    assert_eq!(resume(&[]).code, 3);
    let blank = resume(&["--fail", " "]);
    assert!(blank.code == 2 && blank.stderr.contains("`--fail` is the reason why the call failed"), "{blank:#?}");
    let result = resume(&["--fail", "the bank refused it", "--comment", "asked them"]).json();
    assert_eq!(result["status"], "completed", "{result:#}");
    let entry = &result["trace"][0];
    assert_eq!(entry["success"], false, "{result:#}");
    let observation = entry["observation"].to_string();
    assert!(observation.contains("a human says that the call failed: the bank refused it"), "{result:#}");
    let decision = &result["decisions"][0];
    assert_eq!((&decision["decision"], &decision["comment"]), (&json!("fail"), &json!("asked them")), "{result:#}");
    let shown = place.call(&["trace", "r"]).stdout;
    assert!(shown.contains("reported as failed"), "{shown}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_call_under_way_when_its_process_is_killed_is_uncertain_before_and_after_the_resume() {
    let (place, _server) = killed_in_a_call();
    is_uncertain(&place, "running");
    let resumed = place.call(&["resume", "r", "--script", "script.json", "--output", "json"]);
    assert_eq!((resumed.code, &resumed.json()["trace"][0]["call_status"]), (3, &json!("uncertain")), "{resumed:#?}");
    is_uncertain(&place, "paused");
    let explained = place.call(&["explain", "r"]).stdout;
    assert!(explained.contains("--happened") && !explained.contains("1 call failed"), "{explained}");
    let happened =
        place.call(&["resume", "r", "--script", "script.json", "--output", "json", "--happened", r#"{"did":1}"#]);
    let result = happened.json();
    assert!(result["trace"][0].get("call_status").is_none(), "{result:#}");
    assert_eq!(result["trace"][0]["observation"], json!({ "did": 1 }));
    agrees(&result);
}

#[test]
fn a_call_under_way_when_its_run_is_stopped_at_once_is_uncertain_in_the_result() {
    let (place, server, gate) = held_in_a_call("ok");
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"];
    let mut child = place.start(&args, &[]);
    server.wait_for(1);
    let signal = |child: &std::process::Child| {
        kill(Pid::from_raw(i32::try_from(child.id()).expect("a pid")), Signal::SIGINT).expect("it is there");
    };
    signal(&child);
    let rest = wait_for_line(&mut child, "after this step");
    signal(&child);
    let output = child.wait_with_output().expect("it ends");
    rest.join().expect("it ends");
    gate.open();
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["trace"][0]["call_status"], "uncertain", "{result:#}");
    agrees(&result);
    is_uncertain(&place, "cancelled");
}

#[test]
fn a_call_that_waits_for_approval_when_its_run_is_cancelled_was_not_called() {
    let tools = json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] });
    let place = answering(&tools, "{}");
    place.json("script.json", &json!({ "replies": [think("act", json!({ "what": "x" }))] }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "r"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(place.call(&["cancel", "r"]).code, 0);
    let shown = place.call(&["trace", "r", "--format", "json"]).json();
    agrees(&shown);
    assert_eq!((&shown["trace"], &shown["metadata"]["tool_calls_made"]), (&json!([]), &json!(0)), "{shown:#}");
}

#[test]
fn an_entry_has_the_times_at_which_its_call_was_asked_for_decided_and_made() {
    let tools = json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true },
        { "type": "action", "name": "look" }] });
    let place = answering(&tools, "{}");
    let replies = [think("act", json!({ "what": "x" })), think("look", json!({ "at": "y" })), complete(json!("done"))];
    place.json("script.json", &json!({ "replies": replies }));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "r"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let resumed = place.call(&["resume", "r", "--script", "script.json", "--approve", "--output", "ndjson"]);
    assert_eq!(resumed.code, 0, "{resumed:#?}");
    let shown = place.call(&["trace", "r", "--format", "json"]).json();
    agrees(&shown);
    let times = |at: usize| {
        ["timestamp", "decided_at", "called_at"].map(|name| shown["trace"][at][name].as_str().map(str::to_owned))
    };
    let decided: Vec<String> = times(0).into_iter().map(|time| time.expect("a time")).collect();
    assert!(decided.is_sorted(), "asked, decided, called: {decided:?}");
    assert_eq!(decided[1], shown["decisions"][0]["at"].as_str().expect("a time"));
    let [asked, none, called] = times(1);
    assert!(asked.is_some() && none.is_none() && called.is_some(), "{shown:#}");
    let [asked, none, not_called] = times(2);
    assert!(asked.is_some() && none.is_none() && not_called.is_none(), "a built-in tool: {shown:#}");
    let clock = |time: &str| time.split(['T', 'Z']).nth(1).expect("a time").to_owned();
    // A time is shown once, whatever happened at it.
    let words = ["asked", "decided", "called"].iter().zip(&decided);
    let words: Vec<String> = words
        .collect::<Vec<_>>()
        .chunk_by(|(_, one), (_, next)| one == next)
        .map(|equal| {
            let said: Vec<&str> = equal.iter().map(|(word, _)| **word).collect();
            format!("{} {}", said.join(" and "), clock(equal[0].1))
        })
        .collect();
    for format in ["text", "html"] {
        let trace = place.call(&["trace", "r", "--format", format]).stdout;
        assert!(trace.contains(&words.join(", ")), "{format}: {words:?}: {trace}");
    }
    let observed = resumed.stdout.lines().find(|line| line.contains(r#""event":"observed""#)).expect("a line");
    let observed: Value = serde_json::from_str(observed).expect("JSON");
    assert_eq!(observed["decided_at"], decided[1], "{observed:#}");
}
