//! R9: the machine's clock is set back by an hour, or forward by a day, while a model thinks, while a tool is
//! called, and while the run waits for a human. The time limits of a run use a clock that no one can set; the
//! order of the trace is the journal's.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{self, Place, complete, think, web};

const BACK_AN_HOUR: i64 = -3_600_000;
const FORWARD_A_DAY: i64 = 86_400_000;
/// The run may take a minute: a day is longer.
const TIMEOUT_MS: u64 = 60_000;

/// What the run does when the clock is changed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum While {
    TheModelThinks,
    AToolIsCalled,
    AHumanIsWaitedFor,
}

/// The requests in their order: the model, the tool, the model, and after the pause the model.
fn answers(held: usize, gate: &Gate) -> Server {
    let gate = gate.clone();
    Server::with(move |number, _| {
        let says = |reply: Value| Answer::openai(&reply.to_string());
        let answer = match number {
            0 => says(think("read", json!({}))),
            1 => Answer::json(&json!({ "read": 1 })),
            2 => says(think("__pause_for_human__", json!({ "question": "Go on?" }))),
            _ => says(complete(json!("done"))),
        };
        if number == held { answer.behind(&gate) } else { answer }
    })
}

fn events(place: &Place) -> Vec<Value> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let store = rusqlite::Connection::open_with_flags(place.path().join(".loopctl/runs.db"), flags).expect("a store");
    let mut query = store.prepare("SELECT event FROM events ORDER BY seq").expect("a query");
    let texts = query.query_map((), |row| row.get::<_, String>(0)).expect("it reads");
    texts.map(|text| serde_json::from_str(&text.expect("a text")).expect("JSON")).collect()
}

/// Plays the run and changes the clock during it; returns the whole result.
fn played(when: While, by_ms: i64) -> Value {
    let gate = Gate::default();
    let held = match when {
        While::TheModelThinks => 0,
        While::AToolIsCalled => 1,
        While::AHumanIsWaitedFor => usize::MAX,
    };
    let server = answers(held, &gate);
    let place = Place::on_disk();
    let url = format!("{}/read", server.url());
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "actions": [web("read", &url, json!({}))],
        "properties": { "mode": "react", "objective": "x", "timeout_ms": TIMEOUT_MS, "tool_timeout_ms": TIMEOUT_MS,
            "tools": [{ "type": "action", "name": "read" }] } }),
    );
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let clock = place.file("clock", "0");
    let base = format!("{}/v1", server.url());
    let env = [
        ("LOOPCTL_CLOCK", clock.to_str().expect("a path")),
        ("OPENAI_BASE_URL", base.as_str()),
        ("OPENAI_API_KEY", "key-of-the-test"),
    ];
    let args = ["run", "loop.json", "--run-id", "r", "--output", "json", "--model", "test-model"];
    let child = place.start(&args, &env);
    if held != usize::MAX {
        server.wait_for(held + 1);
        std::fs::write(&clock, by_ms.to_string()).expect("it is written");
        gate.open();
    }
    let paused = common::ran(&child.wait_with_output().expect("it ends"));
    assert_eq!(paused.code, 3, "{when:?} {by_ms}: {paused:#?}");
    std::fs::write(&clock, by_ms.to_string()).expect("it is written");
    let ended = place.call_with(&["resume", "r", "--answer", "yes", "--output", "json"], &env);
    assert_eq!(ended.code, 0, "{when:?} {by_ms}: {ended:#?}");
    assert_eq!(server.requests().len(), 4, "{when:?} {by_ms}: no call is made twice");

    let events = events(&place);
    let number = |event: &Value, name: &str| event["at"][name].as_i64().expect("a number");
    let jumps = events.windows(2).map(|pair| number(&pair[1], "wall_ms") - number(&pair[0], "wall_ms"));
    assert!(jumps.into_iter().any(|jump| (jump - by_ms).abs() < 60_000), "the clock was set: {events:#?}");
    assert!(events.is_sorted_by_key(|event| number(event, "active_ms")), "{events:#?}");
    let active = number(events.last().expect("events"), "active_ms");
    assert!((0..60_000).contains(&active), "{when:?} {by_ms}: {active} ms of active time");
    ended.json()
}

#[test]
fn a_clock_that_is_set_changes_no_time_limit_and_no_order() {
    for when in [While::TheModelThinks, While::AToolIsCalled, While::AHumanIsWaitedFor] {
        for by_ms in [BACK_AN_HOUR, FORWARD_A_DAY] {
            let result = played(when, by_ms);
            assert_eq!(result["termination"], "complete", "{when:?} {by_ms}");
            let trace = result["trace"].as_array().expect("a trace");
            let iterations: Vec<_> = trace.iter().map(|entry| entry["iteration"].as_u64().expect("a number")).collect();
            assert_eq!(iterations, [1, 2, 3], "{when:?} {by_ms}");
            for entry in trace {
                let took = entry["duration_ms"].as_u64().expect("not negative");
                assert!(took < TIMEOUT_MS, "{when:?} {by_ms}: {entry:#}");
            }
        }
    }
}
