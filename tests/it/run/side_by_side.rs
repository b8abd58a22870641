//! How long a turn takes that makes eight calls of 50 ms each: a figure of a release build, and not a test of
//! every day, for it depends on the machine.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::{Engine, Listener, Notice, journal};
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, web};

const TURNS: usize = 20;
const CALLS: usize = 8;

/// Measures from the first call of a turn to the next question of the model.
#[derive(Default)]
struct Turns(Mutex<(Option<Instant>, Vec<Duration>)>);

impl Listener for Turns {
    #[allow(clippy::disallowed_methods, reason = "time is what is measured")]
    fn on(&self, notice: Notice) {
        let mut turns = self.0.lock().unwrap();
        match notice {
            Notice::ToolCalled { .. } if turns.0.is_none() => turns.0 = Some(Instant::now()),
            Notice::ModelAsked { .. } => {
                let began = turns.0.take();
                turns.1.extend(began.map(|began| began.elapsed()));
            }
            _ => {}
        }
    }
}

async fn turns_of_eight(store: &str) {
    let server = Server::with(|_, _| {
        std::thread::sleep(Duration::from_millis(50));
        Answer::json(&json!({ "seen": true }))
    });
    let place = Place::new();
    let parameters = json!({ "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } } });
    let action = web("look", &format!("{}/look/{{{{n}}}}", server.url()), parameters);
    let properties = json!({ "mode": "react", "objective": "Look.", "dialect": "tool_calls", "max_iterations": 50,
        "on_stuck": { "iterations": 100 }, "tools": [{ "type": "action", "name": "look" }] });
    place.json("loop.json", &json!({ "type": "loop", "name": "eight", "actions": [action], "properties": properties }));
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let calls: Vec<Value> = (0..CALLS).map(|n| json!({ "action": "look", "action_input": { "n": n } })).collect();
    let mut replies = vec![json!({ "thought": "All at once.", "calls": calls }); TURNS];
    replies.push(json!({ "thought": "t", "answer": "done" }));
    let script = serde_json::from_value(json!({ "replies": replies })).unwrap();
    let loaded = loopctl::load(&place.path().join("loop.json"), &[]).unwrap();
    let engine = Engine::builder(Arc::clone(&loaded.program.project), &loaded.root)
        .journal(journal::open(store, place.path()).unwrap())
        .script(script)
        .build();
    let turns = Turns::default();
    let ended =
        engine.run(&loaded.program, Start::default(), Watch { listener: Some(&turns), stop: None }).await.unwrap();
    assert!(ended.answer().is_some() && server.requests().len() == TURNS * CALLS);
    let mut times = turns.0.into_inner().unwrap().1;
    assert_eq!(times.len(), TURNS);
    let first = times[0];
    times.sort_unstable();
    println!(
        "{store}: {CALLS} calls of 50 ms, {TURNS} turns: least {:?}, median {:?}, most {:?}; the first one {first:?}; {} \
         connections",
        times[0],
        times[TURNS / 2],
        times[TURNS - 1],
        server.connections(),
    );
}

#[tokio::test]
#[ignore = "a figure: run it in a release build"]
async fn eight_calls_of_50_ms_take_how_long_together() {
    turns_of_eight("memory").await;
    turns_of_eight("sqlite:runs.db").await;
}
