//! Loops and workflows as tools of `loopctl mcp serve` and of `POST /mcp`: both ways to open, what calls give, and how they end.
#![cfg(unix)]

mod asked;
mod client;
mod http;
mod killed;
mod messages;
mod tasks;

use serde_json::{Value, json};

use self::client::StdioClient;
use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think, web, with};

/// What each request of the newest revision says of itself.
fn modern(more: Value) -> Value {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    with(json!({ "_meta": meta }), more)
}

/// Writes a loop that is offered as a tool, whose model gives these replies.
fn offer(place: &Place, name: &str, replies: &[Value], more: Value) {
    place.json(&format!("{name}.script.json"), &json!({ "replies": replies }));
    let properties = json!({ "mode": "react", "model": name, "objective": "Do it.", "tools": [] });
    let document =
        json!({ "type": "loop", "name": name, "description": format!("Does {name}."), "properties": properties });
    place.json(&format!("loops/{name}.json"), &with(document, more));
}

/// The project file, with a model for each loop.
fn project(place: &Place, names: &[&str]) {
    let models: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "provider": "script", "script": format!("{name}.script.json") })))
        .collect();
    let allow = json!({ "hosts": ["127.0.0.1"], "private_addresses": true });
    place.json("loopctl.json", &json!({ "models": models, "allow": allow }));
}

/// A loop that calls a tool of this server, and then ends.
fn calling(server: &Server, approval: bool) -> Place {
    let place = Place::new();
    let look = web("look", &format!("{}/look", server.url()), json!({ "http_method": "POST" }));
    let tool = json!({ "type": "action", "name": "look", "requires_approval": approval });
    let properties = json!({ "mode": "react", "model": "slow", "objective": "Do it.", "tools": [tool] });
    let replies = [think("look", json!({})), complete(json!("looked"))];
    offer(&place, "slow", &replies, json!({ "actions": [look], "properties": properties }));
    project(&place, &["slow"]);
    place
}

/// The runs of the store: their status and their iterations, by id.
fn runs(place: &Place) -> Vec<(String, String, u64)> {
    let list = place.call(&["runs", "--output", "json"]).json();
    let text = |run: &Value, key: &str| run[key].as_str().unwrap().to_owned();
    let all = list.as_array().unwrap();
    all.iter().map(|run| (text(run, "run_id"), text(run, "status"), run["iterations"].as_u64().unwrap())).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one start of the program shows all of it")]
fn a_client_of_either_revision_lists_and_calls_loops_and_reads_what_came_of_them() {
    let place = Place::new();
    let schema = json!({ "type": "object", "properties": { "ticket": { "type": "string" }, "n": { "type": "integer" } },
        "required": ["ticket"], "additionalProperties": false });
    let note = |key: &str| think("__store_memory__", json!({ "key": key, "value": 1 }));
    let steps = [note("a"), note("b"), complete(json!({ "refund": 12.50 }))];
    offer(&place, "triage", &steps, json!({ "input": schema }));
    offer(&place, "asks", &[think("__pause_for_human__", json!({ "question": "Which account?" }))], json!({}));
    let one = |name: &str| json!({ "required": [name], "properties": { name: { "type": "string" } } });
    let either = json!({ "oneOf": [one("id"), one("email")] });
    offer(&place, "fails", &[], json!({ "input": either }));
    offer(&place, "hidden", &[complete(json!("no"))], json!({ "description": " " }));
    project(&place, &["triage", "asks", "fails", "hidden"]);
    let steps = json!([
        { "type": "loop", "name": "triage", "properties": { "ticket": "@input.ticket" }, "outputKey": "triaged" },
        { "type": "PbotForm", "properties": { "question": "Whose is {{input.ticket}}?", "fields": [{ "name": "who", "type": "text" }] } },
    ]);
    let claim =
        json!({ "name": "desk/claim", "description": "Claims.", "input": schema, "definition": { "actions": steps } });
    place.json("workflows/claim.json", &claim);
    let checked = place.call(&["check", "."]);
    assert_eq!(checked.code, 0, "{checked:#?}");
    let mut client = StdioClient::start(&place, &[]);
    // Nothing but `ping` is answered before a client says how it speaks.
    assert_eq!(client.ask("p", "ping", json!({}))["result"], json!({}));
    assert_eq!(client.ask("q", "tools/list", json!({}))["error"]["code"], -32602);
    let discovered = client.ask("d", "server/discover", modern(json!({})))["result"].clone();
    assert_eq!(
        (&discovered["resultType"], &discovered["supportedVersions"][0]),
        (&json!("complete"), &json!("2026-07-28"))
    );
    let list = client.ask("l", "tools/list", modern(json!({})))["result"].clone();
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["asks", "desk_claim", "fails", "triage"]);
    let listed = &list["tools"][3];
    assert_eq!((&listed["description"], &listed["inputSchema"]), (&json!("Does triage."), &schema));
    assert!(
        listed["outputSchema"]["properties"]["answer"].is_object() && listed.get("annotations").is_none(),
        "{listed}"
    );
    assert_eq!(list["tools"][0]["inputSchema"]["type"], "object");
    // Alternatives at the top are said in words: models' interfaces refuse them.
    let text = json!({ "type": "string" });
    let folded = json!({ "type": "object", "properties": { "id": text, "email": text } });
    assert_eq!(list["tools"][2]["inputSchema"], folded);
    let described = list["tools"][2]["description"].as_str().unwrap();
    assert!(described.starts_with("Does fails.\n\n") && described.contains(&either.to_string()), "{described}");
    let call = modern(json!({ "name": "triage", "arguments": { "ticket": "T-1" } }));
    let modern_result = client.ask("m", "tools/call", call)["result"].clone();
    assert_eq!((&modern_result["resultType"], &modern_result["isError"]), (&json!("complete"), &json!(false)));

    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t" } });
    assert_eq!(client.ask("i", "initialize", params)["result"]["protocolVersion"], "2025-06-18");
    let params = json!({ "name": "triage", "arguments": { "ticket": "T-1", "n": 3 }, "_meta": { "progressToken": 7 } });
    client.send("1", "tools/call", params);
    for count in 1..=3 {
        let progress = client.first(|message| message["method"] == "notifications/progress");
        let message = format!("iteration {count}");
        assert_eq!(progress["params"], json!({ "progressToken": 7, "progress": count, "message": message }));
    }
    let result = client.answer(&json!("1"))["result"].clone();
    assert!(result.get("resultType").is_none() && result["isError"] == false, "{result}");
    let given = &result["structuredContent"];
    let said: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(said, *given);
    assert_eq!((&given["status"], &given["termination"]), (&json!("completed"), &json!("complete")));
    assert_eq!(given["answer"].to_string(), r#"{"refund":12.5}"#);
    assert!(given["usage"]["input_tokens"].as_u64().unwrap() > 0);

    let refused = client.call("2", "triage", json!({ "n": "x", "colour": 1 }));
    let why = refused["structuredContent"]["error"]["message"].as_str().unwrap();
    assert!(refused["isError"] == true && why.contains("ticket") && !why.contains("--input"), "{refused}");
    let failed = client.call("3", "fails", json!({ "id": "7" }));
    assert_eq!(
        (&failed["isError"], &failed["structuredContent"]["error"]["code"]),
        (&json!(true), &json!("script_exhausted"))
    );
    let paused = client.call("4", "asks", json!({}))["structuredContent"].clone();
    let run_id = paused["run_id"].as_str().unwrap();
    assert_eq!(
        (&paused["status"], &paused["pause"]["waits_for"][0]["question"]),
        (&json!("paused"), &json!("Which account?"))
    );
    let how = paused["pause"]["decided"].as_str().unwrap();
    assert!(how.contains(&format!("resume {run_id} --answer")) && how.contains("--store sqlite:/"), "{how}");
    let waiting = client.call("5", "desk_claim", json!({ "ticket": "T-2" }))["structuredContent"].clone();
    assert_eq!(waiting["pause"]["waits_for"], json!([{ "kind": "human", "question": "Whose is T-2?" }]), "{waiting}");

    for (params, code, part) in [
        (json!({ "name": "triaje" }), -32602, "triage"),
        (json!({ "name": "hidden" }), -32602, "hidden"),
        (json!({}), -32602, "name"),
        (json!({ "name": "triage", "arguments": 7 }), -32602, "arguments"),
    ] {
        let error = client.ask("6", "tools/call", params)["error"].clone();
        assert!(error["code"] == code && error["message"].as_str().unwrap().contains(part), "{error}");
    }
    assert_eq!(client.ask("7", "resources/list", json!({}))["error"]["code"], -32601);
    for (line, code) in
        [(&b"{"[..], -32700), (b"[]", -32600), (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600)]
    {
        client.write(line);
        assert_eq!(client.answer(&Value::Null)["error"]["code"], code);
    }
    client.write(&vec![b'x'; (4 << 20) + 2]);
    assert_eq!(client.answer(&Value::Null)["error"]["code"], -32600);
    // A frame that is too long hides no other.
    assert_eq!(client.ask("8", "ping", json!({}))["result"], json!({}));
    assert_eq!(client.end(), Vec::<Value>::new());
    let all = runs(&place);
    assert_eq!(all.len(), 5, "{all:?}");
}

#[test]
fn a_cancelled_call_ends_after_its_step_without_an_answer_and_its_key_takes_it_up() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |number, _| match number {
        0 => Answer::json("{}").behind(&held),
        _ => Answer::json("{}"),
    });
    let place = calling(&server, false);
    let mut client = StdioClient::open(&place, &[]);
    let call = json!({ "name": "slow", "_meta": { "loopctl/idempotency-key": "k" } });
    client.send("1", "tools/call", call.clone());
    server.wait_for(1);
    assert_eq!(client.ask("1", "ping", json!({}))["result"], json!({}));
    let twice = client.ask("1", "tools/call", call.clone());
    assert_eq!(twice["error"]["code"], -32600, "{twice}");
    client.notify("notifications/cancelled", json!({ "requestId": "1" }));
    client.notify("notifications/cancelled", json!({ "requestId": "other" }));
    assert_eq!(client.ask("2", "ping", json!({}))["result"], json!({}));
    gate.open();
    // The step ended, and no other one began.
    let given = client.ask("3", "tools/call", call)["result"]["structuredContent"].clone();
    assert_eq!((&given["status"], &given["answer"]), (&json!("completed"), &json!("looked")), "{given}");
    let other = json!({ "name": "slow", "arguments": { "n": 1 }, "_meta": { "loopctl/idempotency-key": "k" } });
    let other = client.ask("4", "tools/call", other)["result"].clone();
    let error = &other["structuredContent"]["error"];
    let said = error["message"].as_str().unwrap();
    assert!(error["code"] == "run_id_conflict" && said.contains("`loopctl/idempotency-key`"), "{other}");
    assert_eq!(client.end(), Vec::<Value>::new());
    let all = runs(&place);
    assert_eq!(all, [(given["run_id"].as_str().unwrap().to_owned(), "completed".to_owned(), 2)]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_end_of_the_input_ends_the_process_after_the_step_and_the_run_can_be_resumed() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let place = calling(&server, false);
    let mut client = StdioClient::open(&place, &["--max-concurrent-runs", "1"]);
    client.send("1", "tools/call", json!({ "name": "slow" }));
    server.wait_for(1);
    // It waits for its turn, which does not come.
    client.send("2", "tools/call", json!({ "name": "slow" }));
    client.close();
    let waited = client.answer(&json!("2"));
    assert_eq!(waited["result"]["structuredContent"]["error"]["code"], "stopped", "{waited}");
    gate.open();
    let stopped = client.answer(&json!("1"))["result"].clone();
    assert_eq!(
        (&stopped["isError"], &stopped["structuredContent"]["error"]["code"]),
        (&json!(true), &json!("interrupted"))
    );
    assert_eq!(client.end(), Vec::<Value>::new());
    let all = runs(&place);
    assert_eq!((all.len(), all[0].1.as_str(), all[0].2), (1, "cancelled", 1), "{all:?}");
    let resumed = place.call(&["resume", &all[0].0, "--output", "json"]);
    assert_eq!(resumed.json()["result"]["answer"], "looked", "{resumed:#?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_run_that_waits_for_a_time_that_is_near_continues_in_its_call() {
    let place = Place::new();
    place.json("loopctl.json", &json!({}));
    for (name, time) in [("quick", "1s"), ("long", "1h")] {
        let wait = json!({ "type": "wait", "id": "w", "properties": { "for": time } });
        place.json(
            &format!("workflows/{name}.json"),
            &json!({ "name": name, "description": "Waits.", "definition": { "actions": [wait], "output": "waited" } }),
        );
    }
    let mut client = StdioClient::open(&place, &[]);
    let quick = client.call("1", "quick", json!({}))["structuredContent"].clone();
    assert_eq!((&quick["status"], &quick["answer"]), (&json!("completed"), &json!("waited")), "{quick}");
    let long = client.call("2", "long", json!({}));
    assert_eq!(long["structuredContent"]["status"], "paused", "{long}");
    let said = long.to_string();
    assert!(said.contains("the run waits, and continues by") && !said.contains("is decided by"), "{said}");
    client.end();
}

#[test]
fn an_approval_is_not_put_to_the_client() {
    let server = Server::new(Vec::new());
    let place = calling(&server, true);
    let mut client = StdioClient::open(&place, &[]);
    let paused = client.call("1", "slow", json!({}));
    let given = &paused["structuredContent"];
    assert_eq!((&given["status"], &given["termination"]), (&json!("paused"), &json!("approval")));
    assert_eq!(given["pause"]["waits_for"], json!([{ "kind": "approval" }]));
    let text = paused.to_string();
    assert!(!text.contains("--approve") && !text.contains("resume") && !text.contains("look"), "{text}");
    client.end();
    assert!(server.requests().is_empty());
}

#[test]
fn many_calls_at_once_are_answered_once_each_and_those_over_the_bound_at_once() {
    let place = Place::new();
    offer(&place, "quick", &[complete(json!("done"))], json!({}));
    project(&place, &["quick"]);
    let mut client = StdioClient::start(&place, &["--store", "memory"]);
    let calls = if crate::common::is_nightly() { 1_000 } else { 300 };
    for number in 0..calls {
        client.send(&number.to_string(), "tools/call", modern(json!({ "name": "quick" })));
    }
    let mut busy = 0;
    for number in 0..calls {
        let given = client.answer(&json!(number.to_string()))["result"].clone();
        match given["structuredContent"]["error"]["code"].as_str() {
            Some("busy") => busy += 1,
            _ => assert_eq!(given["structuredContent"]["answer"], "done", "{given}"),
        }
    }
    assert!(busy < calls - 200, "{busy}");
    assert_eq!(client.end(), Vec::<Value>::new());
}

#[test]
fn what_is_not_offered_is_said() {
    let place = Place::new();
    offer(&place, "quick", &[complete(json!("done"))], json!({ "description": "" }));
    project(&place, &["quick", "a.b", "a_b"]);
    let ran = place.call(&["mcp", "serve", "."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    assert!(ran.stderr.contains("give those that are meant for it a `description`"), "{ran:#?}");
    offer(&place, "a.b", &[complete(json!("done"))], json!({}));
    offer(&place, "a_b", &[complete(json!("done"))], json!({}));
    let ran = place.call(&["mcp", "serve", "."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:#?}");
    assert!(ran.stderr.contains("`a.b` is not offered: it would be the tool `a_b`"), "{ran:#?}");
}
