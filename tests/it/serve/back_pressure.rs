//! Requests to a model that wait for their turn: they are no requests yet, they are seen, and nothing fails.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete};
use crate::serve::client::Serving;
use crate::serve::reloads::{hangup, until};

/// A model that answers when the gate is open.
fn holding(gate: &Gate) -> Server {
    let gate = gate.clone();
    Server::with(move |_, _| Answer::openai(&complete(json!("done")).to_string()).behind(&gate))
}

fn place(model: &Server, more: Value) -> Place {
    let place = Place::new();
    let properties = json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main" });
    place.json("test.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    declare(&place, model, more);
    place
}

fn declare(place: &Place, model: &Server, more: Value) {
    let main = crate::common::with(json!({ "provider": "openai", "base_url": model.url() }), more);
    let share = json!({ "queued": 100_000, "running": 100_000 });
    place.json("loopctl.json", &json!({ "models": { "main": main }, "serve": { "limits": { "token": share } } }));
}

fn begin(server: &Serving) -> String {
    let started = server.execute("?async=true", json!({ "loop": "test" })).json();
    started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned()
}

fn metric(server: &Serving, name: &str) -> Option<String> {
    let text = String::from_utf8(server.get("/metrics").body).unwrap();
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

fn waiting(server: &Serving) -> Option<String> {
    metric(server, "loopctl_model_requests_waiting{model=\"main\"}")
}

#[test]
fn requests_over_the_connections_of_a_model_wait_in_their_order_and_are_let_in_when_there_are_more() {
    let gate = Gate::default();
    let model = holding(&gate);
    let place = place(&model, json!({ "max_connections": 2 }));
    let server = Serving::start(&place, &[]);
    let first = [begin(&server), begin(&server)];
    model.wait_for(2);
    let later: Vec<String> = (0..3)
        .map(|number| {
            let id = begin(&server);
            until(|| waiting(&server) == Some((number + 1).to_string()));
            id
        })
        .collect();
    let status = |id: &String| server.get(&format!("/agents/{id}/status")).json();
    until(|| status(&later[0])["model_wait"]["attempts"] == 0);
    let shown = status(&later[0])["model_wait"].clone();
    assert_eq!((&shown["model"], &shown["kind"]), (&json!("main"), &json!("no connection is free")), "{shown:#}");
    assert_eq!(shown["again_at"], Value::Null, "nobody knows when one is free: {shown:#}");
    assert_eq!(status(&first[0])["model_wait"], Value::Null, "its request is sent");
    assert!(metric(&server, "loopctl_model_requests_oldest_seconds{model=\"main\"}").is_some());
    // One that waits can be cancelled, and leaves its place.
    assert_eq!(server.send("DELETE", &format!("/agents/{}", later[1]), &[], b"").status, 202);
    assert_eq!(server.settled(&later[1])["status"], "cancelled");
    until(|| waiting(&server) == Some("2".to_owned()));
    assert_eq!(model.requests().len(), 2);
    declare(&place, &model, json!({ "max_connections": 3 }));
    hangup(&server);
    model.wait_for(3);
    until(|| waiting(&server) == Some("1".to_owned()));
    assert_eq!((&status(&later[0])["model_wait"], model.requests().len()), (&Value::Null, 3), "the first one is next");
    gate.open();
    for id in first.iter().chain([&later[0], &later[2]]) {
        let ended = server.settled(id);
        assert_eq!((&ended["status"], &ended["iterations"]), (&json!("completed"), &json!(1)), "{ended:#}");
    }
    assert_eq!((waiting(&server), model.requests().len()), (None, 4));
    assert_eq!(metric(&server, "loopctl_model_retries_total"), None);
}

#[test]
fn more_runs_at_once_than_there_are_descriptors_wait_for_each_other_and_none_fails() {
    const RUNS: usize = 300;
    let gate = Gate::default();
    let model = holding(&gate);
    let place = place(&model, json!({}));
    let server = Serving::start_limited(&place, "-n 256", &["--max-concurrent-runs", "300"]);
    let runs: Vec<String> = (0..RUNS).map(|_| begin(&server)).collect();
    // Half of the descriptors, less a reserve.
    until(|| waiting(&server) == Some((RUNS - 64).to_string()));
    assert_eq!(model.requests().len(), 64);
    let open: usize = metric(&server, "process_open_fds").unwrap().parse().unwrap();
    assert!(open < 128, "{open}");
    gate.open();
    for id in &runs {
        assert_eq!(server.settled(id)["status"], "completed");
    }
    assert_eq!((metric(&server, "loopctl_model_retries_total"), model.requests().len()), (None, RUNS));
}

#[test]
fn requests_over_the_rate_of_a_model_wait_and_are_sent_when_it_is_raised() {
    let gate = Gate::default();
    gate.open();
    let model = holding(&gate);
    let place = place(&model, json!({ "rate": { "requests_per_minute": 1 } }));
    let server = Serving::start(&place, &[]);
    assert_eq!(server.settled(&begin(&server))["status"], "completed");
    let later = [begin(&server), begin(&server)];
    let status = |id: &String| server.get(&format!("/agents/{id}/status")).json();
    until(|| status(&later[1])["model_wait"]["attempts"] == 0);
    let shown = status(&later[0])["model_wait"].clone();
    assert_eq!((&shown["model"], &shown["kind"]), (&json!("main"), &json!("its rate is used up")), "{shown:#}");
    assert_eq!((waiting(&server), model.requests().len()), (Some("2".to_owned()), 1));
    // One that has less time than the wait says so, and ends by its own time.
    let body = json!({ "loop": "test", "timeout_ms": 500 });
    let short = server.execute("?async=true", body).json()["agent_run_id"].as_str().unwrap().to_owned();
    assert_eq!(server.settled(&short)["result"]["termination"], "timeout");
    declare(&place, &model, json!({ "rate": { "requests_per_minute": 6_000 } }));
    hangup(&server);
    for id in &later {
        assert_eq!(server.settled(id)["status"], "completed");
        let events = server.events(id, &[]);
        let replied = events.iter().map(|(_, event)| event).find(|event| event["event"] == "model_replied").unwrap();
        let times = (replied["waited_ms"].as_u64(), replied["duration_ms"].as_u64());
        assert!(times.0 >= Some(2_000) && times.1 < Some(2_000), "the wait is no time of the model: {replied}");
    }
    let seconds: f64 = metric(&server, "loopctl_model_seconds_sum").unwrap().parse().unwrap();
    assert!(seconds < 2.0, "{seconds}");
    assert_eq!((metric(&server, "loopctl_model_retries_total"), model.requests().len()), (None, 3));
}

#[test]
fn a_server_that_has_too_many_requests_holds_other_runs_back_and_costs_no_attempt() {
    let done = Answer::openai(&complete(json!("done")).to_string());
    let model = Server::with(move |number, _| match number {
        0 => Answer::json("{}").status(429).header("retry-after", "4"),
        _ => done.clone(),
    });
    let place = place(&model, json!({ "max_connections": 8 }));
    let properties =
        json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main", "retry": { "attempts": 1 } });
    place.json("test.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let server = Serving::start(&place, &[]);
    let first = begin(&server);
    let status = |id: &String| server.get(&format!("/agents/{id}/status")).json();
    until(|| status(&first)["model_wait"]["attempts"] == 1);
    let second = begin(&server);
    until(|| status(&second)["model_wait"]["attempts"] == 0);
    let shown = status(&second)["model_wait"].clone();
    assert_eq!((&shown["kind"], model.requests().len()), (&json!("its server asked for a wait"), 1), "{shown:#}");
    assert!(shown["again_at"].as_str() > shown["since"].as_str(), "the end of the wait: {shown:#}");
    for id in [&first, &second] {
        let ended = server.settled(id);
        assert_eq!((&ended["status"], &ended["iterations"]), (&json!("completed"), &json!(1)), "{ended:#}");
    }
    assert_eq!(model.requests().len(), 3);
}

/// The server of a bounded model wants no request for a minute, and the document waits for a second.
#[test]
fn a_server_that_wants_no_request_for_longer_than_retry_says_is_as_one_that_is_away() {
    let model = Server::with(|_, _| Answer::json("{}").status(429).header("retry-after", "60"));
    let spare = Server::with(|_, _| Answer::openai(&complete(json!("done")).to_string()));
    let place = place(&model, json!({ "max_connections": 8 }));
    let text = std::fs::read(place.path().join("loopctl.json")).unwrap();
    let mut project: Value = serde_json::from_slice(&text).unwrap();
    project["models"]["spare"] = json!({ "provider": "openai", "base_url": spare.url() });
    place.json("loopctl.json", &project);
    let own = json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main",
        "retry": { "for_ms": 1_000 } });
    let with_fallback = crate::common::with(own.clone(), json!({ "fallback_models": ["spare"] }));
    place.json("test.json", &json!({ "type": "loop", "name": "test", "properties": with_fallback }));
    place.json("alone.json", &json!({ "type": "loop", "name": "alone", "properties": own }));
    let server = Serving::start(&place, &[]);
    for asked in 1..=2 {
        let ended = server.settled(&begin(&server));
        assert_eq!((&ended["status"], &ended["iterations"]), (&json!("completed"), &json!(1)), "{ended:#}");
        assert_eq!((model.requests().len(), spare.requests().len()), (1, asked), "{ended:#}");
    }
    let alone = server.execute("?async=true", json!({ "loop": "alone" })).json()["agent_run_id"].clone();
    let ended = server.settled(alone.as_str().unwrap());
    let said = ended.to_string();
    assert!(said.contains("its server wants no request for ") && ended["status"] != "completed", "{ended:#}");
    assert_eq!(model.requests().len(), 1, "nobody asks a server that wants no request");
}

#[test]
fn a_rate_of_nothing_and_no_connections_are_refused_before_a_run() {
    let gate = Gate::default();
    let model = holding(&gate);
    for (written, at) in [
        (json!({ "max_connections": 0 }), "max_connections"),
        (json!({ "rate": { "requests_per_minute": 0 } }), "requests_per_minute"),
        (json!({ "rate": { "requests_per_minute": -1 } }), "requests_per_minute"),
        (json!({ "rate": { "tokens_per_minute": 0.5 } }), "tokens_per_minute"),
        (json!({ "rate": {} }), "L250"),
        (json!({ "rate": { "tokens_per_minute": 4_096 } }), "L250"),
        (json!({ "rate": { "per_minute": 5 } }), "per_minute"),
    ] {
        let place = place(&model, written.clone());
        let checked = place.call(&["check", "test.json"]);
        assert!(checked.code == 1 && checked.stderr.contains(at), "{written}: {} {}", checked.stdout, checked.stderr);
    }
    assert!(model.requests().is_empty());
}

#[test]
fn a_run_that_waits_for_room_in_a_limit_keeps_no_other_run_from_the_model() {
    let gate = Gate::default();
    let model = holding(&gate);
    let place = place(&model, json!({ "max_connections": 2 }));
    let properties =
        json!({ "mode": "react", "objective": "Say it.", "tools": [], "model": "main", "max_tokens": 100 });
    place.json("limited.json", &json!({ "type": "loop", "name": "limited", "properties": properties }));
    let project: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    // One request has room, and the next one when that is answered.
    let limit = json!({ "loop": "limited", "every": "day", "tokens": 1_500 });
    place.json("loopctl.json", &crate::common::with(project, json!({ "limits": [limit] })));
    let server = Serving::start(&place, &[]);
    let start = |name: &str| {
        let started = server.execute("?async=true", json!({ "loop": name })).json();
        started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned()
    };
    let first = start("limited");
    model.wait_for(1);
    let second = start("limited");
    let other = start("test");
    model.wait_for(2);
    gate.open();
    for id in [&first, &second, &other] {
        assert_eq!(server.settled(id)["status"], "completed", "{id}");
    }
    assert_eq!(model.requests().len(), 3);
}

/// A workflow that asks the model for each of its items.
fn asking_for_each_item(place: &Place) {
    place.json(
        "actions/ask.json",
        &json!({ "action_name": "ask", "kind": "llm", "description": "Asks.",
        "template": "Item?", "model": "main", "timeout_ms": 600_000 }),
    );
    let each = json!({ "mode": "foreach", "items_path": "@input.items", "item_variable_name": "one",
        "max_concurrency": 200, "actions_to_execute": [{ "id": "ask", "type": "ask", "properties": {} }] });
    let step = json!({ "id": "each", "type": "loop", "properties": each });
    place.json("many.json", &json!({ "name": "many", "definition": { "actions": [step] } }));
}

/// Gives the project tokens that are made with these words; their headers.
fn tokens<const N: usize>(place: &Place, made_with: [&[&str]; N]) -> [String; N] {
    let mut entries = Vec::new();
    let headers = made_with.map(|words| {
        let made = place.call(&[&["token"], words].concat());
        let (begin, end) = (made.stderr.find('{').unwrap(), made.stderr.rfind('}').unwrap());
        entries.push(serde_json::from_str::<Value>(&made.stderr[begin..=end]).unwrap());
        format!("Bearer {}", made.stdout.trim())
    });
    let text = std::fs::read(place.path().join("loopctl.json")).unwrap();
    let mut project: Value = serde_json::from_slice(&text).unwrap();
    project["serve"]["tokens"] = json!(entries);
    place.json("loopctl.json", &project);
    headers
}

/// Two organisations share a model that takes one request at a time, and one of them has a run with 200 items.
#[test]
fn organisations_and_runs_have_turns_at_a_model_however_many_items_one_of_them_has() {
    let gate = Gate::default();
    let model = holding(&gate);
    let place = place(&model, json!({ "max_connections": 1 }));
    asking_for_each_item(&place);
    let [many, few, ops] = tokens(
        &place,
        [
            &["many", "--scope", "run", "--org", "many"],
            &["few", "--scope", "run", "--org", "few"],
            &["ops", "--scope", "metrics"],
        ],
    );
    let server = Serving::start(&place, &[]);
    let start = |token: &str, body: Value| {
        let body = body.to_string();
        let started = server.send("POST", "/agents/execute?async=true", &[("authorization", token)], body.as_bytes());
        assert!([200, 202].contains(&started.status), "{started:?}");
    };
    let waiting = |number: usize| {
        let headers = [("authorization", ops.as_str())];
        let text = || String::from_utf8(server.send("GET", "/metrics", &headers, b"").body).unwrap();
        let line = format!("loopctl_model_requests_waiting{{model=\"main\"}} {number}\n");
        until(|| text().contains(&line));
    };
    start(&many, json!({ "loop": "many", "input": { "items": (0..200).collect::<Vec<_>>() } }));
    waiting(199);
    start(&many, json!({ "loop": "test" }));
    waiting(200);
    start(&few, json!({ "loop": "test" }));
    waiting(201);
    gate.open();
    model.wait_for(6);
    let asked = model.requests();
    let of_loops = asked.iter().take(6).filter(|request| String::from_utf8_lossy(&request.body).contains("Say it."));
    assert_eq!(of_loops.count(), 2, "the runs with one request come before the 200 of the other run");
}

/// Three items ask a model that takes one request at a time, and the process is killed: one request was sent.
#[test]
fn a_call_that_only_waited_for_its_turn_is_made_after_a_crash_and_nobody_is_asked_about_it() {
    let gate = Gate::default();
    let model = holding(&gate);
    let place = place(&model, json!({ "max_connections": 1 }));
    asking_for_each_item(&place);
    let server = Serving::start(&place, &[]);
    let started = server.execute("?async=true", json!({ "loop": "many", "input": { "items": [1, 2, 3] } })).json();
    let id = started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}"));
    model.wait_for(1);
    until(|| waiting(&server) == Some("2".to_owned()));
    // The row says it too.
    until(|| !server.get("/agents").json()["agents"][0]["model_wait"].is_null());
    for _ in 0..10 {
        crate::common::wait_poll_interval();
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(server.pid()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    drop(server);
    gate.open();
    let next = Serving::start(&place, &[]);
    let ended = next.settled(id);
    let asked = ended["result"]["pause"]["steps"].as_array().unwrap_or_else(|| panic!("{ended:#}"));
    assert_eq!(asked.len(), 1, "only the call that was sent may have happened: {ended:#}");
    assert_eq!(model.requests().len(), 3);
}
