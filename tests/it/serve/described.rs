//! The description of the routes: it holds together, and answers are as it says.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{complete, think};
use crate::serve::client::{Serving, place};
use crate::serve::workflows;

/// Every `$ref` below a value.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Whether a value is as a schema of the description says.
fn fits(described: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let mut whole = schema.clone();
    whole["components"] = described["components"].clone();
    let validator = jsonschema::validator_for(&whole).expect("a schema");
    validator.validate(value).map_err(|error| format!("{error}: {value}"))
}

#[test]
fn the_description_holds_together_and_answers_are_as_it_says() {
    let place = place(json!({}), &[think("__pause_for_human__", json!({ "question": "?" })), complete(json!(1))]);
    let server = Serving::start(&place, &[]);
    let described = server.get("/openapi.json").json();
    assert_eq!(described["openapi"], "3.1.0");
    let mut found = Vec::new();
    references(&described, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("inside");
        assert!(described.pointer(pointer).is_some(), "{reference}");
    }
    let run = server.execute("?include_trace=true", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    let answers = [
        ("POST", "/agents/execute", "/agents/execute?include_trace=true".to_owned(), r#"{"loop":"test"}"#),
        ("POST", "/agents/execute", "/agents/execute?async=true".to_owned(), r#"{"loop":"test"}"#),
        ("POST", "/agents/execute", "/agents/execute".to_owned(), r#"{"loop":"tes"}"#),
        ("POST", "/agents/execute", "/agents/execute".to_owned(), r#"{"objective":"x","tools":[],"config":{"max":1}}"#),
        ("GET", "/agents", "/agents?limit=1".to_owned(), ""),
        ("GET", "/agents", "/agents?limit=0".to_owned(), ""),
        ("GET", "/agents/{id}/status", format!("/agents/{id}/status?include_trace=true"), ""),
        ("GET", "/agents/{id}/status", "/agents/none/status".to_owned(), ""),
        ("GET", "/agents/{id}/trace", format!("/agents/{id}/trace"), ""),
        ("GET", "/agents/{id}/trace", format!("/agents/{id}/trace?at=1"), ""),
        ("GET", "/agents/{id}/trace", format!("/agents/{id}/trace?at=9"), ""),
        ("POST", "/agents/{id}/resume", format!("/agents/{id}/resume"), r#"{"answer":"yes"}"#),
        ("POST", "/agents/{id}/resume", format!("/agents/{id}/resume"), r#"{"answer":"yes"}"#),
        ("POST", "/agents/{id}/retry", format!("/agents/{id}/retry"), "{}"),
        ("DELETE", "/agents/{id}", format!("/agents/{id}"), ""),
        ("GET", "/loops", "/loops".to_owned(), ""),
        ("POST", "/loops/{name}/disable", "/loops/test/disable".to_owned(), r#"{"reason":"x"}"#),
        ("POST", "/loops/{name}/enable", "/loops/test/enable".to_owned(), "{}"),
        ("GET", "/audit", "/audit?limit=5".to_owned(), ""),
        ("POST", "/agents/bulk", "/agents/bulk".to_owned(), r#"{"action":"retry","loop":"test","dry_run":true}"#),
        ("POST", "/check", "/check".to_owned(), "{}"),
        ("GET", "/healthz", "/healthz".to_owned(), ""),
        ("GET", "/readyz", "/readyz".to_owned(), ""),
        ("GET", "/openapi.json", "/openapi.json".to_owned(), ""),
    ];
    for (method, route, target, body) in answers {
        let reply = server.send(method, &target, &[], body.as_bytes());
        let operation = &described["paths"][route][method.to_lowercase()];
        let answer = operation["responses"].get(reply.status.to_string()).unwrap_or(&operation["responses"]["default"]);
        let schema = &answer["content"][reply.header("content-type").unwrap()]["schema"];
        assert!(schema.is_object(), "{method} {target} {}", reply.status);
        fits(&described, schema, &reply.json()).unwrap_or_else(|why| panic!("{method} {target}: {why}"));
        if !body.is_empty() && reply.status < 300 {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_object() {
                fits(&described, schema, &serde_json::from_str(body).unwrap()).unwrap();
            }
        }
    }
}

#[test]
fn what_an_answer_leaves_out_is_not_required() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "done": true })));
    let place = workflows::place(
        &tools,
        json!({ "output": "@input.items", "actions": [workflows::act("@input.items", None)] }),
    );
    let server = Serving::start(&place, &[]);
    let run = server.post("/workflows/pay/execute", &json!({ "input": { "items": [1] } })).json();
    let view = server.get(&format!("/agents/{}/trace?at=", run["run_id"].as_str().unwrap())).json();
    assert!(view["questions"].is_null() && view["steps"][0]["status"] == "completed", "{view:#}");
    let described = server.get("/openapi.json").json();
    fits(&described, &json!({ "$ref": "#/components/schemas/StepView" }), &view).unwrap();
}

#[test]
fn what_is_described_of_keys_sessions_and_moments_is_what_is_taken() {
    let place = place(json!({}), &[complete(json!(1))]);
    let server = Serving::start(&place, &[]);
    let described = server.get("/openapi.json").json();
    let parameter = |path: &str, name: &str| {
        let all = described.pointer(path).and_then(Value::as_array).expect("parameters");
        all.iter().find(|one| one["name"] == name).expect("the parameter")["schema"].clone()
    };
    let key = parameter("/paths/~1agents~1execute/post/parameters", "Idempotency-Key");
    for text in ["k", "a key", "~!", &"x".repeat(255), "", "\u{e9}", &"x".repeat(256)] {
        let reply = server.send("POST", "/agents/execute", &[("idempotency-key", text)], br#"{"loop":"test"}"#);
        assert_eq!(reply.status == 200, fits(&described, &key, &json!(text)).is_ok(), "{text:?} {reply:?}");
    }
    let request = json!({ "$ref": "#/components/schemas/LoopRequest" });
    for session in ["s", "a@b.c+d=e~f_g-h", &"x".repeat(128), "", "a:b", "a b", "\u{e9}", &"x".repeat(129)] {
        let body = json!({ "loop": "test", "session": session });
        let reply = server.execute("", body.clone());
        assert_eq!(reply.status == 200, fits(&described, &request, &body).is_ok(), "{session:?} {reply:?}");
    }
    for name in ["since", "until"] {
        assert_eq!(parameter("/paths/~1agents/get/parameters", name)["format"], "date-time");
        assert_eq!(server.get(&format!("/agents?{name}=2026-01-31T12:00:00.5%2B01:00")).status, 200);
        assert_eq!(server.get(&format!("/agents?{name}=yesterday")).status, 400);
    }
    let status = parameter("/paths/~1agents/get/parameters", "status");
    for word in ["running", "paused", "completed", "failed", "cancelled", "over"] {
        let taken = server.get(&format!("/agents?status={word}")).status == 200;
        assert_eq!(taken, fits(&described, &status, &json!(word)).is_ok(), "{word}");
    }
}

#[test]
fn each_event_of_a_stream_is_as_it_is_described() {
    let place = place(json!({}), &[complete(json!(1))]);
    let server = Serving::start(&place, &[]);
    let described = server.get("/openapi.json").json();
    let schema = "/paths/~1agents~1{id}~1events/get/responses/200/content/text~1event-stream/schema";
    let schema = described.pointer(schema).expect("a schema");
    let run = server.execute("", json!({ "loop": "test" })).json();
    for (id, data) in server.events(run["agent_run_id"].as_str().unwrap(), &[]) {
        fits(&described, schema, &json!({ "id": id, "data": data.to_string() })).unwrap();
    }
    assert!(fits(&described, schema, &json!("id: 0.0")).is_err());
}
