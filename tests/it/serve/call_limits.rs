//! Calls of tools that wait for their turn, and circuits: they are no attempts yet, they are seen, and nothing fails.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, web, with};
use crate::serve::client::Serving;
use crate::serve::reloads::{hangup, until};

/// A workflow that makes this number of calls beside each other.
fn place(server: &Server, calls: usize, action: Value, project: Value) -> Place {
    let place = Place::new();
    let parameters = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
    let url = format!("{}/{{{{id}}}}", server.url());
    place.json("actions/all.json", &json!([web("get", &url, with(json!({ "parameters": parameters }), action))]));
    let each = json!({ "mode": "foreach", "items_path": "@input.ids", "item_variable_name": "one", "max_concurrency": 8,
        "actions_to_execute": [{ "type": "get", "properties": { "id": "@one" } }] });
    let definition = json!({ "actions": [{ "id": "each", "type": "loop", "properties": each }] });
    place.json("test.json", &json!({ "name": "test", "definition": definition }));
    place.json("ids.json", &json!((0..calls).map(|number| number.to_string()).collect::<Vec<_>>()));
    declare(&place, project);
    place
}

fn declare(place: &Place, project: Value) {
    place.json("loopctl.json", &with(json!({ "allow": { "private_addresses": true } }), project));
}

fn begin(server: &Serving, calls: usize) -> String {
    let ids: Vec<String> = (0..calls).map(|number| number.to_string()).collect();
    let started = server.execute("?async=true", json!({ "loop": "test", "input": { "ids": ids } })).json();
    started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned()
}

fn metric(server: &Serving, name: &str) -> Option<String> {
    let text = String::from_utf8(server.get("/metrics").body).unwrap();
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

fn waiting(server: &Serving, of: &str) -> Option<String> {
    metric(server, &format!("loopctl_tool_calls_waiting{{{of}}}"))
}

const OF_GET: &str = "of=\"action\",name=\"get\"";

#[test]
fn calls_over_the_concurrency_of_an_action_wait_and_are_made_when_there_is_more() {
    let gate = Gate::default();
    let held = gate.clone();
    let tool = Server::with(move |_, _| Answer::json("{\"ok\":true}").behind(&held));
    let place = place(&tool, 6, json!({}), json!({ "action_limits": { "get": { "max_concurrency": 2 } } }));
    let server = Serving::start(&place, &[]);
    let id = begin(&server, 6);
    tool.wait_for(2);
    until(|| waiting(&server, OF_GET) == Some("4".to_owned()));
    let status = || server.get(&format!("/agents/{id}/status")).json();
    until(|| status()["model_wait"]["attempts"] == 0);
    let shown = status()["model_wait"].clone();
    assert_eq!((&shown["of"], &shown["model"]), (&json!("action"), &json!("get")), "{shown:#}");
    assert_eq!(shown["kind"], "as many calls as may be made at once are under way");
    assert_eq!(tool.requests().len(), 2);
    // A server that reads its folder again lets in what waits.
    declare(&place, json!({ "action_limits": { "get": { "max_concurrency": 3 } } }));
    hangup(&server);
    tool.wait_for(3);
    until(|| waiting(&server, OF_GET) == Some("3".to_owned()));
    gate.open();
    let ended = server.settled(&id);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!((tool.requests().len(), waiting(&server, OF_GET)), (6, None));
    assert_eq!(metric(&server, "loopctl_tool_retries_total"), None, "a wait is no attempt");
}

#[test]
fn the_wait_for_a_rate_is_no_time_of_the_call() {
    let tool = Server::with(|_, _| Answer::json("{\"ok\":true}"));
    // The call has a second, and waits for longer.
    let project = json!({ "action_limits": { "get": { "rate": { "per_minute": 20 } } } });
    let place = place(&tool, 3, json!({ "timeout_ms": 1_000 }), project);
    let server = Serving::start(&place, &[]);
    let ended = server.settled(&begin(&server, 3));
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!((tool.requests().len(), metric(&server, "loopctl_tool_retries_total")), (3, None));
    let seconds: f64 =
        metric(&server, "loopctl_tool_seconds_sum{tool=\"get\"}").map_or(0.0, |sum| sum.parse().unwrap());
    assert!(seconds < 2.0, "{seconds}");
}

#[test]
fn a_cancel_ends_the_wait_for_a_turn() {
    let gate = Gate::default();
    let held = gate.clone();
    let tool = Server::with(move |_, _| Answer::json("{\"ok\":true}").behind(&held));
    let place = place(&tool, 1, json!({}), json!({ "action_limits": { "get": { "rate": { "per_minute": 1 } } } }));
    let server = Serving::start(&place, &[]);
    gate.open();
    assert_eq!(server.settled(&begin(&server, 1))["status"], "completed");
    let late = begin(&server, 1);
    until(|| waiting(&server, OF_GET) == Some("1".to_owned()));
    assert_eq!(server.send("DELETE", &format!("/agents/{late}"), &[], b"").status, 202);
    assert_eq!(server.settled(&late)["status"], "cancelled");
    until(|| waiting(&server, OF_GET).is_none());
    assert_eq!(tool.requests().len(), 1);
}

#[test]
fn a_circuit_opens_after_failures_and_one_call_closes_it() {
    let gate = Gate::default();
    let held = gate.clone();
    let tool = Server::with(move |number, _| match number {
        0 | 1 => Answer::json("{}").status(503),
        2 => Answer::json("{\"ok\":true}").behind(&held),
        _ => Answer::json("{\"ok\":true}"),
    });
    let circuit = json!({ "failures": 2, "open_ms": 1_500 });
    let retry = json!({ "retry": { "attempts": 4, "base_ms": 1, "max_ms": 2 } });
    let place = place(&tool, 1, retry, json!({ "action_limits": { "get": { "circuit": circuit } } }));
    let log = place.path().join("log");
    let server = Serving::start_logged(&place, &[], &log);
    let state = || metric(&server, &format!("loopctl_circuit_state{{{OF_GET}}}"));
    assert_eq!(state(), Some("0".to_owned()), "it is shown before it opens");
    let first = begin(&server, 1);
    until(|| state() == Some("2".to_owned()));
    let shown = server.get("/workers").json()["circuits"][0].clone();
    assert_eq!((&shown["of"], &shown["name"], &shown["state"]), (&json!("action"), &json!("get"), &json!("open")));
    assert!(shown["since"].is_string(), "{shown:#}");
    // Nobody calls it now; then one does, and the others wait for what comes of that.
    let others = [begin(&server, 1), begin(&server, 1)];
    tool.wait_for(3);
    until(|| waiting(&server, OF_GET) == Some("2".to_owned()));
    assert_eq!((state(), tool.requests().len()), (Some("1".to_owned()), 3));
    gate.open();
    for id in [&first, &others[0], &others[1]] {
        let ended = server.settled(id);
        assert_eq!(ended["status"], "completed", "{ended:#}");
    }
    assert_eq!((state(), tool.requests().len()), (Some("0".to_owned()), 5));
    let log = server.whole_log(&log);
    for line in ["the circuit is open: calls failed", "the circuit is closed: calls are made again"] {
        assert!(log.contains(line), "{log}");
    }
}

#[test]
fn a_call_that_meets_an_open_circuit_for_too_long_fails_and_the_run_can_be_retried() {
    let tool = Server::with(|number, _| match number {
        0 => Answer::json("{}").status(503),
        _ => Answer::json("{\"ok\":true}"),
    });
    let circuit = json!({ "failures": 1, "open_ms": 2_500, "for_ms": 100 });
    let place = place(&tool, 1, json!({}), json!({ "action_limits": { "get": { "circuit": circuit } } }));
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled(&begin(&server, 1))["status"], "failed");
    let met = begin(&server, 1);
    let ended = server.settled(&met);
    assert_eq!((&ended["status"], tool.requests().len()), (&json!("failed"), 1), "{ended:#}");
    let said = ended.to_string();
    assert!(said.contains("the action \\\"get\\\" is not called: its circuit is open for"), "{said}");
    until(|| metric(&server, &format!("loopctl_circuit_state{{{OF_GET}}}")) == Some("1".to_owned()));
    let retried = server.send("POST", &format!("/agents/{met}/retry"), &[], b"{}");
    assert!([200, 202].contains(&retried.status), "{retried:?}");
    until(|| server.get(&format!("/agents/{met}/status")).json()["status"] == "completed");
    assert_eq!(tool.requests().len(), 2);
}

#[test]
fn an_open_circuit_of_a_model_lets_runs_ask_their_next_model_at_once() {
    let away = Server::with(|_, _| Answer::json("{}").status(503));
    let there = Server::with(|_, _| Answer::openai(&complete(json!("done")).to_string()));
    let place = Place::new();
    let properties = json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main", "fallback_models": ["other"],
        "retry": { "attempts": 2, "base_ms": 1, "max_ms": 2 } });
    place.json("test.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let model = |server: &Server, more: Value| with(json!({ "provider": "openai", "base_url": server.url() }), more);
    let main = model(&away, json!({ "circuit": { "failures": 2, "open_ms": 60_000, "for_ms": 100 } }));
    place.json("loopctl.json", &json!({ "models": { "main": main, "other": model(&there, json!({})) } }));
    let server = Serving::start(&place, &[]);
    let run = |server: &Serving, name: &str| {
        let started = server.execute("?async=true", json!({ "loop": name })).json();
        server.settled(started["agent_run_id"].as_str().unwrap())
    };
    for asked in 1..=3 {
        let ended = run(&server, "test");
        assert_eq!(ended["status"], "completed", "{ended:#}");
        assert_eq!((away.requests().len(), there.requests().len()), (2, asked), "{ended:#}");
    }
    let state = metric(&server, "loopctl_circuit_state{of=\"model\",name=\"main\"}");
    assert_eq!(state, Some("2".to_owned()));
    // Without another model, it is as an outage.
    let alone =
        json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main", "retry": { "attempts": 1 } });
    place.json("alone.json", &json!({ "type": "loop", "name": "alone", "properties": alone }));
    let server = Serving::start(&place, &[]);
    for asked in [3, 4] {
        let ended = run(&server, "alone");
        assert_eq!((&ended["status"], away.requests().len()), (&json!("failed"), asked), "{ended:#}");
    }
    let said = run(&server, "alone").to_string();
    assert!(said.contains("its circuit is open for") && said.contains("model_unreachable"), "{said}");
    assert_eq!(away.requests().len(), 4);
}
