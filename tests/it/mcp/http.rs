//! Servers over HTTP, of both revisions: what is sent, and what of their answers is read.

use serde_json::{Value, json};

use super::pin;
use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, observed, think};

const TOKEN: &str = "s3cr3t-t0ken-of-the-desk";

fn place(server: &Server) -> Place {
    let place = Place::new();
    place.file("token.txt", TOKEN);
    place.json(
        "loopctl.json",
        &json!({ "orgconfig": { "desk": "file:token.txt" }, "allow": { "private_addresses": true },
            "mcp": { "crm": { "url": format!("{}/mcp", server.url()), "headers": { "Authorization": "Bearer orgconfig:desk" } } } }),
    );
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "reader", "properties": { "mode": "react", "objective": "Read.",
            "tools": [{ "type": "mcp", "server": "crm" }], "on_stuck": { "iterations": 100 } } }),
    );
    place
}

fn answered(request: &Request, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": result })
}

fn tools() -> Value {
    let of = |name: &str| {
        json!({ "name": name, "description": "Finds.", "inputSchema": { "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" }, "q": { "type": "string" } } } })
    };
    json!({ "tools": [of("find"), of("lose"), of("refuse"), of("elsewhere")] })
}

/// As a server of the newest revision answers, or of the older one.
fn answer(request: &Request, is_newest: bool) -> Answer {
    let found = json!({ "content": [{ "type": "text", "text": format!("found with {TOKEN}") }] });
    if request.method == "GET" {
        // The stream of the call is taken up behind its last event, which has the id of the call here.
        let id: u64 = request.header("last-event-id").and_then(|id| id.parse().ok()).expect("an event");
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": found });
        return Answer::new("text/event-stream", format!("id: 8\ndata: {answer}\n\n"));
    }
    if request.method != "POST" {
        return Answer::json(&json!({}));
    }
    let body = request.json();
    let method = body["method"].as_str().unwrap_or_default();
    if body.get("id").is_none() {
        return Answer::json("").status(202);
    }
    let result = match method {
        "server/discover" if is_newest => json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} } }),
        "initialize" if !is_newest => json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {} }),
        "tools/list" => tools(),
        "tools/call" => match body["params"]["name"].as_str().unwrap_or_default() {
            "refuse" => return Answer::json("").status(401),
            "elsewhere" => return Answer::json("").status(307),
            "lose" => return Answer::json("").status(502),
            _ if is_newest => {
                let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} });
                let events = format!("data: {progress}\n\n: alive\n\ndata: {}\n\n", answered(request, found));
                return Answer::new("text/event-stream", events);
            }
            _ => return Answer::new("text/event-stream", format!("id: {}\nretry: 1\ndata:\n\n", body["id"])),
        },
        _ => {
            let error = json!({ "jsonrpc": "2.0", "id": body["id"], "error": { "code": -32601, "message": "no" } });
            return Answer::json(&error).status(404);
        }
    };
    Answer::json(&answered(request, result))
}

#[test]
fn both_revisions_are_spoken_over_http_and_no_secret_comes_back() {
    for is_newest in [true, false] {
        let server = Server::reading(move |_, request| answer(request, is_newest));
        let place = place(&server);
        pin(&place);
        let input = json!({ "region": "Hello, 世界", "q": "x" });
        let names = ["find", "refuse", "elsewhere", "lose"];
        let calls: Vec<Value> = names.iter().map(|name| think(&format!("crm.{name}"), input.clone())).collect();
        let seen: Vec<String> = place.calls(&calls).iter().map(observed).collect();
        for (seen, expected) in
            seen.iter().zip(["found with", "not authorised", "it sends elsewhere, which is not followed", "http 502"])
        {
            assert!(seen.contains(expected) && !seen.contains(TOKEN), "{is_newest}: {seen}");
        }
        let posts: Vec<Request> = server.requests().into_iter().filter(|request| request.method == "POST").collect();
        assert!(posts.iter().all(|post| post.header("authorization") == Some(&*format!("Bearer {TOKEN}"))));
        let call = posts.iter().find(|post| post.json()["method"] == "tools/call").unwrap();
        let header = |name: &str| call.header(name).map(str::to_owned);
        assert_eq!(header("accept").as_deref(), Some("application/json, text/event-stream"));
        if is_newest {
            assert_eq!(header("mcp-protocol-version").as_deref(), Some("2026-07-28"));
            assert_eq!(header("mcp-method").as_deref(), Some("tools/call"));
            assert_eq!(header("mcp-name").as_deref(), Some("find"));
            assert_eq!(header("mcp-param-region").as_deref(), Some("=?base64?SGVsbG8sIOS4lueVjA==?="));
        } else {
            assert_eq!(header("mcp-protocol-version").as_deref(), Some("2025-11-25"));
            assert_eq!(header("mcp-param-region"), None);
        }
    }
}

/// As an older server that keeps sessions: it forgets them, wants another token, or never answers.
fn with_sessions(request: &Request, token: &std::path::Path) -> Answer {
    let body = if request.method == "POST" { request.json() } else { json!({}) };
    let found = json!({ "content": [{ "type": "text", "text": "found" }] });
    let of = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let result = match body["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let begun = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {} });
            return Answer::json(&answered(request, begun)).header("mcp-session-id", "s-1");
        }
        "tools/list" => json!({ "tools": [of("find"), of("renew"), of("gone"), of("lost"), of("hang")] }),
        "tools/call" => match body["params"]["name"].as_str().unwrap_or_default() {
            _ if request.header("mcp-session-id") != Some("s-1") => return Answer::json("").status(400),
            "gone" => return Answer::json("").status(404),
            "lost" => {
                let error = json!({ "code": -32000, "message": "Bad Request: No valid session ID provided" });
                return Answer::json(&json!({ "jsonrpc": "2.0", "id": null, "error": error })).status(400);
            }
            "hang" => return Answer::new("text/event-stream", ": alive\n\n").stalling(),
            "renew" if request.header("authorization") == Some("Bearer first-token-of-the-desk") => {
                std::fs::write(token, "second-token-of-the-desk").unwrap();
                return Answer::json("").status(401);
            }
            _ => found,
        },
        "server/discover" => return Answer::json("").status(400),
        _ => return Answer::json("").status(202),
    };
    Answer::json(&answered(request, result))
}

#[test]
fn an_older_server_may_forget_sessions_and_hears_what_nobody_waits_for() {
    let place = Place::new();
    let token = place.path().join("token.txt");
    let server = Server::reading(move |_, request| with_sessions(request, &token));
    place.file("token.txt", "first-token-of-the-desk");
    place.json(
        "loopctl.json",
        &json!({ "orgconfig": { "desk": { "command": ["cat", "token.txt"], "ttl_s": 3600 } },
            "allow": { "private_addresses": true, "commands": ["cat"] },
            "mcp": { "crm": { "url": format!("{}/mcp", server.url()), "headers": { "Authorization": "Bearer orgconfig:desk" } } } }),
    );
    let declared =
        |tools: &[&str], limit: u64| json!({ "type": "mcp", "server": "crm", "tools": tools, "timeout_ms": limit });
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "reader", "properties": { "mode": "react", "objective": "Read.",
            "max_iterations": 50, "on_stuck": { "iterations": 100 },
            "tools": [declared(&["find", "renew", "gone", "lost"], 30_000), declared(&["hang"], 300)] } }),
    );
    pin(&place);
    let again = ["gone", "find", "lost", "find"].repeat(3);
    let names = [&["renew"], again.as_slice(), &["hang", "find"]].concat();
    let calls: Vec<Value> = names.iter().map(|name| think(&format!("crm.{name}"), json!({}))).collect();
    let seen: Vec<String> = place.calls(&calls).iter().map(observed).collect();
    for (name, seen) in names.iter().zip(&seen) {
        let expected = match *name {
            "gone" | "lost" => "it has ended our session",
            "hang" => "timed out after 300 ms",
            _ => "found",
        };
        assert!(seen.contains(expected), "{name}: {seen}");
    }
    let requests = server.requests();
    let posts: Vec<Value> = requests.iter().filter(|request| request.method == "POST").map(Request::json).collect();
    let hung = posts.iter().find(|post| post["params"]["name"] == "hang").unwrap();
    let cancelled = posts.iter().find(|post| post["method"] == "notifications/cancelled").unwrap();
    assert_eq!(cancelled["params"]["requestId"], hung["id"]);
    // The session of the pin, and the last one of the run: the others were gone.
    assert_eq!(requests.iter().filter(|request| request.method == "DELETE").count(), 2);
}
