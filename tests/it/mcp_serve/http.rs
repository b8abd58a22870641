//! The same tools over `POST /mcp` of `loopctl serve`: tokens, both revisions, streams, and clients that leave.

use std::io::{BufRead as _, Read as _, Write as _};

use serde_json::{Value, json};

use super::{calling, modern, offer, project, runs};
use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think, wait_poll_interval, with};
use crate::serve::client::{Reply, Serving};
use crate::serve::reloads::hangup;

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Sends a message of the newest revision.
pub(super) fn send(server: &Serving, token: &str, method: &str, params: Value) -> Reply {
    let bearer = format!("Bearer {token}");
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut headers =
        vec![ACCEPT, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("authorization", &bearer)];
    if method == "tools/call" {
        headers.push(("mcp-name", &name));
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": modern(params) });
    server.send("POST", "/mcp", &headers, message.to_string().as_bytes())
}

/// Sends a message of an older revision.
fn send_old(server: &Serving, more: &[(&str, &str)], message: Value) -> Reply {
    let headers = [&[ACCEPT, ("mcp-protocol-version", "2025-11-25")], more].concat();
    server.send("POST", "/mcp", &headers, with(json!({ "jsonrpc": "2.0" }), message).to_string().as_bytes())
}

/// Waits until something holds.
pub(super) fn until(holds: impl Fn() -> bool) {
    while !holds() {
        wait_poll_interval();
    }
}

/// The messages of a stream.
fn events(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.header("content-type"), Some("text/event-stream"), "{reply:?}");
    let text = String::from_utf8(reply.body.clone()).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A token with these scopes: its text, and its entry of the project file.
fn token(place: &Place, args: &[&str]) -> (String, Value) {
    let made = place.call(&[&["token"], args].concat());
    let entry = made.stderr.lines().nth(1).unwrap();
    (made.stdout.trim().to_owned(), serde_json::from_str(entry).unwrap())
}

#[test]
fn a_client_over_http_has_what_its_token_may_do_and_what_came_of_its_calls() {
    let place = Place::new();
    let note = |key: &str| think("__store_memory__", json!({ "key": key, "value": 1 }));
    offer(&place, "triage", &[note("a"), note("b"), complete(json!("done"))], json!({}));
    let input = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    offer(&place, "refund", &[complete(json!("paid"))], json!({ "input": input }));
    offer(&place, "asks", &[think("__pause_for_human__", json!({ "question": "Which?" }))], json!({}));
    project(&place, &["triage", "refund", "asks"]);
    let (all, all_entry) = token(&place, &["all", "--scope", "run"]);
    let (one, one_entry) = token(&place, &["one", "--scope", "run:refund", "--org", "acme"]);
    let (reads, reads_entry) = token(&place, &["reads", "--scope", "read"]);
    let settings: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    let tokens = json!({ "serve": { "tokens": [all_entry, one_entry, reads_entry] } });
    place.json("loopctl.json", &with(settings, tokens));
    let server = Serving::start(&place, &[]);

    // Who may do what, as on all routes.
    assert_eq!(send(&server, "loopctl-none", "tools/list", json!({})).status, 401);
    let refused = send(&server, &reads, "tools/list", json!({}));
    assert_eq!((refused.status, refused.code()), (403, "forbidden".to_owned()));
    let names = |token: &str| {
        let list = send(&server, token, "tools/list", json!({})).json();
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&all), ["asks", "refund", "triage"]);
    assert_eq!(names(&one), ["refund"]);
    assert_eq!(send(&server, &one, "tools/call", json!({ "name": "triage" })).code(), "forbidden");
    let foreign = [ACCEPT, ("origin", "https://evil.example"), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(server.send("POST", "/mcp", &foreign, b"{}").status, 403);
    for method in ["GET", "DELETE"] {
        let bearer = format!("Bearer {all}");
        let reply = server.send(method, "/mcp", &[("authorization", &bearer), ACCEPT], b"");
        assert_eq!(reply.status, 405, "{method}");
    }

    // What calls give.
    let reply = send(&server, &one, "tools/call", json!({ "name": "refund", "arguments": { "n": 1 } }));
    let given = reply.json()["result"].clone();
    assert_eq!((&given["resultType"], &given["structuredContent"]["answer"]), (&json!("complete"), &json!("paid")));
    let run_id = given["structuredContent"]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(reply.header("location"), Some(&*format!("/agents/{run_id}/status")));
    let bearer = format!("Bearer {reads}");
    let status = server.send("GET", &format!("/agents/{run_id}/status"), &[("authorization", &bearer)], b"");
    assert_eq!(status.status, 404, "a run of another organisation");
    let refused = send(&server, &all, "tools/call", json!({ "name": "refund", "arguments": { "n": "x" } }));
    let refused = refused.json()["result"].clone();
    assert!(refused["isError"] == true && refused.to_string().contains("`n`"), "{refused}");
    let paused = send(&server, &all, "tools/call", json!({ "name": "asks" })).json()["result"].clone();
    let how = paused["structuredContent"]["pause"]["decided"].as_str().unwrap();
    assert!(how.contains("a token with the scope `decide`") && how.contains("/resume"), "{how}");
    let meta = modern(json!({}))["_meta"].clone();
    let streamed = json!({ "name": "triage", "_meta": with(meta.clone(), json!({ "progressToken": "p" })) });
    let all_events = events(&send(&server, &all, "tools/call", streamed));
    let counts: Vec<&Value> = all_events.iter().filter_map(|event| event["params"].get("progress")).collect();
    assert_eq!(counts, [&json!(1), &json!(2), &json!(3)], "{all_events:?}");
    assert_eq!(all_events.last().unwrap()["result"]["structuredContent"]["answer"], "done");
    let keyed = json!({ "name": "triage", "_meta": with(meta, json!({ "loopctl/idempotency-key": "k" })) });
    let id = |reply: Reply| reply.json()["result"]["structuredContent"]["run_id"].clone();
    let (first, again) = (send(&server, &all, "tools/call", keyed.clone()), send(&server, &all, "tools/call", keyed));
    assert_eq!(id(first), id(again));

    // What no request may be.
    let unknown = send(&server, &all, "resources/list", json!({}));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32601)));
    assert_eq!(send(&server, &all, "tools/call", json!({ "name": "nope" })).json()["error"]["code"], -32602);
    let headers = [ACCEPT, ("authorization", &*format!("Bearer {all}")), ("mcp-protocol-version", "2026-07-28")];
    for (body, code) in [("{", -32700), ("[]", -32600), (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, -32602)] {
        let reply = server.send("POST", "/mcp", &headers, body.as_bytes());
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(code)), "{body}");
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(json!({})) });
    let reply = server.send("POST", "/mcp", &headers, message.to_string().as_bytes());
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32020)));
}

#[test]
fn a_client_that_leaves_interrupts_its_run_and_the_same_key_takes_it_up() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let place = calling(&tools, false);
    let log = place.path().join("log.txt");
    let server = Serving::start_logged(&place, &[], &log);
    let meta = with(modern(json!({}))["_meta"].clone(), json!({ "loopctl/idempotency-key": "k", "progressToken": 1 }));
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "slow", "_meta": meta } });
    let body = message.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: slow\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut first = server.connect();
    first.write_all(head.as_bytes()).unwrap();
    tools.wait_for(1);
    let mut seen = [0; 12];
    first.read_exact(&mut seen).unwrap();
    assert_eq!(&seen, b"HTTP/1.1 200");
    drop(first);
    // It leaves before its step ends.
    let run_id = runs(&place)[0].0.clone();
    until(|| std::fs::read_to_string(&log).unwrap().contains("who called for the run has gone"));
    gate.open();
    until(|| runs(&place)[0].1 == "cancelled");
    let taken_up = send(&server, "", "tools/call", json!({ "name": "slow", "_meta": message["params"]["_meta"] }));
    let given = events(&taken_up).pop().unwrap()["result"]["structuredContent"].clone();
    assert_eq!((&given["run_id"], &given["answer"]), (&json!(run_id), &json!("looked")), "{given}");
    assert_eq!(tools.requests().len(), 1);
}

#[test]
fn a_call_of_an_older_client_outlives_its_connection_and_is_cancelled_by_its_session() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let place = calling(&tools, false);
    let server = Serving::start(&place, &[]);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t" } });
    let opened = send_old(&server, &[], json!({ "id": 0, "method": "initialize", "params": params }));
    assert_eq!(opened.json()["result"]["protocolVersion"], "2025-11-25");
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let named = [("mcp-session-id", session.as_str())];
    let notified = send_old(&server, &named, json!({ "method": "notifications/initialized" }));
    assert_eq!((notified.status, notified.body.len()), (202, 0));
    let listed = send_old(&server, &[], json!({ "id": 1, "method": "tools/list" })).json();
    assert_eq!(listed["result"]["tools"][0]["name"], "slow", "without a session too: {listed}");
    let unknown = send_old(&server, &named, json!({ "id": 2, "method": "resources/list" }));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (200, &json!(-32601)));
    let call = json!({ "id": 3, "method": "tools/call", "params": { "name": "slow" } });
    std::thread::scope(|threads| {
        let calling = threads.spawn(|| send_old(&server, &named, call.clone()));
        tools.wait_for(1);
        let other = [("mcp-session-id", "another")];
        let cancelled = json!({ "method": "notifications/cancelled", "params": { "requestId": 3 } });
        assert_eq!(send_old(&server, &other, cancelled.clone()).status, 202);
        assert_eq!(send_old(&server, &named, call.clone()).json()["error"]["code"], -32600);
        assert_eq!(send_old(&server, &named, cancelled).status, 202);
        let given = calling.join().unwrap().json()["result"].clone();
        assert_eq!(given["structuredContent"]["error"]["code"], "cancelled", "{given}");
    });
    gate.open();
    until(|| runs(&place)[0].1 == "cancelled");
    // The next one loses its connection, and continues.
    let body = with(json!({ "jsonrpc": "2.0" }), call).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut lost = server.connect();
    lost.write_all(head.as_bytes()).unwrap();
    tools.wait_for(2);
    drop(lost);
    until(|| runs(&place)[0].1 == "completed");
}

#[test]
fn a_client_that_leaves_an_answered_call_interrupts_its_run_and_the_same_answers_take_it_up() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let place = calling(&tools, false);
    let ask = think("__pause_for_human__", json!({ "question": "Now?" }));
    let replies = [ask, think("look", json!({})), complete(json!("looked"))];
    place.json("slow.script.json", &json!({ "replies": replies }));
    let log = place.path().join("log.txt");
    let server = Serving::start_logged(&place, &[], &log);
    let mut meta = modern(json!({}))["_meta"].clone();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    let asked = send(&server, "", "tools/call", json!({ "name": "slow", "_meta": meta })).json()["result"].clone();
    let responses = json!({ "answer": { "action": "accept", "content": { "answer": "yes" } } });
    let params =
        json!({ "name": "slow", "_meta": meta, "requestState": asked["requestState"], "inputResponses": responses });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: slow\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut first = server.connect();
    first.write_all(head.as_bytes()).unwrap();
    tools.wait_for(1);
    drop(first);
    until(|| std::fs::read_to_string(&log).unwrap().contains("who called for the run has gone"));
    gate.open();
    until(|| runs(&place)[0].1 == "cancelled");
    let taken_up = send(&server, "", "tools/call", params).json()["result"]["structuredContent"].clone();
    assert_eq!((&taken_up["answer"], taken_up.get("note")), (&json!("looked"), None), "{taken_up}");
    assert_eq!((tools.requests().len(), runs(&place).len()), (1, 1));
}

#[test]
fn a_stream_of_changes_says_that_the_tools_of_its_caller_have_changed() {
    let place = Place::new();
    offer(&place, "quick", &[complete(json!("done"))], json!({}));
    project(&place, &["quick", "more"]);
    let log = place.path().join("log.txt");
    let server = Serving::start_logged(&place, &[], &log);
    let discovered = send(&server, "", "server/discover", json!({})).json();
    assert_eq!(discovered["result"]["capabilities"]["tools"], json!({ "listChanged": true }));
    let stream = |id: &str, wanted: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen",
            "params": modern(json!({ "notifications": wanted })) });
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\ncontent-length: {}\r\n\r\n{body}",
            server.address,
            body.len()
        );
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let lines = std::io::BufReader::new(stream).lines().map(Result::unwrap);
        lines.filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
    };
    let meta = |id: &str| json!({ "io.modelcontextprotocol/subscriptionId": id });
    let (mut tools, mut none) = (stream("s", json!({ "toolsListChanged": true })), stream("n", json!({})));
    let first = tools.next().unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"], json!({ "_meta": meta("s"), "notifications": { "toolsListChanged": true } }));
    assert_eq!(none.next().unwrap()["params"], json!({ "_meta": meta("n"), "notifications": {} }));
    // Another script is no other tool.
    let read_again = |times: usize| {
        hangup(&server);
        until(|| std::fs::read_to_string(&log).unwrap().matches("the folder was read again").count() == times);
    };
    offer(&place, "quick", &[complete(json!("other"))], json!({}));
    read_again(1);
    offer(&place, "more", &[complete(json!("done"))], json!({}));
    read_again(2);
    let changed = tools.next().unwrap();
    assert_eq!(
        changed,
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": { "_meta": meta("s") } })
    );
    let list = send(&server, "", "tools/list", json!({})).json();
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 2, "{list}");
    // A loop that is switched off is no tool, and who calls it hears why.
    let off = server.send("POST", "/loops/more/disable", &[], br#"{"reason": "the bank is away"}"#);
    assert_eq!(off.status, 200, "{off:?}");
    assert_eq!(tools.next().unwrap(), changed);
    let list = send(&server, "", "tools/list", json!({})).json();
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["result"]["tools"][0]["name"], "quick");
    let called = send(&server, "", "tools/call", json!({ "name": "more", "arguments": {} })).json();
    assert_eq!(called["result"]["isError"], true, "{called}");
    assert!(called.to_string().contains("the bank is away"), "{called}");
}

#[test]
fn a_question_is_put_to_a_client_whose_token_may_decide_and_to_no_other() {
    let place = Place::new();
    offer(
        &place,
        "asks",
        &[think("__pause_for_human__", json!({ "question": "Which?" })), complete(json!("done"))],
        json!({}),
    );
    project(&place, &["asks"]);
    let (starts, starts_entry) = token(&place, &["starts", "--scope", "run"]);
    let (decides, decides_entry) = token(&place, &["decides", "--scope", "run", "--scope", "decide"]);
    let settings: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    place.json("loopctl.json", &with(settings, json!({ "serve": { "tokens": [starts_entry, decides_entry] } })));
    let server = Serving::start(&place, &[]);
    let mut meta = modern(json!({}))["_meta"].clone();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
    let call = |token: &str, more: Value| {
        let params = with(json!({ "name": "asks", "_meta": meta }), more);
        send(&server, token, "tools/call", params).json()
    };
    let paused = call(&starts, json!({}))["result"].clone();
    assert_eq!(paused["structuredContent"]["status"], "paused", "{paused}");
    let asked = call(&decides, json!({}))["result"].clone();
    assert_eq!(asked["inputRequests"]["answer"]["params"]["message"], "Which?", "{asked}");
    let responses = json!({ "answer": { "action": "accept", "content": { "answer": "this" } } });
    let answered = json!({ "requestState": asked["requestState"], "inputResponses": responses });
    // What was put to one caller is answered by no other.
    assert_eq!(call(&starts, answered.clone())["error"]["code"], -32602);
    // A server that has started again knows what the one before asked.
    drop(server);
    let server = Serving::start(&place, &[]);
    let call = |token: &str, more: Value| {
        let params = with(json!({ "name": "asks", "_meta": meta }), more);
        send(&server, token, "tools/call", params).json()
    };
    let done = call(&decides, answered.clone())["result"]["structuredContent"].clone();
    assert_eq!(done["answer"], "done", "{done}");
    assert_eq!(call(&decides, answered)["result"]["structuredContent"], done);
    let run_id = done["run_id"].as_str().unwrap();
    let trace = place.call(&["trace", run_id, "--format", "json"]).json();
    assert_eq!(trace["decisions"][0]["by"], "decides", "{trace}");
}
