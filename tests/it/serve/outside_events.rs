//! Events from outside over HTTP: each run that waits gets one once, whichever came first, and one organisation's reaches no other.

use serde_json::{Value, json};

use crate::common::Place;
use crate::common::server::{Answer, Server};
use crate::serve::client::Serving;
use crate::test_server::PostgresServer;

/// A place whose workflow `ship` waits for a payment and then calls, and whose workflow `twice` waits for two.
fn place(tools: &Server) -> Place {
    let place = Place::new();
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true }, "events": { "keep_seconds": 3600 } }));
    let act = json!({ "action_name": "act", "kind": "http", "description": "Acts.", "http_method": "POST",
        "url": format!("{}/{{{{of}}}}", tools.url()),
        "parameters": { "type": "object", "properties": { "of": { "type": "string" } } } });
    place.json("actions/act.json", &act);
    let wait = |key: &str| {
        json!({ "id": key, "type": "wait_for_event", "outputKey": key, "properties": {
            "event": "payment.received", "match": { "order": "@input.order" }, "ttl_seconds": 7200 } })
    };
    let act = |of: &str| json!({ "type": "act", "properties": { "of": of } });
    let flow = |name: &str, steps: Value| json!({ "name": name, "definition": { "actions": steps } });
    place.json("workflows/ship.json", &flow("ship", json!([wait("paid"), act("{{paid.by}}")])));
    place.json("workflows/twice.json", &flow("twice", json!([wait("first"), wait("second"), act("{{second.by}}")])));
    let one = json!({ "type": "wait_for_event", "properties": { "event": "go" } });
    let each = json!({ "type": "loop", "id": "each", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "one", "max_concurrency": 9, "actions_to_execute": [one, act("{{one}}")] } });
    place.json("workflows/items.json", &flow("items", json!([each])));
    place.file("clock", "0");
    place
}

fn tools() -> Server {
    Server::with(|_, _| Answer::json(&json!({})))
}

fn start(place: &Place, store: &str) -> Serving {
    let clock = place.path().join("clock").to_str().expect("a path").to_owned();
    Serving::start_with(place, &["--store", store], &[("LOOPCTL_CLOCK", &clock)])
}

fn begin(server: &Serving, name: &str, input: &Value) -> String {
    let started = server.post(&format!("/workflows/{name}/execute?async=true"), &json!({ "input": input })).json();
    started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned()
}

fn waits(server: &Serving, id: &str) -> Value {
    let run = server.settled(id);
    assert_eq!((&run["status"], &run["result"]["termination"]), (&json!("paused"), &json!("waiting_event")), "{run:#}");
    run
}

fn completed(server: &Serving, id: &str) -> Value {
    loop {
        let run = server.get(&format!("/agents/{id}/status")).json();
        if run["status"] == "completed" {
            return run;
        }
        assert_ne!(run["status"], "failed", "{run:#}");
        crate::common::wait_poll_interval();
    }
}

fn paid(server: &Serving, id: &str, order: i64, by: &str) -> Value {
    let event = json!({ "id": id, "event": "payment.received", "data": { "order": order, "by": by } });
    let taken = server.post("/events", &event);
    assert_eq!(taken.status, 202, "{taken:?}");
    taken.json()
}

fn posted(server: &Server) -> Vec<String> {
    server.requests().iter().map(|request| request.path.clone()).collect()
}

#[test]
fn an_event_reaches_each_run_that_waits_for_it_once_before_and_after_it_begins_to_wait() {
    let test = "an_event_reaches_each_run_that_waits_for_it_once_before_and_after_it_begins_to_wait";
    let postgres = crate::test_server::server(test).map(PostgresServer::store);
    let stores = ["memory".to_owned(), "sqlite:runs.db".to_owned()].into_iter().chain(postgres);
    for store in stores {
        let tools = tools();
        let place = place(&tools);
        let mut server = start(&place, &store);
        let (seven, other) =
            (begin(&server, "ship", &json!({ "order": 7 })), begin(&server, "ship", &json!({ "order": 8 })));
        let run = waits(&server, &seven);
        let step = &run["result"]["pause"]["steps"][0];
        assert_eq!(step["awaits"], json!({ "event": "payment.received", "match": { "order": 7 } }), "{step:#}");
        waits(&server, &other);
        let taken = paid(&server, "p1", 7, "card");
        assert_eq!((&taken["runs"], &taken["known"]), (&json!(1), &json!(false)), "{store}: {taken:#}");
        let run = completed(&server, &seven);
        let decision = &run["result"]["decisions"][0];
        assert_eq!((&decision["by"], &decision["decision"]), (&json!("event p1"), &json!("answer")), "{run:#}");
        assert_eq!(posted(&tools), ["/card"]);
        let again = paid(&server, "p1", 7, "card");
        assert_eq!((&again["runs"], &again["known"]), (&json!(0), &json!(true)), "{store}: sent again");
        let conflict = server.post("/events", &json!({ "id": "p1", "event": "payment.received", "data": {} }));
        assert_eq!((conflict.status, conflict.json()["code"].clone()), (409, json!("event_id_taken")), "{conflict:?}");
        // One that nobody waits for is there for the run that begins to wait after it, also after a restart.
        assert_eq!(paid(&server, "p2", 9, "cash")["runs"], 0);
        if store != "memory" {
            drop(server);
            server = start(&place, &store);
        }
        let nine = begin(&server, "ship", &json!({ "order": 9 }));
        completed(&server, &nine);
        let late = begin(&server, "ship", &json!({ "order": 9 }));
        waits(&server, &late);
        assert_eq!(posted(&tools), ["/card", "/cash"], "{store}: what a run took is kept for no other");
        waits(&server, &other);
    }
}

#[test]
fn a_run_takes_an_event_once_and_its_next_step_waits_for_another() {
    let tools = tools();
    let place = place(&tools);
    let server = start(&place, "memory");
    let run = begin(&server, "twice", &json!({ "order": 7 }));
    waits(&server, &run);
    paid(&server, "p1", 7, "card");
    while server.get(&format!("/agents/{run}/status")).json()["result"]["pause"]["steps"][0]["at"] != "second" {
        crate::common::wait_poll_interval();
    }
    paid(&server, "p1", 7, "card");
    assert_eq!(waits(&server, &run)["result"]["pause"]["steps"][0]["at"], "second", "the same event again is none");
    paid(&server, "p2", 7, "cash");
    completed(&server, &run);
    assert_eq!(posted(&tools), ["/cash"]);
    // Of items that wait for the same, the first gets it.
    let items = begin(&server, "items", &json!({ "items": ["a", "b"] }));
    waits(&server, &items);
    for (id, path) in [("g1", "/a"), ("g2", "/b")] {
        assert_eq!(server.post("/events", &json!({ "id": id, "event": "go" })).json()["runs"], 1);
        tools.wait_until(|requests| requests.iter().any(|request| request.path == path));
        server.settled(&items);
    }
    completed(&server, &items);
    assert_eq!(posted(&tools), ["/cash", "/a", "/b"]);
}

#[test]
fn an_event_that_does_not_come_fails_its_step_and_a_human_may_give_its_data() {
    let tools = tools();
    let place = place(&tools);
    let server = start(&place, "memory");
    let (late, given) =
        (begin(&server, "ship", &json!({ "order": 1 })), begin(&server, "ship", &json!({ "order": 2 })));
    waits(&server, &late);
    waits(&server, &given);
    let refused = server.post(&format!("/agents/{given}/resume"), &json!({ "at": "paid", "approve": true }));
    assert_eq!(refused.status, 409, "{refused:?}");
    let by_hand = json!({ "at": "paid", "answer": "{\"by\": \"hand\"}" });
    let ended = server.post(&format!("/agents/{given}/resume"), &by_hand).json();
    assert_eq!((&ended["status"], posted(&tools)), (&json!("completed"), vec!["/hand".to_owned()]), "{ended:#}");
    place.file("clock", 7_260_000.to_string());
    let ended = loop {
        let run = server.get(&format!("/agents/{late}/status")).json();
        if run["status"] == "failed" {
            break run;
        }
        crate::common::wait_poll_interval();
    };
    let error = &ended["result"]["error"];
    assert!(error["message"].as_str().unwrap().contains("`payment.received` did not come in time"), "{ended:#}");
    assert_eq!(error["step"], "paid");
}

#[test]
fn what_is_no_event_is_refused_and_one_of_another_organisation_reaches_no_run() {
    let tools = tools();
    let place = place(&tools);
    let token = |name: &str, org: &str, scopes: &[&str]| {
        let scopes: Vec<&str> = scopes.iter().flat_map(|scope| ["--scope", *scope]).collect();
        let made = place.call(&[&["token", name, "--org", org], scopes.as_slice()].concat());
        assert_eq!(made.code, 0, "{made:?}");
        let entry: Value = serde_json::from_str(made.stderr.lines().nth(1).expect("an entry")).expect("JSON");
        (made.stdout.trim().to_owned(), entry)
    };
    let (acme, of_acme) = token("acme", "acme", &["run", "read", "event"]);
    let (other, of_other) = token("other", "other", &["event"]);
    let (reader, of_reader) = token("reader", "acme", &["read", "run", "decide"]);
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true },
        "serve": { "tokens": [of_acme, of_other, of_reader] } }),
    );
    let server = start(&place, "memory");
    let send = |token: &str, target: &str, body: &Value| {
        let bearer = format!("Bearer {token}");
        server.send("POST", target, &[("authorization", &bearer)], body.to_string().as_bytes())
    };
    let started = send(&acme, "/workflows/ship/execute?async=true", &json!({ "input": { "order": 7 } })).json();
    let id = started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned();
    let status = || {
        let bearer = format!("Bearer {acme}");
        server.send("GET", &format!("/agents/{id}/status"), &[("authorization", &bearer)], b"").json()
    };
    while status()["status"] != "paused" {
        crate::common::wait_poll_interval();
    }
    let event = json!({ "id": "p1", "event": "payment.received", "data": { "order": 7, "by": "x" } });
    assert_eq!(send(&reader, "/events", &event).status, 403);
    assert_eq!(send(&other, "/events", &event).json()["runs"], 0);
    assert_eq!(status()["status"], "paused");
    for (wrong, code) in [
        (json!({ "id": "", "event": "paid" }), 400),
        (json!({ "id": "x".repeat(201), "event": "paid" }), 400),
        (json!({ "id": "a\nb", "event": "paid" }), 400),
        (json!({ "id": "a", "event": "a b" }), 400),
        (json!({ "id": "a", "event": "paid", "extra": 1 }), 400),
        (json!({ "event": "paid" }), 400),
        (json!({ "id": "a", "event": "paid", "data": "x".repeat(65_537) }), 413),
    ] {
        let refused = send(&acme, "/events", &wrong);
        assert_eq!(refused.status, code, "{wrong}: {refused:?}");
    }
    assert_eq!(send(&acme, "/events", &event).json()["runs"], 1, "its own event reaches it");
    while status()["status"] != "completed" {
        crate::common::wait_poll_interval();
    }
}

#[test]
fn an_event_is_in_time_by_when_it_came_and_not_by_when_its_run_is_driven() {
    let tools = tools();
    let place = place(&tools);
    let store = "sqlite:runs.db";
    let clock = place.path().join("clock").to_str().expect("a path").to_owned();
    let server = start(&place, store);
    let (in_time, late) =
        (begin(&server, "ship", &json!({ "order": 1 })), begin(&server, "ship", &json!({ "order": 2 })));
    waits(&server, &in_time);
    waits(&server, &late);
    drop(server);
    let twice = place.call(&[
        "event",
        "payment.received",
        "--id",
        "x",
        "--data",
        "{\"order\":1,\"order\":2}",
        "--store",
        store,
    ]);
    assert!(twice.code == 2 && twice.stderr.contains("`order` twice"), "{twice:?}");
    // No server runs while they come, nor when the time to wait is over.
    let send = |id: &str, order: i64| {
        let data = json!({ "order": order, "by": id }).to_string();
        let args = ["event", "payment.received", "--id", id, "--data", &data, "--store", store];
        let sent = place.call_with(&args, &[("LOOPCTL_CLOCK", &clock)]);
        assert_eq!(sent.code, 0, "{sent:?}");
        sent.stdout + &sent.stderr
    };
    assert!(send("early", 1).contains("1 run gets it"));
    place.file("clock", 7_260_000.to_string());
    assert!(send("late", 2).contains("no run waits for it"));
    let server = start(&place, store);
    completed(&server, &in_time);
    let error = server.settled(&late)["result"]["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("`payment.received` did not come in time"), "{error:#}");
    assert_eq!(posted(&tools), ["/early"]);
}

#[test]
fn events_that_come_together_go_to_each_run_one_after_the_other() {
    let test = "events_that_come_together_go_to_each_run_one_after_the_other";
    let postgres = crate::test_server::server(test).map(PostgresServer::store);
    for store in ["sqlite:runs.db".to_owned()].into_iter().chain(postgres) {
        let tools = tools();
        let place = place(&tools);
        let server = start(&place, &store);
        let items = [(); 2].map(|()| begin(&server, "items", &json!({ "items": ["a", "b", "c"] })));
        let twice = [(); 2].map(|()| begin(&server, "twice", &json!({ "order": 7 })));
        for run in items.iter().chain(&twice) {
            waits(&server, run);
        }
        drop(server);
        // Nobody drives the runs while they come.
        let send = |event: &str, id: &str| {
            let data = json!({ "order": 7, "by": id }).to_string();
            let sent = place.call(&["event", event, "--id", id, "--data", &data, "--store", &store]);
            assert!(sent.code == 0 && sent.stderr.contains("2 runs get it"), "{store}: {sent:?}");
        };
        for id in ["g1", "g2", "g3"] {
            send("go", id);
        }
        for id in ["p1", "p2"] {
            send("payment.received", id);
        }
        let server = start(&place, &store);
        for run in items.iter().chain(&twice) {
            completed(&server, run);
        }
        let mut posted = posted(&tools);
        posted.sort();
        assert_eq!(posted, ["/a", "/a", "/b", "/b", "/c", "/c", "/p2", "/p2"], "{store}");
    }
}

#[test]
fn a_run_finds_its_event_behind_many_that_were_kept_for_others() {
    let tools = tools();
    let place = place(&tools);
    let server = start(&place, "memory");
    for order in 0..260 {
        paid(&server, &format!("p{order}"), order, "other");
    }
    let first = paid(&server, "mine", 7_000, "mine");
    assert_eq!(first["runs"], 0);
    let again = json!({ "event": "payment.received", "data": { "by": "mine", "order": 7_000 }, "id": "mine" });
    let again = server.post("/events", &again).json();
    assert_eq!((&again["known"], &again["kept_until"]), (&json!(true), &first["kept_until"]), "{again:#}");
    let run = begin(&server, "ship", &json!({ "order": 7_000 }));
    completed(&server, &run);
    assert_eq!(posted(&tools), ["/mine"]);
}

#[test]
fn an_event_that_a_run_had_no_use_for_goes_to_a_run_that_waits_already() {
    let test = "an_event_that_a_run_had_no_use_for_goes_to_a_run_that_waits_already";
    let postgres = crate::test_server::server(test).map(PostgresServer::store);
    for store in ["sqlite:runs.db".to_owned()].into_iter().chain(postgres) {
        let tools = tools();
        let place = place(&tools);
        let server = start(&place, &store);
        let first = begin(&server, "ship", &json!({ "order": 7 }));
        waits(&server, &first);
        drop(server);
        // Both are for the first run, which takes one. The second begins to wait while the other one is in its queue.
        for id in ["p1", "p2"] {
            let data = json!({ "order": 7, "by": id }).to_string();
            let sent = place.call(&["event", "payment.received", "--id", id, "--data", &data, "--store", &store]);
            assert!(sent.code == 0 && sent.stderr.contains("1 run gets it"), "{store}: {sent:?}");
        }
        // A human who decides is too late, and takes none of them away.
        let denied = place.call(&["resume", &first, "--at", "paid", "--deny", "--store", &store]);
        assert!(denied.code == 2 && denied.stderr.contains("another decision"), "{store}: {denied:?}");
        let waiting = ["second", "third"];
        for id in waiting {
            let args = ["run", "workflows/ship.json", "--run-id", id, "--input", "order=7", "--store", &store];
            let run = place.call(&args);
            assert_eq!(run.code, 3, "{store}: {run:?}");
        }
        let server = start(&place, &store);
        completed(&server, &first);
        // The same event goes to one run.
        let status = |id: &str| server.settled(id)["status"].clone();
        let is_completed = |id: &str| status(id) == "completed";
        while !waiting.iter().any(|id| is_completed(id)) {
            crate::common::wait_poll_interval();
        }
        assert_eq!(waiting.iter().filter(|id| is_completed(id)).count(), 1, "{store}");
        assert_eq!(posted(&tools), ["/p1", "/p2"], "{store}");
    }
}

#[test]
fn an_event_that_a_driver_marked_and_did_not_take_is_not_lost_with_its_run() {
    let test = "an_event_that_a_driver_marked_and_did_not_take_is_not_lost_with_its_run";
    let postgres = crate::test_server::server(test).map(PostgresServer::store);
    for store in ["sqlite:runs.db".to_owned()].into_iter().chain(postgres) {
        let tools = tools();
        let place = place(&tools);
        let ship = |id: &str, code: i32| {
            let args = ["run", "workflows/ship.json", "--run-id", id, "--input", "order=7", "--store", &store];
            let ran = place.call(&args);
            assert_eq!(ran.code, code, "{store}: {ran:?}");
        };
        ship("first", 3);
        let data = json!({ "order": 7, "by": "p1" }).to_string();
        let sent = place.call(&["event", "payment.received", "--id", "p1", "--data", &data, "--store", &store]);
        assert!(sent.code == 0 && sent.stderr.contains("1 run gets it"), "{store}: {sent:?}");
        // The driver dies when it has marked the event, and before it stores that the run took it.
        let mut command = place.command(&["resume", "first", "--store", &store]);
        command.env("LOOPCTL_FAIL", "journal:0:before-write,time:300:lease");
        let died = crate::common::killed(command, "");
        assert_eq!(died.code, -9, "{store}: {died:?}");
        // Until its lease is over, the dead driver is asked to cancel.
        let lease = [("LOOPCTL_FAIL", "time:300:lease")];
        while place.call(&["trace", "first", "--store", &store, "--format", "json"]).json()["status"] != "cancelled" {
            let cancelled = place.call_with(&["cancel", "first", "--store", &store], &lease);
            assert_eq!(cancelled.code, 0, "{store}: {cancelled:?}");
            crate::common::wait_poll_interval();
        }
        // It is kept for a run that begins to wait.
        ship("second", 0);
        assert_eq!(posted(&tools), ["/p1"], "{store}");
        ship("third", 3);
    }
}
