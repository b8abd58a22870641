//! What an operator sees of a store: what waits for a human wherever its run is, who started and who cancelled, and the
//! processes that drive runs.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, with};
use crate::serve::client::{Serving, scripted};
use crate::serve::workflows::{STORES, act, asks, each, place};

/// A server that holds the calls of the slow items until the gate opens.
fn holding(gate: &Gate) -> Server {
    let held = gate.clone();
    Server::reading(move |_, request| {
        let answer = Answer::json(&json!({ "done": true }));
        match request.json()["id"].as_str() {
            Some("slow") => answer.behind(&held),
            Some("bad") => answer.status(422),
            _ => answer,
        }
    })
}

/// A workflow of which items that ask wait at `question` while others call.
fn asking(tools: &Server, question: Value) -> Place {
    let asked = json!({ "equal": ["@one.asks", true] });
    let question = with(question, json!({ "filter": { "condition": asked } }));
    let calls = json!({ "or": [{ "equal": ["@one.id", "slow"] }, { "equal": ["@one.id", "bad"] }] });
    let calls = act("@one.id", Some(calls));
    place(tools, json!({ "actions": [each(json!({ "max_concurrency": 8 }), json!([question, calls]))] }))
}

fn begin(server: &Serving, items: Value) -> String {
    let reply = server.post("/workflows/pay/execute?async=true", &json!({ "input": { "items": items } }));
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()["run_id"].as_str().unwrap().to_owned()
}

fn listed(server: &Serving, query: &str) -> Vec<Value> {
    server.get(&format!("/agents?{query}")).json()["agents"].as_array().unwrap().clone()
}

/// How many runs wait by the metrics.
fn counted(server: &Serving) -> u64 {
    let text = String::from_utf8(server.get("/metrics").body).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("loopctl_runs_waiting{"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Waits until this number of steps of a run wait beside others.
fn until_waiting(server: &Serving, run: &str, steps: usize) {
    while server.get(&format!("/agents/{run}/status")).json()["result"]["waiting"].as_array().map_or(0, Vec::len)
        < steps
    {
        crate::common::wait_poll_interval();
    }
}

fn form() -> Value {
    json!({ "id": "ask", "type": "PbotForm", "properties": { "expected_keys": ["name"] } })
}

#[test]
fn what_waits_in_a_run_that_is_under_way_is_listed_and_counted_once() {
    for store in STORES {
        for question in [asks(json!({})), form()] {
            let gate = Gate::default();
            let tools = holding(&gate);
            let place = asking(&tools, question);
            let server = Serving::start(&place, store);
            let nobody = begin(&server, json!([{ "id": "slow" }]));
            tools.wait_for(1);
            assert_eq!((listed(&server, "status=paused").len(), counted(&server)), (0, 0));
            let run =
                begin(&server, json!([{ "id": "slow" }, { "id": "a", "asks": true }, { "id": "b", "asks": true }]));
            until_waiting(&server, &run, 2);
            let waiting = listed(&server, "status=paused");
            let shown: Vec<_> =
                waiting.iter().map(|row| (&row["agent_run_id"], &row["status"], &row["waiting"])).collect();
            assert_eq!(shown, [(&json!(run), &json!("running"), &json!(true))], "{waiting:#?}");
            assert_eq!(counted(&server), 1);
            let all = listed(&server, "limit=10");
            assert_eq!(all.len(), 2, "{all:#?}");
            assert_eq!(all.iter().find(|row| row["agent_run_id"] == json!(nobody)).unwrap().get("waiting"), None);
            assert_eq!(listed(&server, "status=running").len(), 2);
            if store == STORES[0] {
                let store = ["--store", "sqlite:runs.db"];
                let table = place.call(&[&["runs", "--status", "paused"], &store[..]].concat());
                assert!(table.stdout.contains("a part of it waits for a human"), "{table:?}");
                assert!(!table.stdout.contains(&nobody), "{table:?}");
                let rows = place.call(&[&["runs", "--output", "json"], &store[..]].concat()).json();
                let marks: Vec<_> = rows.as_array().unwrap().iter().map(|row| row.get("waiting").cloned()).collect();
                assert_eq!(marks, [Some(json!(true)), None], "{rows:#}");
            }
            gate.open();
            server.settled(&nobody);
            let paused = server.settled(&run);
            assert_eq!(paused["status"], "paused", "{paused:#}");
            let waiting = listed(&server, "status=paused");
            assert_eq!((waiting.len(), &waiting[0]["status"], counted(&server)), (1, &json!("paused"), 1));
        }
    }
}

#[test]
fn a_run_that_goes_on_after_the_last_decision_waits_no_longer() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking(&tools, asks(json!({})));
    let server = Serving::start(&place, STORES[0]);
    let run = begin(&server, json!([{ "id": "slow" }, { "id": "a", "asks": true }]));
    until_waiting(&server, &run, 1);
    tools.wait_for(1);
    assert_eq!(listed(&server, "status=paused").len(), 1);
    // The next server finds it so too.
    drop(server);
    let server = Serving::start(&place, STORES[0]);
    assert_eq!((listed(&server, "status=paused").len(), counted(&server)), (1, 1));
    tools.wait_for(2);
    // Answered when it is stored: the slow item is held until later.
    let reply = server.post(&format!("/approvals/{run}/each.1.ask"), &json!({ "approved": true }));
    assert_eq!((reply.status, &reply.json()["status"]), (202, &json!("running")), "{reply:?}");
    assert_eq!((listed(&server, "status=paused").len(), counted(&server)), (0, 0));
    gate.open();
    assert_eq!(server.settled(&run)["status"], "completed");
}

#[test]
fn a_decision_beside_others_is_answered_when_it_is_stored_at_each_server() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking(&tools, asks(json!({})));
    let (driver, other) = (Serving::start(&place, STORES[0]), Serving::start(&place, STORES[0]));
    let asking = |id: &str| json!({ "id": id, "asks": true });
    let run = begin(&driver, json!([{ "id": "slow" }, asking("a"), asking("b"), asking("c"), asking("d")]));
    until_waiting(&driver, &run, 4);
    let resume = format!("/agents/{run}/resume");
    // Nothing opens the gate: each response comes while the slow item is under way.
    for (server, route, body) in [
        (&driver, format!("/approvals/{run}/each.1.ask"), json!({ "approved": false, "comment": "no" })),
        (&driver, resume.clone(), json!({ "approve": true, "at": "each.2.ask" })),
        (&other, format!("/approvals/{run}/each.3.ask"), json!({ "approved": true })),
        (&other, format!("{resume}?wait_ms=60000"), json!({ "deny": true, "reason": "no", "at": "each.4.ask" })),
    ] {
        until_waiting(&driver, &run, 1);
        let reply = server.post(&route, &body);
        assert_eq!((reply.status, &reply.json()["status"]), (202, &json!("running")), "{route}: {reply:?}");
        let again =
            server.post(&resume, &json!({ "approve": true, "at": body["at"].as_str().unwrap_or("each.1.ask") }));
        assert_eq!((again.status, again.code().as_str()), (409, "refused"), "{again:?}");
    }
    gate.open();
    let ended = driver.settled(&run);
    assert_eq!(
        (&ended["status"], ended["result"]["decisions"].as_array().map(Vec::len)),
        (&json!("completed"), Some(4))
    );
}

#[test]
fn of_two_decisions_at_two_servers_the_one_that_is_not_taken_is_refused() {
    for question in [asks(json!({})), form()] {
        let is_form = question["type"] == "PbotForm";
        let gate = Gate::default();
        let tools = holding(&gate);
        let place = asking(&tools, question);
        let (driver, other) = (Serving::start(&place, STORES[0]), Serving::start(&place, STORES[0]));
        for round in 0..4 {
            // The only question of the run: after it nothing waits, and the driver has nothing to look for.
            let run = begin(&driver, json!([{ "id": "slow" }, { "id": "a", "asks": true }]));
            until_waiting(&driver, &run, 1);
            let at = json!({ "at": "each.1.ask" });
            let (one, two) = if is_form {
                (json!({ "answer": "{\"name\":\"x\"}" }), json!({ "answer": "{\"name\":\"y\"}" }))
            } else {
                (json!({ "approve": true }), json!({ "deny": true, "reason": "no" }))
            };
            let target = format!("/agents/{run}/resume?async=true");
            let (first, second) = std::thread::scope(|scope| {
                let first = scope.spawn(|| other.post(&target, &with(one, at.clone())));
                if round % 2 == 1 {
                    while queued(&place) == 0 && !first.is_finished() {
                        crate::common::wait_poll_interval();
                    }
                }
                let second = driver.post(&target, &with(two, at.clone()));
                (first.join().unwrap(), second)
            });
            let mut statuses = [first.status, second.status];
            statuses.sort_unstable();
            assert_eq!(statuses, [202, 409], "{first:?} {second:?}");
            let status = driver.get(&format!("/agents/{run}/status")).json();
            assert_eq!(status["result"]["decisions"].as_array().map(Vec::len), Some(1), "{status:#}");
            assert_eq!(queued(&place), 0);
        }
        gate.open();
    }
}

/// The decisions that wait in the store.
fn queued(place: &Place) -> u32 {
    let store = rusqlite::Connection::open(place.path().join("runs.db")).unwrap();
    store.query_row("SELECT count(*) FROM decisions", [], |row| row.get(0)).unwrap()
}

/// A place with these tokens, and a workflow that waits; the tokens by their names.
fn with_tokens(tools: &Server, names: &[(&str, &[&str])]) -> (Place, Vec<String>) {
    let place = asking(tools, asks(json!({})));
    let (mut entries, mut tokens) = (Vec::new(), Vec::new());
    for (name, scopes) in names {
        let scopes: Vec<&str> = scopes.iter().flat_map(|scope| ["--scope", scope]).collect();
        let made = place.call(&[&["token", name], scopes.as_slice()].concat());
        assert_eq!(made.code, 0, "{made:?}");
        entries.push(serde_json::from_str::<Value>(made.stderr.lines().nth(1).unwrap()).unwrap());
        tokens.push(format!("Bearer {}", made.stdout.trim()));
    }
    scripted(&place, &[], json!({ "serve": { "tokens": entries } }));
    (place, tokens)
}

#[test]
fn who_started_and_who_cancelled_is_shown() {
    for is_driven in [true, false] {
        let gate = Gate::default();
        let tools = holding(&gate);
        let all: &[&str] = &["run", "read", "decide"];
        let (place, tokens) = with_tokens(&tools, &[("bob", all), ("alice", all)]);
        let server = Serving::start(&place, STORES[0]);
        let ask = |method: &str, target: &str, token: usize, body: &[u8]| {
            server.send(method, target, &[("authorization", &tokens[token])], body)
        };
        let items = if is_driven { json!([{ "id": "slow" }]) } else { json!([{ "id": "a", "asks": true }]) };
        let body = json!({ "input": { "items": items } }).to_string();
        let query = if is_driven { "?async=true" } else { "" };
        let started = ask("POST", &format!("/workflows/pay/execute{query}"), 0, body.as_bytes()).json();
        let run = started["run_id"].as_str().unwrap().to_owned();
        if is_driven {
            tools.wait_for(1);
        }
        let status = ask("GET", &format!("/agents/{run}/status"), 1, b"").json();
        assert_eq!(status["token"], "bob", "{status:#}");
        assert_eq!(ask("GET", "/agents", 1, b"").json()["agents"][0]["token"], "bob");
        let rows = place.call(&["runs", "--store", "sqlite:runs.db", "--output", "json"]).json();
        assert_eq!(rows[0]["token"], "bob", "{rows:#}");
        ask("DELETE", &format!("/agents/{run}?reason=ops"), 1, b"");
        let mut status = json!({});
        while status["status"] != "cancelled" {
            status = ask("GET", &format!("/agents/{run}/status"), 1, b"").json();
        }
        let result = &status["result"];
        assert_eq!(
            (&result["cancelled_by"], &result["error"]["message"]),
            (&json!("alice"), &json!("ops")),
            "{status:#}"
        );
        let trace = ask("GET", &format!("/agents/{run}/trace"), 1, b"").json();
        assert_eq!(trace["cancelled_by"], "alice", "{trace:#}");
        let text = place.call(&["trace", &run, "--store", "sqlite:runs.db"]);
        assert!(text.stdout.contains("ops") && text.stdout.contains("cancelled by alice"), "{text:?}");
        let page = place.call(&["trace", &run, "--store", "sqlite:runs.db", "--format", "html"]);
        assert!(page.stdout.contains("ops (by alice)"), "{page:?}");
        gate.open();
    }
}

#[test]
fn the_command_line_cancels_as_the_user_of_the_machine() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking(&tools, asks(json!({})));
    let (server, log) = logged(&place);
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).unwrap();
    let user = user.map_or_else(|| format!("uid {}", nix::unistd::Uid::current()), |user| user.name);
    let cases = if nix::unistd::Uid::current().is_root() {
        // Root is believed about who it was before; the other variables name anybody.
        vec![
            (vec![("USER", "mallory"), ("LOGNAME", "mallory")], user.clone()),
            (vec![("SUDO_USER", "alice")], format!("{user} (sudo by alice)")),
            (vec![("SUDO_USER", user.as_str())], user.clone()),
        ]
    } else {
        vec![(vec![("USER", "mallory"), ("SUDO_USER", "alice")], user)]
    };
    for (number, (env, by)) in cases.into_iter().enumerate() {
        let run = begin(&server, json!([{ "id": "slow" }]));
        tools.wait_for(number + 1);
        let store = ["--store", "sqlite:runs.db"];
        let cancelled = place.call_with(&[&["cancel", &run, "--reason", "ops"], &store[..]].concat(), &env);
        assert_eq!(cancelled.code, 0, "{cancelled:?}");
        let result = server.settled(&run)["result"].clone();
        assert_eq!((&result["cancelled_by"], &result["error"]["message"]), (&json!(by), &json!("ops")), "{result:#}");
        line_with(&log, &[" cancelled", &run, &format!("by=\"{by}\"")]);
        let explained = place.call(&[&["explain", &run], &store[..]].concat());
        assert!(explained.stdout.contains(&format!("cancelled by {by}")), "{explained:?}");
        let explained = place.call(&[&["explain", &run, "--output", "json"], &store[..]].concat()).json();
        assert_eq!((&explained["cancelled_by"], &explained["why"]), (&json!(by), &json!("ops")), "{explained:#}");
    }
    gate.open();
}

#[test]
fn a_cancelled_run_has_one_line_whoever_drives_it() {
    for is_driven in [true, false] {
        let gate = Gate::default();
        let tools = holding(&gate);
        let place = asking(&tools, asks(json!({})));
        let (server, log) = logged(&place);
        let items = if is_driven { json!([{ "id": "slow" }]) } else { json!([{ "id": "a", "asks": true }]) };
        let run = begin(&server, items);
        if is_driven {
            tools.wait_for(1);
        } else {
            server.settled(&run);
        }
        server.send("DELETE", &format!("/agents/{run}?reason=ops"), &[], b"");
        assert_eq!(server.settled(&run)["status"], "cancelled");
        line_with(&log, &[" cancelled", &run]);
        let text = std::fs::read_to_string(&log).unwrap();
        let lines = text.lines().filter(|line| line.contains(" cancelled") && line.contains(&run)).count();
        assert_eq!(lines, 1, "{text}");
        gate.open();
    }
}

#[test]
fn a_decision_by_a_token_is_logged_with_its_step() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    let tools = crate::serve::workflows::tools();
    let place = asking(&tools, asks(json!({})));
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[], json!({ "serve": { "callback_secret": "file:hook.key" } }));
    let (server, log) = logged(&place);
    let body = json!({ "input": { "items": [{ "id": "a", "asks": true }] }, "callback_url": hook.url() });
    let run = server.post("/workflows/pay/execute", &body).json()["run_id"].as_str().unwrap().to_owned();
    hook.wait_for(1);
    let step = hook.requests()[0].json()["payload"]["pause"]["steps"][0].clone();
    let token = step["answer"]["token"].as_str().unwrap();
    let reply = server.post(&format!("/agents/{run}/answer"), &json!({ "approve": true, "token": token }));
    assert_eq!(reply.status, 202, "{reply:?}");
    let line = line_with(&log, &["decided", &run]);
    assert!(line.contains(&format!("at={}", step["at"])) && line.contains("approve"), "{line}");
    assert!(!std::fs::read_to_string(&log).unwrap().contains(token));
}

#[test]
fn the_servers_of_one_machine_have_processes_of_their_own() {
    let place = asking(&crate::serve::workflows::tools(), asks(json!({})));
    let (one, other) = (Serving::start(&place, STORES[0]), Serving::start(&place, STORES[0]));
    let workers = place.call(&["workers", "--store", "sqlite:runs.db", "--output", "json"]).json();
    let mut processes: Vec<u64> =
        workers.as_array().unwrap().iter().filter_map(|worker| worker["process"].as_u64()).collect();
    processes.sort_unstable();
    let mut expected = [u64::from(one.pid()), u64::from(other.pid())];
    expected.sort_unstable();
    assert_eq!(processes, expected, "{workers:#}");
    let table = place.call(&["workers", "--store", "sqlite:runs.db"]).stdout;
    assert!(table.contains("PROCESS") && table.contains(&one.pid().to_string()), "{table}");
    // Servers of one machine differ by their addresses and by the names that the table shows.
    for server in [&one, &other] {
        assert!(table.contains(&server.address.to_string()), "{table}");
    }
    let names: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() == 2 && names[0] != names[1] && names[0].len() == 12, "{table}");
    let long = workers[0]["name"].as_str().unwrap();
    assert!(names.iter().any(|name| long.ends_with(name)), "{table} {long}");
}

/// A server, with the lines of its log as they come.
fn logged(place: &Place) -> (Serving, std::path::PathBuf) {
    let log = place.path().join("log.txt");
    (Serving::start_logged(place, STORES[0], &log), log)
}

/// Waits for a line of the log with these words.
#[expect(clippy::disallowed_methods, reason = "a test that waits for what never comes must fail")]
fn line_with(log: &std::path::Path, words: &[&str]) -> String {
    let began = std::time::Instant::now();
    loop {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if let Some(line) = text.lines().find(|line| words.iter().all(|word| line.contains(word))) {
            return line.to_owned();
        }
        // A line that never comes fails the test, and does not stop all of them.
        assert!(began.elapsed().as_secs() < 60, "no line has {words:?}: {text}");
        crate::common::wait_poll_interval();
    }
}

#[test]
fn the_log_names_who_asks_what_is_decided_what_fails_and_what_is_taken_up() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let all: &[&str] = &["run", "read", "decide"];
    let (place, tokens) = with_tokens(&tools, &[("bob", all), ("reader", &["read"])]);
    let (server, log) = logged(&place);
    let ask = |server: &Serving, method: &str, target: &str, body: &Value| {
        server.send(method, target, &[("authorization", &tokens[0])], body.to_string().as_bytes())
    };
    let body = json!({ "input": { "items": [{ "id": "slow" }, { "id": "a", "asks": true }] } });
    let run =
        ask(&server, "POST", "/workflows/pay/execute?async=true", &body).json()["run_id"].as_str().unwrap().to_owned();
    let line = line_with(&log, &["answered", "/workflows/pay/execute"]);
    assert!(line.contains("token=\"bob\"") && line.contains("address=\"127.0.0.1:"), "{line}");
    // Also of a request that its token may not make.
    assert_eq!(server.send("DELETE", &format!("/agents/{run}"), &[("authorization", &tokens[1])], b"").status, 403);
    assert!(line_with(&log, &["refused", "DELETE"]).contains("token=\"reader\""));
    while ask(&server, "GET", &format!("/agents/{run}/status"), &json!({})).json()["result"]["waiting"][0]["at"]
        != "each.1.ask"
    {
        crate::common::wait_poll_interval();
    }
    let reply = ask(&server, "POST", &format!("/agents/{run}/resume"), &json!({ "approve": true, "at": "each.1.ask" }));
    assert_eq!(reply.status, 202, "{reply:?}");
    line_with(&log, &["decided", &run, "each.1.ask", "approve", "bob"]);
    tools.wait_for(1);
    drop(server);
    let (server, log) = logged(&place);
    line_with(&log, &["taken up", &run]);
    gate.open();
    // A run that fails.
    let failing = json!({ "input": { "items": [{ "id": "bad" }] } });
    let failed = ask(&server, "POST", "/workflows/pay/execute", &failing).json();
    assert_eq!(failed["status"], "failed", "{failed:#}");
    let line = line_with(&log, &["the run failed", failed["run_id"].as_str().unwrap()]);
    assert!(line.contains("pay") && line.contains("422"), "{line}");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(tokens.iter().all(|token| !text.contains(token.trim_start_matches("Bearer "))), "{text}");
}

#[test]
fn a_model_that_is_asked_again_is_shown_and_logged() {
    let away = Server::with(|_, _| {
        Answer::json(&json!({ "error": { "message": "upstream is away" } })).status(503).header("retry-after", "60")
    });
    let place = Place::new();
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "model": "m",
            "models": { "m": { "provider": "openai", "base_url": format!("{}/v1", away.url()), "model": "fake-1" } } }),
    );
    let inner = json!({ "type": "loop", "name": "inner", "description": "Does it.",
        "properties": { "mode": "react", "objective": "Do it.", "tools": [] } });
    place.json("loops/inner.json", &inner);
    let (server, log) = logged(&place);
    let run = server.post("/agents/execute?async=true", &json!({ "loop": "inner" })).json()["agent_run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let line = line_with(&log, &["asked again", &run]);
    assert!(line.contains("model=\"m\"") && line.contains("503"), "{line}");
    let mut status = json!({});
    while status["model_wait"]["attempts"].as_u64().is_none() {
        status = server.get(&format!("/agents/{run}/status")).json();
    }
    let wait = &status["model_wait"];
    assert!(wait["reason"].as_str().unwrap().contains("503") && wait["again_at"].is_string(), "{status:#}");
    assert_eq!((&wait["model"], &status["status"]), (&json!("m"), &json!("running")), "{status:#}");
    assert_eq!(server.send("DELETE", &format!("/agents/{run}"), &[], b"").status, 202);
    assert_eq!(server.settled(&run).get("model_wait"), None);
}

#[test]
fn a_model_that_an_action_asks_again_is_shown() {
    let away = Server::with(|_, _| Answer::json(&json!({ "error": { "message": "upstream is away" } })).status(503));
    let place = Place::new();
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "model": "m",
            "models": { "m": { "provider": "openai", "base_url": format!("{}/v1", away.url()), "model": "fake-1" } } }),
    );
    let retry = json!({ "attempts": 20, "base_ms": 3_000, "max_ms": 3_000 });
    place.json(
        "actions/ask.json",
        &json!({ "action_name": "ask", "kind": "llm", "description": "Asks.", "template": "Why?", "retry": retry,
            "timeout_ms": 60_000 }),
    );
    let steps = json!([{ "id": "asks", "type": "ask", "properties": {} }]);
    place.json("workflows/flow.json", &json!({ "name": "flow", "definition": { "actions": steps } }));
    let (server, _) = logged(&place);
    let started = server.post("/agents/execute?async=true", &json!({ "loop": "flow" })).json();
    let run = started["agent_run_id"].as_str().unwrap();
    let mut status = json!({});
    while status["model_wait"]["attempts"].as_u64().is_none() {
        status = server.get(&format!("/agents/{run}/status")).json();
        assert_eq!(status["status"], "running", "{status:#}");
    }
    let wait = &status["model_wait"];
    assert!(
        wait["reason"].as_str().unwrap().contains("upstream is away") && wait["again_at"].is_string(),
        "{status:#}"
    );
    assert_eq!((&wait["model"], wait.get("agent_run_id")), (&json!("m"), None), "{status:#}");
    assert_eq!(server.send("DELETE", &format!("/agents/{run}"), &[], b"").status, 202);
    assert_eq!(server.settled(run).get("model_wait"), None);
}

#[test]
fn a_post_that_nobody_can_answer_says_why() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    for (scopes, answers) in [(&["run", "read"][..], false), (&["run", "read", "decide"][..], true)] {
        for is_beside in [false, true] {
            let gate = Gate::default();
            let tools = holding(&gate);
            let (place, tokens) = with_tokens(&tools, &[("bob", scopes)]);
            place.file("hook.key", "s3cret-of-the-hook\n");
            let project: Value =
                serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
            let serve = with(project["serve"].clone(), json!({ "callback_secret": "file:hook.key" }));
            scripted(&place, &[], json!({ "serve": serve }));
            let (server, log) = logged(&place);
            let asks = json!({ "id": "a", "asks": true });
            let items = if is_beside { json!([{ "id": "slow" }, asks]) } else { json!([asks]) };
            let body = json!({ "input": { "items": items }, "callback_url": hook.url() }).to_string();
            let headers = [("authorization", tokens[0].as_str())];
            let before = hook.requests().len();
            let reply = server.send("POST", "/workflows/pay/execute?async=true", &headers, body.as_bytes());
            assert_eq!(reply.status, 202, "{reply:?}");
            hook.wait_for(before + 1);
            let payload = hook.requests()[before].json()["payload"].clone();
            let step = if is_beside { &payload["steps"][0] } else { &payload["pause"]["steps"][0] };
            assert_eq!(step.get("answer").is_some(), answers, "{payload:#}");
            let why = payload["without_answer"].as_str();
            assert_eq!(why.is_some_and(|why| why.contains("`decide`")), !answers, "{payload:#}");
            gate.open();
            let log = server.whole_log(&log);
            assert_eq!(log.contains("posted without a link"), !answers, "{log}");
        }
    }
}

#[test]
fn what_a_response_recommends_is_said_in_the_words_of_http() {
    let place = crate::serve::client::place(
        json!({}),
        &[crate::common::think("nothing", json!({})), crate::common::complete(json!("x"))],
    );
    let input =
        json!({ "type": "object", "properties": { "order_id": { "type": "string" } }, "required": ["order_id"] });
    let properties = json!({ "mode": "react", "objective": "Do it.", "tools": [] });
    place.json("loops/need.json", &json!({ "type": "loop", "name": "need", "properties": properties, "input": input }));
    let shown = json!({ "mode": "react", "objective": "Do {{input.order}}.", "tools": [] });
    place.json("loops/shown.json", &json!({ "type": "loop", "name": "shown", "properties": shown }));
    let server = Serving::start(&place, STORES[0]);
    for body in [
        json!({ "loop": "need", "input": {} }),
        json!({ "loop": "shown", "input": {} }),
        json!({ "loop": "shown", "input": { "ordr": 1 } }),
    ] {
        let reply = server.post("/agents/execute", &body);
        let text = String::from_utf8(reply.body.clone()).unwrap();
        assert_eq!(reply.status, 422, "{text}");
        assert!(!text.contains("--"), "{text}");
        assert!(text.contains("in the body"), "{text}");
    }
    // A changed document: the two ways are fields.
    let id =
        server.post("/agents/execute", &json!({ "loop": "test" })).json()["agent_run_id"].as_str().unwrap().to_owned();
    let retried = server.post(&format!("/agents/{id}/retry"), &json!({}));
    let detail = retried.json()["detail"].as_str().unwrap().to_owned();
    assert!(!detail.contains("..") && !detail.contains("--"), "{detail}");
}

#[test]
fn a_secret_in_a_file_is_read_again_by_each_run_and_old_and_new_text_stay_hidden() {
    let tools =
        Server::reading(|_, request| Answer::json(&json!({ "sent": request.header("x-k").unwrap_or_default() })));
    let hook = Server::with(|_, _| Answer::json("{}"));
    let place = Place::new();
    place.file("k.txt", "old-secret-text\n");
    place.file("hook.key", "old-key-of-the-hook\n");
    let get =
        crate::common::web("get", &format!("{}/get", tools.url()), json!({ "headers": { "X-K": "orgconfig:k" } }));
    place.json("actions/get.json", &json!([get]));
    let properties = json!({ "mode": "react", "objective": "Do it.", "tools": [{ "type": "action", "name": "get" }] });
    place.json("loops/one.json", &json!({ "type": "loop", "name": "one", "properties": properties }));
    let replies = [crate::common::think("get", json!({})), crate::common::complete(json!("x"))];
    scripted(
        &place,
        &replies,
        json!({ "orgconfig": { "k": "file:k.txt" }, "serve": { "callback_secret": "file:hook.key" } }),
    );
    let server = Serving::start(&place, STORES[0]);
    let run = || {
        let body = json!({ "loop": "one", "callback_url": hook.url() });
        let reply = server.post("/agents/execute?include_trace=true", &body);
        assert_eq!(reply.status, 200, "{reply:?}");
        String::from_utf8(reply.body).unwrap()
    };
    let signed = |at: usize, key: &str| {
        hook.wait_for(at + 1);
        let requests = hook.requests();
        let request = &requests[at];
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.as_bytes());
        let tag: String =
            ring::hmac::sign(&key, &request.body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        request.header("x-hyphen-signature").is_some_and(|said| said == format!("sha256={tag}"))
    };
    let first = run();
    assert!(signed(0, "old-key-of-the-hook"));
    place.file("k.txt", "new-secret-text\n");
    place.file("hook.key", "new-key-of-the-hook\n");
    let second = run();
    assert!(signed(1, "new-key-of-the-hook"));
    let sent: Vec<String> =
        tools.requests().iter().filter_map(|request| request.header("x-k").map(str::to_owned)).collect();
    assert_eq!(sent, ["old-secret-text", "new-secret-text"]);
    // The server that is called still says the old one.
    for text in [first, second] {
        assert!(text.contains("[secret k]") && !text.contains("secret-text"), "{text}");
    }
    assert_eq!(server.get("/readyz").status, 200);
    std::fs::remove_file(place.path().join("k.txt")).unwrap();
    let ready = server.get("/readyz");
    assert_eq!((ready.status, &ready.json()["missing"]), (503, &json!(["k"])), "{ready:?}");
    assert_eq!(server.post("/agents/execute", &json!({ "loop": "one" })).status, 422);
    place.file("k.txt", "third-secret\n");
    std::fs::remove_file(place.path().join("hook.key")).unwrap();
    let ready = server.get("/readyz");
    assert_eq!((ready.status, &ready.json()["missing"]), (503, &json!(["serve.callback_secret"])), "{ready:?}");
    place.file("hook.key", "new-key-of-the-hook\n");
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn a_store_in_use_is_backed_up_and_pruning_says_what_becomes_of_the_space() {
    let gate = Gate::default();
    let tools = holding(&gate);
    let place = asking(&tools, asks(json!({})));
    let server = Serving::start(&place, STORES[0]);
    let waits = begin(&server, json!([{ "id": "a", "asks": true }]));
    server.settled(&waits);
    let works = begin(&server, json!([{ "id": "slow" }]));
    tools.wait_for(1);
    let copied = place.call(&["store", "copy", "sqlite:runs.db", "sqlite:copy.db"]);
    assert!(copied.code == 2 && copied.stderr.contains("loopctl store backup"), "{copied:?}");
    let copied = place.call(&["store", "copy", "sqlite:none.db", "sqlite:copy.db"]);
    assert!(copied.code == 2 && copied.stderr.contains("there is no store"), "{copied:?}");
    assert!(
        ["copy.db", "none.db"].iter().all(|name| !place.path().join(name).exists()),
        "a refused copy leaves a file"
    );
    let backup = |to: &str| place.call(&["store", "backup", "sqlite:runs.db", to]);
    let made = backup("sqlite:b.db");
    assert_eq!(made.code, 0, "{made:?}");
    for name in ["b.db", "sqlite:b.db", "runs.db"] {
        let refused = backup(name);
        assert!(refused.code != 0 && refused.stderr.contains("name a new one"), "{refused:?}");
    }
    let ids = |store: &str| place.call(&["runs", "--store", store, "--ids"]).stdout;
    assert_eq!(ids("sqlite:b.db"), format!("{works}\n{waits}\n"));
    let trace = |store: &str| place.call(&["trace", &waits, "--store", store, "--format", "json"]).stdout;
    assert_eq!(trace("sqlite:b.db"), trace("sqlite:runs.db"));
    assert_eq!(place.call(&["store", "check", "--store", "sqlite:b.db"]).code, 0);
    // Nobody executes runs of the copy, and one that waits is continued there.
    assert_eq!(place.call(&["workers", "--store", "sqlite:b.db", "--output", "json"]).json(), json!([]));
    let resumed = place.call(&["resume", &waits, "--approve", "--store", "sqlite:b.db"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let missing = place.call(&["store", "backup", "sqlite:nowhere.db", "c.db"]);
    assert!(missing.code != 0 && missing.stderr.contains("there is none"), "{missing:?}");
    assert!(!place.path().join("c.db").exists() && !place.path().join("nowhere.db").exists());
    gate.open();
    server.settled(&works);
    let prune = |more: &[&str]| {
        place.call(&[&["runs", "prune", "--older-than", "0s", "--store", "sqlite:runs.db"], more].concat())
    };
    let dry = prune(&["--dry-run"]);
    assert!(!dry.stderr.contains("space"), "{dry:?}");
    let pruned = prune(&[]);
    assert_eq!((pruned.code, pruned.stdout.as_str()), (0, "1 run deleted\n"), "{pruned:?}");
    assert!(!pruned.stderr.contains("keeps its size"), "the file shrinks: {pruned:?}");
}
