//! What only providers write: the ids of native calls, and reasoning that they want back.

use serde_json::{Value, json};

use crate::common::Place;
use crate::common::dialects::{answers, calls};
use crate::common::server::Server;
use crate::record::fits_its_schema;

/// A run of the dialect `tool_calls` at a server of this provider, recorded as the scenario `as it was`.
fn recorded(provider: &str, more: &[&str]) -> (Place, String) {
    let said =
        [calls("Look.", &[("look", json!({ "at": "a" })), ("look", json!({ "at": "b" }))]), answers("Done.", "seen")];
    let server = Server::reading(move |turn, request| said[turn].reply("tool_calls", request, turn));
    let place = Place::new();
    let look = json!({ "action_name": "look", "kind": "command", "program": "echo", "args": ["{\"id\": 7}"], "description": "Looks.",
        "parameters": { "type": "object", "properties": { "at": { "type": "string" } }, "required": ["at"] } });
    place.json("actions/look.json", &look);
    let properties = json!({ "mode": "react", "objective": "Look.", "max_iterations": 4, "model": "main", "dialect": "tool_calls",
        "tools": [{ "type": "action", "name": "look" }] });
    place.json("loop.json", &json!({ "type": "loop", "name": "looks", "properties": properties }));
    let model = json!({ "provider": provider, "model": "m", "base_url": server.url() });
    place.json("loopctl.json", &json!({ "models": { "main": model }, "allow": { "commands": ["echo"] } }));
    let keys = [("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")];
    let ran = place.call_with(&["run", "loop.json", "--run-id", "r", "--output", "json"], &keys);
    assert_eq!(ran.code, 0, "{ran:?}");
    let args = ["record", "r", "-o", "r.rec.json", "--scenario", "as it was"];
    let recorded = place.call(&[args.as_slice(), more].concat());
    assert_eq!(recorded.code, 0, "{recorded:?}");
    let text = std::fs::read_to_string(place.path().join("r.rec.json")).unwrap();
    fits_its_schema(&text);
    (place, text)
}

#[test]
fn the_ids_of_native_calls_are_recorded_and_another_id_is_not_stale() {
    for (provider, ids) in [("openai", ["id_0_0", "id_0_1"]), ("anthropic", ["toolu_0_0", "toolu_0_1"])] {
        let (place, text) = recorded(provider, &[]);
        let recording: Value = serde_json::from_str(&text).unwrap();
        let calls = recording["entries"][0]["reply"]["calls"].as_array().unwrap();
        assert_eq!(calls.iter().map(|call| call["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
        let tested = place.call(&["test"]);
        assert_eq!(tested.code, 0, "{tested:?}");
        // An id means nothing: with another one, the recording is still what the model was asked.
        place.file("r.rec.json", text.replace(ids[1], "another"));
        let tested = place.call(&["test"]);
        assert_eq!(tested.code, 0, "{tested:?}");
        // What was called is compared.
        place.file("r.rec.json", text.replace("{\\\"at\\\":\\\"b\\\"}", "{\\\"at\\\":\\\"c\\\"}"));
        let stale = place.call(&["test"]);
        assert_eq!(stale.code, 1, "{stale:?}");
        assert!(stale.stderr.contains("stale"), "{stale:?}");
    }
}

#[test]
fn reasoning_that_its_provider_wants_back_is_recorded_on_request_only() {
    let (place, text) = recorded("anthropic", &[]);
    assert!(!text.contains("signature"), "{text}");
    assert_eq!(place.call(&["test"]).code, 0);
    let (place, text) = recorded("anthropic", &["--raw"]);
    let recording: Value = serde_json::from_str(&text).unwrap();
    let raw = &recording["entries"][0]["reply"]["raw"];
    assert!(raw["origin"].as_str().unwrap().contains("anthropic"), "{raw}");
    assert!(raw["sealed"].as_str().unwrap().contains("\"signature\":\"s\""), "{raw}");
    let tested = place.call(&["test", "--crash"]);
    assert_eq!(tested.code, 0, "{tested:?}");
}
