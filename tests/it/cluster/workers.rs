//! Who executes the runs of a store, what is left to whom, and how long runs are kept.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::harness::LEASE;
use crate::cluster::harness::database::Store;
use crate::cluster::harness::proxy::Proxy;
use crate::common::complete;
use crate::common::server::{Answer, Gate, Server};
use crate::serve::client::{self, Serving};
use crate::test_server::server;

/// The address of a new store with a short lease; none without PostgreSQL.
fn store(test: &str) -> Option<String> {
    server(test).map(|server| format!("{}&lease_ms=1500", server.store()))
}

/// A folder with a loop that calls a tool once; its documents differ by the word.
fn acting(url: &str, word: &str) -> crate::common::Place {
    let place = client::acting(url, 1, 0);
    place.json(
        "other.json",
        &json!({ "type": "loop", "name": word,
        "properties": { "mode": "react", "objective": "Answer.", "tools": [] } }),
    );
    place
}

fn workers(server: &Serving, store: &str, place: &crate::common::Place) -> Vec<Value> {
    assert!(server.get("/healthz").status == 200);
    let listed = place.call(&["workers", "--store", store, "--output", "json"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    serde_json::from_str::<Vec<Value>>(&listed.stdout).unwrap()
}

fn run_of(started: &Value) -> String {
    started["agent_run_id"].as_str().unwrap_or_else(|| panic!("no run: {started}")).to_owned()
}

#[test]
fn two_servers_with_different_folders_say_so_and_a_run_waits_for_the_one_that_has_its_folder() {
    let Some(store) = store("two_servers_with_different_folders_say_so") else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let (here, there) = (acting(&tools.url(), "here"), acting(&tools.url(), "there"));
    let one = Serving::start(&here, &["--store", &store, "--max-concurrent-runs", "1"]);
    assert_eq!(one.get("/readyz").json()["other_folders"], Value::Null);
    let other = Serving::start(&there, &["--store", &store]);
    // The second one answers when it has introduced itself.
    for server in [&other, &one] {
        let ready = server.get("/readyz");
        let sentence = ready.json()["other_folders"].as_str().unwrap_or_default().to_owned();
        assert_eq!(ready.status, 200, "servers are replaced one by one");
        assert!(sentence.contains("1 of 2 servers") && sentence.ends_with("give all the same folder"), "{sentence}");
    }
    let start = |n: u32| run_of(&one.execute("?async=true", json!({ "loop": "test", "input": { "n": n } })).json());
    let runs = [start(0), start(1)];
    tools.wait_for(1);
    // The other server has slots, and looks at the queue each second; what it answers is what it may take.
    assert_eq!(one.get("/readyz").json()["queued"], 1);
    assert_eq!(other.get("/readyz").json()["queued"], 0, "it is left to the server of its folder");
    let metrics = String::from_utf8_lossy(&one.get("/metrics").body).into_owned();
    assert_eq!(metrics.lines().filter(|line| line.starts_with("loopctl_workers{")).count(), 2, "{metrics}");

    let listed = workers(&one, &store, &here);
    assert_eq!(listed.len(), 2, "{listed:?}");
    let busy = listed.iter().find(|worker| worker["driven"] == 1).unwrap();
    assert_eq!((&busy["runs"], &busy["is_alive"]), (&json!([runs[0]]), &json!(true)));
    assert_eq!(busy["version"], env!("CARGO_PKG_VERSION"));
    assert_ne!(listed[0]["folder"], listed[1]["folder"]);
    for (server, busy) in [(&one, 1), (&other, 0)] {
        let address = server.address.to_string();
        let worker = listed.iter().find(|worker| worker["address"] == address.as_str()).unwrap();
        assert_eq!(worker["driven"], busy, "{worker}");
        assert!(worker["clock_ahead_ms"].as_i64().unwrap().abs() < 5_000, "{worker}");
    }
    assert!(busy["silent_ms"].as_i64().unwrap() < 1_500, "{busy}");
    let shown = here.call(&["workers", "--store", &store]).stdout;
    assert!(shown.lines().count() == 3 && shown.contains("HEARTBEAT"), "{shown}");

    // When nobody serves its folder any more, anybody takes the run.
    drop(one);
    gate.open();
    for run in &runs {
        assert_eq!(other.settled(run)["status"], "completed");
    }
    assert_eq!(workers(&other, &store, &there).len(), 1, "the dead one has no runs any more");
}

#[test]
fn runs_that_ended_before_the_time_that_they_are_kept_are_deleted() {
    let test = "runs_that_ended_before_the_time_that_they_are_kept_are_deleted";
    let Some(postgres) = server(test) else { return };
    let place = client::place(json!({}), &[complete(json!("ok"))]);
    for store in [postgres.store(), "sqlite:runs.db".to_owned()] {
        for run in ["old", "new"] {
            assert_eq!(place.call(&["run", "loop.json", "--run-id", run, "--store", &store]).code, 0);
        }
        let age = "UPDATE runs SET updated_at_ms = 1000 WHERE run_id = 'old'";
        match store.split_once("schema=") {
            Some((_, schema)) => drop(postgres.psql(&age.replace("runs SET", &format!("{schema}.runs SET")))),
            None => drop(rusqlite::Connection::open(place.path().join("runs.db")).unwrap().execute(age, ()).unwrap()),
        }
        let prune = |more: &[&str]| {
            let ran = place.call(&[["runs", "prune", "--store", &store].as_slice(), more].concat());
            assert_eq!(ran.code, 0, "{ran:?}");
            ran.stdout
        };
        assert_eq!(prune(&["--older-than", "30d", "--dry-run"]), "1 run would be deleted\n");
        assert_eq!(prune(&["--older-than", "30d", "--status", "failed"]), "0 runs deleted\n");
        assert_eq!(prune(&["--older-than", "30d", "--output", "json"]), "{\"runs\":1,\"dry_run\":false}\n");
        assert_eq!(place.call(&["runs", "--ids", "--store", &store]).stdout, "new\n");
        let trace = place.call(&["trace", "new", "--store", &store]);
        assert_eq!(trace.code, 0, "its documents are there still: {trace:?}");
    }
    let wrong = place.call(&["runs", "prune", "--older-than", "30"]);
    assert_eq!((wrong.code, wrong.stderr.contains("as in 30d")), (2, true), "{wrong:?}");
}

#[test]
fn a_server_deletes_what_is_older_than_the_project_keeps() {
    let Some(postgres) = server("a_server_deletes_what_is_older_than_the_project_keeps") else { return };
    let place = client::place(json!({}), &[complete(json!("ok"))]);
    let store = postgres.store();
    for run in ["old", "new"] {
        assert_eq!(place.call(&["run", "loop.json", "--run-id", run, "--store", &store]).code, 0);
    }
    let schema = store.split_once("schema=").unwrap().1;
    postgres.psql(&format!("UPDATE {schema}.runs SET updated_at_ms = 1000 WHERE run_id = 'old'"));
    let mut project: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    project["serve"] = json!({ "keep_days": 30 });
    place.json("loopctl.json", &project);
    let server = Serving::start(&place, &["--store", &store]);
    while server.get("/agents/old/status").status != 404 {
        crate::common::wait_poll_interval();
    }
    assert_eq!(server.get("/agents/new/status").json()["status"], "completed");
}

/// A workflow of which item 0 acts, and items 1 and 2 ask before they do.
fn asking(tools: &Server) -> crate::common::Place {
    let place = crate::common::Place::new();
    let more = json!({ "http_method": "POST", "idempotent": true,
        "parameters": { "type": "object", "properties": { "id": {} } } });
    place.json("actions/act.json", &json!([crate::common::web("act", &format!("{}/act", tools.url()), more)]));
    let ask = json!({ "id": "ask", "type": "PbotApproval", "properties": { "comment": "Pay?", "on_rejected": "stop" },
        "filter": { "condition": { "greaterThan": ["@__index", 0] } } });
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "one", "max_concurrency": 3,
        "actions_to_execute": [ask, { "type": "act", "properties": { "id": "@one" } }] } });
    place.json("workflows/pay.json", &json!({ "name": "pay", "definition": { "actions": [each] } }));
    client::scripted(&place, &[], json!({}));
    place
}

#[test]
fn any_worker_takes_a_decision_about_a_waiting_step_and_the_next_driver_takes_what_its_driver_left() {
    let Some(store) = store("any_worker_takes_a_decision_about_a_waiting_step") else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |number, _| {
        let answer = Answer::json(&json!({}));
        if number == 0 { answer.behind(&held) } else { answer }
    });
    let place = asking(&tools);
    let (driver, other) = (Serving::start(&place, &["--store", &store]), Serving::start(&place, &["--store", &store]));
    let started =
        driver.post("/workflows/pay/execute?async=true", &json!({ "input": { "items": ["slow", "a", "b"] } }));
    let run = started.json()["run_id"].as_str().unwrap().to_owned();
    tools.wait_for(1);
    let approve = |server: &Serving, at: &str| {
        server.post(&format!("/approvals/{run}/{at}?async=true"), &json!({ "approved": true }))
    };
    let reply = approve(&other, "each.1.ask");
    assert_eq!(reply.status, 202, "{reply:?}");
    // The item goes on at its driver, while its first call is held.
    tools.wait_for(2);
    assert_eq!(approve(&other, "each.1.ask").code(), "refused", "it is decided");
    // The driver takes nothing any more: the decision waits for the next one.
    let pid = nix::unistd::Pid::from_raw(i32::try_from(driver.pid()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    assert_eq!(approve(&other, "each.2.ask").status, 202);
    drop(driver);
    gate.open();
    let ended = other.settled(&run);
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let calls = tools.requests();
    let made = |id: &str| calls.iter().filter(|call| call.json()["id"] == id).count();
    assert!((1..=2).contains(&made("slow")) && (1..=2).contains(&made("a")), "{calls:?}");
    assert_eq!(made("b"), 1, "{calls:?}");
    let decided: Vec<&Value> =
        ended["result"]["decisions"].as_array().unwrap().iter().map(|decision| &decision["step"]).collect();
    assert_eq!(decided, [&json!("each.1.ask"), &json!("each.2.ask")]);
}

/// The series of the store, and one of the process.
const OF_STORE: [&str; 4] =
    ["loopctl_runs_queued ", "loopctl_runs_waiting{", "loopctl_runs_quarantined ", "loopctl_workers{"];

#[test]
#[expect(clippy::disallowed_methods, reason = "a deadline is measured here")]
fn the_metrics_and_the_readiness_are_answered_while_the_database_is_away() {
    let test = "the_metrics_and_the_readiness_are_answered_while_the_database_is_away";
    let Some(store) = Store::shared(test) else { return };
    let proxy = Proxy::start(format!("{}/.s.PGSQL.5432", server(test).unwrap().folder));
    // Long enough that what waits for the database waits longer than any scraper.
    let address = store.behind(&proxy).replace(&format!("lease_ms={}", LEASE.as_millis()), "lease_ms=60000");
    let place = acting("http://127.0.0.1:9/", "here");
    let server = Serving::start(&place, &["--store", &address]);
    let metrics = || {
        let reply = server.get("/metrics");
        assert_eq!(reply.status, 200);
        String::from_utf8(reply.body).unwrap()
    };
    let has = |text: &str, name: &str| text.lines().any(|line| line.starts_with(name));
    let whole = |text: &str| OF_STORE.iter().all(|name| has(text, name)) && has(text, "loopctl_store_up 1");
    assert!(whole(&metrics()));
    // Nothing is answered, as by a database that is frozen.
    proxy.lose(true, true);
    proxy.cut();
    let started = Instant::now();
    let text = metrics();
    assert!(has(&text, "loopctl_runs_driven ") && has(&text, "loopctl_store_up 0"), "{text}");
    assert!(OF_STORE.iter().all(|name| !has(&text, name)) && text.ends_with("# EOF\n"), "{text}");
    let ready = server.get("/readyz");
    assert_eq!((ready.status, &ready.json()["status"]), (503, &json!("store")), "{ready:?}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    proxy.lose(false, false);
    proxy.cut();
    while !whole(&metrics()) || server.get("/readyz").status != 200 {
        crate::common::wait_poll_interval();
    }
}
