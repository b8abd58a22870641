//! A workflow that is cut in two by a call of the second part means what it meant whole, wherever it is cut.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think, web};

/// The keys that the steps write, and which the steps behind them read.
const KEYS: [&str; 4] = ["opened", "all", "asked", "__approved"];

/// A call, a loop over items, an approval, and a call that asks what was decided.
fn steps() -> Vec<Value> {
    let act = |properties: Value, key: &str| json!({ "type": "act", "properties": properties, "outputKey": key });
    let each = json!({ "mode": "foreach", "items_path": "@input.items", "item_variable_name": "one", "max_concurrency": 2,
        "collect_results": true, "result_key": "all",
        "actions_to_execute": [act(json!({ "n": "@one.n", "base": "@opened.n" }), "did")] });
    let approval = json!({ "comment": "Close {{opened.n}}?", "request_payload": { "of": "@all" } });
    let mut close = act(json!({ "n": "@all.1.output.n", "why": "@asked.comment" }), "closed");
    close["filter"] = json!({ "condition": { "equal": ["@__approved", true] } });
    vec![
        act(json!({ "n": "@input.n" }), "opened"),
        json!({ "id": "each", "type": "loop", "properties": each }),
        json!({ "id": "ask", "type": "PbotApproval", "properties": approval, "outputKey": "asked" }),
        close,
    ]
}

/// What reads these keys from the input in place of the context.
fn reading_input(steps: &[Value], keys: &Map<String, Value>) -> Value {
    let text = KEYS.iter().filter(|key| keys.contains_key(**key)).fold(json!(steps).to_string(), |text, key| {
        text.replace(&format!("@{key}"), &format!("@input.{key}"))
            .replace(&format!("{{{{{key}"), &format!("{{{{input.{key}"))
    });
    serde_json::from_str(&text).unwrap()
}

/// Runs `loop.json` to its end, with a yes at this address. What was asked, and the result.
fn played(place: &Place, at: &str) -> (Value, Value) {
    let (ran, paused) = place.run(&["--run-id", "r", "--input-file", "input.json"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let asked = paused["pause"]["steps"][0].clone();
    assert_eq!(asked["at"], at, "{paused:#}");
    let yes = ["--at", at, "--approve", "--comment", "seen"];
    let ran = place.call(&[&["resume", "r", "--script", "script.json", "--output", "json"][..], &yes].concat());
    assert_eq!(ran.code, 0, "{ran:#?}");
    (asked, ran.json())
}

/// The inputs of the calls that a server got.
fn calls(server: &Server) -> BTreeSet<String> {
    server.requests().iter().map(|request| request.json().to_string()).collect()
}

/// A place whose action `act` is answered by a new server.
fn place() -> (Place, Server) {
    let server = Server::reading(|_, request| {
        let n = request.json()["n"].as_u64().unwrap();
        Answer::json(&json!({ "n": n * 2 + 1 }))
    });
    let place = Place::new();
    let more = json!({ "http_method": "POST", "idempotent": true, "parameters": { "type": "object" } });
    place.json("actions/act.json", &json!([web("act", &format!("{}/act", server.url()), more)]));
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    place.json("input.json", &json!({ "n": 1, "items": [{ "n": 2 }, { "n": 3 }, { "n": 4 }] }));
    (place, server)
}

#[test]
fn a_workflow_cut_in_two_by_a_call_is_the_same() {
    let (whole, server) = place();
    let steps = steps();
    whole.json("loop.json", &json!({ "name": "whole", "definition": { "actions": steps } }));
    whole.json("script.json", &json!({ "replies": [] }));
    let (asked, result) = played(&whole, "ask");
    let (made, answer) = (calls(&server), result["result"]["answer"].as_object().unwrap().clone());
    assert_eq!((made.len(), &answer["closed"]), (5, &json!({ "n": 15 })), "{result:#}");

    for cut in 1..steps.len() {
        let (place, server) = place();
        let (front, rest) = steps.split_at(cut);
        // What the first part has written when it calls the second.
        let written: Vec<&str> =
            [&["opened"][..], &["all", "did"], &["asked", "__approved", "__comment", "__approval_data"]][..cut.min(3)]
                .concat();
        let keys: Map<String, Value> = written.iter().map(|key| ((*key).to_owned(), answer[*key].clone())).collect();
        let mut input = keys.clone();
        input.insert("items".to_owned(), json!([{ "n": 2 }, { "n": 3 }, { "n": 4 }]));
        let hand = json!({ "id": "hand", "type": "loop", "properties": { "mode": "react", "objective": "Hand it on.",
            "tools": [{ "type": "workflow", "name": "rest" }], "result_key": "handed" } });
        let actions = [front, &[hand]].concat();
        place.json("loop.json", &json!({ "name": "front", "definition": { "actions": actions } }));
        place.json(
            "workflows/rest.json",
            &json!({ "name": "rest", "description": "The rest.", "definition": { "actions": reading_input(rest, &keys) },
                "input": { "type": "object", "additionalProperties": true } }),
        );
        let replies = [think("rest", Value::Object(input)), complete(json!("handed on"))];
        place.json("script.json", &json!({ "replies": [], "loops": { "hand": replies } }));

        let (asked_in_part, result) = played(&place, if cut < 3 { "hand/ask" } else { "ask" });
        for shown in ["question", "action", "action_input"] {
            assert_eq!(asked_in_part[shown], asked[shown], "cut before step {cut}");
        }
        assert_eq!(calls(&server), made, "cut before step {cut}");
        let mut both = result["result"]["answer"].as_object().unwrap().clone();
        both.remove("handed");
        let below = place.call(&["trace", "r.hand.1.0", "--format", "json"]).json();
        both.extend(below["result"]["answer"].as_object().unwrap().clone());
        assert_eq!(both, answer, "cut before step {cut}");
    }
}
