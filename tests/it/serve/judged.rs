//! What judging a request's document may cost others, and what it shows of the server: nothing.

use serde_json::{Value, json};

use crate::common::complete;
use crate::serve::client::{Serving, place};

/// A loop of half a megabyte, whose constructs once took seconds each.
fn wide(at: usize) -> Value {
    let actions = match at % 3 {
        0 => json!({ "action_name": "t", "kind": "http", "http_method": "POST", "url": "https://h/a",
            "headers": (0..20_000).map(|at| (format!("H{at}"), json!("{{v}}"))).collect::<serde_json::Map<_, _>>() }),
        1 => json!({ "action_name": "t", "kind": "db", "datasource": "d",
            "query": format!("SELECT {}", (0..40_000).map(|at| format!(":name{at}")).collect::<Vec<_>>().join(",")) }),
        _ => json!({ "action_name": "t", "kind": "llm", "template": "{input.x} ".repeat(54_000) }),
    };
    json!({ "type": "loop", "actions": [actions],
        "properties": { "mode": "react", "objective": "Go.", "tools": [{ "type": "action", "name": "t" }] } })
}

#[test]
fn documents_of_half_a_megabyte_are_checked_or_asked_to_retry_while_others_are_answered() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    std::thread::scope(|scope| {
        let checks: Vec<_> = (0..6)
            .map(|at| {
                scope.spawn({
                    let server = &server;
                    move || server.post("/check", &wide(at))
                })
            })
            .collect();
        // Whatever the documents take, a request that needs none of it is answered.
        assert_eq!(server.get("/healthz").status, 200);
        assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
        for check in checks {
            let reply = check.join().expect("an answer");
            match reply.status {
                200 => assert!(reply.json().is_array()),
                503 => {
                    assert_eq!(reply.code(), "judging_busy");
                    assert!(reply.header("retry-after").is_some());
                }
                _ => panic!("{reply:?}"),
            }
        }
    });
}

#[test]
fn no_answer_shows_where_the_folder_lies() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    place.file("actions/broken.json", "[{\"action_name\": \"broken\", }]");
    place.json("actions/odd.json", &json!([{ "action_name": "odd", "kind": "http", "http_method": "GET" }]));
    place.json(
        "actions/twice.json",
        &json!([
            { "action_name": "two", "kind": "http", "http_method": "GET", "url": "https://h/a" },
            { "action_name": "two", "kind": "http", "http_method": "GET", "url": "https://h/b" },
            { "action_name": "shell", "kind": "command", "program": "sh" },
            { "action_name": "data", "kind": "db", "datasource": "none", "query": "SELECT 1" }
        ]),
    );
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/hostname", place.path().join("actions/out.json")).unwrap();
    let folder = place.path().canonicalize().unwrap().display().to_string();
    let server = Serving::start_folder(&folder, "127.0.0.1:0", &place, &[]);
    for name in ["nowhere", "broken", "odd", "two", "shell", "data"] {
        let tools = json!([{ "type": "action", "name": name }]);
        let request = server.execute("", json!({ "objective": "Go {{input.n}}.", "tools": tools.clone() }));
        assert_eq!(request.status, 422, "{name}: {request:?}");
        let check = server.post("/check", &json!({ "objective": "Go.", "tools": tools }));
        assert_eq!(check.status, 200, "{check:?}");
        for reply in [request, check] {
            let text = String::from_utf8_lossy(&reply.body).into_owned();
            assert!(!text.contains(&folder) && !text.contains(&place.path().display().to_string()), "{name}: {text}");
            assert!(!text.contains("/etc/hostname"), "{name}: {text}");
            // What is wrong is reported all the same.
            assert!(text.contains("diagnostics") || text.contains("\"code\""), "{name}: {text}");
        }
    }
    let text = String::from_utf8_lossy(&server.execute("", json!({ "loop": "test", "input": 1 })).body).into_owned();
    assert!(!text.contains(&folder), "{text}");
}

#[test]
fn a_workflow_is_checked_with_what_the_folder_has() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let parameters =
        json!({ "type": "object", "properties": { "amount": { "type": "integer" } }, "required": ["amount"] });
    place.json(
        "actions/a.json",
        &json!([{ "action_name": "q", "kind": "http", "description": "Pays.",
        "url": "https://h.example/pay", "http_method": "POST", "parameters": parameters }]),
    );
    let server = Serving::start(&place, &[]);
    let checked = |kind: &str, amount: Value| {
        let steps = json!([{ "type": kind, "properties": { "amount": amount } }]);
        let reply = server.post("/check", &json!({ "name": "w", "definition": { "actions": steps } })).json();
        reply.as_array().unwrap().iter().map(|fault| fault["code"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(checked("q", json!(1)).is_empty(), "{:?}", checked("q", json!(1)));
    assert!(!checked("q", json!("much")).is_empty(), "its parameters are known");
    assert!(checked("nowhere", json!(1)).contains(&"L030".to_owned()));
    // Every other kind of document gets an answer too.
    for document in [
        json!({ "scenarios": [] }),
        json!({ "replies": [] }),
        json!({ "models": {} }),
        json!([{ "action_name": "r", "kind": "http", "description": "R.", "url": "https://h.example/r", "http_method": "GET" }]),
    ] {
        assert_eq!(server.post("/check", &document).status, 200, "{document}");
    }
}
