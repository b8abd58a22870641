//! A run in memory records of failed calls and replies what a run in a SQLite file does.

use serde_json::{Value, json};

use super::http_tool::anywhere;
use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, document, think, web};

/// Without what a clock says.
fn timeless(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !["timestamp", "at", "called_at", "duration_ms"].contains(&name.as_str()));
            members.values_mut().for_each(timeless);
        }
        Value::Array(items) => items.iter_mut().for_each(timeless),
        _ => {}
    }
}

/// The trace of this script in each store; the server answers anew in each.
fn traces(replies: &[Value], action: Value, handler: fn(usize) -> Answer) -> [Vec<Value>; 2] {
    ["sqlite:runs.db", "memory"].map(|store| {
        let server = Server::with(move |number, _| handler(number));
        let mut action = action.clone();
        action["url"] = json!(server.url());
        let place = Place::new();
        let mut looped = document(&json!({ "tools": [{ "type": "action", "name": "read" }], "max_iterations": 60 }));
        looped["actions"] = json!([action]);
        place.json("loop.json", &looped);
        place.json("loopctl.json", &anywhere());
        place.script(replies);
        let options = ["--run-id", "r", "--script", "script.json", "--output", "json", "--store", store];
        let ran = place.call(&[["run", "loop.json"].as_slice(), &options].concat());
        assert_eq!(ran.code, 0, "{ran:#?}");
        // Each store has a server of its own, and faults name it.
        let address = server.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let shown = ran.json()["trace"].to_string().replace(&address, "SERVER");
        let mut trace: Value = serde_json::from_str(&shown).unwrap();
        timeless(&mut trace);
        trace.as_array().expect("a trace").clone()
    })
}

fn read_and_complete() -> [Value; 2] {
    [think("read", json!({})), complete(json!("ok"))]
}

#[test]
fn attempts_of_a_tool_are_recorded_alike_in_both_stores() {
    let retry = json!({ "retry": { "attempts": 4, "base_ms": 0, "max_ms": 0 } });
    let [file, memory] = traces(&read_and_complete(), web("read", "", retry), |number| match number {
        0 => Answer::new("text/plain", "busy").status(503),
        1 => Answer::json("{\"whole\":false}").cut(),
        _ => Answer::json("{}"),
    });
    assert_eq!(file[0]["attempts"].as_array().map(Vec::len), Some(2), "{file:#?}");
    assert_eq!(file, memory);
}

#[test]
fn the_body_of_a_failed_answer_is_recorded_alike_in_both_stores() {
    let action = web("read", "", json!({ "error_body": true }));
    let [file, memory] =
        traces(&read_and_complete(), action, |_| Answer::new("text/plain", "the shelf is empty").status(500));
    assert_eq!(file[0]["error"]["answer"], "\"the shelf is empty\"", "{file:#?}");
    assert_eq!(file, memory);
}

#[test]
fn refused_replies_are_recorded_alike_in_both_stores() {
    let prose = |number: usize| json!(format!("MARK-{number:02}. I would look first"));
    let mut replies = Vec::new();
    for number in 0..20 {
        replies.push(prose(number));
        // Three in a row would end the run.
        if number % 2 == 1 {
            replies.push(think("__store_memory__", json!({ "key": format!("k{number}"), "value": number })));
        }
    }
    replies.push(complete(json!("ok")));
    let [file, memory] = traces(&replies, web("read", "", json!({})), |_| Answer::json("{}"));
    let refused = file.iter().filter(|entry| entry["error"]["detail"].to_string().contains("MARK-"));
    assert_eq!(refused.count(), 20, "{file:#?}");
    assert_eq!(file, memory);
}
