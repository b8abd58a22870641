//! The real process is killed at every boundary of the journal of a run that calls a tool of an MCP server, and resumed: no call
//! that has an outcome is made again, and a call of unknown outcome is asked about.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use serde_json::{Value, json};

use crate::common::sweep::{kill_everywhere, least};
use crate::common::{Place, Ran, complete, finished, gone, killed, think};
use crate::mcp::{looped, pin, project};

struct Calls(Place);

impl Calls {
    fn new(pinned: &Place) -> Self {
        let place = Place::on_disk();
        place.file("server.sh", include_str!("mcp/server.sh"));
        project(&place, "legacy", json!({}));
        std::fs::copy(pinned.path().join("mcp.lock.json"), place.path().join("mcp.lock.json")).unwrap();
        looped(&place, &["read", "numbers"], json!({}));
        let replies =
            [think("notes.read", json!({ "path": "a" })), think("notes.numbers", json!({})), complete(json!("done"))];
        place.json("script.json", &json!({ "replies": replies }));
        Self(place)
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        let all = [args, &["--script", "script.json", "--output", "json"]].concat();
        killed(self.0.command(&all), fail)
    }

    /// The calls that the server took, by the names of their tools.
    fn made(&self, name: &str) -> usize {
        let calls = std::fs::read_to_string(self.0.path().join("calls.txt")).unwrap_or_default();
        calls.lines().filter(|line| line.contains(&format!("\"name\":\"{name}\""))).count()
    }
}

#[test]
fn a_kill_at_every_boundary_repeats_no_call_that_is_known_and_leaves_no_server() {
    let pinned = crate::mcp::notes("legacy");
    pin(&pinned);
    let mut asked = 0;
    let kills = kill_everywhere(|_, at| {
        let calls = Calls::new(&pinned);
        let mut ran = calls.call(&["run", "loop.json", "--run-id", "r"], at);
        let is_killed = ran.code == -9;
        if is_killed {
            ran = calls.call(&["run", "loop.json", "--run-id", "r"], "");
        }
        let resume = |how: &[&str]| calls.call(&[&["resume", "r"], how].concat(), "");
        let was_made = || calls.made("numbers") > 0 || calls.made("read") > 0;
        let (ran, uncertain) = finished(ran, resume, was_made);
        let result: Value = ran.json();
        assert_eq!(result["result"]["answer"], "done", "{at}: {result}");
        // What was made is made once; a call of unknown outcome is decided by who looks.
        assert!(calls.made("read") <= 1 && calls.made("numbers") <= 1, "{at}");
        asked += uncertain;
        let starts = std::fs::read_to_string(calls.0.path().join("starts.txt")).unwrap_or_default();
        for pid in starts.lines() {
            while !gone(pid) {
                crate::common::wait_poll_interval();
            }
        }
        is_killed
    });
    assert!(kills.iter().sum::<usize>() >= least(12), "{kills:?}");
    assert!(asked > 0);
}

/// A workflow with two calls that may not be repeated.
fn flow_calls(pinned: &Place) -> Calls {
    let calls = Calls::new(pinned);
    let steps = json!([
        { "id": "first", "type": "notes.read", "properties": { "path": "a" }, "outputKey": "text" },
        { "id": "second", "type": "notes.counts", "properties": {}, "outputKey": "counted" },
    ]);
    crate::mcp::steps::flow(&calls.0, steps, json!({ "text": "@text", "n": "@counted.n" }));
    calls
}

#[test]
fn a_kill_at_every_boundary_of_a_workflow_repeats_no_call_of_a_step_that_is_known() {
    let pinned = crate::mcp::notes("legacy");
    pin(&pinned);
    let mut asked = 0;
    let kills = kill_everywhere(|_, at| {
        let calls = flow_calls(&pinned);
        let call = |args: &[&str], fail: &str| killed(calls.0.command(&[args, &["--output", "json"]].concat()), fail);
        let mut ran = call(&["run", "flow.json", "--run-id", "r"], at);
        let is_killed = ran.code == -9;
        if is_killed {
            ran = call(&["run", "flow.json", "--run-id", "r"], "");
        }
        for _ in 0..5 {
            if ran.code != 3 {
                break;
            }
            asked += 1;
            let step = ran.json()["pause"]["steps"][0].clone();
            let (name, gave) = if step["at"] == "first" { ("read", "\"a note\"") } else { ("counts", r#"{"n":7}"#) };
            let how: &[&str] = if calls.made(name) > 0 { &["--happened", gave] } else { &["--retry"] };
            ran = call(&[&["resume", "r"], how].concat(), "");
        }
        assert_eq!(ran.json()["result"]["answer"], json!({ "text": "a note", "n": 7 }), "{at}: {ran:#?}");
        assert_eq!((calls.made("read"), calls.made("counts")), (1, 1), "{at}");
        is_killed
    });
    assert!(kills.iter().sum::<usize>() >= least(10), "{kills:?}");
    assert!(asked > 0);
}

/// A process of a run whose server asks.
#[derive(Clone, Copy, PartialEq)]
enum AskedProcess {
    /// The one that is asked.
    Asked,
    /// The one that takes the answer, and makes the call again.
    Answered,
}

/// Kills a process of the run at each boundary, and brings the run to its end. How often a call was of unknown outcome.
fn kills_of_question(pinned: &Place, process: AskedProcess) -> ([usize; 4], usize) {
    let mut asked = 0;
    let kills = kill_everywhere(|_, at| {
        let place = Place::on_disk();
        for file in ["server.sh", "loopctl.json", "mcp.lock.json", "loop.json", "script.json"] {
            std::fs::copy(pinned.path().join(file), place.path().join(file)).unwrap();
        }
        let call = |args: &[&str], fail: &str| {
            killed(place.command(&[args, &["--script", "script.json", "--output", "json"]].concat()), fail)
        };
        let booked = || std::fs::read_to_string(place.path().join("booked.txt")).unwrap_or_default();
        let mut ran =
            call(&["run", "loop.json", "--run-id", "r"], if process == AskedProcess::Asked { at } else { "" });
        if process == AskedProcess::Answered {
            ran = call(&["resume", "r", "--answer", "ops"], at);
        }
        let is_killed = ran.code == -9;
        if is_killed {
            let first: &[&str] = &["run", "loop.json", "--run-id", "r"];
            ran = call(if process == AskedProcess::Asked { first } else { &["resume", "r"] }, "");
        }
        for _ in 0..5 {
            if ran.code != 3 {
                break;
            }
            let is_uncertain = ran.json()["termination"] == "uncertain";
            asked += usize::from(is_uncertain);
            let how: &[&str] = match (is_uncertain, booked().is_empty()) {
                (false, _) => &["--answer", "ops"],
                (true, true) => &["--retry"],
                (true, false) => &["--happened", "\"booked for ops\""],
            };
            ran = call(&[&["resume", "r"], how].concat(), "");
        }
        assert_eq!((ran.code, ran.json()["result"]["answer"].as_str()), (0, Some("done")), "{at}: {ran:#?}");
        assert_eq!(booked(), "ops\n", "{at}");
        is_killed
    });
    (kills, asked)
}

#[test]
fn a_kill_at_every_boundary_of_a_call_whose_server_asks_loses_no_question_and_books_once() {
    let pinned = crate::mcp::questions::asking("form");
    let (kills, _) = kills_of_question(&pinned, AskedProcess::Asked);
    assert!(kills.iter().sum::<usize>() >= least(10), "{kills:?}");
    let (kills, asked) = kills_of_question(&pinned, AskedProcess::Answered);
    assert!(kills.iter().sum::<usize>() >= least(10), "{kills:?}");
    assert!(asked > 0);
}
