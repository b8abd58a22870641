//! Who may: every route by every scope and organisation.

use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::serve::client::{Reply, Serving, place, scripted};

/// The scopes of the tokens of each organisation.
const SCOPES: [&str; 10] = [
    "run",
    "run:test",
    "run:other",
    "compose",
    "read",
    "cancel",
    "decide",
    "decide:other",
    "decide:escalated",
    "event",
];

/// A place with a token for each scope and organisation; the tokens by `ORG-SCOPE`.
fn guarded() -> (Place, Vec<(String, String)>) {
    let place = place(json!({}), &[]);
    let mut tokens = Vec::new();
    let mut entries: Vec<Value> = Vec::new();
    for org in ["acme", "other"] {
        for scope in SCOPES {
            let name = format!("{org}-{scope}");
            let made = place.call(&["token", &name, "--org", org, "--scope", scope]);
            assert_eq!(made.code, 0, "{made:?}");
            let entry = made.stderr.lines().nth(1).expect("an entry");
            entries.push(serde_json::from_str(entry).expect("JSON"));
            tokens.push((name, made.stdout.trim().to_owned()));
        }
    }
    let replies = [think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))];
    scripted(&place, &replies, json!({ "serve": { "tokens": entries } }));
    (place, tokens)
}

/// Every route that needs a token, with the scopes of which one is enough and what it answers to its own organisation.
fn routes(id: &str) -> Vec<(&'static str, String, &'static str, &'static str, u16)> {
    vec![
        ("POST", "/agents/execute".to_owned(), r#"{"loop":"test"}"#, "run run:test", 200),
        ("POST", "/agents/execute".to_owned(), r#"{"objective":"Go on.","tools":[]}"#, "compose", 200),
        ("POST", "/workflows/test/execute".to_owned(), "{}", "run run:test", 404),
        ("GET", "/agents".to_owned(), "", "read", 200),
        ("GET", format!("/agents/{id}/status"), "", "read", 200),
        ("GET", format!("/agents/{id}/trace"), "", "read", 200),
        ("GET", format!("/agents/{id}/trace?at=1"), "", "read", 200),
        ("POST", format!("/agents/{id}/resume"), r#"{"approve":true}"#, "decide decide:escalated", 409),
        ("POST", format!("/agents/{id}/retry"), "{}", "decide", 409),
        ("POST", format!("/agents/{id}/rerun"), "{}", "run run:test", 200),
        ("POST", "/agents/release".to_owned(), "{}", "decide decide:other decide:escalated", 200),
        ("POST", "/events".to_owned(), r#"{"id":"e","event":"paid"}"#, "event", 202),
        ("GET", "/loops".to_owned(), "", "read", 200),
        ("GET", "/audit".to_owned(), "", "read", 200),
        ("POST", "/check".to_owned(), "{}", "read", 200),
        ("GET", format!("/runs/{id}/status"), "", "read", 200),
        ("POST", format!("/approvals/{id}/step"), r#"{"approved":true}"#, "decide decide:escalated", 409),
        ("POST", format!("/forms/{id}/step/submit"), r#"{"form_data":{}}"#, "decide decide:escalated", 409),
        // Whoever starts something may end it.
        ("DELETE", format!("/agents/{id}"), "", "run run:test compose cancel", 200),
        ("GET", format!("/agents/{id}/events"), "", "read", 200),
        ("GET", "/healthz".to_owned(), "", "", 200),
        ("GET", "/readyz".to_owned(), "", "", 200),
        ("GET", "/openapi.json".to_owned(), "", "", 200),
    ]
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn every_route_takes_its_scope_and_shows_nobody_another_organisation_s_run() {
    let (place, tokens) = guarded();
    let server = Serving::start(&place, &[]);
    let of = |name: &str| bearer(&tokens.iter().find(|(known, _)| known == name).unwrap().1);
    let start = || {
        let reply =
            server.send("POST", "/agents/execute", &[("authorization", &of("acme-run"))], br#"{"loop":"test"}"#);
        reply.json()["agent_run_id"].as_str().unwrap().to_owned()
    };
    let id = start();
    let ask = |method: &str, path: &str, body: &str, headers: &[(&str, &str)]| -> Reply {
        server.send(method, path, headers, body.as_bytes())
    };
    for (method, path, body, enough, answered) in routes(&id) {
        let said = format!("{method} {path}");
        let Some(needed) = enough.split(' ').next().filter(|scope| !scope.is_empty()) else {
            assert_eq!(ask(method, &path, body, &[]).status, answered, "{said}");
            continue;
        };
        let right = &tokens.iter().find(|(name, _)| *name == format!("acme-{needed}")).unwrap().1;
        for wrong in [
            String::new(),
            bearer("x"),
            bearer(&right[1..]),
            bearer(&right[..right.len() - 1]),
            right.clone(),
            format!("Basic {right}"),
            bearer(&format!("{right} {right}")),
            bearer(&"x".repeat(8_000)),
        ] {
            let reply = ask(method, &path, body, &[("authorization", &wrong)]);
            assert_eq!((reply.status, reply.code()), (401, "unauthorized".to_owned()), "{said} with {wrong:?}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
        let twice = bearer(right);
        assert_eq!(ask(method, &path, body, &[("authorization", &twice), ("authorization", &twice)]).status, 401);
        assert_eq!(ask(method, &format!("{path}?token={right}&access_token={right}"), body, &[]).status, 401);
        let foreign = [("authorization", twice.as_str()), ("x-org-id", "other")];
        assert_eq!(ask(method, &path, body, &foreign).code(), "forbidden", "{said}");
        for scope in SCOPES.iter().filter(|scope| !enough.split(' ').any(|enough| enough == **scope)) {
            let reply = ask(method, &path, body, &[("authorization", &of(&format!("acme-{scope}")))]);
            assert_eq!((reply.status, reply.code()), (403, "forbidden".to_owned()), "{said} as {scope}");
        }
        if path.contains(&id) {
            // Like a run that does not exist, byte for byte.
            let other = of(&format!("other-{needed}"));
            let theirs = ask(method, &path, body, &[("authorization", &other)]);
            let none = ask(method, &path.replace(&id, "agent-none"), body, &[("authorization", &other)]);
            assert_eq!((theirs.status, &theirs.body), (404, &none.body), "{said}");
            let names = |reply: &Reply| reply.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&theirs), names(&none));
        }
        let own = [("authorization", of(&format!("acme-{needed}"))), ("x-org-id", "acme".to_owned())];
        let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply = ask(method, &path, body, &own);
        assert_eq!(reply.status, answered, "{said}: {reply:?}");
    }
    let listed = ask("GET", "/agents", "", &[("authorization", &of("other-read"))]);
    assert_eq!(listed.json()["agents"], json!([]));
    assert!(
        !ask("GET", "/agents", "", &[("authorization", &of("acme-read"))]).json()["agents"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn organisations_share_neither_keys_nor_sessions() {
    let (place, tokens) = guarded();
    let replies = [think("__store_memory__", json!({ "key": "k", "value": "acme's" })), complete(json!("ok"))];
    let project: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    scripted(&place, &replies, json!({ "serve": project["serve"] }));
    let server = Serving::start(&place, &[]);
    let as_org = |org: &str| bearer(&tokens.iter().find(|(known, _)| *known == format!("{org}-run")).unwrap().1);
    let body = br#"{"loop":"test","session":"s"}"#;
    let run = |org: &str, body: &[u8]| {
        server
            .send("POST", "/agents/execute", &[("authorization", &as_org(org)), ("idempotency-key", "k")], body)
            .json()
    };
    let (one, two) = (run("acme", body), run("other", br#"{"loop":"test"}"#));
    assert_eq!((&one["status"], &two["status"]), (&json!("completed"), &json!("completed")));
    assert_ne!(one["agent_run_id"], two["agent_run_id"]);
    assert_eq!(one["session"], "s");
    drop(server);
    let replies = [think("__retrieve_memory__", json!({ "key": "k" })), complete(json!("ok"))];
    scripted(&place, &replies, json!({ "serve": project["serve"] }));
    let server = Serving::start(&place, &[]);
    for session in ["acme:s", "s/../acme"] {
        let body = json!({ "loop": "test", "session": session }).to_string();
        let reply = server.send("POST", "/agents/execute", &[("authorization", &as_org("other"))], body.as_bytes());
        assert_eq!(reply.code(), "bad_request");
    }
    let seen = |org: &str, body: &[u8]| {
        let reply = server.send("POST", "/agents/execute?include_trace=true", &[("authorization", &as_org(org))], body);
        reply.json()["trace"][0]["observation"].to_string()
    };
    assert!(seen("acme", body).contains("acme's"));
    assert!(!seen("other", body).contains("acme's"));
}

#[test]
fn without_tokens_only_this_machine_is_listened_to_and_the_header_names_the_organisation() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ran = place.call(&["serve", ".", "--listen", address]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.contains("serve.tokens"), "{ran:?}");
    }
    let server = Serving::start(&place, &[]);
    let acme = [("x-org-id", "acme")];
    let run = server.send("POST", "/agents/execute", &acme, br#"{"loop":"test"}"#).json();
    let status = format!("/agents/{}/status", run["agent_run_id"].as_str().unwrap());
    assert_eq!(server.send("GET", &status, &acme, b"").status, 200);
    assert_eq!(server.get(&status).status, 404);
    assert_eq!(server.send("GET", &status, &[("x-org-id", "other")], b"").status, 404);
    assert_eq!(server.send("GET", &status, &[("x-org-id", "a b")], b"").status, 400);
}

#[test]
fn a_token_is_in_no_log() {
    let (place, tokens) = guarded();
    let token = &tokens[1].1;
    let log = place.path().join("log.txt");
    let server = Serving::start_logged_with(&place, &[], &log, &[("LOOPCTL_LOG", "trace")]);
    server.send("GET", "/loops", &[("authorization", &bearer(token))], b"");
    server.send("GET", &format!("/loops?token={token}"), &[("authorization", &bearer("wrong-token-value"))], b"");
    let logged = server.whole_log(&log);
    assert!(logged.contains("/loops") && logged.contains("request_id"), "{logged}");
    assert!(!logged.contains(token.as_str()) && !logged.contains("wrong-token-value"), "{logged}");
}

#[test]
fn the_record_of_a_decision_names_the_token_that_decided() {
    let (place, tokens) = guarded();
    let server = Serving::start(&place, &[]);
    let of = |name: &str| bearer(&tokens.iter().find(|(known, _)| known == name).unwrap().1);
    let send = |path: &str, token: &str, body: Value| {
        server.send("POST", path, &[("authorization", &of(token))], body.to_string().as_bytes())
    };
    let run = send("/agents/execute", "acme-run", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    let resume = format!("/agents/{id}/resume");
    let done = send(&resume, "acme-decide", json!({ "answer": "yes", "comment": "I asked them" }));
    assert_eq!(done.status, 200, "{done:?}");
    let trace = server.send("GET", &format!("/agents/{id}/trace"), &[("authorization", &of("acme-read"))], b"").json();
    let decision = &trace["decisions"][0];
    assert_eq!(
        (&decision["decision"], &decision["by"], &decision["comment"]),
        (&json!("answer"), &json!("acme-decide"), &json!("I asked them")),
        "{trace:#}"
    );
}
