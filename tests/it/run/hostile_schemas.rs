//! Schemas and inputs that were made to take all the time that there is, through the real program: a call
//! gets its fault, a document its diagnostic, and the run goes on.

use serde_json::{Value, json};

use super::http_tool::{anywhere, call_each};
use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, observed, think};

/// A loop whose tool takes what this schema takes.
fn taking(parameters: &Value) -> Place {
    let place = Place::new();
    place.actions(
        &[json!({ "action_name": "find", "kind": "command", "program": "echo", "args": ["found"],
            "description": "Finds.", "parameters": parameters })],
        &json!({ "allow": { "commands": ["echo"] } }),
    );
    place
}

/// A filter of `and`, `or`, `not` and `eq`, as people write it.
fn filters() -> Value {
    let of = |op: &str| {
        json!({ "type": "object", "required": ["op", "of"],
            "properties": { "op": { "const": op }, "of": { "type": "array", "items": { "$ref": "#/$defs/filter" } } } })
    };
    let eq = json!({ "type": "object", "required": ["op", "field", "value"],
        "properties": { "op": { "const": "eq" }, "field": { "type": "string" }, "value": { "type": "string" } } });
    json!({ "type": "object", "properties": { "filter": { "$ref": "#/$defs/filter" } }, "required": ["filter"],
        "$defs": { "filter": { "oneOf": [of("and"), of("or"), of("not"), eq] } } })
}

fn nested(leaf: Value) -> Value {
    let ops = ["and", "or", "not"];
    json!({ "filter": (0..20).fold(leaf, |inner, at| json!({ "op": ops[at % 3], "of": [inner] })) })
}

/// Forty parts that each ask twice for the next.
fn doubling() -> Value {
    let mut parts = serde_json::Map::new();
    for at in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
        parts.insert(format!("d{at}"), json!({ "allOf": [next, next] }));
    }
    parts.insert("d40".to_owned(), json!({ "required": ["a"] }));
    json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/e" } }, "$ref": "#/$defs/d0",
        "$defs": parts.into_iter().chain([("e".to_owned(), json!({}))]).collect::<serde_json::Map<_, _>>() })
}

#[test]
fn a_filter_nested_twenty_deep_with_a_wrong_leaf_gets_its_fault_and_the_run_goes_on() {
    let wrong = json!({ "op": "eq", "field": 7, "value": null });
    let right = json!({ "op": "eq", "field": "a", "value": "b" });
    let trace = taking(&filters()).calls(&[think("find", nested(wrong)), think("find", nested(right))]);
    let said = observed(&trace[0]);
    assert!(said.contains("matches none of the 4 allowed forms; by the nearest one"), "{said}");
    assert_eq!(trace[0]["success"], false);
    assert_eq!(trace[1]["success"], true, "the twin: with a right leaf the call is made");
}

#[test]
fn a_run_that_met_such_an_input_is_resumed_and_judges_it_as_before() {
    let place = taking(&filters());
    let wrong = json!({ "op": "eq", "field": 7, "value": null });
    let ask = think("__pause_for_human__", json!({ "question": "Go on?" }));
    let replies = [think("find", nested(wrong)), ask, complete(json!("done"))];
    place.json("script.json", &json!({ "replies": replies }));
    let run = ["run", "loop.json", "--script", "script.json", "--output", "json", "--timeout-ms", "60000"];
    let ran = place.call(&run);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let id = ran.json()["run_id"].as_str().expect("an id").to_owned();
    let ran = place.call(&["resume", &id, "--answer", "yes", "--script", "script.json", "--output", "json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let trace = ran.json()["trace"].clone();
    assert!(observed(&trace[0]).contains("matches none of the 4 allowed forms"), "{trace:#}");
    assert_eq!(trace[1]["observation"], "yes");
}

#[test]
fn a_schema_whose_parts_double_forty_times_is_checked_and_run() {
    let place = taking(&doubling());
    let ran = place.call(&["check", "loop.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let trace = place.calls(&[think("find", json!({ "b": 1 })), think("find", json!({ "a": 1 }))]);
    assert!(observed(&trace[0]).contains("lacks the property `a`"), "{:#}", trace[0]);
    assert_eq!(trace[1]["success"], true);
}

#[test]
fn an_input_that_takes_more_work_than_a_comparison_may_is_a_fault_of_the_call() {
    let forms: Vec<Value> = (0..3_000).map(|at| json!({ "required": [format!("r{at}")] })).collect();
    let place = taking(&json!({ "type": "object", "properties": { "all": { "items": { "anyOf": forms } } } }));
    let many = |count: usize| json!({ "all": vec![json!({ "r2999": 1 }); count] });
    let trace = place.calls(&[think("find", many(8_000)), think("find", many(10))]);
    assert!(observed(&trace[0]).contains("takes more work to compare with its schema"), "{:#}", trace[0]);
    assert_eq!(trace[1]["success"], true, "the twin: less of it is compared");
}

#[test]
fn a_document_of_patterns_that_compile_to_much_is_refused_by_check_and_by_run() {
    let parts = |count: usize| -> Value {
        let part = |at: usize| (format!("p{at}"), json!({ "pattern": format!("^\\p{{L}}{{10}}{at}$") }));
        json!({ "type": "object", "properties": (0..count).map(part).collect::<serde_json::Map<_, _>>() })
    };
    let place = taking(&parts(1_500));
    let ran = place.call(&["check", "loop.json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("compile to more than 16 MiB"), "{said}");
    assert!(place.refused().contains("compile to more than 16 MiB"));
    let ran = taking(&parts(8)).call(&["check", "loop.json"]);
    assert_eq!(ran.code, 0, "the twin: {ran:#?}");
}

#[test]
fn a_key_that_stands_twice_in_what_a_tool_gives_back_is_kept_and_named() {
    let server = Server::with(|_, request| match request.path.as_str() {
        "/twice" => Answer::json("{\"a\":1,\"a\":2}"),
        "/reserved" => Answer::json(r#"{"$serde_json::private::RawValue":"{\"a\":5,\"a\":1000}"}"#),
        "/number" => Answer::json(r#"{"\u0024serde_json::private::Number":"5"}"#),
        "/deep" => Answer::json("{\"rows\":[{\"id\":7,\"to\\u006bey\":\"x\",\"tokey\":\"y\"}]}"),
        _ => Answer::json("{\"a\":1,\"b\":{\"a\":2}}"),
    });
    let urls: Vec<String> =
        ["twice", "deep", "once", "reserved", "number"].map(|path| format!("{}/{path}", server.url())).to_vec();
    let trace = call_each(&urls, &anywhere());
    let (twice, deep) = (observed(&trace[0]), observed(&trace[1]));
    assert!(twice.contains("stands twice in an object"), "{twice}");
    assert!(trace[0]["observation"].as_str().expect("a text").ends_with("\n{\"a\":1,\"a\":2}"), "{:#}", trace[0]);
    assert!(deep.contains("tokey"), "{deep}");
    assert_eq!(trace[2]["observation"], json!({ "a": 1, "b": { "a": 2 } }), "the twin");
    for entry in &trace[3..5] {
        assert!(observed(entry).contains("is reserved") && entry["observation"].is_string(), "{entry:#}");
    }
}

#[cfg(unix)]
#[test]
fn a_key_that_stands_twice_in_what_a_program_prints_is_kept_and_named() {
    let place = Place::new();
    let say = |name: &str, text: &str| json!({ "action_name": name, "kind": "command", "program": "echo", "args": [text], "description": "Says." });
    place.actions(
        &[say("twice", "{\"ok\":false,\"ok\":true}"), say("once", "{\"ok\":true}")],
        &json!({ "allow": { "commands": ["echo"] } }),
    );
    let trace = place.calls(&[think("twice", json!({})), think("once", json!({}))]);
    let said = observed(&trace[0]);
    assert!(said.contains("stands twice in an object") && said.contains("false"), "{said}");
    assert!(!observed(&trace[1]).contains("stands twice"), "the twin");
}

#[cfg(unix)]
#[test]
fn a_step_has_the_text_in_which_a_key_is_twice_as_it_came_and_a_path_into_it_names_the_key() {
    let text = "{\"fee\":1,\"fee\":2}";
    let server = Server::with(move |_, _| Answer::json(text));
    let place = Place::new();
    let say = json!({ "action_name": "say", "kind": "command", "program": "printf", "args": ["%s", text], "description": "Says." });
    let get = crate::common::web("get", &server.url(), json!({}));
    place.json("actions/all.json", &json!([say, get]));
    place.json("loopctl.json", &json!({ "allow": { "commands": ["printf"], "private_addresses": true } }));
    for kind in ["say", "get"] {
        let flow = |output: Value| {
            let step = json!({ "type": kind, "properties": {}, "outputKey": "a" });
            place.json("flow.json", &json!({ "name": "w", "definition": { "actions": [step], "output": output } }));
            place.call(&["run", "flow.json", "--output", "json", "--store", "memory"])
        };
        let ran = flow(json!("@a"));
        assert_eq!(ran.json()["result"]["answer"], json!(text), "{ran:#?}");
        let ran = flow(json!({ "fee": "@a.fee" }));
        assert!(ran.code == 1 && ran.stdout.contains("`fee` twice in one object"), "{ran:#?}");
    }
}
