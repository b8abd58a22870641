//! Agent requests: who may send them, and that none of them sheds what the folder's actions say.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think, web, with};
use crate::serve::client::{Reply, Serving, place, scripted};

/// A folder whose action `refund` says these things about its calls, and a model that calls it twice.
fn shop(says: Value) -> (Place, Server) {
    let server = Server::with(|_, _| Answer::json("{}"));
    let place = place(json!({}), &[]);
    let parameters = json!({ "type": "object", "properties": { "n": {} }, "required": ["n"] });
    let action = web("refund", &format!("{}/{{{{n}}}}", server.url()), with(says, json!({ "parameters": parameters })));
    place.json("actions/refund.json", &action);
    let replies = [think("refund", json!({ "n": 1 })), think("refund", json!({ "n": 2 })), complete(json!("ok"))];
    scripted(&place, &replies, json!({}));
    (place, server)
}

/// An agent request that declares `refund` so.
fn request(declaration: Value) -> Value {
    let tool = with(json!({ "type": "action", "name": "refund" }), declaration);
    json!({ "objective": "Refund it.", "tools": [tool] })
}

#[test]
fn an_agent_request_does_not_shed_the_approval_that_an_action_asks_for() {
    let (place, shop) = shop(json!({ "requires_approval": true }));
    let server = Serving::start(&place, &[]);
    for declaration in [json!({}), json!({ "requires_approval": false }), json!({ "requires_approval": true })] {
        let run = server.execute("", request(declaration.clone())).json();
        assert_eq!(
            (&run["status"], &run["result"]["pause"]["kind"]),
            (&json!("paused"), &json!("approval")),
            "{run:#}"
        );
        assert!(shop.requests().is_empty(), "{declaration}: the call was made");
    }
    // The old form of a declaration has no word for it at all.
    let run = server.execute("", json!({ "objective": "Refund it.", "tools": ["refund"] })).json();
    assert_eq!((&run["status"], shop.requests().len()), (&json!("paused"), 0), "{run:#}");
    // Once a human says yes, it is made, and the next one waits.
    let id = run["agent_run_id"].as_str().unwrap();
    let run = server.send("POST", &format!("/agents/{id}/resume"), &[], br#"{"approve":true}"#).json();
    assert_eq!((&run["status"], shop.requests().len()), (&json!("paused"), 1), "{run:#}");
}

#[test]
fn without_a_word_of_the_action_the_same_request_makes_its_calls() {
    let (place, shop) = shop(json!({}));
    let server = Serving::start(&place, &[]);
    let run = server.execute("", request(json!({ "requires_approval": false }))).json();
    assert_eq!((&run["status"], shop.requests().len()), (&json!("completed"), 2), "{run:#}");
}

#[test]
fn an_agent_request_does_not_raise_how_often_an_action_may_be_called() {
    let (place, shop) = shop(json!({ "max_calls": 1 }));
    let server = Serving::start(&place, &[]);
    for (at, declaration) in [json!({}), json!({ "max_calls": 1000 })].into_iter().enumerate() {
        let run = server.execute("", request(declaration)).json();
        assert_eq!((&run["status"], shop.requests().len()), (&json!("completed"), at + 1), "{run:#}");
    }
}

#[test]
fn an_agent_request_needs_a_scope_of_its_own_and_that_one_starts_no_loop() {
    let place = place(json!({}), &[]);
    let mut entries: Vec<Value> = Vec::new();
    let tokens = ["run", "compose"].map(|scope| {
        let made = place.call(&["token", scope, "--scope", scope]);
        entries.push(serde_json::from_str(made.stderr.lines().nth(1).expect("an entry")).expect("JSON"));
        format!("Bearer {}", made.stdout.trim())
    });
    scripted(&place, &[complete(json!("ok"))], json!({ "serve": { "tokens": entries } }));
    let server = Serving::start(&place, &[]);
    let bodies = [json!({ "loop": "test" }), json!({ "objective": "Go on.", "tools": [] })];
    let send = |token: usize, body: usize| -> Reply {
        let headers = [("authorization", tokens[token].as_str())];
        server.send("POST", "/agents/execute", &headers, bodies[body].to_string().as_bytes())
    };
    for own in [0, 1] {
        assert_eq!((send(own, own).status, send(own, own).json()["status"].clone()), (200, json!("completed")));
        let refused = send(own, 1 - own);
        assert_eq!((refused.status, refused.code()), (403, "forbidden".to_owned()), "{refused:?}");
        let lacks = format!("the token lacks the scope `{}`", ["compose", "run` or `run:test"][own]);
        assert_eq!(refused.json()["detail"], lacks);
    }
}

#[test]
fn a_server_may_take_no_agent_requests() {
    let place = place(json!({}), &[]);
    scripted(&place, &[complete(json!("ok"))], json!({ "serve": { "agent_requests": "off" } }));
    let server = Serving::start(&place, &[]);
    for body in [json!({ "objective": "Go on.", "tools": [] }), json!({}), json!({ "objective": 7 })] {
        let refused = server.execute("", body);
        assert_eq!((refused.status, refused.code()), (403, "agent_requests_off".to_owned()), "{refused:?}");
    }
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
}

#[test]
fn a_server_may_take_only_agent_requests_that_use_nothing_of_the_folder() {
    let (place, shop) = shop(json!({}));
    let inner = with(crate::common::document(&json!({})), json!({ "name": "inner" }));
    place.json("loops/inner.json", &inner);
    let project = |mode: &str| json!({ "serve": { "agent_requests": mode } });
    let replies = [think("refund", json!({ "n": 1 })), complete(json!("ok"))];
    let own = json!({ "action_name": "refund", "kind": "http", "description": "Its own.", "http_method": "GET",
        "url": format!("{}/own/{{{{n}}}}", shop.url()) });
    let bodies = [
        request(json!({})),
        json!({ "objective": "x", "tools": ["refund"] }),
        json!({ "objective": "x", "tools": [{ "type": "loop", "name": "inner" }] }),
    ];
    let servers = json!({ "mcp": { "ledger": { "url": "https://mcp.example.com/mcp" } } });
    scripted(&place, &replies, with(project("own_actions"), servers));
    let server = Serving::start(&place, &[]);
    for body in &bodies {
        let refused = server.execute("", body.clone());
        assert_eq!((refused.status, refused.code()), (422, "document".to_owned()), "{refused:?}");
    }
    // Nor the MCP servers, and nothing is said of them.
    let refused = server.execute("", json!({ "objective": "x", "tools": [{ "type": "mcp", "server": "ledgr" }] }));
    let said = refused.json().to_string();
    assert!(refused.status == 422 && said.contains("no MCP server here") && !said.contains("ledger"), "{said}");
    assert!(shop.requests().is_empty());
    let run = server.execute("", with(request(json!({})), json!({ "actions": [own] }))).json();
    assert_eq!((&run["status"], shop.requests().len()), (&json!("completed"), 1), "{run:#}");
    drop(server);
    // The twin: a server that takes all of them.
    scripted(&place, &replies, project("all"));
    let server = Serving::start(&place, &[]);
    for body in bodies {
        assert_eq!(server.execute("", body).status, 200);
    }
}
