//! Inputs and answers that a model wrote otherwise than their schema says: the tool gets what the schema says where there is
//! one reading, and the model reads what is wrong where there is none.

use serde_json::{Value, json};

use crate::common::dialects::{DIALECTS, Says, answers, calls};
use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, observed, think, web};

fn place(url: &str) -> Place {
    let place = Place::new();
    let parameters = json!({ "type": "object", "required": ["id"], "additionalProperties": false, "properties": {
        "id": { "type": "string" }, "limit": { "type": "integer" }, "open": { "type": "boolean" },
        "tags": { "type": "array", "items": { "type": "string" } }, "note": { "type": ["string", "null"] } } });
    let project = json!({ "allow": { "private_addresses": true }, "models": { "m": { "provider": "openai",
        "base_url": format!("{url}/v1") } }, "model": "m" });
    place.actions(&[web("find", &format!("{url}/find"), json!({ "parameters": parameters }))], &project);
    place
}

fn set(place: &Place, name: &str, value: Value) {
    let path = place.path().join("loop.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).expect("it is there")).expect("JSON");
    document["properties"][name] = value;
    place.json("loop.json", &document);
}

#[test]
fn an_input_with_one_reading_reaches_the_tool_at_once_in_every_dialect() {
    let given = json!({ "id": 7, "limit": null, "open": "true", "tags": "[\"a\"]", "note": null });
    let meant = json!({ "id": "7", "open": true, "tags": ["a"], "note": null });
    for dialect in DIALECTS {
        let (turn, end) = (calls("T", &[("find", given.clone())]), answers("T", "done"));
        let says: Vec<Says> = vec![turn, end];
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let server = Server::with(move |_, request| {
            if !request.path.starts_with("/v1") {
                return Answer::json("{\"found\": 1}");
            }
            let turn = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            says[turn.min(1)].reply(dialect, request, turn)
        });
        let place = place(&server.url());
        set(&place, "dialect", json!(dialect));
        let ran = place.call(&["run", "loop.json", "--output", "json", "--store", "memory"]);
        let result = ran.json();
        assert_eq!((ran.code, &result["trace"][0]["action_input"]), (0, &meant), "{dialect}: {ran:#?}");
        assert_eq!(result["metadata"]["tool_calls_made"], 1, "{dialect}: {result:#}");
        let requests = server.requests();
        let path = requests.iter().map(|request| request.path.clone()).find(|path| path.starts_with("/find"));
        assert!(path.as_ref().is_some_and(|path| !path.contains("limit")), "{path:?}");
    }
}

#[test]
fn an_input_without_one_reading_is_reported_with_all_its_faults() {
    let place = place("http://127.0.0.1:1");
    for (input, words) in [
        (json!({ "id": null, "limit": null }), "/id"),
        (json!({ "limit": null }), "id"),
        (json!({ "id": "A", "limit": "many" }), "/limit"),
        (json!({ "id": "A", "tags": "a, b" }), "/tags"),
        (json!({ "id": "A", "open": 1 }), "/open"),
    ] {
        let trace = place.calls(&[think("find", input.clone())]);
        let why = observed(&trace[0]);
        assert!(why.contains("was not accepted") && why.contains(words), "{input}: {why}");
        assert_eq!(trace[0]["action_input"], input, "what is refused is shown as it was written");
    }
}

#[test]
fn confidence_is_read_as_a_text_in_percent_and_as_null() {
    for (written, meant) in
        [(json!("0.9"), 0.9), (json!(95), 0.95), (json!("95%"), 0.95), (json!(null), 1.0), (json!(0.4), 0.4)]
    {
        let place = Place::new();
        place.looped(&json!({}));
        let input = json!({ "answer": "ok", "confidence": written, "summary": null });
        place.script(&[think("__complete__", input)]);
        let (ran, result) = place.run(&[]);
        let confidence = result["result"]["confidence"].as_f64();
        assert_eq!((ran.code, confidence), (0, Some(meant)), "{written}: {ran:#?}");
    }
    let place = Place::new();
    place.looped(&json!({}));
    let unsure = think("__complete__", json!({ "answer": "ok", "confidence": "rather high" }));
    place.script(&[unsure, complete(json!("ok"))]);
    let (ran, result) = place.run(&[]);
    assert_eq!((ran.code, &result["trace"][0]["success"]), (0, &json!(false)), "{ran:#?}");
}

#[test]
fn an_answer_with_one_reading_is_what_its_schema_says() {
    let schema = json!({ "type": "object", "required": ["count"], "additionalProperties": false, "properties": {
        "count": { "type": "integer" }, "note": { "type": "string" } } });
    for written in [
        json!({ "count": "3", "note": null }),
        json!("{\"count\": 3, \"note\": null}"),
        json!("```json\n{\"count\": \"3\"}\n```"),
    ] {
        let place = Place::new();
        place.looped(&json!({ "answer_schema": schema }));
        place.script(&[complete(written.clone())]);
        let (ran, result) = place.run(&[]);
        assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!({ "count": 3 })), "{written}: {ran:#?}");
    }
}

#[test]
fn an_optional_member_that_is_null_is_left_out_of_the_input_of_a_run_and_of_an_edit() {
    let place = Place::new();
    let input = json!({ "type": "object", "required": ["s"], "additionalProperties": false, "properties": {
        "s": { "type": "string" }, "n": { "type": "integer" }, "note": { "type": ["string", "null"] },
        "l": { "type": "array", "items": { "type": "integer" } } } });
    let flow = json!({ "name": "w", "input": input, "definition": { "actions": [], "output": { "all": "@input" } } });
    place.json("flow.json", &flow);
    let list: Vec<u32> = (0..20_000).collect();
    for (given, meant) in [
        (json!({ "s": "a", "n": null }), Some(json!({ "s": "a" }))),
        (json!({ "s": "a", "n": null, "note": null }), Some(json!({ "s": "a", "note": null }))),
        (json!({ "s": "a", "n": null, "l": list }), Some(json!({ "s": "a", "l": list }))),
        (json!({ "s": null }), None),
        (json!({ "s": "a", "l": [null] }), None),
    ] {
        place.json("input.json", &given);
        let ran =
            place.call(&["run", "flow.json", "--input-file", "input.json", "--output", "json", "--store", "memory"]);
        match meant {
            Some(meant) => assert_eq!(ran.json()["result"]["answer"]["all"], meant, "{ran:.400?}"),
            None => assert!(ran.code == 2 && ran.stderr.contains("null"), "{given}: {ran:.400?}"),
        }
    }
    let args = ["run", "flow.json", "--input", "s=a", "--input", "n=null", "--output", "json", "--store", "memory"];
    assert_eq!(place.call(&args).json()["result"]["answer"]["all"], json!({ "s": "a" }));
    // An edit.
    let server = Server::with(|_, _| Answer::json("{\"found\": 1}"));
    let parameters = json!({ "type": "object", "required": ["id"], "properties": {
        "id": { "type": "string" }, "limit": { "type": "integer" } } });
    let find =
        web("find", &format!("{}/find", server.url()), json!({ "parameters": parameters, "requires_approval": true }));
    place.json("actions/all.json", &json!([find]));
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let ask = json!({ "type": "find", "id": "find", "properties": { "id": "x" } });
    place.json("flow.json", &json!({ "name": "w", "definition": { "actions": [ask] } }));
    assert_eq!(place.call(&["run", "flow.json", "--run-id", "r"]).code, 3);
    let refused = place.call(&["resume", "r", "--edit", "{\"id\": null}"]);
    assert_eq!((refused.code, server.requests().len()), (2, 0), "{refused:?}");
    let edited = place.call(&["resume", "r", "--edit", "{\"id\": \"7\", \"limit\": null}"]);
    assert_eq!(edited.code, 0, "{edited:?}");
    assert_eq!(server.requests()[0].path, "/find?id=7");
}
